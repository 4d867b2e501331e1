"""Costs for programs: objects of --json and the CSV. Columns and keys are only ever added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.cli.cost.books import Books
from pipeline.cli.cost.table import open_runs
from pipeline.cli.text import count, money, warn
from pipeline.cost.ledger import COLUMNS
from pipeline.cost.report import CSV_COLUMNS, Report, possibly_spent


def json_lines(books: Books, made: Report) -> Iterator[dict[str, Any]]:
    """Lines, then the open intervals, then what is beside the ledger, then the total."""
    tries = [(posting.origin.run, posting.row) for posting in books.postings if posting.row is not None]
    if made.by == "call":
        yield from ({"type": "call", "run_id": run, **row.to_json()} for run, row in tries)
    else:
        yield from ({"type": "line", "by": made.by, **line.to_json()} for line in made.lines)
        yield from ({"type": "open", "run_id": run, **row.to_json()} for run, row in tries if row.state != "exact")
    for run, spend in open_runs(made.open).items():
        yield {"type": "open_run", "run_id": run, "open_low_usd": spend.low,
               "open_high_usd": None if spend.unbounded else spend.high, "unpriced_calls": spend.unpriced}  # fmt: skip
    yield from ({"type": "imported", "run_id": run, "cost_usd": usd} for run, usd in books.imported.items())
    if books.removed:
        cost = sum(books.removed.values(), Decimal(0))
        yield {"type": "removed", "runs": len(books.removed), "cost_usd": cost}
    yield from ({"type": "unread", "run_id": run, "error": why} for run, why in books.unread.items())
    if books.lost:
        yield {"type": "lost", "error": books.lost}
    low, high = possibly_spent(made.total)
    high = None if books.incomplete else high
    yield {"type": "total", **made.total.to_json(), "at_least_usd": low, "at_most_usd": high}


def csv_rows(books: Books, made: Report) -> Iterator[Sequence[object]]:
    """Sums, or with `--by call` the ledger itself; the head first."""
    if made.by != "call":
        yield CSV_COLUMNS
        yield from (line.to_csv() for line in (*made.lines, made.total))
        return
    yield ["run_id", *COLUMNS]
    yield from ([posting.origin.run, *posting.row.to_csv()] for posting in books.postings if posting.row is not None)
    sums = [each for each in books.postings if each.row is None and each.origin.run not in books.removed]
    if lost := open_runs(sums):
        warn(f"Calls whose records are lost are not here: of {', '.join(lost)}.")
    if books.removed:
        usd = money(sum(books.removed.values(), Decimal(0)))
        warn(f"Single calls of removed runs are not kept: {usd} in {count(len(books.removed), 'run')} is not here.")
