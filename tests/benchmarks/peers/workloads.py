"""The five workloads, in a library's own process: python -m tests.benchmarks.peers.workloads PEER WORKLOAD HOME COUNT.

An adapter says how its library does each; this decides what is timed and prints it, as one line of JSON. Bare appends,
each with its own fdatasync, are made in between, so that library and disk are measured in the same moments.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from tests.benchmarks.measure import ROOT, bare_appends

#: What a step does: it takes its number and returns what is to be kept of it.
Body = Callable[[int], dict[str, Any]]
#: So many bytes of text in the state, as hex digits of random bytes.
_STATE_BYTES = 5_000_000
#: A body makes bare appends every so many steps; the step after them is not counted.
_EVERY = 20
#: Seconds after which a library's process is ended.
_PATIENCE = 240


class Peer(ABC):
    """A library that makes steps durable, with what it keeps in one folder."""

    #: The packages whose versions are told.
    PACKAGES: ClassVar[tuple[str, ...]]
    #: When a finished step is safe, and from what.
    DURABILITY: ClassVar[str]
    #: Workload → why the library refuses it.
    REFUSED: ClassVar[dict[str, str]] = {}

    def __init__(self, home: Path) -> None:
        self.home = home

    @classmethod
    def versions(cls) -> dict[str, str]:
        return {name: version(name) for name in cls.PACKAGES}

    @classmethod
    def served(cls, home: Path) -> AbstractContextManager[None]:
        """Run the server that the library needs beside its process, if it needs one, as long as the block."""
        return nullcontext()

    def kept(self) -> int:
        """Return how many bytes are kept of all runs."""
        return sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())

    @abstractmethod
    def chain(self, count: int, body: Body) -> None:
        """Run `count` durable steps, one after the other; what each returns is in the state of those after it."""

    @abstractmethod
    def resume(self, count: int, body: Body) -> None:
        """Continue the chain of a process that was killed."""

    @abstractmethod
    def fan(self, count: int, at_once: int, body: Body) -> None:
        """Run `count` durable tasks, so many at once."""

    @abstractmethod
    def fill(self, runs: int) -> None:
        """Make so many finished runs; one is real, the others may be its copies under other ids and times."""

    @abstractmethod
    def newest(self, count: int) -> int:
        """List the newest runs; return how many came."""


class Stopwatch:
    """A body that notes when steps begin and end, and makes bare appends in between."""

    def __init__(self, home: Path) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.bare: list[float] = []
        self._home = home

    def __call__(self, number: int) -> dict[str, Any]:
        self.starts.append(time.perf_counter())
        if number % _EVERY == 0:
            self.bare.extend(bare_appends(self._home, _EVERY))
        self.ends.append(time.perf_counter())
        return {"n": number}

    def between(self, first: int, last: int) -> float:
        """Return the median seconds from the end of one body to the begin of the next."""
        pairs = list(zip(self.ends, self.starts[1:], strict=False))
        return statistics.median(
            begun - ended for number, (ended, begun) in enumerate(pairs) if first <= number < last and number % _EVERY
        )


def steps(peer: Peer, count: int) -> dict[str, Any]:
    """A step that does nothing, durable, in bare appends."""
    watch = Stopwatch(peer.home)
    peer.chain(count, watch)
    assert len(watch.starts) == count
    return {"step": watch.between(0, count) / statistics.median(watch.bare)}


def state(peer: Peer, count: int) -> dict[str, Any]:
    """5 MB in the state from the middle of the chain on: a step after it by one before; bytes kept by 5 MB."""
    watch = Stopwatch(peer.home)
    text = os.urandom(_STATE_BYTES // 2).hex()
    before = peer.kept()
    peer.chain(count, lambda number: watch(number) | ({"v": text} if number == count // 2 else {}))
    return {
        "later": watch.between(count // 2 + 1, count) / watch.between(0, count // 2),
        "kept": (peer.kept() - before) / _STATE_BYTES,
    }


def begin(peer: Peer, count: int) -> dict[str, Any]:
    """The chain, killed in its middle."""

    def body(number: int) -> dict[str, Any]:
        if number == count // 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"n": number}

    peer.chain(count, body)
    raise AssertionError("it was to be killed")


def resume(peer_class: type[Peer], home: Path, count: int) -> dict[str, Any]:
    """From opening the library to the first step that was not done, in bare appends; and which were done again."""
    bare = statistics.median(bare_appends(home, 100))
    begun = time.perf_counter()
    again: list[int] = []

    def body(number: int) -> dict[str, Any]:
        if number == count // 2:
            print(json.dumps({"resume": (time.perf_counter() - begun) / bare, "again": len(again)}), flush=True)
            os._exit(0)
        again.append(number)
        return {"n": number}

    peer_class(home).resume(count, body)
    raise AssertionError("it ended without the step at which it was killed")


def fan(peer: Peer, count: int) -> dict[str, Any]:
    """Tasks of 50 ms, 50 at once, by what they take without a library."""
    done = []

    def body(number: int) -> dict[str, Any]:
        time.sleep(0.05)
        done.append(number)
        return {"n": number}

    # What is made at the first use is not counted.
    peer.fan(2, 50, lambda number: {"n": number})
    begun = time.perf_counter()
    peer.fan(count, 50, body)
    spent = time.perf_counter() - begun
    assert sorted(done) == list(range(count))
    return {"fan": spent / (0.05 * -(-count // 50))}


def newest(peer: Peer, count: int) -> dict[str, Any]:
    """The newest 50 of so many runs, in bare appends."""
    peer.fill(count)
    spent: list[float] = []
    for _ in range(8):
        begun = time.perf_counter()
        assert peer.newest(min(50, count)) == min(50, count)
        spent.append(time.perf_counter() - begun)
    return {"newest": statistics.median(spent[1:]) / statistics.median(bare_appends(peer.home, 100))}


def about(peer_class: type[Peer]) -> dict[str, Any]:
    """Return versions and durability."""
    return {"versions": peer_class.versions(), "durability": peer_class.DURABILITY}


def load(name: str) -> type[Peer]:
    """Return the adapter of a library: the class Adapter of the module of that name."""
    found: type[Peer] = importlib.import_module(f"tests.benchmarks.peers.{name}").Adapter
    return found


@contextmanager
def server(command: list[str], home: Path, port: int) -> Iterator[None]:
    """Run a server of one's own as long as the block, which begins when it takes connections at its port."""
    with (home / "server.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert running.poll() is None, (home / "server.log").read_text()[-2000:]
            time.sleep(0.1)
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run(name: str, workload: str, home: Path, count: int) -> dict[str, Any]:
    """Run one workload of a library in processes of their own and return what it measured."""
    peer_class = load(name)
    if workload in peer_class.REFUSED:
        return {"refused": peer_class.REFUSED[workload]}
    with peer_class.served(home):
        if workload == "resume":
            process(name, "begin", home, count)
        return process(name, workload, home, count)


def process(name: str, workload: str, home: Path, count: int) -> dict[str, Any]:
    """Run a part of a workload; one that is to be killed returns nothing."""
    module = "tests.benchmarks.peers.workloads"
    command = [sys.executable, "-m", module, "--inside", name, workload, str(home), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if workload == "begin" and done.returncode == -signal.SIGKILL:
        return {}
    if done.returncode:
        raise SystemExit(f"{name}, {workload}: exit {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def inside(name: str, workload: str, home: Path, count: int) -> dict[str, Any]:
    peer_class = load(name)
    if workload == "about":
        return about(peer_class)
    if workload == "resume":
        return resume(peer_class, home, count)
    workloads = {"steps": steps, "state": state, "begin": begin, "fan": fan, "newest": newest}
    return workloads[workload](peer_class(home), count)


if __name__ == "__main__":
    *flags, chosen, what, where, number = sys.argv[1:]
    measured = inside if flags else run
    # So that a server ends, too, where this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    print(json.dumps(measured(chosen, what, Path(where), int(number))), flush=True)
    # A library's threads do not keep the process.
    os._exit(0)
