"""What people are told of DOT runs: visits, branches, values, changes; and how to go on, with what was permitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dots import FAN, SHIP, TOOLS, put
from tests.said import Cli, Said

#: A check that fails until a person mends it; what it says never changes.
LOOP = """digraph Loop {
  start [shape=Mdiamond]
  check [shape=parallelogram, tool_command="test -e mended || { echo broken; exit 1; }"]
  fix [prompt="Fix it"]
  exit [shape=Msquare]
  start -> check
  check -> exit [condition="outcome=success"]
  check -> fix [condition="outcome=fail"]
  fix -> check
}
"""
#: One node fails and its failure leads on, one is not come by.
ROUTE = """digraph Route {
  start [shape=Mdiamond]
  check [shape=parallelogram, tool_command="exit 1"]
  mend [prompt="Mend it"]
  cheer [prompt="Cheer"]
  exit [shape=Msquare]
  start -> check
  check -> cheer [condition="outcome=success"]
  check -> mend [condition="outcome=fail"]
  mend -> exit
  cheer -> exit
}
"""


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def simulated(cli: Cli, folder: Path, text: str, code: int = 0) -> str:
    said = cli("run", put(folder, text), "--simulate", "--allow-tools")
    assert said.code == code, said.err
    return said.out


def titles(out: str) -> list[str]:
    return [line.partition(": ")[2] for line in out.splitlines() if line.startswith("Step ")]


def test_visits_of_a_loop_are_told_apart_and_history_shows_each_change_once(cli: Cli, tmp_path: Path) -> None:
    assert titles(simulated(cli, tmp_path, LOOP, 6)) == ["START", "CHECK", "FIX", "CHECK#2", "FIX#2", "CHECK#3"]
    drawn = next(line for line in cli("draw", "latest").out.splitlines() if line.startswith("fix "))
    assert drawn.split()[-3:] == ["completed,", "2", "visits"]
    text = cli("history", "latest", "--context").out
    lines = [line.strip() for line in text.splitlines() if line.startswith("        ")]
    assert "last_stage, current_node, _current_node: fix → check" in lines
    for row in cli("history", "latest", "--context", "--json").json():
        assert all(change.get("before", ...) != change["after"] for change in row["context"].values())


def test_progress_names_the_branch_and_values_are_json(cli: Cli, tmp_path: Path) -> None:
    shown = simulated(cli, tmp_path, FAN)
    assert "A2 (branch a)" in titles(shown)
    title = ""
    for line in shown.splitlines():
        if line.startswith("Step "):
            title = line.partition(": ")[2].partition(" ")[0].lower()
        elif "response [Simulated]" in line:
            node = line.partition("[Simulated] ")[2].partition(":")[0]
            assert f"✓ {node}" in line or title == node, "it reads as the end of another node"
    shown += "".join(cli(*command).out for command in (["show", "latest"], ["log", "latest"], ["status", "latest"]))
    assert 'branches ["a", "b", "c"]' in shown
    assert "['a'" not in shown
    assert "{'id'" not in shown


def test_list_says_what_a_completed_route_came_by_and_marks_forks(cli: Cli, tmp_path: Path) -> None:
    simulated(cli, tmp_path, ROUTE)
    assert "3/5 (1 failed, 1 not taken)" in cli("list").out
    assert "Read: nothing that is tracked.\n" in cli("why", "latest", "check").out
    (parent,) = cli("list", "--json").json()
    assert [parent[f"steps_{name}"] for name in ("completed", "skipped", "failed", "total")] == [4, 1, 1, 5]
    (made,) = cli("fork", "latest", "--at", "check", "--json").json()
    row = next(line for line in cli("list").out.splitlines() if line.startswith(made["run"]))
    assert row.split()[-1] == parent["run_id"]
    assert [row["parent"] for row in cli("list", "--json").json()] == [parent["run_id"], None]


def test_why_says_what_a_node_was_told_and_what_there_was_not(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", put(tmp_path, FAN), "--agent-cmd", "cat", "--allow-tools").code == 0
    assert "  all visits that led to it" in cli("why", "latest", "sum").out
    said = cli("show", "latest", "--at", "sum/backend")
    assert (said.code, "is an item; points are the ends of steps." in said.err) == (3, True)
    simulated(cli, tmp_path, SHIP)
    assert "  params.reader: did not exist" in cli("why", "latest", "write").out


# --- how to go on: the permissions that a resume needs again are stored nowhere --------------------


def way_on(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("Resume:")).partition(":")[2].strip()


def stored(root: Path) -> str:
    return "".join(path.read_text("latin-1") for path in root.rglob("*") if path.is_file())


def failing_agent(cli: Cli, folder: Path, command: str) -> Said:
    said = cli("run", put(folder, SHIP), "--agent-cmd", command, "--allow-tools")
    assert said.code == 6
    return said


def test_way_on_repeats_what_this_process_was_permitted(cli: Cli, tmp_path: Path) -> None:
    fails = TOOLS.replace("echo never; exit 3", "test -e mended")
    said = cli("run", put(tmp_path, fails), "--simulate", "--allow-tools", "--auto-approve")
    assert (said.code, way_on(said.err).endswith(" --allow-tools --auto-approve")) == (6, True)
    (tmp_path / "mended").touch()
    assert cli(*way_on(said.err).removeprefix("./pipeline.sh ").split()).code == 0


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo 'so it is' >&2; exit 3", """'echo '"'"'so it is'"'"' >&2; exit 3'"""),
        # One that may hold a secret is not repeated.
        ("API_KEY=tell-no-one; exit 3", "COMMAND"), ("false --password tell-no-one", "COMMAND"),
        ("exit 3 # sk-tell-no-one", "COMMAND"),
    ],
)  # fmt: skip
def test_way_on_repeats_the_agent_but_no_record_does(
    cli: Cli, root: Path, tmp_path: Path, command: str, shown: str
) -> None:
    said = failing_agent(cli, tmp_path, command)
    assert way_on(said.err).endswith(f" --allow-tools --agent-cmd {shown}")
    assert command not in stored(root)
    assert "tell-no-one" not in said.out + said.err + stored(root)


def test_other_processes_say_which_permissions_are_needed_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_agent(cli, tmp_path, "exit 3")
    told = "  # give again: --allow-tools --agent-cmd"
    assert cli("list").out.rstrip().endswith(told)
    assert way_on(cli("status", "latest").out).endswith(told.strip())
    assert way_on(cli("fork", "latest").out).endswith(told.strip())
    # One that a variable holds is there anyway.
    monkeypatch.setenv("ATTRACTOR_AGENT_CMD", "exit 3")
    assert way_on(cli("run", put(tmp_path, SHIP), "--allow-tools").err).endswith(" --allow-tools")


def test_stage_dir_stays_that_of_the_run(cli: Cli, tmp_path: Path) -> None:
    folder, agent = tmp_path / "there", "test -e mended && echo x > $ATTRACTOR_STAGE_DIR/seen"
    said = cli("run", put(tmp_path, SHIP), "--agent-cmd", agent, "--allow-tools", "--stage-dir", str(folder))
    assert said.code == 6
    (tmp_path / "mended").touch()
    assert cli("run", "--resume", "latest", "--agent-cmd", agent, "--allow-tools").code == 0
    assert (folder / "seen").exists()
