"""Checkpoint documents of every dialect: what they say, what is refused by name, and where a run goes on from one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.routing import Route, Settled
from pipeline.errors import CheckpointCorrupt, GraphError, InvalidValue, RunNotFound, StoreError
from pipeline.formats.attractor.documents import (
    Checkpoint,
    entry_document,
    load_checkpoint,
    save_checkpoint,
)
from pipeline.graph.model import Edge, Graph, Node
from pipeline.records.snapshots import document_shape
from pipeline.store.run_folder import RunFolder
from tests.journals import StillClock, small_run
from tests.stores import write

SIX: dict[str, Any] = {
    "timestamp": "2026-01-09T14:30:22Z",
    "current_node": "test",
    "completed_nodes": ["start", "plan", "test"],
    "node_retries": {"test": 1},
    "context": {"outcome": "fail", "graph.goal": "ship"},
    "logs": ["began"],
}
NINE: dict[str, Any] = {
    "run_id": "r-1",
    "pipeline_name": "Ship",
    "current_node": "test",
    "context": {"x": [1, {"y": None}]},
    "outcome": {"status": "FAILURE", "notes": "two tests fail"},
    "node_history": [["start", "SUCCESS"], {"node_id": "plan", "outcome": "PARTIAL"}, ["test", {"status": "failed"}]],
    "goal_gate_status": {"test": "pending"},
    "timestamp": "2026-01-09T14:30:22Z",
    "fidelity_state": {"mode": "full"},
}
THREE: dict[str, Any] = {"context": {"goal": "ship"}, "current_node_id": "fix", "completed_nodes": ["start", "test"]}


def put(folder: Path, document: Any, name: str = "checkpoint.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(
    "checkpoint",
    [
        Checkpoint({}, "", ()),
        Checkpoint({"goal": "ship"}, "b", ("a",)),
        Checkpoint({"outcome": "failed", "ü": "\ud800\0", "n": 2**70}, "b", ("a", "b", "a", "b")),
        Checkpoint({}, "b", ("a", "b"), (("a", "success"), ("b", "needs_dod")), "c", {"b": 2}, {"a": "satisfied"},
                   {"mode": "compact"}, ("a line",), "20260109_143022", "Ship"),
    ],
)  # fmt: skip
def test_saved_checkpoint_is_loaded_as_it_was(tmp_path: Path, checkpoint: Checkpoint) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "checkpoint.json").symlink_to(tmp_path / "other")
    save_checkpoint(tmp_path / "deep" / "checkpoint.json", checkpoint)
    assert load_checkpoint(tmp_path / "deep" / "checkpoint.json") == load_checkpoint(tmp_path / "deep") == checkpoint
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["checkpoint.json"]
    assert (tmp_path / "other").read_text() == "mine", "no link is followed"


def test_saved_checkpoint_is_one_of_every_dialect(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, Checkpoint({"goal": "ship"}, "b", ["a", "b"]))
    document = json.loads((tmp_path / "checkpoint.json").read_text())
    assert set(document) >= {*SIX, *NINE, *THREE}
    assert (document["current_node"], document["current_node_id"]) == ("b", "b")
    assert document["timestamp"].endswith("Z")


PAST = [("start", "success"), ("plan", "success"), ("test", "fail")]


@pytest.mark.parametrize(
    ("document", "visits", "said"),
    [
        (SIX, PAST, {"current_node_id": "test", "completed": True, "outcome": "fail", "node_retries": {"test": 1},
                     "logs": ("began",)}),
        (NINE, [PAST[0], ("plan", "partial_success"), PAST[2]],
         {"run_id": "r-1", "pipeline_name": "Ship", "completed_nodes": ("start", "plan", "test"), "outcome": "fail",
          "goal_gate_status": {"test": "pending"}, "fidelity_state": {"mode": "full"}}),
        ({**SIX, "outcome": "needs_dod", "context": {}}, [*PAST[:2], ("test", "needs_dod")], {}),
        (THREE, [("start", "success"), ("test", "success")], {"current_node_id": "fix", "completed": False}),
    ],
)  # fmt: skip
def test_every_dialect_is_read(
    tmp_path: Path, document: Any, visits: list[tuple[str, str]], said: dict[str, Any]
) -> None:
    found = load_checkpoint(put(tmp_path, document))
    assert found.visits() == visits
    assert {name: getattr(found, name) for name in said} == said


def test_execution_log_is_taken_up_at_its_last_step(tmp_path: Path) -> None:
    def step(node: str, outcome: str, following: str | None, context: dict[str, str]) -> dict[str, Any]:
        return {"step": 1, "node_id": node, "handler_type": "x", "context_before": {}, "outcome": {"status": outcome},
                "context_after": context, "next_node_id": following, "completed_nodes_after": []}  # fmt: skip

    log: dict[str, Any] = {
        "version": 1, "goal": "ship", "started_at": "2026-01-09T14:30:22Z", "finished_at": None,
        "final_status": "in_progress",
        "steps": [step("start", "Success", "test", {}), step("test", "Success", "exit", {"a": "1"})],
    }  # fmt: skip
    put(tmp_path, log, "execution.log.json")
    found = load_checkpoint(tmp_path)
    assert (found.current_node_id, found.next_node_id, dict(found.context)) == ("test", "exit", {"a": "1"})
    assert found.completed_nodes == ("start", "test")
    log["steps"][1] |= {"outcome": {"status": "Error"}, "next_node_id": None}
    found = load_checkpoint(put(tmp_path, {**log, "final_status": "error"}, "execution.log.json"))
    assert (found.current_node_id, found.completed, found.completed_nodes) == ("test", False, ("start",))
    with pytest.raises(CheckpointCorrupt, match="version 2"):
        load_checkpoint(put(tmp_path, {**log, "version": 2}, "execution.log.json"))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"context": {}, "current_node_id": "a"', "not a JSON object"),
        ("[]", "not a JSON object"),
        ("", "not a JSON object"),
        ({"context": {}}, "neither current_node nor current_node_id"),
        ({"current_node_id": "a"}, "context is missing"),
        ({"context": [], "current_node_id": "a"}, "context is not an object"),
        ({"context": {}, "current_node_id": 3}, "current_node_id is not text"),
        ({"context": {}, "current_node_id": "a", "completed_nodes": "a"}, "completed_nodes is not a list"),
        ({"context": {}, "current_node_id": "a", "completed_nodes": [1]}, "completed_nodes is not a list of node ids"),
        ({"context": {}, "current_node": "a", "node_history": [["a"]]}, "not a pair of node and outcome"),
        ({"context": {}, "current_node": "a", "node_history": [[1, "x"]]}, "names no node"),
        ({"context": {}, "current_node": "a", "node_retries": {"a": "1"}}, "not a count"),
        ('{"context": {"x": NaN}, "current_node_id": "a"}', "JSON has no such number"),
    ],
)
def test_what_is_no_checkpoint_is_refused_by_name(tmp_path: Path, document: Any, said: str) -> None:
    path = put(tmp_path, document)
    with pytest.raises(CheckpointCorrupt, match=said) as caught:
        load_checkpoint(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("name", ["", "nothing", "deep/checkpoint.json"])
def test_missing_checkpoint_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunNotFound):
        load_checkpoint(tmp_path / name)


def test_value_that_is_no_json_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, Checkpoint({"a": 1}, "b"))
    with pytest.raises(InvalidValue, match=r"context\.a"):
        save_checkpoint(tmp_path, Checkpoint({"a": b"bytes"}, "b"))
    assert load_checkpoint(tmp_path).context == {"a": 1}


def test_checkpoint_of_a_run_is_not_written_over_and_its_flipped_bit_is_damage(tmp_path: Path) -> None:
    write(RunFolder(tmp_path / "run", StillClock()), small_run())
    with pytest.raises(StoreError) as refused:
        save_checkpoint(tmp_path / "run", Checkpoint({}, "a"))
    assert refused.value.code == "folder_holds_run"
    path = tmp_path / "run" / "checkpoint.json"
    path.write_bytes(path.read_bytes().replace(b"completed", b"complexed", 1))
    with pytest.raises(CheckpointCorrupt, match="damaged or edited"):
        load_checkpoint(path)


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


@pytest.mark.parametrize(
    "checkpoint",
    [Checkpoint({}, "nowhere"), Checkpoint({}, "test", ("start", "nowhere")),
     Checkpoint({}, "test", DONE, next_node_id="nowhere")],
)  # fmt: skip
def test_checkpoint_of_another_graph_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(GraphError) as caught:
        entry_document(checkpoint, GRAPH)
    assert (caught.value.code, caught.value.data["nodes"]) == ("unknown_node", ["nowhere"])
