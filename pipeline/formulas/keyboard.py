"""Answers that can be typed in a line: the ways in which a formula is written without a formula editor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations, product

from pipeline.maths.notation import MathNode, NotReadError, PrintedSide, PrintedStatement
from pipeline.maths.units import RAISED

#: More values than these are not tried in every order.
_FEW_VALUES = 3
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠"}
_ROOT, _POWER = re.compile(r"√(?:(\w+)|(?=\())"), re.compile(r"\^(-?\d+)")
#: A blank that stays, between a whole number and its fraction.
_GAP = "\u00a0"


def typed_ways(found: Sequence[PrintedStatement], *, in_order: bool) -> Iterator[str]:
    """Yield the ways to type these statements, best first.

    Args:
        in_order: Several values are right in their order only.

    Raises:
        NotReadError: They have something that nobody types.
    """
    if len(found) == 1:
        yield from _ways(found[0])
        return
    if in_order:
        lines = [next(_ways(statement)) for statement in found]
        yield from (between.join(lines) for between in (", ", ",", " "))
        return
    if len(found) > _FEW_VALUES:
        raise NotReadError("too many values")
    yield " or ".join(next(_ways(statement)) for statement in found)
    values = [next(_spelled(_typed(statement.sides[-1].node))) for statement in found]
    plain = all(set(statement.relations) <= {"="} for statement in found)
    for order in permutations(values if plain else ()):
        yield from (between.join(order) for between in (", ", ",", " or ", " and "))


def _ways(statement: PrintedStatement) -> Iterator[str]:
    relations = statement.relations
    for texts in product(*map(_with_unit, statement.sides)):
        pairs = zip(("", *(f" {sign} " for sign in relations)), texts, strict=True)
        yield from _spelled("".join(map("".join, pairs)))
    if set(relations) == {"="} and statement.sides[0].node.kind == "letter":
        yield from (way for text in _with_unit(statement.sides[-1]) for way in _spelled(text))


def _with_unit(side: PrintedSide) -> Iterator[str]:
    typed, unit = _typed(side.node), f"{side.unit} {side.direction}".strip()
    yield typed
    if unit:
        yield f"£{typed}" if unit == "£" else f"{typed}{_GAP}{unit.replace(' ', _GAP)}"


def _spelled(line: str) -> Iterator[str]:
    """Yield a line with its signs spelled in each way: √3 or sqrt(3), x^2 or x², × or x, >= or ≥, blanks or none."""
    for rooted, raised, times, signed, blank in product((0, 1), (0, 1), "×x*", (0, 1), (" ", "")):
        text = _ROOT.sub(lambda found: f"sqrt({found[1]})" if found[1] else "sqrt", line) if rooted else line
        text = _POWER.sub(lambda found: found[1].translate(RAISED), text) if raised else text
        for sign, shown in _SIGNS.items() if signed else ():
            text = text.replace(sign, shown)
        yield text.replace("×", times).replace(" ", blank).replace(_GAP, " ")


def _typed(node: MathNode) -> str:
    """Return a tree as one line."""
    parts = [_typed(part) for part in node.parts]
    match node.kind:
        case "number":
            return node.text
        case "letter" if len(node.text) == 1:
            return node.text
        case "pi":
            return "π"
        case "percent":
            return f"{parts[0]}%"
        case "minus":
            return f"-{_bracketed(node, 0, 'sum')}"
        case "mixed":
            return f"{parts[0]}{_GAP}{parts[1]}/{parts[2]}"
        case "quotient":
            return f"{_bracketed(node, 0, 'sum')}/{_bracketed(node, 1, 'sum', 'product', 'quotient')}"
        case "vector":
            return f"({', '.join(parts)})"
    return _composed(node, parts)


def _composed(node: MathNode, parts: Sequence[str]) -> str:
    match node.kind:
        case "sum":
            rest = (text if text.startswith("-") else f"+{text}" for text in parts[1:])
            return parts[0] + "".join(f" {text[0]} {text[1:]}" for text in rest)
        case "product":
            factors = [_bracketed(node, place, "sum", "quotient", "minus") for place in range(1, len(parts))]
            rest = (f" × {factor}" if factor[0].isdigit() else factor for factor in factors)
            return _bracketed(node, 0, "sum", "quotient") + "".join(rest)
        case "power":
            base = _bracketed(node, 0, "sum", "product", "quotient", "minus", "power", "root", "mixed")
            bare = re.fullmatch(r"-?\d+|\w", parts[1])
            return f"{base}^{parts[1]}" if bare else f"{base}^({parts[1]})"
        case "root" if parts[1] == "2":
            return f"√{parts[0]}" if node.parts[0].kind in ("number", "letter") else f"√({parts[0]})"
    raise NotReadError(f"{node.kind} in one line")


def _bracketed(node: MathNode, place: int, *kinds: str) -> str:
    """Return a part as one line, in brackets where it is of these kinds."""
    part = node.parts[place]
    return f"({_typed(part)})" if part.kind in kinds else _typed(part)
