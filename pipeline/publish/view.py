"""What the pages are about: the bundle's lessons, outcomes and counts, and how answers were checked; derived once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.frameworks import REGIONS, Region, region_of
from pipeline.html import clean, slug
from pipeline.publish.base import Bundle
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.tex import LETTERS

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


#: A product and a Greek letter in plain words, as course files have them: m*lambda, sin(theta).
_TIMES, _GREEK = re.compile(r"(?<=\w)\*(?=\w)"), re.compile(r"(?<=[·(])(lambda|theta|alpha|omega)\b")


def has_calculators(course: Mapping[str, Any]) -> bool:
    """Return whether a course's JSON says of any part of its assessment that there is or is not a calculator."""
    parts = (course.get("assessment") or {}).get("components") or ()
    return any(part.get("calculator") is not None or "calculator" in (part.get("parts") or ()) for part in parts)


def finding_line(found: object) -> str:
    """Return a recorded finding of the checks as a line."""
    if not isinstance(found, Mapping):
        return str(found)
    words = found.get("text") or "; wanted ".join(str(found[key]) for key in ("found", "wanted") if found.get(key))
    return f"{found['where']}: {words}" if found.get("where") else str(words)


@dataclass(frozen=True)
class LessonView:
    """A published lesson: what was written, what code found, what the critic scored."""

    lesson: Mapping[str, Any]
    checks: Mapping[str, Any]
    critic: Mapping[str, Any] | None
    #: Its entry in the scheme of work: order, type, minutes, calculator, outcomes and points.
    entry: Mapping[str, Any]
    #: Components of the course's exam by their id.
    components: Mapping[str, Mapping[str, Any]]
    #: Outcomes of its entry that it does not teach.
    not_written: frozenset[str] = frozenset()
    #: Who approved or edited it: {"by", "edited"}; {}: not reviewed.
    review: Mapping[str, Any] = field(default_factory=dict)
    #: The course says where calculators are used.
    calculators: bool = True
    region: Region = REGIONS["none"]

    @property
    def order(self) -> int:
        return int(self.entry["order"])

    @property
    def title(self) -> str:
        return clean(self.lesson["title"])

    @property
    def type(self) -> str:
        """Return the kind of lesson as a word."""
        return self.region.said(TYPES.get(self.entry.get("lesson_type", ""), "Lesson"))

    @property
    def mock_exam(self) -> bool:
        return bool(self.entry.get("lesson_type") == "mock_exam")

    @property
    def minutes(self) -> int:
        return int(self.entry.get("minutes") or sum(card["minutes"] for card in self.cards))

    @property
    def outcome_refs(self) -> list[str]:
        """Return the outcomes it teaches or asks."""
        return [ref for ref in self.entry.get("outcome_refs", ()) if ref not in self.not_written]

    @property
    def file(self) -> str:
        """Name of its files, without folder and ending."""
        return f"{self.order:02d}-{slug(self.title)}"

    @property
    def cards(self) -> Sequence[Mapping[str, Any]]:
        return list(self.lesson.get("cards", ()))

    @cached_property
    def questions(self) -> list[ShownQuestion]:
        """Return all questions, numbered through the lesson."""
        rows = [
            (f"c{place}.q{number}", item, card)
            for place, card in enumerate(self.cards, 1)
            for number, item in enumerate(card.get("items") or (), 1)
        ]
        return [
            ShownQuestion(number, address, item, card, self.checks, self._calculator(item, card), self.region)
            for number, (address, item, card) in enumerate(rows, 1)
        ]

    def _calculator(self, item: Mapping[str, Any], card: Mapping[str, Any]) -> bool | None:
        """Return what the item says; else its paper; else the lesson; None where the course has no calculators."""
        if not self.calculators:
            return None
        for text in item.get("more") or ():
            if text.startswith("calculator: "):
                return bool(text == "calculator: yes")
        paper = self.components.get(card.get("component", ""), {})
        return bool(paper.get("calculator", self.entry.get("calculator") == "calc"))

    def questions_of(self, card: Mapping[str, Any]) -> list[ShownQuestion]:
        """Return the questions of one of its cards."""
        return [question for question in self.questions if question.card is card]

    def notes(self, kind: str) -> list[str]:
        """Return the notes to the teacher of one kind."""
        return [note["text"] for note in self.lesson.get("notes") or () if note["kind"] == kind]

    @cached_property
    def warnings(self) -> list[str]:
        """Return findings of the checks that were recorded without stopping the lesson, one line each."""
        return [clean(finding_line(found)) for found in self.checks.get("warnings") or ()]

    @property
    def readers(self) -> str:
        """Return the names of the people who reviewed it: "A, B and C"."""
        names = [clean(name) for name in self.review.get("by") or ()]
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

    def score(self, name: str) -> str:
        """Return a group's score by the critic with two decimals; a dash where there is none."""
        value = (self.critic or {}).get(name)
        return f"{float(value):.2f}" if isinstance(value, (int, float)) else "–"


def counts(lessons: Iterable[LessonView]) -> Counter[str]:
    """Return how many questions of these lessons were checked how."""
    return Counter(question.checked for lesson in lessons for question in lesson.questions)


@dataclass(frozen=True)
class LearningOutcome:
    """A learning outcome and the lessons that reach it."""

    id: str
    #: As printed, else group.place ("1.2").
    number: str
    title: str
    lessons: tuple[LessonView, ...]
    #: A lesson is there that teaches it, not only questions on it.
    taught: bool
    #: What became of other lessons that were to teach it.
    missing: tuple[str, ...] = ()


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
        self.bundle, self.region = bundle, region_of(bundle.course)
        self.entries = {int(entry["order"]): entry for entry in bundle.scheme.get("entries", ())}
        self.lessons = tuple(sorted(self._lessons(), key=lambda lesson: lesson.order))
        rows = sorted(bundle.failed, key=lambda row: int(row["order"]))
        self.failed = [row for row in rows if not row.get("not_written")]
        #: Lessons that nobody could write: no bank has their outcomes.
        self.unwritten = [int(row["order"]) for row in rows if row.get("not_written")]
        self.groups = tuple(self._groups())

    def _lessons(self) -> Iterator[LessonView]:
        papers = {part["id"]: part for part in self.assessment.get("components") or ()}
        calculators = has_calculators(self.bundle.course)
        for row in self.bundle.lessons:
            entry = self.entries.get(int(row["order"]), {"order": row["order"]})
            missing = frozenset(row.get("not_written") or ())
            yield LessonView(
                row["lesson"], row.get("checks") or {}, row.get("critic") or None, entry, papers, missing,
                row.get("review") or {}, calculators, self.region,
            )  # fmt: skip

    def _groups(self) -> Iterator[CourseGroup]:
        for place, group in enumerate(self.bundle.course.get("groups", ()), 1):
            made = (self._outcome(outcome, f"{place}.{number}") for number, outcome in enumerate(group["outcomes"], 1))
            yield CourseGroup(group["id"], clean(group["title"]), bool(group.get("cross_cutting")), tuple(made))

    def _outcome(self, outcome: Mapping[str, Any], number: str) -> LearningOutcome:
        lessons = [lesson for lesson in self.lessons if outcome["id"] in lesson.outcome_refs]
        taught = [lesson for lesson in lessons if lesson.entry.get("lesson_type") == "teach"]
        missing = [(int(row["order"]), "failed") for row in self.failed]
        missing += [(order, "is not written yet") for order in self.unwritten]
        return LearningOutcome(
            outcome["id"],
            clean(outcome.get("code") or number),
            clean(outcome["title"]),
            tuple(taught or lessons),
            bool(taught),
            tuple(f"Lesson {order} {words}" for order, words in missing if outcome["id"] in self._planned(order)),
        )

    def _planned(self, order: int) -> Sequence[str]:
        entry = self.entries.get(order, {})
        return entry.get("outcome_refs", ()) if entry.get("lesson_type") == "teach" else ()

    @property
    def title(self) -> str:
        return clean(self.bundle.course["title"])

    @property
    def rights(self) -> dict[str, str]:
        """Return the course's licence and attribution as its catalogue names them."""
        return {name: clean(self.bundle.course.get(name) or "not stated") for name in ("licence", "attribution")}

    @property
    def rights_line(self) -> str:
        """Return the same as a line for people: "Licence: not stated. Attribution: not stated."."""
        return " ".join(f"{self.region.said(name).capitalize()}: {of.rstrip('.')}." for name, of in self.rights.items())

    @property
    def stated_rights(self) -> list[str]:
        """Return that line for pages that pupils see; none where the catalogue names neither."""
        return [self.rights_line] if any(self.bundle.course.get(name) for name in self.rights) else []

    @property
    def assessment(self) -> Mapping[str, Any]:
        """Return how the course is assessed."""
        return self.bundle.course.get("assessment") or {}

    @property
    def provided(self) -> Sequence[str]:
        """Return what a candidate may use in the exam, by name."""
        sheets = self.assessment.get("sheets") or ()
        return self.assessment.get("provided") or [str(sheet["title"]).lower() for sheet in sheets]

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
        """Return how many outcomes a lesson teaches."""
        return sum(outcome.taught for outcome in self.outcomes)

    @cached_property
    def outcome_names(self) -> dict[str, str]:
        """Return outcome id → "1.1 Working with surds"."""
        return {outcome.id: f"{outcome.number} {outcome.title}" for group in self.groups for outcome in group.outcomes}

    @cached_property
    def point_names(self) -> dict[str, str]:
        """Return point id → its text in the catalogue."""
        return {
            point["id"]: _GREEK.sub(lambda found: LETTERS[found[1]], _TIMES.sub("·", clean(point["text"])))
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

    @property
    def signed(self) -> str:
        """Return the names of those who have reviewed all of it; "" where some lesson has no reviewer."""
        return clean((self.bundle.about.get("sign_off") or {}).get("name") or "")

    @property
    def reviewed(self) -> int:
        """Return how many lessons a person has reviewed."""
        return sum(bool(lesson.readers) for lesson in self.lessons)

    @property
    def readers(self) -> str:
        """Return who has read it, as notices of a draft say it."""
        if self.signed:
            return f"reviewed by {self.signed}"
        some = f"{self.reviewed} of {len(self.lessons)} lessons reviewed"
        return f"with {some}" if self.reviewed else "read by nobody"

    def neighbour(self, lesson: LessonView, step: int) -> LessonView | None:
        """Return the published lesson before (-1) or after (1)."""
        place = self.lessons.index(lesson) + step
        return self.lessons[place] if 0 <= place < len(self.lessons) else None
