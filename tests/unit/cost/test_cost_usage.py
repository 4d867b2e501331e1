"""Raw usage → billed tokens."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.cost.usage import UsageUnreadable, billed

BASE: dict[str, Any] = {"input_tokens": 10, "output_tokens": 7}


def test_breakdown_that_does_not_add_up_to_its_total_is_dropped_for_a_bound() -> None:
    for short, long in ((0, 10), (20, 30), (100, 0), (0, 0)):
        split = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
        seen = billed({**BASE, "cache_creation_input_tokens": 30, "cache_creation": split})
        assert seen.tokens == {"input": 10, "cache_write_1h": 30, "output": 7}
        assert seen.least is not None
        assert seen.least.tokens == {"input": 10, "cache_write_5m": 30, "output": 7}
        assert seen.prompt == seen.least.prompt == 40


def test_breakdown_of_nothing_is_nothing() -> None:
    split = {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 10}
    seen = billed({**BASE, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 15, "cache_creation": split})
    assert (seen.tokens, seen.least) == ({"input": 10, "cache_read": 15, "output": 7}, None)


def test_figures_that_were_left_out_later_may_count_the_same_tokens() -> None:
    figures = {**BASE, "cache_read_input_tokens": 5, "left_out_later": ["cache_read_input_tokens"]}
    seen = billed(figures)
    assert seen.least is not None
    assert (seen.tokens["cache_read"], seen.prompt) == (5, 15)
    assert (seen.least.tokens, seen.least.prompt) == ({"input": 10, "output": 7}, 10)


@pytest.mark.parametrize(
    "usage",
    [{}, {"input_tokens": 1}, {"output_tokens": 1}, {**BASE, "input_tokens": None}, {**BASE, "output_tokens": None}],
)
def test_usage_without_its_main_figures_is_unreadable(usage: dict[str, Any]) -> None:
    with pytest.raises(UsageUnreadable):
        billed(usage)


@pytest.mark.parametrize("value", [-1, 1.5, "7", True])
def test_figure_that_is_no_count_is_unreadable_and_named(value: Any) -> None:
    with pytest.raises(UsageUnreadable, match="cache_read_input_tokens"):
        billed({**BASE, "cache_read_input_tokens": value})


def test_tier_speed_and_place_come_from_the_reply() -> None:
    seen = billed({**BASE, "service_tier": "batch", "speed": "fast", "inference_geo": "US"})
    assert (seen.tier, seen.fast, seen.geo) == ("batch", True, "us")
    assert billed({**BASE, "inference_geo": "not_available"}).geo == ""
    assert billed(BASE, tier="batch").tier == "batch"


@pytest.mark.parametrize(
    ("more", "tokens", "prompt"),
    [
        ({"cache_creation_input_tokens": 3, "cache_read_input_tokens": 5}, {"cache_write_5m": 3, "cache_read": 5}, 18),
        (
            {"cache_creation_input_tokens": 30,
             "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10}},
            {"cache_write_5m": 20, "cache_write_1h": 10}, 40,
        ),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 20}}, {"cache_write_5m": 20}, 30),
        ({"cache_creation": None, "server_tool_use": None, "cache_read_input_tokens": None, "new": {}}, {}, 10),
        ({"output_tokens_details": {"thinking_tokens": 5}}, {}, 10),
        ({"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 9}}, {"web_search": 2}, 10),
    ],
)  # fmt: skip
def test_kinds_are_disjoint_and_count_once(more: dict[str, Any], tokens: dict[str, int], prompt: int) -> None:
    seen = billed({**BASE, **more})
    assert (seen.tokens, seen.prompt) == ({"input": 10, "output": 7, **tokens}, prompt)
    assert (seen.unknown, seen.least) == ((), None)


def test_other_tools_are_named_as_unknown() -> None:
    seen = billed({**BASE, "server_tool_use": {"code_execution_requests": 1, "other_requests": 0}})
    assert seen.unknown == ("code_execution_requests",)
