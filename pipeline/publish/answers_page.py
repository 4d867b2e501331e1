"""Answers for the teacher: answer, working, mark scheme, what wrong answers show, and who checked it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.publish import review_part, tables
from pipeline.publish.html import Html, clean, el, join
from pipeline.publish.index_page import count
from pipeline.publish.lesson_page import eyebrow, kind_of
from pipeline.publish.notation import shown
from pipeline.publish.page import Page, link
from pipeline.publish.prose import blocks, inline
from pipeline.publish.questions import letter, marks, options, working
from pipeline.publish.verified import SENTENCES, verified
from pipeline.publish.view import CourseView, LessonView, Question

_MARKS = ("Expected answer", "Give the mark for", "Mark")
#: What a pupil with extra time gets, in quarters.
_EXTRA_TIME = 5


def index(view: CourseView) -> Page:
    """answers/index.html."""
    path = "answers/index.html"
    rows = [
        el(
            "li",
            el(
                "a",
                f"Answers to {lesson.type.lower()} {lesson.order}: ",
                inline(lesson.title),
                href=f"{lesson.file}.html",
            ),
        )
        for lesson in view.lessons
    ]
    body = join(
        [
            el("h1", "Answers and mark schemes"),
            el("p", "For teachers. Pupils' pages hold no answers.", cls="lede"),
            el("ul", rows, cls="lessons") if rows else el("p", "There is no lesson yet."),
        ]
    )
    return Page(path, "Answers", body, hidden=True)


def build(view: CourseView, lesson: LessonView) -> Page:
    """answers/NN-slug.html."""
    path = f"answers/{lesson.file}.html"
    total = sum(int(question.item["marks"]) for question in lesson.questions)
    back = el("a", "Open this lesson as pupils see it", href=link(path, f"lessons/{lesson.file}.html"))
    asked = [card for card in lesson.cards if card.get("items")]
    body = join(
        [
            el("p", f"{view.title} · {lesson.type} {lesson.order} of {view.total} · for the teacher", cls="code"),
            el("h1", "Answers: ", inline(lesson.title)),
            el("p", f"{count(len(lesson.questions), 'question')}, {marks(total)}. ", back, ".", cls="lede"),
            _notes(lesson),
            [_card(card, place, lesson) for place, card in enumerate(asked, 1)],
            review_part.build(view, lesson),
            _pager(view, lesson),
        ]
    )
    foot = f"{view.title}, answers to lesson {lesson.order}: {lesson.title}"
    return Page(path, f"Answers: {lesson.title}", body, hidden=True, foot=foot)


def _pager(view: CourseView, lesson: LessonView) -> Html:
    before, after = view.neighbour(lesson, -1), view.neighbour(lesson, 1)
    back = el("a", "Back: answers to ", inline(before.title), href=f"{before.file}.html") if before else None
    forward = el("a", "Next: answers to ", inline(after.title), href=f"{after.file}.html") if after else None
    every = el("a", "All answers", href="index.html") if not before else None
    return el("nav", back, every, forward, cls="pager", aria_label="Previous and next answers")


def _notes(lesson: LessonView) -> Html:
    """What the teacher needs before the lesson."""
    data = lesson.lesson
    notes = data.get("teacher_notes") or {}
    minutes = int(data["minutes"])
    prior = [join([inline(row["text"]), f" ({_origin(row)})"]) for row in data.get("prior_knowledge") or ()]
    watch = [notes.get("watch_for"), *(card.get("watch_for") for card in lesson.cards)]
    rows: list[tuple[str, Sequence[object]]] = [
        ("Pupils will know", [inline(row["text"]) for row in data.get("key_learning_points") or ()]),
        ("Needed to start", prior),
        ("Resources", [inline(name) for name in notes.get("resources") or ()]),
        ("Watch for", [inline(words) for words in watch if words]),
        ("If they struggle", [inline(notes["if_they_struggle"])] if notes.get("if_they_struggle") else []),
        ("If they fly", [inline(notes["if_they_fly"])] if notes.get("if_they_fly") else []),
        ("Safety", [inline(notes["safety"])] if notes.get("safety") else []),
        ("Guidance", [_label(label) for label in data.get("labels") or ()]),
        ("Time", [f"{minutes} minutes; with extra time {-(-minutes * _EXTRA_TIME // 4)} minutes"]),
    ]
    made = [[el("dt", name), el("dd", [el("div", line) for line in lines])] for name, lines in rows if lines]
    heading = el("h2", "Notes for the lesson", id="notes")
    return el("section", heading, el("dl", made, cls="facts"), aria_labelledby="notes")


def _origin(row: Mapping[str, Any]) -> str:
    return f"lesson {row['from_lesson']}" if row.get("from_lesson") else "earlier level"


def _label(label: Mapping[str, Any]) -> Html:
    return join([clean(label["category"]).replace("_", " "), ": ", inline(label["quotation"])])


def _card(card: Mapping[str, Any], place: int, lesson: LessonView) -> Html:
    heading = el("h2", inline(card["title"]), id=f"a{place}")
    answers = [_question(question) for question in lesson.questions_of(card)]
    rubric = _rubric(card.get("rubric") or ())
    return el(
        "section",
        eyebrow(card, lesson),
        heading,
        answers,
        rubric,
        cls=kind_of(card, lesson)[0],
        aria_labelledby=f"a{place}",
    )


def _rubric(bands: Sequence[Mapping[str, Any]]) -> Html | None:
    if not bands:
        return None
    rows = [tables.row(f"{band['from_marks']} or more", inline(band["means"])) for band in bands]
    return tables.table("What a score means", ("Marks", "What to do next"), [el("tbody", rows)])


def _question(question: Question) -> Html:
    item = question.item
    answer = item["answer"]
    chosen = answer["kind"] == "mcq"
    parts = answer.get("parts") or ()
    return el(
        "div",
        el("h3", f"Question {question.number}", id=question.anchor),
        blocks(item["stem"]),
        options(answer, key=int(answer["key"])) if chosen else None,
        [_part(part) for part in parts],
        None if parts else el("p", "Answer: ", _answer(answer), cls="result"),
        working(item["working"]),
        _mark_table(question),
        el("p", el("strong", "Follow-through: "), inline(item["follow_through"]))
        if item.get("follow_through")
        else None,
        _list("Other valid methods", item.get("alternatives")),
        el("p", el("strong", "Feedback: "), inline(item["feedback"])) if item.get("feedback") else None,
        _wrong_answers(question),
        el("p", SENTENCES[verified(answer)], cls="muted"),
        cls="answer",
    )


def _part(part: Mapping[str, Any]) -> list[Html | None]:
    answer = part["answer"]
    return [
        el("p", el("strong", f"{part['label']} "), inline(part["prompt"])),
        options(answer, key=int(answer["key"])) if answer["kind"] == "mcq" else None,
        el("p", f"Answer {part['label']}: ", _answer(answer), cls="result"),
    ]


def _answer(answer: Mapping[str, Any]) -> Html:
    if answer["kind"] == "mcq":
        return join([f"{letter(int(answer['key']))}, ", inline(answer["shown"])])
    return inline(answer["shown"])


def _list(name: str, lines: Sequence[str] | None) -> list[Html]:
    if not lines:
        return []
    if len(lines) == 1:
        return [el("p", el("strong", f"{name}: "), inline(lines[0]))]
    return [el("p", el("strong", f"{name}:")), el("ul", [el("li", inline(line)) for line in lines])]


def _mark_table(question: Question) -> Html | None:
    item = question.item
    parts = item["answer"].get("parts") or ()
    groups = [(part["label"], part["scheme"]) for part in parts] or [("", item.get("scheme") or ())]
    if not any(scheme for _, scheme in groups):
        return None
    bodies = []
    for label, scheme in groups:
        rows = [tables.row(inline(line["illustration"]), inline(line["generic"]), 1, right=2) for line in scheme]
        bodies.append(el("tbody", tables.group_row(label, len(_MARKS)) if label else None, rows))
    total = sum(len(scheme) for _, scheme in groups)
    foot = el("tr", el("th", "Total", scope="row", colspan=2), el("td", total, cls="r"))
    caption = f"Question {question.number}, {marks(total)}"
    return tables.table(caption, _MARKS, bodies, foot=foot, right=2)


def _wrong_answers(question: Question) -> list[Html]:
    answer = question.item["answer"]
    pairs = [("", answer)] if answer["kind"] != "structured" else [(p["label"], p["answer"]) for p in answer["parts"]]
    rows = [row for label, one in pairs for row in _wrong_rows(label, one)]
    lists = [made for label, one in pairs for made in _words_lists(label, one)]
    if not rows:
        return lists
    head = ("Wrong answer", "What it shows")
    caption = f"Wrong answers to question {question.number} and what they show"
    return [*lists, tables.table(caption, head, [el("tbody", rows)])]


def _wrong_rows(label: str, answer: Mapping[str, Any]) -> Iterator[Html]:
    before = f"{label} " if label else ""
    if answer["kind"] == "mcq":
        for place, option in enumerate(answer["options"]):
            if place != int(answer["key"]):
                yield tables.row(join([f"{before}{letter(place)}: ", inline(option["text"])]), inline(option["why"]))
    for wrong in answer.get("wrong") or ():
        value = join([before, _with_unit(wrong["value"], answer.get("unit", ""))])
        yield tables.row(value, inline(wrong.get("shows") or "a slip"))


def _with_unit(value: str, unit: str) -> Html:
    if unit == "£":
        return join(["£", shown(value)])
    between = "" if unit in ("°", "%", "") else "\u202f"
    return join([shown(value), between, inline(unit)])


def _words_lists(label: str, answer: Mapping[str, Any]) -> Iterator[Html]:
    """What a written answer may say, must say and must not say."""
    after = f" {label}" if label else ""
    for key, name in (("accepted", "Also accept"), ("must_have", "Must have"), ("reject", "Do not accept")):
        yield from _list(f"{name}{after}", [line for line in answer.get(key) or () if line != answer["shown"]])
