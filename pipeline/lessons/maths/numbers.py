"""Exact numbers: fractions, and SymPy's expressions where fractions do not reach; bounds, order and zero."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

#: Largest numerator or denominator, and largest power in either direction.
MAX_BITS, MAX_POWER = 4_096, 64
#: Digits by which two irrational numbers are told apart.
_DIGITS, _NOTHING = 60, 1e-40
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
        from sympy import Rational

        return Rational(value.numerator, value.denominator)
    if isinstance(value, bool | tuple | list):
        what = "a condition" if isinstance(value, bool) else "a point" if isinstance(value, tuple) else "a list"
        raise EvaluationError(f"one number is needed, not {what}")
    return value


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
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise EvaluationError(f"a number of more than {MAX_BITS:,} bits", code="too_large")
    return value


def _exact(value: Any) -> Any:
    import sympy

    if value.is_Rational:
        return Fraction(int(value.p), int(value.q))
    if value.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        raise UndefinedValue("no real number")
    for atom in value.atoms(sympy.Rational):
        if max(int(atom.p).bit_length(), int(atom.q).bit_length()) > MAX_BITS:
            raise EvaluationError(f"a number of more than {MAX_BITS:,} bits", code="too_large")
    for power in value.atoms(sympy.Pow):
        if not power.exp.is_Rational or abs(power.exp) > MAX_POWER:
            raise EvaluationError(f"a power is a number between -{MAX_POWER} and {MAX_POWER}", code="too_large")
    return value


def order(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 as the first number is smaller, equal or larger.

    Raises:
        EvaluationError: One of them is no number.
    """
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return (left > right) - (left < right)
    gap = symbolic(left) - symbolic(right)
    if not gap.is_number:
        raise EvaluationError(f"{gap.free_symbols} cannot be compared: they have no value")
    if is_zero(gap):
        return 0
    return 1 if gap.evalf(_DIGITS) > 0 else -1


def is_zero(value: Any) -> bool:
    """Say whether a number is 0, or an expression is 0 for all values of its letters."""
    if isinstance(value, Fraction):
        return value == 0
    value = symbolic(value)
    if value.is_number:
        return bool(value == 0) or bool(abs(value.evalf(_DIGITS)) < _NOTHING)
    import sympy

    plain = bounded(value)
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
