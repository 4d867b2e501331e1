"""The decision to make a call."""

from __future__ import annotations

from decimal import Decimal as D

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.budget import admit

MONEY = st.integers(0, 1000).map(lambda cents: D(cents) / 100)


@pytest.mark.parametrize(
    ("limit", "spent", "reserved", "worst", "verdict"),
    [
        (D(10), D(4), D(3), D(3), "go"),
        (D(10), D(4), D(3), D("3.01"), "wait"),
        (D(10), D(4), D(0), D("6.01"), "stop"),
        (D(10), D(7), D(3), D("3.01"), "stop"),
        (D(0), D(0), D(0), D(0), "go"),
        (None, D(1000), D(0), D(1000), "go"),
    ],
)
def test_call_is_admitted_at_its_worst_case(limit: D | None, spent: D, reserved: D, worst: D, verdict: str) -> None:
    assert admit(limit, spent, reserved, worst) == verdict


def test_call_without_a_price_fits_under_no_ceiling() -> None:
    assert admit(D(10), D(0), D(0), None) == "stop"
    assert admit(None, D(0), D(0), None) == "go"


def test_spend_without_an_upper_bound_fits_under_no_ceiling() -> None:
    assert admit(D(10), None, D(0), D(1)) == "stop"


@settings(deadline=None, max_examples=60)
@given(MONEY, MONEY, MONEY, MONEY)
def test_what_is_admitted_never_passes_the_limit(limit: D, spent: D, reserved: D, worst: D) -> None:
    verdict = admit(limit, spent, reserved, worst)
    assert (verdict == "go") == (spent + reserved + worst <= limit)
    assert (verdict == "stop") == (spent + worst > limit)
