"""Recorded calls at other prices."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import parse_iso
from pipeline.cost.ledger import LedgerRow, charged, reprice, rows, usage_of
from pipeline.cost.prices import PriceBook
from pipeline.cost.usage import billed
from pipeline.records.charge import FREE, UNPRICED, Charge
from pipeline.records.kinds import ChargeSettled
from tests.unit.cost.logs import AT, Log

SONNET = "claude-sonnet-5-5"
BOOK = PriceBook()
WHEN = parse_iso(AT)
USAGE: dict[str, Any] = {
    "input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 10_000, "cache_creation_input_tokens": 1000,
    "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0},
}  # fmt: skip


@pytest.fixture
def double(tmp_path: Path) -> PriceBook:
    """A price file at twice the published prices."""
    path = tmp_path / "mine.toml"
    path.write_text(
        f'[models."{SONNET}"]\ninput = "4"\noutput = "20"\ncache_read = "0.2"\ncache_write_5m = "5"\n'
        'cache_write_1h = "8"\nbatch = "0.25"\n'
    )
    return PriceBook(path)


def ended(charge: Charge, **more: Any) -> LedgerRow:
    log = Log()
    log.call(charge, **more)
    return rows(log.records)[0]


def test_call_at_its_own_prices_costs_what_is_recorded() -> None:
    charge = BOOK.charge(USAGE, model=SONNET, at=WHEN)
    row = ended(charge)
    for usage in (USAGE, None):
        again = reprice(row, usage, BOOK)
        assert (again.row, again.kept) == (row, "")


def test_call_at_other_prices_keeps_its_tokens_and_says_which_prices(double: PriceBook) -> None:
    row = ended(BOOK.charge(USAGE, model=SONNET, at=WHEN))
    again = reprice(row, USAGE, double).row
    assert (again.usd, again.tokens) == (2 * row.low, row.tokens)
    assert again.source.startswith("file mine.toml")
    assert row.source.startswith("genai-prices")


def test_batch_stays_a_batch(double: PriceBook) -> None:
    row = ended(BOOK.charge(USAGE, model=SONNET, at=WHEN, tier="batch"))
    again = reprice(row, USAGE, double).row
    assert (again.tier, again.usd) == ("batch", row.low)


def test_place_of_inference_comes_from_the_recorded_usage(double: PriceBook) -> None:
    usage = {**USAGE, "inference_geo": "us"}
    row = ended(BOOK.charge(usage, model=SONNET, at=WHEN))
    assert reprice(row, usage, double).row.usd == 2 * row.low


def test_unpriced_call_gets_a_price(double: PriceBook) -> None:
    row = ended(Charge(UNPRICED, tokens={"input": 1000, "output": 0}, high=None, note="no price"))
    again = reprice(row, None, double)
    assert (again.row.usd, again.row.state, again.kept) == (D("0.004"), "exact", "")


def test_broken_off_call_moves_its_lower_end_only(double: PriceBook) -> None:
    charge = BOOK.partial(USAGE, model=SONNET, at=WHEN, worst=D("0.5"))
    row = ended(charge, error={"type": "ModelUnavailable"}, usable=False)
    again = reprice(row, USAGE, double).row
    assert (again.low, again.high, again.state) == (2 * row.low, D("0.5"), "interval")


def test_call_that_was_not_billed_costs_nothing_at_any_price(double: PriceBook) -> None:
    row = ended(FREE, error={"type": "ModelRejected"}, usable=False)
    assert reprice(row, USAGE, double).row is row
    assert reprice(row, None, double).kept == ""


def test_model_without_a_price_stays_as_recorded() -> None:
    row = replace(ended(BOOK.charge(USAGE, model=SONNET, at=WHEN)), model="claude-unheard-of-9")
    again = reprice(row, USAGE, BOOK)
    assert again.row is row
    assert "claude-unheard-of-9" in again.kept
    broken = replace(charged(row, BOOK.partial(USAGE, model=SONNET, at=WHEN, worst=D(1))), error="ModelUnavailable")
    assert reprice(broken, USAGE, BOOK).row is broken


def test_what_nobody_knows_tokens_of_stays_as_recorded() -> None:
    log = Log()
    log.start()
    log.add(ChargeSettled(log.start(), "0.3"))
    log.call(Charge("interval", high=D(1)), error={"type": "X"}, usable=False)
    log.end(99, BOOK.charge(USAGE, model=SONNET, at=WHEN))
    found = [reprice(row, None, BOOK) for row in rows(log.records)]
    assert [each.kept for each in found] == [
        "no end is recorded", "settled by hand", "no tokens are recorded", "its model is not recorded",
    ]  # fmt: skip
    assert [each.row for each in found] == rows(log.records)


def test_usage_of_tokens_is_billed_as_those_tokens() -> None:
    tokens = {"input": 1, "cache_write_5m": 2, "cache_write_1h": 3, "cache_read": 4, "output": 5, "web_search": 6}
    assert billed(usage_of(tokens)).tokens == tokens
