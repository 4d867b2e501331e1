"""The clock that library users test with."""

from __future__ import annotations

import threading
from datetime import timedelta

from pipeline.clock import Clock
from pipeline.testing import FakeClock


def test_fake_clock_stands_still_until_told() -> None:
    clock: Clock = FakeClock()
    before = clock.now(), clock.monotonic()
    assert (clock.now(), clock.monotonic()) == before


def test_fake_clock_waits_at_once_and_time_has_passed() -> None:
    clock = FakeClock()
    begun, event = clock.now(), threading.Event()
    assert clock.wait(event, 90.0) is False
    assert (clock.now() - begun, clock.monotonic(), clock.waits) == (timedelta(seconds=90), 90.0, [90.0])
    event.set()
    assert clock.wait(event, 90.0) is True
    assert clock.monotonic() == 90.0


def test_fake_clock_steps_back_without_undoing_durations() -> None:
    clock = FakeClock()
    begun = clock.now()
    clock.advance(10)
    clock.step(-3600)
    assert clock.now() < begun
    assert clock.monotonic() == 10.0


def test_fake_clock_ids_are_new_and_grow() -> None:
    clock = FakeClock()
    ids = [clock.new_id() for _ in range(3)]
    assert sorted(set(ids)) == ids
