"""Answers for the teacher: answer, working, mark scheme, what wrong answers show, who checked it; and for reviewers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline.html import Html, clean, count, el, join, section
from pipeline.maths.calculations import calculation_tex
from pipeline.maths.evaluation import EvaluationError
from pipeline.publish.figures import group_row, row, table
from pipeline.publish.lesson_page import card_section, figures, options, result, working
from pipeline.publish.page import Page, downloads, link
from pipeline.publish.prose import blocks, inline
from pipeline.publish.questions import COMPUTED, SENTENCES, SOLVED, ShownQuestion
from pipeline.publish.view import CourseView, LessonView, counts

#: What written answers may, must and must not say, as pages name it.
WORDS = (("accept", "Also accept"), ("must", "Must have"), ("reject", "Do not accept"))
_LESSON = re.compile(r"lesson \d+")
#: What a pupil with extra time gets, in quarters.
_EXTRA_TIME = 5
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


def index(view: CourseView) -> Page:
    """Return answers/index.html."""
    path, rows = "answers/index.html", []
    for lesson in view.lessons:
        words = join([f"Answers to {lesson.type.lower()} {lesson.order}: ", inline(lesson.title)])
        rows.append(el("li", el("a", words, href=f"{lesson.file}.html")))
    body = [
        el("h1", view.region.said("Answers and mark schemes")),
        el("p", view.region.said("For teachers. Pupils' pages hold no answers."), cls="lede"),
        el("ul", rows, cls="lessons") if rows else el("p", "There is no lesson yet."),
        downloads(view, path, 0, for_teacher=True),
    ]
    return Page(path, "Answers", join(body), hidden=True)


def build(view: CourseView, lesson: LessonView, *, alone: bool = False) -> Page:
    """Return answers/NN-slug.html; `alone` without the link to the lesson, which is not beside it."""
    path = f"answers/{lesson.file}.html"
    worth = view.region.said(count(sum(question.marks for question in lesson.questions), "mark"))
    back = el(
        "a", view.region.said("Open this lesson as pupils see it"), href=link(path, f"lessons/{lesson.file}.html")
    )
    asked = [card for card in lesson.cards if card.get("items")]
    said = f"{count(len(lesson.questions), 'question')}, {worth}."
    body = join(
        [
            el("p", f"{view.title} · {lesson.type} {lesson.order} of {view.total} · for the teacher", cls="code"),
            el("h1", "Answers: ", inline(lesson.title)),
            el("p", said, None if alone else [" ", back, "."], cls="lede"),
            _notes(lesson),
            [_card(card, place, lesson) for place, card in enumerate(asked, 1)],
            _review(view, lesson),
            downloads(view, path, lesson.order, for_teacher=True),
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
    """Return what the teacher needs before the lesson."""
    data, minutes = lesson.lesson, lesson.minutes
    labels = [
        join([clean(kind).replace("_", " "), ": ", inline(words)])
        for kind, _, words in (label.partition(": ") for label in data.get("labels") or ())
    ]
    watch = [*lesson.notes("watch_for"), *(card.get("watch_for") for card in lesson.cards)]
    rows: list[tuple[str, Sequence[object]]] = [
        (lesson.region.said("Pupils will know"), [inline(point) for point in data["key_points"]]),
        ("Needed to start", [inline(_prior(text)) for text in data["prior"]]),
        ("Resources", [inline(text) for text in lesson.notes("resources")]),
        ("Watch for", [inline(words) for words in watch if words]),
        ("If they struggle", [inline(text) for text in lesson.notes("if_they_struggle")]),
        ("If they fly", [inline(text) for text in lesson.notes("if_they_fly")]),
        ("Safety", [inline(text) for text in lesson.notes("safety")]),
        ("Guidance", labels),
        ("Time", [f"{minutes} minutes; with extra time {-(-minutes * _EXTRA_TIME // 4)} minutes"]),
    ]
    made = [[el("dt", name), el("dd", [el("div", line) for line in lines])] for name, lines in rows if lines]
    return section("notes", "Notes for the lesson", el("dl", made, cls="facts"))


def _prior(text: str) -> str:
    """Return what is needed to start and where it was learned: "You can add. (lesson 3)"."""
    where, _, known = text.partition(": ")
    return f"{known} ({where})" if _LESSON.fullmatch(where) else f"{text} (earlier level)"


def _card(card: Mapping[str, Any], place: int, lesson: LessonView) -> Html:
    bands = [text.partition(": ") for text in card.get("rubric") or ()]
    rows = [row(f"{marks} or more", inline(means)) for marks, _, means in bands]
    heads = (lesson.region.said("Marks"), "What to do next")
    rubric = table("What a score means", heads, [el("tbody", rows)]) if rows else None
    answers = [_question(question) for question in lesson.questions_of(card)]
    return card_section(card, lesson, f"a{place}", answers, rubric)


def _question(question: ShownQuestion) -> Html:
    item, key = question.item, question.key
    # Data in a figure are part of the question.
    parts = [
        [
            el("p", el("strong", f"{part.label} "), inline(part.ask)),
            result(f"Answer {part.label}: ", "", part.answer),
        ]
        for part in question.parts
    ]
    letter = f"{key.letter}, " if key else ""
    return el(
        "div",
        el("h3", f"Question {question.number}", id=question.anchor),
        blocks(question.ask),
        figures(item, question.anchor),
        options(question.options, marked=True) if key else None,
        parts or result("Answer: ", letter, question.answer),
        working(item["working"]),
        _mark_table(question),
        _list("Follow-through", question.of("follow_through")),
        _list("Other valid methods", question.of("alternative")),
        _list("Feedback", [item["feedback"]]),
        [_list(name, question.of(kind)) for kind, name in WORDS],
        _wrong_answers(question),
        el("p", " ".join(filter(None, (SENTENCES[question.checked], SOLVED.get(question.solved)))), cls="muted"),
        cls="answer",
    )


def _list(name: str, lines: Sequence[str]) -> list[Html]:
    if not lines:
        return []
    if len(lines) == 1:
        return [el("p", el("strong", f"{name}: "), inline(lines[0]))]
    return [el("p", el("strong", f"{name}:")), el("ul", [el("li", inline(line)) for line in lines])]


def _mark_table(question: ShownQuestion) -> Html:
    heads = mark_heads(question)
    wide = len(heads) - 1
    bodies = []
    for label, marks in groupby(question.scheme, key=lambda mark: mark[0]):
        rows = [_mark(earns, why, wide) for _, earns, why in marks]
        bodies.append(el("tbody", group_row(label, len(heads)) if label else None, rows))
    foot = el("tr", el("th", "Total", scope="row", colspan=wide), el("td", question.marks, cls="r"))
    caption = f"Question {question.number}, {question.worth}"
    return table(caption, heads, bodies, foot=foot, right=wide)


def mark_heads(question: ShownQuestion) -> list[str]:
    """Return the heads of a mark scheme; answers in words, which stand above, have no column of what is expected."""
    heads = [question.region.said(name) for name in ("Expected answer", "Give the mark for", "Mark")]
    return heads if any(earns for _, earns, _ in question.scheme) else heads[1:]


def _mark(earns: str, why: str, wide: int) -> Html:
    """Return the row of a mark; one that names nothing that is expected is as wide as the table."""
    if earns:
        return row(inline(earns), inline(why), 1, right=2)
    return el("tr", el("th", inline(why), scope="row", colspan=wide), el("td", 1, cls="r"))


def _wrong_answers(question: ShownQuestion) -> Html | None:
    rows = [
        row(join([f"{letter}: " if letter else None, inline(text)]), inline(shows))
        for letter, text, shows in wrong_answers(question)
    ]
    caption = f"Wrong answers to question {question.number} and what they show"
    return table(caption, ("Wrong answer", "What it shows"), [el("tbody", rows)]) if rows else None


def wrong_answers(question: ShownQuestion) -> Iterator[tuple[str, str, str]]:
    """Yield each wrong answer: the letter of its option, else ""; the answer; what it shows."""
    for option in question.options:
        if not option.right:
            yield option.letter, option.text, option.why
    for value, method, error in question.wrong():
        yield "", value or _calculation(method), error


def _calculation(method: str) -> str:
    """Return how a pupil would write a wrong calculation whose value is not what is wrong with it."""
    try:
        return rf"\({calculation_tex(method)}\)"
    except EvaluationError:
        # Lessons of earlier versions.
        return method


# --- for the reviewer: where each point is taught and asked, warnings, the critic's scores ----------


def _review(view: CourseView, lesson: LessonView) -> Html:
    found = counts([lesson])
    total = sum(found.values())
    first = f"{found[COMPUTED]} of {total} answers were checked by code; {total - found[COMPUTED]} need a person."
    rows = [el("li", inline(line)) for line in lesson.warnings]
    warnings = [el("h3", "Warnings of the checks"), el("ul", rows)] if rows else None
    sentence = el("p", first, " ", solved_line([lesson]), " ", _read(lesson))
    return section("review", "For the reviewer", sentence, warnings, _points(view, lesson), _scores(lesson))


def _read(lesson: LessonView) -> str:
    """Return who has read a lesson, in a sentence."""
    if lesson.readers:
        return f"{'Edited and reviewed' if lesson.review.get('edited') else 'Reviewed'} by {lesson.readers}."
    scored = "a critic model scored this lesson, no teacher has read it"
    return f"Not reviewed: {scored if lesson.critic else 'nobody has read this lesson'}."


def solved_line(lessons: Sequence[LessonView]) -> str:
    """Return what a second solver found, in a sentence."""
    found = [question.solved for lesson in lessons for question in lesson.questions if question.solved]
    if not any("blind" in lesson.checks for lesson in lessons):
        return "Left out: the blind solve. No second solver answered the questions from their text alone."
    agreed = found.count("agreed")
    return f"A second solver, who saw the questions only, answered {len(found)} and agreed in {agreed}."


def _points(view: CourseView, lesson: LessonView) -> Html | None:
    rows = []
    for number, ref in enumerate(lesson.entry.get("points") or (), 1):
        taught = [inline(card["title"]) for card in lesson.cards if number in card.get("teaches", ())]
        asked = [str(question.number) for question in lesson.questions if f"point {number}" in question.item["tests"]]
        name = inline(view.point_names.get(ref, ref))
        rows.append(row(name, join(taught, "; ") or "–", ", ".join(asked) or "–"))
    head = ("Point of the course", "Taught in", "Asked in")
    return table("Where each point is taught and asked", head, [el("tbody", rows)]) if rows else None


def _scores(lesson: LessonView) -> Html | None:
    rows = []
    for judgement in (lesson.critic or {}).get("judgements") or ():
        name = lesson.region.said(CRITERIA.get(judgement["criterion"], clean(judgement["criterion"])))
        evidence = [
            el("span", clean(part.get("path") or part["id"]), ": “", inline(part["quotation"]), "”", cls="sub")
            for part in judgement.get("evidence") or ()
        ]
        score = "–" if judgement.get("missing") else str(judgement["score"])
        rows.append(row(name, score, join([inline(judgement["finding"]), evidence])))
    caption = f"What the critic scored: fidelity {lesson.score('fidelity')}, quality {lesson.score('quality')}"
    return table(caption, ("Criterion", "Of 5", "Finding and evidence"), [el("tbody", rows)]) if rows else None
