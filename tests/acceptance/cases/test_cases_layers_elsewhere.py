"""Acceptance cases of layered DAGs: other processes, other places, other days (31, 44, 45)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline import LayerCheckpoints
from pipeline.clock import SystemClock
from pipeline.errors import RunLocked
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.acceptance.partner import Partner
from tests.layered import Layered, chain, done, state
from tests.tiers import trials

ROOT = Path(__file__).resolve().parents[3]
CLOCK = SystemClock()


RESUMING = """
import sys
from pipeline import ControlledExecutor, open_store
from pipeline.errors import RunLocked
def work(call):
    print("ran", call.id, flush=True)
    if sys.argv[3] == "hold":
        sys.stdin.readline()
    return call.id
try:
    result = ControlledExecutor(None, {"work": work}, store=open_store(sys.argv[1])).resumeFromCheckpoint(sys.argv[2])
    print(result.status)
except RunLocked as error:
    print("locked:", error)
    sys.exit(error.exit_code)
"""


def started(layered: Layered, checkpoint: str, cwd: Path, how: str = "go") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RESUMING, layered.store.url, checkpoint, how]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class Forker(Partner):
    """The process that forks runs; see dying_layers.py."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).with_name("dying_layers.py"))

    def start(self, home: Path, write: int = 0) -> int:
        """Begin the run, or go on with it; the pid. With `write`, it kills itself in the middle of that write."""
        return int(self.tell({"home": str(home), "write": write})["pid"])

    def wait(self) -> int:
        """The exit code, or minus the signal that ended it."""
        return int(self.answer()["status"])


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    made = Forker()
    yield made
    made.close()


def recorded(home: Path) -> tuple[set[str], bool]:
    """The tasks that are recorded as completed, and whether there is a checkpoint."""
    store = FileStore(home / "runs", CLOCK)
    runs = [head.run_id for head in store.heads()]
    if not runs:
        return set(), False
    steps = load(store, runs[0]).steps.values()
    return {step.node for step in steps if step.status == "completed"}, bool(LayerCheckpoints(store).listed(runs[0]))


def began(home: Path) -> list[str]:
    path = home / "ran"
    return path.read_text().split() if path.exists() else []


def trial(
    forker: Forker, seed: int, home: Path, seconds: float, writes: int, whole: Any, deaths: list[tuple[int, bool]]
) -> str:
    """One run, killed once or twice at random, resumed until done; "" or what is wrong. Its deaths are noted."""
    draw = random.Random(seed)
    home.mkdir()
    for death in (*range(1 + draw.randrange(2)), None):
        before, there = recorded(home), began(home)
        middle = death is not None and draw.random() < 0.5
        pid = forker.start(home, 1 + draw.randrange(writes) if middle else 0)
        if death is not None and not middle:
            CLOCK.wait(threading.Event(), draw.uniform(0, seconds))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = forker.wait()
        if code == -signal.SIGKILL:
            deaths.append((seed, middle))
        again = began(home)[len(there) :]
        if twice := before[0] & set(again):
            return f"seed {seed}: {twice} were completed, and ran again"
        if len(set(again)) < len(again) or code not in (0, -signal.SIGKILL):
            return f"seed {seed}: exit {code} after {again}"
    found = json.loads((home / "facts").read_text())
    return "" if code == 0 and found == whole else f"seed {seed}: exit {code}, {found} is not {whole}"


def test_case_31_killed_anywhere_a_run_ends_the_same_and_nothing_completed_runs_again(
    forker: Forker, tmp_path: Path
) -> None:
    whole, seconds = tmp_path / "whole", 0.0
    for home in (tmp_path / "first", whole):
        # The first one also loads what is loaded late.
        home.mkdir()
        begun = CLOCK.monotonic()
        forker.start(home)
        assert forker.wait() == 0
        seconds = CLOCK.monotonic() - begun
    undisturbed = json.loads((whole / "facts").read_text())
    assert len(undisturbed["tasks"]) == 12
    writes = int((whole / "writes").read_text())
    seeds = range(trials(4, 40, 100))
    deaths: list[tuple[int, bool]] = []
    found = [trial(forker, seed, tmp_path / str(seed), seconds, writes, undisturbed, deaths) for seed in seeds]
    assert [problem for problem in found if problem] == []
    assert len({seed for seed, _ in deaths}) > len(seeds) / 2
    assert {middle for _, middle in deaths} == {True, False}


def test_case_44_of_two_processes_one_goes_on(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path / "runs", SystemClock()))
    checkpoint = layered.checkpoints.save_checkpoint(state(tasks=done("t1")), chain(3), 1).id
    with started(layered, checkpoint, tmp_path, "hold") as first:
        assert first.stdout
        assert first.stdin
        assert first.stdout.readline() == "ran t2\n"
        with started(layered, checkpoint, tmp_path) as second:
            said = second.communicate()[0]
        assert second.returncode == RunLocked.exit_code
        assert said.startswith("locked:")
        assert str(first.pid) in said
        assert os.uname().nodename in said
        with pytest.raises(RunLocked):
            layered.checkpoints.save_checkpoint(state(), chain(3), 0)
        first.stdin.write("\n\n")
        first.stdin.flush()
        assert first.stdout.read() == "ran t3\ncompleted\n"


def test_case_45_two_days_later_elsewhere_all_is_there(tmp_path: Path) -> None:
    clock = FakeClock()
    layered = Layered(FileStore(tmp_path / "runs", clock), clock)
    layered.bad = {"t3": "crash"}
    result = layered.execute(chain(4), {"theme": "sea"}, config={"timeout": 30})
    clock.advance(timedelta(days=2).total_seconds())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert result.checkpoint_id
    with started(layered, result.checkpoint_id, elsewhere) as process:
        assert process.communicate()[0] == "ran t3\nran t4\ncompleted\n"
    latest = layered.latest(result.run_id)
    assert (latest.layer_index, latest.config["timeout"], latest.state.context["theme"]) == (4, 30, "sea")
