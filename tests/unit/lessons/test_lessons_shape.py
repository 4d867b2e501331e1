"""Check 1: fields, counts, lengths, ids and order of a lesson, each fault with path, found and wanted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.lessons.fields import count_words
from pipeline.lessons.shape import ITEMS, parse_lesson
from tests.checking import Json, course, lesson_of, scheme_of

ENTRIES = scheme_of(course(), 8)
BY_TYPE = {row["lesson_type"]: lesson_of(course(), ENTRIES, row["order"]) for row in ENTRIES}


def faults(change: Callable[[Json], None], lesson_type: str = "teach") -> list[str]:
    lesson = copy.deepcopy(BY_TYPE[lesson_type])
    change(lesson)
    parsed, found = parse_lesson(lesson)
    assert (parsed is None) is bool(found)
    return found


def card(lesson: Json, kind: str) -> Json:
    return next(part for part in lesson["cards"] if part["kind"] == kind)


def test_shape_of_each_type_of_offline_lesson_is_right() -> None:
    for lesson_type in BY_TYPE:
        assert faults(lambda lesson: None, lesson_type) == []


def set_(path: str, value: Any) -> Callable[[Json], None]:
    """A change that puts a value at a dotted path; a part that is text picks a card of that kind."""

    def change(lesson: Json) -> None:
        node: Any = lesson
        *parts, last = path.split(".")
        for part in parts:
            node = node[int(part)] if part.isdigit() else card(lesson, part[1:]) if part[0] == "@" else node[part]
        node[int(last) if last.isdigit() else last] = value

    return change


FAULTS: list[tuple[str, Any, str]] = [
    ("title", "Surds", "title: String should have at least 30 characters; found 'Surds'"),
    ("outcome", "Pupils simplify surds well", "outcome: String should match pattern"),
    ("outcome", "I can " + "simplify " * 40, "outcome: String should have at most 190 characters"),
    ("order", "1", "order: Input should be a valid integer"),
    ("lesson_type", "lecture", "lesson_type: Input should be 'teach'"),
    ("surprise", 1, "surprise: Extra inputs are not permitted"),
    ("prior_knowledge", [], "prior_knowledge: List should have at least 1 item"),
    ("cards", [], "cards: List should have at least 1 item"),
    ("@explainer.text", "Too short.", "has 2 words, wanted 80 to 220"),
    ("@starter.items.0.marks", 0, "marks: Input should be greater than or equal to 1"),
    ("@starter.items.0.marks", True, "marks: Input should be a valid integer"),
    ("@starter.items.0.answer.kind", "riddle", "found dict"),
    ("@starter.items.0.stem", "What is 3 \x0crac 4 of it?", "holds the control character U+000C"),
    ("@starter.items.0.id", "Q1", "id: String should match pattern"),
    ("@starter.items.0.prior", "p99", "q1.prior: p99 is nowhere in this lesson, wanted one of"),
    ("@starter.items.0.misconceptions", ["m99"], "q1.misconceptions: m99 is nowhere in this lesson"),
    ("@exit_ticket.items.0.key_points", ["k99"], ".key_points: k99 is nowhere in this lesson"),
    ("@explainer.misconceptions", ["m99"], ".misconceptions: m99 is nowhere in this lesson"),
    ("points.0.card", "card_99", "points.0.card: card_99 is nowhere in this lesson"),
    ("points.0.items", ["q99"], "points.0.items: q99 is nowhere in this lesson"),
    ("@exit_ticket.rubric", [], ".rubric: empty, wanted what a score means"),
    ("misconceptions", [], "misconceptions: 0, wanted at least 1 in a teach lesson"),
    ("minutes", 90, "cards.minutes: together"),
]


def test_shape_fault_names_its_place() -> None:
    for path, value, said in FAULTS:
        found = faults(set_(path, value))
        assert any(said in line for line in found), (path, found)


def test_shape_tells_at_most_ten_faults() -> None:
    _, found = parse_lesson({})
    assert len(found) == 10
    assert found[-1].startswith("… and ")
    assert parse_lesson("text")[1]


def test_shape_counts_items_by_kind_of_card() -> None:
    for kind in ("starter", "check", "guided_practice", "exit_ticket"):
        low, high = ITEMS[kind]
        found = faults(set_(f"@{kind}.items", card(BY_TYPE["teach"], kind)["items"][:1]))
        assert any(f"1 items, wanted {low} to {high} in {kind}" in line for line in found), kind


def drop(kind: str) -> Callable[[Json], None]:
    return lambda lesson: lesson["cards"].remove(card(lesson, kind))


def swap(lesson: Json) -> None:
    cards = lesson["cards"]
    first, second = cards.index(card(lesson, "explainer")), cards.index(card(lesson, "modelling"))
    cards[first], cards[second] = cards[second], cards[first]


def repeat(lesson: Json) -> None:
    items = card(lesson, "starter")["items"]
    items[1]["id"] = items[0]["id"]


def cut(lesson: Json) -> None:
    part = card(lesson, "assessment")
    part["items"] = [{**item, "marks": 1} for item in part["items"][:4]]


def one(lesson: Json) -> None:
    for part in lesson["cards"]:
        for item in part.get("items", ()):
            item["from_lesson"] = 1


def fill(lesson: Json) -> None:
    lesson["teacher_notes"] |= dict.fromkeys(("watch_for", "if_they_struggle", "if_they_fly"), "look " * 45)


@pytest.mark.parametrize(
    ("change", "lesson_type", "said"),
    [
        (drop("starter"), "teach", "cards: no starter card"),
        (drop("modelling"), "teach", "cycle 1: no modelling card"),
        (lambda lesson: lesson["cards"].reverse(), "teach", "starter is not the first card"),
        (lambda lesson: lesson["cards"].reverse(), "teach", "exit_ticket is not the last"),
        (set_("@assessment.kind", "starter"), "mock_exam", "a mock_exam lesson has no starter card"),
        (swap, "teach", "wanted explainer, modelling, check"),
        (lambda lesson: lesson["cycles"].clear(), "teach", ", but there are 0 cycles"),
        (repeat, "teach", "used 2 times, wanted once"),
        (cut, "formative_assessment", "marks, wanted 10 to 20"),
        (one, "revision", "1 earlier lessons reviewed, wanted at least 3"),
        (fill, "teach", "words, wanted at most 120"),
    ],
)
def test_shape_wants_the_parts_of_the_lesson_type_in_their_order(
    change: Callable[[Json], None], lesson_type: str, said: str
) -> None:
    assert any(said in line for line in faults(change, lesson_type))


def test_words_are_counted_with_a_formula_as_one() -> None:
    assert count_words(r"The root \(\sqrt{12} = 2\sqrt{3}\) is a surd") == 6
    assert count_words("") == 0
