r"""Prints a calculation in the language of expressions as people write it, in TeX, without working it out.

2*sqrt(50) becomes 2\sqrt{50}; 6*(2*x^2 + (-9)*x) becomes 6(2x^2 - 9x).
"""

from __future__ import annotations

import ast
from fractions import Fraction
from typing import Final

from pipeline.maths.display import inside, shown_value
from pipeline.maths.evaluation import EvaluationError, names_in, parsed, relations_in

#: How tightly a text holds together: what binds less tightly than its place asks for stands in brackets.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_SIGNS: Final = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne"}
#: Functions that TeX has a sign for; the others stand with their names.
_CALLS: Final = {
    "sqrt": r"\sqrt{{{}}}", "root": r"\sqrt[{1}]{{{0}}}", "abs": r"|{}|", "expand": "{}", "factor": "{}",
    "roots": "{} = 0", "asin": r"\sin^{{-1}}({})", "acos": r"\cos^{{-1}}({})", "atan": r"\tan^{{-1}}({})",
    "sin": r"\sin({})", "cos": r"\cos({})", "tan": r"\tan({})",
}  # fmt: skip


def calculation_tex(text: str) -> str:
    r"""Return an expression, or relations parted by ";", in TeX without \( \).

    In what has letters, sums, products and powers of whole numbers are worked out; nothing else is.

    Raises:
        EvaluationError: The text is not of the language.
    """
    relations = relations_in(text)
    if not relations:
        return _Printer(letters=bool(names_in(text))).tex(parsed(text), _SUM)
    written = _Printer(letters=True)
    shown = ""
    for before, relation in zip((None, *relations), relations, strict=False):
        left, right = (written.tex(parsed(side), _SUM) for side in (relation.left, relation.right))
        goes_on = before is not None and before.right == relation.left
        shown += (
            "" if goes_on else ", " * bool(before) + left
        ) + f" {_SIGNS.get(relation.sign, relation.sign)} {right}"
    return shown


class _Printer:
    """Prints the parts of an expression."""

    def __init__(self, *, letters: bool) -> None:
        self._letters = letters

    def tex(self, node: ast.expr, place: int) -> str:
        """Return a part as it stands where what binds less tightly than `place` needs brackets."""
        shown, binds = self._number(number) if (number := self._whole(node)) is not None else self._part(node)
        return shown if binds >= place else f"({shown})"

    def _whole(self, node: ast.expr) -> Fraction | None:
        """Return the value of a part that is one number, or (beside letters) a calculation with whole numbers."""
        match node:
            case ast.Constant(value=Fraction() as number):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._whole(operand)
                return None if number is None else -number
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Pow() as op, right=right):
                one, other = self._whole(left), self._whole(right)
                if not self._letters or one is None or other is None or {one.denominator, other.denominator} != {1}:
                    return None
                return _worked_out(one, op, other)
        return None

    @staticmethod
    def _number(number: Fraction) -> tuple[str, int]:
        return inside(shown_value(number)), _SUM if number < 0 else _ATOM

    def _part(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.Name(id=name):
                return _name(name.removesuffix("_")), _ATOM
            case ast.UnaryOp(operand=operand):
                return f"-{self.tex(operand, _PRODUCT)}", _SUM
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                return self._sum(left, right, minus=isinstance(op, ast.Sub)), _SUM
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._product(left, right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return rf"\frac{{{self.tex(left, _SUM)}}}{{{self.tex(right, _SUM)}}}", _PRODUCT
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"{self.tex(left, _ATOM)}^{{{self.tex(right, _SUM)}}}", _POWER
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self.tex(arg, _SUM) for arg in args])
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return f"({', '.join(self.tex(part, _SUM) for part in parts)})", _ATOM
        raise EvaluationError(f"{type(node).__name__} is no part of a calculation")

    def _sum(self, left: ast.expr, right: ast.expr, *, minus: bool) -> str:
        several = isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add | ast.Sub)
        added = self.tex(right, _PRODUCT if minus and several else _SUM)
        if added.startswith("-"):
            minus, added = not minus, added[1:]
        return f"{self.tex(left, _SUM)} {'-' if minus else '+'} {added}"

    def _product(self, left: ast.expr, right: ast.expr) -> tuple[str, int]:
        number = self._whole(left)
        if number in (1, -1) and self._whole(right) is None:
            return "-" * (number == -1) + self.tex(right, _PRODUCT), _PRODUCT if number == 1 else _SUM
        # A negative number in front needs no brackets.
        first = self.tex(left, _SUM if number is not None else _PRODUCT)
        then = self.tex(right, _POWER)
        close = then[0].isalpha() or then.startswith(("(", r"\sqrt", r"\pi"))
        between = "" if close and (then[0] == "(" or not first.endswith(")")) else r" \times "
        # A letter would go on with the name of the command before it.
        between = " " if not between and first.endswith(r"\pi") else between
        return f"{first}{between}{then}", _SUM if first.startswith("-") else _PRODUCT

    @staticmethod
    def _call(name: str, args: list[str]) -> tuple[str, int]:
        plain = name.removesuffix("_")
        if plain in ("expand", "factor", "roots"):
            return _CALLS[plain].format(*args), _SUM
        if plain in _CALLS:
            return _CALLS[plain].format(*args), _ATOM
        return rf"\text{{{plain}}}({', '.join(args)})", _ATOM


def _name(name: str) -> str:
    """Return a letter, pi, or the part of a question whose result a name stands for."""
    if name.startswith("part_"):
        return rf"\text{{({name[-1]})}}"
    return r"\pi" if name == "pi" else name if len(name) == 1 else rf"\text{{{name}}}"


def _worked_out(one: Fraction, op: ast.operator, other: Fraction) -> Fraction | None:
    match op:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
    return Fraction(one**other) if 0 <= other <= 9 else None
