"""How fast calls leave: within a provider's limit and close to it, more at once while all goes well."""

from __future__ import annotations

import heapq
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engine.pace import FIRST, MOST, Bucket, Pace
from pipeline.engine.stop import Stop
from pipeline.errors import ModelRejected, ModelUnavailable, Pause, PipelineError
from pipeline.testing import FakeClock


class Provider:
    """A limit of so many requests a minute, kept as a bucket that fills evenly."""

    def __init__(self, a_minute: int) -> None:
        self.limit = float(a_minute)
        self.level = self.limit
        self.at = 0.0

    def call(self, now: float) -> tuple[bool, float]:
        """Whether it is taken, and what is left."""
        self.level = min(self.level + (now - self.at) * self.limit / 60, self.limit)
        self.at = now
        taken = self.level >= 1
        self.level -= taken
        return taken, float(int(self.level))


def simulate(a_minute: int, latency: float, minutes: int, others: float = 0.0) -> tuple[float, float]:
    """Share of what is allowed that is used after the first minute, and share of refusals among those calls."""
    provider, bucket = Provider(a_minute), Bucket()
    answers: list[tuple[float, float]] = []
    used = refused = 0
    now, out = 0.0, 0
    next_other = 0.0
    while now < minutes * 60:
        while answers and answers[0][0] <= now:
            _, left = heapq.heappop(answers)
            out -= 1
            bucket.learn(a_minute, left, now, out)
        if others and now >= next_other:
            provider.call(now)
            next_other += others
        wait = bucket.take(now) if out < MOST else latency / 10
        if wait:
            now += max(min(wait, answers[0][0] - now if answers else wait), 1e-4)
            continue
        taken, left = provider.call(now)
        out += 1
        heapq.heappush(answers, (now + latency, left))
        if not taken:
            bucket.empty(now)
        if now >= 60:
            used += taken
            refused += not taken
    return used / (a_minute * (minutes - 1)), refused / max(used + refused, 1)


@settings(max_examples=15, deadline=None)
@given(a_minute=st.integers(20, 1000), latency=st.floats(0.2, 3.0))
def test_pace_uses_nearly_all_that_is_allowed_and_is_hardly_ever_refused(a_minute: int, latency: float) -> None:
    used, refused = simulate(a_minute, latency, 4)
    most = min(1.0, MOST / latency * 60 / a_minute)
    assert used >= 0.94 * most
    assert refused <= 0.02


def test_pace_leaves_room_for_others_who_call_too() -> None:
    used, refused = simulate(120, 1.0, 4, others=2.0)
    assert used > 0.5
    assert refused < 0.2


def pace(**more: Any) -> tuple[Pace, FakeClock, Stop]:
    clock = FakeClock()
    stop = Stop(clock)
    return Pace(clock, stop, **{"most": MOST, "adaptive": True, **more}), clock, stop


def busy(made: Pace, status: int = 429) -> None:
    with pytest.raises(ModelUnavailable), made.turn():
        raise ModelUnavailable("busy", status=status)


def test_pace_grows_by_one_a_round_of_answers_and_is_halved_once_by_a_busy_provider() -> None:
    made, clock, _ = pace()
    assert made.limit == FIRST

    def round_of() -> None:
        barrier = threading.Barrier(made.limit)

        def call() -> None:
            with made.turn():
                barrier.wait()
                barrier.wait()

        threads = [threading.Thread(target=call) for _ in range(made.limit)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    before = made.limit
    for _ in range(30):
        round_of()
    assert before < made.limit
    grown = made.limit
    clock.advance(1)
    busy(made)
    assert made.limit == grown // 2
    # The same moment's other refusals halve nothing more; a later one does.
    busy(made)
    assert made.limit == grown // 2
    clock.advance(1)
    busy(made, 529)
    assert made.limit == max(grown // 4, 1)


def test_pace_is_not_moved_by_what_is_no_overload_nor_where_the_number_is_fixed() -> None:
    made, clock, _ = pace()
    clock.advance(1)
    with pytest.raises(ModelRejected), made.turn():
        raise ModelRejected("wrong", status=400)
    assert made.limit == FIRST
    fixed, clock, _ = pace(most=3, adaptive=False)
    clock.advance(1)
    busy(fixed)
    assert fixed.limit == 3


def test_pace_waits_no_longer_where_the_run_stops() -> None:
    made, _, stop = pace(most=1, adaptive=False)
    with made.turn():
        stop.request("interrupted", PipelineError("stop"))
        with pytest.raises(Pause), made.turn():
            raise AssertionError("a second call left")


def test_pace_spreads_calls_over_the_minute_once_it_knows_the_limit() -> None:
    made, clock, _ = pace()
    with made.turn():
        made.learn({"requests": 60, "remaining": 0})
    for _ in range(5):
        with made.turn():
            pass
    assert len(clock.waits) >= 5
    assert 4.9 < clock.monotonic() < 5.6
