"""The questions of a course as one table: a row per question, or per part of one."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.drawing import figure as draw
from pipeline.export.base import LICENCE, Selection
from pipeline.export.markup import named
from pipeline.html import clean
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import LessonView
from pipeline.records.spreadsheet import csv_text

#: Letters of options that have a column.
_LETTERS = "ABCDEF"
_HEAD = (
    "lesson", "title", "kind of lesson", "question", "part", "marks", "calculator", "asks", "part asks", "figures",
    *(f"option {letter}" for letter in _LETTERS),
    "right option", "answer", "mark scheme", "working", "hints", "answer checked by code",
)  # fmt: skip
#: What a question says of the calculator; nothing where the course has none.
_CALCULATOR = {True: "yes", False: "no", None: ""}


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    r"""Yield the table, in UTF-8 with the mark by which spreadsheets know it, and its licence; formulas stay TeX."""
    rows = [row for lesson in chosen.lessons for question in lesson.questions for row in _rows(lesson, question)]
    yield (
        f"questions{chosen.suffix}.csv",
        csv_text([[chosen.view.region.said(name) for name in _HEAD], *rows]).encode("utf-8-sig"),
    )
    # Beside it, where no reader of tables takes it for a row.
    yield f"questions{chosen.suffix}{LICENCE}.txt", f"{named(chosen.view)}\n{chosen.view.rights_line}\n".encode()


def _rows(lesson: LessonView, question: ShownQuestion) -> Iterator[list[str]]:
    texts = {option.letter: option.text for option in question.options}
    figures = "\n".join(map(draw.alt, question.item.get("figures") or ()))
    working, hints = "\n".join(question.item["working"]), "\n".join(question.of("hint"))
    parts = [(part.label, part.ask, part.answer, part.marks) for part in question.parts]
    for label, ask, answer, marks in parts or [("", "", question.answer, question.marks)]:
        scheme = "\n".join(
            f"{question.worth_of(1)}: {why}" + (f" ({earns})" if earns else "")
            for of, earns, why in question.scheme
            if of in ("", label)
        )
        cells = (
            lesson.order, lesson.title, lesson.type, question.number, label, marks,
            _CALCULATOR[question.calculator], question.ask, ask, figures,
            *(texts.get(letter, "") for letter in _LETTERS),
            question.key.letter if question.key else "", answer, scheme, working, hints, question.checked,
        )  # fmt: skip
        yield [clean(cell) for cell in cells]
