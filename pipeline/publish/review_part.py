"""What a reviewer gets beside the answers: where each point is taught and asked, warnings, the critic's scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.publish import tables
from pipeline.publish.html import Html, clean, el, join
from pipeline.publish.prose import inline
from pipeline.publish.verified import NOBODY, PARTLY, counts
from pipeline.publish.view import CourseView, LessonView

#: The criteria a critic scores, as pages name them.
CRITERIA = {
    "F1": "Outcome and points taught",
    "F2": "Within the course",
    "F3": "Demand of the level",
    "F4": "Follows the scheme",
    "F5": "Facts right",
    "Q1": "Clear, in small steps",
    "Q2": "Example prepares practice",
    "Q3": "Misconceptions",
    "Q4": "Wrong options tell why",
    "Q5": "Rising demand",
    "Q6": "Mark scheme usable",
    "Q7": "Inclusive and local",
}


def build(view: CourseView, lesson: LessonView) -> Html:
    """The section "For the reviewer" of an answers page."""
    found = counts([lesson])
    human = found[NOBODY] + found[PARTLY]
    total = sum(found.values())
    first = f"{total - human} of {total} answers were checked by code; {human} need a person."
    read = (
        "A critic model scored this lesson; no teacher has read it."
        if lesson.critic
        else "Nobody has read this lesson."
    )
    return el(
        "section",
        el("h2", "For the reviewer", id="review"),
        el("p", first, " ", read),
        _warnings(lesson),
        _points(view, lesson),
        _scores(lesson),
        aria_labelledby="review",
    )


def warnings(checks: Mapping[str, Any]) -> list[str]:
    """Findings that were recorded without stopping the lesson, one line each."""
    return [clean(_line(found)) for found in checks.get("warnings") or ()]


def _line(found: object) -> str:
    if not isinstance(found, Mapping):
        return str(found)
    words = found.get("text") or "; wanted ".join(str(found[key]) for key in ("found", "wanted") if found.get(key))
    return f"{found['where']}: {words}" if found.get("where") else str(words)


def _warnings(lesson: LessonView) -> Html | None:
    rows = [el("li", inline(line)) for line in warnings(lesson.checks)]
    return join([el("h3", "Warnings of the checks"), el("ul", rows)]) if rows else None


def _points(view: CourseView, lesson: LessonView) -> Html | None:
    numbers = {question.item["id"]: question.number for question in lesson.questions}
    titles = {card["id"]: card["title"] for card in lesson.cards}
    rows = []
    for point in lesson.lesson.get("points") or ():
        asked = sorted(numbers[name] for name in point["items"] if name in numbers)
        rows.append(
            tables.row(
                inline(view.point_names.get(point["ref"], point["ref"])),
                inline(titles.get(point["card"], point["card"])),
                ", ".join(str(number) for number in asked) or "–",
            )
        )
    head = ("Point of the course", "Taught in", "Asked in")
    return tables.table("Where each point is taught and asked", head, [el("tbody", rows)]) if rows else None


def _scores(lesson: LessonView) -> Html | None:
    judgements = (lesson.critic or {}).get("judgements") or ()
    if not judgements:
        return None
    rows = [tables.row(_name(row), _score(row), join(list(_finding(row)))) for row in judgements]
    caption = f"What the critic scored: fidelity {score(lesson, 'fidelity')}, quality {score(lesson, 'quality')}"
    return tables.table(caption, ("Criterion", "Of 5", "Finding and evidence"), [el("tbody", rows)])


def _name(row: Mapping[str, Any]) -> str:
    return CRITERIA.get(row["criterion"], clean(row["criterion"]))


def _score(row: Mapping[str, Any]) -> str:
    return "–" if row.get("missing") else str(row["score"])


def _finding(row: Mapping[str, Any]) -> Iterator[Html]:
    yield inline(row["finding"])
    for part in row.get("evidence") or ():
        yield el("span", join([clean(part["id"]), ": “", inline(part["quotation"]), "”"]), cls="sub")


def score(lesson: LessonView, name: str) -> str:
    """A group's score with two decimals; a dash where there is none."""
    value = (lesson.critic or {}).get(name)
    return f"{float(value):.2f}" if isinstance(value, (int, float)) else "–"
