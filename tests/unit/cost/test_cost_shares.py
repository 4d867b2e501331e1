"""Shares of what several calls were billed together."""

from __future__ import annotations

from decimal import Decimal as D

from hypothesis import given
from hypothesis import strategies as st

from pipeline.cost.reconciliation import Bounds, most, shares

usd = st.decimals(min_value=0, max_value=1000, allow_nan=False, places=6)


@st.composite
def calls(draw: st.DrawFn) -> list[Bounds]:
    def one() -> Bounds:
        low = draw(usd)
        return Bounds(low, draw(st.one_of(st.none(), st.just(low + draw(usd)))), draw(st.integers(0, 10_000)))

    return [one() for _ in range(draw(st.integers(1, 12)))]


@given(calls(), usd)
def test_shares_add_up_and_none_passes_its_bound_unless_all_must(bounds: list[Bounds], amount: D) -> None:
    found = shares(bounds, amount)
    assert sum(found, D(0)) == amount
    assert all(share >= 0 for share in found)
    limit = most(bounds)
    if limit is None or amount <= limit:
        assert all(each.high is None or share <= each.high for each, share in zip(bounds, found, strict=True))
    if amount >= sum((each.low for each in bounds), D(0)):
        assert all(share >= each.low for each, share in zip(bounds, found, strict=True))


def test_shares_go_with_the_width_of_the_bounds_and_then_with_tokens() -> None:
    two = [Bounds(D(0), D(1)), Bounds(D(0), D(3))]
    assert shares(two, D(2)) == [D("0.5"), D("1.5")]
    free = [Bounds(D(0), D(1)), Bounds(D(0), None, 100), Bounds(D(0), None, 300)]
    assert shares(free, D(5)) == [D(1), D(1), D(3)]
    assert sum(shares([Bounds(D(0), D(1))] * 3, D(1)), D(0)) == 1
