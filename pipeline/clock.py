"""The only source of time, waiting and random ids; tests replace it."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of the program may know of time."""

    def now(self) -> datetime:
        """Wall-clock time, aware, UTC; may step back: never an order."""

    def monotonic(self) -> float:
        """Seconds that only grow; for durations."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; True if it was set."""

    def new_id(self) -> str:
        """A fresh random id: 32 hex digits that sort roughly by time (UUIDv7)."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)

    def new_id(self) -> str:
        millis = time.time_ns() // 1_000_000
        rand = int.from_bytes(os.urandom(10), "big")
        value = (millis << 80) | rand
        value = (value & ~(0xF << 76)) | (0x7 << 76)
        value = (value & ~(0x3 << 62)) | (0x2 << 62)
        return f"{value:032x}"


def iso(moment: datetime) -> str:
    """An aware time as ISO-8601 in UTC with milliseconds and Z."""
    text = moment.isoformat(timespec="milliseconds")
    return text[:-6] + "Z" if text.endswith("+00:00") else iso(moment.astimezone(UTC))


def parse_iso(text: str) -> datetime:
    """The aware UTC time that `iso` (or any ISO-8601 text with an offset) wrote."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without an offset: {text!r}")
    return moment.astimezone(UTC)
