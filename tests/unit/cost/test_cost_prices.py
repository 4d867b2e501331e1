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
    assert Charge.from_json(charge.to_json()) == charge


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


def test_long_prompt_makes_every_token_dearer_and_cached_tokens_count_to_its_length() -> None:
    def haiku(uncached: int, read: int) -> Charge:
        counts = {"input_tokens": uncached, "cache_read_input_tokens": read, "output_tokens": 1000}
        return BOOK.charge(counts, model="claude-haiku-5-5", at=AT)

    assert haiku(100_000, 0).low == usd("0.0105")
    assert haiku(100_001, 0).low == usd("0.0525005")
    assert haiku(1, 100_000).prices["output"] == usd("2.5")
    assert haiku(1, 99_999).prices["output"] == usd("0.5")


def test_inference_in_the_united_states_costs_a_tenth_more_on_every_token_kind() -> None:
    counts = usage(cache_read_input_tokens=1000, server_tool_use={"web_search_requests": 1})
    here, there = (BOOK.charge({**counts, "inference_geo": geo}, model=SONNET, at=AT) for geo in ("global", "us"))
    for kind in ("input", "cache_read", "output"):
        assert there.parts[kind] == here.parts[kind] * usd("1.1")
    assert there.parts["web_search"] == here.parts["web_search"] == usd("0.01")


def test_price_is_that_of_the_day_of_the_request() -> None:
    counts = {"input_tokens": 300_000, "output_tokens": 0}
    before = BOOK.charge(counts, model="claude-opus-4-6", at=datetime(2026, 3, 12, 23, 59, tzinfo=UTC))
    after = BOOK.charge(counts, model="claude-opus-4-6", at=datetime(2026, 3, 13, tzinfo=UTC))
    assert [before.prices["input"], after.prices["input"]] == [10, 5]


def test_worst_case_of_a_long_prompt_is_at_the_long_price() -> None:
    short, long = (BOOK.worst(size, 0, model="claude-haiku-5-5", at=AT) for size in (98_000, 98_001))
    assert short == usd("0.2") * 100_000 / 1_000_000 * usd("1.1")
    assert long == usd("1") * 100_001 / 1_000_000 * usd("1.1")


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


def test_pricing_never_touches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert PriceBook().charge(usage(), model=SONNET, at=AT).state == EXACT


def test_opening_a_price_book_loads_neither_the_price_data_nor_pydantic() -> None:
    code = (
        "import sys; from pipeline.cost.prices import PriceBook; from pipeline.cost import ledger, report, admission;"
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


@pytest.mark.parametrize(
    ("model", "counts", "note"),
    [
        ("claude-unheard-of-9", usage(), "claude-unheard-of-9"),
        ("claude-mythos-5", usage(), "claude-mythos-5"),
        ("claude-mythos-5-1", usage(), "claude-mythos-5-1"),
        ("claude-mythos-preview", usage(), "claude-mythos-preview"),
        (SONNET, {"output_tokens": 3}, "input_tokens"),
        ("claude-2", usage(cache_read_input_tokens=5), "cache_read"),
        (SONNET, usage(speed="fast"), "fast"),
    ],
)
def test_what_has_no_price_is_unpriced_with_the_reason_and_never_zero(model: str, counts: Any, note: str) -> None:
    charge = BOOK.charge(counts, model=model, at=AT)
    assert charge.state == UNPRICED
    assert note in charge.note
    if note == model:
        assert charge.tokens == {"input": 1000, "output": 500}
        assert BOOK.worst(100, 100, model=model, at=AT) is None
        assert BOOK.partial(counts, model=model, at=AT, worst=None).state == UNPRICED


@pytest.mark.parametrize(
    ("more", "named"), [({"inference_geo": "mars"}, "mars"), ({"server_tool_use": {"shells": 2}}, "shells")]
)
def test_what_is_billed_without_a_known_unit_has_no_upper_bound(more: dict[str, Any], named: str) -> None:
    charge = BOOK.charge(usage(**more), model=SONNET, at=AT)
    assert (charge.state, charge.low, charge.high) == (INTERVAL, usd("0.007"), None)
    assert named in charge.note


def test_names_of_other_tools_and_days_do_not_hide_the_price() -> None:
    for name in (
        "anthropic/claude-sonnet-5-5", "Anthropic:claude-sonnet-5-5", "openrouter/anthropic/claude-sonnet-5-5",
        "anthropic.claude-sonnet-5-5", "models/claude-sonnet-5-5", " CLAUDE-sonnet-5-5 ",
    ):  # fmt: skip
        assert plain_name(name) == SONNET
        assert BOOK.charge(usage(), model=name, at=AT).low == usd("0.007")
    assert BOOK.charge(usage(), model="claude-sonnet-5-5-20260901", at=AT).low == usd("0.007")


def test_batch_halves_every_token_kind_but_no_search_and_says_the_full_price() -> None:
    counts = usage(
        cache_creation_input_tokens=1000, cache_read_input_tokens=1000, server_tool_use={"web_search_requests": 3}
    )
    full = BOOK.charge(counts, model=SONNET, at=AT)
    half = BOOK.charge(counts, model=SONNET, at=AT, tier="batch")
    assert half == BOOK.charge({**counts, "service_tier": "batch"}, model=SONNET, at=AT)
    assert half.parts.pop("web_search") == full.parts.pop("web_search") == usd("0.03")  # type: ignore[attr-defined]
    assert {kind: part * 2 for kind, part in half.parts.items()} == full.parts
    assert (half.tier, half.full, half.saved_by_batch) == ("batch", full.low, half.low - usd("0.03"))
    assert Charge.from_json(half.to_json()).full == full.low
    for model, at in (("claude-opus-4-1", AT), (SONNET, datetime(2026, 10, 1, tzinfo=UTC))):
        # The data has no batch price.
        half = BOOK.charge(usage(), model=model, at=at, tier="batch")
        assert half.low * 2 == BOOK.charge(usage(), model=model, at=at).low
        assert "half" in half.note


def test_price_of_fast_mode_and_the_data_it_comes_from() -> None:
    fast = BOOK.charge(usage(speed="fast"), model="claude-opus-5-5", at=AT)
    assert (fast.prices, fast.source) == ({"input": usd("8"), "output": usd("40")}, BOOK.version)
    assert BOOK.version == f"genai-prices {genai_prices.__version__}"
    slow = BOOK.worst(1000, 1000, model="claude-opus-5-5", at=AT)
    assert slow is not None
    assert BOOK.worst(1000, 1000, model="claude-opus-5-5", at=AT, fast=True) == 2 * slow


def test_worst_case_takes_the_dearest_input_and_the_surcharge_that_can_apply() -> None:
    worst = BOOK.worst(10_000, 16_000, model=SONNET, at=AT)
    assert worst == (usd("4") * (10_000 + FRAMING_TOKENS) + usd("10") * 16_000) / 1_000_000 * usd("1.1")
    unmarked = BOOK.worst(10_000, 16_000, model=SONNET, at=AT, marked=0)
    assert unmarked == (usd("2") * (10_000 + FRAMING_TOKENS) + usd("10") * 16_000) / 1_000_000 * usd("1.1")


@pytest.mark.parametrize(
    ("counts", "worst", "low", "high"),
    [
        (usage(output_tokens=1), "0.5", "0.00201", "0.5"),
        ({}, "0.5", "0", "0.5"),
        (usage(), None, "0.007", None),
        (usage(), "0.001", "0.007", "0.007"),
    ],
)
def test_broken_off_try_costs_what_was_seen_up_to_its_worst_case(
    counts: dict[str, Any], worst: str | None, low: str, high: str | None
) -> None:
    charge = BOOK.partial(counts, model=SONNET, at=AT, worst=None if worst is None else usd(worst))
    assert (charge.state, charge.low, charge.high) == (INTERVAL, usd(low), None if high is None else usd(high))
    assert charge.tokens == {kind.removesuffix("_tokens"): count for kind, count in counts.items()}
