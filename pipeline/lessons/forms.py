"""Decides whether an answer is in the form that was asked for: simplified, factorised, in lowest terms.

Equality alone cannot tell: the unfactorised answer equals the factorised one. Each predicate returns the reason why
not, in words for the author, or None.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import TypeGuard

from pipeline.lessons.algebra import Polynomial, coefficients, common_factor, degree, polynomial
from pipeline.lessons.expressions import FUNCTIONS, EvaluationError, approximate, parse, square_factor, value_of

Tree = ast.expr
_SUM = (ast.Add, ast.Sub)


def form_fault(form: str, text: str, names: Collection[str] = ()) -> str | None:
    """Return why the expression is not in the named form; None where it is.

    Args:
        form: A key of FORMS.
        names: Letters of the expression.

    Raises:
        EvaluationError: The text is no expression, or there is no such form.
    """
    if form not in FORMS:
        raise EvaluationError(f"unknown form {form!r}")
    return FORMS[form](parse(text, names))


def _letters(node: Tree) -> set[str]:
    return {p.id for p in ast.walk(node) if isinstance(p, ast.Name) and p.id not in FUNCTIONS and p.id != "pi"}


def _unsigned(node: Tree) -> Tree:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return node


def _is(node: ast.AST, *signs: type[ast.operator]) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, signs)


def _operations(node: Tree, *signs: type[ast.operator]) -> list[ast.BinOp]:
    """Return the operations of these signs inside an expression, outermost first."""
    return [part for part in ast.walk(node) if _is(part, *signs)]


def _split(node: Tree, *signs: type[ast.operator]) -> list[Tree]:
    """Return the operands of a chain of these signs: terms of a sum, factors of a product."""
    plain = _unsigned(node)
    return [*_split(plain.left, *signs), *_split(plain.right, *signs)] if _is(plain, *signs) else [plain]


def _whole(node: Tree) -> int | None:
    """Return the value of a whole number without a sign; None for anything else."""
    value = Fraction(node.value) if isinstance(node, ast.Constant) else None  # type: ignore[arg-type]
    return value.numerator if value is not None and value.denominator == 1 else None


def _is_root(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sqrt"


def lowest_terms(node: Tree) -> str | None:
    """Return a whole number, or one fraction of whole numbers without a common factor."""
    plain = _unsigned(node)
    if isinstance(plain, ast.Constant):
        return None if _whole(plain) is not None else "write a fraction, not a decimal"
    if not _is(plain, ast.Div):
        return "not one fraction"
    top, bottom = _whole(_unsigned(plain.left)), _whole(_unsigned(plain.right))
    if top is None or not bottom:
        return "not a whole number over a whole number"
    shared = math.gcd(top, bottom)
    return None if shared == 1 and bottom != 1 else f"{shared} divides both parts"


def simplified_surd(node: Tree) -> str | None:
    """Refuse a square factor under a root, roots multiplied, like roots left to add, a root below the line."""
    roots: list[int] = []
    for part in ast.walk(node):
        if _is_root(part):
            inside = None if _letters(part) else value_of(part.args[0], {})
            if not isinstance(inside, Fraction) or inside.denominator != 1:
                return "a root of something that is no whole number"
            split = square_factor(inside.numerator)
            if split is None or split[0] != 1 or split[1] == 1:
                return f"the root of {inside} can be simplified"
            roots.append(inside.numerator)
    if len(roots) != len(set(roots)):
        return "like roots can be collected"
    return _root_product(node) or rational_denominator(node)


def _root_product(node: Tree) -> str | None:
    for part in _operations(node, ast.Mult):
        if _holds_root(part.left) and _holds_root(part.right):
            return "two roots can be multiplied"
        if any(_holds_root(side) and _operations(side, *_SUM) for side in (part.left, part.right)):
            return "a bracket can be multiplied out"
    return None


def _holds_root(node: Tree) -> bool:
    return any(_is_root(part) for part in ast.walk(node))


def rational_denominator(node: Tree) -> str | None:
    """Refuse a root below a line."""
    below = any(_holds_root(part.right) for part in _operations(node, ast.Div))
    return "a root stands below the line" if below else None


def expanded(node: Tree) -> str | None:
    """Return a sum of terms: no bracket left, like terms collected."""
    terms = _split(node, *_SUM)
    if any(_operations(term, *_SUM) for term in terms):
        return "a bracket is left"
    whole = polynomial(node)
    if whole is None:
        return "not a polynomial"
    return None if len(terms) == max(len(whole), 1) else "like terms can be collected"


def factorised(node: Tree) -> str | None:
    """Return a product whose factors cannot be factorised again over the whole numbers."""
    parts = _split(node, ast.Mult)
    if len(parts) < 2 and not _power_of(parts[0]):
        return "not a product"
    for part in (_power_of(part) or part for part in parts):
        terms = polynomial(part)
        if terms is None:
            return "a factor is not a polynomial"
        number, shared = common_factor(terms)
        if len(terms) > 1 and (number > 1 or shared):
            return "a factor has a common factor left"
        if _splits(terms):
            return "a factor can be factorised again"
    return None


def _power_of(node: Tree) -> Tree | None:
    """Return the base of a power with a number as exponent."""
    return node.left if _is(node, ast.Pow) and isinstance(node.right, ast.Constant) else None


def _splits(terms: Polynomial) -> bool:
    letters = {name for key in terms for name, _ in key}
    factors = coefficients(terms, *letters) if len(letters) == 1 else None
    if factors is None or len(terms) < 2 or degree(terms) != 2:
        return False
    discriminant = factors[1] ** 2 - 4 * factors[2] * factors[0]
    whole = discriminant >= 0 and discriminant.denominator == 1
    return whole and math.isqrt(discriminant.numerator) ** 2 == discriminant.numerator


def single_fraction(node: Tree) -> str | None:
    """Return one line: nothing is added outside it and no fraction stands inside a fraction."""
    lines = _operations(node, ast.Div)
    if len(lines) > 1:
        return "more than one fraction"
    if lines and _unsigned(node) is not lines[0]:
        return "a term stands beside the fraction"
    return None


def completed_square(node: Tree) -> str | None:
    """Accept (x + p)^2 + q, perhaps with a factor before the bracket."""
    squares = [term for term in _split(node, *_SUM) if _letters(term)]
    if len(squares) != 1:
        return "the letter stands outside the square"
    brackets = [part for part in _split(squares[0], ast.Mult) if _is(part, ast.Pow) and _whole(part.right) == 2]
    if len(brackets) != 1:
        return "not one squared bracket"
    inside = polynomial(brackets[0].left)
    return None if inside is not None and degree(inside) == 1 else "the bracket is not linear"


def scientific(node: Tree) -> str | None:
    """Ask for a × 10^n with 1 ≤ a < 10 and a whole n."""
    wrong = "not a number from 1 up to 10 times a power of ten"
    if not _is(node, ast.Mult) or not _is(node.right, ast.Pow):
        return wrong
    head, power = _unsigned(node.left), node.right
    small = isinstance(head, ast.Constant) and 1 <= Fraction(head.value) < 10  # type: ignore[arg-type]
    return None if small and _whole(power.left) == 10 and _whole(_unsigned(power.right)) is not None else wrong


def positive_powers(node: Tree) -> str | None:
    """Return each letter once, to positive powers only."""
    names = [p.id for p in ast.walk(node) if isinstance(p, ast.Name) and p.id not in FUNCTIONS]
    if len(names) != len(set(names)):
        return "powers of one letter can be collected"
    negative = any(_negative(part.right) for part in _operations(node, ast.Pow))
    return "a negative power is left" if negative else None


def _negative(node: Tree) -> bool:
    return not _letters(node) and approximate(value_of(node, {})) < 0


def mixed_number(node: Tree) -> str | None:
    """Return a whole number, a proper fraction in lowest terms, or one plus the other."""
    plain = _unsigned(node)
    if _is(plain, ast.Add):
        if not isinstance(plain.left, ast.Constant) or isinstance(plain.right, ast.Constant):
            return "not a whole number plus a fraction"
        return lowest_terms(plain.left) or mixed_number(plain.right)
    if reason := lowest_terms(plain):
        return reason
    proper = isinstance(plain, ast.Constant) or abs(approximate(value_of(plain, {}))) < 1
    return None if proper else "the fraction is top-heavy"


def single_power(node: Tree) -> str | None:
    """Return one number or letter, perhaps to a power."""
    plain = _unsigned(node)
    if _is(plain, ast.Pow):
        plain = _unsigned(plain.left)
    return None if isinstance(plain, ast.Constant | ast.Name) else "not one base with one power"


def any_form(node: Tree) -> str | None:
    """Return every form will do."""
    return None


#: Form names as answers carry them.
FORMS: Mapping[str, Callable[[Tree], str | None]] = {
    "lowest_terms": lowest_terms,
    "any": any_form,
    "mixed_number": mixed_number,
    "simplest": simplified_surd,
    "single_power": single_power,
    "rational_denominator": rational_denominator,
    "expanded": expanded,
    "factorised": factorised,
    "single_fraction": single_fraction,
    "completed_square": completed_square,
    "scientific": scientific,
    "positive_powers": positive_powers,
    # That the subject's own letter is not in it is seen from the names it may use.
    "subject": any_form,
}
