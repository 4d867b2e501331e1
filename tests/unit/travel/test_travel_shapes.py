"""Forks and replays of routed graphs: fan-outs, retries, loops, restarts, gates, and work that acts outside."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipeline import Pipeline, ScriptedModel, step
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.people import Answer, Question
from pipeline.engine.result import RunResult
from pipeline.engine.routing import Route, Settled, by_label
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.graph.model import Edge, Graph, Node
from pipeline.llm.base import Message, ModelInfo, Reply, Request
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from pipeline.travel.fork import fork, fork_run
from pipeline.travel.overrides import Assignment, Changes, Override
from pipeline.travel.points import points_in, state_in
from pipeline.travel.replay import replay
from pipeline.travel.stand_ins import VisitOrder
from pipeline.travel.values import Reader

Bodies = Mapping[str, Any]


class Echo:
    """Answers with the question and how many it has had."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def check(self) -> ModelInfo:
        return ModelInfo("echo", paid=False)

    def complete(self, request: Request) -> Reply:
        self.asked.append(request.messages[0].text)
        return Reply(f"{request.messages[0].text}!{len(self.asked)}", "end_turn", model="echo")

    def close(self) -> None:
        pass


class NoPrice:
    def charge(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is paid")

    partial = worst = charge


def ask(ctx: StepContext, text: str) -> str:
    return ctx.ask(Request("echo", [Message("user", text)], label="echo")).text


def definition(nodes: Sequence[Node], edges: Sequence[Edge], bodies: Bodies, router: Any = None) -> Definition:
    graph = Graph.of(nodes, edges, nodes[0].id)
    steps = {name: body if isinstance(body, StepSpec) else StepSpec(name, body) for name, body in bodies.items()}
    return Definition("shape", graph, steps, {}, router)


def go(what: Definition, store: MemoryStore, model: Any, *, resume: str = "", services: Any = None) -> RunResult:
    clock = FakeClock()
    setup = Setup(store, clock, Emitter(clock), {"concurrency": 4}, services=services or {}, model=model)
    setup.info, setup.prices = model.check(), NoPrice()
    engine = Engine(what, setup)
    return engine.resume(resume) if resume else engine.start({}, identity={"model": "echo"}, pins={})


def fan(branches: Sequence[str], most: int) -> tuple[list[Node], list[Edge]]:
    nodes = [Node("fan", attributes={"max_parallel": most})]
    nodes += [Node(name, attributes={"fan": "fan"}) for name in branches]
    nodes.append(Node("gather", join="all", attributes={"scope": "fan"}))
    edges = [Edge("fan", name) for name in branches] + [Edge(name, "gather") for name in branches]
    return nodes, edges + [Edge(name, "gather", "fail", attributes={"virtual": "branch"}) for name in branches]


def gathering() -> tuple[Definition, list[str]]:
    """Six branches, two at a time, one of which fails; then what they made is gathered."""
    nodes, edges = fan([f"b{n}" for n in range(6)], 2)
    ran: list[str] = []

    def branch(ctx: StepContext) -> Outcome:
        ran.append(ctx.place.node.id)
        text = ask(ctx, f"{ctx.place.node.id} of {ctx.context['goal']}")
        if ctx.place.node.id == "b3":
            raise ValueError("boom")
        return Outcome({"text": text}, context={"own": text})

    def gather(ctx: StepContext) -> dict[str, Any]:
        ran.append("gather")
        return {"texts": [each.outputs.get("text") for each in ctx.place.arrivals], "own": "own" in ctx.context}

    bodies: dict[str, Any] = {f"b{n}": branch for n in range(6)}
    bodies |= {"fan": lambda ctx: Outcome({}, context={"goal": ask(ctx, "goal")}), "gather": gather}
    return definition(nodes, edges, bodies), ran


def test_a_fan_out_replays_equal_up_to_every_record(store: MemoryStore) -> None:
    what, _ = gathering()
    model = Echo()
    run = go(what, store, model).run_id
    for seq in range(load(store, run).seq, 0, -3):
        assert replay(store, run, what, to=seq).differences == ()
    assert len(model.asked) == 7


def test_answers_of_a_form_replay_equal_with_all_their_tries(store: MemoryStore) -> None:
    form = {"title": "answer", "type": "object", "required": ["made"], "properties": {"made": {"type": "boolean"}}}
    body = step("ask")(lambda ctx: ctx.ask(Request("scripted", [Message("user", "?")]), returns=form))
    what = Pipeline("forms", [body])
    run = what.run(store=store, model=ScriptedModel([{}, {"made": True}])).run_id
    found = replay(store, run, what.definition)
    assert (found.differences, load(store, run).steps["ask#1"].outputs) == ((), {"made": True})


def test_a_fork_inside_a_fan_out_makes_only_the_branches_that_had_not_ended(store: MemoryStore) -> None:
    what, ran = gathering()
    model = Echo()
    first = go(what, store, model)
    found = list(records(store, first.run_id))
    for mark in points_in(first.run_id, found).boundaries:
        done = state_in(first.run_id, found, mark.seq).steps
        child = fork_run(store, first.run_id, at=mark.seq, clock=FakeClock())
        ran.clear()
        result = go(what, store, model, resume=child)
        ended = {step.node for step in done.values() if step.ended_seq and step.node != "fan"}
        assert sorted(ran) == sorted({*(f"b{n}" for n in range(6)), "gather"} - ended)
        kept = first.outputs["gather"]["texts"]
        same = [now for before, now in zip(kept, result.outputs["gather"]["texts"], strict=True) if before == now]
        assert len(same) >= len(ended & {f"b{n}" for n in range(6)})
        assert replay(store, child, what).differences == ()


def test_a_context_key_changed_before_a_fan_out_makes_its_branches_and_what_gathers_them_again(
    store: MemoryStore,
) -> None:
    what, ran = gathering()
    run = go(what, store, Echo()).run_id
    child = fork_run(store, run, changes={"context.goal": "peace"}, clock=FakeClock())
    ran.clear()
    model = Echo()
    go(what, store, model, resume=child)
    assert sorted(ran) == ["b0", "b1", "b2", "b3", "b4", "b5", "gather"]
    assert sorted(model.asked) == [f"b{n} of peace" for n in range(6)]


def looping() -> Definition:
    """Draft and judge go round, a visit is tried again by itself, and the start is begun anew once."""
    tries: list[int] = []

    def draft(ctx: StepContext) -> Outcome:
        return Outcome({"text": ask(ctx, f"draft {ctx.visit}")}, context={"n": ctx.context.get("n", 0) + 1})

    def judge(ctx: StepContext) -> Outcome:
        tries.append(ctx.attempt)
        text = ask(ctx, f"judge {ctx.context['n']} at {ctx.attempt}")
        if ctx.visit == 2 and ctx.attempt < 3:
            raise ValueError("cannot say")
        return Outcome({"text": text, "seen": len(ctx.place.ancestors())}, "good" if ctx.visit > 2 else "poor")

    def router(settled: Settled) -> Route:
        if settled.failed and settled.attempt < 3:
            return Route(retry_seconds=1.0)
        route = by_label(settled)
        return Route(route.edges, context={f"seen.{settled.path}": settled.visit}, reason="label")

    nodes = [Node("draft"), Node("judge"), Node("end")]
    edges = [Edge("draft", "judge"), Edge("judge", "draft", "poor"), Edge("judge", "end", "good")]
    return definition(nodes, edges, {"draft": draft, "judge": judge, "end": lambda ctx: dict(ctx.context)}, router)


def test_a_loop_with_retries_replays_equal_with_its_visits_attempts_and_reasons(store: MemoryStore) -> None:
    what = looping()
    run = go(what, store, Echo()).run_id
    state = load(store, run)
    assert [path for path in state.steps if path.startswith("judge")] == ["judge#1", "judge#2", "judge#3"]
    assert state.steps["judge#2"].attempt == 3
    for seq in range(state.seq, 0, -3):
        assert replay(store, run, what, to=seq).differences == ()


def test_a_fork_of_a_loop_goes_on_counting_visits_and_attempts(store: MemoryStore) -> None:
    what = looping()
    model = Echo()
    run = go(what, store, model).run_id
    asked = len(model.asked)
    failed = [mark for mark in points_in(run, list(records(store, run))).boundaries if mark.path == "judge#2"]
    assert [(mark.attempt, mark.retry) for mark in failed] == [(1, True), (2, True), (3, False)]
    child = fork_run(store, run, at=failed[1].seq, clock=FakeClock())
    result = go(what, store, model, resume=child)
    assert (result.status, load(store, child).steps["judge#2"].attempt) == ("completed", 3)
    assert model.asked[asked:] == ["judge 2 at 3", "draft 3", "judge 3 at 1"]
    assert replay(store, child, what).differences == ()


def test_visits_of_a_shared_node_get_the_numbers_they_had_whoever_was_faster(store: MemoryStore) -> None:
    other_was_there = threading.Event()

    def slow(ctx: StepContext) -> dict[str, Any]:
        other_was_there.wait()
        return {}

    def shared(ctx: StepContext) -> dict[str, Any]:
        other_was_there.set()
        return {"from": ctx.place.arrivals[0].node, "said": ask(ctx, f"visit {ctx.visit}")}

    nodes = [Node("fan"), Node("slow"), Node("quick"), Node("shared")]
    edges = [Edge("fan", "slow"), Edge("fan", "quick"), Edge("slow", "shared"), Edge("quick", "shared")]
    bodies = {"fan": lambda ctx: {}, "slow": slow, "quick": lambda ctx: {}, "shared": shared}
    what = definition(nodes, edges, bodies)
    run = go(what, store, Echo()).run_id
    assert [step.outputs["from"] for step in load(store, run).steps.values() if step.node == "shared"] == [
        "quick", "slow",
    ]  # fmt: skip
    for _ in range(5):
        assert replay(store, run, what).differences == ()


def test_a_visit_that_nothing_leads_to_any_more_ends_the_waiting(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VisitOrder, "PATIENCE", 0.01)
    turns = VisitOrder(["lost#1", "a#1", "b#1"])
    turns.wait("a#1")
    turns.ended("a#1")
    turns.wait("b#1")
    turns.ended("b#1")


def test_a_restart_replays_equal(store: MemoryStore) -> None:
    def begin(ctx: StepContext) -> Outcome:
        again = ctx.visit > 1
        values = {"graph.goal": ask(ctx, "goal"), "other": sorted(ctx.context)}
        return Outcome({"before": len(ctx.place.ancestors())}, "done" if again else "again", values)

    edges = [Edge("a", "a", "again", attributes={"restart": True}), Edge("a", "b", "done")]
    what = definition([Node("a"), Node("b")], edges, {"a": begin, "b": lambda ctx: dict(ctx.context)})
    run = go(what, store, Echo()).run_id
    assert replay(store, run, what).differences == ()
    child = fork_run(store, run, at="a#1", clock=FakeClock())
    assert go(what, store, Echo(), resume=child).outputs["b"].keys() == {"graph.goal", "other"}


def gated(acts: list[str]) -> Definition:
    """A person is asked, a file is written, a task acts outside."""

    def gate(ctx: StepContext) -> Outcome:
        answer = ctx.ask_person(ask(ctx, "Ship it?"), ["yes", "no"])
        return Outcome({"choice": answer.choice}, answer.choice)

    def ship(ctx: StepContext) -> dict[str, Any]:
        acts.append("ship")
        return {"shipped": ctx.outputs["gate"]["choice"]}

    def send(ctx: StepContext) -> dict[str, Any]:
        def act(_: StepContext, item: Any) -> Any:
            acts.append("send")
            return {"sent": item}

        return {"receipts": [ctx.task(effect, act, "Ann", effect=effect) for effect in ("external", "write")]}

    nodes = [Node("gate"), Node("ship"), Node("send")]
    edges = [Edge("gate", "ship", "yes"), Edge("ship", "send")]
    bodies = {"gate": gate, "ship": StepSpec("ship", ship, effect="write", repeatable=True), "send": send}
    return definition(nodes, edges, bodies)


class Yes:
    def ask(self, question: Question) -> Answer | None:
        return Answer("yes", by="Ann")


def test_a_replay_acts_nowhere_and_takes_recorded_answers(store: MemoryStore) -> None:
    acts: list[str] = []
    what = gated(acts)
    run = go(what, store, Echo(), services={"interviewer": Yes()}).run_id
    assert acts == ["ship", "send", "send"]
    found = replay(store, run, what)
    assert (found.differences, found.taken, acts) == ((), ("ship#1",), ["ship", "send", "send"])


def test_a_fork_before_a_gate_asks_it_and_one_behind_it_keeps_the_answer(store: MemoryStore) -> None:
    acts: list[str] = []
    what = gated(acts)
    run = go(what, store, Echo(), services={"interviewer": Yes()}).run_id
    before = fork_run(store, run, at="start", clock=FakeClock())
    assert go(what, store, Echo(), resume=before).detail == "waiting_for_human"
    asked = next(record.seq for record in records(store, run) if record.fact.kind == "decision")
    behind = fork_run(store, run, at=asked, clock=FakeClock())
    assert go(what, store, Echo(), resume=behind).outputs["gate"] == {"choice": "yes"}


def test_a_replay_names_the_first_thing_that_comes_out_otherwise(store: MemoryStore) -> None:
    acts: list[str] = []
    run = go(gated(acts), store, Echo(), services={"interviewer": Yes()}).run_id
    what = gated(acts)

    def other(ctx: StepContext) -> Outcome:
        ctx.ask_person(ask(ctx, "Ship it?"), ["yes", "no"])
        return Outcome({"choice": "no", "more": 1}, "no")

    changed = Definition(what.name, what.graph, {**what.steps, "gate": StepSpec("gate", other)})
    found = replay(store, run, changed)
    assert [(each.path, each.key, each.recorded, each.now) for each in found.differences] == [
        ("gate", "outputs.choice", "yes", "no")
    ]
    asks_else = Definition(
        what.name, what.graph, {**what.steps, "gate": StepSpec("gate", lambda ctx: {"choice": ask(ctx, "Sink it?")})}
    )
    first = replay(store, run, asks_else).differences[0]
    assert (first.path, first.key) == ("gate", "call echo.messages[0].text")
    assert (first.recorded, first.now) == ("Ship it?", "Sink it?")


def test_a_replay_looks_at_every_item_even_where_the_step_only_counts_them(store: MemoryStore) -> None:
    def counting(extra: int) -> Definition:
        def count(ctx: StepContext) -> dict[str, Any]:
            return {"n": len(ctx.map("item", [1, 2], lambda c, i: {"made": [i + extra * (i > 1)]}, key=str))}

        return definition([Node("count")], [], {"count": count})

    run = go(counting(0), store, Echo()).run_id
    (found,) = replay(store, run, counting(5)).differences
    assert (found.path, found.key, found.recorded, found.now) == ("count", "item item/2.made[0]", 2, 7)


def test_in_a_loop_only_what_read_the_newest_result_is_made_again(store: MemoryStore) -> None:
    ran: list[str] = []

    def draft(ctx: StepContext) -> dict[str, Any]:
        return {"text": "the same"}

    def judge(ctx: StepContext) -> Outcome:
        ran.append(f"judge {ctx.visit}")
        return Outcome({"saw": ctx.outputs["draft"]["text"]}, "good" if ctx.visit > 2 else "poor")

    nodes = [Node("draft"), Node("judge"), Node("end")]
    edges = [Edge("draft", "judge"), Edge("judge", "draft", "poor"), Edge("judge", "end", "good")]
    what = definition(nodes, edges, {"draft": draft, "judge": judge, "end": lambda ctx: {}})
    run = go(what, store, Echo()).run_id
    ran.clear()
    made = fork(store, run, changes={"outputs.draft.text": "another"}, clock=FakeClock())
    assert [void.paths for void in made.void] == [["judge#3"]]
    go(what, store, Echo(), resume=made.run_id)
    assert ran == ["judge 3"]
    earlier = fork(store, run, changes={"outputs.draft#2.text": "another"}, clock=FakeClock())
    assert [void.paths for void in earlier.void] == [["judge#2"]]


def test_a_context_key_counts_only_for_those_it_was_handed_on_to(store: MemoryStore) -> None:
    """Two branches set the same key to the same value; the one that goes on is changed."""

    def reads(ctx: StepContext) -> dict[str, Any]:
        return {"k": ctx.context["k"]}

    nodes = [Node(name) for name in ("fan", "a", "b", "a2", "b2", "b3")]
    edges = [Edge("fan", "a"), Edge("fan", "b"), Edge("a", "a2"), Edge("b", "b2"), Edge("b2", "b3")]
    sets = lambda ctx: Outcome({}, context={"k": "v"})  # noqa: E731
    bodies = {"fan": lambda ctx: {}, "a": sets, "b": sets, "a2": reads, "b2": reads, "b3": lambda ctx: {}}
    what = definition(nodes, edges, bodies)
    run = go(what, store, Echo()).run_id
    found = list(records(store, run))
    ends = {mark.path: mark.seq for mark in points_in(run, found).boundaries}
    state = state_in(run, found, ends["b2#1"])
    given = Changes(state, Reader(store, run), what.graph).given(Assignment("context", "k", "w"))
    assert given is not None
    readers = {path for path in ("a2#1", "b2#1") if path in state.steps and state.steps[path].ended_seq}
    assert set(Changes(state, Reader(store, run), what.graph).dependents(given).paths) == readers
    only_b = Override("context.k", "context", "k", "w", given.before, ["b#1"])
    assert Changes(state, Reader(store, run), what.graph).dependents(only_b).paths == ["b2#1"]


def test_a_replay_tells_of_other_edges_contexts_errors_and_missing_code(store: MemoryStore) -> None:
    run = go(looping(), store, Echo()).run_id
    what = looping()

    def lost(settled: Settled) -> Route:
        route = by_label(settled)
        return Route(route.edges[1:], context={"seen": 1})

    by_router = replay(store, run, Definition(what.name, what.graph, what.steps, {}, lost)).differences
    assert {each.key for each in by_router} >= {"context.seen.draft#1", "edges[0]"}
    without = replay(store, run, Definition(what.name, what.graph, {}, {}, what.router)).differences
    assert (without[0].path, without[0].key) == ("draft", "code")

    def fails(ctx: StepContext) -> Any:
        raise ValueError("not here")

    broken = Definition(what.name, what.graph, {**what.steps, "end": StepSpec("end", fails)}, {}, what.router)
    assert [(each.path, each.key) for each in replay(store, run, broken).differences] == [("end", "error")]
