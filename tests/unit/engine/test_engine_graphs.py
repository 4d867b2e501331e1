"""Graphs: joins, branches, loops, routers, fan-outs, restarts; graphs that changed, runs that begin in the middle."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline import Outcome, Pipeline, RunResult, ScriptedModel, StepContext, step
from pipeline.clock import SystemClock
from pipeline.engine.recorder import HeadView, Recorder, StepEndHook
from pipeline.engine.routing import Route, Settled, by_label
from pipeline.engine.setup import Definition
from pipeline.errors import ConfigError, PipelineError, SettingsConflict
from pipeline.graph.model import Edge, Node
from pipeline.records.kinds import DocumentKept
from pipeline.records.run import RunState
from pipeline.records.values import encode_value
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import ask, definition, go, notes

DIAMOND = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


def nothing(ctx: StepContext) -> Any:
    return {}


def graph(edges: Sequence[Sequence[str]], joins: Mapping[str, str] | None = None, **bodies: Any) -> Pipeline:
    """A pipeline of the nodes that the edges name, in order; those without a body do nothing."""
    names = dict.fromkeys(name for edge in edges for name in edge[:2])
    steps = [step(name)(bodies.get(name, nothing)) for name in names]
    return Pipeline("graph", steps, edges=edges, joins=joins, reducers=bodies.get("reducers"))


def test_diamond_joins_once_with_both_contexts_and_one_key_of_two_branches_needs_a_reducer(store: MemoryStore) -> None:
    def diamond(reducers: Any = None) -> RunResult:
        return graph(
            DIAMOND, {"d": "all"}, reducers=reducers, a=lambda ctx: Outcome({}, context={"a": 1}),
            b=lambda ctx: Outcome({}, context={"b": ctx.context["a"] + 1, "k": [1]}),
            c=lambda ctx: Outcome({}, context={"c": ctx.context["a"] + 2, "k": [2]}),
            d=lambda ctx: {"sum": ctx.context["b"] + ctx.context["c"], "k": ctx.context["k"]},
        ).run(store=store)  # fmt: skip

    error = diamond().error
    assert error is not None
    assert error.code == "context_conflict"
    result = diamond({"k": lambda x, y: x + y})
    assert result.outputs["d"] == {"sum": 5, "k": [1, 2]}
    assert list(load(store, result.run_id).steps).count("d#1") == 1


def test_branch_takes_the_edge_of_its_label_and_a_failure_edge_accepts_the_failure(store: MemoryStore) -> None:
    edges = [("a", "b", "left"), ("a", "c", "right"), ("b", "d"), ("c", "d")]
    result = graph(edges, {"d": "all"}, a=lambda ctx: Outcome({}, label="left")).run(store=store)
    assert (result.status, list(result.outputs)) == ("completed", ["a", "b", "d"])
    mended = graph([("a", "good"), ("a", "mend", "fail")], a=lambda ctx: 1 / 0).run(store=store)
    assert (mended.status, list(mended.outputs)) == ("completed", ["mend"])


def test_loop_visits_are_new_work_each_time(store: MemoryStore) -> None:
    model, crash = ScriptedModel(lambda request: "x"), {"at": 3}

    def body(ctx: StepContext) -> Any:
        count = ctx.context.get("count", 0) + 1
        ctx.ask(ask("the same prompt"))
        if count == crash["at"]:
            ctx.stop("killed in the third")
        return Outcome({}, label="again" if count < 3 else "done", context={"count": count})

    pipeline = graph([("loop", "loop", "again"), ("loop", "end", "done")], loop=body)
    run = pipeline.run(store=store, model=model).run_id
    assert model.calls == 3
    crash["at"] = 0
    assert pipeline.resume(run, store=store, model=model).status == "completed"
    assert model.calls == 3
    assert list(load(store, run).steps) == ["loop#1", "loop#2", "loop#3", "end#1"]


def test_failing_sibling_lets_the_other_finish_and_blocks_the_join(store: MemoryStore) -> None:
    def boom(ctx: StepContext) -> Any:
        raise PipelineError("boom")

    result = graph(DIAMOND, {"d": "all"}, b=boom).run(store=store)
    assert (result.status, sorted(result.outputs)) == ("failed", ["a", "c"])
    assert "b: boom" in str(result.error)


def test_a_router_chooses_the_edges_and_its_reason_is_recorded(store: MemoryStore) -> None:
    def router(settled: Settled) -> Route:
        out = settled.graph.outgoing(settled.node.id)
        edges = [edge.id for edge in out if edge.attributes.get("to") == settled.hints.get("to")]
        return Route(edges, context={"why": "hint"}, reason="hint")

    edges = [Edge("a", "b", attributes={"to": 1}), Edge("a", "c", attributes={"to": 2})]
    bodies = {"a": lambda ctx: Outcome({}, "moved", hints={"to": 2}), "b": nothing, "c": lambda ctx: dict(ctx.context)}
    result = go(definition([Node(name) for name in "abc"], edges, bodies, router), store)
    state = load(store, result.run_id)
    assert (result.status, list(state.steps)) == ("completed", ["a#1", "c#1"])
    assert (state.steps["a#1"].outcome, state.steps["a#1"].reason) == ("moved", "hint")
    assert result.outputs["c"] == {"why": "hint"}


def test_an_outcome_with_an_error_fails_the_visit_and_keeps_what_it_set(store: MemoryStore) -> None:
    result = graph(
        [("a", "mend", "fail")],
        a=lambda ctx: Outcome({"text": "half"}, "fail", {"left": 1}, error={"type": "Bad", "message": "no"}),
        mend=lambda ctx: {"saw": ctx.context["left"], "from": ctx.place.arrivals[0].outputs["text"]},
    ).run(store=store)
    assert (result.status, result.outputs["mend"]) == ("completed", {"saw": 1, "from": "half"})
    assert load(store, result.run_id).steps["a#1"].status == "failed"


@pytest.mark.parametrize("stopped", [False, True])
def test_a_visit_is_tried_again_as_the_router_says_and_counts_survive(store: MemoryStore, stopped: bool) -> None:
    seen: list[int] = []

    def shaky(ctx: StepContext) -> Any:
        seen.append(ctx.attempt)
        if stopped and len(seen) == 1:
            ctx._running.stop.request("interrupted", ConfigError("stop"))
        if len(seen) < 3:
            raise ValueError("not yet")
        return {}

    def router(settled: Settled) -> Route:
        return Route(retry_seconds=0.5) if settled.failed and settled.attempt < 4 else by_label(settled)

    what = definition([Node("a")], [], {"a": shaky}, router)
    result = go(what, store)
    if stopped:
        assert (result.status, result.detail) == ("in_progress", "interrupted")
        result = go(what, store, result.run_id)
    assert (result.status, seen) == ("completed", [1, 2, 3])


def fan(bodies: Mapping[str, Any], most: int = 0, **others: Any) -> Definition:
    """Branches between a node `fan` and one that gathers them."""
    nodes = [Node("fan", attributes={"max_parallel": most} if most else {})]
    nodes += [Node(name, attributes={"fan": "fan"}) for name in bodies]
    nodes.append(Node("gather", join="all", attributes={"scope": "fan"}))
    edges = [Edge("fan", name) for name in bodies] + [Edge(name, "gather") for name in bodies]
    edges += [Edge(name, "gather", "fail", attributes={"virtual": "branch"}) for name in bodies]
    return definition(nodes, edges, {"fan": nothing, "gather": nothing, **bodies, **others})


def test_a_gathering_node_sees_the_context_from_before_its_branches_and_reads_them_apart(store: MemoryStore) -> None:
    def gather(ctx: StepContext) -> Any:
        arrivals = [[each.branch, each.failed, each.context] for each in ctx.place.arrivals]
        return {"seen": dict(ctx.context), "from": arrivals}

    bodies = {
        "x": lambda ctx: Outcome({"n": 1}, context={"k": "x", "only": ctx.context["k"]}),
        "y": lambda ctx: Outcome({"n": 2}, context={"k": "y"}),
        "z": lambda ctx: 1 / 0,
    }
    result = go(fan(bodies, fan=lambda ctx: Outcome({}, context={"k": "before"}), gather=gather), store)
    assert result.outputs["gather"] == {
        "seen": {"k": "before"},
        "from": [["x", False, {"k": "x", "only": "before"}], ["y", False, {"k": "y"}], ["z", True, {}]],
    }


def test_a_fan_out_runs_no_more_branches_at_once_than_it_may(store: MemoryStore) -> None:
    running, most, pair = list[str](), list[int](), threading.Barrier(2)

    def body(ctx: StepContext) -> Any:
        running.append(ctx.path)
        pair.wait(120)
        most.append(len(running))
        pair.wait(120)
        running.remove(ctx.path)
        return {}

    assert go(fan({f"b{n}": body for n in range(6)}, most=2), store).status == "completed"
    assert most == [2] * 6


def test_an_edge_that_restarts_lets_only_graph_keys_through_and_forgets_what_was_before(store: MemoryStore) -> None:
    def begin(ctx: StepContext) -> Any:
        seen = {"saw": sorted(ctx.context), "before": len(ctx.place.ancestors())}
        return Outcome(seen, "done" if ctx.visit > 1 else "again", {"graph.goal": "g", "other": 1})

    edges = [Edge("a", "a", "again", attributes={"restart": True}), Edge("a", "b", "done")]
    bodies = {"a": begin, "b": lambda ctx: {"from": len(ctx.place.ancestors())}}
    result = go(definition([Node("a"), Node("b")], edges, bodies), store)
    assert result.outputs == {"a": {"saw": ["graph.goal"], "before": 0}, "b": {"from": 1}}


def test_the_nearest_visits_come_first_and_no_more_than_asked_for(store: MemoryStore) -> None:
    def last(ctx: StepContext) -> dict[str, Any]:
        nearest = [[run.path for run in ctx.place.nearest(most)] for most in (2, 9)]
        return {"nearest": nearest, "from": list(ctx.place.consumed)}

    result = graph([("a", "b"), ("b", "c"), ("c", "d")], d=last).run(store=store)
    assert result.outputs["d"] == {"nearest": [["c#1", "b#1"], ["c#1", "b#1", "a#1"]], "from": [["c->d", "c#1"]]}


class Shape:
    """Nodes that wait for all their edges; those named in `bad` fail."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.ran: list[str] = []
        self.bad: set[str] = set()
        self.run = ""

    def go(self, edges: str, hook: StepEndHook | None = None, bad: str = "", **wish: Any) -> RunResult:
        """Start it, or go on with it in a graph of these edges: "a>b b>c"."""
        self.ran, self.bad = [], set(bad)
        links = [Edge(edge[0], edge[2]) for edge in edges.split()]
        names = dict.fromkeys(name for edge in links for name in (edge.source, edge.target))
        what = definition([Node(name, "all") for name in names], links, dict.fromkeys(names, self._body))
        setup = {"options": {"concurrency": 1}, "hook": hook}
        result = go(what, self.store, self.run, setup=setup, **wish)
        self.run = result.run_id
        return result

    def _body(self, ctx: StepContext) -> dict[str, Any]:
        self.ran.append(ctx.place.node.id)
        if ctx.place.node.id in self.bad:
            raise ValueError("bad")
        return {"from": sorted(arrival.node for arrival in ctx.place.arrivals)}


@pytest.fixture
def shape(store: MemoryStore) -> Shape:
    return Shape(store)


def agree(_: object) -> bool:
    return True


def test_a_step_that_is_gone_keeps_nothing_waiting(shape: Shape) -> None:
    assert shape.go("a>b a>c b>d c>d", bad="b").status == "failed"
    with pytest.raises(SettingsConflict) as caught:
        shape.go("a>c c>d")
    assert caught.value.code == "pipeline_changed"
    assert "step b is gone" in caught.value.data["changed"]
    result = shape.go("a>c c>d", accept=lambda stale: not stale.steps)
    assert (result.status, shape.ran, result.outputs["d"]) == ("completed", ["d"], {"from": ["c"]})
    assert load(shape.store, shape.run).waiting == {}


def test_a_completed_step_that_is_gone_stays_in_the_records_and_is_not_missed(shape: Shape) -> None:
    shape.go("a>b a>c b>d c>d", bad="c")
    result = shape.go("a>c c>d", accept=agree)
    assert (result.status, shape.ran) == ("completed", ["c", "d"])
    assert load(shape.store, shape.run).steps["b#1"].status == "completed"


def test_a_failed_step_waits_for_what_it_needs_now(shape: Shape) -> None:
    shape.go("a>b a>c b>e", bad="c")
    result = shape.go("a>b b>n n>c b>e", accept=agree)
    assert (result.status, shape.ran, result.outputs["c"]) == ("completed", ["n", "c"], {"from": ["n"]})


def test_steps_asked_for_by_path_are_made_again_with_what_followed(shape: Shape) -> None:
    shape.go("a>b b>c a>d")
    assert shape.go("a>b b>c a>d", again=["b#1"]).status == "completed"
    assert shape.ran == ["b", "c"]


def test_a_graph_that_only_grew_goes_on_and_that_is_said(store: MemoryStore) -> None:
    heard: list[Any] = []
    run = graph([("a", "b")]).run(store=store).run_id
    grown = graph([("a", "b"), ("b", "c"), ("a", "d")])
    result = grown.resume(run, store=store, listener=heard.append)
    assert (result.status, sorted(result.outputs)) == ("completed", list("abcd"))
    assert any("step c is new" in text for text in notes(heard))
    assert not grown.resume(run, store=store).worked


def test_a_boundary_is_told_once_it_is_recorded_and_may_record_more(shape: Shape) -> None:
    class Notes:
        def begun(self, recorder: Recorder) -> None:
            self.recorder = recorder

        def ended(self, path: str) -> None:
            with self.recorder.reading() as state:
                status = state.steps[path].status
            self.recorder.append(DocumentKept(encode_value({path: status}), "test"))

    shape.go("a>b", hook=Notes(), bad="b")
    lines = [line for line in shape.store.read(shape.run) if b"document_kept" in line]
    assert [b'"a#1":"completed"' in lines[0], b'"b#1":"failed"' in lines[1], len(lines)] == [True, True, 2]


def test_from_a_step_that_step_and_what_follows_are_made_again_with_their_tasks(store: MemoryStore) -> None:
    ran: list[str] = []

    def body(ctx: StepContext) -> Any:
        def item(_: StepContext, value: Any) -> Any:
            ran.append(f"{ctx.place.node.id}/{value}")
            return value

        return {"n": list(ctx.map("m", [1], item, key=str))}

    what = graph([("a", "b"), ("b", "c")], a=body, b=body, c=body)
    run = go(what, store).run_id
    assert go(what, store, run, from_step="b").status == "completed"
    # c runs again, but what its task was made from is the same.
    assert ran == ["a/1", "b/1", "c/1", "b/1"]
    with pytest.raises(ConfigError) as caught:
        go(what, store, run, from_step="z")
    assert caught.value.code == "unknown_step"


def test_refresh_makes_completed_steps_of_an_effect_class_again(store: MemoryStore) -> None:
    ran: list[str] = []

    def body(ctx: StepContext) -> Any:
        ran.append(ctx.place.node.id)
        return {"n": ctx.outputs["b"]["n"] if ctx.place.node.id == "d" else len(ran)}

    effects = {"a": "pure", "b": "read", "c": "external", "d": "pure"}
    what = Pipeline("fresh", [step(name, effect=effect)(body) for name, effect in effects.items()])
    run = go(what, store).run_id
    ran.clear()
    go(what, store, run, refresh=["read"])
    # c comes after b and read nothing of it.
    assert ran == ["b", "d"]


DONE = {"step": "a", "path": "a#1", "context": {"left": [1, 2]}, "outcome": "fail"}


def begin(store: Store, document: Mapping[str, Any] | None, view: HeadView | None = None) -> tuple[list[str], RunState]:
    """Begin a run of three nodes where a document of another system left it; what ran, and the run."""
    ran: list[str] = []

    def body(ctx: StepContext) -> Outcome:
        ran.append(f"{ctx.path} {ctx.attempt} {ctx.context.get('left')}")
        return Outcome({}, context={ctx.place.node.id: "done"})

    edges = [Edge("a", "b"), Edge("b", "c"), Edge("a", "c")]
    what = definition([Node(name) for name in "abc"], edges, dict.fromkeys("abc", body))
    result = go(what, store, setup={"view": view}, imported=document)
    assert result.status == "completed"
    return ran, load(store, result.run_id)


@pytest.mark.parametrize(
    ("document", "ran"),
    [
        ({"position": [["a->c", "a#1"]]}, ["c#1 1 [1, 2]"]),
        ({"next_step": "b"}, ["b#1 1 [1, 2]", "c#1 1 [1, 2]"]),
        ({"position": [["->c", "a#1"]]}, ["c#1 1 [1, 2]"]),
        ({"position": [["a->c", "a#1"]], "attempts": {"c#1": 3}}, ["c#1 3 [1, 2]"]),
        ({"completed_steps": [DONE, {"step": "c"}, {"step": "c", "path": "c#2"}], "position": [["->c", "a#1"]]},
         ["c#3 1 [1, 2]"]),
        ({"position": []}, []),
    ],
)  # fmt: skip
def test_run_begins_where_the_document_says(tmp_path: Path, document: dict[str, Any], ran: list[str]) -> None:
    store = FileStore(tmp_path, SystemClock())
    seen, state = begin(store, {"pipeline": "three", "status": "in_progress", "completed_steps": [DONE], **document})
    assert (seen, state.steps["a#1"].outcome, state.context["left"]) == (ran, "fail", [1, 2])
    # The document is durable with the first record.
    kinds = [line.split(b'"kind":"')[1].split(b'"')[0] for line in store.read(state.run_id)]
    assert kinds[:2] == [b"run_started", b"snapshot"]


def test_head_has_the_names_that_a_format_adds_at_every_checkpoint(tmp_path: Path) -> None:
    heads: list[list[str]] = []

    def shape(document: dict[str, Any], state: RunState) -> dict[str, Any]:
        heads.append([step.node for step in state.steps.values() if step.status == "completed"])
        return {**document, "completed_nodes": heads[-1]}

    store = FileStore(tmp_path, SystemClock())
    begin(store, None, HeadView(shape, each_checkpoint=True))
    (head,) = store.heads()
    # Both edges of `a` are taken, so `c` is visited twice.
    assert head.document["completed_nodes"] == ["a", "b", "c", "c"]
    assert {1, 2, 3, 4} <= {len(names) for names in heads}
