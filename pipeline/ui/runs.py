"""Runs: which there are, newest first; found by filters with counts; many at once stopped, resumed, deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pipeline.app.run_index import MOST, RunFilter, behind, facets_of, word_of
from pipeline.app.run_list import CORRUPT, GONE, RunRow
from pipeline.content.names import course_name
from pipeline.errors import PipelineError
from pipeline.records.spreadsheet import csv_text
from pipeline.records.statuses import COMPLETED, FAILED, PENDING, SKIPPED
from pipeline.ui import run_choice
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, FormFields, PageRoute, RawRoute, StreamRoute, WriteRoute, place

#: Rows of a page.
ROWS = 50
#: What a run can be, in the order of the counts: what moves or waits, what stands, what is over.
_ORDER = (
    "running", "waits for a person", "waits for a batch", GONE, "interrupted", "cut off", "stopped at the ceiling",
    "paused by a rate limit", "stopped by the account's limit", "stopped as asked", FAILED, "cannot be read", PENDING,
    COMPLETED, SKIPPED,
)  # fmt: skip
#: The newest days that a filter offers.
_DAYS = 14
#: Before every run was looked at.
_NOT_COUNTED: Data = {"counts": None, "matches": None}
#: Rows that one export reads at most.
_EXPORTED = 100_000
_COLUMNS = (
    "run", "pipeline", "subject", "level", "status", "steps_completed", "steps_total", "cost_usd", "possibly_usd",
    "unpriced_calls", "made_by", "started_at", "updated_at", "seconds", "fork_of", "error",
)  # fmt: skip


def asked_of(query: Mapping[str, str]) -> RunFilter:
    """Return the filters of a URL or form."""
    names = ("q", "status", "subject", "level", "model")
    return RunFilter(**{name: query.get(name, "").strip() for name in names}, day=query.get("from", "").strip())


def query_of(asked: RunFilter, **more: str) -> dict[str, str]:
    """Return filters as the query of a URL."""
    named = {name: getattr(asked, name) for name in ("q", "status", "subject", "level", "model")}
    return {**named, "from": asked.day, **more}


def row_data(row: RunRow) -> Data:
    """Return a run as one row of the page."""
    word = word_of(row)
    done, failed = row.steps_completed - row.steps_skipped, row.steps_failed
    running = int(word == "running" and row.steps_completed < row.steps_total)
    rest = 0 if row.status == CORRUPT else max(row.steps_total - row.steps_completed - failed - running, 0)
    return {
        "run": row.run_id, "pipeline": row.pipeline, "name": name_of(row), "word": word, "fork_of": row.parent,
        "steps": [["done", done], ["run", running], ["fail", failed], ["rest", rest]],
        "steps_text": _steps_text(row, done, failed), "cost_usd": row.cost_usd, "possibly_usd": row.possibly_usd,
        "unbounded": row.possibly_usd is None or row.unpriced_calls > 0, "at_least": row.at_least,
        "unpriced_calls": row.unpriced_calls, "made_by": row.author, "seconds": row.lasted,
        "started_at": row.started_at, "updated_at": row.updated_at,
        "error": row.error if row.status in (FAILED, CORRUPT) else "", "owned": row.owned, "resumable": row.resumable,
    }  # fmt: skip


def name_of(row: RunRow) -> str:
    """Return what a run makes, for people: its course, else what was run."""
    return course_name(row.subject, row.level) or row.target.rpartition("/")[2] or row.pipeline or row.run_id


def _steps_text(row: RunRow, done: int, failed: int) -> str:
    if row.checkpoints is not None:
        return f"{row.checkpoints} checkpoints kept"
    if not row.steps_total or row.status == CORRUPT:
        return ""
    return f"{done} of {row.steps_total} steps" + (f", {failed} failed" if failed else "")


def _runs(desk: Desk, request: Request) -> Data:
    query = request.query_params
    asked, after = asked_of(query), query.get("after", "")
    index, data, newest = desk.runs, _NOT_COUNTED, ""
    if after and asked == RunFilter():
        rows = index.page(after, ROWS + 1)
    else:
        rows = index.newest()
        newest = rows[0].run_id if rows and not after else ""
    if index.seen or asked != RunFilter():
        found, counts = index.look(asked)
        data = counts_data(asked, len(found), counts)
        rows = rows if asked == RunFilter() else index.rows(behind(found, after), asked, ROWS + 1)
    shown = [row_data(row) for row in rows[:ROWS]]
    names = ",".join(row["run"] for row in shown)
    running = data["counts"]["running"] if data["counts"] else sum(row["word"] == "running" for row in shown)
    return {
        "rows": shown, **data, "running": running, "asked": query_of(asked), "after": after,
        "filtered": asked != RunFilter(),
        "most": MOST if index.full else None,
        "choice": run_choice.asked_for(desk, query.get("ask", ""), query.getlist("run")),
        "older": rows[ROWS - 1].run_id if len(rows) > ROWS else "", "store_words": desk.store_words(),
        "live": {"path": "events", "seq": 0, "query": query_of(asked, rows=names, newest=newest)},
    }  # fmt: skip


def counts_data(asked: RunFilter, matches: int, found: Mapping[str, Counter[str]]) -> Data:
    """Return how many runs have what, and how many are as asked; each filter counted among what the others leave."""
    status = found["status"]
    words = sorted(status, key=lambda word: _ORDER.index(word) if word in _ORDER else len(_ORDER))
    # What is chosen stays on the page when no run has it any more.
    words += [asked.status] if asked.status and asked.status not in words else []
    counts = {
        "status": [[word, status[word]] for word in words],
        **{name: _options(found[name], getattr(asked, name)) for name in ("subject", "level", "model")},
        "from": _days(found["day"], asked.day),
        "all": sum(status.values()),
        "running": status["running"],
    }
    return {"counts": counts, "matches": matches}


def _options(found: Counter[str], chosen: str) -> list[list[Any]]:
    names = sorted({*found, chosen} - {""})
    return [[name, found[name]] for name in names]


def _days(found: Counter[str], chosen: str) -> list[list[Any]]:
    """Return days, newest first, each with the runs that began then or later."""
    days = sorted({*sorted(found, reverse=True)[:_DAYS], chosen} - {""}, reverse=True)
    return [[day, sum(number for other, number in found.items() if other >= day)] for day in days]


def _changes(desk: Desk, query: Mapping[str, str]) -> Iterator[tuple[str, str, Data]]:
    """Yield the rows of an open page, how many runs are newer than its first, and the counts."""
    index, asked = desk.runs, asked_of(query)
    fresh, tests = index.newest(), asked.tests().values()
    names = [name for name in query.get("rows", "").split(",") if name][:ROWS]
    there = {row.run_id: row for row in index.rows(names, RunFilter(), len(names))}
    for name in names:
        gone = {"run": name, "gone": True}
        yield f"run-{name}", "_run_row.html", row_data(there[name]) if name in there else gone
    newer = list(takewhile(lambda row: row.run_id != query.get("newest"), fresh)) if query.get("newest") else []
    number = sum(all(test(facets_of(row)) for test in tests) for row in newer)
    more = len(newer) == len(fresh) > 0
    yield "new-runs", "_runs_new.html", {"number": number, "more": more, "asked": query_of(asked)}
    if index.seen:
        found, counts = index.look(asked)
        yield "counts", "_runs_counts.html", {**counts_data(asked, len(found), counts), "asked": query_of(asked)}


def _csv(desk: Desk, request: Request) -> Response:
    """Return runs as CSV: those named by `run`, else all that the filters leave."""
    asked, chosen = asked_of(request.query_params), request.query_params.getlist("run")
    index = desk.runs
    if not chosen:
        index.newest()
    names = chosen or index.look(asked)[0]
    rows = index.rows(names[:_EXPORTED], RunFilter() if chosen else asked, _EXPORTED)
    text = csv_text([_COLUMNS, *(_cells(row) for row in rows)])
    headers = {"content-disposition": 'attachment; filename="runs.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def _cells(row: RunRow) -> Sequence[object]:
    seconds = row.lasted
    return [
        row.run_id, row.pipeline, row.subject, row.level, word_of(row), row.steps_completed, row.steps_total,
        "" if row.status == CORRUPT and not row.cost_usd else row.cost_usd,
        "" if row.possibly_usd is None else row.possibly_usd, row.unpriced_calls, row.author,
        row.started_at, row.updated_at, "" if seconds is None else seconds, row.parent, row.error,
    ]  # fmt: skip


def _back(form: FormFields) -> str:
    # The page's script forgets which runs were selected: they were acted upon.
    return place("", query_of(asked_of(form), after=form.get("after", ""))) + "#done"


def _each(desk: Desk, form: FormFields, act: Callable[[Desk, Sequence[str]], run_choice.Ended], done: str) -> str:
    """Do something with every run of a form; the list again if all went well.

    Raises:
        PipelineError: It could not be done with some; all others are done.
    """
    runs = list(dict.fromkeys(form.all("run")))
    refused = [(run, error) for run, error in act(desk, runs) if error is not None]
    if not refused:
        return _back(form)
    first = refused[0][1]
    if len(runs) == 1:
        raise first
    said = " ".join(f"{run}: {error.message}" for run, error in refused)
    text = f"{len(runs) - len(refused)} of {len(runs)} runs were {done}. {said}"
    raise PipelineError(text, code=first.code, hint=first.hint)


def _stop(desk: Desk, request: Request, form: FormFields) -> str:
    return _each(desk, form, lambda desk, runs: run_choice.stop(desk, runs, cancel=bool(form.get("cancel"))), "stopped")


def _resume(desk: Desk, request: Request, form: FormFields) -> str:
    return _each(desk, form, run_choice.resume, "resumed")


def _delete(desk: Desk, request: Request, form: FormFields) -> str:
    return _each(desk, form, run_choice.delete, "deleted")


PAGES = (PageRoute("", _runs, "runs.html", "runs"),)
WRITES: tuple[WriteRoute, ...] = (
    WriteRoute("runs/stop", _stop, "runs"),
    WriteRoute("runs/resume", _resume, "runs"),
    WriteRoute("runs/delete", _delete, "runs"),
)
RAWS: tuple[RawRoute, ...] = (RawRoute("runs.csv", _csv, "runs.csv"),)
STREAMS: tuple[StreamRoute, ...] = (StreamRoute("events", changes=_changes, every=2.0),)
