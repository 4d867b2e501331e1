"""A user's own prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.cost.prices import PriceBook
from pipeline.errors import InvalidValue
from pipeline.records.charge import UNPRICED

AT, SONNET = datetime(2026, 12, 1, tzinfo=UTC), "claude-sonnet-5-5"
USAGE = {"input_tokens": 1000, "output_tokens": 1000}
FIVE = {"input": "3", "output": 15, "cache_read": 0.3, "cache_write_5m": "3.75", "cache_write_1h": 6}

TOML = """
[models."claude-mythos-5"]
input = "10"
output = 50.5
cache_read = 0.25
cache_write_5m = 12.5
cache_write_1h = 20
web_search = 8
fast = "2"

[models."claude-mythos-5".long_context]
above = 100000
factor = "1.5"
"""


def book(tmp_path: Path, text: str, name: str = "prices.toml") -> PriceBook:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return PriceBook(path)


def entry(**changes: Any) -> str:
    return json.dumps({"models": {SONNET: {**FIVE, **changes}}})


def test_file_prices_a_model_the_published_data_lacks(tmp_path: Path) -> None:
    charge = book(tmp_path, TOML).charge(USAGE, model="anthropic/claude-mythos-5", at=AT)
    assert charge.low == Decimal("0.0605")
    assert charge.source.startswith("file prices.toml sha256:")


def test_numbers_in_the_file_are_exact_decimals(tmp_path: Path) -> None:
    for name, text in (("prices.json", entry()), ("prices.toml", TOML)):
        own = book(tmp_path, text, name)
        model = "claude-sonnet-5-5" if name.endswith("json") else "claude-mythos-5"
        charge = own.charge({**USAGE, "cache_read_input_tokens": 1}, model=model, at=AT)
        assert charge.parts["cache_read"] in (Decimal("0.0000003"), Decimal("0.00000025"))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{}", "models"),
        ('{"models": []}', "models"),
        ('{"models": {}}', "models"),
        (json.dumps({"models": {"m": FIVE}, "currency": "GBP"}), "currency"),
        ('{"models": {"m": 3}}', "models.m"),
        ('{"models": {"m": {"input": 3}}}', "models.m.cache_write_5m"),
        (entry(input="cheap"), f"models.{SONNET}.input"),
        (entry(input=-1), f"models.{SONNET}.input"),
        (entry(input=None), f"models.{SONNET}.input"),
        (entry(input=True), f"models.{SONNET}.input"),
        (entry(input="NaN"), f"models.{SONNET}.input"),
        (entry(input="1e400"), f"models.{SONNET}.input"),
        (entry(input=float("inf")), f"models.{SONNET}.input"),
        (entry(imput=3), f"models.{SONNET}.imput"),
        (entry(long_context=5), f"models.{SONNET}.long_context"),
        (entry(long_context={"above": "x", "factor": 2}), f"models.{SONNET}.long_context.above"),
        (entry(long_context={"above": 5, "factor": "x"}), f"models.{SONNET}.long_context.factor"),
        (entry(batch="half"), f"models.{SONNET}.batch"),
    ],
)
def test_wrong_file_is_refused_naming_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        book(tmp_path, text, "mine.json")
    assert caught.value.message.startswith(f"mine.json: {key} ")
    assert caught.value.data["key"] == key


def test_all_prices_that_a_file_lacks_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="cache_write_5m is missing, and so are cache_write_1h, cache_read"):
        book(tmp_path, '[models."mine-1"]\ninput = 3\noutput = 15\n')


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("a.toml", "= 3"), ("b.json", "\x00"), ("c.json", "[" * 99_999)]
)
def test_file_that_is_no_json_or_toml_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidValue, check=lambda error: error.code == "price_file_invalid" and name in error.message):
        book(tmp_path, text, name)


@pytest.mark.parametrize("path", [Path("/nowhere/absent.toml"), Path("/dev/zero")])
def test_file_that_is_not_there_or_has_no_end_is_refused(path: Path) -> None:
    with pytest.raises(InvalidValue, check=lambda error: error.code == "price_file_unreadable"):
        PriceBook(path)


def test_file_wins_over_published_prices_and_leaves_others_alone(tmp_path: Path) -> None:
    own = book(tmp_path, entry(), "prices.json")
    for model, usd in ((SONNET, "0.018"), (f"{SONNET}-20260901", "0.018"), ("claude-opus-5-5", "0.024")):
        assert own.charge(USAGE, model=model, at=AT).low == Decimal(usd)
    assert own.version.startswith("file prices.json")
    assert "genai-prices" in own.version
    for without in ({"speed": "fast"}, {"server_tool_use": {"web_search_requests": 1}}):
        assert own.charge({**USAGE, **without}, model=SONNET, at=AT).state == UNPRICED


def test_factors_for_batch_fast_long_prompts_and_searches(tmp_path: Path) -> None:
    own, model = book(tmp_path, TOML), "claude-mythos-5"
    assert own.charge(USAGE, model=model, at=AT, tier="batch").prices["input"] == 5
    assert own.charge({**USAGE, "speed": "fast"}, model=model, at=AT).prices["input"] == 20
    long = own.charge({"input_tokens": 100_001, "output_tokens": 1}, model=model, at=AT)
    assert long.prices["output"] == Decimal("75.75")
    searched = {**USAGE, "server_tool_use": {"web_search_requests": 1}}
    assert own.charge(searched, model=model, at=AT).parts["web_search"] == Decimal("0.008")
    worst = own.worst(98_001, 0, model=model, at=AT)
    assert worst == Decimal("30") * 100_001 / 1_000_000 * Decimal("1.1")
    free = book(tmp_path, entry(batch=0), "prices.json")
    assert free.charge(USAGE, model=SONNET, at=AT, tier="batch").low == 0
