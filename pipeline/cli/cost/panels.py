"""What the picture of `cost --plot` shows: spend by day and by step, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from pipeline.cli.cost.books import Books
from pipeline.cli.text import count
from pipeline.cost.report import UNKNOWN, ReportLine, at_least, report

#: More days than this are drawn as months; of steps the dearest are drawn, the others as one.
MOST_DAYS, MOST_STEPS = 62, 16
_ZERO = Decimal(0)


class Bar(NamedTuple):
    """One bar, in USD: what stands, what was wasted, and what may have been spent beyond both."""

    key: str
    used: Decimal
    wasted: Decimal
    more: Decimal

    @property
    def whole(self) -> Decimal:
        """All of it."""
        return self.used + self.wasted + self.more


class Panel(NamedTuple):
    """One of the two pictures beside each other."""

    title: str
    bars: Sequence[Bar]


def panels(books: Books) -> list[Panel]:
    """Spend by day (by month, where there are many) and by step."""
    by_day, by_step = (report(books.postings, by) for by in ("day", "step"))
    title, bars = _dated([_bar(line) for line in by_day.lines])
    if unknown := by_day.total.unpriced + by_day.total.unbounded:
        title += f"; {count(unknown, 'call')} of unknown cost not in it"
    return [Panel(title, bars), Panel("Spend by step", _dearest([_bar(line) for line in by_step.lines]))]


def _bar(line: ReportLine) -> Bar:
    low = at_least(line.spend)
    return Bar(line.key, low - line.wasted, line.wasted, line.high - line.low)


def _dated(bars: Sequence[Bar]) -> tuple[str, list[Bar]]:
    """Days without gaps; days of one month together where they are too many."""
    known = {bar.key: bar for bar in bars if bar.key != UNKNOWN}
    rest = [bar for bar in bars if bar.key == UNKNOWN]
    if not known:
        return "Spend by day (UTC)", rest
    first, last = (date.fromisoformat(day) for day in (min(known), max(known)))
    if (last - first).days < MOST_DAYS:
        days = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
        return "Spend by day (UTC)", [known.get(day, Bar(day, _ZERO, _ZERO, _ZERO)) for day in days] + rest
    months: dict[str, Bar] = {}
    for day, bar in sorted(known.items()):
        months[day[:7]] = _joined(day[:7], [*filter(None, [months.get(day[:7])]), bar])
    return "Spend by month (UTC)", [*months.values(), *rest]


def _dearest(bars: Sequence[Bar]) -> list[Bar]:
    if len(bars) <= MOST_STEPS:
        return list(bars)
    chosen = set(sorted(bars, key=lambda bar: -bar.whole)[: MOST_STEPS - 1])
    others = [bar for bar in bars if bar not in chosen]
    kept = [bar for bar in bars if bar in chosen]
    return [*kept, _joined(f"{count(len(others), 'other step')}", others)]


def _joined(key: str, bars: Sequence[Bar]) -> Bar:
    used, wasted, more = (sum((getattr(bar, part) for bar in bars), _ZERO) for part in ("used", "wasted", "more"))
    return Bar(key, used, wasted, more)
