"""Checkpoints that other systems wrote go on here; run_dot's spellings of options; agents that are commands."""

from __future__ import annotations

import json
import os
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
    target = tmp_path / "mine"
    more = ("--rerun-current", "--run-dir", str(target))
    said = cli("run", put(tmp_path, SHIP), "--resume", str(folder), "--simulate", *more)
    assert said.code == 0, said.err
    assert read(target / "checkpoint.json")["completed_nodes"] == ["start", "plan", "plan", "write", "exit"]
    assert (target / "plan" / "visit_2" / "prompt.md").exists()
    assert [path.name for path in folder.iterdir()] == ["checkpoint.json"], "the first folder is left alone"


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
    before = (folder / "checkpoint.json").read_bytes()
    path = put(tmp_path, SHIP)
    answer = cli("run", path, "--resume", str(folder), "--simulate")
    assert (answer.code, said in answer.err) == (code, True)
    # It is not written over by a new run either, and needs its graph.
    assert cli("run", path, "--run-dir", str(folder), "--simulate").code == 3
    assert cli("run", "--resume", str(folder), "--simulate").code in (2, 3)
    assert (folder / "checkpoint.json").read_bytes() == before


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


def test_variables_of_run_dot_count(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTRACTOR_AGENT_CMD", "cat")
    monkeypatch.setenv("ATTRACTOR_EXECUTION_LOG", "true")
    assert cli("run_dot", put(tmp_path, SHIP)).code == 2
    said = cli("run_dot", put(tmp_path, SHIP), "--allow-tools")
    assert said.code == 0, said.err
    assert read(tmp_path / "execution.log.json")["final_status"] == "success"


def test_agent_answers_prompts_and_leaves_its_outcome_in_the_folder_it_knows(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SHIP.replace("start -> plan -> write -> exit", 'start -> plan\n  plan -> write [condition="outcome=port"]\n'
                        '  plan -> exit [condition="outcome!=port"]\n  write -> exit')  # fmt: skip
    outcome = '{"outcome": "port", "context_updates": {"x": "1"}}'
    agent = f"tr a-z A-Z > said; cat said; if grep -q PLAN said; then echo '{outcome}' > .attractor/outcome.json; fi"
    refused = cli("run_dot", put(tmp_path, text), "--agent-cmd", agent)
    assert (refused.code, "--allow-tools" in refused.err) == (2, True)
    more = ("--allow-tools", "--run-dir", "r", "--param", "reader=Ann")
    said = cli("run_dot", put(tmp_path, text), "--agent-cmd", agent, *more)
    assert said.code == 0, said.err
    document = read(tmp_path / "r" / "checkpoint.json")
    assert document["completed_nodes"] == ["start", "plan", "write", "exit"]
    assert document["context"]["x"] == "1"
    assert (tmp_path / "r" / "write" / "response.md").read_text() == "WRITE IT FOR ANN"


FAN = """digraph Fan {
  node [timeout="20s"]
  start [shape=Mdiamond]
  split [shape=component, max_parallel=MOST]
  a [prompt="A"]
  b [prompt="B"]
  join [shape=tripleoctagon]
  exit [shape=Msquare]
  start -> split
  split -> a -> join
  split -> b -> join
  join -> exit
}
"""

#: Prints an outcome that names the node.
LEAVE = 'printf \'{"outcome": "success", "notes": "of %s"}\' $PIPELINE_NODE'


@pytest.fixture
def fan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return put(tmp_path, FAN.replace("MOST", "2"))


def test_agents_of_a_fan_out_run_at_once(cli: Cli, fan: str, tmp_path: Path) -> None:
    # Each end of the pipe waits for the other one: one agent after the other would never end.
    os.mkfifo(tmp_path / "pipe")
    agent = 'if [ "$PIPELINE_NODE" = a ]; then cat pipe; else echo met > pipe; fi'
    said = cli("run", fan, "--agent-cmd", agent, "--allow-tools", "--run-dir", "r")
    assert said.code == 0, said.err
    assert (tmp_path / "r" / "a" / "response.md").read_text() == "met\n"


def test_agents_of_a_fan_out_are_no_more_than_it_lets(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = "mkdir lock && cat > said && rmdir lock"
    said = cli("run", put(tmp_path, FAN.replace("MOST", "1")), "--agent-cmd", alone, "--allow-tools")
    assert said.code == 0, said.err


@pytest.mark.parametrize("place", [[], ["--stage-dir", "there"]])
def test_agents_of_a_fan_out_leave_their_outcomes_apart(cli: Cli, fan: str, tmp_path: Path, place: list[str]) -> None:
    agent = f"{LEAVE} > $ATTRACTOR_STAGE_DIR/outcome.json"
    said = cli("run", fan, "--agent-cmd", agent, "--allow-tools", "--run-dir", "r", *place)
    assert said.code == 0, said.err
    results = read(tmp_path / "r" / "checkpoint.json")["context"]["parallel.results"]
    assert [(row["id"], row["notes"]) for row in results] == [("a", "of a"), ("b", "of b")]


def test_an_outcome_that_may_be_any_branchs_is_nobodys(cli: Cli, fan: str) -> None:
    agent = 'echo \'{"outcome": "fail"}\' > .attractor/outcome.json'
    said = cli("run", fan, "--agent-cmd", agent, "--allow-tools")
    assert said.code == 6
    assert "may be any branch's" in said.err


def test_commands_of_a_fan_out_leave_their_outcomes_apart(cli: Cli, tmp_path: Path) -> None:
    command = f"{LEAVE} > $ATTRACTOR_STAGE_DIR/outcome.json".replace("\\", "\\\\").replace('"', '\\"')
    tool = f'shape=parallelogram, tool_command="{command}"'
    text = FAN.replace("MOST", "2").replace('prompt="A"', tool).replace('prompt="B"', tool)
    said = cli("run", put(tmp_path, text), "--allow-tools", "--simulate", "--stage-dir", str(tmp_path / "there"))
    assert said.code == 0, said.err
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["a", "b"]
