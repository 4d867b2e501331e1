"""Review desk: the queue of a course's lessons, one lesson with what was found of it, decisions, edits, conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pipeline.app.preview import preview
from pipeline.app.review import WORDS, CourseReview, LessonReview, ReviewDecision, checked_edit, decide, progress
from pipeline.app.review_form import edit_form, editable_parts, placed_findings, question_numbers
from pipeline.errors import ConfigError, DecidedMeanwhile, PipelineError, RunNotFound
from pipeline.lessons.review import differences, leaves
from pipeline.records.reviews import CONFLICT, DECIDED, EDIT, OPEN, UNDO
from pipeline.store.reader import COURSES, load
from pipeline.ui.call import framed
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, FormFields, PageAnswer, PageRoute, RawRoute, StreamRoute, WriteRoute, place

#: Courses that the first page lists; what the form calls a field at an address.
_MOST, _AT = 20, "at:"


def _reviews(desk: Desk, request: Request) -> Data:
    """Return the newest courses, each with how far its review is."""
    rows = []
    heads = (head for head in desk.heads() if (head.document.get("pipeline") or COURSES) == COURSES)
    for head in islice(heads, _MOST):
        row: Data = {"run": head.run_id, "title": "", "progress": None}
        with suppress(PipelineError):
            course = _course(desk, head.run_id)
            row |= {"title": course.course["title"], "progress": progress(course.queue())}
        rows.append(row)
    return {"courses": rows}


def _course(desk: Desk, run: str) -> CourseReview:
    return CourseReview(desk.store(), load(desk.store(), run))


def _review(desk: Desk, request: Request) -> Data:
    run, query = request.path_params["run"], request.query_params
    return _page(desk, request, _course(desk, run), _order(query.get("item", "")), query.get("edit", ""))


def _order(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 4 else 0


def _page(desk: Desk, request: Request, course: CourseReview, order: int, edit: str) -> Data:
    """Return the data of the review page.

    Args:
        order: The lesson; 0: the most urgent one.
        edit: The part of it that is edited; "": none.
    """
    queue = course.queue()
    lesson = next((each for each in queue if each.order == order), None) if order else queue[0]
    if lesson is None:
        raise RunNotFound(f"Run {course.run} has no lesson {order}.", code="lesson_not_found")
    row = course.content(lesson.order)
    numbers = question_numbers(course, lesson.order, row)
    around = [each.order for each in queue]
    at = around.index(lesson.order)
    made, edited = course.made(lesson.order), course.edit(lesson.order)
    return {
        "run": course.run,
        "course": course.course.get("title", course.run),
        "by": desk.name(request),
        "owned": desk.owned(course.run),
        "offline": course.offline,
        **_queue(course, queue, lesson.order),
        "lesson": {**lesson.to_json(), "findings": [*placed_findings(lesson, numbers)], "there": row is not None},
        "history": [
            {"by": each.by, "at": each.at, "what": WORDS.get(each.choice, each.choice), "note": each.note}
            for each in course.history(lesson.order)
        ],
        "differences": _shown(differences(made["lesson"], edited["lesson"])) if made and edited else [],
        "parts": editable_parts(row, numbers) if row else [],
        "edit": edit_form(course, lesson, row, edit, numbers) if edit and row else None,
        "first": next((each["place"] for each in placed_findings(lesson, numbers) if each["place"]), ""),
        "previous": around[at - 1] if at else None,
        "next": around[at + 1] if at + 1 < len(around) else None,
        "live": {"path": "review/events", "seq": 0, "query": {"run": course.run, "item": lesson.order}},
    }  # fmt: skip


def _queue(course: CourseReview, queue: Sequence[LessonReview], order: int) -> Data:
    rows = [
        {**{name: value for name, value in each.to_json().items() if name in _OF_QUEUE}, "number": len(each.findings),
         "current": each.order == order}
        for each in queue
    ]  # fmt: skip
    return {"queue": rows, "progress": progress(queue)}


_OF_QUEUE = frozenset({"lesson", "title", "status", "severity", "by", "at", "choice", "failed"})


def _shown(found: Iterable[tuple[str, Any, Any]]) -> list[Data]:
    return [{"where": where, "before": before, "after": after} for where, before, after in found]


# --- editing ----------------------------------------------------------------------------------------


def _typed(form: FormFields) -> dict[str, str]:
    """Return the new values by address, as they were typed."""
    return {name.removeprefix(_AT): text.replace("\r\n", "\n") for name, text in form.items() if name.startswith(_AT)}


def _decision(form: FormFields, choice: str, **more: Any) -> ReviewDecision:
    return ReviewDecision(choice, form.get("by", ""), form.get("note", ""), form.get("mark", ""), **more)


def _changes(course: CourseReview, order: int, form: FormFields) -> dict[str, str]:
    """Return what was changed of the fields of a form."""
    row = course.content(order)
    if row is None:
        raise ConfigError(f"Lesson {order} is not there: it is being made, or failed.", code="lesson_not_made")
    now = leaves(row["lesson"])
    return {at: text for at, text in _typed(form).items() if str(now.get(at, "")) != text}


def _check(desk: Desk, request: Request, form: FormFields) -> PageAnswer:
    """Check an edit while it is typed: nothing is recorded."""
    course, order = _course(desk, request.path_params["run"]), _order(form.get("item", ""))
    changes = _changes(course, order, form)
    return PageAnswer("_review_checks.html", {"checks": _checks(course, order, changes)})


def _checks(course: CourseReview, order: int, changes: Mapping[str, str]) -> Data:
    """Return what the checks say of an edit, and what it changes."""
    made, faults = checked_edit(course, order, changes)
    before = course.content(order) or made
    return {
        "faults": [{"where": each.where, "found": each.found, "wanted": each.wanted} for each in faults],
        "differences": _shown(differences(before["lesson"], made["lesson"])),
    }


def _edit(desk: Desk, request: Request, form: FormFields) -> str | PageAnswer:
    """Save an edit; one that is refused is shown again as it was typed."""
    run, order = request.path_params["run"], _order(form.get("item", ""))
    course = _course(desk, run)
    try:
        changes = _changes(course, order, form)
        decide(desk.store(), run, order, _decision(form, EDIT, edit=changes))
    except ConfigError as error:
        course = _course(desk, run)
        data = _page(desk, request, course, order, form.get("edit", ""))
        data["by"] = form.get("by") or data["by"]
        if data["edit"] is not None:
            # Saved once more it is decided over what came since, which is shown now.
            data["edit"]["checks"] = _checks(course, order, _changes(course, order, form))
            typed = _typed(form)
            for each in data["edit"]["fields"]:
                each["value"] = typed.get(each["at"], each["value"])
                wrong = [fault for fault in data["edit"]["checks"]["faults"] if fault["where"] == each["at"]]
                each["fault"] = wrong[0]["found"] if wrong else ""
        words = {"code": error.code, "message": error.message, "hint": error.hint, "command": error.command}
        return PageAnswer("review.html", {**data, "error": words}, 409 if isinstance(error, DecidedMeanwhile) else 400)
    return place(f"runs/{run}/review", {"item": order})


def _decide(desk: Desk, request: Request, form: FormFields) -> str:
    """Record a decision, and go to the lesson that is to be looked at next."""
    run, order, choice = request.path_params["run"], _order(form.get("item", "")), form.get("choice", "")
    if choice not in WORDS or choice == EDIT:
        raise ConfigError(f"{choice!r} is no decision about a lesson.", code="unknown_decision")
    before = [each.order for each in _course(desk, run).queue() if each.status in (OPEN, CONFLICT)]
    made = decide(desk.store(), run, order, _decision(form, choice))
    if choice == UNDO or made.status not in DECIDED:
        return place(f"runs/{run}/review", {"item": order})
    left = [each for each in before if each != order]
    later = left[before.index(order) :] if order in before else []
    return place(f"runs/{run}/review", {"item": next(iter([*later, *left]), order)})


# --- conflicts, frames, what is live ----------------------------------------------------------------


def _conflict(desk: Desk, request: Request) -> Data:
    """Return both versions of a lesson that was edited and made again, where they differ."""
    course, order = _course(desk, request.path_params["run"]), _order(request.query_params.get("item", ""))
    lesson = course.lesson(order) if 1 <= order <= len(course.scheme["entries"]) else None
    made, edited = (course.made(order), course.edit(order)) if lesson else (None, None)
    if lesson is None or made is None or edited is None or lesson.status != CONFLICT:
        raise ConfigError(f"Lesson {order} has no edit in conflict with a new version.", code="no_conflict")
    _, faults = checked_edit(course, order, edited["lesson"])
    return {
        "run": course.run,
        "by": desk.name(request),
        "lesson": lesson.to_json(),
        "editor": lesson.standing.names[0],
        "faults": [each.line() for each in faults],
        "differences": _shown(differences(edited["lesson"], made["lesson"])),
    }


def _frame(desk: Desk, request: Request) -> Response:
    """Return a lesson as pupils see it, or its answers: as it stands, as it was made, or as it was edited."""
    course, order = _course(desk, request.path_params["run"]), request.path_params["order"]
    read = {"made": course.made, "edit": course.edit}.get(request.query_params.get("version", ""), course.content)
    row = read(order) if 1 <= order <= len(course.scheme["entries"]) else None
    if row is None:
        raise RunNotFound(f"Run {course.run} has no lesson {order} to show.", code="lesson_not_found")
    answers = bool(request.query_params.get("answers"))
    return framed(preview(desk.store(), course.state, row, answers=answers))


def _now(desk: Desk, query: Mapping[str, str]) -> Iterable[tuple[str, str, Data]]:
    """Return the queue and its progress, live while others decide."""
    course = _course(desk, query.get("run", ""))
    order = _order(query.get("item", ""))
    yield "queue", "_review_queue.html", {"run": course.run, **_queue(course, course.queue(), order)}


PAGES = (
    PageRoute("review", _reviews, "reviews.html", "reviews"),
    PageRoute("runs/{run}/review", _review, "review.html", "review"),
    PageRoute("runs/{run}/review/conflict", _conflict, "conflict.html", "conflict"),
)
WRITES = (
    WriteRoute("runs/{run}/review/decide", _decide, "review"),
    WriteRoute("runs/{run}/review/edit", _edit, "review"),
    WriteRoute("runs/{run}/review/check", _check, "review"),
)
RAWS = (RawRoute("runs/{run}/review/frame/{order:int}", _frame, "frame of a review", ".html"),)
STREAMS = (StreamRoute("review/events", changes=_now, every=2.0),)
