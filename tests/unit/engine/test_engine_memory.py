"""The user's memory: reads answered from the record, writes applied once after the boundary, none of a failed step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipeline import Pipeline, RunResult, StepContext, step
from pipeline.records.kinds import MemoryApplied, MemoryRead, StepCompleted
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.travel.replay import replay
from tests.unit.engine.saying import facts


class Remembered:
    """A memory that says what was asked of it."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.reads: list[str] = []
        self.written: list[tuple[str, str, str, str]] = []
        self.refuses = refuses

    def read(self, query: str) -> Iterable[tuple[str, str, float]]:
        self.reads.append(query)
        return [(f"t{len(self.reads)}", f"about {query}", 0.5)]

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        if self.refuses:
            self.refuses -= 1
            raise OSError("no room")
        self.written.append((type, content, scope, key))


def go(what: Pipeline, store: MemoryStore, memory: Any, resume: str = "") -> RunResult:
    services = {"memory": memory} if memory is not None else {}
    return what.resume(resume, store=store, services=services) if resume else what.run(store=store, services=services)


def writes_one(ctx: StepContext) -> Any:
    ctx.memory.write("fact", "one")
    return {}


def test_reads_are_recorded_and_writes_applied_after_the_boundary_under_their_keys(store: MemoryStore) -> None:
    @step("a")
    def body(ctx: StepContext) -> Any:
        found = ctx.memory.read("tides")
        ctx.memory.write("fact", found[0].content, scope="sea")
        ctx.memory.write("fact", "more")
        return {"found": [found[0].trace_id, ctx.memory.read("tides")[0].trace_id]}

    memory, what = Remembered(), Pipeline("m", [body, step("b")(lambda ctx: {})])
    result = go(what, store, memory)
    assert (result.status, result.outputs["a"]) == ("completed", {"found": ["t1", "t2"]})
    run = result.run_id
    written = [("fact", "about tides", "sea", f"{run}/a#1/1/1"), ("fact", "more", "", f"{run}/a#1/1/2")]
    assert memory.written == written
    assert [len(facts(store, run, kind)) for kind in (MemoryRead, MemoryApplied)] == [2, 1]
    assert [len(done.writes) for done in facts(store, run, StepCompleted)] == [2, 0]
    assert not load(store, run).unapplied
    assert replay(store, run, what.definition).equal
    assert (len(memory.reads), memory.written) == (2, written), "a replay remembers nothing"


def test_a_body_that_runs_again_in_its_attempt_reads_what_it_read_before(store: MemoryStore) -> None:
    stops = [True]

    @step("a")
    def body(ctx: StepContext) -> Any:
        found = [ctx.memory.read("x")[0].trace_id, ctx.memory.read("x")[0].trace_id]
        if stops.pop() if stops else False:
            ctx.stop("here")
        return {"found": found}

    memory, what = Remembered(), Pipeline("m", [body])
    run = go(what, store, memory).run_id
    assert go(what, store, memory, run).outputs["a"] == {"found": ["t1", "t2"]}
    assert len(memory.reads) == 2


def test_a_step_that_fails_leaves_nothing_in_the_memory(store: MemoryStore) -> None:
    fails = [True]

    @step("a")
    def body(ctx: StepContext) -> Any:
        ctx.memory.write("fact", "maybe")
        if fails.pop() if fails else False:
            raise ValueError("no")
        return {}

    memory, what = Remembered(), Pipeline("m", [body])
    run = go(what, store, memory).run_id
    assert not memory.written
    go(what, store, memory, run)
    assert [row[3] for row in memory.written] == [f"{run}/a#1/2/1"]


def test_a_memory_that_refuses_leaves_the_run_resumable_and_is_tried_first(store: MemoryStore) -> None:
    memory = Remembered(refuses=1)
    what = Pipeline("m", [step("a")(writes_one), step("b", effect="external")(lambda ctx: {"n": len(memory.written)})])
    first = go(what, store, memory)
    assert (first.status, first.detail) == ("in_progress", "interrupted")
    assert list(load(store, first.run_id).unapplied) == ["a#1"]
    without = go(what, store, None, first.run_id)
    assert without.error is not None
    assert without.error.code == "no_memory"
    second = go(what, store, memory, first.run_id)
    assert (second.status, second.outputs["b"]) == ("completed", {"n": 1})


def test_a_run_without_a_memory_and_a_task_that_writes_are_refused(store: MemoryStore) -> None:
    for body, memory, code in (
        (lambda ctx: {"x": ctx.memory.read("q")}, None, "no_memory"),
        (lambda ctx: {"x": ctx.task("t", lambda c, i: writes_one(c))}, Remembered(), "memory_write_in_task"),
    ):
        state = load(store, go(Pipeline("m", [step("a")(body)]), store, memory).run_id)
        errors = [step.error for step in state.steps.values()] + [
            t.error for ts in state.tasks.values() for t in ts.values()
        ]
        assert code in [error.get("code") for error in errors if error]
