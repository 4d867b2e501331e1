"""Answers that can be typed in a line: the ways in which a formula is written without a formula editor."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from pipeline.maths.notation import MathNode, NotReadError, PrintedSide, PrintedStatement

#: More values than these are not tried in every order.
_FEW_VALUES = 3
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠"}


@dataclass(frozen=True, slots=True)
class _Style:
    """One way to type a formula."""

    root: str
    raised: bool
    times: str
    blank: str


_STYLES = [_Style(*each) for each in product(("√", "sqrt"), (False, True), ("×", "x", "*"), (" ", ""))]


def typed_ways(found: Sequence[PrintedStatement]) -> Iterator[str]:
    """Yield the ways to type these statements, best first.

    Raises:
        NotReadError: They have something that nobody types.
    """
    if len(found) == 1:
        yield from _lines(found[0])
        return
    if len(found) > _FEW_VALUES:
        raise NotReadError("too many values")
    sides = [next(iter(_values(statement.sides[-1], _STYLES))) for statement in found]
    yield " or ".join(next(iter(_lines(statement))) for statement in found)
    plain = all(set(statement.relations) <= {"="} for statement in found)
    for order in permutations(sides if plain else ()):
        yield from (between.join(order) for between in (", ", ",", " or ", " and "))


def _lines(statement: PrintedStatement) -> Iterator[str]:
    relations = statement.relations
    for style in _STYLES:
        rows = [list(_values(side, [style])) for side in statement.sides]
        for texts in product(*rows):
            for spell in (False, True) if set(relations) & set(_SIGNS) else (False,):
                signs = [_SIGNS.get(sign, sign) if spell else sign for sign in relations]
                yield texts[0] + "".join(
                    f"{style.blank}{sign}{style.blank}{text}" for sign, text in zip(signs, texts[1:], strict=True)
                )
    if relations and set(relations) == {"="} and statement.sides[0].node.kind == "letter":
        yield from _values(statement.sides[-1], _STYLES)


def _values(side: PrintedSide, styles: Sequence[_Style]) -> Iterator[str]:
    for style in styles:
        typed = _typed(side.node, style)
        unit = f"{side.unit} {side.direction}".strip()
        yield typed
        if unit == "£":
            yield f"£{typed}"
        elif unit:
            yield f"{typed} {unit}"


def _typed(node: MathNode, style: _Style) -> str:
    """Return a tree as one line.

    Raises:
        NotReadError: It has something that nobody types.
    """
    made = _KINDS.get(node.kind)
    if made is None or (node.kind == "letter" and len(node.text) > 1):
        raise NotReadError(f"{node.kind} in one line")
    parts = [_typed(part, style) for part in node.parts]
    return made.format(*parts, it=node.text) if isinstance(made, str) else made(node, parts, style)


def _bracketed(node: MathNode, text: str, *kinds: str) -> str:
    return f"({text})" if node.kind in kinds else text


def _negative(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    return f"-{_bracketed(node.parts[0], parts[0], 'sum')}"


def _added(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    rest = (text if text.startswith("-") else f"+{text}" for text in parts[1:])
    return parts[0] + "".join(f"{style.blank}{text[0]}{style.blank}{text[1:]}" for text in rest)


def _multiplied(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    out = _bracketed(node.parts[0], parts[0], "sum", "quotient")
    for part, text in zip(node.parts[1:], parts[1:], strict=True):
        typed = _bracketed(part, text, "sum", "quotient", "minus")
        out += f"{style.blank}{style.times}{style.blank}{typed}" if typed[0].isdigit() else typed
    return out


def _over(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    top, low = node.parts
    return f"{_bracketed(top, parts[0], 'sum')}/{_bracketed(low, parts[1], 'sum', 'product', 'quotient')}"


def _raised(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    base = _bracketed(node.parts[0], parts[0], "sum", "product", "quotient", "minus", "power", "root", "mixed")
    whole = re.fullmatch(r"-?\d+", parts[1])
    if style.raised and whole:
        return base + parts[1].translate(_RAISED)
    return f"{base}^{parts[1]}" if whole or len(parts[1]) == 1 else f"{base}^({parts[1]})"


def _root(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    if node.parts[1].text != "2":
        raise NotReadError("another root than a square root")
    bare = style.root == "√" and node.parts[0].kind in ("number", "letter")
    return f"√{parts[0]}" if bare else f"{style.root}({parts[0]})"


def _vector(node: MathNode, parts: Sequence[str], style: _Style) -> str:
    return f"({f',{style.blank}'.join(parts)})"


#: How each kind of node is typed: a form of its parts, or a function.
_KINDS: Mapping[str, str | Callable[[MathNode, Sequence[str], _Style], str]] = {
    "number": "{it}", "letter": "{it}", "pi": "π", "percent": "{}%", "mixed": "{} {}/{}", "minus": _negative,
    "sum": _added, "product": _multiplied, "quotient": _over, "power": _raised, "root": _root, "vector": _vector,
}  # fmt: skip
