"""Which runs are old enough to go, what goes with them, and in which order: account first, then the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pipeline.clock import parse_iso
from pipeline.errors import CheckpointCorrupt, RunLocked, RunNotFound
from pipeline.records.documents import spend_rows
from pipeline.records.fold import spent
from pipeline.records.run import RunState, Spend, spend_by
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Account, Head, Store
from pipeline.store.owner import seen_now
from pipeline.store.reader import load

MAX_AGE_DAYS, MAX_RUNS = 30, 50
#: The status of a run of which nothing can be read.
CORRUPT = "corrupt"
#: The pipeline of runs that hold threads of LangGraph: their own program decides when these go.
_THREADS = "langgraph"
#: Half-built and half-removed folders are swept once they are this old: nothing is built for a day.
_SWEEP_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes with a run, and what the account keeps of it."""

    run: str
    pipeline: str
    status: str
    #: Of a run that is not complete; None where there is nothing more to say.
    detail: str | None
    #: Its journal, parts included.
    records: int
    bytes: int
    #: Values beside the journal.
    values: int
    spent: Spend
    #: Batches at the provider whose answers are not recorded.
    batches: Sequence[str]
    #: What the account keeps; None: nothing of the run can be read, so there is nothing to keep.
    sums: Mapping[str, Any] | None


def removal(store: Store, run: str) -> Removal:
    """Return what removing a run means; a corrupt one's records are counted as far as they can be read.

    Raises:
        RunNotFound, SchemaTooNew: As store.reader.
    """
    try:
        state = load(store, run)
    except CheckpointCorrupt:
        return Removal(run, "", CORRUPT, None, 0, 0, len(store.blobs(run)), Spend(), (), None)
    parts: Callable[[str], list[str]] | None = getattr(store, "parts", None)
    journals = [run, *(f"{run}/{path}" for path in (parts(run) if parts is not None else ()))]
    lines = [len(line) for each in journals for line in store.read(each)]
    out = [
        each.batch for each in state.batches.values() if each.batch and state.open_calls.keys() & each.calls.values()
    ]
    detail = seen_now({"status": state.status, "status_detail": state.detail}, owned=False).get("status_detail")
    return Removal(
        run, state.pipeline, state.status, detail or state.detail, len(lines), sum(lines), len(store.blobs(run)),
        spent(state), out, run_sums(state),
    )  # fmt: skip


def remove(store: Store, account: Account, going: Removal) -> None:
    """Remove a run without an owner, for good. What it cost is on the account, durable, before it goes.

    Raises:
        RunNotFound, RunLocked: As Store.delete.
    """
    if going.sums is not None:
        account.keep(going.run, going.sums)
    store.delete(going.run)


def removable(
    heads: Iterable[Head], *, max_age_days: float, max_runs: int, now: datetime, unfinished: bool = False
) -> list[str]:
    """Return the ids to remove, oldest first, of heads that come newest first.

    Completed runs go once untouched for max_age_days or beyond the newest max_runs of all runs; with `unfinished`
    failed and stopped ones too, which could be resumed until then. Never: owned or corrupt ones, threads of other
    systems, nor the newest completed one of a course.
    """
    # No date lies before the year 1, however large the number.
    oldest = now - timedelta(days=min(max_age_days, now.toordinal() - 1))
    courses: set[tuple[Any, ...]] = set()
    gone = []
    for rank, head in enumerate(heads, 1):
        if head.corrupt or head.document.get("pipeline") == _THREADS:
            continue
        if head.document.get("status") == COMPLETED:
            course = _course(head.document)
            newest = course not in courses
            courses.add(course)
        else:
            newest = not unfinished
        if newest or head.owned:
            continue
        if rank > max_runs or _touched(head.document, now) < oldest:
            gone.append(head.run_id)
    return gone[::-1]


def cleanup(
    store: Store, account: Account, *, max_age_days: float, max_runs: int, now: datetime, dry_run: bool = False
) -> list[str]:
    """Remove old runs; returns their ids. What they cost is on the account, durable, before they go.

    With `dry_run` nothing is written.
    """
    names = removable(store.heads(), max_age_days=max_age_days, max_runs=max_runs, now=now)
    if dry_run:
        return names
    gone = []
    for run in names:
        try:
            remove(store, account, removal(store, run))
        except (RunLocked, RunNotFound):
            # Taken, or removed, by another process since the list was made.
            continue
        gone.append(run)
    sweep(store, now)
    return gone


def sweep(store: Store, now: datetime) -> list[str]:
    """Remove what was half made or half removed a day ago or earlier; returns names."""
    return store.sweep(now - _SWEEP_AFTER)


def run_sums(state: RunState) -> dict[str, Any]:
    """Return what the account keeps of a run: its course, its spend in sums and by UTC day; money as decimal text."""
    by_day = spend_by(state, lambda key: key.day)
    return {
        "pipeline": state.pipeline,
        "claim": list(state.claim) if state.claim else None,
        "subject": state.params.get("subject"),
        "level": state.params.get("level"),
        "started_at": state.started_at,
        "updated_at": state.updated_at,
        **_sums(spent(state)),
        "imported_usd": str(Decimal(str(state.reported.get("cost_usd") or 0))),
        "days": {day: _sums(spend) for day, spend in sorted(by_day.items())},
        "spend": spend_rows(state, str),
    }


def _sums(spend: Spend) -> dict[str, Any]:
    return {
        "calls": spend.calls,
        "tokens": dict(spend.tokens),
        "usd": str(spend.usd),
        "low": str(spend.low),
        "high": str(spend.high),
        "unpriced": spend.unpriced,
        "unbounded": spend.unbounded,
    }


def _course(document: Mapping[str, Any]) -> tuple[Any, ...]:
    claim = document.get("claim")
    if isinstance(claim, list) and claim:
        return tuple(claim)
    # A parameter may be of any kind.
    return tuple(str(document.get(name)) for name in ("pipeline", "subject", "level", "author"))


def _touched(document: Mapping[str, Any], now: datetime) -> datetime:
    try:
        return parse_iso(document["updated_at"])
    except (KeyError, TypeError, ValueError):
        return now.astimezone(UTC)
