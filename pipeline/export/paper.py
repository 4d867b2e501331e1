"""What stands on worksheets, exam papers and answers, block by block, for every format that is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.export import paper_data
from pipeline.export.base import Selection
from pipeline.export.paper_data import Data, figures, passages, words
from pipeline.export.worksheet import SheetQuestion, SheetSection, Worksheet, sheets
from pipeline.formulas.plain_text import plain
from pipeline.html import clean, count
from pipeline.publish.answers_page import WORDS, mark_heads, wrong_answers
from pipeline.publish.questions import MARK_MM, SENTENCES, divided, is_drawn, is_written, room
from pipeline.publish.view import CourseView

#: Room for a drawing on squared paper (millimetres).
_MM_OF_SQUARES = 100
#: Letters of what pupils read, and of answers, in points.
_PUPILS_SIZE, _TEACHERS_SIZE = 11.5, 10


def documents(chosen: Selection) -> Iterator[tuple[str, Data]]:
    """Yield each worksheet or paper of the lessons, and its answers: the name of its file, without ending, and it."""
    for lesson in chosen.lessons:
        for sheet in sheets(lesson, chosen.difficulties):
            yield sheet.name, pupils_document(chosen.view, sheet)
            yield sheet.answers_name, teachers_document(chosen.view, sheet)


def _document(view: CourseView, sheet: Worksheet, title: str, blocks: Sequence[Data], size: float) -> Data:
    """Return a document whose letters are `size` points high."""
    language, _, country = view.region.language.partition("-")
    label = sheet.label if sheet.difficulty else ""
    foot = [view.title, f"Lesson {sheet.lesson.order}", label, "Offline draft" if view.bundle.draft else ""]
    return {
        "title": plain(title), "lang": language, "region": country or None,
        "paper": "us-letter" if country == "US" else "a4",
        "foot": " · ".join(filter(None, foot)), "blocks": list(blocks), "size": size,
        "about": view.rights_line, "rights": " ".join(view.stated_rights),
    }  # fmt: skip


# --- what pupils get -------------------------------------------------------------------------------


def pupils_document(view: CourseView, sheet: Worksheet) -> Data:
    """Return a worksheet or an exam paper; it holds no answer."""
    lesson = sheet.lesson
    title = f"{lesson.title}: {sheet.label}" if sheet.difficulty else lesson.title
    made = _exam(view, sheet) if lesson.mock_exam else _worksheet(sheet)
    return _document(view, sheet, title, list(made), _PUPILS_SIZE)


def _worksheet(sheet: Worksheet) -> Iterator[Data]:
    yield {"k": "title", "line": words(sheet.lesson.title)}
    rules = dict.fromkeys(section.rule for section in sheet.sections)
    yield {"k": "lead", "line": [" ".join([f"{sheet.label}: {_extent(sheet)}", *filter(None, rules)])]}
    yield {"k": "name", "worth": sheet.lesson.region.said("Marks"), "marks": sheet.marks}
    if sheet.words:
        yield {"k": "h1", "line": ["Words you need"]}
        yield {"k": "ul", "items": [words(meaning, before=f"{term}:") for term, meaning in sheet.words]}
    for place, example in enumerate(sheet.examples, 1):
        name = f"Worked example {place}" if len(sheet.examples) > 1 else "Worked example"
        yield {"k": "box", "body": list(_example(name, example))}
    if sheet.words or sheet.examples:
        yield {"k": "h1", "line": ["Your turn"]}
    for section in sheet.sections:
        yield from _section(section)


def _extent(sheet: Worksheet) -> str:
    return f"{count(len(sheet.questions), 'question')}, {sheet.lesson.region.said(count(sheet.marks, 'mark'))}."


def _example(name: str, example: Mapping[str, Any]) -> Iterator[Data]:
    yield {"k": "h1", "line": [name]}
    yield from passages(example["ask"])
    yield from figures(example)
    yield paper_data.steps([divided(step) for step in example["working"]])
    if example.get("answer"):
        yield {"k": "p", "line": words(example["answer"], before="Answer:")}


def _exam(view: CourseView, sheet: Worksheet) -> Iterator[Data]:
    """Yield each paper with a page in front of it, what a candidate is given, and its end."""
    lesson = sheet.lesson
    for place, section in enumerate(sheet.sections):
        if place:
            yield {"k": "page"}
        facts = [
            [f"Time: {count(section.minutes, 'minute')}"],
            [f"Total: {view.region.said(count(section.marks, 'mark'))}"],
            [section.rule],
            ["Answer all the questions, in the spaces that follow them."],
            [f"You may use the {' and the '.join(map(clean, view.provided))}."] if view.provided else [],
        ]
        yield {
            "k": "cover", "first": not place, "course": [view.title],
            "title": words(f"{lesson.type}: {section.title}" if place or len(sheet.sections) > 1 else lesson.title),
            "facts": [fact for fact in facts if fact and fact != [""]], "names": ["Name", "Class", "Date"],
        }  # fmt: skip
        yield from passages(section.instructions)
        yield {"k": "page"}
        for given_sheet in view.assessment.get("sheets") or ():
            yield {"k": "h1", "line": words(given_sheet["title"])}
            yield {"k": "ul", "items": [words(line) for line in given_sheet["lines"]]}
            yield {"k": "page"}
        *others, last = _section(section)
        yield from others
        # On the page of the last question.
        yield {**last, "body": [*last["body"], {"k": "note", "line": ["End of the paper."]}]}


def _section(section: SheetSection) -> Iterator[Data]:
    for asked in section.questions:
        yield from _question(asked, section.rule_of(asked))


def _question(asked: SheetQuestion, rule: str) -> Iterator[Data]:
    question = asked.asked
    body = [*passages(question.ask), *figures(question.item)]
    if rule:
        body.append({"k": "note", "line": [rule]})
    body += [{"k": "note", "line": words(hint, before="Hint:")} for hint in asked.hints]
    if question.options:
        rows = [[option.letter, words(option.text), False] for option in question.options]
        body.append({"k": "options", "rows": rows})
    if not question.options and not question.parts:
        body.append(_room(question.ask, question.answer, question.marks))
    yield _numbered(f"{asked.number}", body, "" if question.parts else question.worth, stem=bool(question.parts))
    for part in question.parts:
        body = [*passages(part.ask), _room(part.ask, part.answer, part.marks)]
        yield _numbered(part.label, body, part.worth, level=1)


def _numbered(number: str, body: Sequence[Data], worth: str, *, level: int = 0, stem: bool = False) -> Data:
    """Return a question, a part of one (level 1), or what stands before the parts of one."""
    return {"k": "question", "n": number, "body": list(body), "level": level, "stem": stem, "marks": worth}


def _room(stem: str, answer: str, marks: int) -> Data:
    """Return empty space: squared where something is drawn, lines for an answer in words."""
    if is_drawn(stem):
        return {"k": "space", "style": "squares", "mm": _MM_OF_SQUARES, "marks": room(marks)}
    written = is_written(answer)
    size = room(marks, written=stem if written else "")
    return {"k": "space", "style": "lines" if written else "blank", "mm": MARK_MM * size, "marks": size}


# --- what the teacher gets -------------------------------------------------------------------------


def teachers_document(view: CourseView, sheet: Worksheet) -> Data:
    """Return the answers to a sheet: working, mark scheme, what wrong answers show."""
    title = f"Answers: {sheet.lesson.title}"
    kind = f"{sheet.label} ({sheet.difficulty})" if sheet.difficulty else sheet.label
    lead = {"k": "lead", "line": [f"{kind}: {_extent(sheet)} For the teacher."]}
    made: list[Data] = [{"k": "title", "line": words(title)}, lead]
    for section in sheet.sections:
        if section.title:
            made.append({"k": "h1", "line": words(section.title)})
        for asked in section.questions:
            made += _answer(asked, "h2" if section.title else "h1")
    made.append({"k": "note", "line": [view.rights_line]})
    return _document(view, sheet, f"{title}, {kind}", made, _TEACHERS_SIZE)


def _answer(asked: SheetQuestion, heading: str) -> Iterator[Data]:
    question, key = asked.asked, asked.asked.key
    where = "" if asked.number == question.number else f" (question {question.number} of the lesson)"
    yield {"k": heading, "line": [f"Question {asked.number}{where}"]}
    yield from passages(question.ask)
    yield from figures(question.item)
    if question.options:
        rows = [[option.letter, words(option.text), option.right] for option in question.options]
        yield {"k": "options", "rows": rows}
    for part in question.parts:
        yield {"k": "p", "line": words(part.ask, before=part.label)}
        yield {"k": "p", "line": words(part.answer, before=f"Answer {part.label}:")}
    if not question.parts:
        letter = f"{key.letter}, " if key else ""
        yield {"k": "p", "line": words(f"{letter}{question.answer}", before="Answer:")}
    yield paper_data.steps([divided(step) for step in question.item["working"]])
    yield _mark_table(asked)
    lists = [
        ("Follow-through", question.of("follow_through")),
        ("Other valid methods", question.of("alternative")),
        ("Feedback", [question.item["feedback"]]),
        *((name, question.of(kind)) for kind, name in WORDS),
    ]
    for name, lines in lists:
        yield from ({"k": "p", "line": words(text, before=f"{name}:")} for text in lines)
    wrong = [
        [words(f"{letter}: {text}" if letter else text), words(why)] for letter, text, why in wrong_answers(question)
    ]
    if wrong:
        yield paper_data.table([], [["Wrong answer"], ["What it shows"]], wrong, columns=(1, 2))
    yield {"k": "note", "line": [SENTENCES[question.checked]]}


def _mark_table(asked: SheetQuestion) -> Data:
    scheme, total = asked.asked.scheme, [str(asked.asked.marks)]
    heads = [[name] for name in mark_heads(asked.asked)]
    if len(heads) == 2:
        rows = [[words(f"{label} {why}".strip()), ["1"]] for label, _, why in scheme]
        return paper_data.table([], heads, [*rows, [["Total"], total]],
                                columns=(5, "auto"), right=1)  # fmt: skip
    rows = [[words(f"{label} {earns or 'as above'}".strip()), words(why), ["1"]] for label, earns, why in scheme]
    return paper_data.table([], heads, [*rows, [["Total"], [], total]],
                            columns=(2, 3, "auto"), right=2)  # fmt: skip
