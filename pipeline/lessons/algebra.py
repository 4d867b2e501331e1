"""Decides whether two expressions with letters are equal, and whether values solve an equation or an inequality.

By substitution at fixed pseudo-random rational points: exact arithmetic, no rewriting of what an author wrote.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

from pipeline.lessons.evaluator import parse, value_of
from pipeline.lessons.exact import EvaluationError, Number, UndefinedValue, add, approximate, negate, same
from pipeline.lessons.polynomials import coefficients, polynomial, real_roots

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
    """As `equal_expressions`, for trees of `parse`."""
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
    left, right = sides(equation)
    bound = {name: f"({text})" for name, text in place.items()}
    values = [value_of(_substituted(parse(side, bound), place), {}) for side in (left, right)]
    return same(values[0], values[1])


def _substituted(tree: ast.expr, place: Mapping[str, str]) -> ast.expr:
    """Put the value's own tree where its letter stands, so that surds stay exact."""
    known = {name: parse(text) for name, text in place.items()}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return known.get(node.id, node)

    result = Put().visit(tree)
    assert isinstance(result, ast.expr)
    return result


def expected_roots(equation: str, letter: str) -> int | None:
    """Return how many different real solutions the equation has; None where degree and discriminant do not say.

    Raises:
        EvaluationError: A side is no expression.
    """
    left, right = (parse(side, [letter]) for side in sides(equation))
    terms = polynomial(ast.BinOp(left, ast.Sub(), right))
    factors = coefficients(terms, letter) if terms is not None else None
    return real_roots(factors) if factors else None


def equation_fault(equation: str, letter: str, roots: Sequence[str]) -> str | None:
    """Return what is wrong with the solutions of an equation: one that does not solve it, a missing or a double one."""
    for root in roots:
        try:
            if not solves(equation, {letter: root}):
                return f"{letter} = {root} does not solve it"
        except UndefinedValue:
            return f"{letter} = {root} makes it undefined"
    values = [value_of(parse(root), {}) for root in roots]
    if any(same(one, two) for index, one in enumerate(values) for two in values[:index]):
        return "a solution is listed twice"
    wanted = expected_roots(equation, letter)
    return None if wanted is None or wanted == len(roots) else f"{wanted} different real solutions expected"


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
