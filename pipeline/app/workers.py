"""Says that a dask cluster has no worker while tasks wait for one, what to do, and when one has come."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.engine.events import Emitter

#: Between two looks, and after how long without a worker it is said: one that is started anew is there by then.
_LOOK_SECONDS, _SAID_AFTER = 1.0, 5.0


def how_to_start(what: str) -> str:
    """What to type in the folder of this program, on whatever host: `scheduler --port N`, `worker HOST:PORT`."""
    return f"`PYTHONPATH=$PWD .venv/bin/dask {what}`"


class Watch:
    """Looks now and then how many workers a cluster has."""

    def __init__(self, client: Any, address: str, emit: Emitter, clock: Clock) -> None:
        """Nothing is looked at yet.

        Args:
            client: Of the cluster; its futures are the tasks that are out.
            address: HOST:PORT of the scheduler; "": the workers are this command's own.
        """
        self._client = client
        self._address = address
        self._emit = emit
        self._clock = clock
        #: Since when tasks have waited without a worker; None: they have not. Whether it was said.
        self._since: float | None = None
        self._said = False

    def begin(self) -> bool:
        """Say at once that there is none, before a task is out; whether there is one."""
        self._said = not self._workers()
        if self._said:
            self._since = self._clock.monotonic()
            self._emit("note", text=f"The scheduler at {self._address} has no worker yet; tasks wait for one. "
                       + self._what_to_do())  # fmt: skip
        return not self._said

    def look(self) -> None:
        """Say what has changed."""
        if self._workers():
            if self._said:
                self._emit("note", text="A worker has come; the run goes on.")
            self._since, self._said = None, False
            return
        waiting = sum(future.status == "pending" for future in list(self._client.futures.values()))
        if not waiting or self._said:
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= _SAID_AFTER:
            self._said = True
            where = f"at {self._address}" if self._address else "there"
            tasks = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
            self._emit("note", text=f"No worker is {where}, and {tasks} for one. {self._what_to_do()}")

    def _workers(self) -> int:
        # Without the list of them, which may be long.
        return int(self._client.scheduler_info(n_workers=0).get("n_workers", 0))

    def _what_to_do(self) -> str:
        if not self._address:
            return "A new one is being started; the run goes on by itself once it is there."
        command = how_to_start(f"worker {self._address}")
        return f"Start one in the folder of this program: {command}. The run goes on by itself then."


@contextlib.contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Within this it is looked again and again."""
    done = threading.Event()
    threading.Thread(target=_look_on, args=(watch, done), name="workers", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _look_on(watch: Watch, done: threading.Event) -> None:
    clock = SystemClock()
    while not clock.wait(done, _LOOK_SECONDS):
        # A scheduler that is gone, or a client that has just been closed, is the run's to tell.
        with contextlib.suppress(Exception):
            watch.look()
