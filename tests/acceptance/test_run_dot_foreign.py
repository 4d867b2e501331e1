"""Checkpoints that other systems wrote go on here; and their spellings of options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.dots import SHIP, put, read
from tests.said import Cli

SIX: dict[str, Any] = {
    "timestamp": "2026-01-09T14:30:22Z", "current_node": "plan", "completed_nodes": ["start", "plan"],
    "node_retries": {}, "context": {"outcome": "success", "reader": "Ann"}, "logs": [],
}  # fmt: skip
NINE: dict[str, Any] = {
    "run_id": "r-1", "pipeline_name": "Ship", "current_node": "plan", "context": {"reader": "Ann"},
    "outcome": {"status": "SUCCESS"}, "node_history": [["start", "SUCCESS"], ["plan", "SUCCESS"]],
    "goal_gate_status": {}, "timestamp": "2026-01-09T14:30:22Z", "fidelity_state": {"mode": "full"},
}  # fmt: skip
THREE: dict[str, Any] = {"context": {"reader": "Ann"}, "current_node_id": "write", "completed_nodes": ["start", "plan"]}
LOG: dict[str, Any] = {
    "version": 1, "goal": "ship it", "started_at": "2026-01-09T14:30:22Z", "finished_at": None,
    "final_status": "in_progress", "completed_nodes": ["start", "plan"],
    "steps": [
        {"step": 1, "node_id": "start", "handler_type": "start", "context_before": {}, "outcome": {"status": "Success"},
         "context_after": {}, "next_node_id": "plan", "completed_nodes_after": ["start"]},
        {"step": 2, "node_id": "plan", "handler_type": "codergen", "context_before": {},
         "outcome": {"status": "Success"}, "context_after": {"reader": "Ann"}, "next_node_id": "write",
         "completed_nodes_after": ["start", "plan"]},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ".attractor_run"
    made.mkdir()
    return made


def lay(folder: Path, document: Any, name: str = "checkpoint.json") -> None:
    (folder / name).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("document", "name"),
    [(SIX, "checkpoint.json"), (NINE, "checkpoint.json"), (THREE, "checkpoint.json"), (LOG, "execution.log.json")],
    ids=["six", "nine", "three", "log"],
)
def test_foreign_checkpoint_goes_on_in_its_folder(
    cli: Cli, tmp_path: Path, folder: Path, document: Any, name: str
) -> None:
    lay(folder, document, name)
    said = cli("run_dot", put(tmp_path, SHIP), "--resume", str(folder), "--simulate")
    assert said.code == 0, said.err
    assert "Step 3/4: WRITE" in said.out
    assert "Step 2/4" not in said.out
    assert (folder / "write" / "prompt.md").read_text() == "Write it for Ann"
    found = read(folder / "checkpoint.json")
    assert found["completed_nodes"] == ["start", "plan", "write", "exit"]
    assert found["context"]["reader"] == "Ann"
    assert found["context"]["graph.goal"] == "ship it"
    if name == "checkpoint.json":
        assert read(folder / "checkpoint.imported.json") == document
    again = cli("run_dot", put(tmp_path, SHIP), "--resume", str(folder))
    assert "already completed" in again.out


def test_current_node_runs_again_in_the_literal_reading(cli: Cli, tmp_path: Path, folder: Path) -> None:
    lay(folder, {**THREE, "current_node_id": "plan"})
    said = cli("run", put(tmp_path, SHIP), "--resume", str(folder), "--simulate", "--rerun-current")
    assert said.code == 0, said.err
    assert read(folder / "checkpoint.json")["completed_nodes"] == ["start", "plan", "plan", "write", "exit"]
    assert (folder / "plan" / "visit_2" / "prompt.md").exists()


def test_finished_foreign_run_is_left_as_it_is(cli: Cli, tmp_path: Path, folder: Path) -> None:
    lay(folder, {**SIX, "current_node": "exit", "completed_nodes": ["start", "plan", "write", "exit"]})
    said = cli("run", put(tmp_path, SHIP), "--resume", str(folder), "--simulate")
    assert said.code == 0, said.err
    assert "Step" not in said.out
    assert "Completed nodes: start, plan, write, exit" in said.out


def test_foreign_checkpoint_into_another_folder_leaves_the_first_alone(cli: Cli, tmp_path: Path, folder: Path) -> None:
    lay(folder, SIX)
    target = tmp_path / "mine"
    said = cli("run", put(tmp_path, SHIP), "--resume", str(folder), "--run-dir", str(target), "--simulate")
    assert said.code == 0, said.err
    assert [path.name for path in folder.iterdir()] == ["checkpoint.json"]
    assert read(target / "checkpoint.json")["status"] == "completed"


def test_foreign_checkpoint_by_its_file_goes_on_in_the_store(cli: Cli, tmp_path: Path, folder: Path) -> None:
    lay(folder, SIX)
    said = cli("run", put(tmp_path, SHIP), "--resume", str(folder / "checkpoint.json"), "--simulate")
    assert said.code == 0, said.err
    assert len(cli("list", "--json").json()) == 1


@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        ({"context": {}}, 3, "neither current_node nor current_node_id"),
        ({**SIX, "current_node": "nowhere"}, 2, "nowhere"),
        ({**SIX, "context": None}, 3, "context"),
    ],
)
def test_checkpoint_that_does_not_fit_is_refused(
    cli: Cli, tmp_path: Path, folder: Path, document: Any, code: int, said: str
) -> None:
    lay(folder, document)
    answer = cli("run", put(tmp_path, SHIP), "--resume", str(folder), "--simulate")
    assert answer.code == code
    assert said in answer.err
    assert read(folder / "checkpoint.json") == document


def test_checkpoint_alone_needs_its_graph(cli: Cli, folder: Path) -> None:
    lay(folder, SIX)
    said = cli("run", "--resume", str(folder), "--simulate")
    assert said.code == 2
    assert "run FILE.dot" in said.err


def test_foreign_checkpoint_is_not_written_over_by_a_new_run(cli: Cli, tmp_path: Path, folder: Path) -> None:
    lay(folder, SIX)
    said = cli("run", put(tmp_path, SHIP), "--run-dir", str(folder), "--simulate")
    assert said.code == 3
    assert f"--resume {folder}" in said.err
    assert read(folder / "checkpoint.json") == SIX


def test_empty_folder_holds_nothing_to_go_on_with(cli: Cli, tmp_path: Path, folder: Path) -> None:
    said = cli("run", put(tmp_path, SHIP), "--resume", str(folder), "--simulate")
    assert said.code == 3
    assert "no checkpoint" in said.err


# --- spellings ------------------------------------------------------------------------------------


def test_execution_log_is_written_where_it_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    path, log = put(tmp_path, SHIP), tmp_path / "x" / "execution.log.json"
    assert cli("run_dot", path, "--simulate", "--execution-log", str(log)).code == 0
    document = read(log)
    assert (document["version"], document["goal"], document["final_status"]) == (1, "ship it", "success")
    assert document["completed_nodes"] == ["start", "plan", "write", "exit"]
    assert [(step["node_id"], step["next_node_id"]) for step in document["steps"]] == [
        ("start", "plan"), ("plan", "write"), ("write", "exit"), ("exit", None),
    ]  # fmt: skip
    assert all(isinstance(value, str) for value in document["steps"][-1]["context_after"].values())


def test_agent_command_needs_the_permission(cli: Cli, tmp_path: Path) -> None:
    said = cli("run_dot", put(tmp_path, SHIP), "--agent-cmd", "cat")
    assert said.code == 2
    assert "cat" in said.err
    assert "--allow-tools" in said.err
    assert cli("list", "--json").out == ""


def test_variables_of_run_dot_count(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTRACTOR_AGENT_CMD", "cat")
    monkeypatch.setenv("ATTRACTOR_EXECUTION_LOG", "true")
    assert cli("run_dot", put(tmp_path, SHIP)).code == 2
    said = cli("run_dot", put(tmp_path, SHIP), "--allow-tools")
    assert said.code == 0, said.err
    assert read(tmp_path / "execution.log.json")["final_status"] == "success"


def test_agent_command_answers_prompts(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli("run_dot", put(tmp_path, SHIP), "--agent-cmd", "tr a-z A-Z", "--allow-tools", "--run-dir", "r",
               "--param", "reader=Ann")  # fmt: skip
    assert said.code == 0, said.err
    assert (tmp_path / "r" / "write" / "response.md").read_text() == "WRITE IT FOR ANN"


def test_agent_leaves_its_outcome_in_the_folder_it_knows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SHIP.replace("start -> plan -> write -> exit", 'start -> plan\n  plan -> write [condition="outcome=port"]\n'
                        '  plan -> exit [condition="outcome!=port"]\n  write -> exit')  # fmt: skip
    outcome = '{"outcome": "port", "context_updates": {"x": "1"}}'
    agent = f"if grep -q Plan; then echo '{outcome}' > .attractor/outcome.json; fi"
    said = cli("run_dot", put(tmp_path, text), "--agent-cmd", agent, "--allow-tools", "--run-dir", "r")
    assert said.code == 0, said.err
    document = read(tmp_path / "r" / "checkpoint.json")
    assert document["completed_nodes"] == ["start", "plan", "write", "exit"]
    assert document["context"]["x"] == "1"


def test_failing_agent_fails_its_node(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli("run_dot", put(tmp_path, SHIP), "--agent-cmd", "echo broken >&2; exit 3", "--allow-tools")
    assert said.code == 6
    assert "exit code 3: broken" in said.err
