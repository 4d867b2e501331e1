"""Where a checkpoint of another system goes on."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.engine.routing import Route, Settled
from pipeline.errors import GraphError
from pipeline.formats.attractor.documents import Checkpoint, entry_document
from pipeline.graph.model import Edge, Graph, Node
from pipeline.records.snapshots import document_shape

GRAPH = Graph.of(
    [Node(name) for name in ("start", "write", "test", "fix", "exit")],
    [Edge("start", "write"), Edge("write", "test"), Edge("test", "exit"), Edge("test", "fix", "fail"),
     Edge("fix", "test")],
    "start",
)  # fmt: skip


def position(checkpoint: Checkpoint, *, rerun: bool = False, router: Any = None) -> list[list[str]]:
    document = entry_document(checkpoint, GRAPH, router, rerun_current=rerun)
    assert document_shape(document) == ""
    found: list[list[str]] = document["position"]
    return found


DONE = ("start", "write", "test")


@pytest.mark.parametrize(
    ("checkpoint", "tokens"),
    [
        # Completed: its successor, chosen again from the stored outcome.
        (Checkpoint({}, "test", DONE), [["test->exit", "test#1"]]),
        (Checkpoint({"outcome": "fail"}, "test", DONE), [["test->fix", "test#1"]]),
        (Checkpoint({}, "test", DONE, (("start", "success"), ("write", "success"), ("test", "fail"))),
         [["test->fix", "test#1"]]),
        (Checkpoint({}, "test", (*DONE, "fix", "test")), [["test->exit", "test#2"]]),
        # An edge that was chosen is taken.
        (Checkpoint({}, "test", DONE, next_node_id="fix"), [["test->fix", "test#1"]]),
        (Checkpoint({}, "test", DONE, next_node_id="write"), [["test->write", "test#1"]]),
        # Not completed: itself.
        (Checkpoint({}, "test", ("start", "write")), [["write->test", "write#1"]]),
        (Checkpoint({}, "fix", ("start",)), [["start->fix", "start#1"]]),
        (Checkpoint({}, "fix"), [["start->fix", "start#1"]]),
        # A failure that nothing accepts is made again.
        (Checkpoint({"outcome": "fail"}, "write", ("start", "write")), [["write->write", "write#1"]]),
        # At the exit nothing is left.
        (Checkpoint({}, "exit", (*DONE, "exit")), []),
        # Nothing has run.
        (Checkpoint({}), [["", ""]]),
        (Checkpoint({}, "start"), [["", ""]]),
        (Checkpoint({"x": 1}, ""), [["start->write", "start#1"]]),
    ],
)  # fmt: skip
def test_run_goes_on_where_the_checkpoint_stands(checkpoint: Checkpoint, tokens: list[list[str]]) -> None:
    assert position(checkpoint) == tokens


@pytest.mark.parametrize(
    ("checkpoint", "tokens"),
    [
        (Checkpoint({}, "test", DONE), [["test->test", "test#1"]]),
        (Checkpoint({}, "fix", DONE), [["test->fix", "test#1"]]),
        (Checkpoint({}, "exit", (*DONE, "exit")), [["exit->exit", "exit#1"]]),
    ],
)
def test_current_node_runs_again_where_that_is_asked_for(checkpoint: Checkpoint, tokens: list[list[str]]) -> None:
    assert position(checkpoint, rerun=True) == tokens


def test_router_sees_the_stored_outcome_and_context() -> None:
    seen: list[Settled] = []

    def router(settled: Settled) -> Route:
        seen.append(settled)
        return Route(["test->fix"])

    checkpoint = Checkpoint({"a": 1, "preferred_label": "Fix"}, "test", DONE, (("start", "success"), ("test", "port")))
    assert position(checkpoint, router=router) == [["test->fix", "test#1"]]
    (settled,) = seen
    assert (settled.path, settled.outcome, settled.failed) == ("test#1", "port", False)
    assert (settled.seen["a"], settled.hints) == (1, {"preferred_label": "Fix"})


def test_document_holds_what_was_done_and_known() -> None:
    checkpoint = Checkpoint({"x": [1]}, "fix", (*DONE, "fix", "test"), node_retries={"fix": 2, "write": 0})
    document = entry_document(checkpoint, GRAPH, pipeline="Ship", base={"graph.goal": "ship", "x": 0})
    assert [step["path"] for step in document["completed_steps"]] == [
        "start#1", "write#1", "test#1", "fix#1", "test#2",
    ]  # fmt: skip
    assert document["completed_steps"][-1]["context"] == {"graph.goal": "ship", "x": [1]}
    assert (document["pipeline"], document["attempts"]) == ("Ship", {"fix#2": 3})


def test_node_to_begin_with_takes_what_is_before_it_as_done() -> None:
    document = entry_document(Checkpoint({}, "test"), GRAPH, base={"graph.goal": "ship"}, rerun_current=True)
    assert document["position"] == [["start->test", "start#1"]]
    assert document["completed_steps"][0]["context"] == {"graph.goal": "ship"}


@pytest.mark.parametrize(
    "checkpoint",
    [Checkpoint({}, "nowhere"), Checkpoint({}, "test", ("start", "nowhere")),
     Checkpoint({}, "test", DONE, next_node_id="nowhere")],
)  # fmt: skip
def test_checkpoint_of_another_graph_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(GraphError) as caught:
        entry_document(checkpoint, GRAPH)
    assert (caught.value.code, caught.value.data["nodes"]) == ("unknown_node", ["nowhere"])
