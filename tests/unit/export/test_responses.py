"""How a question is answered at a computer: what is compared as a number, what as a line, what a teacher reads."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.export.responses import CHOICE, ESSAY, NUMBER, SHORT, Response, responses
from pipeline.publish.questions import ShownQuestion
from tests.publishing import Json, item, items


def found(answer: str, ask: str = "Work it out.", **fields: Any) -> Response:
    [response] = responses(shown(item(answer, ask=ask, **fields)))
    return response


def shown(made: Json) -> ShownQuestion:
    return ShownQuestion(1, "c1.q1", made, {"kind": "check"}, {}, False)


@pytest.mark.parametrize(
    ("answer", "ask", "number", "tolerance", "unit"),
    [
        ("60 cm", "Find the length.", "60", "0", "cm"),
        ("£11.25", "Find the cost.", "11.25", "0", "£"),
        ("$1,250.50", "Find the cost.", "1250.5", "0", "$"),
        ("80,000 cm³", "Find the volume.", "80000", "0", "cm³"),
        ("−3", "Find the sum.", "-3", "0", ""),
        (r"\(x = 5\)", "Solve the equation.", "5", "0", ""),
        ("2.3 m s⁻²", "Give your answer to 2 significant figures.", "2.3", "0.05", "m s⁻²"),
        ("13,000 J", "Give your answer to 2 significant figures.", "13000", "500", "J"),
        ("6.08 m", "Find it in metres, to 2 decimal places.", "6.08", "0.005", "m"),
        ("£131.89", "Find it to the nearest penny.", "131.89", "0.005", "£"),
        ("4600", "Find it to the nearest hundred.", "4600", "50", ""),
        # The number of the question would be within the tolerance.
        ("60,000", "Round 59,886 to 2 significant figures.", "60000", "0", ""),
        ("25 pupils", "How many pupils are there?", "25", "0", "pupils"),
    ],
)
def test_number_has_the_tolerance_of_the_rounding(
    answer: str, ask: str, number: str, tolerance: str, unit: str
) -> None:
    response = found(answer, ask)
    assert (response.kind, response.number, response.tolerance, response.unit) == (NUMBER, number, tolerance, unit)


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("8.00 kg", ["8.00", "8.00 kg", "8.00kg", "8", "8 kg", "8kg"]),
        ("£24", ["24", "£24", "24.00", "£24.00"]),
        ("$24", ["24", "$24", "24.00", "$24.00"]),
        ("1250", ["1250", "1,250"]),
        ("-£1250.50", ["-1250.50", "-£1250.50", "-1250.5", "-£1250.5", "-1,250.50", "-£1,250.50", "-1,250.5"]),
    ],
)
def test_number_may_be_written_in_the_usual_ways(answer: str, accepted: list[str]) -> None:
    assert list(found(answer).accepted)[: len(accepted)] == accepted


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (r"\(\frac{7}{12}\)", ["7/12"]),
        (r"\(5\frac{29}{30}\) m", ["5 29/30", "5 29/30 m"]),
        (r"\(4\sqrt{3}\)", ["4√3", "4sqrt(3)"]),
        (r"\(\frac{3\sqrt{2}}{2}\)", ["3√2/2", "3sqrt(2)/2"]),
        (r"\(3x^2 + 5\)", ["3x^2 + 5", "3x^2+5", "3x² + 5", "3x²+5"]),
        (r"\(x^{\frac{9}{5}}\)", ["x^(9/5)"]),
        (r"\(2x^{-8}\)", ["2x^-8", "2x⁻⁸"]),
        (r"\((x-3)(x+3)\)", ["(x - 3)(x + 3)", "(x-3)(x+3)"]),
        (r"\(4.1 \times 10^{22}\)", ["4.1 × 10^22", "4.1×10^22", "4.1 x 10^22"]),
        (r"\(x \geq 3\)", ["x >= 3", "x>=3", "x ≥ 3", "x≥3"]),
        (r"\(x = 2\) or \(x = 3\)", ["x = 2 or x = 3", "2, 3", "2,3", "2 or 3", "2 and 3", "3, 2"]),
        ("1066, 1215, 1381", ["1066, 1215, 1381", "1066,1215,1381", "1066 1215 1381"]),
        ("(−2, 5)", ["(-2, 5)", "(-2,5)"]),
        ("a scattergraph", ["a scattergraph", "scattergraph"]),
        ("at Stamford Bridge", ["at Stamford Bridge", "Stamford Bridge"]),
        ("Harold Godwinson", ["Harold Godwinson"]),
    ],
)
def test_line_may_be_typed_in_the_usual_ways(answer: str, accepted: list[str]) -> None:
    response = found(answer)
    assert response.kind == SHORT
    assert list(response.accepted)[: len(accepted)] == accepted


def test_other_words_are_accepted_where_they_are_few() -> None:
    response = found("Edinburgh.", more=["accept: Dunedin", "accept: the town that has the castle on the rock"])
    assert response.accepted == ("Edinburgh", "Dunedin")


@pytest.mark.parametrize(
    ("answer", "ask"),
    [
        ("It has no square factor at all.", "Why is it simple?"),
        (r"\(\sqrt[3]{x}\)", "Write it as a root."),
        ("25", r"Show that \(5^2\) is 25."),
        ("(2, 3)", "Plot the point."),
        ("James VI", "Name the king and give a reason."),
    ],
)
def test_what_code_cannot_judge_is_for_the_teacher(answer: str, ask: str) -> None:
    assert found(answer, ask).kind == ESSAY


def test_every_part_has_its_own_and_a_choice_is_one() -> None:
    kinds = [[response.kind for response in responses(shown(made))] for made in items()]
    assert kinds[6] == [CHOICE]
    assert kinds[8] == [SHORT, ESSAY]


def test_what_is_put_in_order_is_right_in_that_order_only() -> None:
    response = found("1066, 1215, 1381", "Put these years in order: 1215, 1066, 1381.")
    assert not [way for way in response.accepted if not way.startswith("1066")]
    assert "comma" in response.note
    assert "x^2" not in response.note


def test_typing_is_told_the_same_whatever_the_answer() -> None:
    assert found(r"\(4\sqrt{3}\)").note == found(r"\(\frac{7}{12}\)").note != ""
    assert found("24°").note == "Type the number only, in degrees."
