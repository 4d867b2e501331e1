"""Decides what a checked expression is as a polynomial: its terms, degree and number of real roots."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from fractions import Fraction

from pipeline.lessons.evaluator import value_of
from pipeline.lessons.exact import EvaluationError

#: A product of powers of letters: (("x", 2), ("y", 1)).
Monomial = tuple[tuple[str, int], ...]
#: Factor of each monomial; no factor is nought.
Polynomial = Mapping[Monomial, Fraction]
MAX_TERMS = 60
MAX_DEGREE = 12


def polynomial(node: ast.expr) -> Polynomial | None:
    """Return the expression multiplied out; None where it is no polynomial with rational factors.

    Raises:
        EvaluationError: It has more than 60 terms, or a degree above 12.
    """
    if isinstance(node, ast.Name) and node.id != "pi":
        return {((node.id, 1),): Fraction(1)}
    if isinstance(node, ast.Constant):
        return _kept({(): Fraction(node.value)})  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp):
        inner = polynomial(node.operand)
        return None if inner is None else _scaled(inner, Fraction(-1 if isinstance(node.op, ast.USub) else 1))
    if isinstance(node, ast.BinOp):
        return _combined(node)
    return _constant(node)


def _combined(node: ast.BinOp) -> Polynomial | None:
    left, right = polynomial(node.left), polynomial(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return _sum(left, right)
    if isinstance(node.op, ast.Sub):
        return _sum(left, _scaled(right, Fraction(-1)))
    if isinstance(node.op, ast.Mult):
        return _product(left, right)
    if set(right) - {()}:
        return None
    number = right.get((), Fraction(0))
    if isinstance(node.op, ast.Div):
        return _scaled(left, 1 / number) if number else None
    return _power(left, number) if set(left) - {()} else _constant(node)


def _constant(node: ast.expr) -> Polynomial | None:
    if any(isinstance(part, ast.Name) and part.id not in ("sqrt", "sin", "cos", "tan") for part in ast.walk(node)):
        return None
    value = value_of(node, {})
    return _kept({(): value}) if isinstance(value, Fraction) else None


def _power(base: Polynomial, exponent: Fraction) -> Polynomial | None:
    if exponent.denominator != 1 or exponent < 0:
        return None
    if exponent > MAX_DEGREE:
        raise EvaluationError(f"a polynomial of a degree above {MAX_DEGREE}")
    result: Polynomial = {(): Fraction(1)}
    for _ in range(exponent.numerator):
        result = _product(result, base)
    return result


def _kept(terms: Mapping[Monomial, Fraction]) -> Polynomial:
    kept = {key: factor for key, factor in terms.items() if factor}
    if len(kept) > MAX_TERMS:
        raise EvaluationError(f"a polynomial of more than {MAX_TERMS} terms")
    return kept


def _scaled(terms: Polynomial, factor: Fraction) -> Polynomial:
    return _kept({key: factor * value for key, value in terms.items()})


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    total = dict(left)
    for key, factor in right.items():
        total[key] = total.get(key, Fraction(0)) + factor
    return _kept(total)


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    total: dict[Monomial, Fraction] = {}
    for first, one in left.items():
        for second, two in right.items():
            powers: dict[str, int] = dict(first)
            for letter, exponent in second:
                powers[letter] = powers.get(letter, 0) + exponent
            if sum(powers.values()) > MAX_DEGREE:
                raise EvaluationError(f"a polynomial of a degree above {MAX_DEGREE}")
            key = tuple(sorted(powers.items()))
            total[key] = total.get(key, Fraction(0)) + one * two
    return _kept(total)


def degree(terms: Polynomial) -> int:
    """Return the highest sum of powers; 0 for numbers."""
    return max((sum(exponent for _, exponent in key) for key in terms), default=0)


def coefficients(terms: Polynomial, letter: str) -> list[Fraction] | None:
    """Return the factors of letter^0, letter^1, …; None where other letters occur."""
    if any(name != letter for key in terms for name, _ in key):
        return None
    found = [Fraction(0)] * (degree(terms) + 1)
    for key, factor in terms.items():
        found[key[0][1] if key else 0] = factor
    return found


def real_roots(factors: list[Fraction]) -> int | None:
    """Return how many different real roots a polynomial in one letter has; None above degree 2 or if all are."""
    while factors and not factors[-1]:
        factors = factors[:-1]
    if len(factors) == 3:
        discriminant = factors[1] ** 2 - 4 * factors[2] * factors[0]
        return 2 if discriminant > 0 else 1 if discriminant == 0 else 0
    return {1: 0, 2: 1}.get(len(factors))


def common_factor(terms: Polynomial) -> tuple[int, dict[str, int]]:
    """Return the whole number (1 where factors are no whole numbers) and the powers of letters in every term."""
    if not terms:
        return 0, {}
    whole = all(factor.denominator == 1 for factor in terms.values())
    number = math.gcd(*(factor.numerator for factor in terms.values())) if whole else 1
    shared = dict(next(iter(terms)))
    for key in terms:
        powers = dict(key)
        shared = {letter: min(power, powers[letter]) for letter, power in shared.items() if letter in powers}
    return number, shared
