"""Share what several calls were billed together: each within its bounds, all of them exactly that amount. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal, localcontext
from typing import NamedTuple

from pipeline.cost.ledger import Row

#: Shares have no more decimals than this, or than the amount itself.
_DECIMALS = 9
_ZERO, _ONE = Decimal(0), Decimal(1)
#: Digits that sums of any amounts we take fit into.
_PRECISION = 80


class Bounds(NamedTuple):
    """What a call can have cost."""

    low: Decimal
    #: None: no upper bound is known.
    high: Decimal | None
    #: Its size beside others without a bound.
    tokens: int = 0

    @classmethod
    def of(cls, row: Row) -> Bounds:
        """Return the bounds of a try, as they were before a person settled it."""
        tokens = sum(row.tokens.values())
        return cls(_ZERO, row.bound, tokens) if row.settled else cls(row.low, row.high, tokens)


def most(bounds: Sequence[Bounds]) -> Decimal | None:
    """Return the most that the calls can have cost together; None where that is not known."""
    total = _ZERO
    for each in bounds:
        if each.high is None:
            return None
        total += each.high
    return total


def shares(bounds: Sequence[Bounds], usd: Decimal) -> list[Decimal]:
    """Return the share of each call; they add up to `usd`, and none passes its upper bound unless all must.

    Beyond its lower bound each call gets a part that goes with the width of its bounds. Less than all lower bounds
    is shared in proportion to these.
    """
    with localcontext() as context:
        context.prec = _PRECISION
        exact = _exact(bounds, usd)
        unit = _ONE.scaleb(min(-_DECIMALS, int(usd.as_tuple().exponent)))
        found = [share.quantize(unit, ROUND_DOWN) for share in exact]
        left = usd - sum(found, _ZERO)
        for at, each in enumerate(bounds):
            room = left if each.high is None else min(left, max(each.high - found[at], _ZERO))
            found[at] += room
            left -= room
        found[-1] += left
        return found


def _exact(bounds: Sequence[Bounds], usd: Decimal) -> list[Decimal]:
    lows = [each.low for each in bounds]
    above = usd - sum(lows, _ZERO)
    if above < 0:
        return _parts(usd, lows)
    widths = [_ZERO if each.high is None else each.high - each.low for each in bounds]
    unbounded = [each.high is None for each in bounds]
    room = sum(widths, _ZERO)
    if any(unbounded) and above > room:
        # What is bounded is full: the others take the rest, by their tokens where these are known.
        sizes = [Decimal(each.tokens) if free else _ZERO for each, free in zip(bounds, unbounded, strict=True)]
        rest = _parts(above - room, sizes if any(sizes) else [Decimal(free) for free in unbounded])
        return [sum(each, _ZERO) for each in zip(lows, widths, rest, strict=True)]
    return [low + part for low, part in zip(lows, _parts(above, widths), strict=True)]


def _parts(usd: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    whole = sum(weights, _ZERO)
    return [usd * weight / whole for weight in weights] if whole else [usd / len(weights)] * len(weights)
