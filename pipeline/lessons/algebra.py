"""Polynomials and equations: equality of expressions, solutions of equations and inequalities.

Equality is decided at fixed pseudo-random rational points: exact arithmetic, no rewriting of what an author wrote.
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

from pipeline.lessons.expressions import (
    EvaluationError,
    Number,
    UndefinedValue,
    add,
    approximate,
    evaluate,
    negate,
    parse,
    same,
    value_of,
)

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


#: Points tried, and points needed where the expression has poles or roots of negatives.
POINTS = 24
NEEDED = 8
_SEED = 1_757


def points(names: Sequence[str], count: int = POINTS) -> list[dict[str, Fraction]]:
    """Return the same rational points for the same letters: between −6 and 6, both signs, no whole-number trap."""
    chance = random.Random(_SEED)
    return [
        {
            name: Fraction(chance.choice([-1, 1]) * chance.randint(1, 71), chance.choice([3, 5, 7, 11, 12]))
            for name in names
        }
        for _ in range(count)
    ]


def equal_expressions(left: str, right: str, names: Sequence[str]) -> bool:
    """Say whether two expressions agree wherever both have a value.

    Raises:
        EvaluationError: Not an expression, or fewer than 8 of 24 points have a value.
    """
    return equal_trees(parse(left, names), parse(right, names), names)


def equal_trees(left: ast.expr, right: ast.expr, names: Sequence[str]) -> bool:
    """Return what `equal_expressions` does, for trees of `parse`."""
    used = 0
    for place in points(names):
        one, two = _value(left, place), _value(right, place)
        if one is None or two is None:
            continue
        if not same(one, two):
            return False
        used += 1
        if not names:
            return True
    if used < NEEDED:
        raise EvaluationError("too few points where both sides have a value")
    return True


def _value(tree: ast.expr, place: Mapping[str, Fraction]) -> Number | None:
    try:
        return value_of(tree, place)
    except UndefinedValue:
        return None


def sides(equation: str) -> tuple[str, str]:
    """Return the two sides of "a = b".

    Raises:
        EvaluationError: There is not exactly one equals sign.
    """
    parts = equation.split("=")
    if len(parts) != 2:
        raise EvaluationError("an equation has exactly one = sign")
    return parts[0], parts[1]


def solves(equation: str, place: Mapping[str, str]) -> bool:
    """Say whether the values (expressions without letters) make the equation true.

    Raises:
        EvaluationError: A side or a value is no expression.
    """
    values = {name: evaluate(text) for name, text in place.items()}
    left, right = (evaluate(side, values) for side in sides(equation))
    return same(left, right)


def expected_roots(equation: str, letter: str) -> int | None:
    """Return how many different real solutions the equation has; None where degree and discriminant do not say.

    Raises:
        EvaluationError: A side is no expression.
    """
    left, right = (parse(side, [letter]) for side in sides(equation))
    terms = polynomial(ast.BinOp(left, ast.Sub(), right))
    factors = coefficients(terms, letter) if terms is not None else None
    return real_roots(factors) if factors else None


_RELATIONS = ("<=", ">=", "<", ">")


def inequality_fault(inequality: str, letter: str, relation: str, boundary: str) -> str | None:
    """Return what is wrong with "letter relation boundary" as the solution of a linear inequality.

    The inequality must hold just on the asked side of the boundary, fail on the other, and be an equality on it.
    """
    plain = inequality.replace("≤", "<=").replace("≥", ">=")
    sign = next((each for each in _RELATIONS if each in plain), None)
    relation = relation.replace("≤", "<=").replace("≥", ">=")
    if sign is None or relation not in _RELATIONS:
        return "no inequality sign"
    texts = plain.split(sign)
    if len(texts) != 2:
        return "an inequality has exactly one sign"
    left, right = (parse(text, [letter]) for text in texts)
    edge = value_of(parse(boundary), {})
    if not isinstance(edge, Fraction):
        return "the boundary is irrational"
    if not same(_difference(left, right, letter, edge), Fraction(0)):
        return f"the sides are not equal at {letter} = {boundary}"
    if ("=" in sign) != ("=" in relation):
        return "the boundary itself is included on one side only"
    return None if _one_sided(left, right, letter, edge, sign[0], relation[0]) else "the sign points the wrong way"


def _one_sided(left: ast.expr, right: ast.expr, letter: str, edge: Fraction, sign: str, relation: str) -> bool:
    for step in (Fraction(1, 7), Fraction(1), Fraction(53)):
        for side in (-1, 1):
            gap = approximate(_difference(left, right, letter, edge + side * step))
            if (gap > 0 if sign == ">" else gap < 0) != (side > 0 if relation == ">" else side < 0):
                return False
    return True


def _difference(left: ast.expr, right: ast.expr, letter: str, at: Fraction) -> Number:
    place = {letter: at}
    return add(value_of(left, place), negate(value_of(right, place)))
