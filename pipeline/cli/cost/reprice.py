"""`cost --reprice`: recorded against repriced amounts, line by line; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.cli.cost.books import Books
from pipeline.cli.cost.table import footnote
from pipeline.cli.text import count, money, table
from pipeline.cost.ledger import reprice, usages_of
from pipeline.cost.prices import PriceBook
from pipeline.cost.report import Posting, ReportLine, amount_of, at_least, report
from pipeline.store.base import Store
from pipeline.store.reading import all_records

#: `--reprice published`: the prices that come with the program.
PUBLISHED = "published"
_REMOVED = "of removed runs, whose single calls are not kept"
_COLUMNS = ("key", "calls", "recorded_usd", "repriced_usd", "difference_usd")
_ZERO = Decimal(0)


class Pair(NamedTuple):
    """One line: what is recorded and what it would be, each at its lower end."""

    key: str
    calls: int
    recorded: Decimal
    repriced: Decimal

    @property
    def difference(self) -> Decimal:
        return self.repriced - self.recorded

    def to_json(self) -> dict[str, Any]:
        money = {"recorded_usd": self.recorded, "repriced_usd": self.repriced, "difference_usd": self.difference}
        return {"key": self.key, "calls": self.calls, **{name: float(usd) for name, usd in money.items()}}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of them."""

    by: str
    #: Which price data.
    prices: str
    lines: Sequence[Pair]
    total: Pair
    #: Calls that stand as recorded, by why; only those that may have cost something.
    kept: Mapping[str, int]


def prices_of(text: str) -> PriceBook:
    """The prices that were asked for.

    Raises:
        InvalidValue: The file cannot be read.
    """
    return PriceBook(None if text == PUBLISHED else Path(text).expanduser())


def compare(books: Books, store: Store, prices: PriceBook, by: str) -> Comparison:
    """Price every call of the books again."""
    kept: Counter[str] = Counter()
    again: list[Posting] = []
    usages: Mapping[int, Mapping[str, Any]] = {}
    run = None
    for posting in books.postings:
        if posting.row is None:
            kept[_REMOVED] += posting.spend.calls
            again.append(posting)
            continue
        if posting.origin.run != run:
            run = posting.origin.run
            usages = usages_of(all_records(store, run), partial(store.get_blob, run))
        found = reprice(posting.row, usages.get(posting.row.seq), prices)
        if found.kept:
            kept[found.kept] += 1
        again.append(replace(posting, row=found.row, spend=amount_of(found.row)))
    before, after = (report(postings, by, many=books.many) for postings in (books.postings, again))
    old, new = ({line.key: line for line in made.lines} for made in (before, after))
    lines = [_pair(key, old.get(key), new.get(key)) for key in {**old, **new}]
    return Comparison(by, prices.version, lines, _pair("total", before.total, after.total), kept)


def _pair(key: str, old: ReportLine | None, new: ReportLine | None) -> Pair:
    line = old or new
    recorded, repriced = (at_least(each.spend) if each else _ZERO for each in (old, new))
    return Pair(key, line.calls if line else 0, recorded, repriced)


def lines_of(made: Comparison) -> Iterator[str]:
    """The comparison for people."""
    if not made.lines:
        yield "No paid calls are recorded."
    else:
        head = [made.by.replace("_", " ").capitalize(), "Calls", "Recorded", "Repriced", "Difference"]
        yield table(head, [_cells(pair) for pair in (*made.lines, made.total)], right=head[1:])
        for name in ("recorded", "repriced"):
            parts = [getattr(pair, name) for pair in made.lines]
            if note := footnote(name.capitalize(), parts, getattr(made.total, name)):
                yield note
    yield ""
    yield f"Prices: {made.prices}"
    for reason, calls in made.kept.items():
        yield f"As recorded: {count(calls, 'call')} ({reason})"
    yield "Nothing was changed: this only shows what the recorded tokens would cost."


def _cells(pair: Pair) -> list[str]:
    calls = f"{pair.calls:,}" if pair.calls else ""
    return [pair.key, calls, money(pair.recorded), money(pair.repriced), signed(pair.difference)]


def signed(usd: Decimal) -> str:
    """A difference: +$0.10, -$0.10; "" where there is none."""
    return "" if not usd else ("+" if usd > 0 else "-") + money(abs(usd))


def json_lines(made: Comparison) -> Iterator[dict[str, Any]]:
    """The lines, what stands as recorded, and the total."""
    yield from ({"type": "repriced", "by": made.by, **pair.to_json()} for pair in made.lines)
    yield from ({"type": "kept", "reason": reason, "calls": calls} for reason, calls in made.kept.items())
    yield {"type": "total", **made.total.to_json(), "prices": made.prices}


def csv_rows(made: Comparison) -> Iterator[Sequence[object]]:
    """The lines and the total, exact; the head first."""
    yield _COLUMNS
    for pair in (*made.lines, made.total):
        yield [pair.key, pair.calls, *(f"{usd:f}" for usd in (pair.recorded, pair.repriced, pair.difference))]
