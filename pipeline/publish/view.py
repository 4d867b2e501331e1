"""What the pages are about: the bundle's lessons, outcomes and counts, and how answers were checked; derived once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.publish.base import Bundle
from pipeline.publish.html import clean, slug

#: Kind of lesson, as pages say it.
TYPES = {
    "teach": "Lesson",
    "independent_practice": "Practice",
    "formative_assessment": "Assessment",
    "revision": "Revision",
    "mock_exam": "Mock exam",
}
#: Kind of card → (class of its colour, word beside it).
KINDS = {
    "starter": ("starter", "Starter"),
    "explainer": ("explain", "Explain"),
    "modelling": ("worked", "Worked example"),
    "check": ("check", "Check"),
    "guided_practice": ("practice", "Guided practice"),
    "independent_practice": ("practice", "Practice"),
    "exit_ticket": ("exit", "Exit ticket"),
    "assessment": ("exit", "Assessment"),
}
CALCULATOR = {
    "non_calc": "No",
    "calc": "Yes",
    "mixed": "In some questions",
    "exam_conditions": "As in the exam",
}
COMPUTED, TESTED, SUBSTITUTED, PARTLY, NOBODY = "computed", "point-tested", "substituted", "in part", "nobody"

#: How an answer of each kind is checked before its lesson may be published; the key carries the calculation.
_HOW = {
    **dict.fromkeys(
        ("numeric", "surd", "fraction", "power", "statistics", "geometry", "trig", "vector", "science"), COMPUTED
    ),
    "algebra": TESTED,
    "equation": SUBSTITUTED,
    "system": SUBSTITUTED,
    "inequality": SUBSTITUTED,
}
SENTENCES = {
    COMPUTED: "Checked by calculation.",
    TESTED: "Checked by calculation at many points.",
    SUBSTITUTED: "Checked by putting it back into the question.",
    PARTLY: "Checked by calculation in part; the rest is not checkable by code, a person must judge it.",
    NOBODY: "Not checkable by code: a person must judge it.",
}


def verified(answer: Mapping[str, Any]) -> str:
    """Return how an answer was checked: one of COMPUTED, TESTED, SUBSTITUTED, PARTLY, NOBODY."""
    kind = answer["kind"]
    if kind == "structured":
        found = {verified(part["answer"]) for part in answer["parts"]}
        if NOBODY in found and len(found) > 1:
            return PARTLY
        return found.pop() if len(found) == 1 else COMPUTED
    if kind == "mcq":
        key = answer["options"][int(answer["key"])]
        return COMPUTED if key.get("expression") and key.get("method") else NOBODY
    return _HOW.get(kind, NOBODY)


def _line(found: object) -> str:
    if not isinstance(found, Mapping):
        return str(found)
    words = found.get("text") or "; wanted ".join(str(found[key]) for key in ("found", "wanted") if found.get(key))
    return f"{found['where']}: {words}" if found.get("where") else str(words)


@dataclass(frozen=True)
class NumberedQuestion:
    """One item with its number on the page."""

    number: int
    item: Mapping[str, Any]
    card: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        """Return its id, the same on the lesson and the answers page."""
        return f"q{self.number}"

    @property
    def verified(self) -> str:
        """Return how its answer was checked."""
        return verified(self.item["answer"])


@dataclass(frozen=True)
class LessonView:
    """A published lesson: what was written, what code found, what the critic scored."""

    lesson: Mapping[str, Any]
    checks: Mapping[str, Any]
    critic: Mapping[str, Any] | None
    #: Its entry in the scheme of work.
    entry: Mapping[str, Any]

    @property
    def order(self) -> int:
        return int(self.lesson["order"])

    @property
    def title(self) -> str:
        return clean(self.lesson["title"])

    @property
    def type(self) -> str:
        """Return the kind of lesson as a word."""
        return TYPES.get(self.lesson.get("lesson_type", ""), "Lesson")

    @property
    def file(self) -> str:
        """Name of its files, without folder and ending."""
        return f"{self.order:02d}-{slug(self.title)}"

    @property
    def cards(self) -> Sequence[Mapping[str, Any]]:
        return list(self.lesson.get("cards", ()))

    @cached_property
    def questions(self) -> list[NumberedQuestion]:
        """Return all questions, numbered through the lesson."""
        pairs = [(card, item) for card in self.cards for item in card.get("items", ())]
        return [NumberedQuestion(number, item, card) for number, (card, item) in enumerate(pairs, 1)]

    def questions_of(self, card: Mapping[str, Any]) -> list[NumberedQuestion]:
        """Return the questions of one of its cards."""
        return [question for question in self.questions if question.card is card]

    @cached_property
    def warnings(self) -> list[str]:
        """Return findings of the checks that were recorded without stopping the lesson, one line each."""
        return [clean(_line(found)) for found in self.checks.get("warnings") or ()]

    def score(self, name: str) -> str:
        """Return a group's score by the critic with two decimals; a dash where there is none."""
        value = (self.critic or {}).get(name)
        return f"{float(value):.2f}" if isinstance(value, (int, float)) else "–"


def counts(lessons: Iterable[LessonView]) -> Counter[str]:
    """Return how many questions of these lessons were checked how."""
    return Counter(question.verified for lesson in lessons for question in lesson.questions)


@dataclass(frozen=True)
class LearningOutcome:
    """A learning outcome and the lessons that reach it."""

    id: str
    #: As printed, else group.place ("1.2").
    number: str
    title: str
    lessons: tuple[LessonView, ...]
    failed: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class CourseGroup:
    """A unit, topic or area."""

    id: str
    title: str
    cross_cutting: bool
    outcomes: tuple[LearningOutcome, ...]


class CourseView:
    """The whole course, as the pages need it."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.entries = {int(entry["order"]): entry for entry in bundle.scheme.get("entries", ())}
        self.lessons = tuple(sorted(self._lessons(), key=lambda lesson: lesson.order))
        self.failed = tuple(sorted(bundle.failed, key=lambda row: int(row["order"])))
        self.groups = tuple(self._groups())

    def _lessons(self) -> Iterator[LessonView]:
        for row in self.bundle.lessons:
            lesson = row.get("lesson", row)
            if lesson:
                entry = self.entries.get(int(lesson["order"]), {})
                yield LessonView(lesson, row.get("checks") or {}, row.get("critic") or None, entry)

    def _groups(self) -> Iterator[CourseGroup]:
        for place, group in enumerate(self.bundle.course.get("groups", ()), 1):
            outcomes = [
                self._outcome(outcome, f"{place}.{number}") for number, outcome in enumerate(group["outcomes"], 1)
            ]
            yield CourseGroup(group["id"], clean(group["title"]), bool(group.get("cross_cutting")), tuple(outcomes))

    def _outcome(self, outcome: Mapping[str, Any], number: str) -> LearningOutcome:
        lessons = [lesson for lesson in self.lessons if outcome["id"] in lesson.lesson.get("outcome_refs", ())]
        taught = [lesson for lesson in lessons if lesson.lesson.get("lesson_type") == "teach"]
        failed = [row for row in self.failed if outcome["id"] in self._planned(int(row["order"]))]
        return LearningOutcome(
            outcome["id"],
            clean(outcome.get("code") or number),
            clean(outcome["title"]),
            tuple(taught or lessons),
            tuple(failed),
        )

    def _planned(self, order: int) -> Sequence[str]:
        entry = self.entries.get(order, {})
        return entry.get("outcome_refs", ()) if entry.get("lesson_type") == "teach" else ()

    @property
    def title(self) -> str:
        return clean(self.bundle.course["title"])

    @property
    def total(self) -> int:
        """Return lessons in the plan."""
        return int(self.bundle.scheme.get("lesson_count", len(self.lessons)))

    @cached_property
    def outcomes(self) -> list[LearningOutcome]:
        """Return the outcomes that have lessons of their own."""
        return [outcome for group in self.groups if not group.cross_cutting for outcome in group.outcomes]

    @property
    def taught(self) -> int:
        """Return how many outcomes have a lesson."""
        return sum(bool(outcome.lessons) for outcome in self.outcomes)

    @cached_property
    def outcome_names(self) -> dict[str, str]:
        """Return outcome id → "1.1 Working with surds"."""
        return {outcome.id: f"{outcome.number} {outcome.title}" for group in self.groups for outcome in group.outcomes}

    @cached_property
    def point_names(self) -> dict[str, str]:
        """Point id → its text in the catalogue."""
        return {
            point["id"]: clean(point["text"])
            for group in self.bundle.course.get("groups", ())
            for outcome in group["outcomes"]
            for point in outcome.get("points") or ()
        }

    @property
    def offline(self) -> bool:
        """Return true where no model wrote it."""
        return self.bundle.about.get("author") == "offline"

    @property
    def scored(self) -> bool:
        """Return true where a critic scored a lesson."""
        return any(lesson.critic for lesson in self.lessons)

    def neighbour(self, lesson: LessonView, step: int) -> LessonView | None:
        """Return the published lesson before (-1) or after (1)."""
        place = self.lessons.index(lesson) + step
        return self.lessons[place] if 0 <= place < len(self.lessons) else None
