"""A run: how it stands, what helps it on, its pipeline, items, money, newest events, costs and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pipeline.app import processes, run_index
from pipeline.app.export import export_of
from pipeline.app.plan import expected_of
from pipeline.app.review import CourseReview
from pipeline.app.run_advice import advice
from pipeline.app.run_index import RunNow
from pipeline.app.run_list import row_of
from pipeline.app.run_log import details, kind_of, line_of, records_after
from pipeline.app.run_status import StepView, interruptions, steps_of
from pipeline.app.run_trail import (
    BATCH,
    REUSED,
    RUNNING,
    UNWRITTEN,
    ItemCalls,
    Items,
    figures,
    items_of,
    money_of,
    page,
    seconds_left,
    visits,
)
from pipeline.app.words import missing_records, one_line, pairs, short_hash
from pipeline.clock import iso, parse_iso
from pipeline.content.names import course_name
from pipeline.cost.report import NOWHERE, TOKEN_KIND, ReportLine, at_least, of_sums, report
from pipeline.errors import ConfigError, PipelineError
from pipeline.export.base import DIFFICULTIES, FORMATS, packed
from pipeline.extras import is_installed
from pipeline.records.documents import spend_rows
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.redaction import printable, without_secrets
from pipeline.records.run import RunState, bare, item_name
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.settings import parse_usd
from pipeline.store.reader import COURSES, LESSONS
from pipeline.travel.values import Reader
from pipeline.ui import run_choice
from pipeline.ui.call import natural
from pipeline.ui.desk import Desk
from pipeline.ui.item_map import FEW, map_of
from pipeline.ui.money_chart import chart
from pipeline.ui.pages import Data, FormFields, PageRoute, RawRoute, StreamRoute, WriteRoute, place
from pipeline.ui.shape import shape_of_run
from pipeline.ui.stream import live

Query = Mapping[str, str]
#: What costs are shown by, and lines of them at most: the dearest.
COSTS_BY = ("step", "item", "model", "call_kind", TOKEN_KIND)
_MOST_LINES = 100
#: How a state of items is coloured in a bar.
_BARS = {COMPLETED: "done", REUSED: "done", RUNNING: "run", BATCH: "run", FAILED: "fail"}
#: Settings that the head of the page says already.
_SAID = frozenset({"subject", "level"})


# --- how it stands ----------------------------------------------------------------------------------


def title_of(state: RunState) -> str:
    """Return what a run makes, as people say it: "Mathematics, National 5"."""
    course = course_name(*(str(state.params.get(name) or "") for name in ("subject", "level")))
    if state.pipeline in ("", COURSES) and course:
        return course
    given = one_line(", ".join(f"{name} {short_hash(value)}" for name, value in state.params.items()), 100)
    return f"{state.pipeline}: {given}" if given else state.pipeline or state.run_id


def word_of(now: RunNow) -> str:
    """Return how a run stands, as pages say it."""
    return run_index.word_of(row_of(now.head))


def active_seconds(desk: Desk, now: RunNow) -> float:
    """Return how long owners have worked on a run up to now, in seconds."""
    return now.trail.active(iso(desk.clock.now()) if now.owned else now.trail.last)


def _items(now: RunNow, query: Query) -> Items | None:
    """Return the items of the visit that is asked for, or of the last that has any."""
    paths = visits(now.state)
    wanted = query.get("step", "")
    path = next((path for path in paths if bare(path) == wanted), paths[-1] if paths else None)
    return None if path is None else items_seen(now, path)


def items_seen(now: RunNow, path: str) -> Items:
    """Return the items of a visit, worked out once for all who look at the run as it is now."""
    key, views = (path, now.owned), now.trail.views
    if key not in views:
        views[key] = items_of(now.state, now.trail, path, owned=now.owned)
    found: Items = views[key]
    return found


def status_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the head: what it is, how it stands, how far it came."""
    now = desk.watched(run)
    state, items = now.state, _items(now, {})
    counts = dict(items.counts) if items else {}
    done = counts.get(COMPLETED, 0) + counts.get(REUSED, 0)
    total = len(items.words) if items else 0
    word, title, row = word_of(now), title_of(state), row_of(now.head)
    # Of a completed run, what its row in the list says.
    lasted = row.lasted if row.completed_at else None
    left = seconds_left(now.trail, items) if now.owned else None
    return {
        "word": word, "title": title, "done": done, "total": total, "unwritten": counts.get(UNWRITTEN, 0),
        "step": bare(items.path) if items else "",
        "heading": f"{word[:1].upper()}{word[1:]}{f' {done:,}/{total:,}' if total else ''}: {title}",
        "by": str(state.identity.get("model") or ""), "started_at": state.started_at, "updated_at": state.updated_at,
        "active_seconds": round(active_seconds(desk, now)) if lasted is None else lasted, "resumes": state.resumes,
        "left_seconds": None if left is None else round(left), "parent": dict(state.parent or {}),
        "owned": now.owned, "calls_out": len(state.open_calls) if now.owned else 0,
        "batch_out": any(call.batch for call in state.open_calls.values()),
        "course": state.pipeline == "lessons", "published": _published(state),
        "holes": [missing_records(gap["first"], gap["last"], gap["reason"]) for gap in state.gaps],
    }  # fmt: skip


def _published(state: RunState) -> str:
    """Return the first page of a course that was published; "" of any other run."""
    step = state.steps.get("publish#1")
    if state.pipeline != "lessons" or step is None or not step.outputs.get("path"):
        return ""
    return f"{state.execution.get('out', '')}/{step.outputs['path']}/index.html"


def what_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the message: what happened, what is saved, the one button that helps and its command; {} for nothing."""
    now = desk.watched(run)
    return advice(desk.store(), desk.store_url, now.head, now.state, _items(now, {}))


# --- parts ------------------------------------------------------------------------------------------


def _steps(desk: Desk, now: RunNow) -> list[StepView]:
    unknown: set[str] = set()
    if not now.owned and row_of(now.head).resumable:
        unknown = {each.path for each in interruptions(desk.store(), now.state) if not each.task}
    return steps_of(desk.store(), now.state, unknown, owned=now.owned)


def chain_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the pipeline, drawn."""
    now = desk.watched(run)
    return shape_of_run(desk.store(), now.state, _steps(desk, now), owned=now.owned)


def items_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the counts of items, the map of many, and a page of them."""
    now = desk.watched(run)
    items = _items(now, query)
    if items is None:
        return {"total": 0, "map": None}
    state, start = query.get("state", ""), query.get("from", "")
    places, following = page(items, state, natural(start, 1))
    return {
        "step": bare(items.path), "steps": [bare(path) for path in visits(now.state)], "total": len(items.words),
        "counts": [list(pair) for pair in items.counts], "state": state, "from": places[0] + 1 if places else 0,
        "next": following, "bar": [[_BARS.get(word, "rest"), number] for word, number in items.counts],
        "said": ", ".join(f"{number:,} {word}" for word, number in items.counts),
        "map": map_of(items) if len(items.words) > FEW else None,
        "rows": [_row(desk, now, items, place) for place in places],
    }  # fmt: skip


def _row(desk: Desk, now: RunNow, items: Items, place: int) -> Data:
    name, word, state = items.names[place], items.words[place], now.state
    work, task = now.trail.items.get((items.path, name)), state.tasks.get(items.path, {}).get(name)
    labels = _labels(desk, state.run_id, _scheme_blob(state)) if items.path == LESSONS else {}
    error = task.error if task is not None and word == FAILED else None
    return {
        "number": place + 1, "name": item_name(items.path, name), "word": word, "label": labels.get(name, ""),
        "attempt": task.attempt if task else state.attempts.get((items.path, name), 1),
        "calls": len(work.calls) if work else 0, "usd": float(work.usd) if work else None,
        "seconds": _seconds(work) if word in (COMPLETED, FAILED) else None,
        "error": one_line((error or {}).get("message", ""), 200), "begun": task is not None or work is not None,
    }  # fmt: skip


def _scheme_blob(state: RunState) -> str:
    sow = state.steps.get("sow#1")
    return sow.artifacts.get("scheme", "") if sow is not None else ""


def _labels(desk: Desk, run: str, blob: str) -> Mapping[str, str]:
    """Return the titles of a course's lessons by their tasks; {} without a scheme of work that can be read."""
    with suppress(PipelineError, ValueError, KeyError, TypeError):
        return _labels_of(desk, run, blob) if blob else {}
    return {}


@lru_cache(maxsize=64)
def _labels_of(desk: Desk, run: str, blob: str) -> Mapping[str, str]:
    entries = Reader(desk.store(), run).blob(blob)["entries"]
    return {f"lessons/{entry['order']}": one_line(entry["label"], 100) for entry in entries}


def _seconds(work: ItemCalls | None) -> float | None:
    if work is None or not work.ended:
        return None
    return max((parse_iso(work.ended) - parse_iso(work.began)).total_seconds(), 0.0)


def _expected(desk: Desk, run: str, scheme: str) -> Decimal | None:
    """Return what a run was expected to cost; once it has a scheme of work, by that."""
    try:
        return _expected_of(desk, run, scheme)
    except (PipelineError, LookupError, TypeError, ValueError):
        # A course of another version, or one that is damaged: the page goes without.
        return None


@lru_cache(maxsize=64)
def _expected_of(desk: Desk, run: str, scheme: str) -> Decimal | None:
    return expected_of(desk.store(), desk.state(run))


def money_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the money: figures, and the chart whose legend they are."""
    now = desk.watched(run)
    state, trail, active = now.state, now.trail, active_seconds(desk, now)
    expected = _expected(desk, run, _scheme_blob(state))
    money = money_of(state, trail, _items(now, {}), expected, active if now.owned else None)
    return {"figures": figures(money), "chart": chart(money, trail, state, active)}


def log_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the newest events, the last one first."""
    return {"rows": [_event(record) for record in reversed(desk.watched(run).trail.events)]}


def _event(record: Any) -> Data:
    fact = record.fact
    call = record.seq if isinstance(fact, CallStarted) else fact.call if isinstance(fact, CallEnded) else 0
    kind = kind_of(fact)
    return {"seq": record.seq, "at": record.at, "kind": kind.replace("_", " "), "call": call,
            "text": without_secrets(details(fact)), "bad": kind in ("step_failed", "task_failed", "gap")}  # fmt: skip


def costs_part(desk: Desk, run: str, query: Query) -> Data:
    """Return the costs by step, item, model or kind; of single items only calls and money are known."""
    now, by = desk.watched(run), query.get("costs", "")
    by = by if by in COSTS_BY else "step"
    made = report(of_sums(spend_rows(now.state, str), NOWHERE), "step" if by == "item" else by)
    lines = list(map(_item_line, now.trail.items.items())) if by == "item" else list(made.lines)
    shown = sorted(lines, key=at_least, reverse=True)[:_MOST_LINES] if len(lines) > _MOST_LINES else lines
    return {
        "by": by, "of": list(COSTS_BY), "lines": [line.to_json() for line in shown], "total": made.total.to_json(),
        "left_out": len(lines) - len(shown),
    }  # fmt: skip


def _item_line(item: tuple[tuple[str, str | None], ItemCalls]) -> ReportLine:
    (path, task), work = item
    line = ReportLine(key=item_name(path, task), calls=len(work.calls) - len(work.inexact), usd=work.usd)
    for spend in work.inexact.values():
        line.add(spend)
    return line


def _settings(state: RunState) -> list[list[str]]:
    rows = {**state.params, **state.identity, **state.execution}
    return [[name.replace("_", " "), without_secrets(one_line(short_hash(value), 200))] for name, value in rows.items()
            if value not in (None, "") and name not in _SAID]  # fmt: skip


PARTS = {
    "status": ("_run_status.html", status_part),
    "what": ("_run_what.html", what_part),
    "chain": ("_run_chain.html", chain_part),
    "money": ("_run_money.html", money_part),
    "items": ("_run_items.html", items_part),
    "log": ("_run_log.html", log_part),
    "costs": ("_run_costs.html", costs_part),
}


def run_page(desk: Desk, request: Request) -> Data:
    """Return all of a run's page."""
    run, query = request.path_params["run"], request.query_params
    now = desk.watched(run)
    state = now.state
    asked = {name: query[name] for name in ("state", "from", "step", "costs") if name in query}
    return {
        "run": run, **{name: part(desk, run, query) for name, (_, part) in PARTS.items()},
        "settings": _settings(state),
        "pins": [[name, blob[:12]] for name, blob in state.pins.items()],
        "made": pairs({"version": state.product}) if state.product else "", "seq": state.seq,
        "formats": _formats() if _scheme_blob(state) and state.pipeline == COURSES else [],
        "difficulties": list(DIFFICULTIES),
        "live": None if now.ended else live(f"runs/{run}/events", state.seq, **asked),
    }  # fmt: skip


def _formats() -> list[Data]:
    """Return what a course can be taken away as."""
    return [
        {"name": each.name, "purpose": each.purpose, "installed": all(map(is_installed, each.packages))}
        for each in FORMATS.values()
    ]


# --- what the buttons do ----------------------------------------------------------------------------


def resume(desk: Desk, request: Request, form: FormFields) -> str:
    """Resume a run in a process of its own; `retry`: also its failed items; `publish`: publish again; `usd`: a ceiling.

    Raises:
        ConfigError: It is no amount, or the run needs what only a person can give.
    """
    run, more = request.path_params["run"], ["--retry-failed"] if form.get("retry") else []
    more += ["--from", "publish"] if form.get("publish") else []
    if "usd" in form:
        usd = parse_usd(form["usd"])
        more += ["--max-cost-usd", "none" if usd is None else f"{usd:f}"]
    processes.resume(desk.store(), desk.store_url, run, more)
    desk.runs.touch(run)
    return place(f"runs/{run}")


def stop(desk: Desk, request: Request, form: FormFields) -> str:
    """Stop a run as Ctrl-C does; with `cancel`, have the provider cancel what is out in batches.

    Raises:
        PipelineError: It cannot be reached.
    """
    run = request.path_params["run"]
    for _, error in run_choice.stop(desk, [run], cancel=bool(form.get("cancel"))):
        if error is not None:
            raise error
    return place(f"runs/{run}")


def log_file(desk: Desk, request: Request) -> Response:
    """Return all of a run's records as `log` prints them."""
    run = request.path_params["run"]
    desk.head(run)

    def lines() -> Iterator[str]:
        for record in records_after(desk.store(), run, 0):
            yield without_secrets(printable(line_of(record))) + "\n"

    headers = {"content-disposition": f'attachment; filename="{run}.log"'}
    return StreamingResponse(lines(), media_type="text/plain; charset=utf-8", headers=headers)


def files(desk: Desk, request: Request) -> Response:
    """Return a course in the formats that are asked for, as one archive.

    Raises:
        ConfigError: No format, or a lesson that is not there; or as `export_of`.
    """
    run, asked = request.path_params["run"], request.query_params
    if not asked.getlist("to"):
        raise ConfigError("No format is chosen.", code="unknown_format", hint="Go back and tick one or more.")
    lessons = [natural(asked["lesson"], 0)] if asked.get("lesson") else []
    course = CourseReview(desk.store(), desk.state(run))
    chosen, made = export_of(course, asked.getlist("to"), lessons, asked.get("difficulty", ""))
    headers = {"content-disposition": f'attachment; filename="{chosen.view.bundle.name}.zip"'}
    return Response(packed(made), media_type="application/zip", headers=headers)


PAGES = (PageRoute("runs/{run}", run_page, "run.html", "run"),)
WRITES = (
    WriteRoute("runs/{run}/resume", resume, "run"),
    WriteRoute("runs/{run}/stop", stop, "run"),
)
RAWS = (RawRoute("runs/{run}/log", log_file, "log"), RawRoute("runs/{run}/files", files, "files", ".zip"))
STREAMS = (StreamRoute("runs/{run}/events", PARTS, every=1.0),)
