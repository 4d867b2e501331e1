"""The one expression language of lessons and question banks: read against a whitelist, computed exactly.

Numbers are fractions while they can be, else exact expressions of SymPy, which is loaded only for these. Python's
parser reads the text, but a name never becomes a word of Python and no text is ever run: this module walks a tree of
numbers, names, + - * / ^, brackets and the functions of functions.py. Powers, sizes and lengths are bounded.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeAlias

from pipeline.maths import functions
from pipeline.maths.numbers import (
    MAX_BITS,
    MAX_POWER,
    EvaluationError,
    UndefinedValue,
    bits,
    is_number,
    is_zero,
    measured,
    order,
    symbolic,
)

__all__ = [
    "EvaluationError", "Relation", "UndefinedValue", "Value", "evaluate", "holds", "names_in", "relations_in", "same",
]  # fmt: skip

#: A Fraction, else an expression of SymPy; a tuple of these (a point, a vector) or a list (roots); True or False.
Value: TypeAlias = Any
#: Longest text that is read, and most nodes of its tree.
MAX_TEXT, MAX_NODES = 1_000, 160
_SIGNS = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "π": "pi", "²": "**2", "³": "**3", "≤": "<=",
     "≥": ">=", "≠": "!="}
)  # fmt: skip
_ALLOWED = re.compile(r"[A-Za-z0-9_Α-ω.+*/(),\[\]<>=!\s-]*")
_NAME = re.compile(r"(?<![\w.])[A-Za-zΑ-ω]\w*")
_NUMBER = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)")
_RELATION = re.compile(r"<=|>=|!=|==|=|<|>")
_WORDS = frozenset(("and", "or", "not"))


@dataclass(frozen=True)
class Relation:
    """An equation or inequality as written: two expressions and = < > <= >= or != between them."""

    left: str
    sign: str
    right: str


def evaluate(text: str, names: Mapping[str, Value] | None = None, letters: str = "") -> Value:
    """Return the exact value of an expression.

    Args:
        names: What names stand for; a text is a name that is no number.
        letters: Unknowns, parted by spaces: "x t".

    Raises:
        EvaluationError: The text is not an expression of the language, or too large.
        UndefinedValue: It has no real value here: division by zero, a root of a negative number.
    """
    given = dict(names or {}) | {letter: _symbol(letter) for letter in letters.split()}
    tree = parsed(text)
    if isinstance(tree, ast.Compare | ast.BoolOp):
        raise EvaluationError(f"{_short(text)} is a condition, not a value")
    return _finite(_Walk(given, text).value(tree), text)


def holds(text: str, names: Mapping[str, Value] | None = None, letters: str = "") -> bool:
    """Say whether a condition is true: comparisons, `and`, `or`, `not`, whole(n), square(n).

    Raises:
        EvaluationError: The text is not a condition of the language.
        UndefinedValue: A side has no real value.
    """
    given = dict(names or {}) | {letter: _symbol(letter) for letter in letters.split()}
    result = _Walk(given, text).value(parsed(text))
    if not isinstance(result, bool):
        raise EvaluationError(f"{_short(text)} is a value, not a condition")
    return result


def same(left: Value, right: Value) -> bool:
    """Say whether two values are equal: numbers exactly, expressions for all values of their letters."""
    if isinstance(left, tuple | list) or isinstance(right, tuple | list):
        alike = isinstance(left, tuple | list) and isinstance(right, tuple | list) and len(left) == len(right)
        return alike and all(same(a, b) for a, b in zip(left, right, strict=True))
    if is_number(left) and is_number(right):
        return order(left, right) == 0
    return is_zero(_subtract(left, right))


@lru_cache(4_096)
def names_in(text: str) -> frozenset[str]:
    """Return the names that an expression, or a text of relations, speaks of; functions and pi are none.

    Raises:
        EvaluationError: The text is not of the language.
    """
    sides = [side for relation in relations_in(text) for side in (relation.left, relation.right)] or [text]
    nodes = (node for side in sides for node in ast.walk(parsed(side)))
    called = frozenset(functions.TABLE) | {"pi"}
    return frozenset(node.id[:-1] for node in nodes if isinstance(node, ast.Name)) - called


def relations_in(text: str) -> list[Relation]:
    """Return the equations and inequalities of a text, parted by ";"; none where it is one expression.

    "2 < x <= 5" is two. The sides are expressions; each is read, so that a fault shows here.

    Raises:
        EvaluationError: A part of several is no relation, or a side is not an expression.
    """
    parts = [part.strip() for part in text.translate(_SIGNS).split(";")]
    found: list[Relation] = []
    for part in parts:
        signs = _RELATION.findall(part)
        if not signs and len(parts) > 1:
            raise EvaluationError(f"{_short(part)} is no equation; parts are parted by ;")
        sides = [side.strip().replace("**", "^") for side in _RELATION.split(part)]
        for side in sides if signs else ():
            parsed(side)
        found += [
            Relation(*three) for three in zip(sides, [s.replace("==", "=") for s in signs], sides[1:], strict=False)
        ]
    return found


@cache
def _symbol(letter: str) -> Value:
    from sympy import Symbol

    return Symbol(letter)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


@lru_cache(8_192)
def parsed(text: str) -> ast.expr:
    """Return the checked tree of an expression; its names end in "_", so that none is a word of Python."""
    source = text.translate(_SIGNS).strip()
    if len(text) > MAX_TEXT:
        raise EvaluationError(f"{_short(text)} is too long")
    if not _ALLOWED.fullmatch(source):
        strange = next(sign for sign in source if not _ALLOWED.fullmatch(sign))
        raise EvaluationError(f"{_short(text)}: {strange!r} is not allowed in an expression")
    source = _NAME.sub(lambda found: found[0] if found[0] in _WORDS else found[0] + "_", source.replace("\n", " "))
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise EvaluationError(f"{_short(text)} is not an expression{_hint(text)}") from None
    nodes, read = [*ast.walk(tree)], source.encode()
    if sum(isinstance(node, ast.expr) for node in nodes) > MAX_NODES:
        raise EvaluationError(f"{_short(text)} has more than {MAX_NODES} parts")
    for node in nodes:
        _check(node, read, text)
    return tree


def _hint(text: str) -> str:
    if text.count("(") > text.count(")"):
        return "; a bracket is not closed (a comma in { } or [ ] of YAML ends the entry: write one entry a line)"
    if re.search(r"\d[A-Za-z(]|\)\s*[\w(]|[A-Za-z] +[A-Za-z]", text):
        return "; a product needs its sign: 2*x, 3*(x + 1)"
    return ""


def _check(node: ast.AST, source: bytes, text: str) -> None:
    """Refuse what is not of the language; put the exact number in the place of Python's."""
    if isinstance(node, ast.Constant):
        digits = source[node.col_offset : node.end_col_offset].decode()
        if not _NUMBER.fullmatch(digits):
            raise EvaluationError(f"{_short(text)}: {digits or node.value!r} is not a plain number")
        number = Fraction(digits)
        if bits(number) > MAX_BITS:
            raise EvaluationError(f"{_short(text)}: a number is too long")
        node.value = number  # type: ignore[assignment]
    elif isinstance(node, ast.Call):
        name = node.func.id[:-1] if isinstance(node.func, ast.Name) else ""
        if name not in functions.TABLE or node.keywords:
            listed = ", ".join(functions.TABLE)
            raise EvaluationError(f"{_short(text)}: {name or 'this'!r} is not a function; there are {listed}")
    elif not isinstance(node, _NODES):
        what = type(node).__name__.lower()
        raise EvaluationError(f"{_short(text)}: {what} is not allowed in an expression")


_NODES = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd, ast.And, ast.Or, ast.Not, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
    ast.Eq, ast.NotEq,
)  # fmt: skip


class _Walk:
    """Computes the tree of one text."""

    def __init__(self, names: Mapping[str, Value], text: str) -> None:
        self.names, self.text = names, text

    def value(self, node: ast.expr) -> Value:
        kind: Callable[[Any], Value] = getattr(self, f"_{type(node).__name__.lower()}")
        return kind(node)

    def _constant(self, node: ast.Constant) -> Value:
        return node.value

    def _name(self, node: ast.Name) -> Value:
        name = node.id[:-1]
        found = self.names.get(name)
        if found is None and name == "pi":
            from sympy import pi

            return pi
        if found is None or isinstance(found, str):
            known = ", ".join(key for key, value in self.names.items() if not isinstance(value, str)) or "none"
            raise EvaluationError(f"{name!r} is not a number here; known: {known}", code="unknown_name")
        return Fraction(found) if type(found) is int else found

    def _tuple(self, node: ast.Tuple) -> Value:
        return tuple(self.value(part) for part in node.elts)

    def _list(self, node: ast.List) -> Value:
        return [self.value(part) for part in node.elts]

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        inner = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not self._truth(inner)
        return _times(Fraction(-1), inner) if isinstance(node.op, ast.USub) else inner

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, bool) or isinstance(right, bool):
            raise EvaluationError(f"{_short(self.text)} counts with a condition")
        try:
            return measured(_OPERATIONS[type(node.op)](left, right))
        except ZeroDivisionError:
            raise UndefinedValue(f"division by zero in {_short(self.text)}", code="division_by_zero") from None

    def _call(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name)
        return functions.call(node.func.id[:-1], [self.value(argument) for argument in node.args])

    def _compare(self, node: ast.Compare) -> bool:
        values = [self.value(part) for part in (node.left, *node.comparators)]
        return all(
            _compared(left, type(sign), right) for left, sign, right in zip(values, node.ops, values[1:], strict=False)
        )

    def _boolop(self, node: ast.BoolOp) -> bool:
        parts = (self._truth(self.value(part)) for part in node.values)
        return all(parts) if isinstance(node.op, ast.And) else any(parts)

    def _truth(self, value: Value) -> bool:
        if not isinstance(value, bool):
            raise EvaluationError(f"{_short(self.text)}: and, or and not join conditions")
        return value


def _compared(left: Value, sign: type[ast.cmpop], right: Value) -> bool:
    if sign in (ast.Eq, ast.NotEq):
        return same(left, right) == (sign is ast.Eq)
    place = order(left, right)
    return {ast.Lt: place < 0, ast.LtE: place <= 0, ast.Gt: place > 0, ast.GtE: place >= 0}[sign]


def _add(left: Value, right: Value) -> Value:
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(_add(a, b) for a, b in zip(left, right, strict=True))
    return _plain(left, right, operator.add)


def _subtract(left: Value, right: Value) -> Value:
    return _add(left, _times(Fraction(-1), right))


def _times(left: Value, right: Value) -> Value:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, tuple) and not isinstance(other, tuple | list):
            return tuple(_times(part, other) for part in one)
    return _plain(left, right, operator.mul)


def _divide(left: Value, right: Value) -> Value:
    if isinstance(left, tuple):
        return tuple(_divide(part, right) for part in left)
    if not isinstance(right, tuple | list) and is_zero(right):
        raise ZeroDivisionError
    return _plain(left, right, operator.truediv)


def _power(base: Value, exponent: Value) -> Value:
    if not isinstance(exponent, Fraction) or abs(exponent) > MAX_POWER:
        raise EvaluationError(f"a power is a number between -{MAX_POWER} and {MAX_POWER}")
    if isinstance(base, Fraction) and exponent.denominator == 1:
        if bits(base) * abs(exponent) > MAX_BITS + abs(exponent):
            raise EvaluationError(f"a number of more than {MAX_BITS:,} bits")
        return base ** int(exponent)
    if not isinstance(base, tuple | list) and exponent < 0 and is_zero(base):
        raise ZeroDivisionError
    return functions.root_power(base, exponent)


def _plain(left: Value, right: Value, operation: Callable[[Any, Any], Any]) -> Value:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return operation(left, right)
    return operation(symbolic(left), symbolic(right))


_OPERATIONS: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: _add, ast.Sub: _subtract, ast.Mult: _times, ast.Div: _divide, ast.Pow: _power,
}  # fmt: skip


def _finite(value: Value, text: str) -> Value:
    if isinstance(value, bool):
        raise EvaluationError(f"{_short(text)} is a condition, not a value")
    if isinstance(value, tuple | list):
        return type(value)(_finite(part, text) for part in value)
    return value
