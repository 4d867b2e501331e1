"""Which questions of a lesson stand on its worksheets: three of rising difficulty, or one paper for everyone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.drawing.values import printed_numbers
from pipeline.export.base import CHALLENGE, CORE, LETTERS, SUPPORT
from pipeline.publish.lesson_page import calculator_rule
from pipeline.publish.questions import COMPUTED, ShownQuestion, divided
from pipeline.publish.view import LessonView

#: Kinds of lesson that are the same for everyone.
_PAPERS = frozenset({"mock_exam", "formative_assessment"})
_PRACTICE = frozenset({"guided_practice", "independent_practice"})
#: Questions on a sheet of easier or harder ones: half of them, least and most.
_LEAST, _MOST = 3, 6


@dataclass(frozen=True, slots=True)
class SheetQuestion:
    """A question with its number on the sheet."""

    number: int
    asked: ShownQuestion
    hints: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SheetSection:
    """A paper of an exam, or all questions of a worksheet."""

    questions: Sequence[SheetQuestion]
    #: Of a paper: its name, time and what it says before the questions.
    title: str = ""
    minutes: int = 0
    instructions: str = ""
    #: The course says where calculators may be used.
    calculators: bool = True

    @property
    def marks(self) -> int:
        return sum(question.asked.marks for question in self.questions)

    @property
    def rule(self) -> str:
        """Return whether the calculator is allowed in all of them, as a sentence; "" where they differ."""
        rules = {self.rule_of(question, always=True) for question in self.questions}
        return rules.pop() if len(rules) == 1 else ""

    def rule_of(self, question: SheetQuestion, *, always: bool = False) -> str:
        """Return what a question says of the calculator: "" where the section says it."""
        if not self.calculators or not (always or not self.rule):
            return ""
        return calculator_rule(question.asked)


@dataclass(frozen=True, slots=True)
class Worksheet:
    """What is printed for pupils."""

    lesson: LessonView
    #: "support", "core" or "challenge"; "": a paper, the same for everyone.
    difficulty: str
    sections: Sequence[SheetSection]
    #: Worked examples to look at: {"ask", "working", "answer", "figures"}.
    examples: Sequence[Mapping[str, Any]] = ()
    #: Keywords with their meanings.
    words: Sequence[tuple[str, str]] = field(default=())

    @property
    def name(self) -> str:
        """Return the name of its file, without ending."""
        return f"{self.lesson.file}-{self.difficulty}-worksheet" if self.difficulty else f"{self.lesson.file}-paper"

    @property
    def answers_name(self) -> str:
        """Return the name of the file with its answers, without ending."""
        return f"{self.lesson.file}-{self.difficulty or 'paper'}-answers"

    @property
    def label(self) -> str:
        """Return what it is called on paper: "Worksheet A"."""
        return f"Worksheet {LETTERS[self.difficulty]}" if self.difficulty else self.lesson.type

    @property
    def questions(self) -> list[SheetQuestion]:
        return [question for section in self.sections for question in section.questions]

    @property
    def marks(self) -> int:
        return sum(section.marks for section in self.sections)


def sheets(lesson: LessonView, difficulties: Iterable[str]) -> Iterator[Worksheet]:
    """Yield the worksheets of a lesson that has questions; of an exam or assessment its paper alone."""
    if not lesson.questions:
        return
    if lesson.entry.get("lesson_type") in _PAPERS:
        yield Worksheet(lesson, "", [_paper(lesson, card) for card in lesson.cards if card.get("items")])
        return
    for difficulty in difficulties:
        asked = _chosen(lesson.questions, difficulty)
        made = [_numbered(place, question, difficulty) for place, question in enumerate(asked, 1)]
        sections = [SheetSection(made, calculators=_calculators(lesson))]
        if difficulty == SUPPORT:
            examples = [example for card in lesson.cards for example in card.get("examples") or ()]
            yield Worksheet(lesson, difficulty, sections, examples, _words(lesson))
        else:
            yield Worksheet(lesson, difficulty, sections)


def _paper(lesson: LessonView, card: Mapping[str, Any]) -> SheetSection:
    made = [SheetQuestion(question.number, question) for question in lesson.questions_of(card)]
    title = str(card["title"]).removeprefix(f"{lesson.type}: ")
    return SheetSection(made, title, card["minutes"], card.get("instructions") or "", _calculators(lesson))


def _calculators(lesson: LessonView) -> bool:
    return bool(lesson.entry.get("calculator"))


def _words(lesson: LessonView) -> list[tuple[str, str]]:
    pairs = [word.partition(": ") for word in lesson.lesson["keywords"]]
    return [(term, meaning) for term, _, meaning in pairs]


def _chosen(questions: Sequence[ShownQuestion], difficulty: str) -> list[ShownQuestion]:
    """Return the questions of a sheet: all practice, or the easier or harder half of it."""
    practice = [one for one in questions if one.card["kind"] in _PRACTICE] or list(questions)
    if difficulty == CORE:
        return practice
    checks = [one for one in questions if one.card["kind"] == "check"] if difficulty == SUPPORT else []
    rising = sorted([*checks, *practice], key=lambda one: (_demand(one), one.number))
    number = max(_LEAST, min(-(-len(rising) // 2), _MOST))
    return rising[-number:] if difficulty == CHALLENGE else rising[:number]


def _demand(question: ShownQuestion) -> float:
    """Return how much a question asks: by its marks, steps and parts; with help, or a choice, it is less."""
    alone = bool(question.card["kind"] not in ("check", "guided_practice"))
    steps = len(question.item["working"]) / 2 + len(question.parts) / 2
    return question.marks + steps + alone - bool(question.options)


def _numbered(number: int, question: ShownQuestion, difficulty: str) -> SheetQuestion:
    return SheetQuestion(number, question, _hints(question) if difficulty == SUPPORT else ())


def _hints(question: ShownQuestion) -> Sequence[str]:
    """Return the author's hints; else how the working begins, where these words tell no number and no answer."""
    hints = question.of("hint")
    working = question.item["working"]
    if hints or len(working) == 1 or question.checked != COMPUTED:
        return hints
    first = divided(working[0])[0]
    known = set(printed_numbers(question.ask))
    tells = question.answer in first or set(printed_numbers(first)) - known
    return [] if tells else [first]
