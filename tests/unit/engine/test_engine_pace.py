"""How many calls are in flight and how fast they leave: within the limits of a provider, and close to them."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import Pipeline, Reply, Request, StepContext, step
from pipeline.engine.pace import FIRST, MOST, Allowance, Need, Pace
from pipeline.engine.stop import Stop
from pipeline.errors import ModelRejected, ModelUnavailable, Pause, PipelineError
from pipeline.llm.base import ModelInfo
from pipeline.llm.faults import limits as told
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.servers.rate_limits import RateLimits
from tests.unit.engine.saying import ask

ASKED = ask("?" * 400, max_tokens=4000)
UNTOLD: Mapping[str, float] = {}


class Road:
    """A pace, and calls that go by it."""

    def __init__(
        self, most: int = MOST, *, adaptive: bool = False, clock: FakeClock | None = None, like: Pace | None = None
    ) -> None:
        self.clock = clock or FakeClock()
        self.stop = Stop(self.clock)
        self.pace = Pace(self.clock, self.stop, most=most, adaptive=adaptive, like=like)

    def call(self, limits: Mapping[str, float] = UNTOLD) -> float:
        """One call that is answered at once; when it left."""
        with self.pace.turn(ASKED) as turn:
            turn.reply = Reply("", "end_turn", limits=limits)
            return self.clock.monotonic()

    def round(self, limits: Mapping[str, float] = UNTOLD) -> int:
        """As many calls at once as may be in flight, all answered a second later; how many."""
        count = self.pace.limit
        with ExitStack() as places:
            turns = [places.enter_context(self.pace.turn(ASKED)) for _ in range(count)]
            self.clock.advance(1)
            for turn in turns:
                turn.reply = Reply("", "end_turn", limits=limits)
        return count

    def busy(self, status: int = 429, **more: Any) -> int:
        """One call that is refused; how many may be in flight then."""
        self.clock.advance(1)
        with pytest.raises(ModelUnavailable), self.pace.turn(ASKED):
            raise ModelUnavailable("busy", status=status, **more)
        return self.pace.limit

    def opened(self) -> Road:
        while self.pace.limit < MOST:
            self.round()
        return self


def test_pace_reaches_the_most_within_three_rounds_where_nothing_stands_in_the_way() -> None:
    road = Road(adaptive=True)
    assert [road.round() for _ in range(4)] == [FIRST, 4 * FIRST, MOST, MOST]


def test_pace_knows_after_one_round_where_the_provider_tells_its_limit() -> None:
    road = Road(adaptive=True)
    road.round({"requests": 4000, "requests_left": 3990})
    assert road.pace.limit == MOST


def test_pace_is_moved_neither_by_fewer_calls_than_may_go_nor_by_what_is_no_overload() -> None:
    road = Road(adaptive=True)
    for _ in range(100):
        road.call()
    with pytest.raises(ModelRejected), road.pace.turn(ASKED):
        raise ModelRejected("wrong", status=400)
    assert road.pace.limit == FIRST


def test_pace_is_halved_by_a_busy_provider_lets_one_call_go_first_and_then_all_of_the_half() -> None:
    road = Road(adaptive=True).opened()
    road.busy(529)
    assert [road.round() for _ in range(2)] == [1, 32]
    # From what was good before, one more a round.
    after = [road.round() for _ in range(5)]
    assert after == sorted(after)
    assert 32 <= after[0] <= after[-1] <= 36


def test_pace_counts_all_refusals_of_calls_that_left_before_the_first_as_one() -> None:
    road = Road(adaptive=True).opened()
    turns = [road.pace.turn(ASKED) for _ in range(MOST)]
    for turn in turns:
        turn.__enter__()
    road.clock.advance(1)
    for turn in turns:
        assert not turn.__exit__(ModelUnavailable, ModelUnavailable("busy", status=529), None)
    assert [road.round() for _ in range(2)] == [1, MOST // 2]


def test_pace_of_a_fixed_number_comes_back_to_it_one_call_first_after_a_pause() -> None:
    road = Road(10)
    road.busy()
    assert [road.round() for _ in range(3)] == [1, 10, 10]


def test_pace_lets_calls_go_at_once_after_a_pause_that_was_named_but_one_first_if_that_is_no_use_twice() -> None:
    road = Road(4)
    assert [road.busy(retry_after=1.0) for _ in range(4)] == [4, 4, 1, 1]
    assert [road.round() for _ in range(2)] == [1, 4]


def test_pace_after_a_rate_limit_lets_as_many_go_as_were_answered_before_it() -> None:
    road = Road(32)
    assert road.busy(retry_after=1.0) == FIRST
    for _ in range(3):
        road.call()
    assert road.busy(retry_after=1.0) == 3
    road.call()
    road.busy(retry_after=1.0)
    assert [road.round() for _ in range(2)] == [1, 2]
    assert road.busy(529) == FIRST, "of an overload they say nothing"


def test_pace_lets_the_call_go_first_again_that_went_first_and_was_refused() -> None:
    road, left = Road(4), list[str]()
    road.busy(529)

    def other() -> None:
        with road.pace.turn(ASKED):
            left.append("other")

    thread = threading.Thread(target=other)
    road.clock.advance(1)
    with pytest.raises(ModelUnavailable), road.pace.turn(ASKED):  # noqa: PT012
        thread.start()
        raise ModelUnavailable("busy", status=529)
    with road.pace.turn(ASKED):
        left.append("first")
    thread.join()
    assert left == ["first", "other"]


def test_pace_waits_no_longer_where_the_run_stops() -> None:
    road = Road(1)
    with road.pace.turn(ASKED):
        road.stop.request("interrupted", PipelineError("stop"))
        with pytest.raises(Pause), road.pace.turn(ASKED):
            raise AssertionError("a second call left")


@pytest.mark.parametrize("adaptive", [True, False])
def test_pace_spreads_calls_over_the_minute_once_it_knows_the_limit_also_from_another(adaptive: bool) -> None:
    road = Road(adaptive=adaptive)
    road.call({"requests": 60, "requests_left": 0})
    second = Road(clock=road.clock, like=road.pace)
    for number in range(6):
        (second if number % 2 else road).call()
    assert 5.9 < road.clock.monotonic() < 6.7


def test_pace_lets_calls_trickle_after_a_refusal_whose_limit_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    road, left = Road(32), list[float]()
    road.call({"requests": 60, "requests_left": 59})
    road.busy(limits={"requests": 60, "requests_left": 0})
    take = Allowance.take

    def taken(allowance: Allowance, now: float, request: Request) -> Need | float:
        # The clock may have gone on before the call that is let in says so.
        if isinstance(found := take(allowance, now, request), Need):
            left.append(now)
        return found

    monkeypatch.setattr(Allowance, "take", taken)
    threads = [threading.Thread(target=road.call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(left) == 20
    assert max(sum(at <= other < at + 1 for other in left) for at in left) == 1


def test_pace_gives_back_what_a_call_that_never_left_had_taken() -> None:
    road = Road(4)
    road.call({"requests": 60, "requests_left": 1})
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt), road.pace.turn(ASKED):
            raise KeyboardInterrupt
    assert not road.clock.waits


def simulate(latency: float, minutes: int, others: float = 0.0, output: int = 0, **limit: Any) -> tuple[int, int, int]:
    """Calls let in after the first minute, those refused, and seconds: as many at once as may be, never idle."""
    clock = FakeClock()
    provider, allowance = RateLimits(clock=clock, **limit), Allowance()
    out: list[tuple[float, int, Need, Mapping[str, float]]] = []
    next_other, number = 0.0, 0
    while (now := clock.monotonic()) < minutes * 60:
        while out and out[0][0] <= now:
            _, _, need, limits = heapq.heappop(out)
            provider.made(output)
            usage = {"input_tokens": 100, "output_tokens": output}
            allowance.answered(now, need, Reply("", "end_turn", usage=usage, limits=limits))
        if others and now >= next_other:
            provider.take(100)
            provider.log.pop()
            next_other += others
        found = allowance.take(now, ASKED) if len(out) < MOST else latency / 10
        if isinstance(found, float):
            clock.advance(max(min(found, out[0][0] - now if out else found), 1e-4))
            continue
        answer = provider.take(100)
        if answer.let_in:
            number += 1
            heapq.heappush(out, (now + latency, number, found, told(answer.headers)))
        else:
            allowance.failed(now, found, told(answer.headers), refused=True)
            clock.advance(float(answer.headers["retry-after"]))
    later = [let_in for at, let_in in provider.log if at >= 60]
    return sum(later), len(later) - sum(later), minutes * 60 - 60


@settings(max_examples=12, deadline=None)
@given(a_minute=st.integers(20, 600), latency=st.floats(0.2, 3.0), burst=st.sampled_from([0.1, 1.0]))
def test_allowance_uses_nearly_all_requests_and_is_hardly_ever_refused(
    a_minute: int, latency: float, burst: float
) -> None:
    used, refused, seconds = simulate(latency, 4, requests=a_minute, burst=burst)
    most = min(1.0, MOST / latency * 60 / a_minute)
    assert used >= 0.95 * most * a_minute * seconds / 60
    assert refused <= 0.02 * (used + refused)


def test_allowance_uses_nearly_all_output_tokens_and_leaves_room_for_others_who_call_too() -> None:
    used, refused, seconds = simulate(5.0, 5, output=500, requests=4000, output_tokens=20_000)
    assert used * 500 >= 0.95 * 20_000 * seconds / 60
    assert refused <= 0.02 * (used + refused)
    used, refused, seconds = simulate(1.0, 4, others=2.0, requests=120)
    assert used >= 0.9 * (120 - 30) * seconds / 60
    assert refused <= 0.05 * (used + refused)


def taken(allowance: Allowance, usage: Any, limits: Any) -> None:
    need = allowance.take(0.0, ASKED)
    assert isinstance(need, Need)
    allowance.answered(0.0, need, Reply("", "end_turn", usage=usage, limits=limits))


def test_allowance_takes_input_read_from_the_cache_as_free() -> None:
    allowance, limits = Allowance(), {"input_tokens": 10_000.0, "input_tokens_left": 10_000.0}
    for number in range(50):
        usage = {"input_tokens": 0, "cache_read_input_tokens": 5000, "output_tokens": 1}
        taken(allowance, usage, limits if not number else {})


def test_allowance_without_told_limits_lets_everything_leave_and_learns_nothing_from_what_is_no_figure() -> None:
    allowance = Allowance()
    odd = {"requests": "many", "requests_left": None, "output_tokens": 0, "output_tokens_left": 5}
    taken(allowance, {"output_tokens": "x"}, odd)
    assert all(isinstance(allowance.take(0.0, ASKED), Need) for _ in range(1000))
    assert not allowance.known


class Limited:
    """A model behind rate limits that answers at once."""

    def __init__(self, clock: FakeClock, *, requests: int, told: bool) -> None:
        self.limits = RateLimits(requests=requests, clock=clock)
        self._told = told

    def check(self) -> ModelInfo:
        return ModelInfo("limited", paid=False)

    def complete(self, request: Request) -> Reply:
        answer = self.limits.take(1)
        said = told(answer.headers) if self._told else {}
        if answer.let_in:
            return Reply("yes", "end_turn", limits=said)
        after = float(answer.headers["retry-after"])
        raise ModelUnavailable("Limited (429)", billed="no", status=429, retry_after=after, limits=said)

    def close(self) -> None:
        return


CALLS = 400


@pytest.mark.parametrize("concurrency", ["auto", 32, 1])
@pytest.mark.parametrize("said", [True, False])
def test_run_behind_limits_ends_and_is_hardly_ever_refused(concurrency: int | str, said: bool) -> None:
    clock = FakeClock()
    model = Limited(clock, requests=60, told=said)

    @step("calls")
    def body(ctx: StepContext) -> dict[str, int]:
        asked = ctx.map("call", range(CALLS), lambda c, n: c.ask(ask(str(n), max_tokens=100)).text, key=str)
        return {"answered": len(asked)}

    options = {"concurrency": concurrency}
    result = Pipeline("limited", [body]).run(store=MemoryStore(clock), model=model, clock=clock, options=options)
    assert (result.error, sum(let_in for _, let_in in model.limits.log)) == (None, CALLS)
    if said:
        later = [let_in for at, let_in in model.limits.log if at >= 60]
        assert later.count(False) <= 0.02 * len(later)
    # No limit is passed, and little of it is left unused.
    assert clock.monotonic() <= (CALLS - 60) * 60 / 60 * 1.1 + 5
