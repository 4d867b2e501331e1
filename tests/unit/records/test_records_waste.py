"""Why spend was for nothing, and what a cache and a batch saved, as the fold sums them."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import pytest

from pipeline.cost.ledger import rows
from pipeline.records import kinds
from pipeline.records.charge import BATCH, EXACT, INTERVAL, Charge
from pipeline.records.documents import spend_rows
from pipeline.records.fold import fold, spent
from pipeline.records.money import CAUSES
from tests.tape import Tape

PATH = "lessons#1"


@pytest.fixture
def tape() -> Tape:
    tape = Tape()
    tape.start(PATH, (("", ""),))
    return tape


def causes(tape: Tape) -> list[tuple[str, str]]:
    """Outcome and cause of every sum."""
    assert {key.cause for key in tape.state.spend} <= {"", *CAUSES}
    return sorted((key.outcome, key.cause) for key in tape.state.spend)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ({"stop": "refusal"}, "refused"),
        ({"stop": "max_tokens", "usable": False}, "truncated"),
        ({"stop": "model_context_window_exceeded", "usable": False}, "truncated"),
        ({"stop": "pause_turn", "usable": False}, "failed"),
        ({"error": {"type": "ModelUnavailable"}, "usable": False, "reply": None}, "failed"),
    ],
)
def test_waste_says_what_was_wrong_with_the_answer(tape: Tape, how: dict[str, Any], cause: str) -> None:
    tape.reply(tape.call(PATH, "k"), **how)
    assert causes(tape) == [("wasted", cause)]


def test_waste_of_content_that_was_rejected(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"))
    tape.failed(PATH, "k", cause="content")
    assert causes(tape) == [("wasted", "rejected")]
    tape.reply(tape.call(PATH))
    tape.fail(PATH, cause="check")
    assert causes(tape) == [("wasted", "rejected")]
    assert spent(tape.state).calls == 2


def test_waste_that_no_check_rejected_is_not_called_so(tape: Tape) -> None:
    """Journals of earlier code name the error's type alone."""
    tape.reply(tape.call(PATH))
    tape.fail(PATH)
    assert causes(tape) == [("wasted", "failed")]


def test_replies_of_an_attempt_that_code_failed_are_used_until_a_check_rejects_them(tape: Tape) -> None:
    first = tape.call(PATH)
    tape.reply(first)
    tape.fail(PATH, cause="code")
    tape.start(PATH, attempt=2)
    tape.reply(tape.call(PATH, attempt=2, n=2))
    assert causes(tape) == [("used", "")]
    assert tape.state.memo[PATH, None, 1]["key", 1][0].seq == first
    tape.fail(PATH, cause="check", attempt=2)
    assert causes(tape) == [("wasted", "rejected")]
    assert {row.cause for row in rows(tape.records)} == {"rejected"}
    assert not tape.state.memo
    assert not tape.state.heard_from


def test_waste_of_work_made_void_and_the_first_cause_stays(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"))
    tape.failed(PATH, "k", cause="content")
    tape.reply(tape.call(PATH, "k", attempt=2))
    tape.done(PATH, "k", attempt=2)
    tape.put(kinds.Invalidated("redo", tasks=[[PATH, "k"]]))
    assert causes(tape) == [("wasted", "rejected"), ("wasted", "void")]


def test_answer_that_comes_too_late_has_the_cause_of_its_attempt(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.failed(PATH, "k", cause="content")
    tape.reply(call)
    assert causes(tape) == [("wasted", "rejected")]


def test_answer_of_an_attempt_whose_end_was_lost_stays_lost(tape: Tape) -> None:
    tape.failed(PATH, "k", cause="content", attempt=2)
    tape.reply(tape.call(PATH, "k"))
    tape.failed(PATH, "k", cause="content")
    assert causes(tape) == [("wasted", "lost")]
    assert tape.builder.cause(PATH, "k", 1) == "lost"


def test_settling_a_failed_try_keeps_why_it_was_wasted(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={**charge(), "state": INTERVAL, "high": "1"}, error={"type": "X"}, usable=False)
    tape.put(kinds.ChargeSettled(call, "0.4"))
    assert causes(tape) == [("wasted", "failed")]


def test_settling_a_try_of_rejected_work_keeps_why_it_was_wasted(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={**charge(), "state": INTERVAL, "high": "1"})
    tape.failed(PATH, "k", cause="content")
    tape.put(kinds.ChargeSettled(call, "0.4"))
    assert causes(tape) == [("wasted", "rejected")]


def test_settled_call_without_an_answer_is_lost(tape: Tape) -> None:
    tape.put(kinds.ChargeSettled(tape.call(PATH, "k"), "0.4"))
    tape.reply(99)
    assert causes(tape) == [("wasted", "lost"), ("wasted", "lost")]


def charge(**more: Any) -> dict[str, Any]:
    tokens = {"input": 100, "cache_write_5m": 1000, "cache_read": 10_000, "output": 50}
    prices = {"input": D(2), "cache_write_5m": D("2.5"), "cache_read": D("0.1"), "output": D(10)}
    parts = {kind: prices[kind] * count / 1_000_000 for kind, count in tokens.items()}
    total = sum(parts.values(), D(0))
    return Charge(EXACT, total, total, tokens, parts, prices, **more).to_json()


def test_cache_saves_what_its_tokens_would_have_cost_as_input_less_what_writing_cost(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), charge=charge())
    assert spent(tape.state).saved_cache == D("0.019") - D("0.0005")
    assert spent(tape.state).saved_batch == 0


def test_batch_saves_what_the_full_price_would_have_been(tape: Tape) -> None:
    found = charge(tier=BATCH, full=D("0.02"))
    assert Charge.from_json(found).saved_by_batch == D("0.02") - Charge.from_json(found).low
    tape.reply(tape.call(PATH, "k"), charge=found)
    assert spent(tape.state).saved_batch == D("0.02") - spent(tape.state).usd


def test_batch_of_an_older_record_saves_as_much_again_without_its_searches() -> None:
    parts = {"output": D("0.5"), "web_search": D("0.1")}
    found = Charge(EXACT, D("0.6"), D("0.6"), {"output": 1, "web_search": 10}, parts, tier=BATCH)
    assert found.saved_by_batch == D("0.5")


def test_what_is_not_exactly_known_saves_nothing() -> None:
    found = Charge.from_json({**charge(tier=BATCH, full=D(1)), "state": INTERVAL, "high": None})
    assert (found.saved_by_cache, found.saved_by_batch) == (D(0), D(0))


def test_settled_charge_takes_its_savings_back(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={**charge(), "state": INTERVAL, "high": "1"})
    tape.reply(tape.call(PATH, "k"), charge=charge(tier=BATCH, full=D(1)))
    tape.put(kinds.ChargeSettled(call, "0.4"))
    tape.failed(PATH, "k", cause="content")
    assert (spent(tape.state).saved_batch, spent(tape.state).saved_cache) == (D(1) - D("0.0042"), D("0.0185"))


def test_rows_say_how_many_calls_billed_a_kind_where_not_all_did(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), charge=charge())
    tape.reply(tape.call(PATH, "k"))
    (row,) = spend_rows(tape.state)
    assert row["kind_calls"] == {"cache_write_5m": 1, "cache_read": 1}
    assert row["saved_cache"] == 0.0185
    assert "cause" not in row
    (text,) = spend_rows(tape.state, str)
    assert (text["usd"], text["usd_by_kind"]["output"]) == ("0.2542", "0.0005")


def test_money_in_rows_is_exact(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), "1.00000000006875")
    tape.reply(tape.call(PATH, "k"), "0.20000000001001")
    (row,) = spend_rows(tape.state)
    assert D(str(row["usd"])) == fold("r", tape.records).total.usd == D("1.20000000007876")
