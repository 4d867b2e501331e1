"""Postings → tables of what was spent on what. Sums of unrounded decimals; whoever shows them rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline.cost.ledger import BILLED
from pipeline.cost.posting import Posting
from pipeline.records.charge import INPUT_KINDS
from pipeline.records.run import Spend, in_order
from pipeline.records.spending import WASTED

#: Amounts of charges that are known as a whole only (settled by hand, or still open).
UNSPLIT = "unsplit"
UNKNOWN = "(unknown)"
_ZERO = Decimal(0)


@dataclass(slots=True)
class Line:
    """One line of a table."""

    key: str
    spend: Spend = field(default_factory=Spend)
    #: What of it was for nothing, by cause.
    waste: dict[str, Spend] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return self.spend.calls

    @property
    def tokens(self) -> Mapping[str, int]:
        """Billed units by kind."""
        return self.spend.tokens

    @property
    def input_tokens(self) -> int:
        """All input buckets."""
        return sum(self.tokens.get(kind, 0) for kind in INPUT_KINDS)

    @property
    def output_tokens(self) -> int:
        return self.tokens.get("output", 0)

    @property
    def usd(self) -> Decimal:
        """Exactly known spend."""
        return self.spend.usd

    @property
    def low(self) -> Decimal:
        """Charges known between two bounds only: the sum of their lower ends."""
        return self.spend.low

    @property
    def high(self) -> Decimal:
        """The sum of their upper ends, of those that have one."""
        return self.spend.high

    @property
    def unpriced(self) -> int:
        """Calls without a price."""
        return self.spend.unpriced

    @property
    def unbounded(self) -> int:
        """Calls without an upper bound (in `low`, not in `high`)."""
        return self.spend.unbounded

    @property
    def wasted(self) -> Decimal:
        """What was for nothing, at least."""
        return sum(map(at_least, self.waste.values()), _ZERO)

    def add(self, posting: Posting) -> None:
        self.take(posting, posting.spend)

    def take(self, posting: Posting, part: Spend) -> None:
        """Add a part of a posting."""
        self.spend.add(part)
        if posting.outcome == WASTED:
            self.waste.setdefault(posting.cause, Spend()).add(part)

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
            "waste": {cause or UNKNOWN: float(at_least(spend)) for cause, spend in self.waste.items()},
            "saved_cache_usd": float(self.spend.saved_cache),
            "saved_batch_usd": float(self.spend.saved_batch),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A table with its total; `open` are the postings that are not exactly known."""

    by: str
    lines: Sequence[Line]
    total: Line
    open: Sequence[Posting] = ()


def report(postings: Iterable[Posting], by: str = "step", *, many: bool = False) -> Report:
    """Group postings by one of GROUPS.

    Lines stand in the order of their first posting; items of one map by their number, days by their date, token
    kinds in their own order.

    Args:
        many: They are of several runs, so that a single call is named with its run.

    Raises:
        ValueError: `by` is none of these.
    """
    if by not in GROUPS:
        raise ValueError(f"costs are shown by {', '.join(GROUPS)}, not by {by!r}")
    lines: dict[str, Line] = {}
    total, unknown = Line("total"), []
    key = _numbered if many and by == "call" else _KEYS.get(by)
    for posting in postings:
        total.add(posting)
        if not posting.exact:
            unknown.append(posting)
        if key is None:
            _by_kind(lines, posting)
        else:
            name = key(posting)
            line = lines.get(name)
            if line is None:
                line = lines[name] = Line(name)
            line.add(posting)
    return Report(by, _ordered(lines, by), total, unknown)


def _item(posting: Posting) -> str:
    if posting.row is None:
        return f"{posting.step or UNKNOWN} (items not kept)"
    return posting.row.place or UNKNOWN


def _call(posting: Posting) -> str:
    row = posting.row
    if row is None:
        return f"{posting.origin.run} (calls not kept)"
    return f"#{row.seq} {row.place or UNKNOWN} {row.label}".rstrip()


def _numbered(posting: Posting) -> str:
    return f"{posting.origin.run} {_call(posting)}" if posting.row is not None else _call(posting)


_KEYS: dict[str, Callable[[Posting], str]] = {
    "step": lambda posting: posting.step or UNKNOWN,
    "item": _item,
    "call": _call,
    "call_kind": lambda posting: posting.label or UNKNOWN,
    "model": lambda posting: posting.model or UNKNOWN,
    "day": lambda posting: posting.day or UNKNOWN,
    "subject": lambda posting: posting.origin.subject or UNKNOWN,
    "level": lambda posting: posting.origin.level or UNKNOWN,
    "run": lambda posting: posting.origin.run or UNKNOWN,
    "status": lambda posting: posting.origin.status or UNKNOWN,
}
TOKEN_KIND = "token_kind"
#: What a report can be grouped by, and which groups need the tries themselves: sums do not tell them apart.
GROUPS = ("step", "item", "call", "call_kind", "model", TOKEN_KIND, "day", "subject", "level", "run", "status")
OF_TRIES = frozenset({"item", "call"})


def _ordered(lines: Mapping[str, Line], by: str) -> list[Line]:
    if by == TOKEN_KIND:
        kinds = [kind for kind in lines if kind not in BILLED and kind != UNSPLIT]
        return [lines[kind] for kind in (*BILLED, *kinds, UNSPLIT) if kind in lines]
    if by == "item":
        return in_order(lines.values(), lambda line: line.key)
    return sorted(lines.values(), key=lambda line: line.key) if by == "day" else list(lines.values())


def _by_kind(lines: dict[str, Line], posting: Posting) -> None:
    """Split a posting over its token kinds; what has no split stands in a line of its own, without calls."""
    whole = posting.spend
    rest = whole.copy()
    rest.calls, rest.tokens, rest.usd_by_kind, rest.kind_calls = 0, {}, {}, {}
    rest.saved_cache = rest.saved_batch = _ZERO
    for kind in {**whole.kind_calls, **whole.usd_by_kind}:
        usd = whole.usd_by_kind.get(kind, _ZERO)
        rest.usd -= usd
        part = Spend(calls=whole.kind_calls.get(kind, 0), tokens={kind: whole.tokens.get(kind, 0)}, usd=usd)
        if part.calls or usd:
            lines.setdefault(kind, Line(kind)).take(posting, part)
    if rest.usd or rest.low or rest.high or rest.unpriced or rest.unbounded:
        lines.setdefault(UNSPLIT, Line(UNSPLIT)).take(posting, rest)


def at_least(spend: Spend) -> Decimal:
    """The lower end of an amount."""
    return spend.usd + spend.low


def possibly_spent(total: Line) -> tuple[Decimal, Decimal | None]:
    """Both ends of what was spent: (at least, at most); None: no upper bound is known."""
    unknown = total.unbounded or total.unpriced
    return at_least(total.spend), None if unknown else total.usd + total.high
