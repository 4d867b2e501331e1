"""What tests of a cluster share: a scheduler and two workers as real processes, a store they share, a coordinator."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.servers.billing import BillingServer
from tests.servers.objects import Moto, environ
from tests.servers.objects import moto as moto

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
_TURNS, _TURN_SECONDS = 3000, 0.02


def until(there: Callable[[], Any]) -> None:
    """Return once it is so."""
    never = threading.Event()
    for _ in range(_TURNS):
        if there():
            return
        never.wait(_TURN_SECONDS)
    raise AssertionError("it has not come to that")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Fleet:
    """A cluster on this machine; whatever is killed can be started again."""

    folder: Path
    env: dict[str, str]
    server: BillingServer
    port: int = field(default_factory=_free_port)
    members: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def heal(self) -> None:
        """A scheduler and two workers, all living."""
        if "scheduler" in self.members and self.members["scheduler"].poll() is not None:
            # Its workers have lost it; they go with it.
            self.stop()
            self.port = _free_port()
        begun = [name for name in ("scheduler", "one", "two") if self._begin(name)]
        for name in begun:
            out = self.members[name].stdout
            assert out is not None
            assert out.readline().startswith("tcp://"), (self.folder / f"{name}.log").read_text()[-2000:]

    def _begin(self, name: str) -> bool:
        member = self.members.get(name)
        if member is not None and member.poll() is None:
            return False
        if member is not None:
            self._forget(member)
        script = [sys.executable, str(HERE / "fleet_member.py")]
        role = ["scheduler", str(self.port)] if name == "scheduler" else ["worker", f"tcp://127.0.0.1:{self.port}"]
        with (self.folder / f"{name}.log").open("a") as log:
            self.members[name] = subprocess.Popen(
                [*script, *role], stdout=subprocess.PIPE, stderr=log, text=True, env=self.env, cwd=self.folder
            )
        return True

    def kill(self, name: str) -> None:
        """kill -9."""
        self.members[name].send_signal(signal.SIGKILL)
        self.members[name].wait(20)

    def stop(self) -> None:
        for member in self.members.values():
            member.kill()
            self._forget(member)
        self.members.clear()

    def _forget(self, member: subprocess.Popen[str]) -> None:
        member.wait(20)
        assert member.stdout is not None
        member.stdout.close()

    def begin(self, store: str, *more: str) -> subprocess.Popen[str]:
        """Start a coordinator: the real command line."""
        command = [sys.executable, "-m", "pipeline", "run", str(HERE / "fleet_course.py") + ":PIPELINE", "--json"]
        return subprocess.Popen(
            [*command, "--store", store, "--executor", self.address, "--concurrency", "2", *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.folder,
        )  # fmt: skip

    def run(self, store: str, *more: str) -> dict[str, Any]:
        """A coordinator to its end: what its last line says."""
        return ended(self.begin(store, *more))


def ended(coordinator: subprocess.Popen[str]) -> dict[str, Any]:
    """What a coordinator's last line says."""
    out, err = coordinator.communicate(timeout=120)
    lines = out.splitlines()
    assert lines, err
    result: dict[str, Any] = json.loads(lines[-1])
    return result


@pytest.fixture(scope="session")
def fleet(moto: Moto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One cluster for the whole session."""
    with BillingServer() as server, contextlib.ExitStack() as stack:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "PIPELINE"))}
        env = {
            **kept, **environ(moto.endpoint), "PYTHONPATH": str(ROOT), "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-of-nobody",
        }  # fmt: skip
        found = Fleet(tmp_path_factory.mktemp("fleet"), env, server)
        stack.callback(found.stop)
        yield found
