"""Usage that comes in pieces: which figures hold once the stream has ended, and what they cost."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.prices import PriceBook
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from pipeline.llm.wire import merged
from pipeline.records.charge import EXACT, INTERVAL, UNPRICED, Charge
from tests.servers.billing import BillingServer

AT = datetime(2026, 12, 1, tzinfo=UTC)
BOOK = PriceBook()
MODEL = "claude-sonnet-5-5"
START = {
    "input_tokens": 1000,
    "cache_creation_input_tokens": 90_000,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 90_000, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 1,
}


def charged(usage: dict[str, Any]) -> Charge:
    return BOOK.charge(usage, model=MODEL, at=AT)


def heard(server: BillingServer, model: AnthropicModel, start: dict[str, Any], delta: dict[str, Any]) -> Charge:
    server.usages.append((start, delta))
    reply = model.complete(Request(MODEL, [Message("user", "Why?")]))
    return charged(dict(reply.usage))


def test_later_total_with_the_older_split_counts_no_token_twice(server: BillingServer, model: AnthropicModel) -> None:
    delta = {**START, "cache_creation_input_tokens": 30_000, "cache_read_input_tokens": 60_000, "output_tokens": 500}
    del delta["cache_creation"]
    found = heard(server, model, START, delta)
    true = {**delta, "cache_creation": {"ephemeral_5m_input_tokens": 30_000, "ephemeral_1h_input_tokens": 0}}
    assert found.state == INTERVAL
    assert found.high is not None
    assert found.low == charged(true).low <= found.high < charged({**START, "output_tokens": 500}).low


def test_later_total_of_nothing_written_is_exact(server: BillingServer, model: AnthropicModel) -> None:
    delta = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 90_000, "input_tokens": 1000}
    found = heard(server, model, START, {**delta, "cache_creation": None, "output_tokens": 500})
    assert found.state == EXACT
    assert found.low == charged({**delta, "output_tokens": 500}).low


def test_figures_that_are_told_whole_are_exact(server: BillingServer, model: AnthropicModel) -> None:
    last = {**START, "input_tokens": 7, "cache_read_input_tokens": 993, "output_tokens": 500}
    for delta in (
        last,
        {**last, "cache_creation": {"ephemeral_1h_input_tokens": None}},
        {**last, "cache_creation_input_tokens": None, "server_tool_use": None},
    ):
        assert heard(server, model, START, delta) == charged(last), delta


def test_nulls_and_zeros_of_a_whole_prompt_say_nothing(server: BillingServer, model: AnthropicModel) -> None:
    nothing = dict.fromkeys(("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))
    for zero in (None, 0):
        delta = {**dict.fromkeys(nothing, zero), "output_tokens": 500}
        assert heard(server, model, START, delta) == charged({**START, "output_tokens": 500})
    assert heard(server, model, START, {"input_tokens": 0, "output_tokens": 500}).low > Decimal("0.2")


def test_figure_that_is_left_out_while_others_change_is_billed_or_not(
    server: BillingServer, model: AnthropicModel
) -> None:
    found = heard(server, model, START, {"input_tokens": 91_000, "output_tokens": 500})
    both = {**START, "input_tokens": 91_000, "output_tokens": 500}
    assert (found.state, found.high) == (INTERVAL, charged(both).low)
    assert found.low == charged({"input_tokens": 91_000, "output_tokens": 500}).low


def test_answer_whose_tokens_the_end_does_not_count_is_never_exact(
    server: BillingServer, model: AnthropicModel
) -> None:
    start = {"input_tokens": 100, "output_tokens": 1}
    for delta in ({}, {"output_tokens": None}, {"output_tokens": 0}, {"input_tokens": 100}):
        assert heard(server, model, start, delta).state == UNPRICED, delta
    nothing = {"input_tokens": 0, "output_tokens": 0}
    assert heard(server, model, nothing, {"output_tokens": 5}).state == UNPRICED


counts = st.none() | st.integers(0, 3)
pieces = st.fixed_dictionaries(
    {},
    optional={
        "input_tokens": counts,
        "cache_creation_input_tokens": counts,
        "cache_read_input_tokens": counts,
        "output_tokens": counts,
        "cache_creation": st.none()
        | st.fixed_dictionaries({}, optional={f"ephemeral_{life}_input_tokens": counts for life in ("5m", "1h")}),
        "server_tool_use": st.none() | st.fixed_dictionaries({"web_search_requests": counts}),
    },
)


@settings(deadline=None, max_examples=100)
@given(st.lists(pieces, max_size=3), pieces)
def test_what_is_told_last_in_full_is_what_counts(before: list[dict[str, Any]], odd: dict[str, Any]) -> None:
    usage: dict[str, Any] = {}
    for piece in [*before, odd]:
        usage = merged(usage, piece)
    full = {**START, "server_tool_use": {"web_search_requests": 1}}
    assert charged(merged(usage, full)) == charged(full)
    assert merged(usage, dict.fromkeys(full)) == usage
