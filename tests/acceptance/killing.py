"""What kill tests share: a process that forks starts, a course with its own server and store, a signal at a moment."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.clock import SystemClock
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import SqlBackend
from pipeline.store.url import open_store
from tests.acceptance.partner import Partner
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer
from tests.servers.mishaps import Plan

LESSONS = 4
LATENCY = 0.03
CLOCK = SystemClock()


class Starter(Partner):
    """A process that has written a course, and forks a start whenever it is told to."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).with_name("starter.py"))
        self._last = -1

    def start(self, argv: Sequence[str], env: Mapping[str, str], log: Path) -> int:
        """Start the program; its pid."""
        self._last = int(self.tell({"argv": argv, "env": env, "log": str(log)})["pid"])
        return self._last

    def wait(self, pid: int = 0) -> int:
        """The exit code of a process (of that started last), or minus the signal that ended it."""
        return int(self.tell({"wait": pid or self._last})["status"])

    def first_to_end(self) -> tuple[int, int]:
        """Wait for any of them: its pid, and its exit code."""
        said = self.tell({"wait": -1})
        return int(said["pid"]), int(said["status"])


@dataclass
class Course:
    """One store, one server, one output folder."""

    home: Path
    server: BillingServer
    starter: Starter
    #: Options of every start.
    options: tuple[str, ...] = ()
    #: The store's URL; "": a folder in `home`.
    url: str = ""
    #: What a start finds in its environment beside the model's server.
    env: dict[str, str] = field(default_factory=dict)
    lessons: int = LESSONS

    def __post_init__(self) -> None:
        self.url = self.url or f"files:{self.home / 'store'}"

    @property
    def store(self) -> RunStore:
        store = open_store(self.url, CLOCK)
        assert isinstance(store, RunStore)
        return store

    def begin(self, *more: str) -> int:
        """Start or go on; the pid."""
        argv = ["lessons", "--store", self.url, "--out", str(self.home / "out"), "--quiet", *self.options, *more]
        env = {"ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": self.server.url, **self.env}
        return self.starter.start(argv, env, self.home / "log.txt")

    def new(self) -> int:
        return self.begin("--subject", "maths", "--level", "n5", "--lessons", str(self.lessons))

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
def course(
    home: Path, starter: Starter, faults: str = "", seed: int = 0, *, url: str = "", env: dict[str, str] | None = None
) -> Iterator[Course]:
    home.mkdir(parents=True)
    with BillingServer(plan=Plan(faults, seed), responder=answer, latency=LATENCY) as server:
        made = Course(home, server, starter, url=url, env=env or {})
        yield made
        if made.url.startswith("postgresql:"):
            # One connection of each of some hundred databases is more than a server has.
            backend = made.store.backend
            assert isinstance(backend, SqlBackend)
            backend.database.close_idle()


def kill_at(pid: int, moment: float, number: int) -> None:
    """Send a signal after `moment` seconds; a process that has ended is left alone."""
    CLOCK.wait(threading.Event(), moment)
    if not has_ended(pid):
        os.kill(pid, number)


def kill_after(server: BillingServer, pid: int, requests: int, seconds: float, number: int) -> None:
    """Send a signal some seconds after so many requests have come, however slow the machine is."""
    wanted = server.bill.requests + requests
    while server.bill.requests < wanted and not has_ended(pid):
        CLOCK.wait(server.stopping, 0.002)
    kill_at(pid, seconds, number)


def has_ended(pid: int) -> bool:
    """Return whether a process has ended; its parent need not have been told."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
