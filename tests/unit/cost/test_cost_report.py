"""Reports over sums that heads and the account keep: the same as over the ledgers they were made from."""

from __future__ import annotations

import json
from decimal import Decimal as D
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.report import (
    GROUPS,
    NOWHERE,
    OF_TRIES,
    REMOVED,
    Origin,
    Posting,
    Report,
    of_records,
    of_removed,
    of_sums,
    possibly_spent,
    report,
    within,
)
from pipeline.records.charge import UNPRICED, Charge
from pipeline.records.codec import Record
from pipeline.records.documents import spend_rows
from pipeline.records.fold import fold
from pipeline.records.kinds import ChargeSettled, Gap, Invalidated, RunResumed, StepFailed, StepStarted, TaskFailed
from pipeline.records.money import CAUSES, WASTED
from pipeline.store.retention import run_sums
from tests.unit.cost.logs import Log, batched, cached, exact, interval

HERE = Origin("20260109_143022", "mathematics", "national_5", "completed")
CHARGES = st.sampled_from(
    [exact(), exact("0.006"), cached(), batched(), interval(), interval(high=None), Charge(UNPRICED, high=None)]
)
ACTIONS = (
    *("start", "start", "start", "end", "end", "end", "settle", "settle"),
    *("fail", "fail", "void", "step", "lost", "gap", "day"),
)
TASKS = st.sampled_from(["lessons/7", "lessons/8", None])


@st.composite
def journals(draw: st.DrawFn) -> list[Record]:
    """Calls that end well, badly, late or not at all, on some days, of attempts that fail or become void."""
    log = Log()
    log.add(StepStarted("lessons#1"))
    calls: list[int] = []
    unended: list[int] = []
    for action in draw(st.lists(st.sampled_from(ACTIONS), max_size=14)):
        _act(draw, log, action, calls, unended)
    return log.records


def _act(draw: st.DrawFn, log: Log, action: str, calls: list[int], unended: list[int]) -> None:
    task, attempt = draw(TASKS), draw(st.integers(1, 2))
    if action == "start":
        path = draw(st.sampled_from(["lessons#1", "sow#1", "lessons#2"]))
        calls.append(log.start(path, task, attempt=attempt, label=draw(st.sampled_from(["lesson", "critic"]))))
        unended.append(calls[-1])
    elif action == "lost":
        log.end(10_000 + len(log.records), draw(CHARGES))
    elif action == "end" and unended:
        call = unended.pop(draw(st.integers(0, len(unended) - 1)))
        how = draw(st.sampled_from(["end_turn", "end_turn", "refusal", "max_tokens", "error"]))
        more: dict[str, Any] = {"error": {"type": "X"}, "usable": False} if how == "error" else {"stop_reason": how}
        log.end(call, draw(CHARGES), **({**more, "usable": False} if how == "max_tokens" else more))
    elif action == "settle" and calls:
        log.add(ChargeSettled(draw(st.sampled_from(calls)), "0.2"))
    elif action == "fail" and task is not None:
        log.add(TaskFailed("lessons#1", task, {"type": "TaskRejected"}, attempt=attempt))
    elif action == "void" and task is not None:
        log.add(Invalidated("redo", tasks=[["lessons#1", task]]))
    elif action == "step":
        log.add(StepFailed("lessons#1", {"type": "StepFailed"}, "c" * 32, attempt=attempt))
    elif action == "gap":
        log.add(Gap(1, 2))
        log.add(RunResumed({}))
    elif action == "day":
        log.at = f"2026-01-{draw(st.integers(9, 11)):02d}T14:30:22.000Z"


def told(made: Report) -> dict[str, Any]:
    """All that a report says, lines by their key."""
    lines = [*made.lines, made.total]
    return {line.key: (line.to_json(), line.usd, line.wasted, line.saved_cache, line.low) for line in lines}


def sums(records: list[Record]) -> list[Posting]:
    """As a head keeps them: through JSON."""
    kept = json.loads(json.dumps(spend_rows(fold("r", records))))
    return list(of_sums(kept, HERE))


@settings(deadline=None, max_examples=120)
@given(journals())
def test_reports_from_sums_equal_those_from_the_ledger(records: list[Record]) -> None:
    tries = list(of_records(records, HERE))
    for by in GROUPS:
        if by not in OF_TRIES:
            assert told(report(sums(records), by)) == told(report(tries, by)), by


@settings(deadline=None, max_examples=50)
@given(journals(), st.integers(8, 12), st.integers(8, 12))
def test_days_of_a_range_are_the_same_from_sums_and_from_the_ledger(records: list[Record], a: int, b: int) -> None:
    since, until = f"2026-01-{min(a, b):02d}", f"2026-01-{max(a, b):02d}"
    tries = within(of_records(records, HERE), since, until)
    assert told(report(within(sums(records), since, until), "day")) == told(report(tries, "day"))


@settings(deadline=None, max_examples=50)
@given(journals())
def test_a_removed_run_is_told_as_when_it_was_there(records: list[Record]) -> None:
    state = fold("r", records)
    kept = json.loads(json.dumps(run_sums(state)))
    for by in ("step", "model", "day", "call_kind", "token_kind"):
        assert told(report(of_removed("r", kept), by)) == told(report(of_records(records), by)), by


@settings(deadline=None, max_examples=60)
@given(journals())
def test_ledger_and_fold_never_disagree_about_money(records: list[Record]) -> None:
    spend = fold("run", records).spend
    result = report(of_records(records), "step").total
    for name in ("calls", "usd", "low", "high", "unpriced"):
        assert getattr(result, name) == sum(getattr(part, name) for part in spend.values()), name
    wasted = sum((part.usd + part.low for key, part in spend.items() if key.outcome == WASTED), D(0))
    assert result.wasted == wasted
    assert set(result.waste) <= set(CAUSES)


def test_removed_run_of_an_older_version_is_told_by_its_days() -> None:
    day = {"calls": 2, "tokens": {"input": 30}, "usd": "0.3", "low": "0.1", "high": "0.2", "unpriced": 0}
    old = {"claim": ["lessons", "physics", "higher", "model"], "usd": "0.3", "days": {"2026-01-09": day}}
    (posting,) = of_removed("r", old)
    assert posting.origin == Origin("r", "physics", "higher", REMOVED)
    assert (posting.day, posting.spend.usd, posting.spend.tokens) == ("2026-01-09", D("0.3"), {"input": 30})
    assert possibly_spent(report([posting]).total) == (D("0.4"), D("0.5"))
    (oldest,) = of_removed("r", {"usd": "2"})
    assert (oldest.day, oldest.spend.usd, list(within([oldest], until="2026-01-09"))) == ("", D(2), [])


@pytest.mark.parametrize("row", [{}, {"calls": "x"}, {"calls": 1, "usd": "NaN"}, {"calls": 1, "tokens": 3}])
def test_sums_that_make_no_sense_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, ArithmeticError, AttributeError)):
        list(of_sums([row], NOWHERE))


def test_sums_say_that_single_calls_and_items_are_not_kept() -> None:
    log = Log()
    log.call(exact())
    assert [line.key for line in report(sums(log.records), "item").lines] == ["lessons (items not kept)"]
    assert [line.key for line in report(sums(log.records), "call").lines] == ["20260109_143022 (calls not kept)"]


def test_calls_of_several_runs_are_told_apart() -> None:
    log = Log()
    log.call(exact())
    both = [*of_records(log.records, HERE), *of_records(log.records, Origin("other"))]
    keys = [line.key for line in report(both, "call", many=True).lines]
    assert keys == ["20260109_143022 #2 lessons/7 lesson", "other #2 lessons/7 lesson"]
    assert [line.key for line in report(both, "run").lines] == ["20260109_143022", "other"]


def test_days_stand_by_their_date_and_savings_are_in_the_total() -> None:
    log = Log()
    for day in (11, 9):
        log.at = f"2026-01-{day:02d}T00:00:00.000Z"
        log.call(batched())
    made = report(sums(log.records), "day")
    assert [line.key for line in made.lines] == ["2026-01-09", "2026-01-11"]
    assert (made.total.saved_cache, made.total.saved_batch) == (D("0.0370"), D("0.0084"))


def test_waste_is_told_by_its_causes() -> None:
    log = Log()
    log.call(exact(), stop_reason="refusal")
    log.call(exact(), error={"type": "X"}, usable=False)
    log.call(interval(), error={"type": "X"}, usable=False)
    total = report(of_records(log.records)).total
    assert {cause: spend.calls for cause, spend in total.waste.items()} == {"refused": 1, "failed": 2}
    assert total.to_json()["waste"] == {"refused": 0.03, "failed": 0.04}
