"""Journal lines, and a clock that stands still, for tests of stores."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pipeline.clock import iso
from pipeline.records.charge import Charge
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import CallEnded, CallStarted, Fact, RunEnded, RunStarted, StepCompleted, StepStarted
from pipeline.records.lines import encode_line
from pipeline.store.base import Claim

AT = datetime(2026, 1, 9, 14, 30, 22, tzinfo=UTC)
CLAIM = Claim("lessons", "mathematics", "national_5", "model")
OFFLINE = Claim("lessons", "mathematics", "national_5", "offline")


class StillClock:
    """Time that moves only when a test moves it."""

    def __init__(self, at: datetime = AT) -> None:
        self.at = at
        self._ids = 0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self.at

    def stamp(self) -> str:
        return iso(self.at)

    def monotonic(self) -> float:
        return 0.0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.at += timedelta(seconds=seconds)
        return event.is_set()

    def new_id(self) -> str:
        with self._lock:
            self._ids += 1
            return f"{self._ids:032x}"


def line(seq: int, fact: Fact, *, at: datetime = AT, owner: int = 1) -> bytes:
    """One journal line."""
    return encode_line(seq, iso(at), owner, encode_fact(fact))


def started(
    claim: Claim | None = None, *, at: datetime = AT, pins: Mapping[str, str] | None = None, format: int = 1
) -> bytes:
    """A first line."""
    params = {"subject": "mathematics", "level": "national_5"}
    fact = RunStarted(
        "lessons", params, {"author": "model"}, {}, pins or {}, claim.to_json() if claim else None, format=format
    )
    return line(1, fact, at=at)


def ended(seq: int, status: str = "completed", detail: str | None = None, *, at: datetime = AT) -> bytes:
    """A last line."""
    return line(seq, RunEnded(status, detail), at=at)


def small_run() -> list[bytes]:
    """A run of two steps with one paid call, line by line."""
    charge = Charge("exact", Decimal("1.85"), Decimal("1.85"), tokens={"input": 1000, "output": 500})
    facts: Sequence[Fact] = (
        StepStarted("seed#1"),
        StepCompleted("seed#1", {"course_id": "course_c84775"}, "1", edges=["seed->sow"]),
        StepStarted("sow#1", consumed=[["seed->sow", "seed#1"]]),
        CallStarted("sow#1", "key", "claude-sonnet-5-5", "request", worst="2.00"),
        CallEnded(5, b'{"text":"a scheme"}', charge.to_json(), stop_reason="end_turn"),
        StepCompleted("sow#1", {"lesson_count": 18}, "2", edges=["sow->lessons"]),
    )
    return [started(), *(line(seq, fact) for seq, fact in enumerate(facts, 2))]
