"""The ledger and its tables, from records alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import parse_iso
from pipeline.cost.ledger import COLUMNS, LedgerRow, charged, reprice, rows, usage_of
from pipeline.cost.prices import PriceBook
from pipeline.cost.report import GROUPS, UNSPLIT, Report, of_ledger, possibly_spent, report
from pipeline.cost.usage import billed
from pipeline.records.charge import EXACT, FREE, INTERVAL, UNPRICED, Charge
from pipeline.records.fold import fold
from pipeline.records.kinds import ChargeSettled, Invalidated, TaskFailed
from pipeline.records.money import OPEN, USED, WASTED
from pipeline.records.run import in_order
from tests.unit.cost.logs import AT, Log, batched, exact, interval


def summed(found: Iterable[LedgerRow], by: str = "step") -> Report:
    return report(of_ledger(found), by)


def test_finished_call_is_one_row_with_its_place_tokens_and_price() -> None:
    log = Log()
    seq = log.start(label="lesson", attempt=2, n=1, k=3)
    log.end(seq, exact(), request_id="req_9")
    (row,) = rows(log.records)
    assert (row.seq, row.place, row.attempt, row.k, row.label) == (seq, "lessons/7", 2, 3, "lesson")
    assert (row.low, row.high, row.state, row.outcome) == (D("0.03"), D("0.03"), EXACT, USED)
    assert (row.tokens["output"], row.prices["input"], row.source) == (100, D(2), "genai-prices 1")
    assert (row.request_id, row.stop_reason, row.error) == ("req_9", "end_turn", "")


def test_money_of_an_end_without_its_start_is_kept() -> None:
    log = Log()
    log.end(99, exact())
    (row,) = rows(log.records)
    assert (row.seq, row.low, row.outcome, row.place) == (99, D("0.03"), WASTED, "")


def mixed() -> Log:
    log = Log()
    log.call(exact("0.10"), "sow#1", None)
    log.call(exact("0.031"))
    log.call(exact("0.02"), stop_reason="refusal")
    log.call(interval(), error={"type": "ModelUnavailable"}, usable=False)
    log.call(Charge(UNPRICED, tokens={"input": 3, "output": 4}), task="lessons/8")
    log.start(task="lessons/8")
    return log


def test_report_by_step_tells_used_wasted_open_and_unpriced_apart() -> None:
    result = summed(rows(mixed().records), "step")
    sow, lessons = result.lines
    assert (sow.key, sow.calls, sow.usd, sow.wasted) == ("sow", 1, D("0.10"), D(0))
    assert (lessons.calls, lessons.usd, lessons.wasted) == (5, D("0.051"), D("0.03"))
    assert (lessons.low, lessons.high, lessons.unpriced) == (D("0.01"), D("2.0"), 1)
    assert [posting.row.state for posting in result.open if posting.row] == [INTERVAL, UNPRICED, OPEN]


@pytest.mark.parametrize("by", GROUPS)
def test_lines_of_every_report_add_up_to_its_total(by: str) -> None:
    result = summed(rows(mixed().records), by)
    for name in ("usd", "wasted", "low", "high", "unpriced", "unbounded", "input_tokens"):
        assert sum(getattr(line, name) for line in result.lines) == getattr(result.total, name), name


def test_report_by_token_kind_splits_exact_charges_and_keeps_the_rest_apart() -> None:
    lines = {line.key: line for line in summed(rows(mixed().records), "token_kind").lines}
    assert list(lines) == ["input", "output", UNSPLIT]
    assert lines["input"].tokens == {"input": 50 * 3 + 10 + 3}
    assert lines["input"].usd + lines["output"].usd == D("0.151")
    assert (lines[UNSPLIT].low, lines[UNSPLIT].high) == (D("0.01"), D("2.0"))


def test_both_ends_of_what_was_spent() -> None:
    log = Log()
    log.call(exact("0.10"))
    log.start()
    assert possibly_spent(summed(rows(log.records)).total) == (D("0.10"), D("1.60"))
    log.call(interval(high=None))
    assert possibly_spent(summed(rows(log.records)).total) == (D("0.11"), None)
    assert summed(rows(log.records)).lines[0].to_json()["open_high_usd"] is None


SONNET = "claude-sonnet-5-5"
BOOK = PriceBook()
WHEN = parse_iso(AT)
USAGE: dict[str, Any] = {
    "input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 10_000, "cache_creation_input_tokens": 1000,
    "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0},
}  # fmt: skip


@pytest.fixture
def double(tmp_path: Path) -> PriceBook:
    """A price file at twice the published prices."""
    path = tmp_path / "mine.toml"
    path.write_text(
        f'[models."{SONNET}"]\ninput = "4"\noutput = "20"\ncache_read = "0.2"\ncache_write_5m = "5"\n'
        'cache_write_1h = "8"\nbatch = "0.25"\n'
    )
    return PriceBook(path)


def ended(charge: Charge, **more: Any) -> LedgerRow:
    log = Log()
    log.call(charge, **more)
    return rows(log.records)[0]


def test_call_at_its_own_prices_costs_what_is_recorded() -> None:
    charge = BOOK.charge(USAGE, model=SONNET, at=WHEN)
    row = ended(charge)
    for usage in (USAGE, None):
        again = reprice(row, usage, BOOK)
        assert (again.row, again.kept) == (row, "")


def test_broken_off_call_moves_its_lower_end_only(double: PriceBook) -> None:
    charge = BOOK.partial(USAGE, model=SONNET, at=WHEN, worst=D("0.5"))
    row = ended(charge, error={"type": "ModelUnavailable"}, usable=False)
    again = reprice(row, USAGE, double).row
    assert (again.low, again.high, again.state) == (2 * row.low, D("0.5"), "interval")


def test_model_without_a_price_stays_as_recorded() -> None:
    row = replace(ended(BOOK.charge(USAGE, model=SONNET, at=WHEN)), model="claude-unheard-of-9")
    again = reprice(row, USAGE, BOOK)
    assert again.row is row
    assert "claude-unheard-of-9" in again.kept
    broken = replace(charged(row, BOOK.partial(USAGE, model=SONNET, at=WHEN, worst=D(1))), error="ModelUnavailable")
    assert reprice(broken, USAGE, BOOK).row is broken


def test_what_nobody_knows_tokens_of_stays_as_recorded() -> None:
    log = Log()
    log.start()
    log.add(ChargeSettled(log.start(), "0.3"))
    log.call(Charge("interval", high=D(1)), error={"type": "X"}, usable=False)
    log.end(99, BOOK.charge(USAGE, model=SONNET, at=WHEN))
    found = [reprice(row, None, BOOK) for row in rows(log.records)]
    assert [each.kept for each in found] == [
        "no end is recorded", "settled by hand", "no tokens are recorded", "its model is not recorded",
    ]  # fmt: skip
    assert [each.row for each in found] == rows(log.records)


def test_every_try_is_a_row_that_says_whether_it_was_used_and_why_not() -> None:
    log = Log()
    log.call(exact(), "sow#1", None)
    log.call(exact(), "sow#2", "entries/3", stop_reason="refusal")
    log.call(exact(), stop_reason="max_tokens", usable=False)
    log.call(interval(), error={"type": "ModelUnavailable"}, usable=False)
    log.call(exact(), stop_reason="model_context_window_exceeded", usable=False)
    log.call(exact(), stop_reason="pause_turn", usable=False)
    log.call(exact(), task="lessons/8")
    log.add(TaskFailed("lessons#1", "lessons/8", {"type": "TaskRejected"}))
    log.call(exact(), task="lessons/9")
    log.add(Invalidated("redo", tasks=[["lessons#1", "lessons/9"]]))
    log.start()
    found = rows(log.records)
    assert [(row.place, row.outcome, row.cause) for row in found] == [
        ("sow", USED, ""), ("sow#2/entries/3", WASTED, "refused"), ("lessons/7", WASTED, "truncated"),
        ("lessons/7", WASTED, "failed"), ("lessons/7", WASTED, "truncated"), ("lessons/7", WASTED, "failed"),
        ("lessons/8", WASTED, "rejected"), ("lessons/9", WASTED, "void"), ("lessons/7", OPEN, ""),
    ]  # fmt: skip
    assert (found[3].state, found[3].error) == (INTERVAL, "ModelUnavailable")
    assert (found[-1].state, found[-1].low, found[-1].high) == (OPEN, D(0), D("1.5"))
    assert [posting.row for posting in summed(found).open] == [found[3], found[-1]]
    spent: dict[str, int] = {}
    for key, spend in fold("r", log.records).spend.items():
        spent[key.cause] = spent.get(key.cause, 0) + spend.calls
    assert spent == {"": 2, "refused": 1, "truncated": 2, "failed": 2, "rejected": 1, "void": 1}


def test_row_as_csv_and_json_has_exact_money_its_bounds_and_its_savings() -> None:
    log = Log()
    log.call(exact("0.0000002"))
    log.start()
    log.call(batched())
    log.call(interval(high=None))
    found = rows(log.records)
    whole, running, batch, _ = (dict(zip(COLUMNS, row.to_csv(), strict=True)) for row in found)
    names = ("usd", "usd_low", "usd_high", "output", "cache_read", "step", "price_input", "price_cache_read", "cause")
    assert [whole[name] for name in names] == ["0.0000002"] * 3 + ["100", "0", "lessons", "2", "", ""]
    assert [running[name] for name in ("usd", "usd_low", "usd_high")] == ["", "0", "1.5"]
    assert (D(batch["saved_cache_usd"]), D(batch["saved_batch_usd"])) == (D("0.0185"), D("0.0042"))
    document = found[1].to_json()
    assert (document["usd_low"], document["usd_high"], document["outcome"]) == (0.0, 1.5, "open")
    assert found[3].to_json()["usd"] is None


@pytest.mark.parametrize(
    ("charge", "amounts", "usd", "note"),
    [
        (None, ["0.25"], "0.25", "settled by teacher"),
        (interval(), ["0.25"], "0.25", "settled by teacher"),
        (Charge(UNPRICED, tokens={"input": 1, "output": 1}), ["0.25", "9"], "0.25", "settled by teacher"),
        (exact(), ["9"], "0.03", ""),
    ],
)
def test_what_is_not_exactly_known_is_settled_once(
    charge: Charge | None, amounts: list[str], usd: str, note: str
) -> None:
    log = Log()
    seq = log.start()
    if charge is not None:
        log.end(seq, charge)
    for amount in amounts:
        log.add(ChargeSettled(seq, amount, "teacher"))
    (row,) = rows(log.records)
    assert (row.state, row.low, row.high, row.note) == (EXACT, D(usd), D(usd), note)
    if note:
        (line,) = [line for line in summed([row], "token_kind").lines if line.usd]
        assert (line.key, line.usd) == (UNSPLIT, D(usd))
        log.add(ChargeSettled(seq, "0.5", "teacher", corrects=True))
        (row,) = rows(log.records)
        bounds = {"": D("1.5"), INTERVAL: D("0.5")}
        assert (row.low, row.bound) == (D("0.5"), bounds.get(charge.state if charge else ""))
        assert fold("r", log.records).total.usd == D("0.5")


def test_reports_name_and_order_their_lines() -> None:
    log = mixed()
    found = rows(log.records)
    assert [line.key for line in summed(found, "model").lines] == [SONNET]
    assert [line.key for line in summed(found, "call").lines][:1] == ["#2 sow lesson"]
    assert len(summed(found, "call").lines) == 6
    document = summed(found).total.to_json()
    assert (document["input_tokens"], document["output_tokens"]) == (163, 305)
    assert (document["cost_usd"], document["wasted_usd"], document["unpriced_calls"]) == (0.151, 0.03, 1)
    for task in ("lessons/10", "lessons/9"):
        log.call(exact("0.01"), task=task)
    items = [line.key for line in summed(rows(log.records), "item").lines]
    assert items == ["sow", "lessons/7", "lessons/8", "lessons/9", "lessons/10"]
    names = ["sow/outline", "sow/entry/10", "sow/entry/9", "lessons/b", "lessons/10", "lessons/2", "lessons/a1"]
    assert in_order(names, str) == [
        "sow/outline", "sow/entry/9", "sow/entry/10", "lessons/a1", "lessons/b", "lessons/2", "lessons/10",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="token_kind"):
        report([], "colour")


def test_call_at_other_prices_keeps_its_tokens_its_batch_and_its_place(double: PriceBook) -> None:
    for usage, tier, factor in ((USAGE, None, 2), (USAGE, "batch", 1), ({**USAGE, "inference_geo": "us"}, None, 2)):
        row = ended(BOOK.charge(usage, model=SONNET, at=WHEN, tier=tier))
        again = reprice(row, usage, double).row
        assert (again.usd, again.tokens, again.tier) == (factor * row.low, row.tokens, tier or "standard")
        assert (again.source.split()[:2], row.source.split()[0]) == (["file", "mine.toml"], "genai-prices")
    row = ended(Charge(UNPRICED, tokens={"input": 1000, "output": 0}, high=None, note="no price"))
    priced = reprice(row, None, double)
    assert (priced.row.usd, priced.row.state, priced.kept) == (D("0.004"), EXACT, "")
    free = ended(FREE, error={"type": "ModelRejected"}, usable=False)
    assert reprice(free, USAGE, double).row is free
    assert reprice(free, None, double).kept == ""
    tokens = {"input": 1, "cache_write_5m": 2, "cache_write_1h": 3, "cache_read": 4, "output": 5, "web_search": 6}
    assert billed(usage_of(tokens)).tokens == tokens
