"""Formulas in words: what a screen reader says of a worksheet's mathematics."""

from __future__ import annotations

import pytest

from pipeline.formulas.spoken import words


@pytest.mark.parametrize(
    ("tex", "said"),
    [
        (r"x^2+3", "x squared plus 3"),
        (r"\frac{3}{4}", "3 quarters"),
        (r"\frac{1}{2}mv^2", "1 half m v squared"),
        (r"2\frac{3}{2}", "2 and 3 halves"),
        (r"\frac{18}{25}", "18 over 25"),
        (r"\frac{x+1}{2}", "the fraction x plus 1, over 2, end fraction"),
        (r"5\sqrt{2}", "5 times the square root of 2"),
        (r"\sqrt{x+1}", "the square root of x plus 1, end root"),
        (r"\sqrt[3]{8}", "the cube root of 8"),
        (r"10^{-3}", "10 to the power minus 3"),
        (r"x^{m+1}", "x to the power m plus 1, end power"),
        (r"x_1^2", "x sub 1 squared"),
        (r"5-(-3)", "5 minus open bracket minus 3 close bracket"),
        (r"\left|x\right|", "the absolute value of x, end"),
        (r"£1,250.50", "1,250.50 pounds"),
        (r"\sin 30^\circ", "sine 30 degrees"),
        (r"\log_2 8", "log to the base 2 of 8"),
        (r"\vec{v}", "vector v"),
        (r"3\,\text{m s}^{-1}", "3 m s to the power minus 1"),
        (r"\sum_{i=1}^{n} i", "the sum from i equals 1 to n of i"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "the 2 by 2 matrix, row 1: 1, 2; row 2: 3, 4; end matrix"),
        (r"\begin{aligned}x&=1\\y&=2\end{aligned}", "x equals 1; y equals 2"),
    ],
)
def test_a_formula_is_said_in_words(tex: str, said: str) -> None:
    assert words(tex) == said


def test_what_is_no_formula_is_returned_as_typed() -> None:
    assert words(r"\input{secrets}") == r"\input{secrets}"
