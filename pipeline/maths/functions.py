"""The functions of the expression language: one table of names, how many values each takes, and what it does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any, TypeAlias

from pipeline.maths.numbers import (
    EvaluationError,
    UndefinedValue,
    bounded,
    is_number,
    is_zero,
    measured,
    order,
    symbolic,
)
from pipeline.maths.rounding import MAX_PLACES, RoundingError, round_half_up

Value: TypeAlias = Any
_Function: TypeAlias = Callable[..., Value]
#: How many values a function takes that takes as many as are given.
MANY = 0
#: Longest number whose root is taken, and highest degree whose roots are looked for.
_ROOT_BITS, _DEGREE = 256, 4


def call(name: str, values: Sequence[Value]) -> Value:
    """Return what a function of the table gives.

    Raises:
        EvaluationError: Wrong number or kind of values.
        UndefinedValue: No real result.
    """
    count, function = TABLE[name]
    given = list(values[0]) if count == MANY and len(values) == 1 and isinstance(values[0], list | tuple) else [*values]
    if (count and len(given) != count) or not given:
        needed = f"{count} value{'s' if count > 1 else ''}" if count else "values"
        raise EvaluationError(f"{name} takes {needed} in brackets")
    return measured(function(*given))


def root_power(base: Value, exponent: Fraction) -> Value:
    """Return a power that Fractions alone do not have: of a root, a letter, or with a fraction above."""
    if isinstance(base, Fraction) and exponent.denominator > 1:
        return _root(base, Fraction(exponent.denominator)) ** exponent.numerator
    return symbolic(base) ** symbolic(exponent)


def _root(value: Value, degree: Value) -> Value:
    count = _whole_number(degree, "a root", 2, 64)
    if not isinstance(value, Fraction):
        inner = symbolic(value)
        if inner.is_number and count % 2 == 0 and order(value, Fraction(0)) < 0:
            raise UndefinedValue("an even root of a negative number")
        from sympy import Rational

        return inner ** Rational(1, count)
    if value < 0:
        if count % 2 == 0:
            raise UndefinedValue("an even root of a negative number")
        return -_root(-value, degree)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _ROOT_BITS:
        raise EvaluationError(f"a root of a number of more than {_ROOT_BITS} bits", code="too_large")
    top, bottom = (_whole_root(part, count) for part in (value.numerator, value.denominator))
    if top is not None and bottom is not None:
        return Fraction(top, bottom)
    from sympy import Rational

    return symbolic(value) ** Rational(1, count)


def _whole_root(number: int, degree: int) -> int | None:
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**degree < number else (low, middle)
    return low if low**degree == number else None


def _sqrt(value: Value) -> Value:
    return _root(value, Fraction(2))


def _turn(name: str) -> _Function:
    """Return sin, cos or tan of degrees."""

    def function(angle: Value) -> Value:
        import sympy

        # Only these have roots that a school writes; SymPy would write sin 54° with roots of roots.
        plain = not isinstance(angle, Fraction) or angle % 15 == 0
        return getattr(sympy, name)(symbolic(angle) * sympy.pi / 180, evaluate=plain)

    return function


def _angle(name: str) -> _Function:
    """Return asin, acos or atan in degrees."""

    def function(ratio: Value) -> Value:
        import sympy

        number = symbolic(ratio)
        if name != "atan" and number.is_number and (order(ratio, Fraction(1)) > 0 or order(ratio, Fraction(-1)) < 0):
            raise UndefinedValue(f"{name} of a number beyond 1")
        return getattr(sympy, name)(number) * 180 / sympy.pi

    return function


def _abs(value: Value) -> Value:
    if is_number(value):
        return value if order(value, Fraction(0)) >= 0 else -value
    return abs(symbolic(value))


def _floor(value: Value) -> Value:
    if isinstance(value, Fraction):
        return Fraction(math.floor(value))
    from sympy import floor

    return floor(symbolic(value))


def _ceil(value: Value) -> Value:
    return -_floor(-symbolic(value)) if not isinstance(value, Fraction) else Fraction(math.ceil(value))


def _whole_number(value: Value, what: str, low: int, high: int) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not low <= value <= high:
        raise EvaluationError(f"{what} needs a whole number from {low} to {high}")
    return int(value)


def _whole_pair(function: Callable[[int, int], int], name: str) -> _Function:
    def of_two(left: Value, right: Value) -> Value:
        top = 10**18
        return Fraction(function(_whole_number(left, name, -top, top), _whole_number(right, name, -top, top)))

    return of_two


def _mod(left: Value, right: Value) -> Value:
    if not (isinstance(left, Fraction) and isinstance(right, Fraction)) or not right:
        raise EvaluationError("mod takes two fractions or whole numbers, the second not 0")
    return left % right


def _whole(value: Value) -> bool:
    if isinstance(value, Fraction):
        return value.denominator == 1
    number = symbolic(value)
    return bool(number.is_number) and is_zero(number - round(number))


def _square(value: Value) -> bool:
    return isinstance(value, Fraction) and value >= 0 and isinstance(_sqrt(value), Fraction) and value.denominator == 1


def _squarepart(value: Value) -> Value:
    """Return the largest square number that divides a whole number."""
    rest = _whole_number(value, "squarepart", 1, 10**9)
    return Fraction(next(root * root for root in range(math.isqrt(rest), 0, -1) if rest % (root * root) == 0))


def _rounded(kind: str) -> _Function:
    def function(value: Value, count: Value) -> Value:
        rule = f"nearest {count}" if kind == "nearest" else f"{_whole_number(count, kind, 0, MAX_PLACES)} {kind}"
        try:
            return Fraction(round_half_up(value, rule))
        except RoundingError as error:
            raise EvaluationError(str(error)) from None

    return function


def sort(values: Sequence[Value]) -> list[Value]:
    """Return numbers in rising order."""
    return sorted(values, key=cmp_to_key(order))


def _roots(expression: Value, letter: Value) -> Value:
    import sympy

    unknown = symbolic(letter)
    polynomial = bounded(symbolic(expression)).as_poly(unknown) if unknown.is_Symbol else None
    if polynomial is None or not 1 <= polynomial.degree() <= _DEGREE:
        raise EvaluationError(f"roots takes a polynomial of degree 1 to {_DEGREE} and its letter")
    found = [measured(root) for root in sympy.roots(polynomial) if root.is_real]
    return sort(found) if all(isinstance(root, Fraction) or root.is_number for root in found) else found


def _item(values: Value, place: Value) -> Value:
    if not isinstance(values, list | tuple):
        raise EvaluationError("item takes a list and a place")
    number = _whole_number(place, "item", 1, 64)
    if number > len(values):
        raise UndefinedValue(f"there is no item {number}", code="no_such_item")
    return values[number - 1]


def _expand(value: Value) -> Value:
    return bounded(symbolic(value))


def _factor(value: Value) -> Value:
    import sympy

    plain = bounded(symbolic(value))
    if not plain.free_symbols:
        return plain
    if sympy.total_degree(sympy.fraction(sympy.together(plain))[0]) > 8:
        raise EvaluationError("factor takes a polynomial of degree 8 at most", code="too_large")
    return sympy.factor(plain)


def _rational(name: str) -> _Function:
    """Return together (one fraction) or cancel (in lowest terms)."""

    def function(value: Value) -> Value:
        import sympy

        bounded(symbolic(value))
        return getattr(sympy, name)(symbolic(value))

    return function


def _sum(*values: Value) -> Value:
    if all(isinstance(value, Fraction) for value in values):
        return sum(values, Fraction(0))
    total = symbolic(Fraction(0))
    for value in values:
        total += symbolic(value)
    return total


def _mean(*values: Value) -> Value:
    return _sum(*values) / len(values)


def _median(*values: Value) -> Value:
    ordered = sort(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else _mean(ordered[middle - 1], ordered[middle])


def _mode(*values: Value) -> Value:
    (first, most), *others = Counter(values).most_common()
    if others and others[0][1] == most:
        raise UndefinedValue("there is no single mode", code="no_mode")
    return first


def _deviation(*values: Value) -> Value:
    """Return the standard deviation of a sample (n - 1 below)."""
    if len(values) < 2:
        raise EvaluationError("sd takes two values or more")
    middle = _mean(*values)
    return _sqrt(_sum(*((value - middle) ** 2 for value in values)) / (len(values) - 1))


def _quartile(upper: bool) -> _Function:
    """Return the median of the lower or upper half; the middle value of an odd number belongs to neither."""

    def function(*values: Value) -> Value:
        ordered, half = sort(values), len(values) // 2
        if not half:
            raise EvaluationError("a quartile takes two values or more")
        return _median(*(ordered[-half:] if upper else ordered[:half]))

    return function


def _iqr(*values: Value) -> Value:
    return _quartile(True)(*values) - _quartile(False)(*values)


def _mag(*parts: Value) -> Value:
    return _sqrt(measured(_sum(*(part * part for part in parts))))


#: Name → how many values (0: as many as are given), function.
TABLE: Mapping[str, tuple[int, _Function]] = {
    "sqrt": (1, _sqrt), "root": (2, _root), "abs": (1, _abs), "mag": (MANY, _mag),
    "sin": (1, _turn("sin")), "cos": (1, _turn("cos")), "tan": (1, _turn("tan")),
    "asin": (1, _angle("asin")), "acos": (1, _angle("acos")), "atan": (1, _angle("atan")),
    "floor": (1, _floor), "ceil": (1, _ceil), "dp": (2, _rounded("dp")), "sf": (2, _rounded("sf")),
    "nearest": (2, _rounded("nearest")),
    "gcd": (2, _whole_pair(math.gcd, "gcd")), "lcm": (2, _whole_pair(math.lcm, "lcm")), "mod": (2, _mod),
    "whole": (1, _whole), "square": (1, _square), "squarepart": (1, _squarepart),
    "min": (MANY, lambda *values: sort(values)[0]), "max": (MANY, lambda *values: sort(values)[-1]),
    "sum": (MANY, _sum), "mean": (MANY, _mean), "median": (MANY, _median), "mode": (MANY, _mode),
    "sd": (MANY, _deviation), "lower_quartile": (MANY, _quartile(False)), "upper_quartile": (MANY, _quartile(True)),
    "iqr": (MANY, _iqr), "roots": (2, _roots), "item": (2, _item), "expand": (1, _expand), "factor": (1, _factor),
    "together": (1, _rational("together")), "cancel": (1, _rational("cancel")),
}  # fmt: skip
