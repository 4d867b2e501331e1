"""Limits of a store that have less left than a start is expected to cost: told before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from pipeline.app.stores import open_account, words_of
from pipeline.clock import SystemClock
from pipeline.records.budgets import DAY, Limit, LimitStanding, SpendTally, window_of
from pipeline.records.charge import dollars

_CENT = Decimal("0.01")
_DAY_OPTION = "--daily-budget-usd"


@dataclass(frozen=True, slots=True)
class ShortLimit:
    """A limit that will stop a start before its end, if that costs what is expected."""

    standing: LimitStanding
    expected_usd: Decimal
    #: What makes room for its worst case, to be typed: a command, or the option of the day's limit.
    way: str

    @property
    def text(self) -> str:
        """Return it for people: the limit, what is left of it, and what to type."""
        standing, tally = self.standing, self.standing.tally
        reserved = f" ({dollars(tally.reserved)} is reserved by runs under way)" if tally.reserved else ""
        until = f"The next window begins on {standing.window.next} UTC; " if standing.window.next else ""
        way = self.way if self.way.startswith(_DAY_OPTION) else f"`{self.way}`"
        return (
            f"The limit of {standing.limit.words} has {dollars(max(standing.left, Decimal(0)))} left{reserved}, less "
            f"than the expected {dollars(self.expected_usd)}: the run would stop there, resumably. {until}{way} leaves "
            "room for the worst case."
        )

    def to_json(self) -> dict[str, Any]:
        """Return it for programs: as `budget list`, and what to type."""
        return {**self.standing.to_json(), "way": self.way}


def short_limits(
    url: str, how: Mapping[str, Any], expected: Decimal | None, worst: Decimal | None
) -> Sequence[ShortLimit]:
    """Return the limits that fit a start and have less left than it is expected to cost.

    Args:
        expected, worst: What it costs, in USD; None: unknown.
        url: Of the store.
        how: As start.settings_now gives it: its labels and its limit of a day count.

    Raises:
        StoreError: The account cannot be read.
    """
    if not expected or worst is None:
        return ()
    account, now, store = open_account(url), SystemClock().now(), words_of(url)
    found = []
    if how["daily_budget_usd"] is not None:
        day = now.date().isoformat()
        given = Limit("", DAY, Decimal(how["daily_budget_usd"]))
        its = LimitStanding(given, window_of(DAY, day), SpendTally(account.total(now.date())))
        found.append(ShortLimit(its, expected, f"{_DAY_OPTION} {_enough(its, worst)}"))
    for each in account.standings(now, how["labels"] or ""):
        way = f"./pipeline.sh budget set {each.limit.options} --usd {_enough(each, worst)}{store}"
        found.append(ShortLimit(each, expected, way))
    return [each for each in found if each.standing.left < expected]


def _enough(standing: LimitStanding, usd: Decimal) -> str:
    """Return the limit that leaves room for so much, in whole cents."""
    return f"{(standing.tally.total + usd).quantize(_CENT, ROUND_UP):f}"
