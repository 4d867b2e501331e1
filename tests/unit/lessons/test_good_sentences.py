"""What a teacher would write every day is not refused; the same with a slip in it still is."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from pipeline.content.checks import ROWS
from pipeline.content.findings import Case
from pipeline.content.lesson import Lesson
from tests.checking import Json, course, scheme_of
from tests.small_lesson import fresh
from tests.unit.lessons.test_checks import put

EXPLAINER, FEEDBACK, NOTE = "c2.text", "c8.q1.feedback", "notes.1.text"
# One line a sentence.
# ruff: noqa: E501
#: Row, place, what is added there.
GOOD: list[tuple[int, str, str]] = [
    (14, EXPLAINER, "The coins 10, 20 and 50 make 80 pence."),
    (14, EXPLAINER, "The sides 3, 4 and 5 make 1 right angle."),
    (14, EXPLAINER, "The scores 2, 4 and 6 give 4 as the mean."),
    (14, EXPLAINER, "The digits 1, 2 and 4 make 6 numbers."),
    (14, EXPLAINER, "Here 20 and 30 make 1 pair."),
    (14, EXPLAINER, "So 5 and 7 give 35 as their product."),
    (14, EXPLAINER, "Half of 7 is 3½."),
    (14, EXPLAINER, "Here 19 divided by 5 is 3 remainder 4."),
    (14, EXPLAINER, "So 3 times 2 equals 2 plus 2 plus 2."),
    (14, EXPLAINER, "So 3 times 40 is 12 tens."),
    (14, EXPLAINER, "So 1000 times 3000 is 3 million."),
    (14, EXPLAINER, "Here 36 divided by 4 equals 3 squared."),
]
BAD: list[tuple[int, str, str]] = [
    (14, EXPLAINER, "The angles 90°, 162° and 108° make 350°."),
    (14, EXPLAINER, "The coins £2, £3 and £5 make £11 in all."),
    (14, EXPLAINER, "The numbers 3, 4 and 5 add up to 13."),
    (14, EXPLAINER, "So 5 and 7 make 13."),
    (14, EXPLAINER, "Here 20 % of 80 is 18."),
]


def told(number: int, where: str, value: Any) -> list[str]:
    """Return what one row finds above a warning once a text, or a question, stands in a good lesson."""
    lesson = fresh()
    put(lesson, where, (lambda before: f"{before} {value}") if isinstance(value, str) else value)
    row = next(row for row in ROWS if row.number == number)
    assert row.check
    found = row.check(Case(Lesson.model_validate(lesson), entry(), course()))
    return [f"{fault.where}: {fault.found}" for fault in found if (fault.severity or row.severity) != "W"]


@cache
def entry() -> Json:
    return {**scheme_of(course(), 1)[0], "calculator": "calc"}


@pytest.mark.parametrize(("number", "where", "text"), GOOD, ids=lambda value: str(value)[:60])
def test_a_good_sentence_stands(number: int, where: str, text: str) -> None:
    assert told(number, where, text) == []


@pytest.mark.parametrize(("number", "where", "text"), BAD, ids=lambda value: str(value)[:60])
def test_a_slip_is_found(number: int, where: str, text: str) -> None:
    assert told(number, where, text)
