"""Reports of what was spent on what. Pure; sums of unrounded decimals, rounded only where they are shown.

A posting is one try of the ledger, or a sum that a head or the account keeps: totals are the same from either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from pipeline.cost.ledger import BILLED, LedgerRow, ledger
from pipeline.cost.usage import WEB_SEARCH
from pipeline.providers import ANTHROPIC
from pipeline.records.charge import EXACT, INPUT_KINDS, TOKEN_KINDS, UNPRICED
from pipeline.records.codec import Record
from pipeline.records.money import CAUSES, OPEN, USED, WASTED
from pipeline.records.run import Spend, in_order

#: The line of amounts that are known as a whole only (settled by hand, or still open).
UNSPLIT = "unsplit"
UNKNOWN = "(unknown)"
#: The line of runs without a label.
UNLABELLED = "(no label)"
#: The status of a run that was deleted: only the account has its sums.
REMOVED = "removed"
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Origin:
    """The run that an amount belongs to, with the fields of `list`."""

    run: str = ""
    subject: str = ""
    level: str = ""
    status: str = ""


NOWHERE = Origin()


@dataclass(frozen=True, slots=True)
class Posting:
    """An amount and what it was spent on; read only."""

    origin: Origin
    step: str
    label: str
    model: str
    #: UTC day of call_started, YYYY-MM-DD; "" where it is not known.
    day: str
    #: used, wasted or open; and why it was wasted.
    outcome: str
    cause: str
    spend: Spend
    #: The try; None: a sum of several.
    row: LedgerRow | None = None
    #: Who billed it.
    provider: str = ANTHROPIC
    #: Of its run at that time.
    labels: str = ""

    @property
    def exact(self) -> bool:
        if self.row is not None:
            return self.row.state == EXACT
        return not (self.outcome == OPEN or self.spend.high or self.spend.unpriced or self.spend.unbounded)


def of_ledger(rows: Iterable[LedgerRow], origin: Origin = NOWHERE) -> Iterator[Posting]:
    """Yield one posting a try."""
    for row in rows:
        yield Posting(
            origin, row.step, row.label, row.model, row.day, row.outcome, row.cause, amount_of(row), row, row.provider,
            row.labels,
        )  # fmt: skip


def of_records(records: Iterable[Record], origin: Origin = NOWHERE) -> Iterator[Posting]:
    """Yield one posting a try, and one for what missing records may have held."""
    found = ledger(records)
    yield from of_ledger(found.rows, origin)
    if found.lost.unbounded:
        yield Posting(origin, "", "", "", found.day, OPEN, "", found.lost)


def amount_of(row: LedgerRow) -> Spend:
    """Return a try's amount, as the fold counts it."""
    tokens = {kind: count for kind, count in row.tokens.items() if count}
    spend = Spend(calls=1, tokens=tokens, kind_calls=dict.fromkeys(tokens, 1))
    if row.state == EXACT:
        spend.usd, spend.usd_by_kind = row.low, dict(row.parts)
        spend.saved_cache, spend.saved_batch = row.saved_cache, row.saved_batch
    elif row.state == UNPRICED:
        spend.unpriced = 1
    else:
        spend.low = row.low
        spend.high = row.low if row.high is None else row.high
        spend.unbounded = int(row.high is None)
    return spend


def of_sums(rows: Iterable[Mapping[str, Any]], origin: Origin) -> Iterator[Posting]:
    """Yield one posting for each row of sums (records.documents.spend_rows).

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError: A row is malformed.
    """
    for row in rows:
        calls, tokens = int(row["calls"]), {str(kind): int(n) for kind, n in (row.get("tokens") or {}).items() if n}
        fewer = row.get("kind_calls") or {}
        spend = Spend(
            calls=calls,
            tokens=tokens,
            usd_by_kind={str(kind): _usd(usd) for kind, usd in (row.get("usd_by_kind") or {}).items()},
            kind_calls={kind: int(fewer.get(kind, calls)) for kind in tokens},
            unpriced=int(row.get("unpriced") or 0),
            unbounded=int(row.get("unbounded") or 0),
            **{name: _usd(row.get(name) or 0) for name in ("usd", "low", "high", "saved_cache", "saved_batch")},
        )
        names = ("step", "label", "model", "day", "outcome", "cause", "labels")
        step, label, model, day, outcome, cause, labels = (str(row.get(name) or "") for name in names)
        provider = str(row.get("provider") or ANTHROPIC)
        yield Posting(origin, step, label, model, day, outcome, cause, spend, provider=provider, labels=labels)


def of_removed(run: str, sums: Mapping[str, Any]) -> Iterator[Posting]:
    """Yield what the account keeps of a deleted run: its sums, or of older deletions one for each day.

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError: The sums are malformed.
    """
    claim = [*(sums.get("claim") or ()), "", "", ""]
    subject, level = sums.get("subject") or claim[1], sums.get("level") or claim[2]
    origin = Origin(run, str(subject or ""), str(level or ""), REMOVED)
    if "spend" in sums:
        return of_sums(sums["spend"], origin)
    days: Mapping[str, Mapping[str, Any]] = sums.get("days") or {"": sums}
    # Waste was not kept then.
    return of_sums(({"calls": 0, "outcome": USED, **kept, "day": day} for day, kept in days.items()), origin)


def within(postings: Iterable[Posting], since: str = "", until: str = "") -> Iterator[Posting]:
    """Yield the postings of a range of UTC days, both ends included; "": no end."""
    for posting in postings:
        if (not since or posting.day >= since) and (not until or (posting.day and posting.day <= until)):
            yield posting


def _usd(value: Any) -> Decimal:
    usd = Decimal(str(value))
    if not usd.is_finite():
        raise ValueError(f"{value!r} is not an amount of dollars")
    return usd


class ReportLine(Spend):
    """One line of a report: a sum, and the wasted part of it."""

    key: str = ""
    #: By cause.
    waste: dict[str, Spend] = {}  # noqa: RUF012 - a struct makes a new one each time

    @property
    def input_tokens(self) -> int:
        return sum(self.tokens.get(kind, 0) for kind in INPUT_KINDS)

    @property
    def output_tokens(self) -> int:
        return self.tokens.get("output", 0)

    @property
    def most(self) -> Decimal | None:
        """Return `high`; None where a charge has no upper bound."""
        return None if self.unbounded else self.high

    @property
    def wasted(self) -> Decimal:
        """Return the lower end of what was wasted."""
        return sum(map(at_least, self.waste.values()), _ZERO)

    def take(self, posting: Posting, part: Spend | None = None) -> None:
        part = posting.spend if part is None else part
        self.add(part)
        if posting.outcome == WASTED:
            self.waste.setdefault(posting.cause, Spend()).add(part)

    def to_json(self) -> dict[str, Any]:
        """Return the columns of --json: money as numbers."""
        return {column.name: _number(column.value(self)) for column in COLUMNS if column.json}

    def to_csv(self) -> list[str]:
        """Return one cell per column of CSV_COLUMNS; money exact."""
        return [_exact(column.value(self)) for column in COLUMNS if column.csv]


class Column(NamedTuple):
    """A column of a report's sums, wherever it is shown."""

    #: Key in --json, head in --csv.
    name: str
    #: Money as Decimal; None: not known.
    value: Callable[[ReportLine], Any]
    #: Head in the table for people; "": not in it.
    title: str = ""
    json: bool = True
    csv: bool = True


def _billed(kind: str) -> Column:
    return Column(kind, lambda line: line.tokens.get(kind, 0), json=False)


def _wasted(cause: str) -> Column:
    return Column(f"wasted_{cause}_usd", lambda line: at_least(line.waste.get(cause, Spend())), json=False)


#: All columns, in order; new ones are added at the end, as programs read the CSV by position.
COLUMNS = (
    Column("key", lambda line: line.key),
    Column("calls", lambda line: line.calls, "Calls"),
    *map(_billed, TOKEN_KINDS),
    Column("tokens", lambda line: dict(line.tokens), csv=False),
    Column("input_tokens", lambda line: line.input_tokens, "Input", csv=False),
    Column("output_tokens", lambda line: line.output_tokens, "Output", csv=False),
    Column("cost_usd", lambda line: line.usd, "Cost"),
    Column("wasted_usd", lambda line: line.wasted, "Wasted"),
    Column("open_low_usd", lambda line: line.low),
    Column("open_high_usd", lambda line: line.most, "Possibly more"),
    Column("unpriced_calls", lambda line: line.unpriced),
    Column("waste", lambda line: {cause or UNKNOWN: at_least(each) for cause, each in line.waste.items()}, csv=False),
    *map(_wasted, CAUSES),
    Column("saved_cache_usd", lambda line: line.saved_cache),
    Column("saved_batch_usd", lambda line: line.saved_batch),
    _billed(WEB_SEARCH),
)
CSV_COLUMNS = tuple(column.name for column in COLUMNS if column.csv)


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _number(each) for key, each in value.items()}
    return float(value) if isinstance(value, Decimal) else value


def _exact(value: Any) -> str:
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


@dataclass(frozen=True, slots=True)
class Report:
    """Lines with their total; `open` are the postings that are not exactly known."""

    by: str
    lines: Sequence[ReportLine]
    total: ReportLine
    open: Sequence[Posting] = ()


def report(postings: Iterable[Posting], by: str = "step", *, many: bool = False) -> Report:
    """Group postings by one of GROUPS.

    Lines are in the order of their first posting; items of one map by their number, days by date, token kinds in their
    own order.

    Args:
        many: They are of several runs, so that a single call is named with its run.

    Raises:
        ValueError: `by` is none of these.
    """
    if by not in GROUPS:
        raise ValueError(f"costs are shown by {', '.join(GROUPS)}, not by {by!r}")
    lines: dict[str, ReportLine] = {}
    total, unknown = ReportLine(key="total"), []
    key = _numbered if many and by == "call" else _KEYS.get(by)
    for posting in postings:
        total.take(posting)
        if not posting.exact:
            unknown.append(posting)
        if key is None:
            _by_kind(lines, posting)
        else:
            name = key(posting)
            line = lines.get(name)
            if line is None:
                line = lines[name] = ReportLine(key=name)
            line.take(posting)
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
    "provider": lambda posting: posting.provider,
    "label": lambda posting: posting.labels or UNLABELLED,
    "day": lambda posting: posting.day or UNKNOWN,
    "course": lambda posting: f"{posting.origin.subject} {posting.origin.level}".strip() or UNKNOWN,
    "subject": lambda posting: posting.origin.subject or UNKNOWN,
    "level": lambda posting: posting.origin.level or UNKNOWN,
    "run": lambda posting: posting.origin.run or UNKNOWN,
    "status": lambda posting: posting.origin.status or UNKNOWN,
}
TOKEN_KIND = "token_kind"
#: What a report can be grouped by, and which groups need single tries: sums do not tell them apart.
GROUPS = ("step", "item", "call", "call_kind", "model", "provider", "label", TOKEN_KIND, "day", "course", "subject",
          "level", "run", "status")  # fmt: skip
OF_TRIES = frozenset({"item", "call"})


def _ordered(lines: Mapping[str, ReportLine], by: str) -> list[ReportLine]:
    if by == TOKEN_KIND:
        kinds = [kind for kind in lines if kind not in BILLED and kind != UNSPLIT]
        return [lines[kind] for kind in (*BILLED, *kinds, UNSPLIT) if kind in lines]
    if by == "item":
        return in_order(lines.values(), lambda line: line.key)
    return sorted(lines.values(), key=lambda line: line.key) if by == "day" else list(lines.values())


def _by_kind(lines: dict[str, ReportLine], posting: Posting) -> None:
    """Split a posting over its token kinds; what has no split gets a line of its own, without calls."""
    whole = posting.spend
    rest = whole.copy()
    rest.calls, rest.tokens, rest.usd_by_kind, rest.kind_calls = 0, {}, {}, {}
    rest.saved_cache = rest.saved_batch = _ZERO
    for kind in {**whole.kind_calls, **whole.usd_by_kind}:
        usd = whole.usd_by_kind.get(kind, _ZERO)
        rest.usd -= usd
        part = Spend(calls=whole.kind_calls.get(kind, 0), tokens={kind: whole.tokens.get(kind, 0)}, usd=usd)
        if part.calls or usd:
            lines.setdefault(kind, ReportLine(key=kind)).take(posting, part)
    if rest.usd or rest.low or rest.high or rest.unpriced or rest.unbounded:
        lines.setdefault(UNSPLIT, ReportLine(key=UNSPLIT)).take(posting, rest)


def at_least(spend: Spend) -> Decimal:
    """Return the lower end of an amount."""
    return spend.usd + spend.low


def possibly_spent(total: ReportLine) -> tuple[Decimal, Decimal | None]:
    """Return both ends of what was spent: (at least, at most); None: no upper bound is known."""
    unknown = total.unbounded or total.unpriced
    return at_least(total), None if unknown else total.usd + total.high
