"""The provider's reports fetched and put against our books."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING

from pipeline.clock import SystemClock

if TYPE_CHECKING:
    from pipeline.cost.reconciliation import Reconciliation
    from pipeline.cost.report import Posting

#: Without --since: so many days before the last.
DAYS = 30


def days_to_reconcile(since: str, until: str) -> tuple[date, date]:
    """The first and the last day; without `until` today, without `since` a month before."""
    last = date.fromisoformat(until) if until else _today()
    return (date.fromisoformat(since) if since else last - timedelta(days=DAYS)), last


def reconcile(postings: Iterable[Posting], since: date, until: date) -> Reconciliation:
    """Compare these days with what the provider reports of them.

    Args:
        postings: Ours, from the day before `since` to the day after `until`.

    Raises:
        CredentialMissing: ANTHROPIC_ADMIN_KEY is not set.
        ModelError: The reports cannot be had.
    """
    from pipeline.cost.reconciliation import Reported
    from pipeline.cost.reconciliation import reconcile as compare
    from pipeline.llm.admin import AdminReports

    reports = AdminReports()
    try:
        first, last = since - timedelta(days=1), until + timedelta(days=1)
        theirs = [Reported(day, model, usd, kind=kind) for day, model, kind, usd in reports.costs(first, last)]
        theirs += [Reported(day, model, tokens=n, tier=tier) for day, model, tier, n in reports.usage(first, last)]
    finally:
        reports.close()
    return compare(postings, theirs, since=since, until=until, today=_today())


def _today() -> date:
    return SystemClock().now().date()
