"""How the parts of a lesson are edited in a form, and where in it findings stand: fields by their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.app.review import CourseReview, LessonReview
from pipeline.content.addresses import steps_of, value_at
from pipeline.lessons.review import differences, leaves, place_of
from pipeline.publish.base import Bundle
from pipeline.publish.view import CourseView

#: The part that stands for all that differs where an edit is in conflict with a new version.
ALL = "conflict"
#: Fields of a lesson that are edited as one.
_HEAD = ("title", "outcome", "prior", "key_points", "keywords", "misconceptions", "notes")
#: Fields as teachers call them: the names on the way to one, without its numbers → words, with a place for each number.
_LABELS: Mapping[str, str] = {
    "ask": "Question", "answer": "Answer", "expression": "Calculation behind the answer", "feedback": "Explanation",
    "working": "Working, line {}", "marks": "Mark {}: what it is given for", "tests": "What it tests, {}",
    "options text": "Option {}", "options why": "Option {}: what choosing it shows",
    "options method": "Option {}: calculation that leads to it",
    "options mistake": "Option {}: number of the misconception",
    "wrong error": "Wrong answer {}: the slip", "wrong method": "Wrong answer {}: calculation that leads to it",
    "wrong mistake": "Wrong answer {}: number of the misconception",
    "more": "Note {}", "figures kind": "Figure {}: kind", "figures lines": "Figure {}, line {}",
}  # fmt: skip
#: A text of more characters gets more than a line.
_LINE = 40

Json = dict[str, Any]


def question_numbers(course: CourseReview, order: int, row: Json | None) -> dict[str, int]:
    """Return the numbers that pages give the questions of a lesson, by address."""
    if row is None:
        return {}
    shown = {**row, "order": order}
    view = CourseView(Bundle("review", course.course, course.scheme, [shown]))
    return {question.address: question.number for question in view.lessons[0].questions}


def placed_findings(lesson: LessonReview, numbers: Mapping[str, int]) -> Iterator[Json]:
    """Yield what was found of a lesson, each with the part to edit, its name, and its anchor on the page."""
    for each in lesson.findings:
        at = place_of(each.where) if each.where else ""
        number = numbers.get(at.partition("(")[0])
        card = at.partition(".")[0].removeprefix("c")
        anchor = f"q{number}" if number else f"s{card}" if card.isdecimal() else ""
        name = f"question {number}" if number else at.replace(".", " ").replace("_", " ")
        yield {**each.to_json(), "place": at, "name": name, "anchor": anchor}


def editable_parts(row: Json, numbers: Mapping[str, int]) -> list[Json]:
    """Return what of a lesson can be edited: its questions, worked examples, cards, and its own fields."""
    found = [{"place": at, "name": f"Question {number}"} for at, number in numbers.items()]
    for number, card in enumerate(row["lesson"]["cards"], 1):
        for name in ("text", "plain", "non_example", "instructions", "title"):
            if name in card:
                found.append({"place": f"c{number}.{name}", "name": f"{card['title']}: {name.replace('_', ' ')}"})
        for example in range(1, len(card.get("examples") or ()) + 1):
            found.append({"place": f"c{number}.e{example}", "name": f"{card['title']}: example {example}"})
    found += [{"place": name, "name": name.replace("_", " ").capitalize()} for name in _HEAD if name in row["lesson"]]
    return found


def edit_form(
    course: CourseReview, lesson: LessonReview, row: Json, edit: str, numbers: Mapping[str, int]
) -> Json | None:  # fmt: skip
    """Return the fields of a part, each with its address; None: the lesson has no such part."""
    if edit == ALL:
        other = course.edit(lesson.order) or row
        values = {where: after for where, _, after in differences(row["lesson"], other["lesson"])}
        title = "Put the edit onto the new version"
    else:
        found = value_at(row["lesson"], edit)
        if found is None:
            return None
        values = _question_first(leaves(found, steps_of(edit) or ()))
        title = f"Edit question {numbers[edit]}" if edit in numbers else f"Edit {edit}"
    fields = [
        {"at": at, "label": _label(at, edit), "value": "" if value is None else str(value), "fault": "",
         "lines": 1 + min(8, len(str(value)) // _LINE + str(value).count("\n"))}
        for at, value in values.items()
    ]  # fmt: skip
    return {"place": edit, "title": title, "fields": fields, "mark": lesson.standing.mark, "checks": None}


def _question_first(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts and numbers of a part; what is asked, which lessons have last, comes first."""
    return dict(sorted(values.items(), key=lambda pair: not pair[0].endswith(".ask")))


def _label(at: str, edit: str) -> str:
    words = (at.removeprefix(edit).lstrip(".") or at.rpartition(".")[2]).replace("_", " ").split(".")
    part = f"{words.pop(0)} " if words[0].startswith("(") else ""
    label = _LABELS.get(" ".join(word for word in words if not word.isdecimal()))
    if label is None:
        return part + " ".join((words[0].capitalize(), *words[1:]))
    return part + label.format(*(word for word in words if word.isdecimal()))
