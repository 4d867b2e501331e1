"""Questions: what runs ask people, and people's answers, after which the run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from starlette.requests import Request

from pipeline.app.gates import answer, gates
from pipeline.app.processes import resume
from pipeline.app.run_index import RunFilter
from pipeline.errors import ConfigError, DecidedMeanwhile, PipelineError
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, FormFields, PageAnswer, PageRoute, RawRoute, StreamRoute, WriteRoute, place
from pipeline.ui.stream import live

#: Runs whose questions a page follows, at most; how they are found.
_FOLLOWED, _ASKING = 100, RunFilter(status="waits for a person")


def _questions(desk: Desk, request: Request) -> Data:
    """Return the open questions of all runs, or of the one in the query, newest run first."""
    run = request.query_params.get("run", "")
    found = [gate.to_json() for gate in gates(desk.store(), run)]
    shown = ",".join(dict.fromkeys(gate["run"] for gate in found[:_FOLLOWED]))
    return {"run": run or None, "questions": found, "by": desk.name(request),
            "live": live("questions/events", 0, shown=shown, run=run)}  # fmt: skip


def _changes(desk: Desk, query: Mapping[str, str]) -> Iterator[tuple[str, str, Data]]:
    """Yield how many runs ask by now that the page does not show, and how many of those shown do not any more."""
    desk.runs.newest()
    if not desk.runs.seen or query.get("run"):
        return
    shown = set(filter(None, query.get("shown", "").split(",")))
    # A run may also wait for reviews.
    asking = {run for run in desk.runs.look(_ASKING)[0][:_FOLLOWED] if run in shown or desk.state(run).questions}
    yield "new-questions", "_questions_new.html", {"new": len(asking - shown), "answered": len(shown - asking)}


def _answer(desk: Desk, request: Request, form: FormFields) -> str | PageAnswer:
    """Record an answer with the name of who gave it, and have the run resumed."""
    run, gate, by = request.path_params["run"], request.path_params["gate"], form.get("by", "").strip()
    if not by:
        raise ConfigError("An answer is recorded with a name, and none was given.", code="name_missing",
                          hint="Type your name; it is asked for once.")  # fmt: skip
    yours = {"run": run, "gate": gate, "choice": form.get("choice", ""), "note": form.get("note", ""), "by": by}
    try:
        asked, chosen = answer(desk.store(), run, gate, yours["choice"], note=yours["note"], by=by,
                               question=form.get("question", ""))  # fmt: skip
    except DecidedMeanwhile as error:
        return PageAnswer("answered.html", {"yours": yours, "first": dict(error.data), "refused": None}, 409)
    try:
        resume(desk.store(), desk.store_url, run)
    except PipelineError as error:
        said = {"message": error.message, "hint": error.hint}
        yours |= {"gate": asked.gate, "choice": chosen}
        return PageAnswer("answered.html", {"yours": yours, "first": None, "refused": said})
    return place(f"runs/{run}")


def _rename(desk: Desk, request: Request, form: FormFields) -> str:
    """Go back to the questions under another name; it is kept with every form that has one."""
    return place("questions")


PAGES = (PageRoute("questions", _questions, "questions.html", "questions"),)
WRITES = (
    WriteRoute("runs/{run}/gates/{gate:path}/answer", _answer, "questions"),
    WriteRoute("name", _rename, "questions"),
)
RAWS: tuple[RawRoute, ...] = ()
STREAMS = (StreamRoute("questions/events", changes=_changes, every=2.0),)
