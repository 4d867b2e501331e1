"""Decides whether an answer is what its own calculation gives: one function a kind of answer, and how it was verified.

A fault is a sentence; none means that code reproduced the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from pipeline.lessons import answers as a
from pipeline.lessons.algebra import equal_expressions, inequality_fault, sides
from pipeline.lessons.data_summary import summarise
from pipeline.lessons.evaluator import evaluate, parse, value_of
from pipeline.lessons.exact import EvaluationError, Number, UndefinedValue, approximate, same
from pipeline.lessons.rounding import agrees, last_place, read_printed, round_half_up
from pipeline.lessons.solutions import solution_fault

#: Sums of angles that are printed rounded may miss their total by this much for each angle.
_ANGLE_SLACK = 0.5


def fault(answer: a.PlainAnswer) -> str | None:
    """Return why the answer is not what its calculation gives; None where it is, or where code cannot tell."""
    check = _CHECKS.get(answer.kind)
    if check is None:
        return None
    try:
        return check(answer)
    except EvaluationError as refused:
        return f"the calculation cannot be evaluated: {refused}"


def method(answer: a.PlainAnswer) -> str:
    """Return how code verifies this kind of answer; "nobody" where only a reader can."""
    if isinstance(answer, a.Mcq):
        return "computed" if answer.options[answer.key].expression and answer.options[answer.key].method else "nobody"
    return _METHODS.get(answer.kind, "nobody")


def _numeric(answer: a.Numeric) -> str | None:
    return _printed(answer.value, evaluate(answer.expression), answer.rounding, answer.tolerance)


def _printed(shown: str, value: Number, rounding: a.Rounding, tolerance: str = "0") -> str | None:
    rule = rounding.model_dump()
    allowed = Fraction(tolerance)
    if allowed > last_place(shown, rule) / 2:
        return f"tolerance {tolerance} is more than half the last place shown"
    if agrees(shown, value, rule, allowed):
        return None
    rounded = round_half_up(value, rule)
    return f"{shown}, but the expression gives {rounded if rounded is not None else _readable(value)}"


def _readable(value: Number) -> str:
    return str(value) if isinstance(value, Fraction) else f"{approximate(value):.10g}"


def _exact(answer: a.Exact) -> str | None:
    one, two = evaluate(answer.expression), evaluate(answer.value)
    return None if same(one, two) else f"{answer.value} is not equal to {answer.expression}"


def _algebra(answer: a.Algebra) -> str | None:
    if answer.form == "subject":
        return _subject(answer)
    if equal_expressions(answer.from_expression, answer.answer, answer.variables):
        return None
    return f"{answer.answer} is not equal to {answer.from_expression}"


def _subject(answer: a.Algebra) -> str | None:
    """Put the answer for the subject's letter: the formula must hold wherever both sides have a value.

    Letters are tried as positive numbers: a formula is about quantities, and √ takes the positive root.
    """
    letters = [name for name in answer.variables if name != answer.subject]
    left, right = sides(answer.from_expression)
    tree = parse(answer.answer, letters)
    used = 0
    for number in range(24):
        place = {name: Fraction(7 * index + number + 3, 2 + (number + index) % 5) for index, name in enumerate(letters)}
        try:
            value = value_of(tree, place)
            known: dict[str, Number] = {**place, answer.subject: value}
            if not same(value_of(parse(left, known), known), value_of(parse(right, known), known)):
                return f"{answer.subject} = {answer.answer} does not satisfy {answer.from_expression}"
        except UndefinedValue:
            continue
        used += 1
    return None if used >= 8 else "too few values where both sides are defined"


def _inequality(answer: a.Inequality) -> str | None:
    return inequality_fault(answer.relation, answer.variable, answer.sign, answer.boundary)


def _statistics(answer: a.Statistics) -> str | None:
    data = [read_printed(text) for text in answer.data]
    return _printed(answer.value, summarise(answer.quantity, data), answer.rounding)


def _geometry(answer: a.Geometry) -> str | None:
    found = _printed(answer.value, evaluate(answer.expression), answer.rounding, answer.tolerance)
    return found or _impossible(answer)


def _impossible(answer: a.Geometry) -> str | None:
    if answer.shape not in ("triangle", "right_triangle"):
        return None
    lengths = sorted(approximate(evaluate(text)) for text in answer.sides)
    if lengths and lengths[0] <= 0:
        return "a side is not positive"
    if len(lengths) == 3 and lengths[0] + lengths[1] <= lengths[2]:
        return f"sides {', '.join(answer.sides)} make no triangle"
    angles = [approximate(evaluate(text)) for text in answer.angles]
    if len(angles) == 3 and abs(sum(angles) - 180) > _ANGLE_SLACK * 3:
        return f"the angles sum to {sum(angles):g} degrees, not 180"
    return "the angles sum to 180 degrees or more" if len(angles) < 3 and sum(angles) >= 180 else None


def _vector(answer: a.Vector) -> str | None:
    if len(answer.expressions) != len(answer.values):
        return "as many values as calculations are needed"
    for expression, value in zip(answer.expressions, answer.values, strict=True):
        if not same(evaluate(expression), read_printed(value)):
            return f"{value}, but {expression} gives {_readable(evaluate(expression))}"
    return None


def _science(answer: a.Science) -> str | None:
    value = evaluate(answer.expression)
    if found := _printed(answer.value, value, answer.rounding):
        return found
    known: dict[str, Number] = {part.name: read_printed(part.value) for part in answer.substitutions}
    known[answer.target] = value
    left, right = sides(answer.relationship)
    one, two = value_of(parse(left, known), known), value_of(parse(right, known), known)
    close = abs(approximate(one) - approximate(two)) <= 1e-6 * max(abs(approximate(one)), 1e-9)
    return None if close else f"the values do not satisfy {answer.relationship}"


_CHECKS: Mapping[str, Callable[..., str | None]] = {
    "numeric": _numeric,
    "surd": _exact,
    "fraction": _exact,
    "power": _exact,
    "algebra": _algebra,
    "equation": solution_fault,
    "system": solution_fault,
    "inequality": _inequality,
    "statistics": _statistics,
    "geometry": _geometry,
    "trig": _geometry,
    "vector": _vector,
    "science": _science,
}
_METHODS: Mapping[str, str] = {
    "numeric": "computed",
    "surd": "computed",
    "fraction": "computed",
    "power": "computed",
    "algebra": "point-tested",
    "equation": "substituted",
    "system": "substituted",
    "inequality": "substituted",
    "statistics": "computed",
    "geometry": "computed",
    "trig": "computed",
    "vector": "computed",
    "science": "computed",
}
