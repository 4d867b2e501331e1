"""Kill tests: real processes, real signals, a server that keeps its own bill; nothing is paid for twice.

KILL_TRIALS (default 60) trials, two at a time; each has its own server and store. Two thirds of them are
kill -9, the rest INT and TERM.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.records.fold import spent
from pipeline.store.files import FileStore
from pipeline.store.reading import load, resolve
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer
from tests.servers.mishaps import Plan

ROOT = Path(__file__).resolve().parents[2]
TRIALS = int(os.environ.get("KILL_TRIALS", "60"))
_LESSONS = 6
_LATENCY = 0.03
CLOCK = SystemClock()


class Starter:
    """One process that forks a start at a time."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("starter.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, argv: list[str], env: dict[str, str], log: Path) -> int:
        """Start the program; its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"argv": argv, "env": env, "log": str(log)}) + "\n")
        self._process.stdin.flush()
        return int(self._answer()["pid"])

    def wait(self) -> int:
        """The exit code of the started process, or minus the signal that ended it."""
        return int(self._answer()["status"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the starter died"
        answered: dict[str, Any] = json.loads(line)
        return answered

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class Course:
    """One store, one server, one output folder."""

    home: Path
    server: BillingServer
    starter: Starter

    @property
    def store(self) -> FileStore:
        return FileStore(self.home / "store", CLOCK)

    def begin(self, *more: str) -> int:
        """Start or go on; the pid."""
        argv = ["lessons", "--store", f"files:{self.home / 'store'}", "--out", str(self.home / "out"), "--quiet", *more]
        env = {"ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": self.server.url}
        return self.starter.start(argv, env, self.home / "log.txt")

    def new(self) -> int:
        return self.begin("--subject", "maths", "--level", "n5", "--lessons", str(_LESSONS))

    def go(self) -> int:
        """Resume the run, or start one where none is there yet; the pid."""
        runs = self.runs()
        return self.begin("--resume", runs[0]) if runs else self.new()

    def published(self) -> dict[str, str]:
        """Every published file with its hash; the receipt is not among them."""
        folder = self.home / "out" / "course_c84775"
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def runs(self) -> list[str]:
        return [head.run_id for head in self.store.heads()]

    def log(self) -> str:
        return (self.home / "log.txt").read_text()


@contextmanager
def course(home: Path, starter: Starter, faults: str = "", seed: int = 0) -> Iterator[Course]:
    home.mkdir(parents=True)
    with BillingServer(plan=Plan(faults, seed), responder=answer, latency=_LATENCY) as server:
        yield Course(home, server, starter)


@pytest.fixture(scope="module")
def starters() -> Iterator[list[Starter]]:
    made = [Starter(), Starter()]
    yield made
    for starter in made:
        starter.close()


@pytest.fixture(scope="module")
def undisturbed(starters: list[Starter], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], float, int]:
    """What a run without kills publishes, how long it takes, and how many requests it makes."""
    with course(tmp_path_factory.mktemp("undisturbed") / "c", starters[0]) as made:
        begun = CLOCK.monotonic()
        made.new()
        assert made.starter.wait() == 0, made.log()
        return made.published(), CLOCK.monotonic() - begun, made.server.bill.requests


def kill_at(pid: int, moment: float, number: int) -> None:
    """Send a signal after `moment` seconds; a process that has ended is left alone."""
    CLOCK.wait(threading.Event(), moment)
    with open(f"/proc/{pid}/stat") if os.path.exists(f"/proc/{pid}/stat") else open(os.devnull) as stat:
        if stat.read(1):
            os.kill(pid, number)


def trial(seed: int, home: Path, starter: Starter, published: dict[str, str], duration: float) -> str:
    """One course, killed once or twice at random moments, resumed until done; "" or what is wrong."""
    draw = random.Random(seed)
    number = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[seed % 6]
    possible, code = 0, 1
    with course(home, starter) as made:
        for _ in range(1 + draw.randrange(2)):
            kill_at(made.go(), draw.uniform(0.0, duration), number)
            code = starter.wait()
            if code not in (0, -number, 130) and number != signal.SIGKILL:
                return f"seed {seed}: exit {code} after {number!r}:\n{made.log()[-2000:]}"
            possible += sum(len(load(made.store, run).open_calls) for run in made.runs())
            if code == 0:
                break
        if code != 0:
            made.go()
            code = starter.wait()
        if code != 0:
            return f"seed {seed}: the last resume ended with {code}:\n{made.log()[-2000:]}"
        return judge(seed, made, published, possible)


def judge(seed: int, made: Course, published: dict[str, str], possible: int) -> str:
    """Compare what was published, asked and paid with the undisturbed run and the server's bill."""
    if made.published() != published:
        return f"seed {seed}: the published bytes differ"
    repeated = int(made.server.bill.to_json()["repeated"])
    if repeated > possible:
        return f"seed {seed}: {repeated} requests made twice, {possible} were in flight"
    total = spent(load(made.store, resolve(made.store, "latest")))
    low, high, bill = total.usd + total.low, total.usd + total.high, made.server.bill.usd
    if not low <= bill <= high:
        return f"seed {seed}: bill {bill} is not between {low} and {high}"
    return ""


def test_killed_courses_publish_the_same_bytes_and_pay_nothing_twice(
    starters: list[Starter], undisturbed: tuple[dict[str, str], float, int], tmp_path: Path
) -> None:
    published, duration, _ = undisturbed
    free = list(starters)
    lock = threading.Lock()

    def one(seed: int) -> str:
        with lock:
            starter = free.pop()
        try:
            return trial(seed, tmp_path / str(seed), starter, published, duration)
        finally:
            with lock:
                free.append(starter)

    with ThreadPoolExecutor(len(starters)) as pool:
        wrong = [message for message in pool.map(one, range(TRIALS)) if message]
    assert not wrong, "\n".join(wrong)


def test_without_faults_the_ledger_is_the_bill_to_the_cent(
    starters: list[Starter], undisturbed: tuple[dict[str, str], float, int], tmp_path: Path
) -> None:
    with course(tmp_path / "c", starters[0]) as made:
        made.new()
        assert starters[0].wait() == 0, made.log()
        total = spent(load(made.store, made.runs()[0]))
        assert (total.usd, total.low, total.high) == (made.server.bill.usd, Decimal(0), Decimal(0))
        assert made.server.bill.requests == undisturbed[2]


@pytest.mark.parametrize("seed", range(3))
def test_with_faults_the_bill_is_within_what_the_ledger_says(
    starters: list[Starter], undisturbed: tuple[dict[str, str], float, int], tmp_path: Path, seed: int
) -> None:
    faults = (
        "rate_limit=0.05,overloaded=0.03,error500=0.03,drop=0.03,cut=0.05,silent=0.02,"
        "invalid=0.1,offplan=0.1,wrong=0.1,lowscore=0.1,passlow=0.1,truncated=0.05"
    )
    with course(tmp_path / "c", starters[0], faults, seed) as made:
        made.new()
        code = starters[0].wait()
        for _ in range(4):
            if code == 0:
                break
            made.begin("--resume", "latest")
            code = starters[0].wait()
        total = spent(load(made.store, made.runs()[0]))
        assert total.usd + total.low <= made.server.bill.usd <= total.usd + total.high
        assert made.server.bill.requests == total.calls
