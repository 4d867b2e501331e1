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
from pipeline.records.kinds import ChargeSettled, Invalidated, TaskFailed
from pipeline.records.money import OPEN, USED, WASTED
from pipeline.records.run import in_order
from tests.unit.cost.logs import AT, Log, batched, cached, exact, interval


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


def test_call_of_a_step_itself_has_no_item() -> None:
    log = Log()
    log.call(exact(), "sow#1", None)
    log.call(exact(), "sow#2", "entries/3")
    assert [row.place for row in rows(log.records)] == ["sow", "sow#2/entries/3"]


def test_call_without_an_end_is_open_between_nothing_and_its_worst_case() -> None:
    log = Log()
    log.start()
    found = rows(log.records)
    assert (found[0].state, found[0].outcome, found[0].low, found[0].high) == (OPEN, OPEN, D(0), D("1.5"))
    assert [posting.row for posting in summed(found).open] == found


def test_every_try_has_its_own_row() -> None:
    log = Log()
    for k, error in ((1, {"type": "ModelUnavailable", "message": "busy"}), (2, None)):
        seq = log.start(k=k)
        log.end(seq, interval() if error else exact(), error=error, usable=error is None)
    first, second = rows(log.records)
    assert (first.outcome, first.error, first.state) == (WASTED, "ModelUnavailable", INTERVAL)
    assert (second.outcome, second.k) == (USED, 2)


@pytest.mark.parametrize(
    "end",
    [
        {"stop_reason": "refusal"},
        {"stop_reason": "max_tokens", "usable": False},
        {"error": {"type": "ModelRejected"}, "usable": False},
    ],
)
def test_refused_cut_off_and_failed_calls_are_wasted(end: dict[str, Any]) -> None:
    log = Log()
    log.call(exact(), **end)
    assert rows(log.records)[0].outcome == WASTED


def test_calls_of_an_attempt_that_was_closed_are_wasted_after_all() -> None:
    log = Log()
    log.call(exact())
    log.call(exact(), task="lessons/8")
    log.add(TaskFailed("lessons#1", "lessons/7", {"type": "TaskRejected", "message": "no"}))
    assert [row.outcome for row in rows(log.records)] == [WASTED, USED]


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ({"stop_reason": "refusal"}, "refused"),
        ({"stop_reason": "max_tokens", "usable": False}, "truncated"),
        ({"error": {"type": "ModelRejected"}, "usable": False}, "failed"),
    ],
)
def test_wasted_row_says_why(end: dict[str, Any], cause: str) -> None:
    log = Log()
    log.call(exact(), **end)
    log.call(exact(), task="lessons/8")
    log.add(Invalidated("redo", tasks=[["lessons#1", "lessons/8"]]))
    assert [row.cause for row in rows(log.records)] == [cause, "void"]


def test_row_says_what_its_cache_and_its_batch_saved() -> None:
    log = Log()
    log.call(cached())
    log.call(batched())
    alone, together = rows(log.records)
    assert (alone.saved_cache, alone.saved_batch) == (D("0.0185"), D(0))
    assert (together.saved_cache, together.saved_batch) == (D("0.0185"), D("0.0042"))


def test_calls_of_an_attempt_that_goes_on_stay_used() -> None:
    log = Log()
    log.call(exact())
    log.add(TaskFailed("lessons#1", "lessons/7", {"type": "ModelUnavailable", "message": "x"}, cause="provider"))
    assert rows(log.records)[0].outcome == USED


def test_calls_of_voided_work_are_wasted() -> None:
    log = Log()
    log.call(exact())
    log.add(Invalidated("redo", tasks=[["lessons#1", "lessons/7"]]))
    assert rows(log.records)[0].outcome == WASTED


def test_money_of_an_end_without_its_start_is_kept() -> None:
    log = Log()
    log.end(99, exact())
    (row,) = rows(log.records)
    assert (row.seq, row.low, row.outcome, row.place) == (99, D("0.03"), WASTED, "")


@pytest.mark.parametrize("charge", [None, interval(), Charge(UNPRICED, tokens={"input": 1, "output": 1}, note="why")])
def test_settled_charge_becomes_exact(charge: Charge | None) -> None:
    log = Log()
    seq = log.start()
    if charge is not None:
        log.end(seq, charge)
    log.add(ChargeSettled(seq, "0.25", "teacher"))
    (row,) = rows(log.records)
    assert (row.state, row.low, row.high) == (EXACT, D("0.25"), D("0.25"))
    assert row.note == "settled by teacher"


def test_exact_charge_is_not_settled_again() -> None:
    log = Log()
    seq = log.call(exact())
    log.add(ChargeSettled(seq, "9"))
    assert rows(log.records)[0].low == D("0.03")


def test_row_as_csv_has_every_column_and_exact_money() -> None:
    log = Log()
    log.call(exact("0.0000002"))
    cells = dict(zip(COLUMNS, rows(log.records)[0].to_csv(), strict=True))
    assert [cells[name] for name in ("usd_low", "output", "cache_read", "step")] == ["0.0000002", "100", "0", "lessons"]
    assert [cells[name] for name in ("usd", "price_input", "price_cache_read", "cause")] == ["0.0000002", "2", "", ""]


def test_row_that_is_not_exactly_known_has_no_amount_but_its_bounds() -> None:
    log = Log()
    log.start()
    cells = dict(zip(COLUMNS, rows(log.records)[0].to_csv(), strict=True))
    assert [cells[name] for name in ("usd", "usd_low", "usd_high")] == ["", "0", "1.5"]
    log.call(interval(high=None))
    assert rows(log.records)[1].to_json()["usd"] is None


def test_row_as_json_has_money_as_numbers() -> None:
    log = Log()
    log.start()
    document = rows(log.records)[0].to_json()
    assert (document["usd_low"], document["usd_high"], document["outcome"]) == (0.0, 1.5, "open")


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


def test_reports_by_item_call_and_model_name_their_lines() -> None:
    found = rows(mixed().records)
    assert [line.key for line in summed(found, "item").lines] == ["sow", "lessons/7", "lessons/8"]
    assert [line.key for line in summed(found, "model").lines] == ["claude-sonnet-5-5"]
    assert summed(found, "call").lines[0].key == "#2 sow lesson"
    assert len(summed(found, "call").lines) == 6


def test_report_by_token_kind_splits_exact_charges_and_keeps_the_rest_apart() -> None:
    lines = {line.key: line for line in summed(rows(mixed().records), "token_kind").lines}
    assert list(lines) == ["input", "output", UNSPLIT]
    assert lines["input"].tokens == {"input": 50 * 3 + 10 + 3}
    assert lines["input"].usd + lines["output"].usd == D("0.151")
    assert (lines[UNSPLIT].low, lines[UNSPLIT].high) == (D("0.01"), D("2.0"))


def test_settled_amount_stands_unsplit_by_token_kind() -> None:
    log = Log()
    seq = log.start()
    log.add(ChargeSettled(seq, "0.25"))
    (line,) = summed(rows(log.records), "token_kind").lines
    assert (line.key, line.usd) == (UNSPLIT, D("0.25"))


def test_unknown_grouping_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="token_kind"):
        report([], "colour")


def test_report_of_nothing_is_empty() -> None:
    result = report([], "step")
    assert not result.lines
    assert not result.total.calls


def test_both_ends_of_what_was_spent() -> None:
    log = Log()
    log.call(exact("0.10"))
    log.start()
    assert possibly_spent(summed(rows(log.records)).total) == (D("0.10"), D("1.60"))
    log.call(interval(high=None))
    assert possibly_spent(summed(rows(log.records)).total) == (D("0.11"), None)
    assert summed(rows(log.records)).lines[0].to_json()["open_high_usd"] is None


def test_line_as_json_has_the_names_of_the_metrics() -> None:
    document = summed(rows(mixed().records)).total.to_json()
    assert (document["input_tokens"], document["output_tokens"]) == (163, 305)
    assert (document["cost_usd"], document["wasted_usd"], document["unpriced_calls"]) == (0.151, 0.03, 1)


def test_report_items_of_a_map_stand_by_their_numbers() -> None:
    log = mixed()
    for task in ("lessons/10", "lessons/9"):
        log.call(exact("0.01"), task=task)
    found = [line.key for line in summed(rows(log.records), "item").lines]
    assert found == ["sow", "lessons/7", "lessons/8", "lessons/9", "lessons/10"]
    names = ["sow/outline", "sow/entry/10", "sow/entry/9", "lessons/b", "lessons/10", "lessons/2", "lessons/a1"]
    assert in_order(names, str) == [
        "sow/outline", "sow/entry/9", "sow/entry/10", "lessons/a1", "lessons/b", "lessons/2", "lessons/10",
    ]  # fmt: skip


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


def test_call_at_other_prices_keeps_its_tokens_and_says_which_prices(double: PriceBook) -> None:
    row = ended(BOOK.charge(USAGE, model=SONNET, at=WHEN))
    again = reprice(row, USAGE, double).row
    assert (again.usd, again.tokens) == (2 * row.low, row.tokens)
    assert again.source.startswith("file mine.toml")
    assert row.source.startswith("genai-prices")


def test_batch_stays_a_batch(double: PriceBook) -> None:
    row = ended(BOOK.charge(USAGE, model=SONNET, at=WHEN, tier="batch"))
    again = reprice(row, USAGE, double).row
    assert (again.tier, again.usd) == ("batch", row.low)


def test_place_of_inference_comes_from_the_recorded_usage(double: PriceBook) -> None:
    usage = {**USAGE, "inference_geo": "us"}
    row = ended(BOOK.charge(usage, model=SONNET, at=WHEN))
    assert reprice(row, usage, double).row.usd == 2 * row.low


def test_unpriced_call_gets_a_price(double: PriceBook) -> None:
    row = ended(Charge(UNPRICED, tokens={"input": 1000, "output": 0}, high=None, note="no price"))
    again = reprice(row, None, double)
    assert (again.row.usd, again.row.state, again.kept) == (D("0.004"), "exact", "")


def test_broken_off_call_moves_its_lower_end_only(double: PriceBook) -> None:
    charge = BOOK.partial(USAGE, model=SONNET, at=WHEN, worst=D("0.5"))
    row = ended(charge, error={"type": "ModelUnavailable"}, usable=False)
    again = reprice(row, USAGE, double).row
    assert (again.low, again.high, again.state) == (2 * row.low, D("0.5"), "interval")


def test_call_that_was_not_billed_costs_nothing_at_any_price(double: PriceBook) -> None:
    row = ended(FREE, error={"type": "ModelRejected"}, usable=False)
    assert reprice(row, USAGE, double).row is row
    assert reprice(row, None, double).kept == ""


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


def test_usage_of_tokens_is_billed_as_those_tokens() -> None:
    tokens = {"input": 1, "cache_write_5m": 2, "cache_write_1h": 3, "cache_read": 4, "output": 5, "web_search": 6}
    assert billed(usage_of(tokens)).tokens == tokens
