"""Solutions of equations, systems and inequalities: each printed one holds, and none is missing or extra."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from sympy import Integer, Poly, PolynomialError, Symbol, real_roots, together
from sympy.polys.polyerrors import BasePolynomialError

from pipeline.maths.notation import PrintedStatement
from pipeline.maths.statements import (
    equal,
    follows,
    half_place,
    identical,
    names_of,
    readable,
    same_solutions,
    signed,
)
from pipeline.maths.trees import NotReadError, Value, approximate, evaluate

#: Steps of the search between two bounds: a quarter of a degree over a full turn.
_GRID = 1_440
_BOUND = re.compile(
    r"(?P<low>-?\d+(?:\.\d+)?)(?:\^\\circ|°)?\s*(?:\\leq?|≤|<)\s*\\?[a-z]+(?:\^\\circ|°)?\s*(?:\\leq?|≤|<)\s*(?P<high>-?\d+)"
)
Solution = dict[str, tuple[Value, Value]]


def fault(task: Sequence[PrintedStatement], answer: Sequence[PrintedStatement], question: str) -> str | None:
    """Return what is wrong with the printed solutions of a task, None where they are right and complete.

    Args:
        task: The relations to be solved, or one formula in several letters.
        answer: What is printed as the answer.
        question: Its words: bounds of the letter, "positive".

    Raises:
        NotReadError: Nothing here tells.
    """
    letters = sorted({name for statement in task for name in names_of(statement)})
    if any(set(statement.relations) - {"=", "≈"} for statement in task):
        return _inequality(task, answer, letters)
    if not letters:
        raise NotReadError("nothing to be solved for")
    if len(letters) > len(task):
        return _formula(task, answer)
    solutions = _read(answer, letters)
    for solution in solutions:
        for statement in task:
            if not _solves(statement, solution):
                return f"{_named(solution)} does not solve {_text(statement)}"
    if len(task) == len(letters) == 1:
        return _incomplete(task[0], letters[0], [solution[letters[0]][0] for solution in solutions], question)
    return None


def _inequality(
    task: Sequence[PrintedStatement], answer: Sequence[PrintedStatement], letters: Sequence[str]
) -> str | None:
    if len(task) != 1 or len(answer) != 1 or len(letters) != 1:
        raise NotReadError("more than one inequality")
    if not answer[0].relations or names_of(answer[0]) != set(letters):
        raise NotReadError("no inequality as the answer")
    wrong = same_solutions(answer, task[0], letters[0])
    return f"{_text(answer[0])} has not the solutions of {_text(task[0])}" if wrong else None


def _formula(task: Sequence[PrintedStatement], answer: Sequence[PrintedStatement]) -> str | None:
    """Say whether a formula in several letters was rearranged rightly."""
    if len(task) != 1 or len(answer) != 1 or len(answer[0].sides) != 2 or names_of(answer[0]) != names_of(task[0]):
        raise NotReadError("not one formula")
    left, right = answer[0].sides
    if follows(left, right, task[0]) or identical(left.node, right.node):
        return None
    return f"{_text(answer[0])} does not follow from {_text(task[0])}"


def _read(answer: Sequence[PrintedStatement], letters: Sequence[str]) -> list[Solution]:
    """Return the printed solutions, each with half of its last place; of a point, x comes first."""
    found: list[Solution] = []
    for statement in answer:
        side = statement.sides[-1]
        if side.node.letters:
            raise NotReadError("an answer in letters")
        first = statement.sides[0].node
        if len(statement.sides) > 1 and first.kind != "letter":
            raise NotReadError("no value of one letter")
        value = side.node.value
        if len(statement.sides) == 1 and side.node.kind == "vector" and len(side.node.parts) == len(letters) > 1:
            found.append({name: (part, Integer(0)) for name, part in zip(letters, value, strict=True)})
            continue
        name = first.text if len(statement.sides) > 1 else letters[0]
        if name not in letters or (len(statement.sides) == 1 and len(letters) > 1):
            raise NotReadError("another letter")
        if found and name not in found[-1]:
            found[-1][name] = (value, half_place(side))
        else:
            found.append({name: (value, half_place(side))})
    if not found or any(set(solution) != set(letters) for solution in found):
        raise NotReadError("values are missing")
    return found


def _solves(statement: PrintedStatement, solution: Mapping[str, tuple[Value, Value]]) -> bool:
    """Say whether values solve an equation: exactly, or to the last place that is printed."""
    exact = {name: value for name, (value, _) in solution.items()}
    left, right = statement.sides[0].node, statement.sides[-1].node
    one, two = evaluate(left, exact), evaluate(right, exact)
    if equal(one, two):
        return True
    allowed = 0.0
    for name, (value, half) in solution.items():
        for moved in (value + half, value - half):
            at = exact | {name: moved}
            gap = signed(evaluate(left, at) - evaluate(right, at)) - signed(one - two)
            allowed = max(allowed, abs(gap)) if len(solution) == 1 else allowed + abs(gap)
    rounded = any(half and not value.is_Integer for value, half in solution.values())
    return rounded and abs(signed(one - two)) <= allowed * 1.001


def _incomplete(statement: PrintedStatement, letter: str, values: Sequence[Value], question: str) -> str | None:
    floats = [signed(value) for value in values]
    if len({round(value, 9) for value in floats}) != len(floats):
        return "a solution is listed twice"
    if match := _BOUND.search(question.replace("−", "-")):
        return _missed(statement, letter, floats, float(match["low"]), float(match["high"]))
    expected = _real_roots(statement, letter)
    if expected is None:
        return None
    near = [min((abs(root - value) for value in floats), default=math.inf) for root in expected]
    missing = [root for root, gap in zip(expected, near, strict=True) if gap > 0.51 * max(1.0, abs(root))]
    wanted = _wanted(expected, question)
    if len(floats) < len(wanted):
        said = ", ".join(f"{root:.4g}" for root in (missing or wanted))
        return f"{len(floats)} of {len(wanted)} solutions are given; there is {letter} = {said}"
    return None


def _wanted(roots: Sequence[float], question: str) -> Sequence[float]:
    """Return the roots that a question can mean: a length is positive; "one solution" or "positive" is enough."""
    if re.search(
        r"\b(?:positive|greater|larger|smaller|negative|length|width|height|time|number of|age)\b|>\s*0", question
    ):
        return roots[:1]
    return roots


def _real_roots(statement: PrintedStatement, letter: str) -> list[float] | None:
    """Return the different real solutions of a polynomial equation, None where it is another."""
    try:
        gap = together(statement.sides[0].node.value - statement.sides[-1].node.value)
        top, low = gap.as_numer_denom()
        polynomial = Poly(top, Symbol(letter))
        if polynomial.degree() > 6 or not polynomial.domain.is_Exact:
            return None
        roots = sorted({root for root in real_roots(polynomial) if low.subs(Symbol(letter), root) != 0}, key=signed)
    except (PolynomialError, BasePolynomialError, NotImplementedError, NotReadError):
        return None
    return [signed(root) for root in roots]


def _missed(statement: PrintedStatement, letter: str, values: Sequence[float], low: float, high: float) -> str | None:
    """Search the allowed interval for a solution that is not listed."""
    if outside := [value for value in values if not low <= value <= high]:
        return f"{letter} = {outside[0]:g} is not from {low:g} to {high:g}"
    step = (high - low) / _GRID
    before: tuple[float, float] | None = None
    for place in range(_GRID + 1):
        at = low + place * step
        try:
            gap = approximate(statement.sides[0].node, {letter: at}) - approximate(
                statement.sides[-1].node, {letter: at}
            )
        except NotReadError:
            before = None
            continue
        crossed = abs(gap) < 1e-12 or (before is not None and before[1] * gap < 0 and abs(before[1] - gap) < 1)
        if crossed and all(abs(at - value) > 1.1 * step + 0.5 for value in values):
            return f"{letter} = {at:.4g} solves it too and is not listed"
        before = (at, gap)
    return None


def _named(solution: Mapping[str, tuple[Value, Value]]) -> str:
    return ", ".join(f"{name} = {readable(value)}" for name, (value, _) in solution.items())


def _text(statement: PrintedStatement) -> str:
    parts = [statement.sides[0].text]
    for sign, side in zip(statement.relations, statement.sides[1:], strict=True):
        parts += [sign, side.text]
    return " ".join(parts)
