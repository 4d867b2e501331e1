"""`cost --reconcile`: this store's books beside the provider's reports, and what explains the differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.cli.cost.books import Books
from pipeline.cli.cost.reprice import signed
from pipeline.cli.cost.table import footnote
from pipeline.cli.text import count, money, money_between, table, when
from pipeline.cost.reconciliation import (
    ELSEWHERE,
    MIDNIGHT,
    NOT_YET,
    OPEN,
    OTHERS,
    PRICE,
    PRIORITY,
    ROUNDING,
    UNEXPLAINED,
    UNPRICED,
    Compared,
    Reconciliation,
)

if TYPE_CHECKING:
    from pipeline.app.batches import BatchRow

#: How kinds of explanation are called.
WORDS = {
    ROUNDING: "rounding",
    MIDNIGHT: "over midnight",
    OPEN: "not exactly known here",
    UNPRICED: "not priced here",
    OTHERS: "by others",
    PRICE: "at other prices",
    NOT_YET: "not reported yet",
    PRIORITY: "of the priority tier",
    ELSEWHERE: "of another account",
    UNEXPLAINED: "not explained",
}
_COLUMNS = ("day", "model", "recorded_usd", "recorded_at_most_usd", "reported_usd", "difference_usd",
            "token_difference", "reasons")  # fmt: skip


def lines_of(
    made: Reconciliation, books: Books, since: date, until: date, batches: Sequence[BatchRow] = ()
) -> Iterator[str]:
    """The comparison for people."""
    if not made.lines:
        yield f"Neither this store nor the provider knows of spend from {since} to {until}."
    else:
        head = ["Day", "Model", "Recorded", "Reported", "Difference", "Why"]
        yield table(head, [_cells(line) for line in (*made.lines, made.total)], right=head[2:5])
        recorded, reported = [line.known for line in made.lines], [line.theirs for line in made.lines]
        yield from filter(None, [footnote("Recorded", recorded, made.total.known),
                                 footnote("Reported", reported, made.total.theirs)])  # fmt: skip
    yield ""
    spend = made.total.ours
    unknown = spend.unbounded or spend.unpriced
    yield f"Recorded here: {money_between(made.total.known, None if unknown else spend.usd + spend.high)}"
    yield f"Reported by the provider: {money(made.total.theirs)} from {since} to {until} (UTC days)"
    if by_reason := made.by_reason():
        yield "Difference: " + ", ".join(
            f"{signed(usd) or money(usd)} {WORDS[kind]}" for kind, usd in by_reason.items()
        )
    for row in batches:
        known = row.batch or "a batch without a known id"
        amount = "an unknown amount" if row.worst_usd is None else f"at most {money(row.worst_usd)}"
        what = "given up" if row.abandoned_at else "not found yet"
        yield (
            f"Possibly billed: {known} of run {row.run}, {count(row.requests, 'request')} handed in "
            f"{when(row.intended_at)}, {what}: {amount}"
        )
    for run, usd in books.imported.items():
        yield f"Not compared: {money(usd)} as reported by run {run} before it was taken over, not itemised"
    for run, why in books.unread.items():
        yield f"Not compared: run {run}: {why}"


def _cells(line: Compared) -> list[str]:
    why = "; ".join(reason.text for reason in line.reasons)
    return [line.day, line.model, money(line.known), money(line.theirs), signed(line.difference), why]


def json_lines(made: Reconciliation, books: Books, batches: Sequence[BatchRow] = ()) -> Iterator[dict[str, Any]]:
    """A line each, what could not be compared, and the total."""
    yield from ({"type": "reconciled", **line.to_json()} for line in made.lines)
    yield from (
        {
            "type": "batch", "run_id": row.run, "batch": row.batch or None, "status": row.status,
            "requests": row.requests, "intended_at": row.intended_at,
            "usd_high": None if row.worst_usd is None else float(row.worst_usd),
        }
        for row in batches
    )  # fmt: skip
    yield from ({"type": "imported", "run_id": run, "cost_usd": usd} for run, usd in books.imported.items())
    yield from ({"type": "unread", "run_id": run, "error": why} for run, why in books.unread.items())
    by_reason = {kind: float(usd) for kind, usd in made.by_reason().items()}
    yield {"type": "total", **made.total.to_json(), "reasons": by_reason}


def csv_rows(made: Reconciliation) -> Iterator[Sequence[object]]:
    """The lines and the total, exact; the head first."""
    yield _COLUMNS
    for line in (*made.lines, made.total):
        high = line.to_json()["recorded_at_most_usd"]
        usd = (line.known, None if high is None else line.ours.usd + line.ours.high, line.theirs, line.difference)
        yield [line.day, line.model, *map(_exact, usd), line.surplus, " ".join(r.kind for r in line.reasons)]


def _exact(usd: Decimal | None) -> str:
    return "" if usd is None else f"{usd:f}"
