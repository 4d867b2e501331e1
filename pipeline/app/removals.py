"""Runs that are to be deleted: what that frees, what stays, what is lost; and the deletion."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pipeline.app.stores import head_of
from pipeline.app.words import count, one_line, size, spent_text
from pipeline.errors import RunLocked
from pipeline.records.statuses import COMPLETED
from pipeline.store import retention
from pipeline.store.base import Account, Store
from pipeline.store.reader import load
from pipeline.store.retention import Removal, removal


def removals(store: Store, runs: Sequence[str]) -> list[Removal]:
    """Return what deleting these runs means, none of them if one is still going.

    Args:
        runs: Exact ids.

    Raises:
        RunNotFound, SchemaTooNew: As store.reader.
        RunLocked: A living process owns one of them.
    """
    names = list(dict.fromkeys(runs))
    for name in names:
        if head_of(store, name).owned:
            raise RunLocked(f"Run {name} is still going; nothing was deleted.", hint="Stop it, then delete it.")
    return [removal(store, name) for name in names]


def remove(store: Store, account: Account, going: Removal) -> None:
    """Remove a run without an owner, for good; what a dead one had reserved on the account is settled.

    Raises:
        RunNotFound, RunLocked: As Store.delete.
    """
    from pipeline.engine.store_limits import left_open, settle_amounts, slice_amounts

    amounts: list[tuple[str, Decimal]] = []
    if going.sums is not None:
        left = left_open(store, account, going.run, load(store, going.run))
        amounts = slice_amounts(store, going.run, left)
    retention.remove(store, account, going)
    settle_amounts(account, amounts)


def removal_lines(going: Removal) -> list[str]:
    """Return what removing a run frees, what stays, and what is lost with it; the first line names the run."""
    if going.sums is None:
        return [f"{going.run}  it cannot be read: its cost is unknown and will not stay on the account"]
    values = f" and {count(going.values, 'value')}" if going.values else ""
    name = " ".join(str(going.sums.get(field) or "") for field in ("subject", "level")).strip() or going.pipeline
    lines = [
        f"{going.run}  {one_line(name or '-', 60)}, {(going.detail or going.status).replace('_', ' ')}",
        f"frees {count(going.records, 'record')}{values}, {size(going.bytes)} of records; "
        f"stays on the account: {spent_text(going.spent)}",
    ]
    if going.status != COMPLETED:
        lines.append("it can no longer be resumed: what it has made so far is lost")
    lines += [f"batch {batch} is still at the provider: its answers are billed and lost" for batch in going.batches]
    return lines


def removal_json(going: Removal, *, removed: bool) -> dict[str, Any]:
    """Return the object of `delete --json`."""
    spend = going.spent
    return {
        "run": going.run, "status": going.status, "status_detail": going.detail, "records": going.records,
        "bytes": going.bytes, "values": going.values, "cost_usd": None if going.sums is None else spend.usd,
        "possibly_usd": None if spend.unbounded else spend.high, "unpriced_calls": spend.unpriced,
        "batches": list(going.batches), "removed": removed,
    }  # fmt: skip
