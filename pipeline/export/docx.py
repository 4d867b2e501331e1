"""Worksheets for Word and Google Docs, and their answers apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline.export.base import Selection
from pipeline.export.word import STEP_MM, WordFile
from pipeline.export.worksheet import SheetQuestion, SheetSection, Worksheet, sheets
from pipeline.frameworks import region_of
from pipeline.html import clean, count
from pipeline.publish.questions import SENTENCES, ShownPart, ShownQuestion, is_drawn, is_written, room
from pipeline.publish.view import CourseView

#: Columns of a mark scheme, millimetres.
_MARK_COLUMNS = (62, 82, 16)
#: What written answers may, must and must not say.
_WORDS = (("accept", "Also accept:"), ("must", "Must have:"), ("reject", "Do not accept:"))
#: What else a mark scheme may say.
_MORE = (("follow_through", "Follow-through:"), ("alternative", "Another valid method:"), *_WORDS)


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield each worksheet or paper, and its answers for the teacher."""
    for lesson in chosen.lessons:
        for sheet in sheets(lesson, chosen.difficulties):
            yield f"{sheet.name}.docx", _pupils(chosen.view, sheet)
            yield f"{sheet.answers_name}.docx", _teachers(chosen.view, sheet)


def _file(view: CourseView, sheet: Worksheet, title: str, kind: str) -> WordFile:
    language = region_of(view.bundle.course).language
    made = WordFile(
        clean(title),
        language=language if "-" in language else "en-GB",
        head=(f"{view.title} · lesson {sheet.lesson.order}", kind),
        foot="Offline draft, made without a model" if view.bundle.draft else "",
        comments=view.rights_line,
    )
    made.paragraph("Title", title)
    return made


# --- for pupils -----------------------------------------------------------------------------------


def _pupils(view: CourseView, sheet: Worksheet) -> bytes:
    made = _file(view, sheet, sheet.lesson.title, sheet.label)
    made.paragraph("Subtitle", f"{sheet.label}: {_size(sheet)}")
    made.name_line(sheet.marks)
    if not sheet.difficulty:
        _formula_sheets(made, view)
    if sheet.words:
        made.paragraph("heading 1", "Words you need")
        for term, meaning in sheet.words:
            made.paragraph("List Bullet", meaning, lead=f"{term}:")
    for number, example in enumerate(sheet.examples, 1):
        _example(made, example, f"Example {number}" if len(sheet.examples) > 1 else "Example")
    for place, section in enumerate(sheet.sections):
        _section(
            made, view, section, fresh=bool(place) or bool(sheet.lesson.mock_exam and view.assessment.get("sheets"))
        )
    return made.save()


def _size(sheet: Worksheet) -> str:
    return f"{count(len(sheet.questions), 'question')}, {count(sheet.marks, 'mark')}"


def _formula_sheets(made: WordFile, view: CourseView) -> None:
    for sheet in view.assessment.get("sheets") or ():
        made.paragraph("heading 1", sheet["title"])
        for words in sheet["lines"]:
            made.paragraph("List Bullet", words)


def _example(made: WordFile, example: Mapping[str, Any], heading: str) -> None:
    made.paragraph("heading 1", heading)
    made.text(example["ask"], "Normal", "Normal")
    for figure in example.get("figures") or ():
        made.figure(figure)
    made.steps(example["working"])
    if example.get("answer"):
        made.paragraph("Working", example["answer"], lead="Answer:")


def _section(made: WordFile, view: CourseView, section: SheetSection, *, fresh: bool) -> None:
    made.paragraph("heading 1", section.title or "Questions", fresh=fresh)
    marks = count(section.marks, "mark")
    said = [f"{count(section.minutes, 'minute')}."] if section.minutes else []
    said += [f"{marks}."] if section.title and marks not in section.instructions else []
    said += [section.rule] if section.rule else []
    if section.title and view.provided:
        said.append(f"You may use the {' and the '.join(map(clean, view.provided))}.")
    if said:
        made.paragraph("Normal", " ".join(said))
    if section.instructions:
        made.text(section.instructions, "Normal", "Normal")
    for question in section.questions:
        _question(made, question, section.rule_of(question))


def _question(made: WordFile, question: SheetQuestion, rule: str) -> None:
    asked = question.asked
    marks = "" if asked.parts else count(asked.marks, "mark")
    made.text(asked.ask, "Question", "Question Text", end=marks, kept=True)
    if rule:
        made.paragraph("Question Text", rule)
    for figure in asked.item.get("figures") or ():
        made.figure(figure)
    for hint in question.hints:
        made.paragraph("Hint", hint, lead="Hint:")
    made.options([option.text for option in asked.options])
    for part in asked.parts:
        made.text(part.ask, "Question Part", "Question Text", end=count(part.marks, "mark"), kept=True)
        _room(made, part, 2 * STEP_MM)
    if not asked.parts and not asked.options:
        _room(made, asked, STEP_MM)


def _room(made: WordFile, asked: ShownQuestion | ShownPart, left: int) -> None:
    if is_drawn(asked.ask):
        made.squared_paper()
    else:
        made.room(room(asked.marks), left=left, lines=is_written(asked.answer))


# --- for the teacher ------------------------------------------------------------------------------


def _teachers(view: CourseView, sheet: Worksheet) -> bytes:
    made = _file(view, sheet, f"Answers: {sheet.lesson.title}", "Answers, for the teacher")
    kind = f"{sheet.label} ({sheet.difficulty})" if sheet.difficulty else sheet.label
    made.paragraph("Subtitle", f"{kind}: {_size(sheet)}. For the teacher.")
    for section in sheet.sections:
        if section.title:
            made.paragraph("heading 1", section.title)
        for question in section.questions:
            _answer(made, question)
    made.paragraph("Note", view.rights_line)
    return made.save()


def _answer(made: WordFile, question: SheetQuestion) -> None:
    asked = question.asked
    where = "" if question.number == asked.number else f" (question {asked.number} of the lesson)"
    made.paragraph("heading 2", f"Question {question.number}{where}")
    made.text(asked.ask, "Normal", "Normal")
    for figure in asked.item.get("figures") or ():
        made.figure(figure)
    for part in asked.parts:
        made.paragraph("Normal", part.ask, lead=part.label)
        made.paragraph("Normal", part.answer, lead=f"Answer {part.label}:")
    if not asked.parts:
        letter = f"{asked.key.letter}, " if asked.key else ""
        made.paragraph("Normal", f"{letter}{asked.answer}", lead="Answer:")
    made.steps(asked.item["working"])
    made.table(("Expected answer", "Give the mark for", "Marks"), _marks(asked), widths=_MARK_COLUMNS, left=2)
    for kind, name in _MORE:
        for words in asked.of(kind):
            made.paragraph("Normal", words, lead=name)
    for option in asked.options:
        if not option.right:
            made.paragraph("Normal", f"{option.text}: {option.why}", lead=f"{option.letter},")
    made.paragraph("Note", SENTENCES[asked.checked])


def _marks(asked: ShownQuestion) -> Sequence[Sequence[str]]:
    rows = []
    for label, marks in groupby(asked.scheme, key=lambda mark: mark[0]):
        for place, (_, earns, why) in enumerate(marks):
            name = f"{label} " if label and not place else ""
            rows.append((f"{name}{earns or 'as above'}", why, "1"))
    return [*rows, ("", "Total", str(asked.marks))]
