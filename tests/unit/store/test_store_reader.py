"""What is read of a run: its state, and its summary without the tasks of long maps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.records import kinds
from pipeline.records.kinds import Fact, RunResumed, StepStarted, TaskCompleted, TaskFailed
from pipeline.records.run import RunState, completed_tasks
from pipeline.store import reader
from pipeline.store.memory import MemoryStore
from tests.journals import AT, StillClock, line, started


def tasks(first: int, last: int) -> list[Fact]:
    return [TaskCompleted("a#1", f"t/{n}", b"%d" % n, "0" * 16, "1" * 16) for n in range(first, last)]


BEGUN: list[Fact] = [StepStarted("a#1", [["", ""]]), *tasks(0, 5)]
ERROR = {"type": "X", "message": "no"}
RUNS: dict[str, list[Fact]] = {
    "nothing more": [],
    "step ended": [kinds.StepCompleted("a#1", {"n": 5}, "c" * 32)],
    "one failed": [TaskFailed("a#1", "t/5", ERROR), *tasks(6, 9)],
    "resumed": [RunResumed({}), *tasks(5, 8), kinds.RunEnded("in_progress", "interrupted")],
    "voided": [kinds.Invalidated("redo", tasks=[["a#1", "t/1"]]), *tasks(1, 2)],
    "acting outside": [kinds.TaskStarted("a#1", "t/5"), *tasks(5, 9)],
    "paid": [kinds.CallStarted("a#1", "k", "m", "r", task="t/5", worst="1"), *tasks(5, 9), *tasks(9, 12)],
    "submitted": [kinds.TaskSubmitted("a#1", "t/5"), *tasks(5, 9)],
}


def stored(facts: Sequence[Fact], *, without: int = 0) -> tuple[MemoryStore, str]:
    store = MemoryStore(StillClock())
    owner, lines = 1, []
    for seq, fact in enumerate(facts, 2):
        owner = seq if isinstance(fact, RunResumed) else owner
        lines += [line(seq, fact, owner=owner)] if seq != without else []
    run, journal = store.create(b"".join([started(), *lines]), [], at=AT)
    journal.close()
    return store, run


def shown(state: RunState) -> object:
    count = {path: completed_tasks(state, path) for path in state.tasks}
    return count, state.steps, state.status, state.seq, state.updated_at, state.total, state.gaps, state.submitted


@pytest.mark.parametrize("more", RUNS.values(), ids=list(RUNS))
def test_summary_shows_what_the_whole_state_shows(more: list[Fact]) -> None:
    store, run = stored([*BEGUN, *more])
    assert shown(reader.summary(store, run)) == shown(reader.load(store, run))


def test_summary_of_a_run_with_a_hole_shows_it() -> None:
    store, run = stored([*BEGUN, *tasks(5, 9)], without=6)
    assert reader.summary(store, run).gaps
    assert shown(reader.summary(store, run)) == shown(reader.load(store, run))


def test_summary_does_not_keep_the_tasks_of_a_map() -> None:
    store, run = stored([*BEGUN, *tasks(5, 900)])
    assert completed_tasks(reader.summary(store, run), "a#1") == 900
    assert len(reader.summary(store, run).tasks["a#1"]) < 3
