"""Rows 5, 6 and 15: answers of every kind, right and wrong."""

from __future__ import annotations

import copy

import pytest

from pipeline.lessons.checks import check_lesson
from tests.checking import (
    ENTRY,
    Json,
    algebra,
    course,
    equation,
    found,
    fresh,
    geometry,
    item_of,
    numeric,
    science,
    statistics,
    surd,
    vector,
    with_answer,
)


@pytest.fixture
def lesson() -> Json:
    """A good lesson, to be spoilt."""
    return fresh()


GOOD = [
    numeric(),
    numeric(value="6.7", rounding={"kind": "sf", "amount": 2}, shown="6.7 cm"),
    numeric(tolerance="0.005"),
    numeric(expression="20*3", value="60", rounding={"kind": "exact", "amount": 0}, shown="60 cm"),
    statistics(),
    statistics(quantity="standard_deviation", value="2.99", rounding={"kind": "dp", "amount": 2}, shown="2.99"),
    geometry(),
    geometry(sides=["3", "4", "5"], angles=[], expression="1/2*3*4", value="6"),
    vector(),
    science(),
    equation(),
    equation(equations=["x^2 - 3*x + 1 = 0"], low="", high="", rounding={"kind": "dp", "amount": 2},
             roots=[{"values": ["0.38"]}, {"values": ["2.62"]}]),
    equation(kind="system", equations=["x + y = 5", "x - y = 1"], variables=["x", "y"], low="", high="",
             roots=[{"values": ["3", "2"]}]),
    algebra(),
    algebra(from_expression="(x + 1)*(x + 2)", variables=["x"], form="expanded", subject="", answer="x^2 + 3*x + 2"),
    surd(),
]  # fmt: skip
BAD = [
    (numeric(value="6.66"), "6.67"),
    (numeric(expression="20/"), "cannot be evaluated"),
    (numeric(expression="__import__('os')"), "cannot be evaluated"),
    (numeric(expression="9^9^9^9"), "cannot be evaluated"),
    (numeric(value="6.6", tolerance="0.5"), "more than half the last place"),
    (numeric(expression="20*3", value="60", tolerance="1", rounding={"kind": "exact", "amount": 0}), "tolerance"),
    (statistics(value="4.5"), "gives 5"),
    (geometry(value="17.5"), "gives 8.75"),
    (geometry(sides=["3", "4", "9"], angles=[], expression="1/2*3*4", value="6"), "no triangle"),
    (geometry(angles=["90", "60", "40"]), "sum to 190"),
    (vector(values=["2", "7"]), "7, but 4 + 2 gives 6"),
    (vector(values=["2"], expressions=["3 - 1", "4 + 2"]), ""),
    (science(value="11"), "gives 13"),
    (science(expression="3 + 2*6", value="15"), "do not satisfy"),
    (equation(roots=[{"values": ["30"]}]), "150"),
    (equation(roots=[{"values": ["30"]}, {"values": ["151"]}]), "does not solve"),
    (equation(roots=[{"values": ["30"]}, {"values": ["390"]}]), "above 360"),
    (equation(equations=["x^2 - 3*x + 1 = 0"], low="", high="", rounding={"kind": "dp", "amount": 2},
              roots=[{"values": ["0.39"]}, {"values": ["2.62"]}]), "does not solve"),
    (equation(kind="system", equations=["x + y = 5", "x - y = 1"], variables=["x", "y"], low="", high="",
              roots=[{"values": ["4", "1"]}]), "does not solve x - y = 1"),
    (algebra(answer="(u - v)/a"), "does not satisfy"),
    (algebra(from_expression="(x + 1)^2", variables=["x"], form="expanded", subject="", answer="x^2 + 1"), "not equal"),
    (surd(value="25*sqrt(2)"), "not equal"),
]  # fmt: skip


@pytest.mark.parametrize("value", GOOD, ids=lambda value: value["kind"])
def test_check_5_reproduces_right_answers(lesson: Json, value: Json) -> None:
    assert found(with_answer(lesson, value), 5) == []


@pytest.mark.parametrize(("value", "said"), BAD, ids=[f"{value['kind']}-{said}" for value, said in BAD])
def test_check_5_blocks_wrong_answers(lesson: Json, value: Json, said: str) -> None:
    findings = check_lesson(with_answer(lesson, value), entry=ENTRY, course=course())
    assert any(f.check in (1, 5) and f.severity in "BR" and said in f.found for f in findings)


def test_check_6_calculation_belongs_to_the_question(lesson: Json) -> None:
    assert found(with_answer(copy.deepcopy(lesson), numeric()), 6) == []
    (stranger,) = found(with_answer(copy.deepcopy(lesson), numeric(expression="23*17 - 371 - 40/3", value="6.67")), 6)
    assert "23, 17, 371, 40" in stranger.found
    bare = with_answer(lesson, numeric(expression="20", value="20", rounding={"kind": "exact", "amount": 0}))
    (finding,) = found(bare, 6)
    assert "whole calculation" in finding.wanted


def test_check_6_knows_percentages_and_numbers_in_words(lesson: Json) -> None:
    spoilt = with_answer(
        lesson, numeric(expression="20*(1 - 0.05)*6", value="114", rounding={"kind": "exact", "amount": 0})
    )
    item = item_of(spoilt, "numeric")
    item["stem"] = "Six tents at 20 pounds are reduced by 5 %. Calculate the price of all of them in cm."
    assert found(spoilt, 6) == []


@pytest.mark.parametrize(
    "value",
    [
        algebra(from_expression="x*(x + 2)", variables=["x"], form="expanded", subject="", answer="x*(x + 2)"),
        algebra(from_expression="x^2 - 1", variables=["x"], form="factorised", subject="", answer="x^2 - 1"),
        surd(value="sqrt(50)"),
        surd(kind="fraction", expression="3/4", value="6/8", form="lowest_terms"),
    ],
)  # fmt: skip
def test_check_15_equal_is_not_enough(lesson: Json, value: Json) -> None:
    spoilt = with_answer(lesson, value)
    assert found(spoilt, 5) == []
    assert [finding.severity for finding in found(spoilt, 15)] == ["R"]
