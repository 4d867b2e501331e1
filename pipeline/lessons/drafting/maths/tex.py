"""Decides how numbers and expressions of drafted questions are written: as TeX for pages and as text for code."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pipeline.lessons.drafting.parts import Example, Json, Question, Step, choice, option


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


#: (what we do, the line as TeX, the line for code to test).
Line = tuple[str, str, str]
_FOLLOW = "Later marks are open after a slip, as long as the rest is as hard as before."


def step(line: Line) -> Step:
    """Return a line of working."""
    does, tex, check = line
    return Step(does, m(tex) if tex else "", check)


def ask(
    stem: str,
    answer: Json,
    *lines: Line,
    why: str,
    asks: Sequence[int] = (0,),
    reveals: Sequence[int] = (),
    calculator: bool = False,
    hint: str = "",
    one: bool = False,
) -> Question:
    """Return a question with a mark for each line of its working, or one mark in all.

    Args:
        why: Feedback: why the method works.
        one: One mark, for the answer.
    """
    steps = tuple(step(line) for line in lines)
    bullets = tuple((each.does, each.shows or answer["shown"]) for each in steps)
    return Question(
        stem=stem,
        answer=answer,
        working=steps,
        scheme=(("Gives the right answer", answer["shown"]),) if one else bullets,
        feedback=why,
        calculator=calculator,
        asks=tuple(asks),
        reveals=tuple(reveals),
        hints=(hint,) if hint else (),
        follow_through="" if one else _FOLLOW,
    )


def pick(
    stem: str,
    key: tuple[str, str, str],
    *others: tuple[str, str, str, str],
    lines: Sequence[Line],
    why: str,
    asks: Sequence[int] = (0,),
    reveals: Sequence[int] = (0,),
    calculator: bool = False,
) -> Question:
    """Return a multiple-choice question of one mark.

    Args:
        key: (text, value, method).
        others: (text, value, what choosing it shows, mistake number or "").
    """
    text, value, method = key
    right = option(text, why, value=value, method=method)
    wrong = [option(shown, shows, value=worth, mistake=mistake) for shown, worth, shows, mistake in others]
    return ask(
        stem, choice(right, *wrong), *lines, why=why, asks=asks, reveals=reveals, calculator=calculator, one=True
    )


def example(problem: str, answer: str, *lines: Line) -> Example:
    """Return a worked example."""
    return Example(problem=problem, steps=tuple(step(line) for line in lines), answer=answer)


def told(text: str) -> str:
    """Return prose written over several lines as one paragraph."""
    return " ".join(text.split())
