"""Decides whether the solutions of an equation or a system are right and complete: by substitution and by counting."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pipeline.lessons.algebra import expected_roots, sides, solves
from pipeline.lessons.answers import Equation
from pipeline.lessons.evaluator import evaluate, parse, value_of
from pipeline.lessons.exact import EvaluationError, approximate
from pipeline.lessons.rounding import as_decimal, last_place

#: Steps of the search for solutions between two bounds: a quarter of a degree over a full turn.
_GRID = 1_440
_ZERO = 1e-9


def solution_fault(answer: Equation) -> str | None:
    """Return what is wrong with the solutions; None where each one holds and none is known to be missing.

    Raises:
        EvaluationError: An equation or a value is no expression.
    """
    for root in answer.roots:
        if len(root.values) != len(answer.variables):
            return f"a solution has {len(root.values)} values for {len(answer.variables)} letters"
        place = dict(zip(answer.variables, root.values, strict=True))
        for line in answer.equations:
            if not _holds(line, place, answer.rounding.model_dump()):
                return f"{', '.join(f'{name} = {value}' for name, value in place.items())} does not solve {line}"
        if fault := _outside(answer, root.values[0]):
            return fault
    return _incomplete(answer)


def _holds(line: str, place: Mapping[str, str], rule: Mapping[str, object]) -> bool:
    """Say whether the values solve the equation: exactly, or to the last place they are printed with."""
    if rule["kind"] == "exact" or len(place) != 1:
        return solves(line, place)
    (name, text) = next(iter(place.items()))
    centre = Fraction(as_decimal(evaluate(text)))
    half = last_place(text, rule) / 2 * Fraction(1001, 1000)
    low, high = (_gap(line, name, centre + shift) for shift in (-half, half))
    # A simple root lies where the sides change places, inside the interval that rounds to what is printed.
    return low is not None and high is not None and low * high <= 0


def _gap(line: str, name: str, at: Fraction) -> float | None:
    left, right = (parse(side, [name]) for side in sides(line))
    try:
        return approximate(value_of(left, {name: at})) - approximate(value_of(right, {name: at}))
    except EvaluationError:
        return None


def _outside(answer: Equation, value: str) -> str | None:
    at = approximate(evaluate(value))
    if answer.low and at < approximate(evaluate(answer.low)):
        return f"{value} is below {answer.low}"
    if answer.high and at > approximate(evaluate(answer.high)):
        return f"{value} is above {answer.high}"
    return None


def _incomplete(answer: Equation) -> str | None:
    values = [tuple(round(approximate(evaluate(text)), 10) for text in root.values) for root in answer.roots]
    if len(set(values)) != len(values):
        return "a solution is listed twice"
    if len(answer.equations) != 1 or len(answer.variables) != 1:
        return None if values else "no solution is given"
    line, letter = answer.equations[0], answer.variables[0]
    if answer.low and answer.high:
        return _missed(answer, line, letter, [value for (value,) in values])
    wanted = expected_roots(line, letter)
    if wanted is None or wanted == len(values) or answer.low or answer.high:
        return None
    return f"{len(values)} solutions, but there are {wanted} different real ones"


def _missed(answer: Equation, line: str, letter: str, values: list[float]) -> str | None:
    """Search the allowed interval for a solution that is not listed."""
    low, high = Fraction(as_decimal(evaluate(answer.low))), Fraction(as_decimal(evaluate(answer.high)))
    if high <= low:
        return "the greatest value allowed is not above the least"
    rule = answer.rounding.model_dump()
    near = max((float(last_place(root.values[0], rule)) for root in answer.roots), default=0.0)
    near = max(near, float(high - low) / _GRID / 2)
    for found in _crossings(line, letter, low, high):
        if all(abs(found - value) > near for value in values):
            return f"{letter} = {found:.4g} solves it too and is not listed"
    return None


def _crossings(line: str, letter: str, low: Fraction, high: Fraction) -> list[float]:
    left, right = (parse(side, [letter]) for side in sides(line))

    def gap(at: Fraction) -> float | None:
        try:
            return approximate(value_of(left, {letter: at})) - approximate(value_of(right, {letter: at}))
        except EvaluationError:
            return None

    found: list[float] = []
    step = (high - low) / _GRID
    before: float | None = None
    for number in range(_GRID + 1):
        at = low + number * step
        here = gap(at)
        if here is not None and abs(here) < _ZERO:
            found.append(float(at))
            here = None
        elif here is not None and before is not None and here * before < 0:
            middle = gap(at - step / 2)
            # Across a pole the sides change places too, but they do not come closer.
            if middle is not None and abs(middle) <= max(abs(here), abs(before)):
                found.append(float(at - step / 2))
        before = here
    return found
