"""The evaluator: exact values, what it refuses, how values are printed, forms of answers, equality."""

from __future__ import annotations

import os
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lessons.algebra import equal_expressions, expected_roots, inequality_fault, polynomial
from pipeline.lessons.data_summary import summarise
from pipeline.lessons.expressions import EvaluationError, Surd, UndefinedValue, approximate, evaluate, parse, same
from pipeline.lessons.forms import FORMS, form_fault
from pipeline.lessons.rounding import agrees, last_place, read_printed, round_half_up


def test_evaluator_gives_exact_values() -> None:
    for text, value in (
        ("0.1 + 0.2", Fraction(3, 10)), ("2 + 3*4", 14), ("2^3^2", 512), ("-3^2", -9), ("(-3)^2", 9),
        ("7/8 - 1/2", Fraction(3, 8)), ("2^-3", Fraction(1, 8)), ("8^(2/3)", 4), ("(-8)^(1/3)", -2), ("sqrt(49)", 7),
        ("sqrt(8)*sqrt(2)", 4), ("(sqrt(5) - 1)*(sqrt(5) + 1)", 4), ("sqrt(9/4)", Fraction(3, 2)),
        ("sin(30)", Fraction(1, 2)), ("cos(120)", Fraction(-1, 2)), ("tan(45)", 1), ("sin(390)", Fraction(1, 2)),
        ("3 × 4 − 6 ÷ 2", 9), ("sqrt(50)", Surd(((2, Fraction(5)),))), ("1/sqrt(3)", Surd(((3, Fraction(1, 3)),))),
        ("1/(sqrt(3) + 1)", Surd(((1, Fraction(-1, 2)), (3, Fraction(1, 2))))),
        ("sin(60)", Surd(((3, Fraction(1, 2)),))),
    ):  # fmt: skip
        assert evaluate(text) == value, text
    assert approximate(evaluate("sin(50)")) == pytest.approx(0.766044443)
    assert approximate(evaluate("2*pi")) == pytest.approx(6.283185307)
    assert evaluate("u + a*t", {"u": Fraction(2), "a": Fraction(3), "t": Fraction(1, 2)}) == Fraction(7, 2)


REFUSED = [
    ("2x", "not a known name"), ("2(3)", "write a product with"), ("(1)(2)", "write a product with"),
    ("__import__('os')", "not allowed"), ("().__class__", "not allowed"), ("[1, 2]", "not allowed"),
    ("lambda: 1", "not a known name"), ("1e9", "not a known name"), ("1 if 1 else 2", "not a known name"),
    ("1,250", "not allowed"), ("sqrt", "not allowed"), ("sqrt(2", "not an expression"), ("   ", "empty"),
    ("9^9^9^9", "above 64"), ("2^65", "above 64"), ("2^-65", "above 64"), ("2^(1/65)", "above 64"),
    ("2^sqrt(2)", "fraction or a whole number"), ("(2^64)^64*2", "bits"), ("1" + "+1" * 200, "more than 120 parts"),
    ("(" * 300 + "1", "not an expression"), ("1" * 1_001, "at most 1000 characters"),
]  # fmt: skip


def test_evaluator_refuses_with_a_reason_and_tells_poles_from_refusals() -> None:
    for text, said in REFUSED:
        with pytest.raises(EvaluationError, match=said) as caught:
            evaluate(text)
        assert not isinstance(caught.value, UndefinedValue), text
    for text in ("1/0", "1/(2 - 2)", "sqrt(-1)", "tan(90)", "0^-1", "(-4)^(1/2)"):
        with pytest.raises(UndefinedValue):
            evaluate(text)
    with pytest.raises(EvaluationError, match="x"):
        evaluate("x + 1", {"y": Fraction(1)})


_PIECES = [
    "1", "2", "9", "0.5", "x", "pi", "sqrt", "sin", "(", ")", "+", "-", "*", "/", "^", "**", " ", ".", "_", "__", "e",
    "[", "]", "{", "'", "os", "import", "eval", ":", "=", ",", "²", "√", "\n", "\\", "lambda", "if", "9^9",
]  # fmt: skip


@settings(max_examples=150, deadline=2_000)
@given(st.one_of(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join), st.text(max_size=60)))
def test_evaluator_answers_or_refuses_any_text_and_never_runs_it(text: str) -> None:
    before = dict(os.environ)
    try:
        value = evaluate(text, {"x": Fraction(2, 3)})
    except EvaluationError:
        value = None
    assert value is None or isinstance(value, Fraction | Surd | float)
    assert dict(os.environ) == before


_NUMBERS = st.fractions(min_value=-50, max_value=50, max_denominator=40)


@settings(max_examples=80)
@given(_NUMBERS, _NUMBERS, st.sampled_from("+-*/"), st.integers(0, 10**9))
def test_evaluator_agrees_with_fractions_and_squares_its_roots_back(
    left: Fraction, right: Fraction, sign: str, whole: int
) -> None:
    text = f"({left.numerator}/{left.denominator}) {sign} ({right.numerator}/{right.denominator})"
    if sign == "/" and right == 0:
        with pytest.raises(UndefinedValue):
            evaluate(text)
    else:
        expected = {"+": left + right, "-": left - right, "*": left * right}.get(sign)
        assert evaluate(text) == (left / right if expected is None else expected)
    assert same(evaluate(f"sqrt({whole})^2"), Fraction(whole))


# --- printed values ------------------------------------------------------------------------------


def rule(kind: str, amount: int = 0) -> dict[str, Any]:
    return {"kind": kind, "amount": amount}


def test_rounding_is_half_up() -> None:
    for text, kind, amount, printed in (
        ("0.125", "dp", 2, "0.13"), ("1.005", "dp", 2, "1.01"), ("2.5", "dp", 0, "3"), ("-2.5", "dp", 0, "-3"),
        ("2/3", "dp", 3, "0.667"), ("9.96", "sf", 2, "10"), ("0.00996", "sf", 2, "0.010"), ("48362", "sf", 2, "48000"),
        ("0", "sf", 3, "0"), ("12345", "nearest", 100, "12300"), ("12350", "nearest", 100, "12400"),
        ("sqrt(2)", "dp", 4, "1.4142"), ("pi", "sf", 3, "3.14"), ("1.045*100", "money", 0, "104.50"),
    ):  # fmt: skip
        assert f"{round_half_up(evaluate(text), rule(kind, amount)):f}" == printed
    # sin(30.0) by way of a float would give 0.49999999999999994.
    assert round_half_up(0.49999999999999994, rule("dp", 0)) == Decimal(1)
    for kind, amount in (("dp", -1), ("sf", 0), ("nearest", 0), ("banker", 2), ("dp", 99)):
        with pytest.raises(EvaluationError):
            round_half_up(Fraction(1), rule(kind, amount))


def test_printed_numbers_are_read_or_refused() -> None:
    for text, value in (
        ("£1,250.00", Fraction(1250)), ("−3.5", Fraction(-7, 2)), ("-£3.50", Fraction(-7, 2)), ("7/8", Fraction(7, 8)),
        ("2 1/3", Fraction(7, 3)), ("12,300", Fraction(12300)),
    ):  # fmt: skip
        assert read_printed(text) == value
    for text in ("", "5 cm", "1/0", "x", "1.2.3", "1,25", "9" * 40):
        with pytest.raises(EvaluationError):
            read_printed(text)


def test_printed_answer_must_be_the_rounded_value_to_its_last_place() -> None:
    assert agrees("3.14", evaluate("pi"), rule("sf", 3))
    assert not agrees("3.15", evaluate("pi"), rule("sf", 3))
    assert agrees("3.15", evaluate("pi"), rule("sf", 3), Fraction(1, 100))
    for printed, kind, amount, place in (
        ("3.14", "dp", 2, Fraction(1, 100)), ("12300", "sf", 3, 100), ("40", "nearest", 10, 10), ("7", "exact", 0, 0),
    ):  # fmt: skip
        assert last_place(printed, rule(kind, amount)) == place


# --- forms, equality, solutions ------------------------------------------------------------------

#: Form -> texts in that form; texts that are not.
_FORMS: dict[str, tuple[list[str], list[str]]] = {
    "lowest_terms": (["-3/4", "5"], ["6/8", "0.75", "3/4 + 0"]),
    "mixed_number": (["2 + 1/3", "3/4"], ["7/3", "2 + 2/6"]),
    "simplest": (["3*sqrt(2)", "3*sqrt(2)/2", "2 + 3*sqrt(5)", "7"],
                 ["3*sqrt(8)", "sqrt(2)*sqrt(3)", "sqrt(2) + sqrt(2)", "1/sqrt(2)", "2*(1 + sqrt(3))", "sqrt(49)"]),
    "rational_denominator": (["sqrt(8)/2"], ["4/sqrt(2)"]),
    "expanded": (["x^2 + 3*x + 2", "-3*x^2 - 7"], ["x^2 + x + 2*x", "2*(x + 1)"]),
    "factorised": (["(x + 1)*(x + 2)", "4*x*(x - 3)", "(x + 2)^2", "3*(x + 2)*(x - 2)"],
                   ["x^2 - 1", "3*(x^2 - 1)", "(2*x + 2)*(x - 3)", "6*x^2 + 9*x", "3*(2*x^2 + 3*x)"]),
    "completed_square": (["(x + 3)^2 - 4", "(x - 5/2)^2 + 1/4", "2*(x - 1)^2"], ["x^2 + 6*x + 5", "(x + 3)^2 + x"]),
    "single_fraction": (["(x + 1)/(x*(x + 2))"], ["1/x + 2", "1/(1/x)"]),
    "scientific": (["3.2*10^-4"], ["32*10^4"]),
    "single_power": (["x^5"], ["x^2*x"]),
    "positive_powers": (["1/x^2"], ["x^-2", "x*x"]),
    "subject": (["x + 1"], []),
    "any": (["x*x + x"], []),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_form_is_recognised_and_what_is_not_in_it_is_explained(form: str) -> None:
    good, bad = _FORMS[form]
    assert [text for text in good if form_fault(form, text, ["x"])] == []
    assert [text for text in bad if not form_fault(form, text, ["x"])] == []


def test_expressions_are_equal_at_sample_points_or_not() -> None:
    for left, right, equal in (
        ("(x + 1)^2", "x^2 + 2*x + 1", True), ("(x^2 - 1)/(x - 1)", "x + 1", True), ("sqrt(x^2)", "x", False),
        ("(2*x)^3", "2*x^3", False), ("x^-2", "1/x^2", True), ("sqrt(12)", "2*sqrt(3)", True),
        ("sin(x)^2 + cos(x)^2", "1", True), ("sin(x)/cos(x)", "tan(x)", True),
    ):  # fmt: skip
        assert equal_expressions(left, right, ["x"]) is equal, (left, right)
    with pytest.raises(EvaluationError, match="too few"):
        equal_expressions("sqrt(-1 - x^2)", "x", ["x"])
    with pytest.raises(EvaluationError, match="degree"):
        polynomial(parse("(x + y)^13", ["x", "y"]))


def test_number_of_solutions_is_open_above_degree_two() -> None:
    assert expected_roots("x^3 = 8", "x") is None
    assert expected_roots("3*x + 1 = 7", "x") == 1


def test_inequality_is_tested_on_both_sides_of_its_boundary() -> None:
    for relation, sign, boundary, right in (
        ("3 - 2*x < 7", ">", "-2", True), ("3 - 2*x < 7", "<", "-2", False), ("3 - 2*x <= 7", ">", "-2", False),
        ("4*x + 1 >= 2*x + 8", ">=", "7/2", True), ("4*x + 1 >= 2*x + 8", ">=", "3", False),
    ):  # fmt: skip
        assert (inequality_fault(relation, "x", sign, boundary) is None) is right, relation


def test_statistics_use_halves_without_the_median_and_one_less() -> None:
    for quantity, value in (("mean", 4), ("median", 4), ("lower_quartile", 2), ("upper_quartile", 6), ("range", 6),
                            ("interquartile_range", 4)):  # fmt: skip
        assert summarise(quantity, [Fraction(n) for n in (7, 1, 3, 5, 2, 6, 4)]) == value
    assert summarise("standard_deviation", [Fraction(n) for n in (2, 4, 6)]) == 2
    assert summarise("mode", [Fraction(n) for n in (1, 2, 2)]) == 2
    with pytest.raises(EvaluationError):
        summarise("mode", [Fraction(1), Fraction(2)])
