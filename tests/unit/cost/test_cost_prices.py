"""Usage → charge."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.prices import FRAMING_TOKENS, PriceBook, plain_name
from pipeline.records.charge import EXACT, INTERVAL, UNPRICED, Charge

AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
SONNET = "claude-sonnet-5-5"
BOOK = PriceBook()


def usage(**counts: Any) -> dict[str, Any]:
    return {"input_tokens": 1000, "output_tokens": 500, **counts}


def usd(text: str) -> Decimal:
    return Decimal(text)


def test_charge_is_exact_and_its_parts_are_the_sum() -> None:
    charge = BOOK.charge(usage(), model=SONNET, at=AT)
    assert (charge.state, charge.low, charge.high) == (EXACT, usd("0.007"), usd("0.007"))
    assert charge.parts == {"input": usd("0.002"), "output": usd("0.005")}
    assert charge.prices == {"input": 2, "output": 10}


def test_cache_writes_are_not_charged_a_second_time_as_input() -> None:
    counts = usage(
        cache_creation_input_tokens=3000,
        cache_creation={"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 1000},
        cache_read_input_tokens=10_000,
    )
    charge = BOOK.charge(counts, model=SONNET, at=AT)
    assert charge.parts == {
        "input": usd("0.002"),
        "cache_write_5m": usd("0.005"),
        "cache_write_1h": usd("0.004"),
        "cache_read": usd("0.001"),
        "output": usd("0.005"),
    }
    assert charge.low == usd("0.017")


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([SONNET, "claude-haiku-5-5", "claude-opus-5-5", "claude-fable-5-2", "claude-haiku-4-5"]),
    st.tuples(st.integers(1, 150_000), *[st.integers(0, 150_000)] * 4),
    st.sampled_from(["standard", "batch"]),
    st.integers(0, 9),
)
def test_charge_equals_what_the_price_library_adds_up(
    model: str, counts: tuple[int, int, int, int, int], tier: str, searches: int
) -> None:
    uncached, short, long, read, output = counts
    raw = {
        "input_tokens": uncached,
        "cache_creation_input_tokens": short + long,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "cache_read_input_tokens": read,
        "output_tokens": output,
        "service_tier": tier,
        "server_tool_use": {"web_search_requests": searches},
    }
    found = genai_prices.extract_usage({"model": model, "usage": raw}, provider_id="anthropic")
    context = {"processing": "batch"} if tier == "batch" else None
    expected = found.calc_price(genai_request_timestamp=AT, price_context=context)
    charge = BOOK.charge(raw, model=model, at=AT)
    assert charge.state == EXACT
    assert charge.low == charge.high == expected.total_price
    assert sum(charge.parts.values(), Decimal(0)) == charge.low


def test_unknown_model_is_unpriced_never_zero() -> None:
    charge = BOOK.charge(usage(), model="claude-unheard-of-9", at=AT)
    assert charge.state == UNPRICED
    assert charge.tokens == {"input": 1000, "output": 500}
    assert "claude-unheard-of-9" in charge.note
    assert BOOK.worst(100, 100, model="claude-unheard-of-9", at=AT) is None


def test_name_that_only_begins_like_a_listed_model_has_no_price() -> None:
    listed = [m.id for each in get_snapshot().providers if each.id == "anthropic" for m in each.models]
    strange = ["claude-opus-4-10", "claude-haiku-4-5-batch", "claude-opus-4-8-mini", "claude-sonnet-5-5-99999999"]
    tails = ("-mini", "0", "-10", "[1m]", "-thinking", "-2026", "-v2")
    strange += [f"{name}{tail}" for name in listed for tail in tails]
    for name in strange:
        charge = BOOK.charge(usage(), model=name, at=AT)
        assert (charge.state, charge.prices) == (UNPRICED, {}), name
        assert name in charge.note
        assert BOOK.worst(1, 1, model=name, at=AT) is None, name


def test_listed_ids_their_aliases_and_their_dates_have_the_same_price() -> None:
    for names in (
        ("claude-opus-4-1", "claude-opus-4-1-20250805", "claude-opus-4.1", "claude-opus-4-1@20250805"),
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001", "anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("claude-opus-4-8", "anthropic.claude-opus-4-8-v1", "anthropic.claude-opus-4-8-20260101-v2:0"),
        ("claude-opus-4-0", "claude-opus-4", "claude-opus-4-20250514", "claude-4-opus-20250514"),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514", "claude-sonnet-4@20250514"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022"),
        ("claude-opus-5", "claude-opus-5-latest", "claude-opus-5-2026-08-01"),
    ):
        charges = [BOOK.charge(usage(), model=name, at=AT) for name in names]
        assert [charge.state for charge in charges] == [EXACT] * len(names), names
        assert len({charge.low for charge in charges}) == 1, names


@pytest.mark.parametrize("model", ["claude-mythos-5", "claude-mythos-5-1", "claude-mythos-preview"])
def test_models_the_published_data_lacks_are_unpriced(model: str) -> None:
    assert BOOK.charge(usage(), model=model, at=AT).state == UNPRICED


def test_usage_that_cannot_be_read_is_unpriced_with_the_reason() -> None:
    charge = BOOK.charge({"output_tokens": 3}, model=SONNET, at=AT)
    assert charge.state == UNPRICED
    assert "input_tokens" in charge.note


def test_kind_without_a_price_is_unpriced_and_named() -> None:
    charge = BOOK.charge(usage(cache_read_input_tokens=5), model="claude-2", at=AT)
    assert charge.state == UNPRICED
    assert "cache_read" in charge.note


@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-sonnet-5-5",
        "Anthropic:claude-sonnet-5-5",
        "openrouter/anthropic/claude-sonnet-5-5",
        "anthropic.claude-sonnet-5-5",
        "models/claude-sonnet-5-5",
        " CLAUDE-sonnet-5-5 ",
    ],
)
def test_prefixes_of_other_tools_do_not_hide_the_price(name: str) -> None:
    assert plain_name(name) == SONNET
    assert BOOK.charge(usage(), model=name, at=AT).low == usd("0.007")


def test_dated_name_of_a_model_has_its_price() -> None:
    assert BOOK.charge(usage(), model="claude-sonnet-5-5-20260901", at=AT).low == usd("0.007")


def test_long_prompt_makes_every_token_dearer_and_cached_tokens_count_to_its_length() -> None:
    def haiku(uncached: int, read: int) -> Charge:
        counts = {"input_tokens": uncached, "cache_read_input_tokens": read, "output_tokens": 1000}
        return BOOK.charge(counts, model="claude-haiku-5-5", at=AT)

    assert haiku(100_000, 0).low == usd("0.0105")
    assert haiku(100_001, 0).low == usd("0.0525005")
    assert haiku(1, 100_000).prices["output"] == usd("2.5")
    assert haiku(1, 99_999).prices["output"] == usd("0.5")


def test_summing_tokens_first_would_give_another_price() -> None:
    one = BOOK.charge({"input_tokens": 60_000, "output_tokens": 0}, model="claude-haiku-5-5", at=AT).low
    both = BOOK.charge({"input_tokens": 120_000, "output_tokens": 0}, model="claude-haiku-5-5", at=AT).low
    assert both == 5 * (one + one)


def test_inference_in_the_united_states_costs_a_tenth_more_on_every_token_kind() -> None:
    counts = usage(cache_read_input_tokens=1000, server_tool_use={"web_search_requests": 1})
    here, there = (BOOK.charge({**counts, "inference_geo": geo}, model=SONNET, at=AT) for geo in ("global", "us"))
    for kind in ("input", "cache_read", "output"):
        assert there.parts[kind] == here.parts[kind] * usd("1.1")
    assert there.parts["web_search"] == here.parts["web_search"] == usd("0.01")


def test_place_without_a_known_price_has_no_upper_bound() -> None:
    charge = BOOK.charge(usage(inference_geo="mars"), model=SONNET, at=AT)
    assert (charge.state, charge.low, charge.high) == (INTERVAL, usd("0.007"), None)
    assert "mars" in charge.note


def test_thing_billed_without_a_unit_here_has_no_upper_bound() -> None:
    charge = BOOK.charge(usage(server_tool_use={"code_execution_requests": 2}), model=SONNET, at=AT)
    assert (charge.state, charge.high) == (INTERVAL, None)
    assert "code_execution_requests" in charge.note


def test_batch_halves_every_token_kind_cache_included() -> None:
    counts = usage(cache_creation_input_tokens=1000, cache_read_input_tokens=1000)
    full = BOOK.charge(counts, model=SONNET, at=AT)
    half = BOOK.charge({**counts, "service_tier": "batch"}, model=SONNET, at=AT)
    assert {kind: part * 2 for kind, part in half.parts.items()} == full.parts
    assert half.tier == "batch"
    assert half == BOOK.charge(counts, model=SONNET, at=AT, tier="batch")


@pytest.mark.parametrize(("model", "at"), [("claude-opus-4-1", AT), (SONNET, datetime(2026, 10, 1, tzinfo=UTC))])
def test_batch_is_half_price_where_the_data_has_no_batch_price(model: str, at: datetime) -> None:
    full = BOOK.charge(usage(), model=model, at=at)
    half = BOOK.charge(usage(), model=model, at=at, tier="batch")
    assert half.low * 2 == full.low
    assert "half" in half.note


def test_batch_charge_says_what_the_same_would_have_cost_outside() -> None:
    counts = usage(server_tool_use={"web_search_requests": 3})
    charge = BOOK.charge(counts, model=SONNET, at=AT, tier="batch")
    assert charge.full == BOOK.charge(counts, model=SONNET, at=AT).low
    assert charge.saved_by_batch == charge.low - usd("0.03")
    assert Charge.from_json(charge.to_json()) == charge


def test_batch_does_not_halve_web_searches() -> None:
    charge = BOOK.charge(usage(server_tool_use={"web_search_requests": 3}), model=SONNET, at=AT, tier="batch")
    assert charge.parts["web_search"] == usd("0.03")


def test_fast_mode_has_its_own_price_or_none() -> None:
    assert BOOK.charge(usage(speed="fast"), model="claude-opus-5-5", at=AT).prices == {"input": 8, "output": 40}
    assert BOOK.charge(usage(speed="fast"), model=SONNET, at=AT).state == UNPRICED


def test_price_is_that_of_the_day_of_the_request() -> None:
    counts = {"input_tokens": 300_000, "output_tokens": 0}
    before = BOOK.charge(counts, model="claude-opus-4-6", at=datetime(2026, 3, 12, 23, 59, tzinfo=UTC))
    after = BOOK.charge(counts, model="claude-opus-4-6", at=datetime(2026, 3, 13, tzinfo=UTC))
    assert [before.prices["input"], after.prices["input"]] == [10, 5]


def test_price_data_and_its_version_stand_in_every_charge() -> None:
    charge = BOOK.charge(usage(), model=SONNET, at=AT)
    assert charge.source == BOOK.version == f"genai-prices {genai_prices.__version__}"


def test_charge_survives_being_recorded_to_the_last_digit() -> None:
    charge = BOOK.charge(usage(input_tokens=333_333, inference_geo="us"), model="claude-haiku-5-5", at=AT)
    assert Charge.from_json(charge.to_json()) == charge


def test_worst_case_takes_the_dearest_input_and_the_surcharge_that_can_apply() -> None:
    worst = BOOK.worst(10_000, 16_000, model=SONNET, at=AT)
    assert worst == (usd("4") * (10_000 + FRAMING_TOKENS) + usd("10") * 16_000) / 1_000_000 * usd("1.1")


def test_worst_case_of_a_long_prompt_is_at_the_long_price() -> None:
    short, long = (BOOK.worst(size, 0, model="claude-haiku-5-5", at=AT) for size in (98_000, 98_001))
    assert short == usd("0.2") * 100_000 / 1_000_000 * usd("1.1")
    assert long == usd("1") * 100_001 / 1_000_000 * usd("1.1")


def test_worst_case_of_fast_mode_is_at_its_price() -> None:
    slow = BOOK.worst(1000, 1000, model="claude-opus-5-5", at=AT)
    fast = BOOK.worst(1000, 1000, model="claude-opus-5-5", at=AT, fast=True)
    assert slow is not None
    assert fast == 2 * slow


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 400_000), st.integers(0, 128_000), st.data())
def test_no_charge_within_the_limits_passes_the_worst_case(size: int, max_tokens: int, data: Any) -> None:
    prompt = data.draw(st.integers(0, size + FRAMING_TOKENS))
    written = data.draw(st.integers(0, prompt))
    counts = {
        "input_tokens": prompt - written,
        "cache_creation": {"ephemeral_1h_input_tokens": written},
        "output_tokens": data.draw(st.integers(0, max_tokens)),
        "inference_geo": data.draw(st.sampled_from(["us", "global"])),
    }
    for model in ("claude-haiku-5-5", SONNET):
        worst = BOOK.worst(size, max_tokens, model=model, at=AT)
        assert worst is not None
        assert BOOK.charge(counts, model=model, at=AT).low <= worst


def test_broken_off_try_costs_at_least_what_was_seen_and_at_most_its_worst_case() -> None:
    charge = BOOK.partial(usage(output_tokens=1), model=SONNET, at=AT, worst=usd("0.5"))
    assert (charge.state, charge.low, charge.high) == (INTERVAL, usd("0.00201"), usd("0.5"))
    assert charge.tokens == {"input": 1000, "output": 1}


def test_broken_off_try_of_which_nothing_was_seen_costs_from_nothing_to_its_worst_case() -> None:
    charge = BOOK.partial({}, model=SONNET, at=AT, worst=usd("0.5"))
    assert (charge.state, charge.low, charge.high) == (INTERVAL, usd("0"), usd("0.5"))


def test_broken_off_try_without_a_price_keeps_its_upper_bound_open() -> None:
    charge = BOOK.partial(usage(), model="claude-unheard-of-9", at=AT, worst=None)
    assert charge.state == UNPRICED
    assert BOOK.partial(usage(), model=SONNET, at=AT, worst=None).high is None


def test_seen_cost_above_the_worst_case_raises_the_upper_bound() -> None:
    charge = BOOK.partial(usage(), model=SONNET, at=AT, worst=usd("0.001"))
    assert charge.low == charge.high == usd("0.007")


def test_pricing_never_touches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert PriceBook().charge(usage(), model=SONNET, at=AT).state == EXACT


def test_opening_a_price_book_loads_neither_the_price_data_nor_pydantic() -> None:
    code = (
        "import sys; from pipeline.cost.prices import PriceBook; from pipeline.cost import ledger, report, budget;"
        "PriceBook().version; sys.exit(bool({'pydantic', 'genai_prices'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_reply_by_another_model_has_that_ones_price() -> None:
    charge = BOOK.charge(usage(), model=SONNET, at=AT, answered="claude-opus-5-5")
    assert (charge.state, charge.low, charge.model) == (EXACT, usd("0.014"), "claude-opus-5-5")
    assert "claude-opus-5-5" in charge.note
    assert Charge.from_json(charge.to_json()) == charge
    cheaper = BOOK.charge(usage(), model="claude-opus-5-5", at=AT, answered=SONNET)
    assert cheaper.low == usd("0.007")


def test_same_model_by_another_name_is_no_other_model() -> None:
    for asked, answered in (
        (SONNET, ""),
        (SONNET, SONNET.upper()),
        (SONNET, "claude-sonnet-5-5-20260901"),
        ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("anthropic/claude-opus-4", "claude-opus-4-20250514"),
        ("claude-opus-4-5-20251101", "vertex_ai/claude-opus-4-5@20251101"),
        ("claude-unheard-of-9", "claude-unheard-of-9-20260101"),
    ):
        charge = BOOK.charge(usage(), model=asked, at=AT, answered=answered)
        assert charge.model == "", (asked, answered)
        assert charge == BOOK.charge(usage(), model=asked, at=AT)


def test_reply_by_a_model_without_a_price_lies_below_the_dearest_price() -> None:
    charge = BOOK.charge(usage(), model=SONNET, at=AT, answered="claude-unheard-of-9")
    assert (charge.state, charge.low, charge.model) == (INTERVAL, usd("0"), "claude-unheard-of-9")
    # The dearest of the list: $15 in, $75 out.
    assert charge.high == usd("0.0525")
    assert "claude-unheard-of-9" in charge.note
    odd = BOOK.charge(usage(), model=SONNET, at=AT, answered="x\x1b[2J\n" * 99)
    assert odd.state == INTERVAL
    assert odd.model.isprintable()
    assert len(odd.model) <= 80


def test_worst_case_counts_the_dearest_of_the_models_that_answer() -> None:
    plain, dear, unknown = (
        BOOK.worst(9000, 1000, model=SONNET, at=AT, instead=others)
        for others in ((), ("claude-opus-5-5", "claude-haiku-5-5"), ("claude-unheard-of-9",))
    )
    assert plain is not None
    assert dear == 2 * plain == BOOK.worst(9000, 1000, model="claude-opus-5-5", at=AT)
    assert unknown == BOOK.worst(9000, 1000, model="claude-opus-4-1", at=AT)


def test_broken_off_try_of_another_model_is_bounded_by_that_ones_price() -> None:
    seen = usage(output_tokens=1)
    found = BOOK.partial(seen, model=SONNET, at=AT, worst=usd("0.5"), answered="claude-opus-5-5")
    assert (found.state, found.low, found.high) == (INTERVAL, usd("0.00402"), usd("1.0"))
    unknown = BOOK.partial(seen, model=SONNET, at=AT, worst=usd("0.5"), answered="claude-unheard-of-9")
    assert unknown.low == 0
    assert unknown.high is not None
    assert unknown.high >= usd("0.5") * 15 / 2


def test_price_that_a_user_gives_a_gateways_name_stands(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    price = dict.fromkeys(("input", "output", "cache_read", "cache_write_5m", "cache_write_1h"), "1")
    file.write_text(json.dumps({"models": {"house-model": price, SONNET: price}}))
    book = PriceBook(file)
    assert book.charge(usage(), model="house-model", at=AT, answered="claude-opus-5-5").low == usd("0.0015")
    assert book.charge(usage(), model="claude-opus-5-5", at=AT, answered=SONNET).low == usd("0.0015")
    assert book.charge(usage(), model=SONNET, at=AT, answered="claude-opus-5-5").low == usd("0.014")


def test_figures_that_contradict_each_other_are_charged_between_their_readings() -> None:
    split = {"ephemeral_5m_input_tokens": 100_000, "ephemeral_1h_input_tokens": 0}
    counts = usage(cache_creation_input_tokens=40_000, cache_read_input_tokens=60_000, cache_creation=split)
    charge = BOOK.charge(counts, model=SONNET, at=AT)
    rest = usd("0.007") + usd("0.006")
    assert (charge.state, charge.low, charge.high) == (INTERVAL, rest + usd("0.1"), rest + usd("0.16"))
    assert "contradict" in charge.note
    assert BOOK.charge(counts, model=SONNET, at=AT, tier="batch").high == (rest + usd("0.16")) / 2
