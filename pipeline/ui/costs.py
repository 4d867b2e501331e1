"""Costs: what all runs spent by day, model, step, course or kind of token; today's limit; the provider's reports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import Response

from pipeline.app.cost_bars import bar_of, columns, dated, shares
from pipeline.app.cost_documents import CAUSE_WORDS, REASON_WORDS, reconciled_json, report_json, report_rows
from pipeline.app.cost_report import Range, Statement, day_spend, read_all, reconciled
from pipeline.app.stores import open_account
from pipeline.clock import iso
from pipeline.cost.report import Report, at_least, report
from pipeline.errors import ConfigError, StoreError
from pipeline.llm.admin import KEY_VARIABLE
from pipeline.records.spreadsheet import csv_text
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, PageRoute, RawRoute, StreamRoute, WriteRoute

#: What the page sums by, with the word for it.
GROUPS: Mapping[str, str] = {
    "day": "Day", "model": "Model", "provider": "Provider", "step": "Step", "course": "Course", "label": "Label",
    "token_kind": "Kind of token", "call_kind": "Kind of call", "run": "Run",
}  # fmt: skip
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
#: What was read is kept for so many times as long as reading took, and no longer than these seconds.
_TIMES, _MOST_SECONDS = 10, 60.0


def _costs(desk: Desk, request: Request) -> Data:
    shown, made, asked = _report(desk, request)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in report_json(shown, made):
        found.setdefault(each.pop("type"), []).append(each)
    (total,) = found["total"]
    today = day_spend(desk.store_url, desk.state)
    title, bars = dated(map(bar_of, made.lines)) if made.by == "day" else ("", list(map(bar_of, made.lines)))
    most = max((bar.whole for bar in bars), default=Decimal(0))
    # A day's limit says nothing beside months.
    limit = today.limit_usd if bars and _DAY.fullmatch(bars[0].key) else None
    return {
        **asked,
        "groups": [{"by": by, "word": word} for by, word in GROUPS.items()],
        "today": today.to_json(),
        "budgets": _budgets(desk),
        "lines": found.get("line", []),
        "total": total,
        "waste": [{"cause": cause or None, "words": words, "usd": at_least(made.total.waste[cause])}
                  for cause, words in CAUSE_WORDS.items() if cause in made.total.waste],
        "not_exact": {"runs": len(found.get("open_run", ())), "calls": sum(each.spend.calls for each in made.open)},
        "beside": {name: found.get(name, []) for name in ("imported", "removed", "unread", "lost")},
        "title": title,
        "chart": columns(bars, limit) if made.by == "day" and most else None,
        "shares": [shares(bar, most) for bar in bars] if made.by != "day" and most else [],
        "admin_key": bool(os.environ.get(KEY_VARIABLE, "").strip()),
    }  # fmt: skip


def _budgets(desk: Desk) -> list[dict[str, Any]] | None:
    """Return the limits of the store as they stand; None: the account cannot be read."""
    try:
        return [each.to_json() for each in open_account(desk.store_url).standings(desk.clock.now())]
    except StoreError:
        return None


class _Reading(NamedTuple):
    """What all runs spent, when it was read, and the seconds that took."""

    statement: Statement
    as_of: str
    at: float
    took: float


#: By desk and days: many runs take seconds to read, and people look at the same sums by one thing after the other.
_kept: WeakKeyDictionary[Desk, dict[Range, _Reading]] = WeakKeyDictionary()


def _read(desk: Desk, days: Range) -> _Reading:
    kept, began = _kept.setdefault(desk, {}), desk.clock.monotonic()
    known = kept.get(days)
    if known is not None and began - known.at <= min(known.took * _TIMES, _MOST_SECONDS):
        return known
    as_of, statement = iso(desk.clock.now()), read_all(desk.store_url, days)
    ended = desk.clock.monotonic()
    made = _Reading(statement, as_of, ended, ended - began)
    kept.clear()
    kept[days] = made
    return made


def _report(desk: Desk, request: Request) -> tuple[Statement, Report, dict[str, str]]:
    """Return what was read, its report, and what was asked for."""
    by, days = request.query_params.get("by", "day"), _range(request)
    if by not in GROUPS:
        raise ConfigError(f"Costs are not shown by {by!r}.", code="unknown_grouping",
                          hint=f"One of: {', '.join(GROUPS)}.")  # fmt: skip
    read = _read(desk, days)
    asked = {"by": by, "since": days.since, "until": days.until, "as_of": read.as_of}
    return read.statement, report(read.statement.postings, by, many=True), asked


def _range(request: Request) -> Range:
    days = [request.query_params.get(name, "") for name in ("since", "until")]
    for day in filter(None, days):
        if not _DAY.fullmatch(day):
            raise ConfigError(f"{day!r} is no day.", code="invalid_day", hint="Write it as 2026-11-29.")
    if all(days) and days[0] > days[1]:
        raise ConfigError(f"{days[0]} is after {days[1]}.", code="invalid_day", hint="Give the earlier day first.")
    return Range(*days)


def _csv(desk: Desk, request: Request) -> Response:
    shown, made, asked = _report(desk, request)
    name = f"costs-by-{asked['by']}.csv"
    return Response(csv_text(report_rows(shown, made)), media_type="text/csv",
                    headers={"Content-Disposition": f'attachment; filename="{name}"'})  # fmt: skip


def _reconciled(desk: Desk, request: Request) -> Data:
    """Return what the provider reports beside what is recorded, by day and model."""
    compared = reconciled(desk.store_url, _range(request))
    found: dict[str, list[dict[str, Any]]] = {"reconciled": [], "batch": []}
    for each in reconciled_json(compared):
        found.setdefault(each.pop("type"), []).append(each)
    (total,) = found.pop("total")
    return {
        "since": compared.days.since, "until": compared.days.until, "lines": found.pop("reconciled"),
        "batches": found.pop("batch"), "beside": found, "total": total,
        "why": _words(compared.made.by_reason()),
    }  # fmt: skip


def _words(reasons: Mapping[str, Decimal]) -> Iterable[dict[str, Any]]:
    return [{"reason": kind, "words": REASON_WORDS[kind], "usd": usd} for kind, usd in reasons.items()]


PAGES = (
    PageRoute("costs", _costs, "costs.html", "costs"),
    PageRoute("costs/reconciled", _reconciled, "reconciled.html", "reconciled"),
)
WRITES: tuple[WriteRoute, ...] = ()
RAWS = (RawRoute("costs.csv", _csv, "costs_csv"),)
STREAMS: tuple[StreamRoute, ...] = ()
