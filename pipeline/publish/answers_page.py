"""Answers for the teacher: answer, working, mark scheme, what wrong answers show, who checked it; and for reviewers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.publish.figures import group_row, row, table
from pipeline.publish.html import Html, clean, count, el, join, section
from pipeline.publish.lesson_page import card_section, letter, options, working
from pipeline.publish.page import Page, link
from pipeline.publish.prose import blocks, calculated, inline
from pipeline.publish.view import NOBODY, PARTLY, SENTENCES, CourseView, LessonView, NumberedQuestion, counts

_MARKS = ("Expected answer", "Give the mark for", "Mark")
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
    rows = []
    for lesson in view.lessons:
        words = join([f"Answers to {lesson.type.lower()} {lesson.order}: ", inline(lesson.title)])
        rows.append(el("li", el("a", words, href=f"{lesson.file}.html")))
    body = [
        el("h1", "Answers and mark schemes"),
        el("p", "For teachers. Pupils' pages hold no answers.", cls="lede"),
        el("ul", rows, cls="lessons") if rows else el("p", "There is no lesson yet."),
    ]
    return Page("answers/index.html", "Answers", join(body), hidden=True)


def build(view: CourseView, lesson: LessonView) -> Page:
    """Return answers/NN-slug.html."""
    path = f"answers/{lesson.file}.html"
    total = sum(int(question.item["marks"]) for question in lesson.questions)
    back = el("a", "Open this lesson as pupils see it", href=link(path, f"lessons/{lesson.file}.html"))
    asked = [card for card in lesson.cards if card.get("items")]
    said = f"{count(len(lesson.questions), 'question')}, {count(total, 'mark')}. "
    body = join(
        [
            el("p", f"{view.title} · {lesson.type} {lesson.order} of {view.total} · for the teacher", cls="code"),
            el("h1", "Answers: ", inline(lesson.title)),
            el("p", said, back, ".", cls="lede"),
            _notes(lesson),
            [_card(card, place, lesson) for place, card in enumerate(asked, 1)],
            _review(view, lesson),
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
    data = lesson.lesson
    notes = data.get("teacher_notes") or {}
    minutes = int(data["minutes"])
    prior = [
        join([inline(known["text"]), f" (lesson {known['from_lesson']})" if known.get("from_lesson") else
              " (earlier level)"])
        for known in data.get("prior_knowledge") or ()
    ]  # fmt: skip
    labels = [
        join([clean(label["category"]).replace("_", " "), ": ", inline(label["quotation"])])
        for label in data.get("labels") or ()
    ]
    watch = [notes.get("watch_for"), *(card.get("watch_for") for card in lesson.cards)]
    rows: list[tuple[str, Sequence[object]]] = [
        ("Pupils will know", [inline(point["text"]) for point in data.get("key_learning_points") or ()]),
        ("Needed to start", prior),
        ("Resources", [inline(name) for name in notes.get("resources") or ()]),
        ("Watch for", [inline(words) for words in watch if words]),
        *(
            (name, [inline(notes[key])] if notes.get(key) else [])
            for name, key in (("If they struggle", "if_they_struggle"), ("If they fly", "if_they_fly"),
                              ("Safety", "safety"))
        ),
        ("Guidance", labels),
        ("Time", [f"{minutes} minutes; with extra time {-(-minutes * _EXTRA_TIME // 4)} minutes"]),
    ]  # fmt: skip
    made = [[el("dt", name), el("dd", [el("div", line) for line in lines])] for name, lines in rows if lines]
    return section("notes", "Notes for the lesson", el("dl", made, cls="facts"))


def _card(card: Mapping[str, Any], place: int, lesson: LessonView) -> Html:
    bands = [row(f"{band['from_marks']} or more", inline(band["means"])) for band in card.get("rubric") or ()]
    rubric = table("What a score means", ("Marks", "What to do next"), [el("tbody", bands)]) if bands else None
    answers = [_question(question) for question in lesson.questions_of(card)]
    return card_section(card, lesson, f"a{place}", answers, rubric)


def _question(question: NumberedQuestion) -> Html:
    item = question.item
    answer = item["answer"]
    parts = answer.get("parts") or ()
    return el(
        "div",
        el("h3", f"Question {question.number}", id=question.anchor),
        blocks(item["stem"]),
        _key(answer),
        [_part(part) for part in parts],
        None if parts else el("p", "Answer: ", _answer(answer), cls="result"),
        working(item["working"]),
        _mark_table(question),
        _labelled("Follow-through", item.get("follow_through")),
        _list("Other valid methods", item.get("alternatives")),
        _labelled("Feedback", item.get("feedback")),
        _wrong_answers(question),
        el("p", SENTENCES[question.verified], cls="muted"),
        cls="answer",
    )


def _labelled(name: str, words: str | None) -> Html | None:
    return el("p", el("strong", f"{name}: "), inline(words)) if words else None


def _key(answer: Mapping[str, Any]) -> Html | None:
    return options(answer, key=int(answer["key"])) if answer["kind"] == "mcq" else None


def _part(part: Mapping[str, Any]) -> list[Html | None]:
    prompt = el("p", el("strong", f"{part['label']} "), inline(part["prompt"]))
    said = el("p", f"Answer {part['label']}: ", _answer(part["answer"]), cls="result")
    return [prompt, _key(part["answer"]), said]


def _answer(answer: Mapping[str, Any]) -> Html:
    if answer["kind"] == "mcq":
        return join([f"{letter(int(answer['key']))}, ", inline(answer["shown"])])
    return inline(answer["shown"])


def _list(name: str, lines: Sequence[str] | None) -> list[Html | None]:
    if not lines or len(lines) == 1:
        return [_labelled(name, line) for line in lines or ()]
    return [el("p", el("strong", f"{name}:")), el("ul", [el("li", inline(line)) for line in lines])]


def _mark_table(question: NumberedQuestion) -> Html | None:
    item = question.item
    parts = item["answer"].get("parts") or ()
    groups = [(part["label"], part["scheme"]) for part in parts] or [("", item.get("scheme") or ())]
    total = sum(len(scheme) for _, scheme in groups)
    if not total:
        return None
    bodies = []
    for label, scheme in groups:
        rows = [row(inline(line["illustration"]), inline(line["generic"]), 1, right=2) for line in scheme]
        bodies.append(el("tbody", group_row(label, len(_MARKS)) if label else None, rows))
    foot = el("tr", el("th", "Total", scope="row", colspan=2), el("td", total, cls="r"))
    return table(f"Question {question.number}, {count(total, 'mark')}", _MARKS, bodies, foot=foot, right=2)


def _wrong_answers(question: NumberedQuestion) -> list[Html | None]:
    answer = question.item["answer"]
    pairs = [("", answer)] if answer["kind"] != "structured" else [(p["label"], p["answer"]) for p in answer["parts"]]
    made: list[Html | None] = []
    for label, one in pairs:
        # What a written answer may say, must say and must not say.
        after = f" {label}" if label else ""
        for key, name in (("accepted", "Also accept"), ("must_have", "Must have"), ("reject", "Do not accept")):
            made += _list(f"{name}{after}", [line for line in one.get(key) or () if line != one["shown"]])
    rows = [made for label, one in pairs for made in _wrong_rows(f"{label} " if label else "", one)]
    caption = f"Wrong answers to question {question.number} and what they show"
    return [*made, table(caption, ("Wrong answer", "What it shows"), [el("tbody", rows)])] if rows else made


def _wrong_rows(before: str, answer: Mapping[str, Any]) -> Iterator[Html]:
    if answer["kind"] == "mcq":
        for place, option in enumerate(answer["options"]):
            if place != int(answer["key"]):
                yield row(join([f"{before}{letter(place)}: ", inline(option["text"])]), inline(option["why"]))
    for wrong in answer.get("wrong") or ():
        value = join([before, _with_unit(wrong["value"], answer.get("unit", ""))])
        yield row(value, inline(wrong.get("shows") or "a slip"))


def _with_unit(value: str, unit: str) -> Html:
    if unit == "£":
        return join(["£", calculated(value)])
    between = "" if unit in ("°", "%", "") else "\u202f"
    return join([calculated(value), between, inline(unit)])


# --- for the reviewer: where each point is taught and asked, warnings, the critic's scores ----------


def _review(view: CourseView, lesson: LessonView) -> Html:
    found = counts([lesson])
    human = found[NOBODY] + found[PARTLY]
    total = sum(found.values())
    first = f"{total - human} of {total} answers were checked by code; {human} need a person."
    read = (
        "A critic model scored this lesson; no teacher has read it."
        if lesson.critic
        else "Nobody has read this lesson."
    )
    rows = [el("li", inline(line)) for line in lesson.warnings]
    warnings = [el("h3", "Warnings of the checks"), el("ul", rows)] if rows else None
    sentence = el("p", first, " ", read)
    return section("review", "For the reviewer", sentence, warnings, _points(view, lesson), _scores(lesson))


def _points(view: CourseView, lesson: LessonView) -> Html | None:
    numbers = {question.item["id"]: question.number for question in lesson.questions}
    titles = {card["id"]: card["title"] for card in lesson.cards}
    rows = []
    for point in lesson.lesson.get("points") or ():
        asked = ", ".join(map(str, sorted(numbers[name] for name in point["items"] if name in numbers))) or "–"
        taught = inline(titles.get(point["card"], point["card"]))
        rows.append(row(inline(view.point_names.get(point["ref"], point["ref"])), taught, asked))
    head = ("Point of the course", "Taught in", "Asked in")
    return table("Where each point is taught and asked", head, [el("tbody", rows)]) if rows else None


def _scores(lesson: LessonView) -> Html | None:
    rows = []
    for judgement in (lesson.critic or {}).get("judgements") or ():
        name = CRITERIA.get(judgement["criterion"], clean(judgement["criterion"]))
        evidence = [
            el("span", join([clean(part["id"]), ": “", inline(part["quotation"]), "”"]), cls="sub")
            for part in judgement.get("evidence") or ()
        ]
        score = "–" if judgement.get("missing") else str(judgement["score"])
        rows.append(row(name, score, join([inline(judgement["finding"]), evidence])))
    caption = f"What the critic scored: fidelity {lesson.score('fidelity')}, quality {lesson.score('quality')}"
    return table(caption, ("Criterion", "Of 5", "Finding and evidence"), [el("tbody", rows)]) if rows else None
