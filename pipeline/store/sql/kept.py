"""What deleted runs had cost, as rows that can be summed by day and model; entered with the account's sums."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from pipeline.clock import parse_iso
from pipeline.records.spending import USED
from pipeline.store.sql.link import Link

#: Day (None: not kept), model, calls, open ones, unpriced ones, at least, at most.
Row = tuple[str | None, str, int, int, int, str, str]
#: What reading sums may raise where they make no sense.
_SENSELESS = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError)
_OPEN = "open"


def enter(link: Link, run: str, sums: Mapping[str, Any]) -> None:
    """Replace the rows of a run by what these sums say. What makes no sense is no row: its charges count then."""
    try:
        rows = list(_rows(sums))
    except _SENSELESS:
        rows = []
    link.run("DELETE FROM kept_costs WHERE run_id = ?", run)
    sql = (
        "INSERT INTO kept_costs (run_id, day, model, calls, open_calls, unpriced_calls, low, high)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    for row in rows:
        link.run(sql, run, *row)


def sums(link: Link) -> dict[str, dict[str, Any]]:
    """What the rows say of each deleted run, for one whose sums are lost: by day and model, not by step."""
    found: dict[str, dict[str, Any]] = {}
    sql = "SELECT run_id, day, model, calls, open_calls, unpriced_calls, low, high FROM kept_costs"
    for run, day, model, calls, still_open, unpriced, low, high in link.rows(sql):
        exact = Decimal(str(low)) == Decimal(str(high)) and not still_open
        amounts = {"usd": str(low)} if exact else {"low": str(low), "high": str(high)}
        row = {"step": "", "label": "", "model": model, "day": str(day or ""), "outcome": _OPEN if still_open else USED,
               "calls": int(calls), "unpriced": int(unpriced), **amounts}  # fmt: skip
        found.setdefault(str(run), {"spend": []})["spend"].append(row)
    return found


def wrong(link: Link) -> dict[str, str]:
    """Deleted runs of which the table `kept_costs` says something else than their sums: run → a sentence."""
    there: dict[str, list[Row]] = {}
    sql = "SELECT run_id, day, model, calls, open_calls, unpriced_calls, low, high FROM kept_costs"
    for run, day, *row in link.rows(sql):
        there.setdefault(str(run), []).append(_comparable(None if day is None else str(day), *row))
    found: dict[str, str] = {}
    sums = {str(run): text for run, text in link.rows("SELECT run_id, sums FROM kept")}
    for run in sorted(there.keys() | sums.keys()):
        wanted = _told(sums[run]) if run in sums else []
        if wanted is not None and sorted(map(str, there.get(run, []))) != sorted(map(str, wanted)):
            found[run] = f"What the deleted run {run} had cost is otherwise in the table kept_costs than in its sums."
    return found


def enter_again(link: Link) -> None:
    """Have the table say of every deleted run what its sums say; where these are damaged it is left alone."""
    for run in wrong(link):
        row = link.row("SELECT sums FROM kept WHERE run_id = ?", run)
        if row is None:
            # The sums are lost, and what they said of day and model is not.
            link.run("INSERT INTO kept (run_id, sums) VALUES (?, ?)", run, json.dumps(sums(link)[run]))
        else:
            enter(link, run, json.loads(row[0]))


def _told(text: Any) -> list[Row] | None:
    """The rows that sums come to; None where they make no sense."""
    try:
        return [_comparable(*row) for row in _rows(json.loads(text))]
    except _SENSELESS:
        return None


def _comparable(day: str | None, model: str, calls: int, opened: int, unpriced: int, low: Any, high: Any) -> Row:
    return day, model, calls, opened, unpriced, _plain(low), _plain(high)


def _plain(usd: Any) -> str:
    """An amount without what says nothing; whatever somebody has put there."""
    try:
        return f"{Decimal(str(usd)).normalize():f}"
    except ArithmeticError:
        return str(usd)


def _rows(sums: Mapping[str, Any]) -> Iterator[Row]:
    if "spend" in sums:
        for each in sums["spend"]:
            yield _row(each, each.get("day"))
        return
    # Of older removals one sum a day was kept, or one in all.
    for day, each in (sums.get("days") or {"": sums}).items():
        yield _row({"calls": 0, **each}, day)


def _row(row: Mapping[str, Any], day: Any) -> Row:
    calls, usd = int(row["calls"]), _usd(row.get("usd"))
    low, high = usd + _usd(row.get("low")), usd + _usd(row.get("high"))
    unpriced = int(row.get("unpriced") or 0) + int(row.get("unbounded") or 0)
    model = str(row.get("model") or "").replace("\0", "")
    return _day(day), model, calls, calls if row.get("outcome") == _OPEN else 0, unpriced, f"{low:f}", f"{high:f}"


def _day(day: Any) -> str | None:
    """A day that every database takes for one."""
    return parse_iso(f"{day}T00:00:00Z").date().isoformat() if day else None


def _usd(value: Any) -> Decimal:
    usd = Decimal(str(value or 0))
    if not usd.is_finite():
        raise ValueError(f"{value!r} is no amount of dollars")
    return usd
