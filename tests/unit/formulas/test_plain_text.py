"""Formulas as lines of characters."""

from __future__ import annotations

import pytest

from pipeline.formulas.plain_text import formula, plain


@pytest.mark.parametrize(
    ("tex", "line"),
    [
        ("x^2+3x-4=0", "x² + 3x − 4 = 0"), (r"\frac{a+1}{b}", "(a + 1)/b"), (r"\frac{2x}{3y}", "2x/(3y)"),
        (r"\frac{1}{x^2}", "1/x²"), (r"\sqrt{2x}", "√(2x)"), (r"\sqrt{50}", "√50"), (r"\sqrt[3]{8}", "³√8"),
        (r"2\frac{1}{2}", "2 1/2"), (r"x^{-\frac{1}{2}}", "x^(−1/2)"), ("2^{n+1}", "2ⁿ⁺¹"), ("x_1", "x₁"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(1, 2; 3, 4)"), (r"\sin^2\theta", "sin² θ"),
        (r"5\times10^{-3}", "5 × 10⁻³"), ("f(x)=-x", "f(x) = −x"), (r"\int_0^1 x\,dx", "∫₀¹ x dx"),
        (r"30^\circ", "30°"), (r"20\%-x", "20% − x"), (r"\overrightarrow{AC}-\vec{b}", "A⃗C⃗ − b⃗"),
        (r"\left|x\right|", "|x|"), (r"\text{area} = 5\text{ cm}^2", "area = 5 cm²"),
        (r"\foo", r"\foo"),
    ],
)  # fmt: skip
def test_formula_is_a_line_of_characters(tex: str, line: str) -> None:
    assert formula(tex) == line


def test_words_stay() -> None:
    assert plain(r"Work out \(3^2\) for £5 *now*.") == "Work out 3² for £5 *now*."
