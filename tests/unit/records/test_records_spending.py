"""What the fold says of tasks, paid calls and money."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline.records import kinds
from pipeline.records.documents import head_document
from pipeline.records.fold import KEEP_BYTES, spent
from pipeline.records.run import Spend, SpendKey, next_attempt
from tests.tape import Tape

PATH = "lessons#1"
NONE = Decimal(0)


def sums(tape: Tape) -> dict[str, str]:
    """Exact spend by outcome."""
    found: dict[str, Decimal] = {}
    for key, spend in tape.state.spend.items():
        found[key.outcome] = found.get(key.outcome, Decimal(0)) + spend.usd
    return {outcome: str(amount) for outcome, amount in found.items()}


@pytest.fixture
def tape() -> Tape:
    tape = Tape()
    tape.start(PATH, (("", ""),))
    return tape


def test_call_started_counts_its_worst_case_until_it_ends(tape: Tape) -> None:
    call = tape.call(PATH, "k", worst="0.75", label="lesson")
    total = spent(tape.state)
    assert (total.usd, total.low, total.high, total.calls) == (NONE, NONE, Decimal("0.75"), 1)
    assert list(tape.state.spend) == [SpendKey("lessons", "claude", "lesson", "2026-01-09", "open")]
    assert list(tape.state.open_calls) == [call]
    tape.reply(call, "0.25")
    total = spent(tape.state)
    assert (total.usd, total.high, total.tokens) == (Decimal("0.25"), NONE, {"input": 10, "output": 5})
    assert list(tape.state.spend) == [SpendKey("lessons", "claude", "lesson", "2026-01-09", "used")]
    assert tape.state.open_calls == {}


def test_call_without_a_bound_is_counted_as_such(tape: Tape) -> None:
    tape.call(PATH, worst=None)
    assert spent(tape.state).unbounded == 1


def test_call_is_charged_to_the_day_it_left(tape: Tape) -> None:
    tape.at = "2026-01-09T23:59:59.000Z"
    call = tape.call(PATH)
    tape.at = "2026-01-10T00:00:01.000Z"
    tape.reply(call)
    assert [key.day for key in tape.state.spend] == ["2026-01-09"]


@pytest.mark.parametrize(
    "how",
    [
        {"stop": "refusal"},
        {"stop": "max_tokens", "usable": False},
        {"usable": False},
        {"error": {"type": "ModelUnavailable", "message": "cut"}, "usable": False, "reply": None},
    ],
)
def test_calls_that_gave_nothing_usable_are_wasted(tape: Tape, how: dict[str, object]) -> None:
    tape.reply(tape.call(PATH, "k"), **how)  # type: ignore[arg-type]
    assert sums(tape) == {"wasted": "0.25"}


def test_memo_holds_the_tries_of_an_unfinished_attempt(tape: Tape) -> None:
    first = tape.call(PATH, "k", k=1)
    tape.reply(first, stop="max_tokens", usable=False)
    second = tape.call(PATH, "k", k=2)
    end = tape.reply(second)
    tries = tape.state.memo[PATH, "k", 1]["key", 1]
    assert [(call.seq, call.k, call.ended, call.usable) for call in tries] == [
        (first, 1, True, False),
        (second, 2, True, True),
    ]
    assert (tries[1].reply, tries[1].stop_reason, tries[1].ended_seq) == (b'{"text":"hello"}', "end_turn", end)


def test_memo_keeps_equal_asks_apart(tape: Tape) -> None:
    tape.call(PATH, "k", n=1)
    tape.call(PATH, "k", n=2)
    assert list(tape.state.memo[PATH, "k", 1]) == [("key", 1), ("key", 2)]


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


def test_tasks_that_read_the_same_share_what_they_read(tape: Tape) -> None:
    tape.done(PATH, "k1", reads={"params.n": "x"})
    tape.done(PATH, "k2", reads={"params.n": "x"})
    assert tape.state.tasks[PATH]["k1"].reads is tape.state.tasks[PATH]["k2"].reads


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


def test_wasting_moves_tokens_and_money_by_kind_along(tape: Tape) -> None:
    charge = {"state": "exact", "low": "0.3", "tokens": {"output": 5}, "parts": {"output": "0.3"}}
    tape.reply(tape.call(PATH, "k"), charge=charge)
    tape.reply(tape.call(PATH, "other"), charge=charge)
    tape.failed(PATH, "k")
    moved = {key.outcome: (spend.tokens, spend.usd_by_kind) for key, spend in tape.state.spend.items()}
    assert moved == dict.fromkeys(("used", "wasted"), ({"output": 5}, {"output": Decimal("0.3")}))


def test_task_failed_by_its_provider_goes_on_with_its_replies(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"))
    tape.failed(PATH, "k", "provider")
    assert (PATH, "k", 1) in tape.state.memo
    assert next_attempt(tape.state, PATH, "k") == 1
    assert sums(tape) == {"used": "0.25"}


def test_task_failed_and_then_made_shows_only_the_lost_attempt_as_wasted(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), "0.10")
    tape.failed(PATH, "k")
    tape.reply(tape.call(PATH, "k", attempt=2), "0.30")
    tape.done(PATH, "k", attempt=2)
    assert sums(tape) == {"wasted": "0.10", "used": "0.30"}
    assert tape.state.tasks[PATH]["k"].attempt == 2


def test_step_failed_by_content_wastes_its_own_calls_not_its_tasks(tape: Tape) -> None:
    tape.reply(tape.call(PATH), "0.10")
    tape.reply(tape.call(PATH, "k"), "0.20")
    tape.fail(PATH)
    assert sums(tape) == {"wasted": "0.10", "used": "0.20"}
    assert list(tape.state.memo) == [(PATH, "k", 1)]


def test_step_failed_by_its_provider_keeps_its_replies(tape: Tape) -> None:
    tape.reply(tape.call(PATH), "0.10")
    tape.fail(PATH, cause="provider")
    assert sums(tape) == {"used": "0.10"}
    assert list(tape.state.memo) == [(PATH, None, 1)]


def test_step_completed_drops_its_memo(tape: Tape) -> None:
    tape.reply(tape.call(PATH))
    tape.complete(PATH)
    assert tape.state.memo == {}
    assert sums(tape) == {"used": "0.25"}


def test_step_made_void_wastes_its_own_calls(tape: Tape) -> None:
    tape.reply(tape.call(PATH), "0.10")
    tape.complete(PATH)
    tape.put(kinds.Invalidated("redo", [PATH]))
    assert sums(tape) == {"wasted": "0.10"}


def test_reply_that_comes_after_its_attempt_closed_is_wasted_and_not_remembered(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.failed(PATH, "k")
    assert list(tape.state.open_calls) == [call]
    tape.reply(call)
    assert sums(tape) == {"wasted": "0.25"}
    assert tape.state.memo == {}


def test_call_of_an_attempt_that_is_closed_is_not_remembered(tape: Tape) -> None:
    tape.failed(PATH, "k")
    tape.call(PATH, "k", attempt=1)
    assert tape.state.memo == {}
    tape.call(PATH, "k", attempt=2)
    assert list(tape.state.memo) == [(PATH, "k", 2)]


def test_reply_whose_start_was_lost_still_counts_its_money(tape: Tape) -> None:
    tape.put(kinds.Gap(3, 3, reason="crc"))
    tape.reply(99, "0.25")
    assert spent(tape.state).usd == Decimal("0.25")
    assert SpendKey("", "", "", "2026-01-09", "wasted", "lost") in tape.state.spend
    assert (tape.state.total.calls, tape.state.total.unbounded) == (1, 1), "what else was lost is not known"


def test_what_a_head_knew_of_lost_records_is_counted_at_least(tape: Tape) -> None:
    tape.reply(tape.call(PATH, "k"), "0.20")
    tape.put(kinds.Gap(20, 21, reason="crc"))
    tape.put(kinds.Gap(30, 31, 12, "journal.torn-1", "of old"))
    tape.put(kinds.Gap(32, 32, 12, "x", "not finished", torn=True))
    assert tape.state.lost == Spend(unbounded=1)
    tape.put(kinds.Gap(1, 0, reason="its head knew more", head=25, low="0.03", high="0.05", whole=True))
    assert tape.state.lost == Spend(low=Decimal("0.03"), high=Decimal("0.05"), unbounded=1)
    assert spent(tape.state).usd == Decimal("0.20")
    tape.put(kinds.Gap(40, 41, reason="crc"))
    tape.put(kinds.Gap(1, 0, reason="its head knew as much", head=50, low="0", high="0", whole=True))
    assert tape.state.lost == Spend(low=Decimal("0.03"), high=Decimal("0.05"), unbounded=1)
    document = head_document(tape.state, 0, ())
    assert (document["total_cost_usd"], document["holes"]) == (0.23, 1)


def interval(tape: Tape, low: str, high: str | None) -> int:
    call = tape.call(PATH, "k")
    charge = {"state": "interval", "low": low, "high": high, "tokens": {"input": 10}}
    tape.reply(call, charge=charge, usable=False, stop=None, reply=None)  # type: ignore[arg-type]
    return call


def test_interval_counts_at_both_ends_until_it_is_settled(tape: Tape) -> None:
    call = interval(tape, "0.10", "0.60")
    total = spent(tape.state)
    assert (total.usd, total.low, total.high) == (NONE, Decimal("0.10"), Decimal("0.60"))
    tape.put(kinds.ChargeSettled(call, "0.45", "console"))
    total = spent(tape.state)
    assert (total.usd, total.low, total.high, total.calls, total.tokens) == (
        Decimal("0.45"),
        NONE,
        NONE,
        1,
        {"input": 10},
    )
    tape.put(kinds.ChargeSettled(call, "9"))
    assert spent(tape.state).usd == Decimal("0.45")


def test_interval_without_an_upper_bound_says_so(tape: Tape) -> None:
    interval(tape, "0.10", None)
    total = spent(tape.state)
    assert (total.low, total.high, total.unbounded) == (Decimal("0.10"), Decimal("0.10"), 1)


def test_open_call_can_be_settled_and_is_then_wasted(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.put(kinds.ChargeSettled(call, "0.45"))
    assert (sums(tape), tape.state.open_calls) == ({"wasted": "0.45"}, {})
    tape.reply(call, "0.45")
    assert spent(tape.state).usd == Decimal("0.45")


def test_unpriced_call_is_never_zero_by_silence_and_can_be_settled(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={"state": "unpriced", "tokens": {"output": 7}, "note": "no price"})
    assert (spent(tape.state).unpriced, spent(tape.state).tokens) == (1, {"output": 7})
    tape.put(kinds.ChargeSettled(call, "0.45"))
    assert (spent(tape.state).unpriced, sums(tape)) == (0, {"used": "0.45"})
    tape.failed(PATH, "k")
    assert sums(tape) == {"wasted": "0.45"}


def test_settling_after_the_attempt_failed_stays_wasted(tape: Tape) -> None:
    call = tape.call(PATH, "k")
    tape.reply(call, charge={"state": "unpriced", "tokens": {"output": 7}})
    tape.failed(PATH, "k")
    tape.put(kinds.ChargeSettled(call, "0.45"))
    assert (spent(tape.state).unpriced, sums(tape)) == (0, {"wasted": "0.45"})


def test_task_that_acts_outside_is_unknown_until_it_ends(tape: Tape) -> None:
    tape.put(kinds.TaskStarted(PATH, "post"))
    tape.put(kinds.TaskStarted(PATH, "mail"))
    assert tape.state.unknown_tasks == {(PATH, "post"), (PATH, "mail")}
    tape.done(PATH, "post")
    tape.failed(PATH, "mail")
    assert tape.state.unknown_tasks == set()


def test_spend_of_repeated_visits_stands_under_each_visit(tape: Tape) -> None:
    tape.reply(tape.call("loop#1"))
    tape.reply(tape.call("loop#2"))
    assert [key.step for key in tape.state.spend] == ["loop", "loop#2"]
