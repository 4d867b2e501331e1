"""Time: a run at any of its points, what differs between points or runs, and forks from there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress

from starlette.requests import Request

from pipeline.app.plan import plan_fork
from pipeline.app.processes import resume
from pipeline.app.run_advice import replaced_course
from pipeline.app.run_list import run_word
from pipeline.app.run_status import differences, seq_at, state_json, stops
from pipeline.app.travel import changeable, fork
from pipeline.content.names import course_name
from pipeline.errors import PipelineError
from pipeline.lessons.pipeline import bundle_name
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED
from pipeline.settings import OFFLINE, Execution
from pipeline.store.base import Store
from pipeline.store.reader import COURSES, records
from pipeline.travel.points import points_in, state_in
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, FormFields, PageAnswer, PageRoute, RawRoute, StreamRoute, WriteRoute, place

#: Checkpoints that are listed before and after the one that is looked at.
_BESIDE = 50


def _time(desk: Desk, request: Request) -> Data:
    """Return a run at the point in the query: `at` as `show --at` takes it, or `point`, the slider's place."""
    query, run = request.query_params, request.path_params["run"]
    return _moment(desk, run, dict(query), [text for text in query.getlist("set") if text.strip()])


def _moment(desk: Desk, run: str, query: Mapping[str, str], sets: Sequence[str], error: str = "") -> Data:
    store, found = desk.store(), list(records(desk.store(), run))
    known = points_in(run, found)
    places = stops(store, known, found)
    at = seq_at(known, places, query)
    here = max(number for number, stop in enumerate(places) if stop["seq"] <= at or number == 0)
    first = max(here - _BESIDE, 0)
    state = state_in(run, found, at)
    return {
        "run": run,
        "course": course_name(*(str(state.params.get(name) or "") for name in ("subject", "level"))) or None,
        "pipeline": state.pipeline,
        "points": places[first : here + _BESIDE + 1], "first": first, "stops": len(places), "point": here,
        "stop": places[here], "at": at, "last": known.end,
        "status_word": run_word(state.status, state.detail),
        **state_json(store, state),
        **differences(store, state, query),
        "fork": _fork_form(store, state, sets, error=error, planned=bool(query.get("plan"))),
        "replaces": _replaced(store, desk.state(run)),
        "command": _command(desk, run, at, sets),
    }  # fmt: skip


def _fork_form(store: Store, state: RunState, sets: Sequence[str], *, error: str = "", planned: bool = False) -> Data:
    """Return the form of a fork, with what would be reused and made again once that was asked for."""
    plan = None
    if planned and not error:
        try:
            plan = plan_fork(store, state.run_id, at=str(state.seq), assignments=sets).to_json()
        except PipelineError as refused:
            error = f"{refused.message} {refused.hint}".strip()
    return {"sets": list(sets), "names": changeable(state), "plan": plan, "error": error or None}


def _replaced(store: Store, state: RunState) -> str | None:
    """Return what people reviewed and a fork that goes on would publish over; None: nothing."""
    seed = state.steps.get("seed#1")
    if state.pipeline != COURSES or seed is None or not seed.outputs.get("course_id"):
        return None
    name = bundle_name(str(seed.outputs["course_id"]), draft=state.identity.get("author") == OFFLINE)
    return replaced_course(store, Execution(), state.execution, name) or None


def _command(desk: Desk, run: str, at: int, sets: Sequence[str]) -> str:
    words = "".join(f" --set {shlex.quote(text)}" for text in sets)
    return f"./pipeline.sh fork {run} --at {at}{words}{desk.store_words()}"


def _fork(desk: Desk, request: Request, form: FormFields) -> str | PageAnswer:
    """Make the fork, resume it where that was asked for, and go to it."""
    run, at = request.path_params["run"], form.get("at") or "end"
    sets = [text for text in form.all("set") if text.strip()]
    goes_on = form.get("do") == "resume"

    with desk.click((run, at, *sets, goes_on)) as click:
        if click.made is not None:
            return place(f"runs/{click.made}")
        try:
            made = fork(desk.store(), run, at=at, assignments=sets)
        except PipelineError as error:
            said = f"{error.message} {error.hint}".strip()
            return PageAnswer("time.html", _moment(desk, run, {"at": at}, sets, said), 400)
        click.made = made.run_id
        if goes_on and made.status != COMPLETED:
            # What keeps it from going on is said on its page, beside the button that tries again.
            with suppress(PipelineError):
                resume(desk.store(), desk.store_url, made.run_id)
    return place(f"runs/{made.run_id}")


PAGES = (PageRoute("runs/{run}/time", _time, "time.html", "time"),)
WRITES = (WriteRoute("runs/{run}/fork", _fork, "time"),)
RAWS: tuple[RawRoute, ...] = ()
STREAMS: tuple[StreamRoute, ...] = ()
