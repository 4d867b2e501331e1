"""Decides what an expression written by an author is worth; never runs it as code.

A token list and then the syntax tree are checked against a whitelist: numbers, names that were given, + − × ÷ ^,
sqrt, sin, cos, tan (degrees) and pi. Everything else is refused with a sentence that says what to write instead.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction

from pipeline.lessons.exact import (
    EvaluationError,
    Number,
    UndefinedValue,
    add,
    approximate,
    divide,
    multiply,
    negate,
    power,
    same,
    square_root,
)

#: Longest text that is read at all.
MAX_TEXT = 1_000
#: Most nodes of a syntax tree (numbers, names, operations).
MAX_NODES = 120
FUNCTIONS = ("sqrt", "sin", "cos", "tan")
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
