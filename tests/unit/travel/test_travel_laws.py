"""Laws of time travel over random small graphs: forks at any point end as their parents, every run replays equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, StepSpec, step
from pipeline.records.run import RunState
from pipeline.records.values import value_hash
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from pipeline.travel.fork import fork_run
from pipeline.travel.points import points_in, state_in
from pipeline.travel.replay import replay
from tests.unit.engine.test_engine_laws import Bench, Shape, calls, shapes, view


def _asked_before(bench: Bench, run: str, seq: int) -> int:
    """Replies that a fork at this point inherits: those of finished work, and of work that can still use them."""
    state = state_in(run, records(bench.store, run), seq)
    return state.total.calls - len(state.open_calls) - _wasted(state)


def _wasted(state: RunState) -> int:
    return sum(spend.calls for key, spend in state.spend.items() if key.outcome == "wasted")


@settings(max_examples=20)
@given(shape=shapes(), at=st.floats(0, 1), broken=st.booleans())
def test_a_fork_at_any_record_ends_as_its_parent_and_pays_only_for_the_rest(
    shape: Shape, at: float, broken: bool
) -> None:
    bench = Bench(shape, broken=broken)
    run, _ = bench.finish(None)
    found = list(records(bench.store, run))
    before = [bytes(line) for line in bench.store.read(run)]
    known = points_in(run, found)
    seq = round(known.start + at * (known.end - known.start))
    child = fork_run(bench.store, run, at=seq, clock=FakeClock())
    assert load(bench.store, child).total.calls == 0
    _, result = bench.finish(child)
    assert view(load(bench.store, child)) == view(load(bench.store, run))
    assert result.spent.calls == calls(bench.store, child)[0]
    useful = bench.model.calls - calls(bench.store, run)[1]
    assert useful == _asked_in_all(bench, run) - _asked_before(bench, run, seq)
    assert [bytes(line) for line in bench.store.read(run)] == before


def _asked_in_all(bench: Bench, run: str) -> int:
    state = load(bench.store, run)
    return state.total.calls - _wasted(state)


@settings(max_examples=20)
@given(shape=shapes(), deaths=st.lists(st.integers(1, 40), max_size=2), broken=st.booleans(), at=st.floats(0, 1))
def test_every_run_replays_equal_up_to_any_record(shape: Shape, deaths: list[int], broken: bool, at: float) -> None:
    bench = Bench(shape, broken=broken)
    for lives in deaths:
        bench.go(bench.run_id(), lives)
    run, _ = bench.finish(bench.run_id())
    asked = bench.model.calls
    bench.broken = set()
    end = load(bench.store, run).seq
    for to in (end, max(1, round(at * end))):
        found = replay(bench.store, run, bench.pipeline.definition, to=to)
        # What failed because the world was broken comes out otherwise in a world that is not.
        failed = state_in(run, records(bench.store, run), to).failed_paths
        assert {each.key for each in found.differences} <= ({"error"} if failed else set())
    assert bench.model.calls == asked


@dataclass(frozen=True)
class Reading:
    """A graph whose nodes read parameters, outputs and context keys of nodes before them, and digest what they read."""

    edges: Sequence[tuple[str, str]]
    joins: dict[str, str]
    #: Node → names as ctx knows them: ("params", "p"), ("outputs", "n0"), ("context", "n0").
    reads: dict[str, tuple[tuple[str, str], ...]]


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    """Single steps and diamonds in a row; every node reads some of what can have been already made it."""
    nodes, joins = ["n0"], {}
    edges: list[tuple[str, str]] = []
    before: dict[str, list[str]] = {"n0": []}

    def new(*sources: str) -> str:
        name = f"n{len(nodes)}"
        nodes.append(name)
        before[name] = sorted({*sources, *(old for source in sources for old in before[source])})
        edges.extend((source, name) for source in sources)
        return name

    last = "n0"
    for kind in draw(st.lists(st.sampled_from(["step", "diamond"]), min_size=1, max_size=3)):
        if kind == "step":
            last = new(last)
        else:
            last = new(new(last), new(last))
            joins[last] = "all"
    reads = {}
    for name in nodes:
        can = [("params", "p"), ("params", "q")]
        can += [(kind, old) for old in before[name] for kind in ("outputs", "context")]
        reads[name] = tuple(draw(st.lists(st.sampled_from(can), unique=True, max_size=3)))
    return Reading(edges, joins, reads)


def _pipeline(shape: Reading, ran: list[str]) -> Pipeline:
    def node(name: str) -> StepSpec:
        def body(ctx: StepContext) -> Outcome:
            ran.append(name)
            seen: list[Any] = []
            for kind, key in shape.reads[name]:
                seen.append(ctx.outputs[key]["made"] if kind == "outputs" else getattr(ctx, kind)[key])
            made = value_hash([name, seen])
            return Outcome({"made": made}, context={name: made})

        return step(name)(body)

    return Pipeline("reading", [node(name) for name in shape.reads], edges=shape.edges, joins=shape.joins)


def _touched(shape: Reading, first: set[tuple[str, str]]) -> set[str]:
    """Nodes that read one of these, or what such a node made."""
    touched: set[str] = set()
    for name, reads in shape.reads.items():
        if any(read in first or read[1] in touched for read in reads):
            touched.add(name)
    return touched


@settings(max_examples=30)
@given(shape=readings(), key=st.sampled_from(["p", "q"]))
def test_a_changed_parameter_makes_exactly_its_dependents_again(shape: Reading, key: str) -> None:
    ran: list[str] = []
    pipeline, store, clock = _pipeline(shape, ran), MemoryStore(FakeClock()), FakeClock()
    run = pipeline.run({"p": 1, "q": 1}, store=store, clock=clock).run_id
    fresh = pipeline.run({"p": 1, "q": 1} | {key: 2}, store=store, clock=clock)
    child = fork_run(store, run, changes={f"params.{key}": 2}, clock=clock)
    ran.clear()
    result = pipeline.resume(child, store=store, clock=clock)
    assert result.outputs == fresh.outputs
    assert sorted(ran) == sorted(_touched(shape, {("params", key)}))
    assert load(store, child).context == load(store, fresh.run_id).context
    assert replay(store, child, pipeline.definition).differences == ()


@settings(max_examples=30)
@given(shape=readings(), data=st.data())
def test_a_changed_result_makes_exactly_its_readers_again(shape: Reading, data: st.DataObject) -> None:
    ran: list[str] = []
    pipeline, store, clock = _pipeline(shape, ran), MemoryStore(FakeClock()), FakeClock()
    run = pipeline.run({"p": 1, "q": 1}, store=store, clock=clock).run_id
    name = data.draw(st.sampled_from(sorted(shape.reads)))
    kind = data.draw(st.sampled_from(["outputs", "context"]))
    changes = {f"outputs.{name}.made": "other"} if kind == "outputs" else {name: "other"}
    child = fork_run(store, run, changes=changes, clock=clock)
    ran.clear()
    pipeline.resume(child, store=store, clock=clock)
    assert sorted(ran) == sorted(_touched(shape, {(kind, name)}) - {name})
