"""What is printed is read as it is meant, or not at all; hostile text neither runs nor hangs."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Integer, Rational, Symbol, latex, pi, sqrt, sstr

from pipeline.maths.notation import NotReadError, formulas, read, tree

READ = {
    r"\(3\sqrt{5}\)": "3*sqrt(5)",
    "£12.50": "25/2 £",
    "−£5": "-5 £",
    "75p": "75 p",
    "0.038 cm": "19/500 cm",
    r"\(2.0\times 10^9\) cubic metres": "2000000000 cubic metres",
    "2.5 × 10⁻⁸ m": "1/40000000 m",
    "9.8 m/s² downwards": "49/5 m/s²",
    r"\(9.8\text{ m s}^{-2}\)": "49/5 m s^{-2}",
    "x = 2 or x = −3": "x = 2; x = -3",
    r"\(x=3\pm\sqrt{2}\)": "x = sqrt(2) + 3; x = 3 - sqrt(2)",
    "(−2, 5)": "Matrix([[-2], [5]])",
    r"\(\begin{pmatrix}3\\-2\end{pmatrix}\)": "Matrix([[3], [-2]])",
    "20 %": "20 %",
    r"\(15\%\times 80=12\)": "12 = 12",
    r"\(1\frac{5}{6}\)": "11/6",
    "2 1/3": "7/3",
    "1½": "3/2",
    "1,250": "1250",
    r"\(28{,}000\)": "28000",
    "12 500": "12500",
    "1.2 million": "1200000",
    r"\(0.1\dot{6}\)": "1/6",
    r"\(0.\overline{27}\)": "3/11",
    "−2 < x ≤ 5": "-2 < x <= 5",
    "v = u + at": "v = a*t + u",
    r"\(\sin^{-1}(0.5)=30^\circ\)": "30 = 30 °",
    r"\(2\sin 30^\circ\cos 30^\circ\)": "sqrt(3)/2",
    r"\(\sin 2x^{\circ}\)": "sin(pi*x/90)",
    r"\(AC^2=AB^2+BC^2\)": "AC**2 = AB**2 + BC**2",
    r"\(V=IR\)": "V = I*R",
    r"\(f(3)=3^2-4=5\)": "f(3) = 5 = 5",
    r"\(F_{net}=ma\)": "Fnet = a*m",
    r"\(a=2 \text{ and } b=3\)": "a = 2; b = 3",
    "8 + 3t": "3*t + 8",
    "3:4": "3/4",
    r"\((-8)^{\frac{1}{3}}\)": "-2",
    "x^(3/2)": "x**(3/2)",
    "24 pupils": "24 pupils",
}
UNREAD = [
    "4 divides 20", "36 is not less than 10", "two real roots", "cosine", "a is 5", "20m", "x = 4s", "1 h 20 min",
    "0.333…", r"\(A(2,3)\)", r"\(\frac{1}{0}\)", r"\(\href{x}{y}\)", "9^9^9^9", "9^999999", "(" * 500, "sqrt(" * 60,
    "2^" * 200, "x" * 5000, "__import__('os').getpid()", "1/0", "(x^64)^64", "((9^64)^64)^64", "", "()", r"\(5",
    r"\(\text{speed}=3\)", "3 4", "5–10",
]  # fmt: skip


def printed(text: str) -> str:
    sides = [
        " ".join(
            part
            for index, side in enumerate(statement.sides)
            for part in (statement.relations[index - 1] if index else "", str(side.value), side.unit)
            if part
        )
        for statement in read(text, {"pupils"})
    ]
    return "; ".join(sides)


@pytest.mark.parametrize("text", READ)
def test_what_is_printed_is_read(text: str) -> None:
    assert printed(text) == READ[text]


@pytest.mark.parametrize("text", UNREAD)
def test_what_is_not_understood_is_not_guessed(text: str) -> None:
    with pytest.raises(NotReadError):
        printed(text)


def test_digits_after_the_point_and_powers_of_ten_are_known() -> None:
    (side,) = read("0.00710")[0].sides
    assert (side.places, side.scale) == (5, 0)
    (side,) = read(r"\(2.0\times 10^{-3}\) kg")[0].sides
    assert (side.places, side.scale, side.unit) == (1, -3, "kg")


def test_formulas_are_found_in_prose() -> None:
    assert formulas(r"So \(a=2\) and \[b=3\] hold.") == ["a=2", "b=3"]


numbers = st.builds(Rational, st.integers(-99, 99), st.integers(1, 12))
leaves = st.one_of(numbers, st.sampled_from([Symbol("x"), Symbol("y"), Symbol("n"), sqrt(2), sqrt(7), pi]))
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, e: a**e if a != 0 else Integer(1), inner, st.sampled_from([2, 3, -1, Rational(1, 2)])),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(expressions)
def test_what_sympy_prints_is_read_back(wanted) -> None:  # type: ignore[no-untyped-def]
    for text in (sstr(wanted), latex(wanted)):
        if "I" in text or "i" in text.replace("pi", ""):
            continue
        try:
            found = tree(text).value
        except NotReadError:
            # A power beyond the bounds.
            continue
        difference = (found - wanted).subs({"x": Rational(7, 5), "y": Rational(11, 3), "n": Rational(13, 7)})
        assert abs(difference.evalf(30)) < 1e-9 * (
            1 + abs(wanted.subs({"x": Rational(7, 5)}).evalf(5).subs({"y": 3, "n": 2}))
        )


@settings(max_examples=200)
@given(st.text("0123456789x+-*/^(){}\\frac sqrt=.,%°£|", max_size=300))
def test_any_text_is_read_or_refused_at_once(text: str) -> None:
    begun = process_time()
    try:
        for statement in read(f"\\({text}\\)"):
            for side in statement.sides:
                assert side.value is not None
    except NotReadError:
        pass
    assert process_time() - begun < 0.5
