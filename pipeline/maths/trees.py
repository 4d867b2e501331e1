"""What was written, as a tree: its form is kept, and its value is worked out exactly, within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from sympy import (
    ImmutableMatrix,
    Pow,
    Rational,
    Symbol,
    acos,
    asin,
    atan,
    cos,
    nan,
    pi,
    root,
    sin,
    sqrt,
    sympify,
    tan,
    zoo,
)

#: Bounds of powers: greatest exponent, most binary digits of a number.
MOST_POWER, MOST_BITS = 64, 4096

_CENT = Fraction(1, 100)

#: A SymPy expression or a column of them.
Value = Any

_FUNCTIONS = {"sin": sin, "cos": cos, "tan": tan}
_INVERSES = {"asin": asin, "acos": acos, "atan": atan}


class NotReadError(Exception):
    """Says why a text is not compared by code; never a fault of the text."""


class DivisionByNoughtError(NotReadError):
    """Says that a text has no value: it divides by nought, and is wrong wherever it claims one."""


@dataclass(frozen=True)
class MathNode:
    """A part of an expression.

    kind: number, letter, pi, minus, sum, product, quotient, power, root, function, abs, percent, mixed, unit, vector.
    """

    kind: str
    parts: tuple[MathNode, ...] = ()
    #: Digits, a name, or the unit.
    text: str = ""

    @cached_property
    def value(self) -> Value:
        """Return its exact value, letters as symbols, per cent as hundredths."""
        return evaluate(self, {})

    @cached_property
    def plain_value(self) -> Value:
        """Return the same as `value`, but a Fraction where it is rational, for SymPy's numbers are slow."""
        if self.kind == "letter":
            return Symbol(self.text)
        return _combined(self, [part.plain_value for part in self.parts], _CENT)

    def walk(self) -> Iterator[MathNode]:
        """Yield this part and all inside it, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @cached_property
    def letters(self) -> frozenset[str]:
        return frozenset(part.text for part in self.walk() if part.kind == "letter")


def number(text: str) -> MathNode:
    """Return the node of a number."""
    return MathNode("number", (), text)


def evaluate(node: MathNode, at: Mapping[str, Value]) -> Value:
    """Return the value of a tree; letters that `at` leaves out stay symbols, "%" is the value of one per cent.

    Raises:
        NotReadError: It has no value (a division by nought), or one out of bounds.
    """
    value = _evaluate(node, {name: _exact(known) for name, known in at.items()})
    if isinstance(value, Fraction):
        return Rational(value.numerator, value.denominator)
    if not isinstance(value, ImmutableMatrix) and value.has(zoo, nan):
        raise DivisionByNoughtError("division by nought")
    return value


def _evaluate(node: MathNode, at: Mapping[str, Value]) -> Value:
    if "%" not in at and node.letters.isdisjoint(at):
        return node.plain_value
    if node.kind == "letter":
        return at[node.text]
    return _combined(node, [_evaluate(part, at) for part in node.parts], at.get("%", _CENT))


def _combined(node: MathNode, parts: list[Value], cent: Value) -> Value:
    """Return the value of a node, no letter, whose parts have these values."""
    return _scalar(parts[0]) * cent if node.kind == "percent" else _KINDS[node.kind](node.text, parts)


def _exact(value: Value) -> Value:
    return Fraction(int(value.p), int(value.q)) if getattr(value, "is_Rational", False) else value


def _scalar(value: Value) -> Value:
    if isinstance(value, ImmutableMatrix):
        raise NotReadError("a vector where a number is needed")
    return value


def _sum(parts: list[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        both = [isinstance(side, ImmutableMatrix) for side in (total, part)]
        if any(both) and not (all(both) and total.shape == part.shape):
            raise NotReadError("a vector and a number are added")
        total = total + part
    return total


def _product(parts: list[Value]) -> Value:
    if sum(isinstance(part, ImmutableMatrix) for part in parts) > 1:
        raise NotReadError("a product of vectors")
    total = parts[0]
    for part in parts[1:]:
        total = _bounded(total * part)
    return total


def _quotient(top: Value, low: Value) -> Value:
    if _scalar(low) == 0:
        raise DivisionByNoughtError("division by nought")
    return top / low


def _power(base: Value, exponent: Value) -> Value:
    base, exponent = _scalar(base), _scalar(exponent)
    fraction = isinstance(exponent, Fraction)
    if fraction or exponent.is_number:
        if not (fraction or exponent.is_comparable) or abs(exponent) > MOST_POWER:
            raise NotReadError("a power out of bounds")
        if base == 0 and exponent <= 0:
            raise DivisionByNoughtError("division by nought")
        if isinstance(base, Fraction) and _bits(base) * abs(exponent) > MOST_BITS:
            raise NotReadError("a power out of bounds")
    elif exponent.has(Pow):
        raise NotReadError("a power of powers")
    if isinstance(base, Fraction) and fraction and exponent.denominator == 1:
        return _bounded(base ** int(exponent))
    power, base = sympify(exponent), sympify(base)
    if base.is_negative and power.is_Rational and power.q > 1 and power.q % 2:
        # In school the cube root of -8 is -2.
        return _exact((-1) ** power.p * Pow(-base, power))
    return _bounded(_exact(Pow(base, power)))


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Value) -> Value:
    if isinstance(value, Pow) and value.exp.is_Rational and abs(value.exp) > 4 * MOST_POWER:
        raise NotReadError("a power out of bounds")
    if isinstance(value, Fraction) and _bits(value) > MOST_BITS:
        raise NotReadError("a number out of bounds")
    return value


def _root(inside: Value, index: Value) -> Value:
    inside, index = sympify(_scalar(inside)), sympify(_scalar(index))
    if not (index.is_Integer and 1 < index <= MOST_POWER):
        raise NotReadError("a root out of bounds")
    return _exact(-root(-inside, index) if inside.is_negative and index % 2 else root(inside, index))


def _function(name: str, argument: Value) -> Value:
    if name in _INVERSES:
        return _exact(_INVERSES[name](argument) * 180 / pi)
    # Only multiples of 15° have roots that a school writes; SymPy would write sin 54° with roots of roots.
    plain = not isinstance(argument, Fraction) or argument % 15 == 0
    return _exact(_FUNCTIONS[name](argument * pi / 180, evaluate=plain))


def _magnitude(value: Value) -> Value:
    return _exact(sqrt(value.dot(value))) if isinstance(value, ImmutableMatrix) else abs(value)


_KINDS: dict[str, Callable[[str, list[Value]], Value]] = {
    "number": lambda text, parts: Fraction(text),
    "pi": lambda text, parts: pi,
    "minus": lambda text, parts: -parts[0],
    "sum": lambda text, parts: _sum(parts),
    "product": lambda text, parts: _product(parts),
    "quotient": lambda text, parts: _quotient(*parts),
    "power": lambda text, parts: _power(*parts),
    "root": lambda text, parts: _root(*parts),
    "function": lambda text, parts: _function(text, _scalar(parts[0])),
    "abs": lambda text, parts: _magnitude(parts[0]),
    "mixed": lambda text, parts: parts[0] + _quotient(*parts[1:]),
    "unit": lambda text, parts: parts[0],
    "vector": lambda text, parts: ImmutableMatrix([_scalar(part) for part in parts]),
}


def approximate(node: MathNode, at: Mapping[str, float]) -> float:
    """Return a value as a float, for a search over many places.

    Raises:
        NotReadError: It has none there.
    """
    try:
        if node.kind == "letter":
            return at[node.text]
        return float(_FLOATS[node.kind](node.text, [approximate(part, at) for part in node.parts]))
    except (KeyError, ValueError, ZeroDivisionError, OverflowError, TypeError):
        raise NotReadError("no number there") from None


_FLOATS: dict[str, Callable[[str, list[float]], float]] = {
    "number": lambda text, parts: float(text),
    "pi": lambda text, parts: math.pi,
    "minus": lambda text, parts: -parts[0],
    "sum": lambda text, parts: sum(parts),
    "product": lambda text, parts: math.prod(parts),
    "quotient": lambda text, parts: parts[0] / parts[1],
    "power": lambda text, parts: parts[0] ** parts[1],
    "root": lambda text, parts: parts[0] ** (1 / parts[1]),
    "function": lambda text, parts: getattr(math, text)(math.radians(parts[0])) if text in _FUNCTIONS else math.nan,
    "abs": lambda text, parts: abs(parts[0]),
    "percent": lambda text, parts: parts[0] / 100,
    "mixed": lambda text, parts: parts[0] + parts[1] / parts[2],
    "unit": lambda text, parts: parts[0],
}
