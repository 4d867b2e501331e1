"""Decides how numbers of answers are held: exactly (fractions and surds) as long as possible, else as floats.

Knows nothing of text; `evaluator` reads expressions and calls this. Every operation is bounded in size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

#: Largest size of a numerator or denominator, so that no expression can eat the machine.
MAX_BITS = 4_096
#: Largest power, in either direction.
MAX_EXPONENT = 64
#: Most different roots in one exact sum; beyond it the value becomes a float.
MAX_ROOTS = 12
#: Two inexact values are the same when they differ by less than this part of the larger.
RELATIVE = 1e-9
#: Trial division stops here when a square factor is taken out of a root.
_TRIAL = 1_000


class EvaluationError(ValueError):
    """The expression was refused; the message says why and what to write instead."""


class UndefinedValue(EvaluationError):
    """The expression has no value here: a division by nought, a root of a negative number, tan 90."""


@dataclass(frozen=True, slots=True)
class Surd:
    """An irrational sum of rational multiples of square roots."""

    #: (square-free whole number under the root, its factor), rising, no factor nought.
    terms: tuple[tuple[int, Fraction], ...]


Number = Fraction | Surd | float


def number(terms: Mapping[int, Fraction]) -> Fraction | Surd:
    """Return the sum of `factor × √root` over the terms, as a Fraction where it is rational."""
    kept = tuple(sorted((root, factor) for root, factor in terms.items() if factor))
    for _, factor in kept:
        _bounded(factor)
    if not kept:
        return Fraction(0)
    if len(kept) == 1 and kept[0][0] == 1:
        return kept[0][1]
    return Surd(kept)


def _terms(value: Fraction | Surd) -> dict[int, Fraction]:
    return dict(value.terms) if isinstance(value, Surd) else {1: value}


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise EvaluationError(f"a number of this calculation is longer than {MAX_BITS:,} bits")
    return value


def approximate(value: Number) -> float:
    """Return the nearest float.

    Raises:
        EvaluationError: The value is beyond the range of floats.
    """
    try:
        if isinstance(value, Surd):
            result = math.fsum(float(factor) * math.sqrt(root) for root, factor in value.terms)
        else:
            result = float(value)
    except OverflowError:
        raise EvaluationError("the value is too large") from None
    if not math.isfinite(result):
        raise EvaluationError("the value is too large")
    return result


def add(left: Number, right: Number) -> Number:
    """Return left + right."""
    if isinstance(left, float) or isinstance(right, float):
        return approximate(approximate(left) + approximate(right))
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return _bounded(left + right)
    total = _terms(left)
    for root, factor in _terms(right).items():
        total[root] = total.get(root, Fraction(0)) + factor
    return number(total) if len(total) <= MAX_ROOTS else _float_sum(total)


def _float_sum(terms: Mapping[int, Fraction]) -> float:
    return approximate(Surd(tuple(terms.items())))


def negate(value: Number) -> Number:
    """Return −value."""
    return -value if isinstance(value, Fraction | float) else Surd(tuple((r, -f) for r, f in value.terms))


def multiply(left: Number, right: Number) -> Number:
    """Return left × right."""
    if isinstance(left, float) or isinstance(right, float):
        return approximate(approximate(left) * approximate(right))
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return _bounded(left * right)
    total: dict[int, Fraction] = {}
    for root, factor in _terms(left).items():
        for other, weight in _terms(right).items():
            shared = math.gcd(root, other)
            # √a × √b = g √(ab / g²): square-free again, because a and b are.
            key = (root // shared) * (other // shared)
            total[key] = total.get(key, Fraction(0)) + _bounded(factor * weight * shared)
    return number(total) if len(total) <= MAX_ROOTS else _float_sum(total)


def divide(left: Number, right: Number) -> Number:
    """Return left ÷ right; exact where the denominator has at most two terms.

    Raises:
        UndefinedValue: right is nought.
    """
    if right == 0:
        raise UndefinedValue("division by nought")
    if isinstance(right, Fraction):
        return multiply(left, 1 / right)
    if isinstance(right, float) or isinstance(left, float):
        return approximate(approximate(left) / approximate(right))
    if len(right.terms) == 1:
        root, factor = right.terms[0]
        return multiply(left, number({root: 1 / (factor * root)}))
    if len(right.terms) == 2:
        (first, one), (second, two) = right.terms
        conjugate = Surd(((first, one), (second, -two)))
        return multiply(multiply(left, conjugate), 1 / (one * one * first - two * two * second))
    return approximate(approximate(left) / approximate(right))


def square_root(value: Number) -> Number:
    """Return √value; exact for rational values whose square factors can be found.

    Raises:
        UndefinedValue: value is negative.
    """
    if approximate(value) < 0:
        raise UndefinedValue("the square root of a negative number")
    if not isinstance(value, Fraction):
        return math.sqrt(approximate(value))
    # √(p/q) = √(pq) / q keeps the root whole.
    split = square_factor(value.numerator * value.denominator)
    if split is None:
        return math.sqrt(approximate(value))
    outside, inside = split
    return number({inside: Fraction(outside, value.denominator)}) if value else Fraction(0)


def square_factor(whole: int) -> tuple[int, int] | None:
    """Return (a, b) with whole = a² b and b square-free; None where that would take too long."""
    if whole == 0:
        return 0, 1
    outside, inside, rest = 1, 1, whole
    for prime in range(2, _TRIAL):
        if prime * prime > rest:
            break
        while rest % (prime * prime) == 0:
            rest //= prime * prime
            outside *= prime
        if rest % prime == 0:
            rest //= prime
            inside *= prime
    root = math.isqrt(rest)
    if root * root == rest:
        return outside * root, inside
    # What is left has only factors above the trial limit: below its cube it holds no other square.
    return (outside, inside * rest) if rest < _TRIAL**3 else None


def power(base: Number, exponent: Number) -> Number:
    """Return base ^ exponent.

    Raises:
        UndefinedValue: 0 to a negative power, an even root of a negative number.
        EvaluationError: The exponent is above 64, or irrational.
    """
    if not isinstance(exponent, Fraction):
        raise EvaluationError("an exponent must be a fraction or a whole number")
    if abs(exponent) > MAX_EXPONENT or exponent.denominator > MAX_EXPONENT:
        raise EvaluationError(f"an exponent above {MAX_EXPONENT} is refused")
    if exponent < 0:
        return divide(Fraction(1), power(base, -exponent))
    rooted = base if exponent.denominator == 1 else nth_root(base, exponent.denominator)
    return _whole_power(rooted, exponent.numerator)


def _whole_power(base: Number, exponent: int) -> Number:
    if isinstance(base, float):
        try:
            return approximate(base**exponent)
        except OverflowError:
            raise EvaluationError("the value is too large") from None
    if isinstance(base, Fraction):
        if max(base.numerator.bit_length(), base.denominator.bit_length()) * exponent > MAX_BITS + exponent:
            raise EvaluationError(f"a number of this calculation is longer than {MAX_BITS:,} bits")
        return base**exponent
    result: Number = Fraction(1)
    for _ in range(exponent):
        result = multiply(result, base)
    return result


def nth_root(value: Number, degree: int) -> Number:
    """Return the real root of this degree; odd roots of negative numbers exist.

    Raises:
        UndefinedValue: An even root of a negative number.
    """
    if degree == 2:
        return square_root(value)
    size = approximate(value)
    if size < 0:
        if degree % 2 == 0:
            raise UndefinedValue("an even root of a negative number")
        return negate(nth_root(negate(value), degree))
    if isinstance(value, Fraction):
        top, bottom = whole_root(value.numerator, degree), whole_root(value.denominator, degree)
        if top is not None and bottom is not None:
            return Fraction(top, bottom)
    return approximate(size ** (1 / degree))


def whole_root(whole: int, degree: int) -> int | None:
    """Return r with r^degree = whole, or None."""
    low, high = 0, 1 << (whole.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < whole:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == whole else None


def same(left: Number, right: Number) -> bool:
    """Say whether two values are equal: exactly where both are exact, else to 1e-9 of the larger."""
    if not isinstance(left, float) and not isinstance(right, float):
        return left == right
    a, b = approximate(left), approximate(right)
    return abs(a - b) <= RELATIVE * max(abs(a), abs(b), 1e-3)
