"""What was spent as bars: days without gaps, steps by what they cost, and the scale beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import ROUND_CEILING, Decimal
from itertools import chain
from typing import Any, NamedTuple

from pipeline.app.cost_report import Statement
from pipeline.cost.report import UNKNOWN, ReportLine, at_least, report

#: More days than this are drawn as months; of steps the dearest are drawn, the others as one.
MOST_DAYS, MOST_STEPS = 62, 16
#: Lines across a chart, at most.
_LINES = 5
#: A limit this many times as high as the highest bar is named beside the chart: drawn, it would flatten the bars.
_IN_SIGHT = 2
#: Names below the columns of a chart, at most; places for columns, at least; a column's part of its place.
_NAMES, _LEAST, _COLUMN = 8, 8, Decimal("0.7")
_ZERO = Decimal(0)


class Bar(NamedTuple):
    """One bar, in USD: what was used, what was wasted, and what may have been spent beyond both."""

    key: str
    used: Decimal
    wasted: Decimal
    more: Decimal

    @property
    def whole(self) -> Decimal:
        """Return all of it."""
        return self.used + self.wasted + self.more


class Panel(NamedTuple):
    """One of the two charts of `cost --plot`."""

    title: str
    bars: Sequence[Bar]


def panels(made: Statement) -> list[Panel]:
    """Return spend by day (by month, where there are many) and by step."""
    by_day, by_step = (report(made.postings, by) for by in ("day", "step"))
    title, bars = dated(map(bar_of, by_day.lines))
    if unknown := by_day.total.unpriced + by_day.total.unbounded:
        title += f"; {unknown:,} call{'' if unknown == 1 else 's'} of unknown cost not in it"
    steps = list(map(bar_of, by_step.lines))
    if len(steps) > MOST_STEPS:
        dearest = set(sorted(steps, key=lambda bar: -bar.whole)[: MOST_STEPS - 1])
        others = [bar for bar in steps if bar not in dearest]
        steps = [*(bar for bar in steps if bar in dearest), _joined(f"{len(others):,} other steps", others)]
    return [Panel(title, bars), Panel("Spend by step", steps)]


def bar_of(line: ReportLine) -> Bar:
    """Return a line of a report as a bar."""
    low = at_least(line)
    return Bar(line.key, low - line.wasted, line.wasted, line.high - line.low)


def dated(bars: Iterable[Bar]) -> tuple[str, list[Bar]]:
    """Return days without gaps; days of one month together where they are too many."""
    known = {bar.key: bar for bar in bars}
    rest = [known.pop(UNKNOWN)] if UNKNOWN in known else []
    if not known:
        return "Spend by day (UTC)", rest
    first, last = (date.fromisoformat(day) for day in (min(known), max(known)))
    if (last - first).days < MOST_DAYS:
        days = [str(first + timedelta(days=n)) for n in range((last - first).days + 1)]
        return "Spend by day (UTC)", [known.get(day, Bar(day, _ZERO, _ZERO, _ZERO)) for day in days] + rest
    months: dict[str, list[Bar]] = {}
    for day, bar in sorted(known.items()):
        months.setdefault(day[:7], []).append(bar)
    return "Spend by month (UTC)", [*(_joined(month, days) for month, days in months.items()), *rest]


def _joined(key: str, bars: Sequence[Bar]) -> Bar:
    used, wasted, more = (sum((getattr(bar, part) for bar in bars), _ZERO) for part in ("used", "wasted", "more"))
    return Bar(key, used, wasted, more)


def ticks(bars: Iterable[Bar]) -> list[tuple[Decimal, str]]:
    """Return equal round steps (1, 2 or 5 of a power of ten) from 0 to at least the largest bar, with their labels."""
    most = max((bar.whole for bar in bars), default=Decimal(0))
    step, number = Decimal(1), 1
    if most > 0:
        step = Decimal(10) ** (most.adjusted() - 1)
        while step * _LINES < most:
            step *= Decimal("2.5") if step.normalize().as_tuple().digits[0] == 2 else 2
        number = int((most / step).to_integral_value(ROUND_CEILING))
    exponent = step.normalize().as_tuple().exponent
    places = max(0, -exponent) if isinstance(exponent, int) else 0
    return [(step * n, f"${step * n:,.{places}f}") for n in range(number + 1)]


def columns(bars: list[Bar], limit: Decimal | None) -> dict[str, Any]:
    """Return columns in a space of 1,000 × 100, from the top left, with the scale beside them.

    Args:
        limit: USD of a day; drawn where the columns stay readable.
    """
    most = max(bar.whole for bar in bars)
    drawn = limit is not None and limit <= most * _IN_SIGHT
    marks = ticks(chain(bars, [Bar("", limit or Decimal(0), Decimal(0), Decimal(0))] if drawn else []))
    top, slot = marks[-1][0], Decimal(1000) / max(len(bars), _LEAST)
    every = -(-len(bars) // _NAMES)
    found = []
    for number, bar in enumerate(bars):
        parts, y = [], Decimal(100)
        for name in ("used", "wasted", "more"):
            if usd := getattr(bar, name):
                y -= usd / top * 100
                parts.append({"name": name, "usd": usd, "y": _figure(y), "height": _figure(usd / top * 100)})
        x = slot * number + slot * (1 - _COLUMN) / 2
        found.append({"key": bar.key, "x": _figure(x), "width": _figure(slot * _COLUMN), "parts": parts,
                      "middle": _figure((slot * number + slot / 2) / 10),
                      "name": "" if number % every else _short(bar.key)})  # fmt: skip
    return {
        "columns": found,
        "marks": [{"usd": usd, "y": _figure(100 - usd / top * 100)} for usd, _ in marks],
        "limit": {"usd": limit, "y": _figure(100 - limit / top * 100) if drawn else None} if limit else None,
    }


def shares(bar: Bar, most: Decimal) -> list[dict[str, Any]]:
    """Return the parts of a bar that lies beside its line, in percent of the longest."""
    found, x = [], Decimal(0)
    for name in ("used", "wasted", "more"):
        if usd := getattr(bar, name):
            width = usd / most * 100
            found.append({"name": name, "x": _figure(x), "width": _figure(width)})
            x += width
    return found


def _short(key: str) -> str:
    """Return a day without its year, anything else as it is."""
    return key[5:] if len(key) == len("2026-11-29") else key


def _figure(number: Decimal) -> float:
    return round(float(number), 2)
