"""A run that goes on in a graph that lost or moved edges, and who is told at its boundaries."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import Recorder, StepEndHook
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepContext, StepSpec
from pipeline.errors import SettingsConflict
from pipeline.graph.model import Edge, Graph, Node
from pipeline.records.kinds import DocumentKept
from pipeline.records.run import RunState
from pipeline.records.values import encode_value
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock


class Shape:
    """Nodes that wait for all their edges; those named in `bad` fail."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.ran: list[str] = []
        self.bad: set[str] = set()
        self.run = ""

    def go(self, *edges: str, hook: StepEndHook | None = None, **wish: Any) -> RunResult:
        pairs = [edge.split(">") for edge in edges]
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        graph = Graph.of([Node(name, "all") for name in names], [Edge(pair[0], pair[1]) for pair in pairs], names[0])
        steps = {name: StepSpec(name, self._body) for name in names}
        clock = FakeClock()
        setup = Setup(self.store, clock, Emitter(clock), {"concurrency": 1}, hook=hook)
        engine = Engine(Definition("shape", graph, steps), setup)
        result = engine.resume(self.run, **wish) if self.run else engine.start({}, identity={}, pins={})
        self.run = result.run_id
        return result

    def state(self) -> RunState:
        return load(self.store, self.run)

    def _body(self, ctx: StepContext) -> dict[str, Any]:
        self.ran.append(ctx.place.node.id)
        if ctx.place.node.id in self.bad:
            raise ValueError("bad")
        return {"from": sorted(arrival.node for arrival in ctx.place.arrivals)}


@pytest.fixture
def shape(store: MemoryStore) -> Shape:
    return Shape(store)


def test_a_step_that_is_gone_keeps_nothing_waiting(shape: Shape) -> None:
    shape.bad = {"b"}
    assert shape.go("a>b", "a>c", "b>d", "c>d").status == "failed"
    shape.bad, shape.ran = set(), []
    with pytest.raises(SettingsConflict, match="step b is gone"):
        shape.go("a>c", "c>d")
    result = shape.go("a>c", "c>d", accept=lambda stale: not stale.steps)
    assert (result.status, shape.ran, result.outputs["d"]) == ("completed", ["d"], {"from": ["c"]})
    assert shape.state().waiting == {}


def test_a_completed_step_that_is_gone_stays_in_the_records_and_is_not_missed(shape: Shape) -> None:
    shape.bad = {"c"}
    shape.go("a>b", "a>c", "b>d", "c>d")
    shape.bad, shape.ran = set(), []
    result = shape.go("a>c", "c>d", accept=lambda stale: True)
    assert (result.status, shape.ran) == ("completed", ["c", "d"])
    assert shape.state().steps["b#1"].status == "completed"


def test_a_failed_step_waits_for_what_it_needs_now(shape: Shape) -> None:
    shape.bad = {"c"}
    shape.go("a>b", "a>c", "b>e")
    shape.bad, shape.ran = set(), []
    result = shape.go("a>b", "b>n", "n>c", "b>e", accept=lambda stale: True)
    assert (result.status, shape.ran, result.outputs["c"]) == ("completed", ["n", "c"], {"from": ["n"]})


def test_steps_asked_for_by_path_are_made_again_with_what_followed(shape: Shape) -> None:
    shape.go("a>b", "b>c", "a>d")
    shape.ran = []
    assert shape.go("a>b", "b>c", "a>d", again=["b#1"]).status == "completed"
    assert shape.ran == ["b", "c"]


def test_a_boundary_is_told_once_it_is_recorded_and_may_record_more(shape: Shape) -> None:
    class Notes:
        def begun(self, recorder: Recorder) -> None:
            self.recorder = recorder

        def ended(self, path: str) -> None:
            with self.recorder.reading() as state:
                status = state.steps[path].status
            self.recorder.append(DocumentKept(encode_value({path: status}), "test"))

    shape.bad = {"b"}
    shape.go("a>b", hook=Notes())
    lines = [line for line in shape.store.read(shape.run) if b"document_kept" in line]
    assert [b'"a#1":"completed"' in lines[0], b'"b#1":"failed"' in lines[1], len(lines)] == [True, True, 2]
    assert shape.go("a>b").status == "failed"
