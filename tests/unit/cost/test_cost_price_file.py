"""A user's own prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.cost.price_file import PriceFile
from pipeline.cost.prices import PriceBook
from pipeline.errors import InvalidValue
from pipeline.records.charge import UNPRICED

AT = datetime(2026, 12, 1, tzinfo=UTC)
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
    return json.dumps({"models": {"claude-sonnet-5-5": {**FIVE, **changes}}})


def test_file_prices_a_model_the_published_data_lacks(tmp_path: Path) -> None:
    charge = book(tmp_path, TOML).charge(USAGE, model="anthropic/claude-mythos-5", at=AT)
    assert charge.low == Decimal("0.0605")
    assert charge.source.startswith("file prices.toml sha256:")


def test_file_wins_over_published_prices_and_leaves_others_alone(tmp_path: Path) -> None:
    own = book(tmp_path, entry(), "prices.json")
    assert own.charge(USAGE, model="claude-sonnet-5-5", at=AT).low == Decimal("0.018")
    assert own.charge(USAGE, model="claude-opus-5-5", at=AT).low == Decimal("0.024")
    assert own.version.startswith("file prices.json")
    assert "genai-prices" in own.version


def test_file_holds_for_dated_names_of_its_models(tmp_path: Path) -> None:
    own = book(tmp_path, entry(), "prices.json")
    assert own.charge(USAGE, model="claude-sonnet-5-5-20260901", at=AT).low == Decimal("0.018")


def test_numbers_in_the_file_are_exact_decimals(tmp_path: Path) -> None:
    for name, text in (("prices.json", entry()), ("prices.toml", TOML)):
        own = book(tmp_path, text, name)
        model = "claude-sonnet-5-5" if name.endswith("json") else "claude-mythos-5"
        charge = own.charge({**USAGE, "cache_read_input_tokens": 1}, model=model, at=AT)
        assert charge.parts["cache_read"] in (Decimal("0.0000003"), Decimal("0.00000025"))


def test_factors_for_batch_fast_long_prompts_and_searches(tmp_path: Path) -> None:
    own = book(tmp_path, TOML)
    model = "claude-mythos-5"
    assert own.charge(USAGE, model=model, at=AT, tier="batch").prices["input"] == 5
    assert own.charge({**USAGE, "speed": "fast"}, model=model, at=AT).prices["input"] == 20
    assert own.charge({"input_tokens": 100_001, "output_tokens": 1}, model=model, at=AT).prices["output"] == Decimal(
        "75.75"
    )
    searched = {**USAGE, "server_tool_use": {"web_search_requests": 1}}
    assert own.charge(searched, model=model, at=AT).parts["web_search"] == Decimal("0.008")


def test_factor_of_zero_is_a_factor(tmp_path: Path) -> None:
    free = book(tmp_path, entry(batch=0), "prices.json")
    assert free.charge(USAGE, model="claude-sonnet-5-5", at=AT, tier="batch").low == 0


def test_fast_without_a_factor_is_unpriced(tmp_path: Path) -> None:
    own = book(tmp_path, entry(), "prices.json")
    assert own.charge({**USAGE, "speed": "fast"}, model="claude-sonnet-5-5", at=AT).state == UNPRICED


def test_searches_without_a_price_are_unpriced(tmp_path: Path) -> None:
    own = book(tmp_path, entry(), "prices.json")
    searched = {**USAGE, "server_tool_use": {"web_search_requests": 1}}
    assert own.charge(searched, model="claude-sonnet-5-5", at=AT).state == UNPRICED


def test_worst_case_uses_the_file(tmp_path: Path) -> None:
    own = book(tmp_path, TOML)
    worst = own.worst(98_001, 0, model="claude-mythos-5", at=AT)
    assert worst == Decimal("30") * 100_001 / 1_000_000 * Decimal("1.1")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{}", "models"),
        ('{"models": []}', "models"),
        ('{"models": {}}', "models"),
        (json.dumps({"models": {"m": FIVE}, "currency": "GBP"}), "currency"),
        ('{"models": {"m": 3}}', "models.m"),
        ('{"models": {"m": {"input": 3}}}', "models.m.cache_write_5m"),
        (entry(input="cheap"), "models.claude-sonnet-5-5.input"),
        (entry(input=-1), "models.claude-sonnet-5-5.input"),
        (entry(input=None), "models.claude-sonnet-5-5.input"),
        (entry(input=True), "models.claude-sonnet-5-5.input"),
        (entry(input="NaN"), "models.claude-sonnet-5-5.input"),
        (entry(input="1e400"), "models.claude-sonnet-5-5.input"),
        (entry(input=float("inf")), "models.claude-sonnet-5-5.input"),
        (entry(imput=3), "models.claude-sonnet-5-5.imput"),
        (entry(long_context=5), "models.claude-sonnet-5-5.long_context"),
        (entry(long_context={"above": "x", "factor": 2}), "models.claude-sonnet-5-5.long_context.above"),
        (entry(long_context={"above": 5, "factor": "x"}), "models.claude-sonnet-5-5.long_context.factor"),
        (entry(batch="half"), "models.claude-sonnet-5-5.batch"),
    ],
)
def test_wrong_file_is_refused_naming_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        book(tmp_path, text, "mine.json")
    assert caught.value.message.startswith(f"mine.json: {key} ")
    assert caught.value.data["key"] == key


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("a.toml", "= 3"), ("b.json", "\x00"), ("c.json", "[" * 99_999)]
)
def test_file_that_is_no_json_or_toml_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidValue, check=lambda error: error.code == "price_file_invalid" and name in error.message):
        book(tmp_path, text, name)


def test_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, check=lambda error: error.code == "price_file_unreadable"):
        PriceBook(tmp_path / "absent.toml")


def test_price_file_without_an_end_is_refused_before_memory_is_full() -> None:
    with pytest.raises(InvalidValue, check=lambda error: error.code == "price_file_unreadable"):
        PriceFile(Path("/dev/zero"))
