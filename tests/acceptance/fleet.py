"""What tests of a cluster share: a scheduler and two workers as real processes, a store they share, coordinators."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import fleet_member
from tests.servers.billing import BillingServer
from tests.servers.objects import Moto, environ
from tests.servers.objects import moto as moto
from tests.servers.ports import free_ports

HERE = Path(__file__).parent
_TURNS, _TURN_SECONDS = 15_000, 0.02
#: Children of a process that has imported what they need; see the fixture `forks`.
FORKS = multiprocessing.get_context("forkserver")


@dataclass
class Coordinator:
    """The real command line in a process of its own."""

    process: BaseProcess
    out: Path
    log: Path
    #: Where all of them are, as text.
    whereabouts: Callable[[], str]

    def until(self, there: Callable[[], Any]) -> None:
        """Return once it is so; it ends not before."""
        for _ in range(_TURNS):
            if there():
                return
            assert self.process.is_alive(), self.out.read_text() + self.log.read_text()
            self.process.join(_TURN_SECONDS)
        raise AssertionError("it has not come to that")

    def until_asked(self, server: BillingServer) -> None:
        """Return once there is one paid request more, or it has ended."""
        before = server.bill.requests
        while self.process.is_alive() and server.bill.requests <= before:
            self.process.join(_TURN_SECONDS)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.join(20)

    def ended(self) -> dict[str, Any]:
        """What its last line says, once it has ended."""
        self.process.join(300)
        # A line of a run that still goes on would be taken for its last one.
        assert not self.process.is_alive(), f"it has not ended: {self.out.read_text()}{self.whereabouts()}"
        lines = self.out.read_text().splitlines()
        assert lines, self.log.read_text()
        result: dict[str, Any] = json.loads(lines[-1])
        return result


@dataclass
class Fleet:
    """A cluster on this machine; whatever is killed can be started again."""

    folder: Path
    env: dict[str, str]
    server: BillingServer
    port: int = field(default_factory=lambda: free_ports(1)[0])
    members: dict[str, BaseProcess] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def address(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def heal(self) -> None:
        """A scheduler and two workers, all living."""
        if "scheduler" in self.members and not self.members["scheduler"].is_alive():
            # Its workers have lost it; they go with it.
            self.stop()
            (self.port,) = free_ports(1)
        begun = {name: said for name in ("scheduler", "one", "two") if (said := self._begin(name))}
        for name, said in begun.items():
            assert said.poll(300), (self.folder / f"{name}.log").read_text()[-2000:]
            assert said.recv().startswith("tcp://")
            said.close()

    def _begin(self, name: str) -> Any:
        """Start a member that does not live; where it will say its address."""
        member = self.members.get(name)
        if member is not None and member.is_alive():
            return None
        role, place = (
            ("scheduler", str(self.port)) if name == "scheduler" else ("worker", f"tcp://127.0.0.1:{self.port}")
        )
        hears, says = FORKS.Pipe(duplex=False)
        log = str(self.folder / f"{name}.log")
        self.members[name] = FORKS.Process(target=fleet_member.serve, args=(role, place, self.env, log, says))
        self.members[name].start()
        says.close()
        return hears

    def kill(self, name: str) -> None:
        """kill -9."""
        self.members[name].kill()
        self.members[name].join(20)

    def stop(self) -> None:
        for name in self.members:
            self.kill(name)
        self.members.clear()

    def begin(self, store: str, *more: str, host: str = "") -> Coordinator:
        """Start a coordinator; as one of that host."""
        argv = ["run", str(HERE / "fleet_course.py") + ":PIPELINE", "--json", "--store", store]
        argv += ["--executor", self.address, "--concurrency", "2", *more]
        number = next(self._numbers)
        out, log = self.folder / f"out-{number}.txt", self.folder / f"log-{number}.txt"
        process = FORKS.Process(target=fleet_member.coordinate, args=(argv, self.env, str(out), str(log), host))
        process.start()
        return Coordinator(process, out, log, lambda: self._whereabouts({**self.members, out.stem: process}, log))

    def _whereabouts(self, processes: Mapping[str, BaseProcess], log: Path) -> str:
        """The stacks of all threads of the living, at the end of what they have logged."""
        for process in processes.values():
            if process.is_alive():
                os.kill(process.pid or 0, signal.SIGUSR1)
                process.join(1)
        logs = [*(self.folder / f"{name}.log" for name in self.members), log]
        return "".join(f"\n{log.name}:\n{log.read_text()[-8000:]}" for log in logs)

    def run(self, store: str, *more: str, host: str = "") -> dict[str, Any]:
        """A coordinator to its end: what its last line says."""
        return self.begin(store, *more, host=host).ended()


@pytest.fixture(scope="session")
def forks() -> None:
    """The process that children are forked from begins its imports; only its environment tells it where from."""
    FORKS.set_forkserver_preload(fleet_member.WARM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE.parent.parent))
        forkserver.ensure_running()


@pytest.fixture(scope="session")
def fleet(forks: None, moto: Moto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One cluster for the whole session."""
    with BillingServer() as server, contextlib.ExitStack() as stack:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "PIPELINE"))}
        env = {
            **kept, **environ(moto.endpoint), "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-of-nobody",
        }  # fmt: skip
        found = Fleet(tmp_path_factory.mktemp("fleet"), env, server)
        stack.callback(found.stop)
        yield found
