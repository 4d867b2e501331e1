"""Limits as a provider tells them: calls leave within them and close to them."""

from __future__ import annotations

import heapq
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engine.pace import MOST, Allowance, Need
from pipeline.llm.base import Message, Reply, Request
from pipeline.testing import FakeClock
from tests.servers.rate_limits import RateLimits

ASKED = Request("scripted", [Message("user", "?" * 400)], max_tokens=4000)


def told(headers: dict[str, str]) -> dict[str, float]:
    """Limits as the adapter reads them from headers."""
    names = {"limit": "", "remaining": "_left"}
    found = {}
    for name, value in headers.items():
        what, _, said = name.removeprefix("anthropic-ratelimit-").rpartition("-")
        if said in names:
            found[what.replace("-", "_") + names[said]] = float(value)
    return found


def simulate(latency: float, minutes: int, others: float = 0.0, output: int = 0, **limit: Any) -> tuple[int, int, int]:
    """Calls let in after the first minute, those refused, and seconds: as many at once as may be, never idle."""
    clock = FakeClock()
    provider, allowance = RateLimits(clock=clock, **limit), Allowance()
    out: list[tuple[float, int, Need, dict[str, float]]] = []
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


def test_allowance_uses_nearly_all_output_tokens_and_is_hardly_ever_refused() -> None:
    used, refused, seconds = simulate(5.0, 5, output=500, requests=4000, output_tokens=20_000)
    assert used * 500 >= 0.95 * 20_000 * seconds / 60
    assert refused <= 0.02 * (used + refused)


def test_allowance_leaves_room_for_others_who_call_too() -> None:
    used, refused, seconds = simulate(1.0, 4, others=2.0, requests=120)
    assert used >= 0.9 * (120 - 30) * seconds / 60
    assert refused <= 0.05 * (used + refused)


def test_allowance_without_told_limits_lets_everything_leave() -> None:
    allowance = Allowance()
    assert all(isinstance(allowance.take(0.0, ASKED), Need) for _ in range(1000))
    assert not allowance.known


def test_allowance_takes_input_read_from_the_cache_as_free() -> None:
    allowance = Allowance()
    limits = {"input_tokens": 10_000.0, "input_tokens_left": 10_000.0}
    for number in range(50):
        need = allowance.take(0.0, ASKED)
        assert isinstance(need, Need)
        usage = {"input_tokens": 0, "cache_read_input_tokens": 5000, "output_tokens": 1}
        allowance.answered(0.0, need, Reply("", "end_turn", usage=usage, limits=limits if not number else {}))


def test_allowance_learns_nothing_from_what_is_no_figure() -> None:
    allowance = Allowance()
    need = allowance.take(0.0, ASKED)
    assert isinstance(need, Need)
    odd: Any = {"requests": "many", "requests_left": None, "output_tokens": 0, "output_tokens_left": 5}
    allowance.answered(0.0, need, Reply("", "end_turn", usage={"output_tokens": "x"}, limits=odd))
    assert not allowance.known
