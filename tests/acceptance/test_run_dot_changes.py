"""A DOT file that is edited between two starts: the run holds its own graph; what changed is told, and asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dots import GATE, SHIP, put, read
from tests.said import Cli, Said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def begin(cli: Cli, tmp_path: Path, folder: Path) -> str:
    """A run that waits at its gate with `write` done; the file's path."""
    path = put(tmp_path, GATE)
    assert cli("run", path, "--simulate", "--run-dir", str(folder)).code == 8
    assert cli("answer", str(folder), "review", "A").code == 0
    return path


def go_on(cli: Cli, path: str, folder: Path, *more: str) -> Said:
    return cli("run", path, "--resume", str(folder), *more)


def test_without_the_file_the_stored_graph_goes_on(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, "digraph G { nonsense")
    said = cli("run", "--resume", str(folder))
    assert said.code == 0, said.err
    assert (folder / "graph.dot").read_text() == GATE
    assert cli("run", path, "--resume", str(folder)).code == 2


def test_remarks_are_no_change(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, GATE.replace("  start", "  // where it begins\n  start").replace("digraph", "/* ! */ digraph"))
    said = go_on(cli, path, folder)
    assert said.code == 0, said.err
    assert "changed" not in said.out
    assert read(folder / "checkpoint.json")["completed_nodes"] == ["start", "write", "review", "publish", "exit"]


def test_new_nodes_ahead_are_told_and_run(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    more = 'tell [prompt="Tell them"]\n  publish -> tell [weight=1]\n  tell -> exit'
    put(tmp_path, GATE.replace("publish -> exit", f"publish -> exit\n  {more}"))
    said = go_on(cli, path, folder)
    assert said.code == 0, said.err
    assert "step tell is new" in said.out
    assert read(folder / "checkpoint.json")["completed_nodes"] == [
        "start",
        "write",
        "review",
        "publish",
        "tell",
        "exit",
    ]
    assert "Tell them" in (folder / "graph.dot").read_text()


def test_changed_finished_work_is_refused_by_name_and_cost(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, GATE.replace("Write it", "Write it better"))
    before = (folder / "journal.jsonl").read_bytes()
    said = go_on(cli, path, folder)
    assert said.code == 2
    assert "write (" in said.err
    assert "$0.00" in said.err
    assert "--accept-changes" in said.err
    assert (folder / "journal.jsonl").read_bytes() == before
    assert (folder / "graph.dot").read_text() == GATE


def test_accepted_changes_are_made_again(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, GATE.replace("Write it", "Write it better"))
    said = go_on(cli, path, folder, "--accept-changes", "--auto-approve")
    assert said.code == 0, said.err
    assert "Re-running because of changes: write (" in said.out
    assert (folder / "write" / "prompt.md").read_text() == "Write it better"
    assert "Write it better" in (folder / "graph.dot").read_text()


def test_change_that_touches_nothing_finished_asks_for_a_word(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, GATE.replace('"Publish"', '"Publish loudly"'))
    said = go_on(cli, path, folder)
    assert said.code == 2
    assert "step publish does something else" in said.err
    assert "No finished work is touched" in said.err
    assert go_on(cli, path, folder, "--accept-changes").code == 0
    assert (folder / "publish" / "prompt.md").read_text() == "Publish loudly"
    assert read(folder / "checkpoint.json")["completed_nodes"] == ["start", "write", "review", "publish", "exit"]


def test_another_goal_voids_what_named_it(cli: Cli, tmp_path: Path, folder: Path) -> None:
    text = SHIP.replace(
        "start -> plan -> write", 'ask [shape=hexagon, label="Go on?"]\n  start -> plan -> ask -> write'
    )
    path = put(tmp_path, text)
    assert cli("run", path, "--simulate", "--run-dir", str(folder)).code == 8
    put(tmp_path, text.replace("ship it", "sink it"))
    said = go_on(cli, path, folder)
    assert said.code == 2
    assert "plan (" in said.err
    assert go_on(cli, path, folder, "--accept-changes", "--auto-approve").code == 0
    assert (folder / "plan" / "prompt.md").read_text() == "Plan how to sink it"


def test_new_choice_at_a_gate_is_a_new_question(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    more = 'later [prompt="Wait"]\n  review -> later [label="[L] Later"]\n  later -> exit'
    put(tmp_path, GATE.replace("publish -> exit", f"publish -> exit\n  {more}"))
    assert go_on(cli, path, folder).code == 8
    assert "[L] Later" in cli("gates", str(folder)).out


def test_simulation_and_models_are_not_mixed(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    said = go_on(cli, path, folder, "--model", "claude-sonnet-5-5")
    assert said.code == 2
    assert "simulated" in said.err
    assert go_on(cli, path, folder).code == 0


def test_node_that_ended_last_runs_again_where_that_is_asked_for(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, SHIP)
    cli("run", path, "--simulate", "--run-dir", str(folder))
    said = go_on(cli, path, folder, "--rerun-current")
    assert said.code == 0, said.err
    assert "Step 4/4: EXIT" in said.out
    assert "Step 3/4" not in said.out
    again = go_on(cli, path, folder, "--from", "write")
    assert again.code == 0, again.err
    assert "Step 3/4: WRITE" in again.out
    assert "Step 2/4" not in again.out
