"""What somebody who solves a lesson without its keys is shown."""

from __future__ import annotations

import pytest

from pipeline.content.lesson import Lesson
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
