"""The only source of time, waiting and random ids; tests replace it."""

from __future__ import annotations

import itertools
import os
import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of the program may know of time."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, UTC; it may step back, so it is never an order."""

    def stamp(self) -> str:
        """Return `iso(now())`: every record carries it, so it is made with care for speed."""

    def monotonic(self) -> float:
        """Return seconds that only grow; for durations."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; True if it was set."""

    def new_id(self) -> str:
        """Return a fresh random id: 32 hex digits that sort roughly by time (UUIDv7)."""


class SystemClock:
    """The machine's own clock."""

    def __init__(self) -> None:
        self._count = itertools.count(int.from_bytes(os.urandom(1), "big"))
        self._draw()
        #: The last millisecond asked for: as it is stamped, and as ids of it begin. Most share it.
        self._last = (-1, "", "")
        # A forked child must not go on with its parent's ids.
        os.register_at_fork(after_in_child=self._draw)

    def _draw(self) -> None:
        self._tail = f"{int.from_bytes(os.urandom(8), 'big') & ~(0x3 << 62) | (0x2 << 62):016x}"

    def now(self) -> datetime:
        return datetime.now(UTC)

    def stamp(self) -> str:
        return self._millisecond()[1]

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)

    def new_id(self) -> str:
        # Time, a counter, and bits drawn once for this process: no system call for each id.
        return f"{self._millisecond()[2]}{next(self._count) & 0xFFF:03x}{self._tail}"

    def _millisecond(self) -> tuple[int, str, str]:
        now = time.time_ns() // 1_000_000
        if now != self._last[0]:
            second, rest = divmod(now, 1000)
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._last = (now, f"{text}.{rest:03d}Z", f"{now:012x}7")
        return self._last


def iso(moment: datetime) -> str:
    """Return an aware time as ISO-8601 in UTC with milliseconds and Z."""
    text = moment.isoformat(timespec="milliseconds")
    return text[:-6] + "Z" if text.endswith("+00:00") else iso(moment.astimezone(UTC))


def parse_iso(text: str) -> datetime:
    """Return the aware UTC time that `iso` (or any ISO-8601 text with an offset) wrote."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without an offset: {text!r}")
    return moment.astimezone(UTC)
