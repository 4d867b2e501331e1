"""Public fakes for tests of pipelines: a clock that never waits, a store in memory, a model with a script."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from pipeline.clock import iso
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryAccount, MemoryStore

__all__ = ["FakeClock", "MemoryAccount", "MemoryStore", "ScriptedModel"]


class FakeClock:
    """Time that moves only when it is told to, or on a wait; threads may share it.

    `at` (aware, UTC) may be set to anything, also back. Monotonic seconds only grow.
    """

    def __init__(self, at: datetime = datetime(2026, 1, 9, 14, 30, 22, tzinfo=UTC)) -> None:
        self.at = at
        #: Every wait so far, in seconds.
        self.waits: list[float] = []
        self._seconds = 0.0
        self._ids = 0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self.at

    def stamp(self) -> str:
        return iso(self.at)

    def monotonic(self) -> float:
        return self._seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return at once; unless the event is set already, the time has passed."""
        if event.is_set():
            return True
        with self._lock:
            self.waits.append(seconds)
        self.advance(seconds)
        return event.is_set()

    def new_id(self) -> str:
        with self._lock:
            self._ids += 1
            return f"{self._ids:032x}"

    def advance(self, seconds: float) -> None:
        """Let time pass, on both clocks."""
        with self._lock:
            self._seconds += max(seconds, 0.0)
            self.at += timedelta(seconds=seconds)

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back; nothing else notices."""
        with self._lock:
            self.at += timedelta(seconds=seconds)
