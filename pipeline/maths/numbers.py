"""Exact numbers: fractions, and SymPy's expressions where fractions do not reach; bounds, order and zero."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pipeline.maths.rounding import RoundingError, decimal_of

#: Largest numerator or denominator, and largest power in either direction.
MAX_BITS, MAX_POWER = 4_096, 64
#: Irrational numbers that differ by less are one.
_NOTHING = Decimal("1e-30")
#: Values of letters at which an expression that is not 0 hardly ever is.
_PLACES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049)
#: Most terms of an expression that is multiplied out.
MAX_TERMS = 400


class EvaluationError(ValueError):
    """A text is not an expression of the language, or is too large.

    `code` is "not_an_expression", "unknown_name", "too_large", "division_by_zero" or "not_real".
    """

    def __init__(self, message: str, *, code: str = "not_an_expression") -> None:
        super().__init__(message)
        self.code = code


class UndefinedValue(EvaluationError):
    """An expression has no real value here."""

    def __init__(self, message: str, *, code: str = "not_real") -> None:
        super().__init__(message, code=code)


def symbolic(value: Any) -> Any:
    """Return a number as SymPy's.

    Raises:
        EvaluationError: It is a point, a list or a condition.
    """
    if isinstance(value, Fraction):
        import sympy

        return sympy.Rational(value.numerator, value.denominator)
    if isinstance(value, bool | tuple | list):
        what = "a condition" if isinstance(value, bool) else "a point" if isinstance(value, tuple) else "a list"
        raise EvaluationError(f"one number is needed, not {what}")
    return value


def bits(value: Fraction) -> int:
    """Return the length of the longer part of a fraction."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def measured(value: Any) -> Any:
    """Return a value as a Fraction where it is one.

    Raises:
        EvaluationError: A number in it is longer than MAX_BITS, or a power larger than MAX_POWER.
        UndefinedValue: It is infinite or not real.
    """
    if isinstance(value, tuple | list):
        return type(value)(measured(part) for part in value)
    if isinstance(value, bool):
        return value
    if not isinstance(value, Fraction):
        value = _exact(value)
    if isinstance(value, Fraction) and bits(value) > MAX_BITS:
        raise EvaluationError(f"a number of more than {MAX_BITS:,} bits", code="too_large")
    return value


def _exact(value: Any) -> Any:
    import sympy

    if value.is_Rational:
        return Fraction(int(value.p), int(value.q))
    parts = list(sympy.preorder_traversal(value))
    if not {sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo}.isdisjoint(parts):
        raise UndefinedValue("no real number")
    for part in parts:
        if part.is_Rational and max(int(part.p).bit_length(), int(part.q).bit_length()) > MAX_BITS:
            raise EvaluationError(f"a number of more than {MAX_BITS:,} bits", code="too_large")
        if part.is_Pow and (not part.exp.is_Rational or abs(part.exp) > MAX_POWER):
            raise EvaluationError(f"a power is a number between -{MAX_POWER} and {MAX_POWER}", code="too_large")
    return value


def order(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 as the first number is smaller, equal or larger.

    Raises:
        EvaluationError: One of them is no number.
    """
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return (left > right) - (left < right)
    try:
        first, second = (part if isinstance(part, Fraction) else symbolic(part) for part in (left, right))
        gap = decimal_of(first) - decimal_of(second)
    except RoundingError as error:
        raise EvaluationError(f"{error}, so it cannot be compared") from None
    return 0 if abs(gap) < _NOTHING else 1 if gap > 0 else -1


def is_number(value: Any) -> bool:
    """Say whether a value is one number, without letters."""
    return isinstance(value, Fraction) or bool(getattr(value, "is_number", False))


def is_zero(value: Any) -> bool:
    """Say whether a number is 0, or an expression is 0 for all values of its letters."""
    if is_number(value):
        return order(value, Fraction(0)) == 0
    import sympy

    plain = bounded(symbolic(value))
    letters = sorted(plain.free_symbols, key=str)
    somewhere = plain.xreplace({letter: sympy.Integer(at) for letter, at in zip(letters, _PLACES, strict=False)})
    with suppress(RoundingError):
        if abs(decimal_of(somewhere)) > _NOTHING:
            return False
    return bool(plain == 0) or bool(sympy.cancel(sympy.together(plain)) == 0) or bool(sympy.simplify(plain) == 0)


def bounded(value: Any) -> Any:
    """Return an expression multiplied out.

    Raises:
        EvaluationError: It would have more than MAX_TERMS terms.
    """
    if _terms(value) > MAX_TERMS:
        raise EvaluationError(f"an expression of more than {MAX_TERMS} terms", code="too_large")
    return value.expand()


def _terms(value: Any) -> int:
    """Return how many terms an expression has at most when multiplied out."""
    if value.is_Add:
        return sum(_terms(part) for part in value.args)
    if value.is_Mul:
        product = 1
        for part in value.args:
            product = min(product * _terms(part), MAX_TERMS + 1)
        return product
    if value.is_Pow and value.exp.is_Integer:
        return int(min(_terms(value.base) ** abs(int(value.exp)), MAX_TERMS + 1))
    return 1
