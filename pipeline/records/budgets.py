"""Limits on what runs spend over windows of time, and by label: which of them fit, and what counts. Pure.

A run's labels are one text everywhere: `project=x,team=maths`, sorted by key; "" for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from pipeline.errors import ConfigError
from pipeline.records.charge import amount, in_full

DAY, WEEK, MONTH, TOTAL = "day", "week", "month", "total"
PERIODS = (DAY, WEEK, MONTH, TOTAL)
_LABEL = re.compile(r"[^\W_][\w.-]{0,63}=[\w./:@+-]{1,64}")
_ZERO = Decimal(0)


def labels_text(labels: str | Iterable[str] | Mapping[str, Any]) -> str:
    """Return labels as they are recorded: sorted by key, joined by commas.

    Args:
        labels: KEY=VALUE texts, one text of several joined by commas ("" for none), or a mapping.

    Raises:
        ConfigError: One is malformed, or a key has two values.
    """
    if isinstance(labels, Mapping):
        labels = [f"{key}={value}" for key, value in labels.items()]
    texts = filter(None, [labels]) if isinstance(labels, str) else labels
    found: dict[str, str] = {}
    # An empty one among them is a mistake, an unset variable as a rule: it would take the run out of its limits.
    for part in (part.strip() for text in texts for part in text.split(",")):
        key, _, value = part.partition("=")
        if not _LABEL.fullmatch(part):
            hint = "Write KEY=VALUE of letters, digits and . _ - (the value also / : @ +), such as team=maths."
            raise ConfigError(f"{part!r} is not a label.", code="invalid_label", hint=hint)
        if found.setdefault(key, value) != value:
            raise ConfigError(f"The label {key!r} is given as {found[key]!r} and {value!r}.", code="invalid_label",
                              hint="Give it once.")  # fmt: skip
    return ",".join(f"{key}={found[key]}" for key in sorted(found))


class Window(NamedTuple):
    """UTC days from the first to the last, YYYY-MM-DD; what has no end is "": then it has no first either."""

    first: str = ""
    last: str = ""

    def holds(self, day: str) -> bool:
        return not self.last or self.first <= day <= self.last

    def days(self) -> list[str]:
        """Return all its days; of one without an end none can be named."""
        if not self.last:
            return []
        first, last = date.fromisoformat(self.first), date.fromisoformat(self.last)
        return [str(first + timedelta(days=number)) for number in range((last - first).days + 1)]

    @property
    def next(self) -> str:
        """Return the day on which the next one begins; "": never."""
        return str(date.fromisoformat(self.last) + timedelta(days=1)) if self.last else ""


def window_of(per: str, day: str) -> Window:
    """Return the window of a period that a UTC day lies in: a day, an ISO week, a calendar month, or all time."""
    at = date.fromisoformat(day)
    if per == DAY:
        return Window(day, day)
    if per == WEEK:
        monday = at - timedelta(days=at.weekday())
        return Window(str(monday), str(monday + timedelta(days=6)))
    if per == MONTH:
        following = (at.replace(day=28) + timedelta(days=4)).replace(day=1)
        return Window(str(at.replace(day=1)), str(following - timedelta(days=1)))
    return Window()


@dataclass(frozen=True, slots=True)
class Limit:
    """What runs with these labels may spend in a window, in USD."""

    #: As labels_text; "": all runs of the store.
    labels: str
    per: str
    usd: Decimal

    @property
    def key(self) -> tuple[str, str]:
        """Return what there is only one of: its labels and period."""
        return self.labels, self.per

    def fits(self, labels: str) -> bool:
        return not self.labels or set(self.labels.split(",")) <= set(labels.split(","))

    @property
    def words(self) -> str:
        """Return it for people: "$200.00 per month for team=maths"."""
        span = "in total" if self.per == TOTAL else f"per {self.per}"
        return f"{in_full(self.usd)} {span} for {self.labels or 'all runs'}"

    @property
    def options(self) -> str:
        """Return the options of `budget set` and `budget remove` that name it."""
        return "".join(f"--label {each} " for each in filter(None, self.labels.split(","))) + f"--per {self.per}"

    def to_json(self) -> dict[str, str]:
        return {"labels": self.labels, "per": self.per, "usd": str(self.usd)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Limit:
        """Read it.

        Raises:
            KeyError, TypeError, ValueError: It makes no sense.
        """
        if stored["per"] not in PERIODS:
            raise ValueError(f"{stored['per']!r} is not a period")
        try:
            labels = labels_text(str(stored["labels"]))
        except ConfigError as error:
            raise ValueError(error.message) from None
        return cls(labels, stored["per"], amount(stored["usd"]))


@dataclass(slots=True)
class SpendTally:
    """What is settled, and what is reserved beside it, in USD."""

    spent: Decimal = _ZERO
    reserved: Decimal = _ZERO

    @property
    def total(self) -> Decimal:
        return self.spent + self.reserved

    def add(self, usd: Decimal, *, settled: bool) -> None:
        if settled:
            self.spent += usd
        else:
            self.reserved += usd


#: UTC day → a run's labels → what such runs spent and reserved that day.
Tallies = Mapping[str, Mapping[str, SpendTally]]


@dataclass(frozen=True, slots=True)
class LimitStanding:
    """A limit and what counts towards it in one window."""

    limit: Limit
    window: Window
    tally: SpendTally = field(default_factory=SpendTally)

    @property
    def left(self) -> Decimal:
        """Return what can still be admitted, in USD; below 0 where a bill was above its worst case."""
        return self.limit.usd - self.tally.total

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.limit.labels or None, "per": self.limit.per, "since": self.window.first or None,
            "until": self.window.last or None, "limit_usd": self.limit.usd, "spent_usd": self.tally.spent,
            "reserved_usd": self.tally.reserved, "left_usd": self.left,
        }  # fmt: skip


def standing(limit: Limit, day: str, tallies: Tallies) -> LimitStanding:
    """Return how a limit stands in the window of a UTC day."""
    made = LimitStanding(limit, window_of(limit.per, day))
    for each, by_labels in tallies.items():
        if made.window.holds(each):
            for labels, tally in by_labels.items():
                if limit.fits(labels):
                    made.tally.spent += tally.spent
                    made.tally.reserved += tally.reserved
    return made


def ordered(limits: Iterable[Limit]) -> list[Limit]:
    """Return limits in the order in which they are listed: of all runs first, by label, the shortest window first."""
    return sorted(limits, key=lambda limit: (limit.labels, PERIODS.index(limit.per)))
