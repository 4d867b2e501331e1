"""What the fold says of tasks, paid calls and money."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import pytest

from pipeline.cost.ledger import rows
from pipeline.records import kinds
from pipeline.records.charge import BATCH, EXACT, INTERVAL, Charge
from pipeline.records.documents import head_document, spend_rows
from pipeline.records.fold import KEEP_BYTES, fold, spent
from pipeline.records.money import CAUSES
from pipeline.records.run import Spend, SpendKey, next_attempt
from tests.tape import Tape

PATH = "lessons#1"
NONE = D(0)


def sums(tape: Tape) -> dict[str, str]:
    """Exact spend by outcome."""
    found: dict[str, D] = {}
    for key, spend in tape.state.spend.items():
        found[key.outcome] = found.get(key.outcome, D(0)) + spend.usd
    return {outcome: str(amount) for outcome, amount in found.items()}


@pytest.fixture
def tape() -> Tape:
    tape = Tape()
    tape.start(PATH, (("", ""),))
    return tape


def test_call_started_counts_its_worst_case_until_it_ends(tape: Tape) -> None:
    call = tape.call(PATH, "k", worst="0.75", label="lesson")
    total = spent(tape.state)
    assert (total.usd, total.low, total.high, total.calls) == (NONE, NONE, D("0.75"), 1)
    assert list(tape.state.spend) == [SpendKey("lessons", "claude", "lesson", "2026-01-09", "open")]
    assert list(tape.state.open_calls) == [call]
    tape.reply(call, "0.25")
    total = spent(tape.state)
    assert (total.usd, total.high, total.tokens) == (D("0.25"), NONE, {"input": 10, "output": 5})
    assert list(tape.state.spend) == [SpendKey("lessons", "claude", "lesson", "2026-01-09", "used")]
    assert tape.state.open_calls == {}


def test_task_completed_drops_its_memo_and_keeps_its_short_value(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"))
    seq = tape.done(PATH, "k", {"ok": True}, item="i", hash="h", version=3, reads={"params.n": "x"})
    task = tape.state.tasks[PATH]["k"]
    assert tape.state.memo == {}
    assert (task.value, task.seq, task.item, task.hash, task.version) == (b'{"ok":true}', seq, "i", "h", 3)
    assert (task.reads, task.status) == ({"params.n": "x"}, "completed")
    assert sums(tape) == {"used": "0.25"}


def test_task_value_of_more_than_the_limit_is_left_in_the_journal(tape: Tape) -> None:
    tape.done(PATH, "fits", "x" * (KEEP_BYTES - 2))
    tape.done(PATH, "long", "x" * (KEEP_BYTES - 1))
    assert len(tape.state.tasks[PATH]["fits"].value or b"") == KEEP_BYTES
    assert tape.state.tasks[PATH]["long"].value is None


def test_task_failed_by_content_starts_empty_next_time_and_wastes_what_it_spent(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"))
    tape.reply(tape.call(PATH, "k", n=2))
    tape.reply(tape.call(PATH, "other"))
    tape.failed(PATH, "k")
    state = tape.state
    assert (PATH, "k", 1) not in state.memo
    assert next_attempt(state, PATH, "k") == 2
    assert sums(tape) == {"used": "0.25", "wasted": "0.50"}
    assert (state.tasks[PATH]["k"].status, state.tasks[PATH]["k"].error) == (
        "failed",
        {"type": "TaskRejected", "message": "bad"},
    )


def test_reply_that_a_finished_task_did_not_accept_is_wasted_and_the_others_are_used(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k", label="lesson"))
    refused = tape.call(PATH, "k", n=2, label="critic")
    tape.reply(refused, charge={"state": "interval", "low": "0.1", "high": "0.2", "tokens": {}})
    tape.done(PATH, "k", rejected=[("key", "2"), ("key", "9"), ("other", "1"), ("key", "x")])
    state = tape.state
    assert {(key.label, key.outcome, key.cause) for key in state.spend} == {
        ("lesson", "used", ""), ("critic", "wasted", "rejected"),
    }  # fmt: skip
    assert {(row.label, row.outcome, row.cause) for row in rows(tape.records)} == {
        (key.label, key.outcome, key.cause) for key in state.spend
    }
    tape.put(kinds.ChargeSettled(refused, "0.15"))
    assert sums(tape) == {"used": "0.25", "wasted": "0.15"}
    tape.put(kinds.Invalidated("redo", tasks=[(PATH, "k")]))
    assert {key.cause for key in tape.state.spend} == {"void", "rejected"}


def test_reply_whose_start_was_lost_still_counts_its_money(tape: Tape) -> None:
    tape.put(kinds.Gap(3, 3, reason="crc"))
    tape.reply(99, "0.25")
    assert spent(tape.state).usd == D("0.25")
    assert SpendKey("", "", "", "2026-01-09", "wasted", "lost") in tape.state.spend
    assert (tape.state.total.calls, tape.state.total.unbounded) == (1, 1), "what else was lost is not known"


def test_what_a_head_knew_of_lost_records_is_counted_at_least(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), "0.20")
    tape.put(kinds.Gap(20, 21, reason="crc"))
    tape.put(kinds.Gap(30, 31, 12, "journal.torn-1", "of old"))
    tape.put(kinds.Gap(32, 32, 12, "x", "not finished", torn=True))
    assert tape.state.lost == Spend(unbounded=1)
    tape.put(kinds.Gap(1, 0, reason="its head knew more", head=25, low="0.03", high="0.05", whole=True))
    assert tape.state.lost == Spend(low=D("0.03"), high=D("0.05"), unbounded=1)
    assert spent(tape.state).usd == D("0.20")
    tape.put(kinds.Gap(40, 41, reason="crc"))
    tape.put(kinds.Gap(1, 0, reason="its head knew as much", head=50, low="0", high="0", whole=True))
    assert tape.state.lost == Spend(low=D("0.03"), high=D("0.05"), unbounded=1)
    document = head_document(tape.state, 0, ())
    assert (document["total_cost_usd"], document["holes"]) == (0.23, 1)


def interval(tape: Tape, low: str, high: str | None) -> int:
    call = tape.call(PATH, "k")
    charge = {"state": "interval", "low": low, "high": high, "tokens": {"input": 10}}
    tape.reply(call, charge=charge, usable=False, stop=None, reply=None)  # type: ignore[arg-type]
    return call


def test_interval_counts_at_both_ends_until_it_is_settled(tape: Tape) -> None:
    call = interval(tape, "0.10", "0.60")
    interval(tape, "0", None)
    tape.call(PATH, worst=None)
    assert spent(tape.state).unbounded == 2
    total = spent(tape.state)
    assert (total.usd, total.low, total.high) == (NONE, D("0.10"), D("0.60"))
    tape.put(kinds.ChargeSettled(call, "0.45", "console"))
    total = spent(tape.state)
    assert (total.usd, total.low, total.high, total.unbounded) == (D("0.45"), NONE, NONE, 2)
    tape.put(kinds.ChargeSettled(call, "9"))
    assert spent(tape.state).usd == D("0.45")


def test_open_call_can_be_settled_and_is_then_wasted(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.put(kinds.ChargeSettled(call, "0.45"))
    assert (sums(tape), tape.state.open_calls) == ({"wasted": "0.45"}, {})
    tape.reply(call, "0.45")
    assert spent(tape.state).usd == D("0.45")


def test_unpriced_call_is_never_zero_by_silence_and_can_be_settled(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={"state": "unpriced", "tokens": {"output": 7}, "note": "no price"})
    assert (spent(tape.state).unpriced, spent(tape.state).tokens) == (1, {"output": 7})
    tape.put(kinds.ChargeSettled(call, "0.45"))
    assert (spent(tape.state).unpriced, sums(tape)) == (0, {"used": "0.45"})
    tape.failed(PATH, "k")
    assert sums(tape) == {"wasted": "0.45"}


def test_task_that_acts_outside_is_unknown_until_it_ends(tape: Tape) -> None:
    tape.put(kinds.TaskStarted(PATH, "post"))
    tape.put(kinds.TaskStarted(PATH, "mail"))
    assert tape.state.unknown_tasks == {(PATH, "post"), (PATH, "mail")}
    tape.done(PATH, "post")
    tape.failed(PATH, "mail")
    assert tape.state.unknown_tasks == set()


def causes(tape: Tape) -> list[tuple[str, str]]:
    """Outcome and cause of every sum."""
    assert {key.cause for key in tape.state.spend} <= {"", *CAUSES}
    return sorted((key.outcome, key.cause) for key in tape.state.spend)


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


def test_answer_of_an_attempt_whose_end_was_lost_stays_lost(tape: Tape) -> None:
    tape.failed(PATH, "k", cause="content", attempt=2)
    tape.reply(tape.call(PATH, "k"))
    tape.failed(PATH, "k", cause="content")
    assert causes(tape) == [("wasted", "lost")]
    assert tape.builder.cause(PATH, "k", 1) == "lost"


def charge(**more: Any) -> dict[str, Any]:
    tokens = {"input": 100, "cache_write_5m": 1000, "cache_read": 10_000, "output": 50}
    prices = {"input": D(2), "cache_write_5m": D("2.5"), "cache_read": D("0.1"), "output": D(10)}
    parts = {kind: prices[kind] * count / 1_000_000 for kind, count in tokens.items()}
    total = sum(parts.values(), D(0))
    return Charge(EXACT, total, total, tokens, parts, prices, **more).to_json()


def test_batch_of_an_older_record_saves_as_much_again_without_its_searches() -> None:
    parts = {"output": D("0.5"), "web_search": D("0.1")}
    found = Charge(EXACT, D("0.6"), D("0.6"), {"output": 1, "web_search": 10}, parts, tier=BATCH)
    assert found.saved_by_batch == D("0.5")


def test_answer_that_comes_after_its_attempt_closed_has_its_cause_and_is_not_remembered(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.failed(PATH, "k", cause="content")
    assert list(tape.state.open_calls) == [call]
    tape.reply(call)
    tape.call(PATH, "k", attempt=1)
    assert tape.state.memo == {}
    assert causes(tape) == [("open", ""), ("wasted", "rejected")]
    tape.call(PATH, "k", attempt=2)
    assert list(tape.state.memo) == [(PATH, "k", 2)]


@pytest.mark.parametrize(
    ("how", "cause"),
    [({"error": {"type": "X"}, "usable": False}, "failed"), ({}, "rejected")],
)
def test_settling_keeps_why_a_try_was_wasted(tape: Tape, how: dict[str, Any], cause: str) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={**charge(), "state": INTERVAL, "high": "1"}, **how)
    if not how:
        tape.failed(PATH, "k", cause="content")
    tape.put(kinds.ChargeSettled(call, "0.4"))
    assert causes(tape) == [("wasted", cause)]
    assert sums(tape) == {"wasted": "0.4"}


def test_memo_holds_the_tries_of_an_unfinished_attempt(tape: Tape) -> None:
    first = tape.call(PATH, "k", k=1)
    tape.reply(first, stop="max_tokens", usable=False)
    second = tape.call(PATH, "k", k=2)
    end = tape.reply(second)
    tape.call(PATH, "k", n=2)
    asks = tape.state.memo[PATH, "k", 1]
    assert list(asks) == [("key", 1), ("key", 2)]
    tries = asks["key", 1]
    assert [(call.seq, call.k, call.ended, call.usable) for call in tries] == [
        (first, 1, True, False), (second, 2, True, True),
    ]  # fmt: skip
    assert (tries[1].reply, tries[1].stop_reason, tries[1].ended_seq) == (b'{"text":"hello"}', "end_turn", end)


def test_work_that_its_provider_failed_goes_on_with_its_replies(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), "0.10")
    tape.reply(tape.call(PATH), "0.20")
    tape.failed(PATH, "k", "provider")
    tape.fail(PATH, cause="provider")
    assert set(tape.state.memo) == {(PATH, "k", 1), (PATH, None, 1)}
    assert next_attempt(tape.state, PATH, "k") == 1
    assert sums(tape) == {"used": "0.30"}


def test_call_is_charged_to_its_visit_and_to_the_day_it_left(tape: Tape) -> None:
    tape.at = "2026-01-09T23:59:59.000Z"
    calls = tape.call("loop#1"), tape.call("loop#2")
    tape.at = "2026-01-10T00:00:01.000Z"
    for call in calls:
        tape.reply(call)
    assert [(key.step, key.day) for key in tape.state.spend] == [("loop", "2026-01-09"), ("loop#2", "2026-01-09")]


def test_step_failed_by_content_wastes_its_own_calls_not_its_tasks(tape: Tape) -> None:
    tape.reply(tape.call(PATH), "0.10")
    tape.reply(tape.call(PATH, "k"), "0.20")
    # Journals of earlier code name the error's type alone.
    tape.fail(PATH)
    assert sums(tape) == {"wasted": "0.10", "used": "0.20"}
    assert list(tape.state.memo) == [(PATH, "k", 1)]
    tape.put(kinds.Invalidated("redo", tasks=[[PATH, "k"]]))
    assert causes(tape) == [("wasted", "failed"), ("wasted", "void")]


def test_rows_are_exact_and_say_how_many_calls_billed_a_kind_where_not_all_did(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), charge=charge())
    tape.reply(tape.call(PATH, "k"), "1.00000000006875")
    (row,) = spend_rows(tape.state)
    assert row["kind_calls"] == {"cache_write_5m": 1, "cache_read": 1}
    assert (row["saved_cache"], "cause" in row) == (0.0185, False)
    assert D(str(row["usd"])) == fold("r", tape.records).total.usd == D("1.00420000006875")
    (text,) = spend_rows(tape.state, str)
    assert (D(text["usd"]), text["usd_by_kind"]["output"]) == (D("1.00420000006875"), "0.0005")


def test_attempt_after_one_that_code_failed_hears_its_replies_but_no_errors_of_the_provider(tape: Tape) -> None:
    busy = tape.call(PATH, "k")
    tape.reply(busy, error={"type": "ModelUnavailable"}, usable=False, reply=None)
    answered = tape.call(PATH, "k", k=2)
    tape.reply(answered)
    tape.failed(PATH, "k", cause="code")
    assert [call.seq for call in tape.state.memo[PATH, "k", 1]["key", 1]] == [answered]
    assert next_attempt(tape.state, PATH, "k") == 2
