"""Row 14: every line of working is true.

A line is tested as it stands: neighbours round each "=" must be equal, at sample points where letters occur. A line
that is no identity is an equation: it must hold for the values, or the definition, that the solution itself gives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, pairwise, product

from pipeline.lessons import answers as a
from pipeline.lessons.algebra import equal_trees
from pipeline.lessons.expressions import EvaluationError, Number, UndefinedValue, letters, parse, same, value_of
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.rounding import gap, half_place, read_printed
from pipeline.lessons.schemas import Item, ModellingCard, WorkedStep

_CHOICES = re.compile(r"\s(?:or|and)\s|;")
_ABOUT = re.compile(r"≈|~=|~")
_ORDER = re.compile(r"<=|>=|[<>≤≥]")
#: Combinations of values that letters may take (two roots, two letters, …).
_MOST_VALUES = 16
#: Of half the last place shown, as much may be lost: a value just on the edge is a float.
_EDGE = Fraction(501, 500)

Values = dict[str, list[Number]]


def lines(case: Case) -> Iterator[Fault]:
    """Check row 14: worked examples and the working of items."""
    for card in case.lesson.cards:
        if isinstance(card, ModellingCard):
            for example in card.examples:
                yield from _untrue(example.id, example.steps, {})
    for item in case.lesson.items():
        yield from _untrue(item.id, item.working, _known(item))


def _untrue(where: str, steps: Sequence[WorkedStep], known: Values) -> Iterator[Fault]:
    checks = [(index, line) for index, step in enumerate(steps) for line in _lines(step.check)]
    working = Working([line for _, line in checks], known)
    for index, line in checks:
        place = f"{where}.steps.{index}"
        try:
            if not working.holds(line):
                yield Fault(place, f"{line} is not true", "a line that holds")
        except EvaluationError as refused:
            yield Fault(place, f"{line}: {refused}", "a line that code can test, or none", "R")


def _lines(check: str) -> list[str]:
    return [part.strip() for part in _CHOICES.split(check) if part.strip()]


def _known(item: Item) -> Values:
    """Return the values that the item gives letters: its givens, and the solutions of its answer."""
    found: Values = {}
    for given in item.givens:
        _learn(found, given.name, given.value)
    if isinstance(item.answer, a.Equation):
        for root in item.answer.roots:
            for name, text in zip(item.answer.variables, root.values, strict=False):
                _learn(found, name, text)
    if isinstance(item.answer, a.Science):
        for part in item.answer.substitutions:
            _learn(found, part.name, part.value)
    return found


def _learn(found: Values, name: str, text: str) -> None:
    try:
        value = value_of(parse(text), {})
    except EvaluationError:
        return
    if not any(same(value, other) for other in found.setdefault(name, [])):
        found[name].append(value)


class Working:
    """The lines of one solution, with the values and definitions they give their letters."""

    def __init__(self, checks: Sequence[str], known: Values) -> None:
        self._values: Values = {name: list(values) for name, values in known.items()}
        #: Letter -> what it was last said to equal, in other letters.
        self._defined: dict[str, str] = {}
        for line in checks:
            sides = _ABOUT.sub("=", line).split("=")
            name = sides[0].strip()
            if letters(name) == [name] and len(sides) > 1:
                _learn(self._values, name, sides[-1])
                if name not in letters(sides[-1]):
                    self._defined[name] = sides[-1].strip()

    def holds(self, line: str) -> bool:
        """Say whether a line is true.

        Raises:
            EvaluationError: It cannot be read, or nothing here tells whether it is true.
        """
        if _ORDER.search(line):
            # The solution of an inequality is tested as an answer; its lines only have to be readable.
            for side in _ORDER.split(line):
                parse(side, letters(line))
            return True
        exact, about, printed = _ABOUT.sub("≈", line, count=1).partition("≈")
        sides = [side.strip() for side in exact.split("=")]
        for side in sides:
            parse(side, letters(side))
        true = all(self._equal(left, right) for left, right in pairwise(sides))
        return true and (not about or self._rounds(sides[-1], printed.strip()))

    def _equal(self, left: str, right: str) -> bool:
        names = letters(left, right)
        one, two = parse(left, names), parse(right, names)
        if _identical(one, two, names):
            return True
        if names and all(name in self._values for name in names):
            return any(_agree(one, two, at) for at in self._places(names))
        return bool(names) and self._possible(left, right, names)

    def _possible(self, left: str, right: str, names: list[str]) -> bool:
        """Say whether a line in letters without values can stand: a formula, a given equation, a rearrangement."""
        one_sided = not letters(left) or not letters(right)
        if one_sided or letters(left) == [left] or any(name in self._values for name in names):
            return True
        for name in names:
            told = self._defined.get(name)
            if told is not None and self._rearranged(left, right, name, told):
                return True
        if len(names) == 1:
            return False
        raise EvaluationError("nothing here says whether this is true")

    def _rearranged(self, left: str, right: str, name: str, told: str) -> bool:
        put = re.compile(rf"\b{re.escape(name)}\b")
        one, two = (put.sub(f"({told})", side) for side in (left, right))
        names = letters(one, two)
        return _identical(parse(one, names), parse(two, names), names)

    def _places(self, names: Sequence[str]) -> Iterator[Mapping[str, Number]]:
        for chosen in islice(product(*(self._values[name] for name in names)), _MOST_VALUES):
            yield dict(zip(names, chosen, strict=True))

    def _rounds(self, exact: str, printed: str) -> bool:
        """Say whether "exact ≈ printed" holds to the last place that is printed."""
        names = letters(exact)
        if any(name not in self._values for name in names):
            return True
        shown = read_printed(printed)
        allowed = half_place(printed) * _EDGE
        tree = parse(exact, names)
        return any(gap(value_of(tree, at), shown) <= allowed for at in self._places(names))


def _agree(one: ast.expr, two: ast.expr, at: Mapping[str, Number]) -> bool:
    try:
        return same(value_of(one, at), value_of(two, at))
    except UndefinedValue:
        return False


def _identical(one: ast.expr, two: ast.expr, names: list[str]) -> bool:
    try:
        return equal_trees(one, two, names)
    except EvaluationError:
        return False
