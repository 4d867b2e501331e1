"""A lesson as a pupil reads it, a class sees it and a printer prints it; never an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.html import Html, clean, el, join, section
from pipeline.publish.figures import figure, squared_paper
from pipeline.publish.page import INDEX, Page, downloads, link
from pipeline.publish.prose import Plain, Terms, blocks, inline
from pipeline.publish.questions import LEAST_ROOM, ShownOption, ShownPart, ShownQuestion, divided, is_drawn, room
from pipeline.publish.view import CALCULATOR, KINDS, CourseView, LessonView

#: Outcomes named beside a lesson where it has more than one more.
_FEW = 3


def build(view: CourseView, lesson: LessonView) -> Page:
    """Return lessons/NN-slug.html."""
    path = f"lessons/{lesson.file}.html"
    text = LessonText(view, lesson)
    sections = [text.section(card, place) for place, card in enumerate(lesson.cards, 1)]
    main = el(
        "div", text.sheets() if lesson.mock_exam else text.words(), sections,
        downloads(view, path, lesson.order, for_teacher=False), _pager(view, lesson, path), cls="main",
    )  # fmt: skip
    body = join([_head(view, lesson), el("div", _rail(view, lesson, path), main, cls="cols")])
    return Page(path, lesson.title, body, foot=f"{view.title}, lesson {lesson.order}: {lesson.title}")


def _head(view: CourseView, lesson: LessonView) -> Html:
    block = clean(lesson.entry.get("block", ""))
    place = f"{lesson.type} {lesson.order} of {view.total}" + (f" · {block}" if block else "")
    return el(
        "div",
        el("p", el("span", f"{view.title} · ", cls="paper"), place, cls="code"),
        el("h1", inline(lesson.title)),
        el("p", inline(lesson.lesson["outcome"]), cls="lede"),
        el("p", el("span", "Name"), el("span", "Date"), cls="sheet"),
    )


def kind_of(card: Mapping[str, Any], lesson: LessonView) -> tuple[str, str]:
    """Return class and word of a card."""
    if card["kind"] == "assessment" and lesson.mock_exam:
        return "exit", lesson.type
    return KINDS[card["kind"]]


def card_section(card: Mapping[str, Any], lesson: LessonView, anchor: str, *content: object) -> Html:
    """Return a card under its kind, minutes and title."""
    css, kind = kind_of(card, lesson)
    eyebrow = el("p", el("b", kind), el("span", f"{card['minutes']} min"), cls="kind")
    heading = el("h2", inline(card["title"]), id=anchor)
    return el("section", eyebrow, heading, content, cls=css, aria_labelledby=anchor)


class LessonText:
    """The lesson's content; keeps which keywords are already linked."""

    def __init__(self, view: CourseView, lesson: LessonView) -> None:
        self._view = view
        self._lesson = lesson
        self._keywords = [] if lesson.mock_exam else [word.partition(": ") for word in lesson.lesson["keywords"]]
        self._plain: Plain = Terms((clean(term), f"w{place}") for place, (term, _, _) in enumerate(self._keywords, 1))
        self._beliefs = dict(enumerate(lesson.lesson["misconceptions"], 1))
        met = {number for card in lesson.cards for number in card.get("mistakes") or ()}
        #: Misconceptions that no explanation claims; the first one that can hold them gets them.
        self._homeless = [number for number in self._beliefs if number not in met]

    def words(self) -> Html | None:
        """Return the keywords with their meanings."""
        rows = [
            [el("dt", inline(term), id=f"w{place}"), el("dd", inline(meaning))]
            for place, (term, _, meaning) in enumerate(self._keywords, 1)
        ]
        return section("words", "Words you need", el("dl", rows), cls="words") if rows else None

    def sheets(self) -> list[Html]:
        """Return what a candidate is given with an exam paper, where the catalogue has it."""
        return [
            section(f"sheet{place}", sheet["title"], el("ul", [el("li", inline(line)) for line in sheet["lines"]]))
            for place, sheet in enumerate(self._view.assessment.get("sheets") or (), 1)
        ]

    def section(self, card: Mapping[str, Any], place: int) -> Html:
        """Return one card."""
        told = {"explainer": self._explainer, "modelling": self._modelling}.get(card["kind"])
        return card_section(card, self._lesson, f"s{place}", told(card, place) if told else self._questions(card))

    def _explainer(self, card: Mapping[str, Any], place: int) -> list[object]:
        numbers = [*card["mistakes"], *self._homeless]
        self._homeless = []
        plainer = el("summary", "Read this part in plainer words")
        return [
            blocks(card["text"], self._plain),
            figures(card, f"s{place}"),
            el("h3", "Not an example"),
            blocks(card["non_example"]),
            el("details", plainer, el("div", blocks(card["plain"]), cls="plain")),
            self._watch([self._beliefs[number] for number in numbers if number in self._beliefs]),
        ]

    def _watch(self, beliefs: Sequence[Mapping[str, Any]]) -> Html | None:
        rows = []
        for belief in beliefs:
            rows += [el("dt", "✗ A common mistake"), el("dd", inline(belief["belief"]))]
            rows += [el("dt", "✓ What is true"), el("dd", inline(belief["correction"]))]
        return el("div", el("h3", "Watch out"), el("dl", rows), cls="watch") if rows else None

    def _modelling(self, card: Mapping[str, Any], place: int) -> list[object]:
        several = len(card["examples"]) > 1
        return [
            [
                el("h3", f"Example {number}" if several else "Example"),
                blocks(example["ask"]),
                figures(example, f"s{place}-e{number}"),
                working(example["working"]),
                result("Answer: ", "", example["answer"]) if example.get("answer") else None,
            ]
            for number, example in enumerate(card["examples"], 1)
        ]

    def _questions(self, card: Mapping[str, Any]) -> list[object]:
        asked = self._lesson.questions_of(card)
        rules = sorted({rule for one in asked if (rule := calculator_rule(one))})
        mixed = len(rules) > 1
        said = rules[:1] if self._lesson.entry.get("calculator") in ("mixed", "exam_conditions") and not mixed else []
        provided = self._view.provided if self._lesson.mock_exam else None
        said += [f"You may use the {' and the '.join(map(clean, provided))}."] if provided else []
        return [
            el("div", blocks(card["instructions"]), cls="lead") if card.get("instructions") else None,
            el("p", " ".join(said), cls="muted lead") if said else None,
            el("ol", [question(one, mixed=mixed) for one in asked], cls="questions"),
        ]


def _rail(view: CourseView, lesson: LessonView, path: str) -> Html:
    outcomes = [view.outcome_names.get(ref, ref) for ref in lesson.outcome_refs]
    named = outcomes if len(outcomes) <= _FEW + 1 else [*outcomes[:_FEW], f"and {len(outcomes) - _FEW} more"]
    facts = [
        el("dt", "Time"), el("dd", f"{lesson.minutes} minutes"),
        el("dt", "Outcome" if len(outcomes) == 1 else "Outcomes"), el("dd", [el("div", inline(n)) for n in named]),
        [el("dt", "Calculator"), el("dd", CALCULATOR.get(lesson.entry.get("calculator", ""), "No"))]
        if lesson.calculators
        else None,
        _guidance(lesson),
    ]  # fmt: skip
    links = []
    for place, card in enumerate(lesson.cards, 1):
        kind, title = kind_of(card, lesson)[1], card["title"]
        # The kind is not said twice.
        said = inline(title) if title.lower().startswith(kind.lower()) else join([f"{kind}: ", inline(title)])
        links.append(el("li", el("a", said, href=f"#s{place}")))
    contents = el("nav", el("h2", "On this page", id="contents"), el("ul", links), aria_labelledby="contents")
    answers = el(
        "p",
        el("a", view.region.said("Answers and mark scheme"), href=link(path, f"answers/{lesson.file}.html")),
        cls="go",
    )
    return el("aside", el("dl", facts, cls="facts"), contents, answers, cls="rail", aria_label="This lesson")


def _guidance(lesson: LessonView) -> list[Html]:
    labels = [clean(label.partition(":")[0]).replace("_", " ") for label in lesson.lesson.get("labels") or ()]
    if lesson.notes("safety"):
        labels.append("practical work")
    if not labels:
        return []
    said = f"{', '.join(dict.fromkeys(labels))}: see the notes with the answers"
    return [el("dt", "For the teacher"), el("dd", said)]


def _pager(view: CourseView, lesson: LessonView, path: str) -> Html:
    before, after = view.neighbour(lesson, -1), view.neighbour(lesson, 1)

    def to(words: str, other: LessonView | None) -> Html:
        target = f"lessons/{other.file}.html" if other else INDEX
        return el("a", words, inline(other.title) if other else None, href=link(path, target))

    back = to("Back: ", before) if before else to("Back: all topics", None)
    forward = to("Next: ", after) if after else to("All topics", None) if before else None
    return el("nav", back, forward, cls="pager", aria_label="Previous and next lesson")


# --- a question: number, stem, marks, options or parts, room for the answer in print ----------------

#: Cards in which hints would spoil what is tested.
_WITHOUT_HINTS = frozenset({"assessment", "exit_ticket"})
#: A line of working of more characters may be wider than a phone.
_WIDE = 40


def question(asked: ShownQuestion, *, mixed: bool) -> Html:
    """Return the question as a list item; `mixed` where its neighbours differ in the use of the calculator."""
    body = [
        blocks(asked.ask),
        el("p", calculator_rule(asked), cls="muted") if mixed else None,
        figures(asked.item, asked.anchor),
        options(asked.options) if asked.options else None,
        el("ol", [_part(part) for part in asked.parts], cls="parts") if asked.parts else None,
        _hints(asked),
        None if asked.parts or asked.options else room_for(asked.marks, asked.ask),
    ]
    return el("li", _numbered(asked.number, body, asked.worth), id=asked.anchor, cls="q")


def _part(part: ShownPart) -> Html:
    return el("li", _numbered(part.label, [blocks(part.ask), room_for(part.marks, part.ask)], part.worth))


def _numbered(number: object, body: object, worth: str) -> list[Html]:
    return [el("span", number, cls="n"), el("div", body, cls="body"), el("span", worth, cls="marks")]


def figures(owner: Mapping[str, Any], anchor: str) -> list[Html]:
    """Return the drawings of a card, an example or a question."""
    return [figure(data, f"{anchor}-f{place}") for place, data in enumerate(owner.get("figures") or (), 1)]


def calculator_rule(asked: ShownQuestion) -> str:
    """Return whether the calculator is allowed, as a sentence; "" where the course has none."""
    if asked.calculator is None:
        return ""
    return "Calculator allowed." if asked.calculator else "No calculator."


def options(choices: Iterable[ShownOption], *, marked: bool = False) -> Html:
    """Return options in rings; the right one is marked where `marked`."""
    rows = []
    for option in choices:
        right = marked and option.right
        words = el("span", inline(option.text), " (right)" if right else None)
        rows.append(el("li", el("span", option.letter, cls="ring"), words, cls="right" if right else None))
    return el("ol", rows, cls="options")


def room_for(marks: int, stem: str) -> Html:
    """Return empty space on paper, squared where something is drawn; classes m3 to m6 are more than the least."""
    if is_drawn(stem):
        return el("div", squared_paper(), cls="space grid")
    size = room(marks)
    return el("div", cls=f"space m{size}" if size > LEAST_ROOM else "space")


def _hints(asked: ShownQuestion) -> Html | None:
    hints = asked.of("hint")
    if not hints or asked.card["kind"] in _WITHOUT_HINTS:
        return None
    noun = "Hint" if len(hints) == 1 else "Hints"
    words = el("ul", [el("li", inline(hint)) for hint in hints])
    return el("details", el("summary", f"{noun} for question {asked.number}"), words)


def result(name: str, letter: str, answer: str) -> Html:
    """Return an answer behind its name; one of several lines, such as code, begins on a line of its own."""
    return el("p", name, el("br") if "\n" in answer else None, letter, inline(answer), cls="result")


def working(steps: Iterable[str]) -> Html:
    """Return numbered steps: what we do beside the line of mathematics."""
    rows = []
    for words, shows in map(divided, steps):
        label = {"role": "group", "tabindex": "0", "aria_label": "Line of working"} if len(shows) > _WIDE else {}
        line = el("p", inline(shows), cls="line", **label) if shows else None
        rows.append(el("li", el("div", el("p", inline(words)), line, cls="two" if line else None)))
    return el("ol", rows, cls="steps")
