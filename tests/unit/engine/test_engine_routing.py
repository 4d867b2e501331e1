"""Routers, retries of a visit, fan-outs that gather without merging, restarts, and questions to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline import Pipeline, StepContext, step
from pipeline.clock import SystemClock
from pipeline.engine.amendment import amend
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.people import Answer, Question
from pipeline.engine.result import RunResult
from pipeline.engine.routing import Route, Settled, by_label
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import Outcome, StepSpec
from pipeline.errors import ConfigError, RunLocked
from pipeline.graph.model import Edge, Graph, Node
from pipeline.records.kinds import Decision, Fact
from pipeline.records.run import RunState
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock


def definition(nodes: Sequence[Node], edges: Sequence[Edge], bodies: dict[str, Any], router: Any = None) -> Definition:
    graph = Graph.of(nodes, edges, nodes[0].id)
    return Definition("shape", graph, {name: StepSpec(name, body) for name, body in bodies.items()}, {}, router)


def go(what: Definition, store: MemoryStore, *, resume: str = "", services: Any = None, **wish: Any) -> RunResult:
    clock = FakeClock()
    setup = Setup(store, clock, Emitter(clock), {"concurrency": 4}, services=services or {})
    engine = Engine(what, setup)
    return engine.resume(resume, **wish) if resume else engine.start({}, identity={}, pins={})


def test_a_router_chooses_the_edges_and_its_reason_is_recorded(store: MemoryStore) -> None:
    def router(settled: Settled) -> Route:
        edges = [
            edge.id
            for edge in settled.graph.outgoing(settled.node.id)
            if edge.attributes.get("to") == settled.hints.get("to")
        ]
        return Route(edges, context={"why": "hint"}, reason="hint")

    nodes = [Node("a"), Node("b"), Node("c")]
    edges = [Edge("a", "b", attributes={"to": 1}), Edge("a", "c", attributes={"to": 2})]
    what = definition(
        nodes,
        edges,
        {
            "a": lambda ctx: Outcome({}, "moved", hints={"to": 2}),
            "b": lambda ctx: {},
            "c": lambda ctx: dict(ctx.context),
        },
        router,
    )
    result = go(what, store)
    state = load(store, result.run_id)
    assert (result.status, list(state.steps)) == ("completed", ["a#1", "c#1"])
    assert (state.steps["a#1"].outcome, state.steps["a#1"].reason) == ("moved", "hint")
    assert result.outputs["c"] == {"why": "hint"}


def test_an_outcome_with_an_error_fails_the_visit_and_keeps_what_it_set(store: MemoryStore) -> None:
    what = definition(
        [Node("a"), Node("mend")], [Edge("a", "mend", "fail")],
        {"a": lambda ctx: Outcome({"text": "half"}, "fail", {"left": 1}, error={"type": "Bad", "message": "no"}),
         "mend": lambda ctx: {"saw": ctx.context["left"], "from": ctx.place.arrivals[0].outputs["text"]}},
    )  # fmt: skip
    result = go(what, store)
    assert (result.status, result.outputs["mend"]) == ("completed", {"saw": 1, "from": "half"})
    assert load(store, result.run_id).steps["a#1"].status == "failed"


def test_a_visit_is_tried_again_as_the_router_says_and_counts_survive(store: MemoryStore) -> None:
    seen: list[int] = []

    def shaky(ctx: StepContext) -> Any:
        seen.append(ctx.attempt)
        if len(seen) < 3:
            raise ValueError("not yet")
        return {"attempt": ctx.attempt}

    def router(settled: Settled) -> Route:
        return Route(retry_seconds=2.0) if settled.failed and settled.attempt < 4 else by_label(settled)

    result = go(definition([Node("a")], [], {"a": shaky}, router), store)
    assert (result.status, result.outputs["a"], seen) == ("completed", {"attempt": 3}, [1, 2, 3])


def test_a_visit_stopped_between_two_attempts_goes_on_with_the_next(store: MemoryStore) -> None:
    seen: list[int] = []

    def shaky(ctx: StepContext) -> Any:
        seen.append(ctx.attempt)
        if len(seen) == 1:
            ctx._running.stop.request("interrupted", ConfigError("stop"))
        if len(seen) < 3:
            raise ValueError("not yet")
        return {}

    def router(settled: Settled) -> Route:
        return Route(retry_seconds=0.0) if settled.failed and settled.attempt < 3 else by_label(settled)

    what = definition([Node("a")], [], {"a": shaky}, router)
    first = go(what, store)
    assert (first.status, first.detail) == ("in_progress", "interrupted")
    assert (go(what, store, resume=first.run_id).status, seen) == ("completed", [1, 2, 3])


def fan(*, branches: Sequence[str], most: int = 0) -> tuple[list[Node], list[Edge]]:
    nodes = [Node("fan", attributes={"max_parallel": most} if most else {})]
    nodes += [Node(name, attributes={"fan": "fan"}) for name in branches]
    nodes.append(Node("gather", join="all", attributes={"scope": "fan"}))
    edges = [Edge("fan", name) for name in branches] + [Edge(name, "gather") for name in branches]
    return nodes, edges + [Edge(name, "gather", "fail", attributes={"virtual": "branch"}) for name in branches]


def test_a_gathering_node_sees_the_context_from_before_its_branches_and_reads_them_apart(store: MemoryStore) -> None:
    def broken(ctx: StepContext) -> Any:
        raise ValueError("boom")

    nodes, edges = fan(branches=["x", "y", "z"])
    bodies = {
        "fan": lambda ctx: Outcome({}, context={"k": "before"}),
        "x": lambda ctx: Outcome({"n": 1}, context={"k": "x", "only": ctx.context["k"]}),
        "y": lambda ctx: Outcome({"n": 2}, context={"k": "y"}),
        "z": broken,
        "gather": lambda ctx: {
            "seen": dict(ctx.context),
            "from": [[a.branch, a.failed, a.context] for a in ctx.place.arrivals],
        },
    }
    result = go(definition(nodes, edges, bodies), store)
    assert result.status == "completed"
    assert result.outputs["gather"] == {
        "seen": {"k": "before"},
        "from": [["x", False, {"k": "x", "only": "before"}], ["y", False, {"k": "y"}], ["z", True, {}]],
    }


def test_a_fan_out_runs_no_more_branches_at_once_than_it_may(store: MemoryStore) -> None:
    nodes, edges = fan(branches=[f"b{n}" for n in range(6)], most=2)
    running: list[str] = []
    most: list[int] = []

    def body(ctx: StepContext) -> Any:
        running.append(ctx.path)
        most.append(len(running))
        running.remove(ctx.path)
        return {}

    what = definition(
        nodes, edges, {"fan": lambda ctx: {}, "gather": lambda ctx: {}, **{f"b{n}": body for n in range(6)}}
    )
    assert go(what, store).status == "completed"
    assert len(most) == 6
    assert max(most) <= 2


def test_an_edge_that_restarts_lets_only_graph_keys_through_and_forgets_what_was_before(store: MemoryStore) -> None:
    def begin(ctx: StepContext) -> Any:
        again = ctx.visit > 1
        return Outcome({"saw": sorted(ctx.context), "before": len(ctx.place.ancestors())}, "done" if again else "again",
                       {"graph.goal": "g", "other": 1})  # fmt: skip

    edges = [Edge("a", "a", "again", attributes={"restart": True}), Edge("a", "b", "done")]
    result = go(
        definition([Node("a"), Node("b")], edges, {"a": begin, "b": lambda ctx: {"from": len(ctx.place.ancestors())}}),
        store,
    )
    assert result.outputs["a"] == {"saw": ["graph.goal"], "before": 0}
    assert result.outputs["b"] == {"from": 1}


def gate(ctx: StepContext) -> Any:
    answer = ctx.ask_person("Ship it?", ["yes", "no"], {"version": 3})
    return {"choice": answer.choice, "by": answer.by}


GATED = (
    [Node("fan"), Node("gate"), Node("slow"), Node("after")],
    [Edge("fan", "gate"), Edge("fan", "slow"), Edge("gate", "after")],
)


def test_a_gate_that_nobody_answers_waits_while_the_other_branches_run_on(store: MemoryStore) -> None:
    what = definition(
        *GATED, {"fan": lambda ctx: {}, "gate": gate, "slow": lambda ctx: {"done": True}, "after": lambda ctx: {}}
    )
    result = go(what, store)
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "waiting_for_human", 8)
    state = load(store, result.run_id)
    assert state.steps["slow#1"].status == "completed"
    assert "after#1" not in state.steps
    asked = state.questions["gate#1"]
    assert (asked.choices, asked.shown["text"]) == (["yes", "no"], "Ship it?")
    again = go(what, store, resume=result.run_id)
    assert again.exit_code == 8
    assert load(store, result.run_id).questions["gate#1"].seq == asked.seq


def test_a_recorded_answer_is_used_once_and_for_good(store: MemoryStore) -> None:
    what = definition(*GATED, {"fan": lambda ctx: {}, "gate": gate, "slow": lambda ctx: {}, "after": lambda ctx: {}})
    run = go(what, store).run_id

    def answer(state: RunState) -> Sequence[Fact]:
        return [Decision("gate#1", state.questions["gate#1"].question, "no", "Ann")]

    assert not amend(store, run, SystemClock(), answer).questions
    result = go(what, store, resume=run)
    assert (result.status, result.outputs["gate"]) == ("completed", {"choice": "no", "by": "Ann"})


def test_an_interviewer_is_asked_and_its_answer_recorded(store: MemoryStore) -> None:
    class Asked:
        def __init__(self) -> None:
            self.questions: list[Question] = []

        def ask(self, question: Question) -> Answer | None:
            self.questions.append(question)
            return Answer("yes", by="test")

    asked = Asked()
    what = definition(*GATED, {"fan": lambda ctx: {}, "gate": gate, "slow": lambda ctx: {}, "after": lambda ctx: {}})
    result = go(what, store, services={"interviewer": asked})
    assert (result.outputs["gate"]["choice"], len(asked.questions)) == ("yes", 1)
    assert load(store, result.run_id).decisions["gate#1", asked.questions[0].hash].by == "test"


def test_amend_records_nothing_where_its_decision_is_refused_or_the_run_is_owned(store: MemoryStore) -> None:
    run = Pipeline("p", [step("a")(lambda ctx: {})]).run(store=store).run_id
    before = list(store.read(run))

    def refuse(state: RunState) -> Sequence[Fact]:
        raise ConfigError("no such gate")

    with pytest.raises(ConfigError, match="no such gate"):
        amend(store, run, SystemClock(), refuse)
    assert list(store.read(run)) == before
    journal = store.open(run)
    with pytest.raises(RunLocked):
        amend(store, run, SystemClock(), lambda state: [])
    journal.close()


def test_from_a_step_that_step_and_what_follows_are_made_again_with_their_tasks(store: MemoryStore) -> None:
    ran: list[str] = []

    def body(name: str) -> Any:
        def run(ctx: StepContext) -> Any:
            def item(_: StepContext, value: Any) -> Any:
                ran.append(f"{name}/{value}")
                return value

            return {"n": list(ctx.map("m", [1], item, key=str))}

        return run

    what = definition([Node("a"), Node("b"), Node("c")], [Edge("a", "b"), Edge("b", "c")], {n: body(n) for n in "abc"})
    run = go(what, store).run_id
    assert go(what, store, resume=run, from_step="b").status == "completed"
    # c runs again, but what its task was made from is the same.
    assert ran == ["a/1", "b/1", "c/1", "b/1"]
    with pytest.raises(ConfigError, match="No step 'z' has ended"):
        go(what, store, resume=run, from_step="z")


def test_refresh_makes_completed_steps_of_an_effect_class_again(store: MemoryStore) -> None:
    ran: list[str] = []

    def body(ctx: StepContext) -> Any:
        ran.append(ctx.place.node.id)
        return {"n": ctx.outputs["b"]["n"] if ctx.place.node.id == "d" else len(ran)}

    graph = Graph.of([Node(name) for name in "abcd"], [Edge("a", "b"), Edge("b", "c"), Edge("c", "d")], "a")
    effects = {"a": "pure", "b": "read", "c": "external", "d": "pure"}
    what = Definition("fresh", graph, {name: StepSpec(name, body, effect=effects[name]) for name in "abcd"})
    run = go(what, store).run_id
    assert not go(what, store, resume=run).worked
    ran.clear()
    go(what, store, resume=run, refresh=["read"])
    # c comes after b and read nothing of it.
    assert ran == ["b", "d"]
