"""What somebody who solves a lesson without its keys is shown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pipeline.content.lesson import Lesson, Solutions
from pipeline.lessons import blind
from tests.small_lesson import fresh

AXES = ["x: reaction path, 0 to 8", "y: energy / kJ mol⁻¹, 0 to 180"]


def asked(*lines: str) -> list[dict[str, object]]:
    """Return the figures of the first question as the solver sees them; none where it is not asked."""
    lesson = fresh()
    lesson["cards"][0]["items"][0]["figures"] = [{"kind": "axes", "lines": [*AXES, *lines]}]
    first = blind.questions(Lesson.model_validate(lesson))[0]
    return first["figures"] if first["question"] == "c1.q1" else []


def test_a_question_about_a_curve_is_solved_from_its_data_without_its_equation() -> None:
    (figure,) = asked("function: y = 20*x", "label P: (1, 20)", "hide: function")
    assert figure["lines"] == [*AXES, "label P: (1, 20)"]
    assert figure["data"][:2] == [["0", "0"], ["1", "20"]]  # type: ignore[index]


def test_an_axis_without_numbers_hides_nothing_from_the_solver() -> None:
    assert asked("curve: (0, 20) (4, 160) (8, 100)", "hide: x numbers")


@pytest.mark.parametrize("hidden", ["label", "best fit"])
def test_what_only_the_drawing_tells_is_not_asked(hidden: str) -> None:
    assert not asked("best fit: y = 20*x", "label P: (1, 20)", f"hide: {hidden}")


def compared(item: Mapping[str, object], *said: Mapping[str, object]) -> list[str]:
    """Return what is found where somebody answers the first question of a lesson so."""
    lesson = fresh()
    lesson["cards"][0]["items"][0] = {"tests": ["prior 1"], "marks": ["works"], "feedback": "So it comes out.", **item}
    solved = Solutions.model_validate({"solutions": [{"question": "c1.q1", "options": [], **each} for each in said]})
    return [each.found for each in blind.compared(Lesson.model_validate(lesson), solved)[1]]


OXYGEN = {
    "options": [
        {"text": "at the end of the chain", "why": "Oxygen takes up the electrons."},
        {"text": "in the matrix of the cell", "why": "You took another gas."},
        {"text": "at the start of the chain", "why": "You turned it round."},
    ],
    "working": ["Follow the electrons."],
    "ask": "Where is oxygen used?",
}


def test_the_text_of_a_choice_counts_where_its_number_is_another() -> None:
    told = [compared(OXYGEN, {"answer": "at the end of the chain", "options": [n]}) for n in (1, 2, 3)]
    assert told == [[], [], []]
    assert all(compared(OXYGEN, {"answer": "in the matrix of the cell", "options": [n]}) for n in (1, 2, 3))
    assert compared(OXYGEN, {"answer": "at the end of the chain", "options": [1, 2]})


LINE = {
    "expression": "9*25/5",
    "answer": "45",
    "working": ["Find the constant.\n\\(\\frac{25}{5}=5\\)", "Put in 9 for x.\n\\(y=5\\times 9=45\\)"],
    "marks": ["writes the equation\n\\(y=5x\\)", "multiplies the constant by 9"],
    "ask": "Here \\(y=25\\) when \\(x=5\\). Write its equation, and find \\(y\\) for \\(x=9\\).",
}


@pytest.mark.parametrize(
    ("answer", "agrees"), [("y = 5x; y = 45", True), ("45", True), ("y = 6x; y = 45", False), ("y = 5x; y = 40", False)]
)
def test_what_the_lines_show_may_stand_before_an_answer(answer: str, agrees: bool) -> None:
    assert (not compared(LINE, {"answer": answer})) is agrees
