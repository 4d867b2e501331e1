"""Expressions written by an author: read against a whitelist, never run as code; values held exactly while possible.

A token list and then the syntax tree are checked: numbers, names that were given, + − × ÷ ^, sqrt, sin, cos, tan
(degrees) and pi. Everything else is refused with a sentence that says what to write instead. Numbers are fractions and
surds as long as possible, else floats; every operation is bounded in size.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Mapping
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


#: Longest text that is read at all.
MAX_TEXT = 1_000
#: Most nodes of a syntax tree (numbers, names, operations).
MAX_NODES = 120
FUNCTIONS = ("sqrt", "sin", "cos", "tan")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|([A-Za-z][A-Za-z0-9_]*)|(\*\*|[-+*/()]))")
_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "^": "**", "π": "pi", "√": "sqrt", "²": "**2", "³": "**3"})
#: sin of multiples of 30 and 45 degrees below a right angle, squared: their roots are exact.
_SINE_SQUARED = {0: Fraction(0), 30: Fraction(1, 4), 45: Fraction(1, 2), 60: Fraction(3, 4), 90: Fraction(1)}


def evaluate(text: str, names: Mapping[str, Number] | None = None) -> Number:
    """Return the value of an expression, exactly where that is possible.

    Args:
        names: Values of the letters that may occur.

    Raises:
        EvaluationError: The text is not an expression of the whitelist, or too large.
        UndefinedValue: It has no value here (a pole, a root of a negative number).
    """
    given = names or {}
    return value_of(parse(text, given), given)


def parse(text: str, names: Collection[str] = ()) -> ast.expr:
    """Return the checked syntax tree of an expression; every node is of the whitelist.

    Numbers stand in it as `Constant` with a Fraction value.

    Raises:
        EvaluationError: The text is not an expression of the whitelist.
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise EvaluationError(f"an expression is text of at most {MAX_TEXT} characters")
    source = " ".join(tokens(text, names))
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise EvaluationError(f"not an expression: {text[:60]!r}") from None
    if sum(1 for node in ast.walk(tree) if isinstance(node, ast.expr)) > MAX_NODES:
        raise EvaluationError(f"an expression of more than {MAX_NODES} parts")
    return _checked(tree, source)


def tokens(text: str, names: Collection[str] = ()) -> list[str]:
    """Return the tokens of an expression.

    Raises:
        EvaluationError: A sign, a name or a product without × that is not allowed.
    """
    plain = text.translate(_SIGNS)
    found: list[str] = []
    place = 0
    while plain[place:].strip():
        match = _TOKEN.match(plain, place)
        if match is None:
            raise EvaluationError(f"{plain[place:].strip()[0]!r} is not allowed in an expression")
        token = match.group().strip()
        _check_neighbours(found[-1] if found else "", token, names)
        found.append(token)
        place = match.end()
    if not found:
        raise EvaluationError("an empty expression")
    return found


def letters(*texts: str) -> list[str]:
    """Return the letters of expressions, sorted; functions and pi are none."""
    return sorted({name for text in texts for name in _NAME.findall(text)} - {*FUNCTIONS, "pi"})


def _check_neighbours(before: str, token: str, names: Collection[str]) -> None:
    """Refuse unknown names and products written without a sign ("2x", "3(x + 1)")."""
    if token[0].isalpha() and token not in names and token not in FUNCTIONS and token != "pi":
        raise EvaluationError(f"{token!r} is not a known name; allowed: {', '.join((*names, *FUNCTIONS, 'pi'))}")
    ends_value = before == ")" or before[:1].isalnum() or before[:1] == "."
    starts_value = token == "(" or token[0].isalnum() or token[0] == "."
    if ends_value and starts_value and not (before in FUNCTIONS and token == "("):
        raise EvaluationError(f"write a product with *: {before}*{token}, not {before}{token}")


def _checked(node: ast.expr, source: str) -> ast.expr:
    if isinstance(node, ast.Constant):
        # The source text, not the parsed float: 0.1 + 0.2 is 3/10.
        return ast.Constant(Fraction(source[node.col_offset : node.end_col_offset]))  # type: ignore[arg-type]
    if isinstance(node, ast.Name) and node.id not in FUNCTIONS:
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        return ast.UnaryOp(node.op, _checked(node.operand, source))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return ast.BinOp(_checked(node.left, source), node.op, _checked(node.right, source))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        if len(node.args) != 1 or node.keywords:
            raise EvaluationError(f"{node.func.id} takes one value in brackets")
        return ast.Call(node.func, [_checked(node.args[0], source)], [])
    raise EvaluationError(f"{type(node).__name__.lower()} is not allowed in an expression")


def value_of(node: ast.expr, names: Mapping[str, Number]) -> Number:
    """Return the value of a tree that `parse` made."""
    if isinstance(node, ast.Constant):
        return Fraction(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return names.get(node.id, math.pi)
    if isinstance(node, ast.UnaryOp):
        inner = value_of(node.operand, names)
        return negate(inner) if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](value_of(node.left, names), value_of(node.right, names))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _FUNCTIONS[node.func.id](value_of(node.args[0], names))


def _subtract(left: Number, right: Number) -> Number:
    return add(left, negate(right))


def _sine(angle: Number) -> Number:
    if not isinstance(angle, Fraction):
        return math.sin(math.radians(approximate(angle)))
    turn = angle % 360
    sign = 1 if turn < 180 else -1
    half = turn % 180
    acute = half if half <= 90 else 180 - half
    squared = _SINE_SQUARED.get(int(acute)) if acute.denominator == 1 else None
    if squared is None:
        return sign * math.sin(math.radians(float(acute)))
    return multiply(Fraction(sign), square_root(squared))


def _cosine(angle: Number) -> Number:
    return _sine(add(Fraction(90), negate(angle)))


def _tangent(angle: Number) -> Number:
    below = _cosine(angle)
    if same(below, Fraction(0)):
        raise UndefinedValue("the tangent of a right angle")
    return divide(_sine(angle), below)


_OPERATIONS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: add,
    ast.Sub: _subtract,
    ast.Mult: multiply,
    ast.Div: divide,
    ast.Pow: power,
}
_FUNCTIONS: Mapping[str, Callable[[Number], Number]] = {
    "sqrt": square_root,
    "sin": _sine,
    "cos": _cosine,
    "tan": _tangent,
}
