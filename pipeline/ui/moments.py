"""Time: a run at any of its points, what differs between points or runs, and forks from there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from pipeline.app.fork_plan import plan_fork
from pipeline.app.run_list import run_word
from pipeline.app.run_status import side_at, steps_of
from pipeline.app.travel import changeable, fork
from pipeline.app.value_format import brief
from pipeline.engine.amendment import pinned_graph
from pipeline.errors import CheckpointCorrupt, PipelineError
from pipeline.records.codec import Record
from pipeline.records.redaction import without_secrets
from pipeline.records.run import RunState, bare, completed_tasks
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.travel.differences import Side, difference
from pipeline.travel.points import Points, points_in, resolve_point, state_in
from pipeline.travel.values import Reader
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, FormFields, PageAnswer, PageRoute, RawRoute, StreamRoute, WriteRoute, place
from pipeline.ui.processes import resume

#: Characters of a value on a line, and of what a step made.
_LINE, _TEXT = 200, 20_000
#: Checkpoints that are listed before and after the one that is looked at.
_BESIDE = 50


def _time(desk: Desk, request: Request) -> Data:
    """Return a run at the point in the query: `at` as `show --at` takes it, or `point`, the slider's place."""
    query, run = request.query_params, request.path_params["run"]
    return _moment(desk, run, dict(query), [text for text in query.getlist("set") if text.strip()])


def _moment(desk: Desk, run: str, query: Mapping[str, str], sets: Sequence[str], error: str = "") -> Data:
    store, found = desk.store(), list(records(desk.store(), run))
    known = points_in(run, found)
    stops = _stops(store, known, found)
    at = _seq(known, stops, query)
    here = max(number for number, stop in enumerate(stops) if stop["seq"] <= at or number == 0)
    first = max(here - _BESIDE, 0)
    state = state_in(run, found, at)
    reader = Reader(store, run)
    ended = next((step for step in state.steps.values() if step.ended_seq == at), None)
    return {
        "run": run,
        "course": " ".join(filter(None, map(str, (state.params.get("subject"), state.params.get("level"))))) or None,
        "pipeline": state.pipeline,
        "points": stops[first : here + _BESIDE + 1], "first": first, "stops": len(stops), "point": here,
        "stop": stops[here], "at": at, "last": known.end,
        "status_word": run_word(state.status, state.detail),
        "cost_usd": state.total.usd + state.lost.low,
        "possibly_usd": None if state.total.unbounded else state.total.high,
        "calls": state.total.calls, "when": state.updated_at,
        "steps": [_step(each) for each in (view.to_json() for view in steps_of(store, state))],
        "context": [{"key": key, "value": brief(value, _LINE)} for key, value in state.context.items()],
        "made": _made(state, ended.path, reader) if ended is not None else None,
        **_differences(store, state, query),
        "fork": _fork_form(store, state, sets, error=error, planned=bool(query.get("plan"))),
        "command": _command(desk, run, at, sets),
    }  # fmt: skip


def _stops(store: Store, known: Points, found: Sequence[Record]) -> list[dict[str, Any]]:
    """Return where the slider can stand: the start, each own checkpoint, and the end where records follow the last."""
    first: dict[str, Any] = {
        "seq": known.start,
        "step": "start",
        "ending": "",
        "route": "",
        "cost_usd": 0,
        "possibly_usd": 0,
    }
    state = state_in(known.run_id, found, known.start)
    graph = pinned_graph(store, state)
    own = [mark for mark in known.boundaries if not mark.inherited]
    stops = [first | {"at": state.started_at}]
    stops += [mark.to_json() | {"ending": mark.ending, "route": mark.route(graph)} for mark in own]
    if known.end > stops[-1]["seq"]:
        last = stops[-1] | {"seq": known.end, "step": "end", "ending": "", "route": "", "at": found[-1].at}
        stops.append(last | {"cost_usd": None, "possibly_usd": 0})
    return stops


def _seq(known: Points, stops: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> int:
    point = query.get("point", "")
    if point.isdecimal():
        return int(stops[min(int(point), len(stops) - 1)]["seq"])
    return resolve_point(known, query.get("at") or "end")


def _step(view: Mapping[str, Any]) -> dict[str, Any]:
    return {name: view.get(name) for name in ("step", "status", "attempt", "items_completed", "cost_usd", "inherited")}


def _made(state: RunState, path: str, reader: Reader) -> dict[str, Any]:
    """Return what the step that ended here made: outputs, artifacts and how many items; long ones cut."""
    step = state.steps[path]
    found = [("outputs", step.outputs), *((name, {"$blob": blob, "bytes": 0}) for name, blob in step.artifacts.items())]
    values = []
    for name, value in found:
        try:
            text = json.dumps(reader.whole(value), indent=2, ensure_ascii=False)
        except (CheckpointCorrupt, ValueError) as damage:
            text = f"It cannot be read: {damage}"
        values.append({"name": name, "text": without_secrets(text[:_TEXT]), "characters": len(text)})
    error = without_secrets(str((step.error or {}).get("message", ""))) if step.status != COMPLETED else ""
    return {"step": bare(path), "status": step.status, "values": values, "error": error or None,
            "items_completed": completed_tasks(state, path)}  # fmt: skip


def _differences(store: Store, state: RunState, query: Mapping[str, str]) -> Data:
    """Return how another point, or run, differs from this one: `with` is RUN@POINT, `other` one that was typed."""
    wanted = query.get("other", "").strip() or query.get("with", "")
    found: Data = {
        "with": wanted or None,
        "other": query.get("other", "").strip(),
        "differs": None,
        "differs_error": None,
    }
    if not wanted:
        return found
    run, at, point = wanted.rpartition("@")
    run, point = (run, point) if at else (point, "")
    try:
        side = side_at(store, run or state.run_id, point)
        return found | {"differs": difference(Side(store, state), side).to_json()}
    except PipelineError as error:
        return found | {"differs_error": f"{error.message} {error.hint}".strip()}


def _fork_form(store: Store, state: RunState, sets: Sequence[str], *, error: str = "", planned: bool = False) -> Data:
    """Return the form of a fork, with what would be reused and made again once that was asked for."""
    plan = None
    if planned and not error:
        try:
            plan = plan_fork(store, state.run_id, at=str(state.seq), assignments=sets).to_json()
        except PipelineError as refused:
            error = f"{refused.message} {refused.hint}".strip()
    return {"sets": list(sets), "names": changeable(state), "plan": plan, "error": error or None}


def _command(desk: Desk, run: str, at: int, sets: Sequence[str]) -> str:
    words = "".join(f" --set {shlex.quote(text)}" for text in sets)
    return f"./pipeline.sh fork {run} --at {at}{words}{desk.store_words()}"


def _fork(desk: Desk, request: Request, form: FormFields) -> str | PageAnswer:
    """Make the fork, resume it where that was asked for, and go to it."""
    run, at = request.path_params["run"], form.get("at") or "end"
    sets = [text for text in form.all("set") if text.strip()]
    try:
        made = fork(desk.store(), run, at=at, assignments=sets)
    except PipelineError as error:
        said = f"{error.message} {error.hint}".strip()
        return PageAnswer("time.html", _moment(desk, run, {"at": at}, sets, said), 400)
    if form.get("do") == "resume" and made.status != COMPLETED:
        # What keeps it from going on is said on its page, beside the button that tries again.
        with suppress(PipelineError):
            resume(desk.store(), desk.store_url, made.run_id)
    return place(f"runs/{made.run_id}")


PAGES = (PageRoute("runs/{run}/time", _time, "time.html", "time"),)
WRITES = (WriteRoute("runs/{run}/fork", _fork, "time"),)
RAWS: tuple[RawRoute, ...] = ()
STREAMS: tuple[StreamRoute, ...] = ()
