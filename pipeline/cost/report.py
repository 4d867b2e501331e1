"""Rows of the ledger → tables of what was spent on what. Sums of unrounded decimals; whoever shows them rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline.cost.ledger import OPEN, WASTED, Row
from pipeline.cost.usage import WEB_SEARCH
from pipeline.records.charge import EXACT, INPUT_KINDS, TOKEN_KINDS, UNPRICED
from pipeline.records.run import in_order

#: Amounts of charges that are known as a whole only (settled by hand, or still open).
UNSPLIT = "unsplit"
_ZERO = Decimal(0)


@dataclass(slots=True)
class Line:
    """One line of a table."""

    key: str
    calls: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    #: Exactly known spend in USD, and how much of it was for nothing.
    usd: Decimal = _ZERO
    wasted: Decimal = _ZERO
    #: Charges known between two bounds only (open calls among them): their sums.
    low: Decimal = _ZERO
    high: Decimal = _ZERO
    #: Calls without a price, and calls without an upper bound (in `low`, not in `high`).
    unpriced: int = 0
    unbounded: int = 0

    @property
    def input_tokens(self) -> int:
        """All input buckets."""
        return sum(self.tokens.get(kind, 0) for kind in INPUT_KINDS)

    @property
    def output_tokens(self) -> int:
        return self.tokens.get("output", 0)

    def to_json(self) -> dict[str, Any]:
        """For --json: money as numbers."""
        return {
            "key": self.key,
            "calls": self.calls,
            "tokens": dict(self.tokens),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": float(self.usd),
            "wasted_usd": float(self.wasted),
            "open_low_usd": float(self.low),
            "open_high_usd": None if self.unbounded else float(self.high),
            "unpriced_calls": self.unpriced,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A table with its total; `open_rows` are the rows whose cost is not exactly known."""

    by: str
    lines: Sequence[Line]
    total: Line
    open_rows: Sequence[Row] = ()


def report(rows: Iterable[Row], by: str = "step") -> Report:
    """Group rows by "step", "item", "call", "model" or "token_kind".

    Lines stand in the order of their first call, items of one map by their number; token kinds in their own order.

    Raises:
        ValueError: `by` is none of these.
    """
    rows = list(rows)
    total = Line("total")
    for row in rows:
        _add(total, row)
    if by == "token_kind":
        lines = _by_kind(rows)
    elif by in _KEYS:
        lines = _grouped(rows, _KEYS[by])
        if by == "item":
            lines = in_order(lines, lambda line: line.key)
    else:
        raise ValueError(f"costs are shown by {', '.join((*_KEYS, 'token_kind'))}, not by {by!r}")
    return Report(by, lines, total, [row for row in rows if row.state != EXACT])


_KEYS: dict[str, Callable[[Row], str]] = {
    "step": lambda row: row.step or "(unknown)",
    "item": lambda row: row.place or "(unknown)",
    "call": lambda row: f"#{row.seq} {row.place or '(unknown)'} {row.label}".rstrip(),
    "model": lambda row: row.model or "(unknown)",
}
#: What a report can be grouped by.
GROUPS = (*_KEYS, "token_kind")


def _grouped(rows: Sequence[Row], key: Callable[[Row], str]) -> list[Line]:
    lines: dict[str, Line] = {}
    for row in rows:
        name = key(row)
        _add(lines.setdefault(name, Line(name)), row)
    return list(lines.values())


def _add(line: Line, row: Row) -> None:
    line.calls += 1
    for kind, count in row.tokens.items():
        line.tokens[kind] = line.tokens.get(kind, 0) + count
    _add_money(line, row, row.low)


def _add_money(line: Line, row: Row, low: Decimal) -> None:
    if row.state == EXACT:
        line.usd += low
    elif row.state == UNPRICED:
        line.unpriced += 1
    else:
        line.low += low
        line.high += low if row.high is None else row.high
        line.unbounded += row.high is None
    if row.outcome == WASTED:
        line.wasted += low


def _by_kind(rows: Sequence[Row]) -> list[Line]:
    """Each charge split over its token kinds; what has no split stands in a line of its own."""
    lines = {kind: Line(kind) for kind in (*TOKEN_KINDS, WEB_SEARCH, UNSPLIT)}
    for row in rows:
        for kind, count in row.tokens.items():
            line = lines.setdefault(kind, Line(kind))
            line.calls += 1
            line.tokens[kind] = line.tokens.get(kind, 0) + count
        if row.state != EXACT:
            lines[UNSPLIT].calls += 1
            _add_money(lines[UNSPLIT], row, row.low)
            continue
        for kind, usd in row.parts.items():
            _add_money(lines.setdefault(kind, Line(kind)), row, usd)
        rest = row.low - sum(row.parts.values(), _ZERO)
        if rest:
            lines[UNSPLIT].calls += 1
            _add_money(lines[UNSPLIT], row, rest)
    return [line for line in lines.values() if line.calls]


def possibly_spent(total: Line) -> tuple[Decimal, Decimal | None]:
    """Both ends of what a run has cost: (at least, at most); None: no upper bound is known."""
    at_least = total.usd + total.low
    return at_least, None if total.unbounded or total.unpriced else total.usd + total.high


def open_calls(rows: Iterable[Row]) -> list[Row]:
    """The rows of calls whose end was never recorded."""
    return [row for row in rows if row.outcome == OPEN]
