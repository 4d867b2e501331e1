"""Single tasks made again: with a person's remark, beside all others kept, the former value still there to read."""

from __future__ import annotations

from typing import Any

from pipeline import Pipeline, StepContext, TaskRejected, step
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock


def pipeline(ran: list[Any], *, long: bool = False) -> Pipeline:
    def body(ctx: StepContext, item: int) -> Any:
        ran.append((item, ctx.remark))
        return {"item": item, "text": "x" * (5000 if long else 3), "remark": ctx.remark[0] if ctx.remark else None}

    @step("make")
    def make(ctx: StepContext) -> Any:
        return {"remarks": [row["remark"] for row in ctx.map("items", range(3), body, key=str)]}

    return Pipeline("redo", [make, step("after")(lambda ctx: {"saw": ctx.outputs["make"]["remarks"]})])


def again(what: Pipeline, store: MemoryStore, run: str, **wish: Any) -> RunResult:
    clock = FakeClock()
    return Engine(what.definition, Setup(store, clock, Emitter(clock))).resume(run, **wish)


def test_one_task_is_made_again_with_its_remark_and_former_value_and_what_follows_is_too(store: MemoryStore) -> None:
    ran: list[Any] = []
    what = pipeline(ran)
    run = what.run(store=store).run_id
    ran.clear()
    result = again(what, store, run, redo=[("make#1", "items/1")], note="shorter")
    former = {"item": 1, "text": "xxx", "remark": None}
    assert ran == [(1, ("shorter", former))]
    assert (result.status, result.outputs["after"]) == ("completed", {"saw": [None, "shorter", None]})
    state = load(store, run)
    assert not state.remarks
    assert state.attempts["make#1", "items/1"] == 2
    assert not again(what, store, run).worked


def test_a_long_former_value_is_read_back(store: MemoryStore) -> None:
    ran: list[Any] = []
    what = pipeline(ran, long=True)
    run = what.run(store=store).run_id
    ran.clear()
    again(what, store, run, redo=[("make#1", "items/2")], note="n")
    ((_, (note, former)),) = ran
    assert (note, len(former["text"])) == ("n", 5000)


def test_a_remark_outlives_a_run_that_ends_before_its_task_does(store: MemoryStore) -> None:
    seen: list[Any] = []
    fails = [True]

    def body(ctx: StepContext, item: int) -> Any:
        if ctx.remark is None:
            return item
        seen.append(ctx.remark[0])
        if fails.pop() if fails else False:
            raise TaskRejected("not yet")
        return item + 10

    what = Pipeline("late", [step("make")(lambda ctx: {"all": list(ctx.map("m", range(2), body, key=str))})])
    run = what.run(store=store).run_id
    assert again(what, store, run, redo=[("make#1", "m/1")], note="more").status == "failed"
    result = again(what, store, run)
    assert (seen, result.outputs["make"]) == (["more", "more"], {"all": [0, 11]})


def test_active_seconds_count_on_where_a_step_is_made_again(store: MemoryStore) -> None:
    clock = FakeClock()

    @step("make")
    def make(ctx: StepContext) -> Any:
        clock.advance(60)
        return {}

    what = Pipeline("slow", [make])
    engine = Engine(what.definition, Setup(store, clock, Emitter(clock)))
    run = engine.start({}, identity={}, pins={}).run_id
    engine.resume(run, from_step="make")
    assert load(store, run).steps["make#1"].seconds == 120
    engine.resume(run, from_step="make")
    assert load(store, run).steps["make#1"].seconds == 180
