"""Reports of cost as objects for programs and as rows for spreadsheets; the words for causes and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pipeline.app.cost_report import Comparison, Repricing, Statement
from pipeline.cost import reconciliation as reasons
from pipeline.cost.ledger import COLUMNS as LEDGER_COLUMNS
from pipeline.cost.report import CSV_COLUMNS, Posting, Report, possibly_spent
from pipeline.records.money import FAILED, LOST, REFUSED, REJECTED, TRUNCATED, VOID
from pipeline.records.run import Spend

#: How causes of waste are called.
CAUSE_WORDS: Mapping[str, str] = {
    FAILED: "failed", REFUSED: "refused", TRUNCATED: "cut off", REJECTED: "rejected by a check",
    VOID: "invalidated by a change", LOST: "answer not recorded", "": "cause not recorded",
}  # fmt: skip
#: How kinds of explanation are called.
REASON_WORDS: Mapping[str, str] = {
    reasons.ROUNDING: "rounding", reasons.MIDNIGHT: "over midnight", reasons.OPEN: "not exactly known here",
    reasons.UNPRICED: "not priced here", reasons.OTHERS: "by others", reasons.PRICE: "at other prices",
    reasons.NOT_YET: "not reported yet", reasons.PRIORITY: "of the priority tier",
    reasons.ELSEWHERE: "of another account", reasons.UNEXPLAINED: "not explained",
}  # fmt: skip
_RECONCILED_COLUMNS = ("day", "model", "recorded_usd", "recorded_at_most_usd", "reported_usd", "difference_usd",
                       "token_difference", "reasons")  # fmt: skip


def open_runs(unknown: Sequence[Posting]) -> dict[str, Spend]:
    """Return the runs of which only sums were read that are not exactly known, and those sums."""
    found: dict[str, Spend] = {}
    for posting in unknown:
        if posting.row is None:
            found.setdefault(posting.origin.run, Spend()).add(posting.spend)
    return found


def report_json(shown: Statement, made: Report) -> Iterator[dict[str, Any]]:
    """Yield lines, then the open intervals, then what is beside the ledger, then the total."""
    tries = [(posting.origin.run, posting.row) for posting in shown.postings if posting.row is not None]
    if made.by == "call":
        yield from ({"type": "call", "run_id": run, **row.to_json()} for run, row in tries)
    else:
        yield from ({"type": "line", "by": made.by, **line.to_json()} for line in made.lines)
        yield from ({"type": "open", "run_id": run, **row.to_json()} for run, row in tries if row.state != "exact")
    for run, spend in open_runs(made.open).items():
        yield {"type": "open_run", "run_id": run, "open_low_usd": spend.low,
               "open_high_usd": None if spend.unbounded else spend.high, "unpriced_calls": spend.unpriced}  # fmt: skip
    yield from _beside(shown)
    if shown.lost:
        yield {"type": "lost", "error": shown.lost}
    low, high = possibly_spent(made.total)
    at_most = None if shown.incomplete else high
    yield {"type": "total", **made.total.to_json(), "at_least_usd": low, "at_most_usd": at_most}


def _beside(shown: Statement, *, removed: bool = True) -> Iterator[dict[str, Any]]:
    yield from ({"type": "imported", "run_id": run, "cost_usd": usd} for run, usd in shown.imported.items())
    if removed and shown.removed:
        cost = sum(shown.removed.values(), Decimal(0))
        yield {"type": "removed", "runs": len(shown.removed), "cost_usd": cost}
    yield from ({"type": "unread", "run_id": run, "error": why} for run, why in shown.unread.items())


def report_rows(shown: Statement, made: Report) -> Iterator[Sequence[object]]:
    """Yield sums, or by call the ledger itself; the head first."""
    if made.by != "call":
        yield CSV_COLUMNS
        yield from (line.to_csv() for line in (*made.lines, made.total))
        return
    yield ["run_id", *LEDGER_COLUMNS]
    yield from ([posting.origin.run, *posting.row.to_csv()] for posting in shown.postings if posting.row is not None)


def repriced_json(made: Repricing) -> Iterator[dict[str, Any]]:
    """Yield lines at other prices, then what kept its recorded amount, then the total."""
    yield from ({"type": "repriced", "by": made.by, **line.to_json()} for line in made.lines)
    yield from ({"type": "kept", "reason": reason, "calls": calls} for reason, calls in made.kept.items())
    yield {"type": "total", **made.total.to_json(), "prices": made.prices}


def repriced_rows(made: Repricing) -> Iterator[Sequence[object]]:
    """Yield lines at other prices; the head first."""
    yield list(made.total.to_json())
    for line in (*made.lines, made.total):
        yield [f"{value:f}" if isinstance(value, Decimal) else value for value in line.to_json().values()]


def reconciled_json(found: Comparison) -> Iterator[dict[str, Any]]:
    """Yield days and models, then batches that may be billed, then what is not compared, then the total."""
    yield from ({"type": "reconciled", **line.to_json()} for line in found.made.lines)
    for row in found.batches:
        yield {"type": "batch", "run_id": row.run, "batch": row.batch or None, "status": row.status,
               "requests": row.requests, "intended_at": row.intended_at, "usd_high": row.worst_usd}  # fmt: skip
    yield from _beside(found.statement, removed=False)
    by_reason = {kind: float(usd) for kind, usd in found.made.by_reason().items()}
    yield {"type": "total", **found.made.total.to_json(), "reasons": by_reason}


def reconciled_rows(found: Comparison) -> Iterator[Sequence[object]]:
    """Yield days and models; the head first."""
    yield _RECONCILED_COLUMNS
    for line in (*found.made.lines, found.made.total):
        high = None if line.to_json()["recorded_at_most_usd"] is None else line.ours.usd + line.ours.high
        usd = (line.known, high, line.theirs, line.difference)
        amounts = ("" if amount is None else f"{amount:f}" for amount in usd)
        yield [line.day, line.model, *amounts, line.surplus, " ".join(reason.kind for reason in line.reasons)]
