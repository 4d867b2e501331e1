"""Checks of answers: each is computed again from its own calculation; solutions must be right and complete.

A fault is a sentence; none means that code reproduced the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from pipeline.lessons import answers as a
from pipeline.lessons.algebra import equal_expressions, expected_roots, inequality_fault, sides, solves
from pipeline.lessons.answers import Equation
from pipeline.lessons.data_summary import summarise
from pipeline.lessons.expressions import (
    FUNCTIONS,
    EvaluationError,
    Number,
    UndefinedValue,
    approximate,
    evaluate,
    parse,
    same,
    tokens,
    value_of,
)
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.forms import form_fault
from pipeline.lessons.rounding import agrees, as_decimal, last_place, read_printed, round_half_up
from pipeline.lessons.schemas import Item

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
    centre, gap = Fraction(as_decimal(evaluate(text))), _gap(line, name)
    half = last_place(text, rule) / 2 * Fraction(1001, 1000)
    low, high = gap(centre - half), gap(centre + half)
    # A simple root lies where the sides change places, inside the interval that rounds to what is printed.
    return low is not None and high is not None and low * high <= 0


def _gap(line: str, letter: str) -> Callable[[Fraction], float | None]:
    """Return what tells how far the sides of an equation are apart at a value; None where they have none."""
    left, right = (parse(side, [letter]) for side in sides(line))

    def gap(at: Fraction) -> float | None:
        try:
            return approximate(value_of(left, {letter: at})) - approximate(value_of(right, {letter: at}))
        except EvaluationError:
            return None

    return gap


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
    gap = _gap(line, letter)
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


#: Numbers that need not stand in the question: small ones of formulas, of time, turns, percentages and metric units.
_ALLOWED = frozenset(
    Fraction(number)
    for number in ("0", "1", "2", "3", "4", "0.5", "7", "10", "12", "24", "52", "60", "90", "100", "180", "360", "365",
                   "1000", "3600", "1000000")
)  # fmt: skip
#: Constants of the physics data sheet, beside the powers of ten.
_DATA_SHEET = frozenset(
    Fraction(number)
    for number in ("9.8", "3.00", "6.67", "6.63", "1.60", "1.6", "9.11", "1.673", "1.675", "2.3", "340", "1.5", "1.33")
)
_WORDS = {
    "half": "0.5", "double": "2", "twice": "2", "triple": "3", "quarter": "4", "third": "3", "dozen": "12",
    "ten": "10", "five": "5", "six": "6", "eight": "8", "nine": "9", "eleven": "11", "hundred": "100",
    "thousand": "1000", "million": "1000000", "square": "2", "cube": "3", "pentagon": "5", "hexagon": "6",
    "octagon": "8", "decagon": "10",
}  # fmt: skip
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
_WORD = re.compile(r"[a-z]{3,9}")
_CALCULATED = (a.Numeric, a.Exact, a.Geometry, a.Vector, a.Science)


def values(case: Case) -> Iterator[Fault]:
    """Check row 5: the printed answer is what the expression gives, under its rounding and tolerance."""
    for where, _, answer in case.answers():
        if wrong := fault(answer):
            yield Fault(f"{where}.answer", wrong, "an answer that its own calculation gives")


def belongs(case: Case) -> Iterator[Fault]:
    """Check row 6: a calculation has an operation, and its numbers are in the question."""
    for where, item, answer in case.answers():
        if isinstance(answer, _CALCULATED):
            texts = answer.expressions if isinstance(answer, a.Vector) else [answer.expression]
            there = _numbers_of(item)
            if isinstance(answer, a.Science):
                there |= _DATA_SHEET
            for text in texts:
                yield from _belonging(where, text, there, needs_operation=not isinstance(answer, a.Vector))


def _belonging(where: str, expression: str, there: set[Fraction], *, needs_operation: bool) -> Iterator[Fault]:
    try:
        found = tokens(expression)
    except EvaluationError:
        # Row 5 says so already.
        return
    if needs_operation and not any(token in ("+", "-", "*", "/", "**", *FUNCTIONS) for token in found):
        yield Fault(f"{where}.answer.expression", expression, "the whole calculation, not only its result")
    numbers = [token for token in found if token[0].isdigit() or token[0] == "."]
    strangers = [token for token in numbers if Fraction(token) not in there]
    if strangers:
        yield Fault(
            f"{where}.answer.expression",
            f"{', '.join(dict.fromkeys(strangers))} not in the question",
            "numbers of the stem, its givens or figures",
        )


def _numbers_of(item: Item) -> set[Fraction]:
    """Return the numbers a calculation may use: those in the question, as they stand, and as percentages."""
    found = {Fraction(text) for line in _texts(item) for text in _NUMBER.findall(_GROUPED.sub("", line))}
    found |= {Fraction(_WORDS[word]) for word in _WORD.findall(item.stem.lower()) if word in _WORDS}
    shares = {share for number in found for share in (number / 100, 1 + number / 100, abs(1 - number / 100))}
    changed = {abs(100 - number) for number in found} | {100 + number for number in found}
    return found | shares | changed | _ALLOWED


def _texts(item: Item) -> Iterable[str]:
    yield item.stem
    for given in item.givens:
        yield given.value
    for figure in item.figures:
        yield figure.alt
        yield from figure.columns
        for row in figure.rows:
            yield from row
    if isinstance(item.answer, a.Structured):
        for part in item.answer.parts:
            yield part.prompt
            # A later part may use what an earlier one found.
            yield str(getattr(part.answer, "value", ""))


def forms(case: Case) -> Iterator[Fault]:
    """Check row 15: simplified, factorised, in lowest terms: what equality cannot see."""
    for where, _, answer in case.answers():
        if isinstance(answer, a.Exact):
            yield from _form(where, answer.form, answer.value, [])
        elif isinstance(answer, a.Algebra):
            letters = [name for name in answer.variables if name != answer.subject]
            yield from _form(where, answer.form, answer.answer, letters)


def _form(where: str, form: str, text: str, letters: list[str]) -> Iterator[Fault]:
    try:
        reason = form_fault(form, text, letters)
    except EvaluationError as refused:
        reason = str(refused)
    if reason:
        yield Fault(f"{where}.answer", f"{text}: {reason}", f"the form {form}")
