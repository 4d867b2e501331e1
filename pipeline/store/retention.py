"""Which finished runs are old enough to go, and the order in which they go: account first, then the folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pipeline.clock import parse_iso
from pipeline.errors import RunLocked, RunNotFound
from pipeline.records.documents import spend_rows
from pipeline.records.fold import spent
from pipeline.records.run import RunState, Spend
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Account, Head, Store
from pipeline.store.reading import load

MAX_AGE_DAYS, MAX_RUNS = 30, 50
#: Half-built and half-removed folders are swept once they are this old: nobody builds for a day.
_SWEEP_AFTER = timedelta(days=1)


def removable(heads: Iterable[Head], *, max_age_days: float, max_runs: int, now: datetime) -> list[str]:
    """Ids to remove, oldest first, of heads that come newest first.

    Only completed runs go, once untouched for max_age_days or beyond the newest max_runs of all
    runs. Never: unfinished, owned or corrupt ones, nor the newest completed one of a course.
    """
    # No date lies before the year 1, however large the number.
    oldest = now - timedelta(days=min(max_age_days, now.toordinal() - 1))
    courses: set[tuple[Any, ...]] = set()
    gone = []
    for rank, head in enumerate(heads, 1):
        if head.corrupt or head.document.get("status") != COMPLETED:
            continue
        course = _course(head.document)
        newest = course not in courses
        courses.add(course)
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
            account.keep(run, run_sums(load(store, run)))
            store.delete(run)
        except (RunLocked, RunNotFound):
            # Taken, or removed, by somebody since the list was made.
            continue
        gone.append(run)
    store.sweep(now - _SWEEP_AFTER)
    return gone


def run_sums(state: RunState) -> dict[str, Any]:
    """What the account keeps of a run: its course and its spend, in sums and by UTC day; money as decimal text."""
    by_day: dict[str, Spend] = {}
    for key, spend in state.spend.items():
        by_day.setdefault(key.day, Spend()).add(spend)
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
