"""A graph's run that is killed or stopped between its nodes: what stands in its folder, and what a resume does."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.acceptance.dots import put, read, wait_for
from tests.acceptance.killing import Starter
from tests.said import Cli

SLOW = """digraph Slow {
  start [shape=Mdiamond]
  first [shape=parallelogram, tool_command="echo first >> LOG"]
  second [shape=parallelogram, tool_command="echo second >> LOG; while [ ! -e go ]; do sleep 0.05; done"]
  exit [shape=Msquare]
  start -> first -> second -> exit
}
"""


class Slow:
    """One run whose second command waits for a file."""

    def __init__(self, home: Path, starter: Starter, text: str = SLOW) -> None:
        self.home = home
        self.folder = home / "run"
        self.path = put(home, text.replace("LOG", str(home / "log")).replace("-e go", f"-e {home / 'go'}"))
        self._starter = starter

    def start(self, *more: str) -> int:
        return self._starter.start(["run", self.path, "--allow-tools", *more], {}, self.home / "out.txt")

    def go(self, *more: str) -> int:
        self.start(*more)
        return self._starter.wait()

    def until_second(self) -> None:
        wait_for(lambda: "second" in self.said())

    def said(self) -> str:
        return (self.home / "log").read_text() if (self.home / "log").exists() else ""

    def out(self) -> str:
        return (self.home / "out.txt").read_text()

    def kill(self, pid: int, number: int) -> int:
        os.kill(pid, number)
        return self._starter.wait()

    def let_go(self) -> None:
        (self.home / "go").touch()


def test_killed_between_nodes_the_folder_says_what_was_done(starter: Starter, cli: Cli, tmp_path: Path) -> None:
    slow = Slow(tmp_path, starter)
    pid = slow.start("--run-dir", str(slow.folder))
    slow.until_second()
    assert slow.kill(pid, signal.SIGKILL) == -signal.SIGKILL
    document = read(slow.folder / "checkpoint.json")
    assert (document["current_node"], document["completed_nodes"]) == ("first", ["start", "first"])
    assert document["next_node_id"] == "second"
    assert sorted(path.name for path in (slow.folder / "checkpoints").iterdir()) == ["001_start.json", "002_first.json"]
    assert not (slow.folder / "final.json").exists()
    way_on = next(line for line in cli("status", str(slow.folder)).out.splitlines() if line.startswith("Resume:"))
    assert way_on.endswith(f"--resume {slow.folder} --retry-unknown  # give again: --allow-tools")
    slow.let_go()
    # Whether the second command did its work is unknown, so it is not repeated unasked.
    assert slow.go("--resume", str(slow.folder)) == 6
    assert "second has side effects" in slow.out()
    assert slow.said() == "first\nsecond\n"
    assert slow.go("--resume", str(slow.folder), "--yes") == 0
    assert slow.said() == "first\nsecond\nsecond\n"
    assert read(slow.folder / "checkpoint.json")["completed_nodes"] == ["start", "first", "second", "exit"]
    assert read(slow.folder / "final.json")["status"] == "completed"


def test_repeatable_commands_are_repeated_after_a_kill(starter: Starter, tmp_path: Path) -> None:
    slow = Slow(tmp_path, starter, SLOW.replace("second [", "second [repeatable=true, "))
    pid = slow.start("--run-dir", str(slow.folder))
    slow.until_second()
    slow.kill(pid, signal.SIGKILL)
    slow.let_go()
    assert slow.go("--resume", str(slow.folder)) == 0
    assert slow.said() == "first\nsecond\nsecond\n"


def test_interrupted_run_ends_its_node_first(starter: Starter, tmp_path: Path) -> None:
    slow = Slow(tmp_path, starter)
    pid = slow.start("--run-dir", str(slow.folder))
    slow.until_second()
    os.kill(pid, signal.SIGINT)
    slow.let_go()
    assert starter.wait() == 130
    assert f"--resume {slow.folder}" in slow.out()
    assert read(slow.folder / "checkpoint.json")["completed_nodes"] == ["start", "first", "second"]
    assert not (slow.folder / "final.json").exists()
    assert slow.go("--resume", str(slow.folder)) == 0
    assert slow.said() == "first\nsecond\n"


def test_folder_of_a_living_run_is_locked(starter: Starter, tmp_path: Path) -> None:
    slow, other = Slow(tmp_path, starter), Starter()
    try:
        pid = slow.start("--run-dir", str(slow.folder))
        slow.until_second()
        for place in ("--resume", "--run-dir"):
            log = tmp_path / f"other{place}.txt"
            other.start(["run", slow.path, "--allow-tools", place, str(slow.folder)], {}, log)
            assert other.wait() == 3
            assert str(pid) in log.read_text()
        slow.let_go()
        assert starter.wait() == 0
    finally:
        slow.let_go()
        other.close()
    assert slow.said() == "first\nsecond\n"
