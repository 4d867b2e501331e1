"""Several starts of the program at once: one owner a run, one run a course, --force as many as are asked for."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.acceptance.killing import Starter
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer

CLOCK = SystemClock()
MATHS = ("--subject", "maths", "--level", "n5", "--lessons", "2")
PHYSICS = ("--subject", "physics", "--level", "higher", "--lessons", "2")


class Ended(NamedTuple):
    """How one start ended."""

    pid: int
    code: int
    said: str


class Gate:
    """Answers as the author of lessons, once it is open."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()

    def __call__(self, body: Mapping[str, Any], fault: str) -> str:
        self.asked.set()
        self.open.wait(100)
        return answer(body, fault)


class Starts:
    """Starts on one store and one server, each with a log of its own."""

    def __init__(self, home: Path, starter: Starter, server: BillingServer) -> None:
        self.store = FileStore(home / "store", CLOCK)
        self.server = server
        self._home = home
        self._starter = starter
        self._logs: dict[int, Path] = {}

    def start(self, *words: str) -> int:
        """Start one; its pid."""
        log = self._home / f"log-{len(self._logs)}.txt"
        argv = ["lessons", "--store", f"files:{self._home / 'store'}", "--out", str(self._home / "out"), *words]
        env = {"ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": self.server.url}
        pid = self._starter.start(argv, env, log)
        self._logs[pid] = log
        return pid

    def first_to_end(self) -> Ended:
        """Wait for any of them."""
        pid, code = self._starter.first_to_end()
        return Ended(pid, code, self._logs[pid].read_text())

    def runs(self) -> list[str]:
        return [head.run_id for head in self.store.heads()]


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


@pytest.fixture
def starts(tmp_path: Path, starter: Starter, gate: Gate) -> Iterator[Starts]:
    with BillingServer(responder=gate) as server:
        yield Starts(tmp_path, starter, server)


def locked_out(ended: Ended, owner: int, run: str) -> None:
    """It was refused because `owner` has the run, and said so."""
    assert ended.code == 3, ended.said
    assert run in ended.said
    assert socket.gethostname() in ended.said
    assert re.search(rf"\b{owner}\b", ended.said), ended.said
    assert "Traceback" not in ended.said


def test_of_two_resumes_at_once_one_goes_on_and_the_other_names_it(starts: Starts, gate: Gate) -> None:
    starts.start(*MATHS, "--until", "seed")
    assert starts.first_to_end().code == 0
    (run,) = starts.runs()
    pids = {starts.start("--resume", run), starts.start("--resume", run)}
    # The owner waits for its first reply, so it is the other one that ends.
    refused = starts.first_to_end()
    (owner,) = pids - {refused.pid}
    locked_out(refused, owner, run)
    gate.open.set()
    done = starts.first_to_end()
    assert (done.pid, done.code) == (owner, 0), done.said
    assert int(starts.server.bill.to_json()["repeated"]) == 0


def test_of_five_starts_of_one_course_one_makes_it_and_four_are_locked_out(starts: Starts, gate: Gate) -> None:
    pids = {starts.start(*MATHS) for _ in range(5)}
    refused = [starts.first_to_end() for _ in range(4)]
    (owner,) = pids - {ended.pid for ended in refused}
    (run,) = starts.runs()
    for ended in refused:
        locked_out(ended, owner, run)
    gate.open.set()
    done = starts.first_to_end()
    assert (done.pid, done.code) == (owner, 0), done.said
    assert load(starts.store, run).status == "completed"
    assert int(starts.server.bill.to_json()["repeated"]) == 0


def test_five_forced_starts_at_once_are_five_runs(starts: Starts) -> None:
    for _ in range(5):
        starts.start(*MATHS, "--force", "--until", "seed", "--model", "offline")
    assert [starts.first_to_end().code for _ in range(5)] == [0] * 5
    runs = starts.runs()
    assert len(set(runs)) == 5
    assert all(load(starts.store, run).detail == "stopped_as_asked" for run in runs)


def test_two_courses_started_at_once_do_not_meet(starts: Starts, gate: Gate) -> None:
    starts.start(*MATHS)
    starts.start(*PHYSICS)
    assert gate.asked.wait(100)
    gate.open.set()
    ends = [starts.first_to_end() for _ in range(2)]
    assert [ended.code for ended in ends] == [0, 0], ends
    made = {load(starts.store, run).params["subject"]: load(starts.store, run).status for run in starts.runs()}
    assert made == {"mathematics": "completed", "physics": "completed"}
