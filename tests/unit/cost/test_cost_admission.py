"""The decision to make a call."""

from __future__ import annotations

from decimal import Decimal as D

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.cost.admission import admit

MONEY = st.integers(0, 1000).map(lambda cents: D(cents) / 100)


@example(D(10), D(4), D(3), D(3))
@example(D(10), D(4), D(3), D("3.01"))
@example(D(10), D(4), D(0), D("6.01"))
@example(D(0), D(0), D(0), D(0))
@settings(deadline=None, max_examples=60)
@given(MONEY, MONEY, MONEY, MONEY)
def test_what_is_admitted_never_passes_the_limit(limit: D, spent: D, reserved: D, worst: D) -> None:
    verdict = admit(limit, spent, reserved, worst)
    assert (verdict == "go") == (spent + reserved + worst <= limit)
    assert (verdict == "stop") == (spent + worst > limit)
    assert admit(None, spent, reserved, worst) == "go"


def test_what_has_no_price_or_no_bound_fits_under_no_ceiling() -> None:
    assert admit(D(10), D(0), D(0), None) == admit(D(10), None, D(0), D(1)) == "stop"
    assert admit(None, None, D(0), None) == "go"
