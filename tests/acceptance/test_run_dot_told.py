"""What people are told of DOT runs: which visit, which branch, values as text, and what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dots import FAN, SHIP, put
from tests.said import Cli

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


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def simulated(cli: Cli, folder: Path, text: str, code: int = 0, *more: str) -> str:
    said = cli("run", put(folder, text), "--simulate", "--allow-tools", *more)
    assert said.code == code, said.err
    return said.out


def test_progress_tells_visits_of_a_loop_apart(cli: Cli, tmp_path: Path) -> None:
    lines = simulated(cli, tmp_path, LOOP, 6).splitlines()
    titles = [line.partition(": ")[2] for line in lines if line.startswith("Step ")]
    assert titles == ["START", "CHECK", "FIX", "CHECK#2", "FIX#2", "CHECK#3"]


def test_progress_names_the_branch_and_what_ends_beside_others(cli: Cli, tmp_path: Path) -> None:
    lines = simulated(cli, tmp_path, FAN).splitlines()
    assert "A2 (branch a)" in [line.partition(": ")[2] for line in lines]
    title = ""
    for line in lines:
        if line.startswith("Step "):
            title = line.partition(": ")[2].partition(" ")[0].lower()
        elif "response [Simulated]" in line:
            node = line.partition("[Simulated] ")[2].partition(":")[0]
            assert f"✓ {node}" in line or title == node, "it reads as the end of another node"


def test_values_are_shown_as_json_not_as_python(cli: Cli, tmp_path: Path) -> None:
    shown = simulated(cli, tmp_path, FAN)
    shown += "".join(cli(*command).out for command in (["show", "latest"], ["log", "latest"], ["status", "latest"]))
    assert 'branches ["a", "b", "c"]' in shown
    assert "['a'" not in shown
    assert "{'id'" not in shown


def test_history_shows_only_what_changed_and_each_change_once(cli: Cli, tmp_path: Path) -> None:
    simulated(cli, tmp_path, LOOP, 6)
    text = cli("history", "latest", "--context").out
    lines = [line.strip() for line in text.splitlines() if line.startswith("        ")]
    assert "last_stage, current_node, _current_node: fix → check" in lines
    again = [line for line in lines if " → " in line and len(set(line.partition(": ")[2].split(" → "))) == 1]
    assert again == []
    for row in cli("history", "latest", "--context", "--json").json():
        assert all(change.get("before", ...) != change["after"] for change in row["context"].values())


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


def test_list_says_what_a_completed_route_came_by(cli: Cli, tmp_path: Path) -> None:
    simulated(cli, tmp_path, ROUTE)
    assert "3/5 (1 failed, 1 not taken)" in cli("list").out
    (row,) = cli("list", "--json").json()
    assert (row["steps_completed"], row["steps_skipped"], row["steps_failed"], row["steps_total"]) == (4, 1, 1, 5)


def test_list_marks_forks(cli: Cli, tmp_path: Path) -> None:
    simulated(cli, tmp_path, ROUTE)
    assert "Fork of" not in cli("list").out
    (parent,) = cli("list", "--json").json()
    (made,) = cli("fork", "latest", "--at", "check", "--json").json()
    row = next(line for line in cli("list").out.splitlines() if line.startswith(made["run"]))
    assert row.split()[-1] == parent["run_id"]
    assert [row["parent"] for row in cli("list", "--json").json()] == [parent["run_id"], None]


def test_changes_that_make_work_again_are_told_with_what_follows(cli: Cli, tmp_path: Path) -> None:
    simulated(cli, tmp_path, ROUTE)
    file = put(tmp_path, ROUTE.replace("Mend it", "Mend it well"))
    told = "mend (does something else now), and what followed: exit; it had cost $0.00."
    refused = cli("run", file, "--resume", "latest", "--allow-tools")
    assert refused.code == 2
    assert told in refused.err
    said = cli("run", file, "--resume", "latest", "--allow-tools", "--accept-changes")
    assert said.code == 0, said.err
    assert f"Re-running because of changes: {told}" in said.out


def test_why_says_in_words_what_a_node_was_told(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", put(tmp_path, FAN), "--agent-cmd", "cat", "--allow-tools").code == 0
    said = cli("why", "latest", "sum").out
    assert "  all visits that led to it" in said
    assert "ancestors" not in said
    simulated(cli, tmp_path, ROUTE)
    assert "Read: nothing that is tracked.\n" in cli("why", "latest", "check").out


def test_why_says_that_there_was_nothing_under_a_name(cli: Cli, tmp_path: Path) -> None:
    simulated(cli, tmp_path, SHIP)
    assert "  params.reader: did not exist" in cli("why", "latest", "write").out


def test_show_at_an_item_says_what_points_are(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", put(tmp_path, SHIP), "--agent-cmd", "cat", "--allow-tools").code == 0
    said = cli("show", "latest", "--at", "plan/backend")
    assert said.code == 3
    assert "'plan/backend' is an item; points are the ends of steps." in said.err


def test_limits_of_one_are_once(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", put(tmp_path, LOOP.replace("fix [", "fix [max_visits=1, ")), "--simulate", "--allow-tools")
    assert said.code == 6
    assert "has been taken once, which is its limit" in said.err
