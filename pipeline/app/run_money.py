"""A run's money and pace: what it has spent, may have spent, was expected to, and comes to at this rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.app.run_items import Items
from pipeline.app.run_trail import Trail
from pipeline.app.words import count
from pipeline.clock import parse_iso
from pipeline.records.charge import dollars
from pipeline.records.documents import cost_of, reported_usd
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED, FAILED

_ZERO = Decimal(0)
#: Fewer ends of items tell no rate.
_LEAST_ENDS = 3


@dataclass(frozen=True)
class Money:
    """Hold the spend of a run and its bounds; USD."""

    spent: Decimal
    #: What may be billed beyond it; None: no upper bound is known.
    possibly: Decimal | None
    expected: Decimal | None
    #: What it comes to at this rate, and the active seconds it then has taken; None: it does not run, or nothing tells.
    at_rate: tuple[Decimal, float] | None
    ceiling: Decimal | None
    #: Calls so far, and those of unknown price among them.
    calls: int = 0
    unpriced: int = 0
    #: Of `spent`, what an imported document reported.
    imported: Decimal = _ZERO

    @property
    def most(self) -> Decimal:
        """Return the most that may have been spent, as far as that is known."""
        return self.spent + (self.possibly or _ZERO)


def seconds_left(trail: Trail, items: Items | None) -> float | None:
    """Return the active seconds that what is left of the items takes at this rate; None: nothing tells."""
    ends = [parse_iso(at).timestamp() for path, at in trail.ends if items is not None and path == items.path]
    left = items.left if items is not None else 0
    if not left or len(ends) < _LEAST_ENDS or ends[-1] <= ends[0]:
        return None
    return (ends[-1] - ends[0]) / (len(ends) - 1) * left


def money_of(
    state: RunState, trail: Trail, items: Items | None, expected: Decimal | None, active: float | None
) -> Money:
    """Return what is known of a run's money.

    Args:
        expected: What all of it was expected to cost.
        active: Seconds that its owners have worked up to now, while it runs; None: it does not.
    """
    cost, ceiling = cost_of(state), state.execution.get("max_cost_usd")
    spent = cost.known
    left, at_rate = seconds_left(trail, items), None
    if items is not None and left is not None and active is not None and spent:
        step = bare(items.path)
        paid = sum((spend.usd + spend.low for key, spend in state.spend.items() if key.step == step), _ZERO)
        made = sum(word in (COMPLETED, FAILED) for word in items.words)
        at_rate = (spent + (paid / made * items.left if made else _ZERO), active + left)
    return Money(
        spent, cost.possibly, expected, at_rate, None if ceiling is None else Decimal(str(ceiling)),
        state.total.calls, cost.unpriced, reported_usd(state),
    )  # fmt: skip


def _calls(money: Money) -> Iterator[str]:
    """Yield what is said beside the sum: of how many calls it is."""
    if money.calls or not money.imported:
        yield count(money.calls, "call")
    if money.unpriced:
        yield f"{money.unpriced:,} of unknown price"
    if money.imported:
        yield f"{dollars(money.imported)} imported"


def figures(money: Money) -> list[dict[str, Any]]:
    """Return the legend: key of its line, word, amount, and what is to be said beside it."""
    more = "no upper bound known" if money.possibly is None else f"to {dollars(money.most)}" if money.possibly else ""
    rows = [
        ("spent", "Spent", money.spent, ", ".join(_calls(money))),
        ("possibly", "Possibly more", money.possibly, more),
        ("expected", "Expected", money.expected, "the whole course" if money.expected else ""),
        ("rate", "At this rate", money.at_rate[0] if money.at_rate else None, ""),
        ("ceiling", "Ceiling", money.ceiling, ""),
    ]
    return [
        {"key": key, "word": word, "usd": None if usd is None else float(usd), "note": note}
        for key, word, usd, note in rows
        if usd or note or key == "spent"
    ]
