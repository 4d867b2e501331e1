"""Checkpoint documents of every dialect: what they say, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import CheckpointCorrupt, InvalidValue, RunNotFound, StoreError
from pipeline.formats.attractor.documents import Checkpoint, load_checkpoint, outcome_word, save_checkpoint
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
    save_checkpoint(tmp_path / "deep" / "checkpoint.json", checkpoint)
    assert load_checkpoint(tmp_path / "deep" / "checkpoint.json") == checkpoint
    assert load_checkpoint(tmp_path / "deep") == checkpoint
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["checkpoint.json"]


def test_saved_checkpoint_is_one_of_every_dialect(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, Checkpoint({"goal": "ship"}, "b", ["a", "b"]))
    document = json.loads((tmp_path / "checkpoint.json").read_text())
    assert set(document) >= {*SIX, *NINE, *THREE}
    assert (document["current_node"], document["current_node_id"]) == ("b", "b")
    assert document["timestamp"].endswith("Z")


def test_six_fields_of_the_specification(tmp_path: Path) -> None:
    found = load_checkpoint(put(tmp_path, SIX))
    assert (found.current_node_id, found.completed, found.outcome) == ("test", True, "fail")
    assert found.visits() == [("start", "success"), ("plan", "success"), ("test", "fail")]
    assert (found.node_retries, found.logs, found.context["graph.goal"]) == ({"test": 1}, ("began",), "ship")


def test_nine_fields_of_the_paraphrase(tmp_path: Path) -> None:
    found = load_checkpoint(put(tmp_path, NINE))
    assert (found.run_id, found.pipeline_name, found.completed_nodes) == ("r-1", "Ship", ("start", "plan", "test"))
    assert found.visits() == [("start", "success"), ("plan", "partial_success"), ("test", "fail")]
    assert (found.outcome, found.goal_gate_status, found.fidelity_state) == (
        "fail", {"test": "pending"}, {"mode": "full"},
    )  # fmt: skip


def test_outcome_of_a_document_without_history(tmp_path: Path) -> None:
    found = load_checkpoint(put(tmp_path, {**SIX, "outcome": "needs_dod", "context": {}}))
    assert found.visits() == [("start", "success"), ("plan", "success"), ("test", "needs_dod")]


def test_three_fields_of_run_dot(tmp_path: Path) -> None:
    found = load_checkpoint(put(tmp_path, THREE))
    assert (found.current_node_id, found.completed, found.completed_nodes) == ("fix", False, ("start", "test"))


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


def test_checkpoint_of_a_run_is_not_written_over(tmp_path: Path) -> None:
    write(RunFolder(tmp_path / "run", StillClock()), small_run())
    with pytest.raises(StoreError) as caught:
        save_checkpoint(tmp_path / "run", Checkpoint({}, "a"))
    assert caught.value.code == "folder_holds_run"


def test_flipped_bit_of_a_sealed_checkpoint_is_damage(tmp_path: Path) -> None:
    write(RunFolder(tmp_path / "run", StillClock()), small_run())
    path = tmp_path / "run" / "checkpoint.json"
    path.write_bytes(path.read_bytes().replace(b"completed", b"complexed", 1))
    with pytest.raises(CheckpointCorrupt, match="damaged or edited"):
        load_checkpoint(path)


def test_link_laid_in_the_way_of_a_save_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "checkpoint.json").symlink_to(tmp_path / "other")
    save_checkpoint(tmp_path / "checkpoint.json", Checkpoint({}, "a"))
    assert (tmp_path / "other").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "word"),
    [("FAILURE", "fail"), ("Failed", "fail"), ("succeeded", "success"), ("PARTIAL", "partial_success"),
     ("SUCCESS", "success"), ("needs_DoD", "needs_DoD"), (" retry ", "retry")],
)  # fmt: skip
def test_outcome_words_have_one_spelling(text: str, word: str) -> None:
    assert outcome_word(text) == word
