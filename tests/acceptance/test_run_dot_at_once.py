"""Branches whose prompts a command answers: at once, as many as the fan-out lets, each with a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.acceptance.dots import put, read
from tests.said import Cli

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
