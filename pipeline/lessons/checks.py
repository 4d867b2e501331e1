"""The table of code checks: each row one small function, its severity, and the rule as the author reads it.

What can be read of a lesson is checked, whatever else of it cannot. Nothing here asks a model; text is hostile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.lessons import checks_text
from pipeline.lessons.findings import Case, Check, Finding, Severity, quoted
from pipeline.lessons.reading import SHAPE, read_lesson
from pipeline.lessons.shape import shape_faults

#: Findings of one check beyond this many say the same again; and all findings of a lesson.
MOST, MOST_TOGETHER = 10, 40


@dataclass(frozen=True, slots=True)
class Row:
    """One check."""

    number: int
    severity: Severity
    #: What it demands, in a few words; also for documentation and About pages.
    demands: str
    check: Check
    #: What the author is told of it, with an example; "" where it can only warn.
    rule: str = ""


ROWS: Sequence[Row] = (
    Row(26, "R", "no question twice", checks_text.repeats,
        "No two items of a lesson ask the same in the same words; change the numbers or the setting."),
    Row(31, "R", "nothing outside the page, no stray talk", checks_text.stray,
        "Nothing outside the page: no link, picture, worksheet, book, video, web site or brand; no praise, no talk "
        "about yourself, no words to a reviewer."),
    Row(35, "R", "mathematics can be set", checks_text.notation,
        r"Formulas use only the notation above. A line break inside a formula, a single $ or a backslash outside a "
        r"formula is an error."),
)  # fmt: skip


def check_lesson(lesson: Any, *, entry: Mapping[str, Any], course: Mapping[str, Any]) -> list[Finding]:
    """Return everything that code finds wrong with a lesson, in the order of its parts.

    Args:
        lesson: As the author wrote it (tidied), any JSON.
        entry: The scheme's entry for it.
        course: The pinned catalogue course.
    """
    read = read_lesson(lesson)
    if read.lesson is None:
        return list(read.findings)
    case, found = Case(read.lesson, entry, course), list(read.findings)
    for number, severity, check in (
        (SHAPE, "R", lambda case: shape_faults(case.lesson, entry)),
        *((row.number, row.severity, row.check) for row in ROWS),
    ):
        faults = [fault for fault in check(case) if read.concerns(fault.where)]
        found += [
            Finding(number, f.severity or severity, f.where, quoted(f.found), quoted(f.wanted), tuple(f.also))
            for f in (faults if number == SHAPE else faults[:MOST])
        ]
    return found[:MOST_TOGETHER]


def repeats(lessons: Mapping[int, Mapping[str, Any]]) -> list[tuple[int, Finding]]:
    """Return the questions of a course that stand in two lessons: (order of the later one, finding).

    Args:
        lessons: Lessons that passed `check_lesson`, by order.
    """
    return [
        (order, Finding(26, "W", fault.where, quoted(fault.found), quoted(fault.wanted)))
        for order, fault in checks_text.repeats_between(lessons)
    ]


def summary(lesson: Mapping[str, Any], *, entry: Mapping[str, Any], course: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pages say of a lesson's answers: {"by": {address: how}, "wrong": {address: printed value}}.

    how: "computed" where all that is printed for the item was compared, "in part", "nobody".
    """
    read = read_lesson(lesson)
    items = read.lesson.items() if read.lesson else []
    return {"by": {where: "nobody" for where, _ in items}, "wrong": {}}
