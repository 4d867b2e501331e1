"""May the next call be made? Worst case against the ceiling; a pure decision."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

Verdict = Literal["go", "wait", "stop"]
#: The ceiling of a run for which none was named.
DEFAULT_CEILING_USD = Decimal(50)
#: The highest limit: sums of what is below it stay exact.
MOST_USD = Decimal(10) ** 12


def admit(limit: Decimal | None, spent_high: Decimal | None, reserved: Decimal, worst: Decimal | None) -> Verdict:
    """Decide on one call under one limit (all in USD).

    "wait": only reservations of calls in flight stand in the way; they may end cheaper.
    With a limit, what cannot be priced or bounded stops: an unknown sum fits under no ceiling.

    Args:
        limit: None: no ceiling.
        spent_high: Spent so far, open intervals at their high end; None: without upper bound.
        reserved: Worst cases of the calls in flight.
        worst: Worst case of this call; None: it has no price.
    """
    if limit is None:
        return "go"
    if worst is None or spent_high is None or spent_high + worst > limit:
        return "stop"
    return "go" if spent_high + reserved + worst <= limit else "wait"
