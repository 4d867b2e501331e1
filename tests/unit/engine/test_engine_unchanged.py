"""What a change makes again: those that read it, and of those after them only what reads something else now."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline import Outcome, Pipeline, StepContext, step
from pipeline.engine.changes import Stale
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.setup import Setup
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@step()
def first(ctx: StepContext) -> dict[str, Any]:
    RAN.append("first")
    return {"text": str(ctx.settings["tone"])}


@step()
def aside(ctx: StepContext) -> dict[str, Any]:
    RAN.append("aside")
    return {"text": str(ctx.params["name"])}


@step()
def last(ctx: StepContext) -> dict[str, Any]:
    RAN.append("last")
    return {"text": ctx.outputs["first"]["text"] + ctx.outputs["aside"]["text"]}


def _engine(store: MemoryStore, what: Pipeline) -> Engine:
    clock = FakeClock()
    return Engine(what.definition, Setup(store, clock, Emitter(clock, []), {}))


def _agree(_: Stale) -> bool:
    return True


def test_engine_makes_again_what_read_a_change_and_leaves_what_read_nothing_of_it() -> None:
    store = MemoryStore(FakeClock())
    engine = _engine(store, Pipeline("tale", [first, aside, last]))
    run = engine.start({"name": "Ann"}, identity={"tone": "dry"}, pins={}).run_id
    RAN.clear()
    result = engine.resume(run, identity={"tone": "warm"}, accept=_agree)
    assert result.status == "completed"
    assert RAN == ["first", "last"]
    assert result.outputs["last"] == {"text": "warmAnn"}
    RAN.clear()
    assert engine.resume(run).worked is False
    assert RAN == []


def test_engine_asks_nothing_again_of_a_step_that_read_the_whole_context() -> None:
    @step()
    def whole(ctx: StepContext) -> dict[str, Any]:
        RAN.append("whole")
        return {"keys": sorted(ctx.place.seen)}

    store = MemoryStore(FakeClock())
    engine = _engine(store, Pipeline("tale", [first, whole]))
    run = engine.start({}, identity={"tone": "dry"}, pins={}).run_id
    engine.resume(run, identity={"tone": "warm"}, accept=_agree)
    assert RAN == ["first", "whole", "first", "whole"]


def test_engine_resumes_a_loop_whose_visits_read_each_other() -> None:
    fails = [True]

    @step()
    def draft(ctx: StepContext) -> dict[str, Any]:
        RAN.append("draft")
        return {"n": ctx.outputs["judge"]["n"] + 1 if "judge" in ctx.outputs else 1}

    @step()
    def judge(ctx: StepContext) -> Outcome:
        n = ctx.outputs["draft"]["n"]
        return Outcome({"n": n}, label="again" if n < 3 else "good")

    @step()
    def done(ctx: StepContext) -> dict[str, Any]:
        if fails.pop():
            fails.append(False)
            raise ValueError("not yet")
        return {"n": ctx.outputs["judge"]["n"]}

    edges = [("draft", "judge"), ("judge", "draft", "again"), ("judge", "done", "good")]
    what = Pipeline("round", [draft, judge, done], edges=edges)
    store = MemoryStore(FakeClock())
    run = what.run(store=store).run_id
    result = what.resume(run, store=store)
    assert (result.status, result.outputs["done"]) == ("completed", {"n": 3})
    assert RAN == ["draft"] * 3
