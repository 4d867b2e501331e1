"""Decides how numbers and expressions of drafted questions are written: as TeX for pages and as text for code."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def m(tex: str) -> str:
    """Return mathematics inside a sentence."""
    return rf"\({tex}\)"


def root(inside: object) -> str:
    """Return √inside."""
    return rf"\sqrt{{{inside}}}"


def frac(top: object, bottom: object) -> str:
    """Return top over bottom."""
    return rf"\frac{{{top}}}{{{bottom}}}"


def number(value: Fraction | int) -> str:
    """Return a whole number or a fraction in lowest terms, as TeX."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    return ("-" if value < 0 else "") + frac(abs(value.numerator), value.denominator)


def code(value: Fraction | int) -> str:
    """Return a number for the evaluator: fractions and negative numbers in brackets."""
    value = Fraction(value)
    if value.denominator == 1 and value >= 0:
        return str(value.numerator)
    return f"({value.numerator}/{value.denominator})" if value.denominator != 1 else f"({value.numerator})"


def surd(factor: int, inside: int) -> str:
    """Return factor√inside as TeX."""
    return ("" if factor == 1 else "-" if factor == -1 else str(factor)) + root(inside)


def surd_code(factor: int, inside: int) -> str:
    """Return factor√inside for the evaluator."""
    return f"sqrt({inside})" if factor == 1 else f"{factor}*sqrt({inside})"


def poly(coefficients: Sequence[int], letter: str = "x") -> str:
    """Return a polynomial as TeX; coefficients from the highest power down."""
    return _poly(coefficients, letter, "")


def poly_code(coefficients: Sequence[int], letter: str = "x") -> str:
    """Return a polynomial for the evaluator."""
    return _poly(coefficients, letter, "*")


def _poly(coefficients: Sequence[int], letter: str, times: str) -> str:
    terms: list[str] = []
    for place, factor in enumerate(coefficients):
        power = len(coefficients) - 1 - place
        if not factor:
            continue
        name = letter if power == 1 else f"{letter}^{power}" if power else ""
        size = str(abs(factor)) if abs(factor) != 1 or not power else ""
        term = size + (times if size and name else "") + name
        sign = "-" if factor < 0 else "+"
        terms.append(f" {sign} {term}" if terms else ("-" if factor < 0 else "") + term)
    return "".join(terms) or "0"


def bracket(a: int, b: int, letter: str = "x") -> str:
    """Return (ax + b) as TeX."""
    return f"({poly([a, b], letter)})"


def bracket_code(a: int, b: int, letter: str = "x") -> str:
    """Return (a*x + b) for the evaluator."""
    return f"({poly_code([a, b], letter)})"


def vector(*components: object) -> str:
    """Return a column vector."""
    return r"\begin{pmatrix}" + r" \\ ".join(str(part) for part in components) + r"\end{pmatrix}"


def signed(value: int) -> str:
    """Return " + 3" or " - 3", for the end of a sum."""
    return f" - {-value}" if value < 0 else f" + {value}"


def money(value: Fraction | int) -> str:
    """Return £1,250.00."""
    return f"£{float(value):,.2f}"
