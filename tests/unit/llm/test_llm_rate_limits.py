"""The test server's rate limits, as documented by the provider, and what the adapter makes of their headers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pipeline.errors import ModelUnavailable
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from pipeline.testing import FakeClock
from tests.servers.billing import BillingServer
from tests.servers.rate_limits import RateLimits

ASKED = Request("claude-sonnet-5-5", [Message("user", "say this " * 40)], max_tokens=1000)


def test_rate_limits_fill_evenly_up_to_a_minutes_worth() -> None:
    clock = FakeClock()
    limits = RateLimits(requests=60, clock=clock)
    assert all(limits.take(1).let_in for _ in range(60))
    refused = limits.take(1)
    assert not refused.let_in
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["anthropic-ratelimit-requests-limit"] == "60"
    assert refused.headers["anthropic-ratelimit-requests-remaining"] == "0"
    full = (clock.now() + timedelta(seconds=60)).isoformat(timespec="seconds").replace("+00:00", "Z")
    assert refused.headers["anthropic-ratelimit-requests-reset"] == full
    clock.advance(2)
    assert [limits.take(1).let_in for _ in range(3)] == [True, True, False]
    clock.advance(3600)
    assert sum(limits.take(1).let_in for _ in range(100)) == 60


def test_rate_limits_held_over_a_shorter_time_refuse_a_burst() -> None:
    limits = RateLimits(requests=60, burst=0.1, clock=FakeClock())
    assert sum(limits.take(1).let_in for _ in range(20)) == 6


def test_rate_limits_of_output_count_what_was_made_and_refuse_what_comes_then() -> None:
    clock = FakeClock()
    limits = RateLimits(output_tokens=6000, clock=clock)
    assert limits.take(1).let_in
    limits.made(9000)
    refused = limits.take(1)
    assert not refused.let_in
    assert refused.headers["retry-after"] == "31"
    clock.advance(31)
    assert limits.take(1).let_in


def test_rate_limits_of_input_refuse_what_is_too_large_for_now() -> None:
    limits = RateLimits(input_tokens=10_000, clock=FakeClock())
    assert limits.take(9000).let_in
    assert not limits.take(2000).let_in
    told = limits.take(500)
    assert told.let_in
    # To the nearest thousand.
    assert told.headers["anthropic-ratelimit-input-tokens-remaining"] in ("0", "1000")


def test_replies_and_refusals_carry_what_headers_say_of_limits(server: BillingServer, model: AnthropicModel) -> None:
    server.limits = RateLimits(requests=2, input_tokens=20_000, output_tokens=8000, clock=FakeClock())
    told = model.complete(ASKED).limits
    assert told["requests"] == 2
    assert told["requests_left"] == 1
    assert told["input_tokens"] == 20_000
    assert told["output_tokens_left"] == 8000
    model.complete(ASKED)
    with pytest.raises(ModelUnavailable) as refused:
        model.complete(ASKED)
    assert refused.value.data["status"] == 429
    assert refused.value.data["retry_after"] == 30
    assert refused.value.data["limits"]["requests_left"] == 0
    assert refused.value.billed == "no"
    assert [entry.fault for entry in server.bill.entries()] == ["", "", "limited"]
    assert server.bill.entries()[-1].usd == 0
