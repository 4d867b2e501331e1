"""The line that says how to go on: with the permissions that a resume needs again, which are stored nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dots import SHIP, TOOLS, put
from tests.said import Cli, Said

FAILS = TOOLS.replace("echo never; exit 3", "test -e mended")


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def way_on(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("Resume:")).partition(":")[2].strip()


def stored(root: Path) -> str:
    return "".join(path.read_text("latin-1") for path in root.rglob("*") if path.is_file())


def failing_agent(cli: Cli, folder: Path, command: str) -> Said:
    said = cli("run", put(folder, SHIP), "--agent-cmd", command, "--allow-tools")
    assert said.code == 6
    return said


def test_way_on_repeats_what_this_process_was_permitted(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", put(tmp_path, FAILS), "--simulate", "--allow-tools", "--auto-approve")
    assert said.code == 6
    assert way_on(said.err).endswith(" --allow-tools --auto-approve")
    (tmp_path / "mended").touch()
    again = way_on(said.err).removeprefix("./pipeline.sh ").split()
    assert cli(*again).code == 0


def test_way_on_repeats_the_agent_but_no_record_does(cli: Cli, root: Path, tmp_path: Path) -> None:
    said = failing_agent(cli, tmp_path, "echo 'so it is' >&2; exit 3")
    assert way_on(said.err).endswith(""" --allow-tools --agent-cmd 'echo '"'"'so it is'"'"' >&2; exit 3'""")
    assert ">&2; exit 3" not in stored(root)


@pytest.mark.parametrize(
    "command", ["API_KEY=tell-no-one; exit 3", "false --password tell-no-one", "exit 3 # sk-tell-no-one"]
)
def test_way_on_repeats_no_agent_that_may_hold_a_secret(cli: Cli, root: Path, tmp_path: Path, command: str) -> None:
    said = failing_agent(cli, tmp_path, command)
    assert way_on(said.err).endswith(" --allow-tools --agent-cmd COMMAND")
    assert "tell-no-one" not in said.out + said.err + stored(root)


def test_way_on_leaves_out_an_agent_that_a_variable_holds(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTRACTOR_AGENT_CMD", "exit 3")
    assert way_on(cli("run", put(tmp_path, SHIP), "--allow-tools").err).endswith(" --allow-tools")


def test_other_processes_say_which_permissions_are_needed_again(cli: Cli, tmp_path: Path) -> None:
    failing_agent(cli, tmp_path, "exit 3")
    told = "  # give again: --allow-tools --agent-cmd"
    assert cli("list").out.rstrip().endswith(told)
    assert way_on(cli("status", "latest").out).endswith(told.strip())
    assert way_on(cli("fork", "latest").out).endswith(told.strip())


def test_stage_dir_stays_that_of_the_run(cli: Cli, tmp_path: Path) -> None:
    folder, agent = tmp_path / "there", "test -e mended && echo x > $ATTRACTOR_STAGE_DIR/seen"
    said = cli("run", put(tmp_path, SHIP), "--agent-cmd", agent, "--allow-tools", "--stage-dir", str(folder))
    assert said.code == 6
    (tmp_path / "mended").touch()
    assert cli("run", "--resume", "latest", "--agent-cmd", agent, "--allow-tools").code == 0
    assert (folder / "seen").exists()
