"""A lesson as a pupil reads it, a class sees it and a printer prints it; never an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.publish.figures import figure
from pipeline.publish.html import Html, clean, el, join
from pipeline.publish.page import Page, link
from pipeline.publish.prose import Plain, Terms, blocks, inline
from pipeline.publish.questions import calculator_rule, question, working
from pipeline.publish.view import CALCULATOR, KINDS, CourseView, LessonView


def build(view: CourseView, lesson: LessonView) -> Page:
    """lessons/NN-slug.html."""
    path = f"lessons/{lesson.file}.html"
    text = _Text(lesson)
    sections = [text.section(card, place) for place, card in enumerate(lesson.cards, 1)]
    main = el("div", text.words(), sections, _pager(view, lesson, path), cls="main")
    body = join([_head(view, lesson), el("div", _rail(view, lesson, path), main, cls="cols")])
    return Page(path, lesson.title, body, foot=f"{view.title}, lesson {lesson.order}: {lesson.title}")


def _head(view: CourseView, lesson: LessonView) -> Html:
    block = clean(lesson.entry.get("block", ""))
    place = f"{lesson.type} {lesson.order} of {view.total}" + (f" · {block}" if block else "")
    sheet = [el("span", "Name"), el("span", "Date")]
    return el(
        "div",
        el("p", el("span", f"{view.title} · ", cls="paper"), place, cls="code"),
        el("h1", inline(lesson.title)),
        el("p", inline(lesson.lesson["outcome"]), cls="lede"),
        el("p", sheet, cls="sheet"),
    )


def kind_of(card: Mapping[str, Any], lesson: LessonView) -> tuple[str, str]:
    """Class and word of a card."""
    if card["kind"] == "assessment" and lesson.lesson.get("lesson_type") == "mock_exam":
        return "exit", "Mock exam"
    return KINDS[card["kind"]]


def eyebrow(card: Mapping[str, Any], lesson: LessonView) -> Html:
    """The line over a section's heading: kind and minutes."""
    return el("p", el("b", kind_of(card, lesson)[1]), el("span", f"{card['minutes']} min"), cls="kind")


class _Text:
    """The lesson's content; keeps which keywords are already linked."""

    def __init__(self, lesson: LessonView) -> None:
        self._lesson = lesson
        self._keywords = list(lesson.lesson.get("keywords") or ())
        self._plain: Plain = Terms((clean(word["term"]), f"w{place}") for place, word in enumerate(self._keywords, 1))
        self._beliefs = {belief["id"]: belief for belief in lesson.lesson.get("misconceptions") or ()}
        met = {name for card in lesson.cards for name in card.get("misconceptions") or ()}
        #: Misconceptions that no explanation claims stand after the first one that can hold them.
        self._homeless = [name for name in self._beliefs if name not in met]

    def words(self) -> Html | None:
        """The keywords with their meanings."""
        if not self._keywords:
            return None
        rows = []
        for place, word in enumerate(self._keywords, 1):
            gaelic = el("span", clean(word["gaelic"]), lang="gd") if word.get("gaelic") else None
            rows += [el("dt", inline(word["term"]), gaelic, id=f"w{place}"), el("dd", inline(word["definition"]))]
        heading = el("h2", "Words you need", id="words")
        return el("section", heading, el("dl", rows), cls="words", aria_labelledby="words")

    def section(self, card: Mapping[str, Any], place: int) -> Html:
        """One card."""
        bodies = {"explainer": self._explainer, "modelling": self._modelling}
        body = bodies.get(card["kind"], self._questions)(card, place)
        heading = el("h2", inline(card["title"]), id=f"s{place}")
        return el(
            "section",
            eyebrow(card, self._lesson),
            heading,
            body,
            cls=kind_of(card, self._lesson)[0],
            aria_labelledby=f"s{place}",
        )

    def _explainer(self, card: Mapping[str, Any], place: int) -> list[object]:
        names = [*(card.get("misconceptions") or ()), *self._homeless]
        self._homeless = []
        return [
            blocks(card["text"], self._plain),
            [figure(data, f"s{place}-f{number}") for number, data in enumerate(card.get("figures") or (), 1)],
            el("h3", "Not an example") if card.get("non_example") else None,
            blocks(card["non_example"]) if card.get("non_example") else None,
            el(
                "details",
                el("summary", "Read this part in plainer words"),
                el("div", blocks(card["plain"]), cls="plain"),
            ),
            self._watch([self._beliefs[name] for name in names if name in self._beliefs]),
        ]

    def _watch(self, beliefs: Sequence[Mapping[str, Any]]) -> Html | None:
        if not beliefs:
            return None
        rows = []
        for belief in beliefs:
            rows += [el("dt", "✗ A common mistake"), el("dd", inline(belief["belief"]))]
            rows += [el("dt", "✓ What is true"), el("dd", inline(belief["correction"]))]
        return el("div", el("h3", "Watch out"), el("dl", rows), cls="watch")

    def _modelling(self, card: Mapping[str, Any], place: int) -> list[object]:
        several = len(card["examples"]) > 1
        out: list[object] = []
        for number, example in enumerate(card["examples"], 1):
            out += [
                el("h3", f"Example {number}" if several else "Example"),
                blocks(example["problem"]),
                working(example["steps"]),
                el("p", "Answer: ", inline(example["answer"]), cls="result"),
            ]
        return out

    def _questions(self, card: Mapping[str, Any], place: int) -> list[object]:
        asked = self._lesson.questions_of(card)
        rules = sorted({calculator_rule(one.item) for one in asked})
        mixed = len(rules) > 1
        sometimes = self._lesson.lesson.get("calculator") == "mixed"
        return [
            el("div", blocks(card["instructions"]), cls="lead") if card.get("instructions") else None,
            el("p", rules[0], cls="muted lead") if sometimes and not mixed else None,
            el("ol", [question(one, mixed=mixed) for one in asked], cls="questions"),
        ]


def _rail(view: CourseView, lesson: LessonView, path: str) -> Html:
    data = lesson.lesson
    outcomes = [view.outcome_names.get(ref, ref) for ref in data["outcome_refs"]]
    few = 3
    more = [f"and {len(outcomes) - few} more"] if len(outcomes) > few + 1 else []
    named = [el("div", inline(name)) for name in (outcomes[:few] + more if more else outcomes)]
    facts = [
        el("dt", "Time"), el("dd", f"{data['minutes']} minutes"),
        el("dt", "Outcome" if len(outcomes) == 1 else "Outcomes"), el("dd", named),
        el("dt", "Calculator"), el("dd", CALCULATOR.get(data.get("calculator", ""), "No")),
        _guidance(data),
    ]  # fmt: skip
    links = [
        el("li", el("a", _said(kind_of(card, lesson)[1], card["title"]), href=f"#s{place}"))
        for place, card in enumerate(lesson.cards, 1)
    ]
    contents = el("nav", el("h2", "On this page", id="contents"), el("ul", links), aria_labelledby="contents")
    answers = el("a", "Answers and mark scheme", href=link(path, f"answers/{lesson.file}.html"))
    return el(
        "aside",
        el("dl", facts, cls="facts"),
        contents,
        el("p", answers, cls="go"),
        cls="rail",
        aria_label="This lesson",
    )


def _said(kind: str, title: str) -> Html:
    """Kind and title of a section in one link, without saying the kind twice."""
    return inline(title) if title.lower().startswith(kind.lower()) else join([f"{kind}: ", inline(title)])


def _guidance(data: Mapping[str, Any]) -> list[Html]:
    labels = [clean(label["category"]).replace("_", " ") for label in data.get("labels") or ()]
    if (data.get("teacher_notes") or {}).get("safety") and "practical work" not in labels:
        labels.append("practical work")
    if not labels:
        return []
    return [
        el("dt", "For the teacher"),
        el("dd", f"{', '.join(dict.fromkeys(labels))}: see the notes with the answers"),
    ]


def _pager(view: CourseView, lesson: LessonView, path: str) -> Html:
    before, after = view.neighbour(lesson, -1), view.neighbour(lesson, 1)
    if before:
        back = el("a", "Back: ", inline(before.title), href=link(path, f"lessons/{before.file}.html"))
    else:
        back = el("a", "Back: all topics", href=link(path, "index.html"))
    forward: Html | None = None
    if after:
        forward = el("a", "Next: ", inline(after.title), href=link(path, f"lessons/{after.file}.html"))
    elif before:
        forward = el("a", "All topics", href=link(path, "index.html"))
    return el("nav", back, forward, cls="pager", aria_label="Previous and next lesson")
