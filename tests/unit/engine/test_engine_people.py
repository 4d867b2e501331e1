"""Questions that are answered for want of an answer, and what a body may know of how its run stands."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.people import Answer, Question
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepContext, StepSpec
from pipeline.graph.model import Edge, Graph, Node
from pipeline.records.kinds import DecisionAsked
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock, ScriptedModel
from tests.unit.engine.saying import ask, facts


def chain(*bodies: tuple[str, Any]) -> Definition:
    names = [name for name, _ in bodies]
    links = [Edge(one, two) for one, two in pairwise(names)]
    steps = {name: StepSpec(name, body) for name, body in bodies}
    return Definition("people", Graph.of([Node(name) for name in names], links, names[0]), steps)


def go(what: Definition, store: MemoryStore, clock: FakeClock, run: str = "", **more: Any) -> RunResult:
    setup = Setup(store, clock, Emitter(clock), {}, services=more.pop("services", {}), **more)
    if setup.model is not None:
        setup.info, setup.prices = setup.model.check(), PriceBook()
    engine = Engine(what, setup)
    return engine.resume(run) if run else engine.start({}, identity={}, pins={})


def patient(ctx: StepContext) -> dict[str, Any]:
    answer = ctx.ask_person("Go on?", ["yes", "no"], seconds=60, otherwise="no")
    return {"choice": answer.choice, "by": answer.by}


def test_a_question_nobody_answers_waits_until_its_time_is_over(store: MemoryStore) -> None:
    clock, what = FakeClock(), chain(("gate", patient))
    first = go(what, store, clock)
    assert (first.status, first.detail) == ("in_progress", "waiting_for_human")
    clock.advance(59)
    again = go(what, store, clock, first.run_id)
    assert (again.status, again.detail) == ("in_progress", "waiting_for_human")
    clock.advance(1)
    last = go(what, store, clock, first.run_id)
    assert (last.status, last.outputs["gate"]) == ("completed", {"choice": "no", "by": "timeout"})
    assert len(facts(store, first.run_id, DecisionAsked)) == 1


def test_who_asks_knows_how_long_to_wait_and_its_answer_counts(store: MemoryStore) -> None:
    seen: list[float | None] = []

    class Person:
        def ask(self, question: Question) -> Answer | None:
            seen.append(question.seconds)
            return Answer("yes", by="ann")

    result = go(chain(("gate", patient)), store, FakeClock(), services={"interviewer": Person()})
    assert (result.outputs["gate"], seen) == ({"choice": "yes", "by": "ann"}, [60])


def test_an_interviewer_who_waits_in_vain_leaves_the_default(store: MemoryStore) -> None:
    clock = FakeClock()

    class Asleep:
        def ask(self, question: Question) -> Answer | None:
            clock.advance(question.seconds or 0)
            return None

    result = go(chain(("gate", patient)), store, clock, services={"interviewer": Asleep()})
    assert result.outputs["gate"] == {"choice": "no", "by": "timeout"}


def test_the_nearest_visits_come_first_and_no_more_than_asked_for(store: MemoryStore) -> None:
    def last(ctx: StepContext) -> dict[str, Any]:
        return {
            "two": [run.path for run in ctx.place.nearest(2)],
            "all": [run.path for run in ctx.place.nearest(9)],
            "from": list(ctx.place.consumed),
        }

    def nothing(ctx: StepContext) -> dict[str, Any]:
        return {}

    what = chain(("a", nothing), ("b", nothing), ("c", nothing), ("d", last))
    made = go(what, store, FakeClock()).outputs["d"]
    assert made == {"two": ["c#1", "b#1"], "all": ["c#1", "b#1", "a#1"], "from": [["c->d", "c#1"]]}


def test_a_body_knows_whether_its_question_was_answered_before_it_died(store: MemoryStore) -> None:
    told: list[tuple[bool, bool, int]] = []

    def body(ctx: StepContext) -> dict[str, Any]:
        told.append((ctx.answered(ask("one")), ctx.answered(ask("two")), ctx.place.resumed_at))
        ctx.ask(ask("one"))
        if len(told) == 1:
            ctx.stop("here")
        return {}

    model, clock, what = ScriptedModel(["1"]), FakeClock(), chain(("a", body))
    first = go(what, store, clock, model=model)
    last = go(what, store, clock, first.run_id, model=model)
    assert (last.status, model.calls) == ("completed", 1)
    assert [row[:2] for row in told] == [(False, False), (True, False)]
    assert told[0][2] == 0 < told[1][2]
