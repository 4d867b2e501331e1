"""The axis of a chart: round steps of dollars up to what has to fit on it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal

#: Lines across a chart, at most.
_LINES = 5


def ticks(amounts: Iterable[Decimal]) -> list[Decimal]:
    """From 0 in equal round steps (1, 2 or 5 of a power of ten) to at least the largest amount."""
    most = max(amounts, default=Decimal(0))
    if most <= 0:
        return [Decimal(0), Decimal(1)]
    step = Decimal(10) ** (most.adjusted() - 1)
    while step * _LINES < most:
        step *= Decimal("2.5") if step.normalize().as_tuple().digits[0] == 2 else 2
    number = int((most / step).to_integral_value(ROUND_CEILING))
    return [step * n for n in range(number + 1)]


def label(usd: Decimal, step: Decimal) -> str:
    """A tick's dollars, with as many places as the steps between ticks need."""
    exponent = step.normalize().as_tuple().exponent
    places = max(0, -exponent) if isinstance(exponent, int) else 0
    return f"${usd:,.{places}f}"
