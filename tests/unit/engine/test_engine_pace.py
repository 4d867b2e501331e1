"""How many calls are in flight: more while all goes well, half after a busy provider, one first after a pause."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from pipeline.engine.pace import FIRST, MOST, Pace
from pipeline.engine.stop import Stop
from pipeline.errors import ModelRejected, ModelUnavailable, Pause, PipelineError
from pipeline.llm.base import Message, Reply, Request
from pipeline.testing import FakeClock

ASKED = Request("scripted", [Message("user", "?")], max_tokens=400)
UNTOLD: Mapping[str, float] = {}


def pace(**more: Any) -> tuple[Pace, FakeClock, Stop]:
    clock = FakeClock()
    stop = Stop(clock)
    return Pace(clock, stop, **{"most": MOST, "adaptive": True, **more}), clock, stop


def round_of(made: Pace, clock: FakeClock, limits: Mapping[str, float] = UNTOLD) -> int:
    """As many calls at once as may be in flight, all answered a second later; how many."""
    count = made.limit
    with ExitStack() as places:
        turns = [places.enter_context(made.turn(ASKED)) for _ in range(count)]
        clock.advance(1)
        for turn in turns:
            turn.reply = Reply("", "end_turn", limits=limits)
    return count


def busy(
    made: Pace,
    clock: FakeClock,
    status: int = 429,
    limits: Mapping[str, float] = UNTOLD,
    retry_after: float | None = None,
) -> None:
    clock.advance(1)
    with pytest.raises(ModelUnavailable), made.turn(ASKED):
        raise ModelUnavailable("busy", status=status, limits=limits, retry_after=retry_after)


def test_pace_reaches_the_most_within_three_rounds_where_nothing_stands_in_the_way() -> None:
    made, clock, _ = pace()
    assert [round_of(made, clock) for _ in range(4)] == [FIRST, 4 * FIRST, MOST, MOST]


def test_pace_knows_after_one_round_where_the_provider_tells_its_limit() -> None:
    made, clock, _ = pace()
    round_of(made, clock, {"requests": 4000, "requests_left": 3990})
    assert made.limit == MOST


def test_pace_does_not_grow_while_fewer_calls_go_out_than_may() -> None:
    made, _, _ = pace()
    for _ in range(100):
        with made.turn(ASKED) as turn:
            turn.reply = Reply("", "end_turn")
    assert made.limit == FIRST


def test_pace_is_halved_by_a_busy_provider_lets_one_call_go_first_and_then_all_of_the_half() -> None:
    made, clock, _ = pace()
    while made.limit < MOST:
        round_of(made, clock)
    busy(made, clock, 529)
    assert [round_of(made, clock) for _ in range(2)] == [1, 32]
    # From what was good before, one more a round.
    after = [round_of(made, clock) for _ in range(5)]
    assert after == sorted(after)
    assert 32 <= after[0] <= after[-1] <= 36


def test_pace_counts_all_refusals_of_calls_that_left_before_the_first_as_one() -> None:
    made, clock, _ = pace()
    while made.limit < MOST:
        round_of(made, clock)
    turns = [made.turn(ASKED) for _ in range(MOST)]
    for turn in turns:
        turn.__enter__()
    clock.advance(1)
    for turn in turns:
        error = ModelUnavailable("busy", status=529)
        assert not turn.__exit__(ModelUnavailable, error, None)
    assert made.limit == 1
    assert [round_of(made, clock) for _ in range(2)] == [1, MOST // 2]


def test_pace_of_a_fixed_number_comes_back_to_it_one_call_first_after_a_pause() -> None:
    made, clock, _ = pace(most=10, adaptive=False)
    assert made.limit == 10
    busy(made, clock)
    assert [round_of(made, clock) for _ in range(3)] == [1, 10, 10]


def test_pace_lets_calls_go_at_once_after_a_pause_that_was_named_but_one_first_if_that_is_no_use_twice() -> None:
    made, clock, _ = pace(most=4, adaptive=False)
    widths = []
    for _ in range(4):
        busy(made, clock, retry_after=1.0)
        widths.append(made.limit)
    assert widths == [4, 4, 1, 1]
    assert [round_of(made, clock) for _ in range(2)] == [1, 4]


def test_pace_after_a_rate_limit_lets_as_many_go_as_were_answered_before_it() -> None:
    made, clock, _ = pace(most=32, adaptive=False)
    busy(made, clock, retry_after=1.0)
    assert made.limit == FIRST
    for _ in range(3):
        with made.turn(ASKED) as turn:
            turn.reply = Reply("", "end_turn")
    busy(made, clock, retry_after=1.0)
    assert made.limit == 3
    with made.turn(ASKED) as turn:
        turn.reply = Reply("", "end_turn")
    busy(made, clock, retry_after=1.0)
    assert [round_of(made, clock) for _ in range(2)] == [1, 2]
    # Of an overload they say nothing.
    busy(made, clock, 529)
    assert made.limit == FIRST


def test_pace_lets_the_call_go_first_again_that_went_first_and_was_refused() -> None:
    made, clock, _ = pace(most=4, adaptive=False)
    busy(made, clock, 529)
    left: list[str] = []

    def other() -> None:
        with made.turn(ASKED):
            left.append("other")

    thread = threading.Thread(target=other)
    clock.advance(1)
    with pytest.raises(ModelUnavailable), made.turn(ASKED):  # noqa: PT012
        thread.start()
        raise ModelUnavailable("busy", status=529)
    with made.turn(ASKED):
        left.append("first")
    thread.join()
    assert left == ["first", "other"]


def test_pace_is_not_moved_by_what_is_no_overload() -> None:
    made, clock, _ = pace()
    clock.advance(1)
    with pytest.raises(ModelRejected), made.turn(ASKED):
        raise ModelRejected("wrong", status=400)
    assert made.limit == FIRST


def test_pace_waits_no_longer_where_the_run_stops() -> None:
    made, _, stop = pace(most=1, adaptive=False)
    with made.turn(ASKED):
        stop.request("interrupted", PipelineError("stop"))
        with pytest.raises(Pause), made.turn(ASKED):
            raise AssertionError("a second call left")


@pytest.mark.parametrize("adaptive", [True, False])
def test_pace_spreads_calls_over_the_minute_once_it_knows_the_limit(adaptive: bool) -> None:
    made, clock, _ = pace(adaptive=adaptive)
    with made.turn(ASKED) as turn:
        turn.reply = Reply("", "end_turn", limits={"requests": 60, "requests_left": 0})
    for _ in range(5):
        with made.turn(ASKED):
            pass
    assert len(clock.waits) >= 5
    assert 4.9 < clock.monotonic() < 5.6


def test_pace_lets_calls_trickle_after_a_refusal_whose_limit_is_known() -> None:
    made, clock, _ = pace(most=32, adaptive=False)
    with made.turn(ASKED) as turn:
        turn.reply = Reply("", "end_turn", limits={"requests": 60, "requests_left": 59})
    busy(made, clock, 429, {"requests": 60, "requests_left": 0})
    left: list[float] = []

    def call() -> None:
        with made.turn(ASKED):
            left.append(clock.monotonic())

    threads = [threading.Thread(target=call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(sum(at <= other < at + 1 for other in left) for at in left) == 1


def test_pace_gives_back_what_a_call_that_never_left_had_taken() -> None:
    made, clock, _ = pace(most=4, adaptive=False)
    with made.turn(ASKED) as turn:
        turn.reply = Reply("", "end_turn", limits={"requests": 60, "requests_left": 1})
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt), made.turn(ASKED):
            raise KeyboardInterrupt
    assert not clock.waits


def test_pace_shares_what_another_has_learnt_of_the_limits() -> None:
    clock = FakeClock()
    first = Pace(clock, Stop(clock), most=1)
    with first.turn(ASKED) as turn:
        turn.reply = Reply("", "end_turn", limits={"requests": 60, "requests_left": 0})
    second = Pace(clock, Stop(clock), most=1, like=first)
    begun = clock.monotonic()
    for _ in range(3):
        with second.turn(ASKED) as turn:
            turn.reply = Reply("", "end_turn", limits={"requests": 60, "requests_left": 0})
    # A call a second, from the first on.
    assert clock.monotonic() - begun >= 3
