"""The course index: what is taught, topic by topic, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.publish.html import Html, clean, el, join
from pipeline.publish.page import Page, link
from pipeline.publish.prose import inline
from pipeline.publish.view import CourseView, Group, LessonView, Outcome

PATH = "index.html"


def build(view: CourseView) -> Page:
    """index.html."""
    body = join(
        [
            el("p", code_line(view), cls="code"),
            el("h1", view.title),
            el("p", _lede(view), cls="lede"),
            _coverage(view),
            [_group(view, group) for group in view.groups if not group.cross_cutting],
            _other_lessons(view),
            [_cross_cutting(view, group) for group in view.groups if group.cross_cutting],
            _not_covered(view),
            _failed(view),
        ]
    )
    return Page(PATH, view.title, body)


def code_line(view: CourseView) -> str:
    """Code, level and credits, as a teacher looks for them."""
    course = view.bundle.course
    scqf = course.get("scqf") or {}
    parts = [f"SQA {course['code']}" if course.get("code") else ""]
    parts.append(f"SCQF level {scqf['level']}" if scqf.get("level") else "")
    parts.append(f"{scqf['credits']} credits" if scqf.get("credits") else "")
    return " · ".join(clean(part) for part in parts if part)


def count(number: int, noun: str) -> str:
    """A number and its noun: "1 lesson", "2 lessons"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _lede(view: CourseView) -> str:
    partial = "Partial course: " if view.taught < len(view.outcomes) else ""
    made = count(len(view.lessons), "lesson")
    sentence = f"{made} with explanations, worked examples and questions; answers stand on pages of their own."
    return f"{partial}{sentence}"


def _coverage(view: CourseView) -> Html:
    total, taught = len(view.outcomes), view.taught
    segments: list[Html] = []
    for group in view.groups:
        if group.cross_cutting:
            continue
        for place, outcome in enumerate(group.outcomes):
            names = " ".join(name for name, on in (("first", place == 0), ("on", bool(outcome.lessons))) if on)
            segments.append(el("span", cls=names or None))
    missing = total - taught
    have = "outcome has" if missing == 1 else "outcomes have"
    sentence = f"Partial course: {missing} {have} no lesson yet." if missing else "Every outcome has a lesson."
    return join(
        [
            el("h2", f"{taught} of {count(total, 'outcome')} taught"),
            el("div", segments, cls="bar", aria_hidden="true"),
            el("p", sentence),
        ]
    )


def _group(view: CourseView, group: Group) -> Html | None:
    if not group.outcomes:
        return None
    taught = sum(bool(outcome.lessons) for outcome in group.outcomes)
    head = el(
        "div",
        el("h2", group.title, id=f"g-{group.id}"),
        el("p", f"{taught} of {count(len(group.outcomes), 'outcome')}", cls="muted"),
        cls="topic-head",
    )
    rows = [_outcome(view, outcome) for outcome in group.outcomes]
    return el("section", head, el("ul", rows, cls="outcomes"), aria_labelledby=f"g-{group.id}")


def _outcome(view: CourseView, outcome: Outcome) -> Html:
    title = el("p", el("span", outcome.number, cls="num"), inline(outcome.title))
    failed = [el("li", el("p", f"Lesson {row['order']} failed", cls="muted")) for row in outcome.failed]
    if not outcome.lessons and not failed:
        return el("li", title, el("p", "No lesson yet", cls="muted"))
    return el("li", title, el("ul", [lesson_item(lesson, PATH) for lesson in outcome.lessons], failed, cls="lessons"))


def lesson_item(lesson: LessonView, page: str) -> Html:
    """A link to a lesson, as a list item."""
    words = join([f"{lesson.type} {lesson.order}: ", inline(lesson.title)])
    return el("li", el("a", words, href=link(page, f"lessons/{lesson.file}.html")))


def _other_lessons(view: CourseView) -> Html | None:
    """Lessons that no outcome lists above: practice, revision, assessments."""
    listed = {lesson.order for outcome in view.outcomes for lesson in outcome.lessons}
    other = [lesson for lesson in view.lessons if lesson.order not in listed]
    if not other:
        return None
    return el(
        "section",
        el("h2", "Practice, revision and assessment", id="other"),
        el("ul", [lesson_item(lesson, PATH) for lesson in other], cls="lessons"),
        aria_labelledby="other",
    )


def _cross_cutting(view: CourseView, group: Group) -> Html:
    anchor = f"g-{group.id}"
    rows = []
    for outcome in group.outcomes:
        used = [lesson for lesson in view.lessons if outcome.id in lesson.lesson.get("cross_cutting", ())]
        where = f"Practised in lessons {_ranges([lesson.order for lesson in used])}." if used else "In no lesson yet."
        rows.append(el("li", el("p", inline(outcome.title)), el("p", where, cls="muted")))
    return el(
        "section",
        el("h2", f"Cross-cutting skills: {group.title}", id=anchor),
        el("ul", rows, cls="outcomes"),
        aria_labelledby=anchor,
    )


def _ranges(numbers: list[int]) -> str:
    """1–3, 5, 8–9 for [1, 2, 3, 5, 8, 9]."""
    return ", ".join(f"{low}–{high}" if high > low else str(low) for low, high in _runs(numbers))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    start = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        yield start, previous
        if number is not None:
            start = previous = number


def _not_covered(view: CourseView) -> Html | None:
    missing = [outcome for outcome in view.outcomes if not outcome.lessons]
    if not missing:
        return None
    rows = [
        el("li", el("p", el("span", outcome.number, cls="num"), inline(outcome.title)), cls="wide")
        for outcome in missing
    ]
    return el(
        "section",
        el("h2", "Not covered", id="not-covered"),
        el("p", "This course does not reach these outcomes. They are listed in teaching order."),
        el("ul", rows, cls="outcomes"),
        aria_labelledby="not-covered",
    )


def _failed(view: CourseView) -> Html | None:
    if not view.failed:
        return None
    return el(
        "section",
        el("h2", "Lessons that failed", id="failed"),
        el("p", "These lessons did not pass their checks, so they are not here."),
        el("ul", [_failed_row(row) for row in view.failed], cls="outcomes"),
        aria_labelledby="failed",
    )


def _failed_row(row: Mapping[str, Any]) -> Html:
    name = join([f"Lesson {row['order']}: ", inline(row.get("label") or "untitled")])
    return el("li", el("p", name), el("p", clean(row.get("reason") or "no reason recorded"), cls="muted"))
