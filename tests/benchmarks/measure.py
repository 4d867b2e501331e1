"""How figures are taken and told: against a bare append on the same disk, the least of several, in CPU seconds."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.store.disk import Disk

ROOT = Path(__file__).resolve().parents[2]


def say(name: str, measured: float, goal: float, unit: str = "") -> None:
    """One figure; smaller is better."""
    verdict = "ok" if measured <= goal else "MISSED"
    print(f"{name:58} {measured:10.3f} {unit:3} goal {goal:8.3f}  {verdict}")


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=".bench-", dir=ROOT / "devops"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def bare_appends(home: Path, count: int, size: int = 300) -> list[float]:
    """Seconds of `count` appends, each with its own fdatasync: what nothing durable can beat."""
    fd = os.open(home / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        os.write(fd, b"x" * size)
        os.fdatasync(fd)
        times.append(time.perf_counter() - begun)
    os.close(fd)
    os.unlink(home / "bare")
    return times


class CountingDisk(Disk):
    """Counts syncs and the time they take; may slow them."""

    def __init__(self, slow: float = 0.0) -> None:
        super().__init__()
        self.syncs, self.seconds, self._slow = 0, 0.0, slow

    def sync(self, fd: int) -> None:
        begun = time.perf_counter()
        if self._slow:
            time.sleep(self._slow)
        super().sync(fd)
        self.syncs += 1
        self.seconds += time.perf_counter() - begun

    def sync_folder(self, path: Path) -> None:
        begun = time.perf_counter()
        super().sync_folder(path)
        self.seconds += time.perf_counter() - begun


def best(work: Callable[[], Any], times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    found = []
    for _ in range(times):
        gc.collect()
        begun = clock()
        work()
        found.append(clock() - begun)
    return min(found)


def least_cpu(*commands: list[str], rounds: int = 15) -> list[float]:
    """The least CPU seconds of each command, taken in turns, so that a busy machine is as busy for all of them."""
    found: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, times in zip(commands, found, strict=True):
            begun = children_cpu()
            run_quietly(command)
            times.append(children_cpu() - begun)
    return [min(times) for times in found]


def children_cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run_quietly(command: list[str]) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env, cwd=ROOT)
