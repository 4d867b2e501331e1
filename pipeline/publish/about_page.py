"""About the course: who wrote it, what code checked, what a critic scored, and what nobody checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.publish import tables
from pipeline.publish.html import Html, clean, el, join
from pipeline.publish.index_page import count
from pipeline.publish.page import Page, by_line
from pipeline.publish.prose import inline
from pipeline.publish.questions import letter
from pipeline.publish.review_part import score, warnings
from pipeline.publish.verified import NOBODY, PARTLY, counts
from pipeline.publish.view import CourseView, LessonView
from pipeline.records.values import value_hash

PATH = "about.html"
#: Digits of a hash that a person compares.
_SHORT = 16


def build(view: CourseView) -> Page:
    """about.html."""
    body = join(
        [
            el("h1", "About this course"),
            el("p", by_line(view), cls="lede"),
            _section("made", "How it was made", el("dl", list(_made(view)), cls="facts")),
            _section("checked", "What was checked", _checked(view)),
            _section("scores", "Lesson by lesson", _scores(view)),
            _section("warnings", "Warnings of the checks", _warnings(view)),
            _section("nobody", "What nobody checked", _nobody(view)),
            _section("sources", "Where the course facts come from", _sources(view)),
            _section("mistakes", "Licence and mistakes", _mistakes(view)),
        ]
    )
    return Page(PATH, "About this course", body)


def _section(anchor: str, title: str, content: object) -> Html | None:
    if not content:
        return None
    return el("section", el("h2", title, id=anchor), content, aria_labelledby=anchor)


def _made(view: CourseView) -> Iterator[Html]:
    about = view.bundle.about
    author = "Offline author: a program, no model" if view.offline else clean(about.get("model") or "a model")
    prompts = about.get("prompts") or {}
    catalogue = about.get("catalogue") or view.bundle.scheme.get("catalogue", "")
    rows: list[tuple[str, object]] = [
        ("Author", author),
        ("Critic", clean(about.get("critic") or "") or ("none" if not _scored(view) else "the author's model")),
        ("Effort", clean(about.get("effort") or "")),
        ("Course file", el("code", clean(catalogue)[:_SHORT]) if catalogue else ""),
        ("Prompt set", el("code", value_hash(prompts)[:_SHORT]) if prompts else ""),
        ("Read by", _signed(about.get("sign_off") or {})),
    ]
    for name, value in rows:
        if value:
            yield el("dt", name)
            yield el("dd", value)


def _signed(sign_off: Mapping[str, Any]) -> str:
    if not sign_off.get("name"):
        return "No teacher has read this"
    changes = f"; changes: {clean(sign_off['changes'])}" if sign_off.get("changes") else ""
    return clean(sign_off["name"]) + changes


def _scored(view: CourseView) -> list[LessonView]:
    return [lesson for lesson in view.lessons if lesson.critic]


def _checked(view: CourseView) -> Html:
    found = counts(view.lessons)
    total = sum(found.values())
    answers = total - found[NOBODY]
    rows = [
        tables.row("Questions", total, right=1),
        tables.row("Answers computed again by code", answers - found[PARTLY], right=1),
        tables.row("Answers computed in part", found[PARTLY], right=1),
        tables.row("Answers that need a person", found[NOBODY], right=1),
    ]
    sentence = (
        f"{answers} of {count(total, 'answer')} were recomputed from the question's own numbers, at least in part."
    )
    also = (
        "Code also checked that the lines of working it can calculate are true, that lessons refer only to outcomes of "
        "the course, that marks add up and that no lesson asks a question twice."
    )
    return join(
        [
            el("p", sentence),
            el("p", also),
            tables.table("Questions by check", ("What", "Number"), [el("tbody", rows)], right=1),
            _key_places(view),
        ]
    )


def _key_places(view: CourseView) -> Html | None:
    """How often the right option stands at each place: a place that is always right gives the answer away."""
    answers = [question.item["answer"] for lesson in view.lessons for question in lesson.questions]
    places = Counter(letter(int(answer["key"])) for answer in answers if answer["kind"] == "mcq")
    if not places:
        return None
    return el("p", f"Right options by place: {', '.join(f'{place} {places[place]}' for place in sorted(places))}.")


def _scores(view: CourseView) -> Html:
    scored = _scored(view)
    head = ["No", "Lesson", "Questions", "Need a person"]
    head += ["Fidelity", "Quality"] if scored else []
    rows = []
    for lesson in view.lessons:
        found = counts([lesson])
        cells: list[object] = [
            el("a", inline(lesson.title), href=f"lessons/{lesson.file}.html"),
            sum(found.values()),
            found[NOBODY] + found[PARTLY],
        ]
        cells += [score(lesson, "fidelity"), score(lesson, "quality")] if scored else []
        rows.append(tables.row(lesson.order, *cells))
    words = (
        "A critic model scored each lesson; code set the verdict: fidelity at least 0.90, quality at least 0.80."
        if scored
        else "No critic scored these lessons: nobody has read them."
    )
    return join([el("p", words), tables.table("Lessons and their checks", head, [el("tbody", rows)])])


def _warnings(view: CourseView) -> Html | None:
    rows = [
        el(
            "li",
            el("a", f"Lesson {lesson.order}", href=f"answers/{lesson.file}.html#review"),
            f": {count(number, 'warning')}",
        )
        for lesson in view.lessons
        if (number := len(warnings(lesson.checks)))
    ]
    return el("ul", rows) if rows else None


def _nobody(view: CourseView) -> Html:
    rows = [
        "Whether the explanations are the best for your class.",
        "Statements of fact in words, and pictures described in words.",
        "Answers marked as not checkable by code.",
    ]
    if not _scored(view):
        rows.insert(0, "The reading of any lesson from start to end: no person and no second model has done it.")
    return el("ul", [el("li", row) for row in rows])


def _sources(view: CourseView) -> Html | None:
    rows = []
    for source in view.bundle.course.get("sources") or ():
        state = {True: "compared with the source", "partly": "compared in part"}.get(
            source.get("verified"), "not compared with a source"
        )
        covers = "; ".join(clean(part) for part in source.get("covers") or ())
        rows.append(el("li", clean(source.get("ref", "")), f": {covers} ({state})" if covers else f" ({state})"))
    return el("ul", rows) if rows else None


def _mistakes(view: CourseView) -> Html:
    licence = clean(
        view.bundle.about.get("licence") or "None is stated: ask whoever published the course before you share it."
    )
    report = (
        "To report a mistake, tell whoever gave you this course the lesson number, the question number and what is "
        "wrong. The files under data hold the same lessons for tools, and manifest.json their hashes."
    )
    return join([el("p", f"Licence: {licence}"), el("p", report)])
