"""Whose prices count: each provider's own list, by the names that models have there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.cost.ledger import COLUMNS, rows
from pipeline.cost.prices import PriceBook
from pipeline.cost.rates import list_of, provider_at, published_id
from pipeline.cost.report import NOWHERE, of_ledger, of_sums, report
from pipeline.errors import ConfigError
from pipeline.providers import PROVIDERS, able, provider_of
from pipeline.records.charge import EXACT, UNPRICED
from pipeline.records.codec import Record, decode_fact, encode_fact
from pipeline.records.kinds import CallStarted

AT = datetime(2026, 11, 29, tzinfo=UTC)
SONNET = "claude-sonnet-5-5"
#: A thousand tokens in and out at $2 and $10 a million.
USAGE = {"input_tokens": 1000, "output_tokens": 1000}
GLOBAL, REGIONAL = Decimal("0.012"), Decimal("0.0132")


def charge(model: str, provider: str, **usage: Any) -> tuple[str, Decimal]:
    found = PriceBook().charge({**USAGE, **usage}, model=model, at=AT, provider=provider)
    return found.state, found.low


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("anthropic", SONNET, GLOBAL),
        ("bedrock", SONNET, GLOBAL),
        ("bedrock", f"global.anthropic.{SONNET}", GLOBAL),
        ("bedrock", f"us.anthropic.{SONNET}", REGIONAL),
        ("bedrock", f"anthropic.{SONNET}", REGIONAL),
        ("bedrock", f"ca.anthropic.{SONNET}", REGIONAL),
        ("bedrock", f"arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.{SONNET}", REGIONAL),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", Decimal("0.0066")),
        ("bedrock-mantle", SONNET, REGIONAL),
        ("vertex", SONNET, GLOBAL),
        ("vertex", "claude-sonnet-4-5@20250929", Decimal("0.018")),
        ("foundry", SONNET, GLOBAL),
        ("aws", SONNET, GLOBAL),
        ("google-cloud", SONNET, GLOBAL),
        ("openai", "gpt-5-mini", Decimal("0.00225")),
        ("openai", "gpt-5-mini-2025-08-07", Decimal("0.00225")),
        ("openrouter", "anthropic/claude-sonnet-5.5", GLOBAL),
    ],
)
def test_call_costs_what_its_provider_asks_for_the_model_by_its_name_there(
    provider: str, model: str, usd: Decimal
) -> None:
    assert charge(model, provider) == (EXACT, usd)


def test_endpoint_of_a_region_costs_a_tenth_more_and_the_worst_case_has_room_for_it() -> None:
    assert charge(SONNET, "vertex", endpoint="regional") == (EXACT, REGIONAL)
    assert PriceBook(None, "vertex", regional=True).charge(USAGE, model=SONNET, at=AT).low == REGIONAL
    worst = {
        name: PriceBook(None, name).worst(1000, 1000, model=SONNET, at=AT, added=0, marked=0) for name in PROVIDERS
    }
    assert worst["openai"] is None
    # The names of Bedrock's models tell the place; elsewhere the reply does.
    assert (worst["bedrock"], worst["bedrock-mantle"]) == (GLOBAL, REGIONAL)
    assert {worst[name] for name in ("anthropic", "vertex", "foundry", "aws", "google-cloud")} == {REGIONAL}


@pytest.mark.parametrize(
    ("provider", "model"),
    [("bedrock", "us.anthropic.claude-opus-4-50"), ("bedrock", "nova-pro"), ("openai", "llama3.2"), ("nobody", SONNET),
     ("bedrock", "arn:aws:bedrock:us-east-1:1:application-inference-profile/x1y2")],
)  # fmt: skip
def test_name_that_no_list_has_is_unpriced(provider: str, model: str) -> None:
    assert charge(model, provider) == (UNPRICED, Decimal(0))


def test_price_file_wins_by_the_name_as_asked_or_as_the_provider_has_it(tmp_path: Path) -> None:
    kinds = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
    for named in (SONNET, f"global.anthropic.{SONNET}"):
        file = tmp_path / "prices.json"
        file.write_text(json.dumps({"models": {named: dict.fromkeys(kinds, 1)}}))
        found = PriceBook(file).charge(USAGE, model=SONNET, at=AT, provider="bedrock")
        assert found.low == Decimal("0.002")


def test_reply_that_names_the_model_in_the_first_partys_way_is_of_the_same_model() -> None:
    for provider, asked in (("bedrock", f"us.anthropic.{SONNET}"), ("bedrock-mantle", SONNET), ("vertex", SONNET)):
        found = PriceBook().charge(USAGE, model=asked, at=AT, answered=SONNET, provider=provider)
        assert (found.model, found.note) == ("", "")
    other = PriceBook().charge(USAGE, model="gpt-5-mini", at=AT, answered="gpt-5", provider="openai")
    assert (other.model, other.low) == ("gpt-5", Decimal("0.01125"))


def test_addresses_and_lists_are_known_by_the_published_data() -> None:
    assert provider_at("https://openrouter.ai/api/v1") == "openrouter"
    assert provider_at("http://127.0.0.1:11434/v1") is None
    assert [list_of(name) for name in ("bedrock", "vertex", "foundry", "openrouter")] == [
        "aws", "google", "anthropic", "openrouter",
    ]  # fmt: skip
    assert published_id("claude-nonsense", "bedrock") is None


def test_provider_is_named_with_the_nearest_known_one() -> None:
    assert provider_of(None).name == "anthropic"
    with pytest.raises(ConfigError, check=lambda error: error.code == "unknown_provider") as caught:
        provider_of("bedrok")
    assert "bedrock" in caught.value.hint
    assert able("batches") == "anthropic, aws or google-cloud"


def test_ledger_names_who_billed_and_what_names_nobody_is_anthropics() -> None:
    started = [CallStarted("a#1", f"k{n}", SONNET, "blob", worst="1", provider=name)
               for n, name in enumerate(("", "bedrock"))]  # fmt: skip
    assert b"provider" not in encode_fact(started[0])
    again = [decode_fact(json.loads(encode_fact(fact))) for fact in started]
    found = rows([Record(n, "2026-11-29T10:00:00.000Z", 1, fact) for n, fact in enumerate(again, 1)])
    assert [row.provider for row in found] == ["anthropic", "bedrock"]
    assert found[1].to_csv()[COLUMNS.index("provider")] == found[1].to_json()["provider"] == "bedrock"
    lines = report(of_ledger(found), "provider").lines
    assert [line.key for line in lines] == ["anthropic", "bedrock"]
    sums: list[dict[str, Any]] = [{"calls": 2, "usd": 1}, {"calls": 1, "usd": 2, "provider": "vertex"}]
    assert [line.key for line in report(of_sums(sums, NOWHERE), "provider").lines] == ["anthropic", "vertex"]
