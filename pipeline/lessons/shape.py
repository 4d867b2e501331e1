"""Check 1: what one field of a lesson says about another; counts that depend on the kind of card or lesson.

Prompts take the numbers from the tables here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from pipeline.lessons.answers import Mcq, ShortText
from pipeline.lessons.fields import MAX_PROBLEMS, count_words, problems
from pipeline.lessons.schemas import Card, ExplainerCard, Item, Lesson, ModellingCard, QuestionCard

#: Items by kind of card, least and most.
ITEMS: Mapping[str, tuple[int, int]] = {
    "starter": (3, 6),
    "check": (2, 4),
    "guided_practice": (4, 8),
    "independent_practice": (4, 12),
    "exit_ticket": (2, 4),
    "assessment": (4, 40),
}
#: Cards a lesson must have; a teach lesson has the CYCLE cards besides, once in each cycle.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "teach": ("starter", "guided_practice", "exit_ticket"),
    "independent_practice": ("independent_practice",),
    "formative_assessment": ("assessment",),
    "revision": ("explainer", "independent_practice"),
    "mock_exam": ("assessment",),
}
#: Cards of each cycle, in this order.
CYCLE = ("explainer", "modelling", "check")
#: Kinds a lesson may have.
ALLOWED: Mapping[str, frozenset[str]] = {
    "teach": frozenset({*CYCLE, "starter", "guided_practice", "independent_practice", "exit_ticket"}),
    "independent_practice": frozenset({"starter", "explainer", "modelling", "independent_practice", "exit_ticket"}),
    "formative_assessment": frozenset({"assessment"}),
    "revision": frozenset({*CYCLE, "starter", "guided_practice", "independent_practice", "exit_ticket"}),
    "mock_exam": frozenset({"assessment"}),
}
#: What a teach lesson has more of than the schema asks of every lesson.
TEACH_LEAST: Mapping[str, int] = {"key_learning_points": 3, "keywords": 1, "misconceptions": 1, "cycles": 1}
#: Items in the practice of a lesson of that type, least; marks of a formative assessment.
PRACTICE_LEAST = 8
FORMATIVE_MARKS = (10, 20)
#: Earlier lessons that a revision lesson draws on, where there are so many.
REVISION_LESSONS = 3
#: Minutes by which the cards may miss the lesson's time.
TIMING_SLACK = 5
TEACHER_NOTES_WORDS = 120


def parse_lesson(data: Any) -> tuple[Lesson | None, list[str]]:
    """Return the lesson of a JSON value, or what is wrong with its shape (at most ten lines: path, wanted, found)."""
    try:
        lesson = Lesson.model_validate(data)
    except ValidationError as error:
        return None, problems(error)
    found = shape_problems(lesson)[:MAX_PROBLEMS]
    return (None, found) if found else (lesson, [])


def shape_problems(lesson: Lesson) -> list[str]:
    """Return everything that is wrong between the fields of a lesson."""
    return [
        *_repeated_ids(lesson),
        *_kinds(lesson),
        *_counts(lesson),
        *_order(lesson),
        *_notes_and_time(lesson),
        # Last: a missing part leaves many names dangling, and only the first faults are told.
        *_dangling_ids(lesson),
    ]


def _ids(lesson: Lesson) -> Iterable[str]:
    groups: tuple[Any, ...] = (lesson.cards, lesson.items(), lesson.prior_knowledge, lesson.key_learning_points)
    for group in (*groups, lesson.misconceptions):
        yield from (part.id for part in group)
    for card in lesson.cards:
        if isinstance(card, ModellingCard):
            yield from (example.id for example in card.examples)


def _repeated_ids(lesson: Lesson) -> list[str]:
    return [f"id {name}: used {n} times, wanted once" for name, n in Counter(_ids(lesson)).items() if n > 1]


def _dangling_ids(lesson: Lesson) -> list[str]:
    cards, items = {card.id for card in lesson.cards}, {item.id for item in lesson.items()}
    wrong = {part.id for part in lesson.misconceptions}
    found: list[str] = []
    for index, point in enumerate(lesson.points):
        found += _unknown(f"points.{index}.card", [point.card], cards)
        found += _unknown(f"points.{index}.items", point.items, items)
    for card in lesson.cards:
        if isinstance(card, ExplainerCard):
            found += _unknown(f"{card.id}.misconceptions", card.misconceptions, wrong)
    for item in lesson.items():
        found += _item_ids(item, lesson, wrong)
    return found


def _item_ids(item: Item, lesson: Lesson, wrong: set[str]) -> list[str]:
    prior = {part.id for part in lesson.prior_knowledge}
    facts = {part.id for part in lesson.key_learning_points}
    found = _unknown(f"{item.id}.prior", [item.prior] if item.prior else [], prior)
    found += _unknown(f"{item.id}.key_points", item.key_points, facts)
    found += _unknown(f"{item.id}.misconceptions", item.misconceptions, wrong)
    for _, answer in item.answers():
        if isinstance(answer, Mcq):
            found += _unknown(
                f"{item.id}.answer.options", [o.misconception for o in answer.options if o.misconception], wrong
            )
            if answer.key >= len(answer.options):
                found.append(
                    f"{item.id}.answer.key: {answer.key}, wanted a position from 0 to {len(answer.options) - 1}"
                )
        elif not isinstance(answer, ShortText):
            found += _unknown(
                f"{item.id}.answer.wrong", [w.misconception for w in answer.wrong if w.misconception], wrong
            )
    return found


def _unknown(where: str, names: Iterable[str], known: set[str]) -> list[str]:
    return [
        f"{where}: {name} is nowhere in this lesson, wanted one of {', '.join(sorted(known)) or 'none'}"
        for name in names
        if name not in known
    ]


def _kinds(lesson: Lesson) -> list[str]:
    kinds = [card.kind for card in lesson.cards]
    allowed = ALLOWED[lesson.lesson_type]
    found = [
        f"{card.id}: a {lesson.lesson_type} lesson has no {card.kind} card"
        for card in lesson.cards
        if card.kind not in allowed
    ]
    found += [
        f"cards: no {kind} card, wanted one in a {lesson.lesson_type} lesson"
        for kind in REQUIRED[lesson.lesson_type]
        if kind not in kinds
    ]
    return found


def _counts(lesson: Lesson) -> list[str]:
    found = []
    for card in lesson.cards:
        if isinstance(card, QuestionCard):
            low, high = ITEMS[card.kind]
            if card.kind == "independent_practice" and lesson.lesson_type == "independent_practice":
                low = PRACTICE_LEAST
            if not low <= len(card.items) <= high:
                found.append(f"{card.id}.items: {len(card.items)} items, wanted {low} to {high} in {card.kind}")
            if card.kind == "exit_ticket" and not card.rubric:
                found.append(f"{card.id}.rubric: empty, wanted what a score means")
    if lesson.lesson_type == "teach":
        for name, least in TEACH_LEAST.items():
            if len(getattr(lesson, name)) < least:
                found.append(f"{name}: {len(getattr(lesson, name))}, wanted at least {least} in a teach lesson")
    return found + _special_counts(lesson)


def _special_counts(lesson: Lesson) -> list[str]:
    if lesson.lesson_type == "formative_assessment":
        marks, (low, high) = sum(item.marks for item in lesson.items()), FORMATIVE_MARKS
        if not low <= marks <= high:
            return [f"cards: {marks} marks, wanted {low} to {high} in a formative assessment"]
    if lesson.lesson_type == "revision":
        reviewed = {item.from_lesson for item in lesson.items()} - {0}
        least = min(REVISION_LESSONS, lesson.order - 1)
        if len(reviewed) < least:
            return [f"items.from_lesson: {len(reviewed)} earlier lessons reviewed, wanted at least {least}"]
    return []


def _order(lesson: Lesson) -> list[str]:
    kinds = [card.kind for card in lesson.cards]
    found = []
    if "starter" in kinds[1:]:
        found.append("cards: starter is not the first card")
    if "exit_ticket" in kinds[:-1]:
        found.append("cards: exit_ticket is not the last card")
    cycles = [card.cycle for card in lesson.cards if card.cycle]
    if cycles != sorted(cycles):
        found.append(f"cards.cycle: {cycles}, wanted rising numbers")
    if max(cycles, default=0) > len(lesson.cycles):
        found.append(f"cards.cycle: {max(cycles)}, but there are {len(lesson.cycles)} cycles")
    for number in range(1, len(lesson.cycles) + 1):
        found += _one_cycle(number, [card for card in lesson.cards if card.cycle == number])
    return found


def _one_cycle(number: int, cards: list[Card]) -> list[str]:
    kinds: list[str] = [card.kind for card in cards]
    if missing := [kind for kind in CYCLE if kind not in kinds]:
        return [f"cycle {number}: no {', '.join(missing)} card"]
    places = [kinds.index(kind) for kind in CYCLE]
    return (
        [] if places == sorted(places) else [f"cycle {number}: cards in the order {kinds}, wanted {', '.join(CYCLE)}"]
    )


def _notes_and_time(lesson: Lesson) -> list[str]:
    found = []
    total = sum(card.minutes for card in lesson.cards)
    if abs(total - lesson.minutes) > TIMING_SLACK:
        found.append(f"cards.minutes: together {total}, wanted {lesson.minutes} ± {TIMING_SLACK}")
    notes = lesson.teacher_notes
    words = count_words(
        " ".join([*notes.resources, notes.watch_for, notes.if_they_struggle, notes.if_they_fly, notes.safety])
    )
    if words > TEACHER_NOTES_WORDS:
        found.append(f"teacher_notes: {words} words, wanted at most {TEACHER_NOTES_WORDS}")
    return found
