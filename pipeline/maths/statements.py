"""Says whether printed lines are true: each relation from side to side, with the values that the lines give letters.

True, false, or None: nothing here tells. A line in letters without values is none of false's business unless it is
about the task's own letters (then it must be an identity), or a catalogue's formula in other clothes.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice, product
from math import prod

from sympy import ImmutableMatrix, Integer, Rational, Symbol, solve

from pipeline.maths import notation, trees, units
from pipeline.maths.notation import PrintedSide, PrintedStatement
from pipeline.maths.trees import DivisionByNoughtError, MathNode, NotReadError, Value, evaluate

#: Values of letters that are tried together.
_MOST_PLACES = 24
#: Relative size under which two numbers are one.
_NOTHING = 1e-25
_ZERO = Integer(0)
_SAMPLES = (2, 3, 5, 7, 11, 4, 9, 6, 13, 8)
#: A function of a letter: f(x) has no value of its own.
_GENERAL = re.compile(r"\(.*[a-z]")
#: How the difference of two sides compares with 0.
_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class LineVerdict:
    """What is known of one relation of a line."""

    truth: bool | None
    #: Why it is false, for the author.
    said: str = ""


@dataclass(frozen=True)
class Known:
    """A value of a letter, and how far it may be off, being rounded."""

    value: Value
    off: Value = _ZERO


def size(value: Value) -> float:
    """Return how large a number, or the largest part of a vector, is.

    Raises:
        NotReadError: It has letters.
    """
    if isinstance(value, ImmutableMatrix):
        return max(size(part) for part in value)
    number = value.evalf(30) if not value.is_Rational else value
    if not number.is_number:
        raise NotReadError("a letter without a value")
    return float(abs(number))


def signed(value: Value) -> float:
    """Return a real number as a float.

    Raises:
        NotReadError: It is none.
    """
    number = value.evalf(30) if not isinstance(value, ImmutableMatrix) else None
    if number is None or not number.is_real:
        raise NotReadError("no real number")
    return float(number)


def equal(left: Value, right: Value) -> bool:
    """Say whether two values without letters are one, to 25 figures."""
    if isinstance(left, ImmutableMatrix) != isinstance(right, ImmutableMatrix):
        return False
    if isinstance(left, ImmutableMatrix) and left.shape != right.shape:
        return False
    if left == right:
        return True
    if not isinstance(left, ImmutableMatrix) and left.is_Rational and right.is_Rational:
        return False
    return size(left - right) <= _NOTHING * max(size(left), size(right), 1e-12)


def half_place(side: PrintedSide) -> Value:
    """Return half of the last place shown of a number; of 90,500 the last place is the hundred."""
    if side.places is None:
        return _ZERO
    digits = _digits(side.node)
    zeros = len(digits) - len(digits.rstrip("0")) if side.places == 0 and not side.scale else 0
    return Rational(1, 2) * Integer(10) ** (side.scale - side.places + zeros)


def _digits(node: MathNode) -> str:
    while node.kind in ("minus", "percent", "product"):
        node = node.parts[0]
    return node.text


def identical(left: MathNode, right: MathNode) -> bool | None:
    """Say whether two expressions are equal for all values of their letters; None where too few can be tried."""
    names = sorted(left.letters | right.letters)
    tried = 0
    for one, other in _samples(left, right, names):
        if not equal(one, other):
            return False
        tried += 1
    return True if tried >= (3 if names else 1) else None


def _samples(left: MathNode, right: MathNode, names: Sequence[str]) -> Iterator[tuple[Value, Value]]:
    for shift in range(len(_SAMPLES) if names else 1):
        at = {name: Fraction(_SAMPLES[(place * 3 + shift) % len(_SAMPLES)]) for place, name in enumerate(names)}
        try:
            yield evaluate(left, at), evaluate(right, at)
        except NotReadError:
            continue


def _proportional(left: MathNode, right: MathNode) -> bool:
    """Say whether two expressions differ by a number or a factor for all values: then no value makes them equal."""
    pairs = list(_samples(left, right, sorted(left.letters | right.letters)))
    vector = any(isinstance(part, ImmutableMatrix) for pair in pairs for part in pair)
    if len(pairs) < 3 or vector or any(one == 0 or other == 0 for one, other in pairs):
        return False
    first, second = pairs[0]
    return all(equal(one * second, first * other) for one, other in pairs) or all(
        equal(one - other, first - second) for one, other in pairs
    )


def _simplifies(left: MathNode, right: MathNode) -> bool:
    """Say whether a line collects the powers of a letter, as x^2 × x^3 = x^5 does: then it is meant for all values."""
    if any(part.kind == "sum" and part.letters for side in (left, right) for part in side.walk()):
        return False
    counts = [sum(part.kind == "letter" for part in side.walk()) for side in (left, right)]
    names = len(left.letters)
    nested = any(part.kind == "power" and any(p.kind == "power" for p in part.parts[0].walk()) for part in left.walk())
    return min(counts) == names and (max(counts) > names or nested)


def scaled(side: PrintedSide, other: PrintedSide) -> Value:
    """Return what a value in the unit of one side is multiplied by to be in the other's."""
    one, two = units.unit(side.unit), units.unit(other.unit)
    if one is None or two is None or one.bases != two.bases or one.factor == two.factor:
        return Integer(1)
    ratio = one.factor / two.factor
    return Rational(ratio.numerator, ratio.denominator)


@dataclass
class Lines:
    """The lines of one solution, with what they and the question say of letters."""

    lines: Sequence[Sequence[PrintedStatement]]
    given: Sequence[PrintedStatement] = ()
    #: Letters of the question's expressions: a line in these alone is an identity.
    own: frozenset[str] = frozenset()
    #: Formulas of the course; one in the same letters must agree.
    formulas: Sequence[PrintedStatement] = ()
    #: The question asks for a rounded answer: values of letters may be rounded.
    rounded: bool = False
    #: The inequality to be solved: all in its letter have its solutions.
    inequality: PrintedStatement | None = None
    #: Several questions share these lines: a letter may have a value in each.
    parted: bool = False
    _known: dict[str, list[Known]] = field(default_factory=dict)
    _cents: list[Value] = field(default_factory=list)
    _told: dict[PrintedStatement, list[LineVerdict]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in [*self.given, *(statement for line in self.lines for statement in line)]:
            self._learn(statement)

    def values(self, name: str) -> list[Value]:
        return [known.value for known in self._known.get(name, ())]

    def learn(self, name: str, value: Value, off: Value = _ZERO) -> None:
        found = self._known.setdefault(name, [])
        if not any(equal(known.value, value) for known in found):
            found.append(Known(value, off))

    def _learn(self, statement: PrintedStatement) -> None:
        if set(statement.relations) - {"=", "≈"}:
            return
        letters = [side for side in statement.sides if side.node.kind == "letter"]
        numbers = [side for side in statement.sides if not side.node.letters]
        about = self.rounded or "≈" in statement.relations
        off = max((half_place(number) for number in numbers if about or number.places), default=_ZERO)
        for letter in letters:
            for number in numbers:
                # A power out of bounds, or a division by nought, gives no letter a value.
                with suppress(NotReadError):
                    self.learn(letter.node.text, number.value, off)
        if not letters and len(statement.sides) > 1 and (cent := _cent(statement.sides[0], statement.sides[-1])):
            self._cents.append(cent)

    def verdicts(self, statement: PrintedStatement) -> list[LineVerdict]:
        if statement not in self._told:
            self._told[statement] = self._verdicts(statement)
        return self._told[statement]

    def _verdicts(self, statement: PrintedStatement) -> list[LineVerdict]:
        if self.inequality and set(statement.relations) & set(_ORDERS) and len(names_of(self.inequality)) == 1:
            (name,) = names_of(self.inequality)
            if names_of(statement) == {name}:
                return [self._inequality(statement, self.inequality, name)]
        pairs = zip(statement.sides, statement.relations, statement.sides[1:], strict=False)
        return [self._verdict(left, sign, right) for left, sign, right in pairs]

    def _inequality(self, statement: PrintedStatement, wanted: PrintedStatement, name: str) -> LineVerdict:
        try:
            wrong = same_solutions([statement], wanted, name)
        except NotReadError:
            return LineVerdict(None)
        return LineVerdict(not wrong, f"a line in {name} has other solutions than the question" if wrong else "")

    def _verdict(self, left: PrintedSide, sign: str, right: PrintedSide) -> LineVerdict:
        try:
            truth = self._truth(left, sign, right)
        except DivisionByNoughtError:
            lettered = left.node.letters | right.node.letters
            return LineVerdict(None if lettered else False, f"{left.text} = {right.text} divides by nought")
        except NotReadError:
            return LineVerdict(None)
        if truth is not False:
            return LineVerdict(truth)
        return LineVerdict(False, _said(left, sign, right))

    def _truth(self, left: PrintedSide, sign: str, right: PrintedSide) -> bool | None:
        names = sorted(left.node.letters | right.node.letters)
        if not names:
            return self._numbers(left, sign, right)
        if sign not in ("=", "≈"):
            return self._ordered(left, sign, right, names)
        if identical(left.node, right.node):
            return True
        if any(_GENERAL.search(name) for name in names):
            return None
        if all(name in self._known for name in names):
            return self._with_values(left, sign, right, names)
        return self._without_values(left, right, names)

    def _with_values(self, left: PrintedSide, sign: str, right: PrintedSide, names: Sequence[str]) -> bool | None:
        agree = [self._agree(left, sign, right, at) for at in self._places(names)]
        if not any(agree):
            return False
        # Each solution of an equation solves its other forms; x = 2 says only what one of them is.
        return all(agree) or len(names) > 1 or self.parted or _linear(left.node, right.node, names[0])

    def _numbers(self, left: PrintedSide, sign: str, right: PrintedSide) -> bool | None:
        if sign not in ("=", "≈"):
            return _ORDERS[sign](signed(left.node.value - right.node.value), 0)
        if self._agree(left, sign, right, {}):
            return True
        if right.node.kind == "percent" and _hundredfold(left.node):
            return self._agree(left, sign, replace(right, node=right.node.parts[0]), {})
        cent = _cent(left, right)
        if cent is None:
            return False
        others = [value for value in self._cents if not equal(value, cent)]
        # 55 % = 231: per cent counts as a letter, and all such lines agree on it.
        return False if len(others) > len(self._cents) - len(others) else None

    def _agree(self, left: PrintedSide, sign: str, right: PrintedSide, at: Mapping[str, Known]) -> bool:
        values = {name: known.value for name, known in at.items()}
        one, two = evaluate(left.node, values) * scaled(left, right), evaluate(right.node, values)
        if equal(one, two) or (right.direction and equal(one, -two)):
            return True
        if isinstance(one, ImmutableMatrix) or isinstance(two, ImmutableMatrix):
            return False
        gap = one - two
        allowed = _ZERO
        for name, known in at.items():
            if known.off:
                ends = [values | {name: known.value + off} for off in (known.off, -known.off)]
                gaps = [evaluate(left.node, end) * scaled(left, right) - evaluate(right.node, end) for end in ends]
                allowed += max((abs(each - gap) for each in gaps), key=size)
        if sign == "≈" or endless(one):
            allowed += half_place(right)
        if sign == "≈":
            allowed += half_place(left) * scaled(left, right) if right.places is None else 0
            allowed += abs(two) / 200 if left.places is right.places is None else 0
        return size(gap) <= size(allowed) * 1.000001

    def _places(self, names: Sequence[str]) -> Iterator[Mapping[str, Known]]:
        for chosen in islice(product(*(self._known[name] for name in names)), _MOST_PLACES):
            yield dict(zip(names, chosen, strict=True))

    def _ordered(self, left: PrintedSide, sign: str, right: PrintedSide, names: Sequence[str]) -> bool | None:
        if not all(name in self._known for name in names):
            return None
        for at in self._places(names):
            values = {name: known.value for name, known in at.items()}
            if _ORDERS[sign](signed(evaluate(left.node, values) - evaluate(right.node, values)), 0):
                return True
        return None

    def _without_values(self, left: PrintedSide, right: PrintedSide, names: Sequence[str]) -> bool | None:
        unknown = [name for name in names if name not in self._known]
        if not right.node.letters and substituted(left.node, right.node, {}):
            return True
        if self.own and set(names) <= self.own and left.node.letters and right.node.letters:
            return False
        if agrees := self._formula(left, right):
            return agrees == "yes"
        alike = len(unknown) == len(names) and left.node.letters == right.node.letters
        if alike and (_proportional(left.node, right.node) or _simplifies(left.node, right.node)):
            return False
        return None

    def _formula(self, left: PrintedSide, right: PrintedSide) -> str:
        """Return "yes" or "no" where the course has a formula in the same three letters or more, else ""."""
        names = left.node.letters | right.node.letters
        same = [formula for formula in self.formulas if names_of(formula) == names] if len(names) >= 3 else []
        if not same:
            return ""
        return "yes" if any(follows(left, right, formula) for formula in same) else "no"


def _linear(left: MathNode, right: MathNode, name: str) -> bool:
    gaps = [evaluate(left, {name: Integer(at)}) - evaluate(right, {name: Integer(at)}) for at in (1, 2, 3)]
    return equal(gaps[0] + gaps[2], 2 * gaps[1])


def substituted(formula: MathNode, numbers: MathNode, at: dict[str, Value]) -> bool:
    """Say whether an expression is a formula with numbers in the places of its letters: u + at and 3 + 2 × 6."""
    if formula.kind == "letter":
        return equal(at.setdefault(formula.text, numbers.value), numbers.value)
    if not formula.letters:
        return equal(formula.value, numbers.value)
    alike = formula.kind == numbers.kind and formula.text == numbers.text and len(formula.parts) == len(numbers.parts)
    return alike and all(substituted(one, other, at) for one, other in zip(formula.parts, numbers.parts, strict=True))


def names_of(statement: PrintedStatement) -> frozenset[str]:
    """Return the letters of a statement."""
    return frozenset(name for side in statement.sides for name in side.node.letters)


def endless(value: Value) -> bool:
    """Say whether a number has no end as a decimal, so that "=" before a rounded one is custom."""
    return not value.is_Rational or 10 ** int(value.q).bit_length() % int(value.q) > 0


def _hundredfold(node: MathNode) -> bool:
    """Say whether a calculation works out a percentage: 3/20 times 100."""
    return any(part.kind == "product" and trees.number("100") in part.parts for part in node.walk())


def _cent(left: PrintedSide, right: PrintedSide) -> Value | None:
    """Return what one per cent is worth in "55 % = 231"; None where a line says no such thing."""
    sides = [any(part.kind == "percent" for part in side.node.walk()) for side in (left, right)]
    if sum(sides) != 1 or left.node.letters or right.node.letters:
        return None
    share, amount = (left, right) if sides[0] else (right, left)
    cent = Symbol("%")
    try:
        line = evaluate(share.node, {"%": cent})
        value = evaluate(amount.node, {})
    except NotReadError:
        return None
    rate = line.coeff(cent, 1)
    return (value - line.coeff(cent, 0)) / rate if rate.is_Rational and rate != 0 else None


@functools.lru_cache(512)
def _solved(gap: Value, letter: str) -> list[Value]:
    slope = gap.diff(Symbol(letter))
    if slope != 0 and Symbol(letter) not in slope.free_symbols:
        return [-gap.subs(Symbol(letter), 0) / slope]
    try:
        return [value for value in solve(gap, Symbol(letter)) if value.is_real is not False][-1:]
    except NotImplementedError:
        return []


@functools.lru_cache(1024)
def follows(left: PrintedSide, right: PrintedSide, formula: PrintedStatement) -> bool:
    """Say whether an equation in letters holds wherever a formula holds."""
    if (left.node, right.node) == (formula.sides[0].node, formula.sides[-1].node):
        return True
    gap = formula.sides[0].node.value - formula.sides[-1].node.value
    names = sorted(names_of(formula))
    letter = min(names, key=lambda name: (gap.diff(Symbol(name), 2) != 0, name))
    found = _solved(gap, letter)
    tried = 0
    # An equation in one letter has the same solution every time.
    for shift in range(len(_SAMPLES) if len(names) > 1 else 2):
        at = {name: Integer(_SAMPLES[(place * 3 + shift) % 10]) for place, name in enumerate(names) if name != letter}
        try:
            value = found[0].subs({Symbol(name): number for name, number in at.items()})
            if not value.is_real:
                continue
            if not equal(evaluate(left.node, at | {letter: value}), evaluate(right.node, at | {letter: value})):
                return False
            tried += 1
        except (NotReadError, IndexError):
            continue
    return tried > 1 or not found


def same_solutions(
    statements: Iterable[PrintedStatement], wanted: PrintedStatement, name: str
) -> list[PrintedStatement]:
    """Return the inequalities in one letter whose solutions are not those of `wanted`."""
    lines = [line for line in statements if names_of(line) == {name} and set(line.relations) & set(_ORDERS)]
    edges = [edge for line in [*lines, wanted] for edge in _edges(line, name)]
    points = sorted({edge + shift for edge in edges for shift in (-0.5, -1e-3, 0, 1e-3, 0.5)})
    return [line for line in lines if any(_true(line, name, x) != _true(wanted, name, x) for x in points)]


def _edges(line: PrintedStatement, name: str) -> Iterator[float]:
    """Yield where the two sides of a linear inequality are equal."""
    for left, right in zip(line.sides, line.sides[1:], strict=False):
        low, high = (evaluate(left.node, {name: at}) - evaluate(right.node, {name: at}) for at in (_ZERO, Integer(1)))
        if low != high:
            yield float(low / (low - high))


def _true(line: PrintedStatement, name: str, at: float) -> bool:
    values = {name: Rational(at).limit_denominator(10**9)}
    gaps = [
        signed(evaluate(left.node, values) - evaluate(right.node, values))
        for left, right in zip(line.sides, line.sides[1:], strict=False)
    ]
    return all(_ORDERS[sign](round(gap, 7), 0) for sign, gap in zip(line.relations, gaps, strict=True))


def _said(left: PrintedSide, sign: str, right: PrintedSide) -> str:
    said = f"{left.text} {sign} {right.text} is not true"
    if left.node.letters | right.node.letters:
        return said
    try:
        return f"{said}: {left.text} is {readable(left.node.value)}"
    except NotReadError:
        return said


def readable(value: Value) -> str:
    """Return a value in a few digits for a message."""
    if isinstance(value, ImmutableMatrix):
        return f"({', '.join(readable(part) for part in value)})"
    if value.free_symbols or (value.is_Rational and value.q < 1000 and prod((value.p, value.q)) < 10**9):
        return str(value).replace("**", "^")
    return f"{signed(value):.8g}"


def said(text: str) -> list[PrintedStatement]:
    """Return what the formulas of a text say, where they are read and say something."""
    found = []
    for formula in notation.formulas(text):
        with suppress(NotReadError):
            found.append(notation.statement(formula))
    return [one for one in found if one.relations]


def untrue(lines: Lines, texts: Iterable[str]) -> Iterator[str]:
    """Yield what is not true in the formulas of texts, by what some lines say of letters."""
    for one in (one for text in texts for one in said(text)):
        for verdict in lines.verdicts(one):
            if verdict.truth is False:
                yield verdict.said.replace(" is not true", "", 1)
