"""Calculations in the language of expressions, printed as people write them."""

from __future__ import annotations

import pytest

from pipeline.maths.calculations import calculation_tex
from pipeline.maths.evaluation import EvaluationError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*sqrt(50)", r"2\sqrt{50}"), ("6*(2*x^2 + (-9)*x)", "6(2x^{2} - 9x)"), ("18/6", r"\frac{18}{6}"),
        ("5*(2^2*x^2 - 3^2)", "5(4x^{2} - 9)"), ("x^2 - (-6)*x + 8 = 0", "x^{2} + 6x + 8 = 0"),
        ("(x + 3)*(x + (-5)) = 0", "(x + 3)(x - 5) = 0"), ("1*x^2 + 12*x", "x^{2} + 12x"),
        ("2 < x <= 5", r"2 < x \le 5"), ("x = 2; y = 3*x", "x = 2, y = 3x"),
        ("3*4", r"3 \times 4"), ("2*-3", "2(-3)"), ("-2*x", "-2x"), ("a - (b + c)", "a - (b + c)"),
        ("(2/3)*x", r"\frac{2}{3}x"), ("2*3^2", r"2 \times 3^{2}"), ("(-5)^2", "(-5)^{2}"),
        ("20000*1.05", r"20{,}000 \times 1.05"), ("4*pi*r^2", r"4\pi r^{2}"), ("root(27, 3)", r"\sqrt[3]{27}"),
        ("roots(x^2 - 4, x)", "x^{2} - 4 = 0"), ("(3, -2)", "(3, -2)"), ("mean(3, 5)", r"\text{mean}(3, 5)"),
        ("part_a*60", r"\text{(a)} \times 60"),
        ("x^(3/2)", r"x^{\frac{3}{2}}"), ("5*sin(40)/sin(60)", r"\frac{5 \times \sin(40)}{\sin(60)}"),
    ],
)  # fmt: skip
def test_a_calculation_stays_one(text: str, shown: str) -> None:
    assert calculation_tex(text) == shown


@pytest.mark.parametrize("text", ["2x", "a if b else c", "x and y", "lambda: 1", ""])
def test_what_is_no_calculation(text: str) -> None:
    with pytest.raises(EvaluationError):
        calculation_tex(text)
