"""Whether two printed answers say the same: values, units, roots in any order, inequalities either way round."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.maths import forms, units
from pipeline.maths.notation import NotReadError, PrintedSide, PrintedStatement, read
from pipeline.maths.statements import equal, half_place, identical, scaled, size

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def same_answer(key: str, answer: str, ask: str = "") -> bool | None:
    """Return whether two answers to a question say the same; None where one of them is not read (words).

    A number that is rounded in one of them may differ by half of its last place.
    """
    try:
        wanted, found = read(key), read(answer)
        rounded = bool(forms.rounding(ask))
        return len(wanted) == len(found) and _matched(wanted, found, rounded)
    except NotReadError:
        return None


def _matched(wanted: Sequence[PrintedStatement], found: Sequence[PrintedStatement], rounded: bool) -> bool:
    """Return whether each statement has its like, in any order."""
    left = list(found)
    for statement in wanted:
        like = next((other for other in left if _same(statement, other, rounded)), None)
        if like is None:
            return False
        left.remove(like)
    return True


def _same(one: PrintedStatement, other: PrintedStatement, rounded: bool) -> bool:
    one, other = _turned(one), _turned(other)
    if _compares(one) or _compares(other):
        pairs = zip(one.sides, other.sides, strict=False)
        alike = one.relations == other.relations and len(one.sides) == len(other.sides)
        return alike and all(_same_side(*pair, rounded) for pair in pairs)
    names = [statement.sides[0].node.letters for statement in (one, other) if len(statement.sides) > 1]
    if len(names) == 2 and names[0] != names[1]:
        return False
    return _same_side(one.sides[-1], other.sides[-1], rounded)


def _turned(statement: PrintedStatement) -> PrintedStatement:
    """Return "2 < x" as "x > 2"."""
    sides, relations = statement.sides, statement.relations
    if len(sides) == 2 and relations[0] in _TURNED and sides[1].node.letters and not sides[0].node.letters:
        return PrintedStatement((sides[1], sides[0]), (_TURNED[relations[0]],))
    return statement


def _compares(statement: PrintedStatement) -> bool:
    return any(relation in _TURNED for relation in statement.relations)


def _same_side(one: PrintedSide, other: PrintedSide, rounded: bool) -> bool:
    if one.unit and other.unit and not units.same_quantity(one.unit, other.unit):
        return False
    if one.node.letters or other.node.letters:
        return identical(one.node, other.node) is True
    left, right = one.value * (scaled(one, other) if one.unit and other.unit else 1), other.value
    if equal(left, right):
        return True
    off = max((half_place(side) for side in (one, other) if side.places or (rounded and side.places == 0)), default=0)
    # A little more for binary figures of the solver.
    return bool(off) and size(left - right) <= float(off) * (1 + 1e-9)
