"""A run that begins in the middle of its graph, where a document of another system left it; heads with more names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import HeadView
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.graph.model import Edge, Graph, Node
from pipeline.records.run import RunState
from pipeline.records.snapshots import document_shape
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock

DONE = {"step": "a", "path": "a#1", "context": {"left": [1, 2]}, "outcome": "fail"}


def three(ran: list[str]) -> Definition:
    def body(ctx: StepContext) -> Outcome:
        ran.append(f"{ctx.path} {ctx.attempt} {ctx.context.get('left')}")
        return Outcome({}, context={ctx.place.node.id: "done"})

    nodes, edges = [Node(name) for name in "abc"], [Edge("a", "b"), Edge("b", "c"), Edge("a", "c")]
    return Definition("three", Graph.of(nodes, edges, "a"), {name: StepSpec(name, body) for name in "abc"})


def begin(what: Definition, store: Store, document: Mapping[str, Any] | None, view: HeadView | None = None) -> RunState:
    clock = FakeClock()
    setup = Setup(store, clock, Emitter(clock), {}, view=view)
    result = Engine(what, setup).start({}, identity={}, pins={}, imported=document)
    assert result.status == "completed"
    return load(store, result.run_id)


@pytest.mark.parametrize(
    ("document", "ran"),
    [
        ({"completed_steps": [DONE], "position": [["a->c", "a#1"]]}, ["c#1 1 [1, 2]"]),
        ({"completed_steps": [DONE], "next_step": "b"}, ["b#1 1 [1, 2]", "c#1 1 [1, 2]"]),
        ({"completed_steps": [DONE], "position": [["->c", "a#1"]]}, ["c#1 1 [1, 2]"]),
        ({"completed_steps": [DONE], "position": [["a->c", "a#1"]], "attempts": {"c#1": 3}}, ["c#1 3 [1, 2]"]),
        ({"completed_steps": [DONE, {"step": "c"}, {"step": "c", "path": "c#2"}], "position": [["->c", "a#1"]]},
         ["c#3 1 [1, 2]"]),
        ({"completed_steps": [DONE], "position": []}, []),
    ],
)  # fmt: skip
def test_run_begins_where_the_document_says(store: MemoryStore, document: dict[str, Any], ran: list[str]) -> None:
    seen: list[str] = []
    state = begin(three(seen), store, {"pipeline": "three", "status": "in_progress", **document})
    assert seen == ran
    assert state.steps["a#1"].outcome == "fail"
    assert state.context["left"] == [1, 2]


def test_document_is_durable_with_the_first_record(tmp_path: Path) -> None:
    store = FileStore(tmp_path, SystemClock())
    document = {"pipeline": "three", "completed_steps": [DONE], "position": []}
    state = begin(three([]), store, document)
    kinds = [line.split(b'"kind":"')[1].split(b'"')[0] for line in store.read(state.run_id)]
    assert kinds == [b"run_started", b"snapshot", b"run_ended"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"position": {}}, "position"),
        ({"position": [["a"]]}, "position"),
        ({"position": [["a", 1]]}, "position"),
        ({"attempts": {"a#1": 0}}, "attempts"),
        ({"attempts": {"a#1": "2"}}, "attempts"),
    ],
)
def test_senseless_position_is_no_state(part: dict[str, Any], said: str) -> None:
    assert said in document_shape({"status": "failed", **part})


def test_head_has_the_names_that_a_format_adds_at_every_checkpoint(tmp_path: Path) -> None:
    heads: list[list[str]] = []

    def shape(document: dict[str, Any], state: RunState) -> dict[str, Any]:
        heads.append([step.node for step in state.steps.values() if step.status == "completed"])
        return {**document, "completed_nodes": heads[-1]}

    store = FileStore(tmp_path, SystemClock())
    begin(three([]), store, None, HeadView(shape, each_checkpoint=True))
    (head,) = store.heads()
    # Both edges of `a` are taken, so `c` is visited twice.
    assert head.document["completed_nodes"] == ["a", "b", "c", "c"]
    assert {1, 2, 3, 4} <= {len(names) for names in heads}
