"""Forms of answers, equality of expressions, solutions of equations."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipeline.lessons.algebra import equal_expressions, equation_fault, expected_roots, inequality_fault, polynomial
from pipeline.lessons.data_summary import summarise
from pipeline.lessons.expressions import EvaluationError, parse
from pipeline.lessons.forms import FORMS, form_fault

GOOD = [
    ("lowest_terms", "-3/4"),
    ("lowest_terms", "5"),
    ("mixed_number", "2 + 1/3"),
    ("mixed_number", "3/4"),
    ("simplest", "3*sqrt(2)"),
    ("simplest", "3*sqrt(2)/2"),
    ("simplest", "2 + 3*sqrt(5)"),
    ("simplest", "7"),
    ("rational_denominator", "sqrt(8)/2"),
    ("expanded", "x^2 + 3*x + 2"),
    ("expanded", "-3*x^2 - 7"),
    ("factorised", "(x + 1)*(x + 2)"),
    ("factorised", "4*x*(x - 3)"),
    ("factorised", "(x + 2)^2"),
    ("factorised", "3*(x + 2)*(x - 2)"),
    ("completed_square", "(x + 3)^2 - 4"),
    ("completed_square", "(x - 5/2)^2 + 1/4"),
    ("completed_square", "2*(x - 1)^2"),
    ("single_fraction", "(x + 1)/(x*(x + 2))"),
    ("scientific", "3.2*10^-4"),
    ("single_power", "x^5"),
    ("positive_powers", "1/x^2"),
    ("subject", "x + 1"),
    ("any", "x*x + x"),
]
BAD = [
    ("lowest_terms", "6/8"),
    ("lowest_terms", "0.75"),
    ("lowest_terms", "3/4 + 0"),
    ("mixed_number", "7/3"),
    ("mixed_number", "2 + 2/6"),
    ("simplest", "3*sqrt(8)"),
    ("simplest", "sqrt(2)*sqrt(3)"),
    ("simplest", "sqrt(2) + sqrt(2)"),
    ("simplest", "1/sqrt(2)"),
    ("simplest", "2*(1 + sqrt(3))"),
    ("simplest", "sqrt(49)"),
    ("rational_denominator", "4/sqrt(2)"),
    ("expanded", "x^2 + x + 2*x"),
    ("expanded", "2*(x + 1)"),
    ("factorised", "x^2 - 1"),
    ("factorised", "3*(x^2 - 1)"),
    ("factorised", "(2*x + 2)*(x - 3)"),
    ("factorised", "6*x^2 + 9*x"),
    ("factorised", "3*(2*x^2 + 3*x)"),
    ("completed_square", "x^2 + 6*x + 5"),
    ("completed_square", "(x + 3)^2 + x"),
    ("single_fraction", "1/x + 2"),
    ("single_fraction", "1/(1/x)"),
    ("scientific", "32*10^4"),
    ("single_power", "x^2*x"),
    ("positive_powers", "x^-2"),
    ("positive_powers", "x*x"),
]


@pytest.mark.parametrize(("form", "text"), GOOD)
def test_form_is_recognised(form: str, text: str) -> None:
    assert form_fault(form, text, ["x"]) is None


@pytest.mark.parametrize(("form", "text"), BAD)
def test_form_that_is_not_met_is_explained(form: str, text: str) -> None:
    assert form_fault(form, text, ["x"])


def test_form_table_is_tried_on_both_sides() -> None:
    without_fault = {"any", "subject"}
    assert {form for form, _ in GOOD} == set(FORMS)
    assert {form for form, _ in BAD} == set(FORMS) - without_fault


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("(x + 1)^2", "x^2 + 2*x + 1", True),
        ("(x^2 - 1)/(x - 1)", "x + 1", True),
        ("sqrt(x^2)", "x", False),
        ("(2*x)^3", "2*x^3", False),
        ("x^-2", "1/x^2", True),
        ("sqrt(12)", "2*sqrt(3)", True),
        ("sin(x)^2 + cos(x)^2", "1", True),
        ("sin(x)/cos(x)", "tan(x)", True),
    ],
)
def test_expressions_are_equal_at_sample_points_or_not(left: str, right: str, equal: bool) -> None:
    assert equal_expressions(left, right, ["x"]) is equal


def test_expressions_with_too_few_values_are_refused() -> None:
    with pytest.raises(EvaluationError, match="too few"):
        equal_expressions("sqrt(-1 - x^2)", "x", ["x"])


@pytest.mark.parametrize(
    ("equation", "roots", "fault"),
    [
        ("x^2 - 5*x + 6 = 0", ["2", "3"], None),
        ("x^2 - 5*x + 6 = 0", ["2"], "2 different"),
        ("x^2 - 5*x + 6 = 0", ["2", "4"], "does not solve"),
        ("x^2 - 5*x + 6 = 0", ["2", "4/2"], "twice"),
        ("x^2 - 6*x + 9 = 0", ["3"], None),
        ("x^2 + 1 = 0", [], None),
        ("x^2 + 2*x - 5 = 0", ["-1 + sqrt(6)", "-1 - sqrt(6)"], None),
        ("1/(x - 2) = 1/(x - 2)", ["2"], "undefined"),
    ],
)
def test_solutions_are_substituted_and_counted(equation: str, roots: list[str], fault: str | None) -> None:
    found = equation_fault(equation, "x", roots)
    assert found is None if fault is None else found and fault in found


def test_number_of_solutions_is_open_above_degree_two() -> None:
    assert expected_roots("x^3 = 8", "x") is None
    assert expected_roots("3*x + 1 = 7", "x") == 1


@pytest.mark.parametrize(
    ("relation", "sign", "boundary", "right"),
    [
        ("3 - 2*x < 7", ">", "-2", True),
        ("3 - 2*x < 7", "<", "-2", False),
        ("3 - 2*x <= 7", ">", "-2", False),
        ("4*x + 1 >= 2*x + 8", ">=", "7/2", True),
        ("4*x + 1 >= 2*x + 8", ">=", "3", False),
    ],
)
def test_inequality_is_tested_on_both_sides_of_its_boundary(
    relation: str, sign: str, boundary: str, right: bool
) -> None:
    assert (inequality_fault(relation, "x", sign, boundary) is None) is right


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("mean", Fraction(4)),
        ("median", Fraction(4)),
        ("lower_quartile", Fraction(2)),
        ("upper_quartile", Fraction(6)),
        ("interquartile_range", Fraction(4)),
        ("range", Fraction(6)),
    ],
)
def test_statistics_use_halves_without_the_median(quantity: str, value: Fraction) -> None:
    assert summarise(quantity, [Fraction(n) for n in (7, 1, 3, 5, 2, 6, 4)]) == value


def test_standard_deviation_divides_by_one_less() -> None:
    assert summarise("standard_deviation", [Fraction(n) for n in (2, 4, 6)]) == 2


def test_mode_must_be_single() -> None:
    assert summarise("mode", [Fraction(n) for n in (1, 2, 2)]) == 2
    with pytest.raises(EvaluationError):
        summarise("mode", [Fraction(1), Fraction(2)])


def test_polynomials_are_bounded() -> None:
    with pytest.raises(EvaluationError, match="degree"):
        polynomial(parse("(x + y)^13", ["x", "y"]))
