"""The table of code checks: each row one small function, its severity, and its number.

A lesson whose shape is wrong is told only that. Nothing here asks a model; text is treated as hostile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.lessons import checks_answers, checks_marks, checks_text, checks_working
from pipeline.lessons.checks_answers import fault
from pipeline.lessons.findings import Case, Check, Finding, Severity, quoted
from pipeline.lessons.schemas import Item
from pipeline.lessons.shape import parse_lesson

NOBODY = "nobody"
#: Kinds of answers that were put back into the question or tried at points; words and choices are nobody's.
_HOW = {"algebra": "point-tested"} | dict.fromkeys(("equation", "system", "inequality"), "substituted")
#: The row of shape: pydantic's part and what one field says about another.
SHAPE = 1
#: Findings of one check beyond this many say the same again.
MOST = 10


@dataclass(frozen=True, slots=True)
class Row:
    """One check."""

    number: int
    severity: Severity
    #: What it demands, in a few words; also for documentation and About pages.
    demands: str
    check: Check


ROWS: Sequence[Row] = (
    Row(2, "R", "references are those of the scheme's entry and of the catalogue", checks_marks.references),
    Row(3, "R", "every planned point is taught and asked", checks_marks.points),
    Row(5, "B", "an answer is what its expression gives", checks_answers.values),
    Row(6, "R", "an expression belongs to its question", checks_answers.belongs),
    Row(8, "B", "a multiple-choice question has exactly one right option", checks_marks.one_right),
    Row(12, "R", "no option or stem that gives away or confuses", checks_marks.wording),
    Row(14, "B", "every line of a worked solution is true", checks_working.lines),
    Row(15, "R", "a final answer has the form that is asked", checks_answers.forms),
    Row(16, "R", "a mark for each bullet, and the sums agree", checks_marks.marks),
    Row(19, "R", "units are allowed, printed, and said in the question", checks_marks.units),
    Row(26, "R", "no question twice", checks_text.repeats),
    Row(31, "R", "nothing outside the page, no stray talk", checks_text.stray),
    Row(35, "R", "mathematics can be set", checks_text.notation),
)


def check_lesson(lesson: Mapping[str, Any], *, entry: Mapping[str, Any], course: Mapping[str, Any]) -> list[Finding]:
    """Return everything that code finds wrong with a lesson, by row.

    Args:
        lesson: As the author wrote it, any JSON.
        entry: The scheme's entry for it.
        course: The pinned catalogue course.
    """
    parsed, problems = parse_lesson(lesson)
    if parsed is None:
        return [_shape_finding(line) for line in problems]
    case = Case(parsed, entry, course)
    found: list[Finding] = []
    for row in ROWS:
        faults = [*row.check(case)][:MOST]
        found += [
            Finding(row.number, f.severity or row.severity, f.where, quoted(f.found), quoted(f.wanted)) for f in faults
        ]
    return found


def _shape_finding(line: str) -> Finding:
    where, _, said = line.partition(": ")
    found, _, wanted = said.partition(", wanted ")
    return Finding(SHAPE, "R", where, quoted(found), quoted(wanted or "what the schema says"))


def repeats(lessons: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return the questions of a course that stand in two lessons; the later one is named.

    Args:
        lessons: Lessons that passed `check_lesson`, in order.
    """
    faults = checks_text.repeats_between(lessons)
    return [Finding(26, f.severity or "R", f.where, quoted(f.found), quoted(f.wanted)) for f in faults]


def summary(lesson: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the About page says of a lesson's answers.

    {"questions": n, "answers_recomputed": n, "needs_human": n, "by": {item id: how}}; how is "computed",
    "point-tested", "substituted" or "nobody". A structured question counts by its weakest part.
    """
    parsed, _ = parse_lesson(lesson)
    by = {item.id: _verified(item) for item in parsed.items()} if parsed else {}
    human = sum(how == NOBODY for how in by.values())
    return {"questions": len(by), "answers_recomputed": len(by) - human, "needs_human": human, "by": by}


def _verified(item: Item) -> str:
    ways = [NOBODY if fault(answer) else _how(answer.model_dump()) for _, answer in item.answers()]
    return NOBODY if NOBODY in ways else ways[0]


def _how(answer: Mapping[str, Any]) -> str:
    if answer["kind"] == "short_text":
        return NOBODY
    if answer["kind"] == "mcq":
        key = answer["options"][answer["key"]]
        return "computed" if key["expression"] and key["method"] else NOBODY
    return _HOW.get(answer["kind"], "computed")
