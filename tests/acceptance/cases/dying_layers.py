"""A small layered run, and a process that forks one at a time to be killed.

Reads one JSON object a line ({"home", "write"}) and answers {"pid"}; when that process has ended, {"status"}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from pipeline import ControlledExecutor, LayerCheckpoints, TaskResult
from pipeline.clock import SystemClock
from pipeline.formats.casys.tools import TaskCall
from pipeline.store.files import FileStore
from tests.faulty_disk import LazyDisk
from tests.layered import dag, facts

#: Four layers of three.
PLAN = dag(
    *(f"t{layer}{n}: {f't{layer - 1}{n} t{layer - 1}{(n + 1) % 3}' if layer else ''}"
      for layer in range(4) for n in range(3)),
)  # fmt: skip


class DyingDisk(LazyDisk):
    """Counts writes; in the middle of the chosen one the process kills itself."""

    def __init__(self, at: int) -> None:
        self.writes = 0
        self._at = at
        self._lock = threading.Lock()

    def write(self, fd: int, data: bytes) -> int:
        with self._lock:
            self.writes += 1
            mine = self.writes == self._at
        if mine:
            os.write(fd, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(fd, data)


def go(home: Path, disk: DyingDisk) -> str:
    """Begin the run, or go on from its newest checkpoint, or with the run where it has none; its status."""
    clock = SystemClock()
    store = FileStore(home / "runs", clock, disk=disk)
    noted = os.open(home / "ran", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def work(call: TaskCall) -> TaskResult:
        os.write(noted, f"{call.id}\n".encode())
        clock.wait(threading.Event(), 0.005)
        # Some results are too long for a record.
        made: Any = "x" * 40_000 if call.id == "t11" else sorted(call.inputs)
        return TaskResult(made, messages=[call.id], context={call.id: sorted(call.context), "last": call.id})

    executor = ControlledExecutor(PLAN, {"work": work}, store=store)
    runs = [head.run_id for head in store.heads()]
    latest = LayerCheckpoints(store).latest(runs[0]) if runs else None
    if not runs:
        result = executor.execute({"begun": 0})
    else:
        result = executor.resume_from_checkpoint(latest.id if latest else runs[0])
    (home / "facts").write_text(json.dumps(facts(result)))
    (home / "writes").write_text(str(disk.writes))
    return result.status


def child(order: dict[str, Any]) -> None:
    """One run in its own process; never returns."""
    code = 70
    try:
        code = 0 if go(Path(order["home"]), DyingDisk(order["write"])) == "completed" else 71
    finally:
        os._exit(code)


def tell(said: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Fork a run for each line."""
    for line in sys.stdin:
        started = os.fork()
        if started == 0:
            child(json.loads(line))
        tell({"pid": started})
        tell({"status": os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])})


if __name__ == "__main__":
    main()
