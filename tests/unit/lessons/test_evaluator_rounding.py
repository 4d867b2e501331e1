"""How values are printed: half up, in decimal."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from pipeline.lessons.expressions import EvaluationError, evaluate
from pipeline.lessons.rounding import agrees, last_place, read_printed, round_half_up, show


def rule(kind: str, amount: int = 0) -> dict[str, Any]:
    return {"kind": kind, "amount": amount}


@pytest.mark.parametrize(
    ("text", "kind", "amount", "printed"),
    [
        ("0.125", "dp", 2, "0.13"),
        ("1.005", "dp", 2, "1.01"),
        ("2.5", "dp", 0, "3"),
        ("-2.5", "dp", 0, "-3"),
        ("2/3", "dp", 3, "0.667"),
        ("9.96", "sf", 2, "10"),
        ("0.00996", "sf", 2, "0.010"),
        ("48362", "sf", 2, "48000"),
        ("0", "sf", 3, "0"),
        ("12345", "nearest", 100, "12300"),
        ("12350", "nearest", 100, "12400"),
        ("sqrt(2)", "dp", 4, "1.4142"),
        ("pi", "sf", 3, "3.14"),
        ("1.045*100", "money", 0, "104.50"),
    ],
)
def test_rounding_is_half_up(text: str, kind: str, amount: int, printed: str) -> None:
    assert round_half_up(evaluate(text), rule(kind, amount)) == Decimal(printed)
    assert f"{round_half_up(evaluate(text), rule(kind, amount)):f}" == printed


def test_rounding_trusts_no_noise_of_a_float() -> None:
    # sin(30.0) by way of a float would give 0.49999999999999994.
    assert round_half_up(0.49999999999999994, rule("dp", 0)) == Decimal(1)


@pytest.mark.parametrize(("kind", "amount"), [("dp", -1), ("sf", 0), ("nearest", 0), ("banker", 2), ("dp", 99)])
def test_rounding_refuses_unknown_rules(kind: str, amount: int) -> None:
    with pytest.raises(EvaluationError):
        round_half_up(Fraction(1), rule(kind, amount))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("£1,250.00", Fraction(1250)),
        ("−3.5", Fraction(-7, 2)),
        ("-£3.50", Fraction(-7, 2)),
        ("7/8", Fraction(7, 8)),
        ("2 1/3", Fraction(7, 3)),
        ("12,300", Fraction(12300)),
    ],
)
def test_printed_numbers_are_read(text: str, value: Fraction) -> None:
    assert read_printed(text) == value


@pytest.mark.parametrize("text", ["", "5 cm", "1/0", "x", "1.2.3", "1,25", "9" * 40])
def test_printed_numbers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(EvaluationError):
        read_printed(text)


def test_printed_answer_must_be_the_rounded_value() -> None:
    assert agrees("3.14", evaluate("pi"), rule("sf", 3))
    assert not agrees("3.15", evaluate("pi"), rule("sf", 3))
    assert agrees("3.15", evaluate("pi"), rule("sf", 3), Fraction(1, 100))


@pytest.mark.parametrize(
    ("printed", "kind", "amount", "place"),
    [
        ("3.14", "dp", 2, Fraction(1, 100)),
        ("12300", "sf", 3, Fraction(100)),
        ("40", "nearest", 10, Fraction(10)),
        ("7", "exact", 0, Fraction(0)),
    ],
)
def test_last_place_is_what_the_answer_shows(printed: str, kind: str, amount: int, place: Fraction) -> None:
    assert last_place(printed, rule(kind, amount)) == place


def test_values_are_shown_as_people_write_them() -> None:
    assert show(evaluate("1250"), rule("money")) == "£1,250.00"
    assert show(evaluate("12345.6"), rule("sf", 3)) == "12,300"
    assert show(Fraction(2, 3), rule("exact")) == "2/3"
    assert show(Fraction(7, 4), rule("exact")) == "1.75"
    with pytest.raises(EvaluationError):
        show(evaluate("sqrt(2)"), rule("exact"))
