"""Compares the printed answer of a question with what its expression, or its first formula, comes to.

Nothing is concluded from what is not read: such an answer is "not compared", never wrong.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from sympy import Integer, Rational, Symbol, latex, nan, zoo

from pipeline.content.lesson import Item
from pipeline.maths import forms, solutions
from pipeline.maths.evaluation import EvaluationError, evaluate, names_in, relations_in
from pipeline.maths.notation import PrintedSide, PrintedStatement, formulas, read, statement
from pipeline.maths.numbers import symbolic
from pipeline.maths.rounding import RoundingError, round_half_up
from pipeline.maths.statements import endless, equal, half_place, readable, signed
from pipeline.maths.trees import MathNode, NotReadError
from pipeline.maths.trees import evaluate as value_at

_WORD = re.compile(r"[a-z]{3,}")
_CURRENCY = "£"
_MULTIPLE = re.compile("thousand|million|billion")
#: A method that rounds by itself.
_ROUNDED = re.compile(r"\b(?:dp|sf|nearest|floor|ceil)\(")


@dataclass(frozen=True)
class Outcome:
    """What came of comparing an answer."""

    compared: bool
    #: Why the printed value is wrong (row 5).
    fault: str = ""
    #: Why it is not rounded or written as the question asks (row 15).
    form: str = ""


@dataclass(frozen=True)
class AskedPart:
    """One thing that is asked: a question, or a part of one."""

    where: str
    #: Its own words; for a part, not those of the whole question.
    ask: str
    #: The whole question with it.
    question: str
    answer: str
    expression: str
    #: Values of earlier parts.
    names: Mapping[str, Any] = field(default_factory=dict)
    #: One of several options: each may be rounded without a word.
    choice: bool = False

    @cached_property
    def rounding(self) -> str:
        """Return the rounding that is asked for, "" for none."""
        return forms.rounding(self.ask) or forms.rounding(self.question)

    @cached_property
    def printed(self) -> list[PrintedStatement]:
        """Return what the printed answer says; nothing where it is not read."""
        try:
            return read(self.answer, frozenset(_WORD.findall(self.question.lower())))
        except NotReadError:
            return []

    @cached_property
    def task(self) -> list[PrintedStatement]:
        """Return the relations to be solved or rearranged; none where a value is asked."""
        try:
            if self.expression:
                return [statement(f"{r.left}{r.sign}{r.right}") for r in relations_in(self.expression)]
            found = self.formulas
            return [one for one in found if one.relations] if found and found[0].relations else []
        except (EvaluationError, NotReadError):
            return []

    @cached_property
    def formulas(self) -> list[PrintedStatement]:
        """Return the formulas of the question that are read, but for single letters."""
        found = []
        for text in formulas(self.ask):
            try:
                one = statement(text)
            except NotReadError:
                one = None
            if one is None or one.relations or one.sides[0].node.kind != "letter":
                found.append(one)
        return [] if found[:1] == [None] else [one for one in found if one]

    @cached_property
    def value(self) -> Any:
        """Return the exact value that is asked for: SymPy, a tuple, a list; None where nothing says it.

        Raises:
            EvaluationError: The expression is none.
        """
        if self.expression:
            return calculated(self.expression, self.names)
        if not self.formulas or self.formulas[0].relations or (self.choice and len(self.formulas) > 1):
            return None
        return _parted(value_at(self.formulas[0].sides[0].node, self._told()))

    def _told(self) -> dict[str, Any]:
        r"""Return the values that the question gives letters: "when \(x=-3\)"."""
        pairs = [(one.sides[0].node, one.sides[-1].node) for one in self.formulas[1:] if one.relations == ("=",)]
        return {left.text: right.value for left, right in pairs if left.kind == "letter" and not right.letters}

    def outcome(self) -> Outcome:
        """Return what comes of comparing the printed answer."""
        return self._outcome

    @cached_property
    def _outcome(self) -> Outcome:
        if not self.printed:
            return Outcome(False)
        try:
            if self.task:
                said = solutions.fault(self.task, self.printed, self.question)
                return Outcome(True, said or "", "" if said else self._form())
            value = self.value
            if value is None:
                return Outcome(False)
            return self._compared(value)
        except (NotReadError, EvaluationError, RoundingError):
            return Outcome(False)

    def _compared(self, value: Any) -> Outcome:
        if isinstance(value, list):
            return self._all(value)
        if len(self.printed) != 1 or set(self.printed[0].relations) - {"=", "≈"}:
            raise NotReadError("more than one value")
        side = self._as_asked(self.printed[0].sides[-1], value)
        if isinstance(value, tuple):
            shown = _parted(side.node.value)
            same = isinstance(shown, tuple) and len(shown) == len(value) and all(map(equal, shown, value))
            said = "" if same else f"{side.text}, but {self.source} gives {shown_value(value)}"
            return Outcome(True, said, self._form())
        if side.node.letters or value.free_symbols:
            same = same_for_all(side.node, value)
            return Outcome(True, "" if same else f"{side.text} is not equal to {self.source}", self._form())
        if side.node.kind == "vector":
            raise NotReadError("a vector for a number")
        outcome = self._number(side, value)
        return outcome if outcome.fault or outcome.form else Outcome(True, "", self._form())

    def _as_asked(self, side: PrintedSide, value: Any) -> PrintedSide:
        """Return "5.8 million" as 5.8 where the question counts in millions, and the calculation with it."""
        word = _MULTIPLE.search(side.text)
        if not word or word[0] not in self.question or isinstance(value, tuple) or value.free_symbols:
            return side
        number = side.node.parts[0] if side.node.kind == "product" else side.node
        if number.kind != "number":
            return side
        counted = replace(side, node=number, places=len(number.text.partition(".")[2]))
        return counted if abs(signed(counted.value - value)) < abs(signed(side.value - value)) else side

    @property
    def source(self) -> str:
        """Return where the exact value comes from, for messages."""
        return self.expression or self.formulas[0].sides[0].text

    def _form(self) -> str:
        """Return which form of the question the answer lacks, with the reason."""
        for one in self.printed:
            if reason := forms.form_fault(self.ask, one):
                return f"{one.sides[-1].text}: {reason}"
        return ""

    def _all(self, values: Sequence[Any]) -> Outcome:
        """Compare several values, in any order."""
        sides = [one.sides[-1] for one in self.printed]
        rest = list(values)
        for side in sides:
            near = [value for value in rest if abs(signed(side.value - value)) <= float(half_place(side)) * 1.001]
            near += [value for value in rest if equal(side.value, value)]
            if not near:
                return Outcome(True, f"{side.text} is none of {', '.join(map(readable, values))}")
            rest.remove(near[0])
        return Outcome(True, f"{', '.join(map(readable, rest))} is missing" if rest else "")

    def _number(self, side: PrintedSide, value: Any) -> Outcome:
        """Compare one number: exact, or rounded half up as the question says."""
        printed = side.value
        if side.unit == "%" and abs(signed(printed - value * 100)) < abs(signed(printed - value)):
            value = value * 100
        if side.direction and signed(printed) * signed(value) < 0:
            value = -value
        exact = equal(printed, value)
        rule = self.rounding
        if not rule:
            money = side.unit == _CURRENCY and equal(printed, Rational(round_half_up(value, "money")))
            if exact or money or (self.choice and side.places and _rounded(side, value)):
                return Outcome(True)
            if side.places is not None and _rounded(side, value) and endless(value):
                return Outcome(True, "", f"{side.text} is rounded, but the question does not say how")
            return Outcome(True, f"{side.text}, but {self.source} gives {readable(value)}")
        wanted = round_half_up(value, rule)
        if not equal(printed, Rational(wanted)):
            if exact:
                return Outcome(True, "", f"{side.text} is not rounded to {wanted} ({rule})")
            return Outcome(True, f"{side.text}, but {self.source} gives {readable(value)}, rounded {wanted} ({rule})")
        return Outcome(True, "", "" if _figures(side, wanted, rule) else f"{side.text} does not show {wanted} ({rule})")


def _rounded(side: PrintedSide, value: Any) -> bool:
    return abs(signed(side.value - value)) <= float(half_place(side)) * 1.001


def _figures(side: PrintedSide, wanted: str, rule: str) -> bool:
    """Say whether as many places are shown as the rounding has."""
    if side.places is None or not rule.endswith(("sf", "dp")):
        return True
    places = len(wanted.partition(".")[2])
    if side.scale and rule.endswith("sf"):
        return side.places == int(rule.split()[0]) - 1
    return bool(side.scale) or side.places == places


def calculated(expression: str, names: Mapping[str, Any]) -> Any:
    """Return the exact value of an expression over the numbers of a question, letters as symbols.

    Raises:
        EvaluationError: It is no expression.
    """
    return _calculate(expression, names) if names else _calculated(expression)


@lru_cache(4_096)
def _calculated(expression: str) -> Any:
    return _calculate(expression, {})


def _calculate(expression: str, names: Mapping[str, Any]) -> Any:
    letters = " ".join(sorted(names_in(expression) - set(names)))
    value = evaluate(expression, names, letters)
    if isinstance(value, tuple | list):
        return type(value)(symbolic(part) for part in value)
    return symbolic(value)


def _parted(value: Any) -> Any:
    return tuple(value) if hasattr(value, "shape") else value


def same_for_all(node: MathNode, value: Any) -> bool:
    """Say whether a printed expression equals a value for all values of its letters.

    Raises:
        NotReadError: Too few places can be tried.
    """
    with suppress(NotReadError):
        if node.value == value:
            return True
    names = sorted(node.letters | {symbol.name for symbol in value.free_symbols})
    tried = 0
    for shift in range(8):
        at = {name: Integer(2 + (3 * place + 5 * shift) % 13) for place, name in enumerate(names)}
        exact = value.xreplace({Symbol(name): number for name, number in at.items()})
        if exact.has(zoo, nan):
            continue
        try:
            if not equal(value_at(node, at), exact):
                return False
            tried += 1
        except NotReadError:
            continue
    if tried < 3:
        raise NotReadError("too few places")
    return True


#: Questions read last, each with its item: several checks ask for the same.
_LAST: OrderedDict[tuple[str, int], tuple[Item, list[AskedPart]]] = OrderedDict()


def asked(where: str, item: Item) -> list[AskedPart]:
    """Return what a question asks: itself, with its answer or right option, or each of its parts."""
    known = _LAST.get((where, id(item)))
    if known is None or known[0] is not item:
        known = _LAST[where, id(item)] = (item, list(_asked(where, item)))
        if len(_LAST) > 256:
            _LAST.popitem(last=False)
    return known[1]


def _asked(where: str, item: Item) -> Iterator[AskedPart]:
    names: dict[str, Any] = {}
    if not item.parts:
        answer = item.options[0].text if item.options else item.answer or ""
        yield AskedPart(where, item.ask, item.ask, answer, item.expression or "", choice=bool(item.options))
    for letter, part in zip("abcdef", item.parts or (), strict=False):
        question = f"{item.ask} {part.ask}"
        one = AskedPart(f"{where}({letter})", part.ask, question, part.answer, part.expression or "", dict(names))
        yield one
        try:
            value = one.value if part.expression else None
        except EvaluationError:
            value = None
        if value is None and len(one.printed) == 1:
            value = _parted(one.printed[0].sides[-1].value)
        if value is not None:
            names[f"part_{letter}"] = value


def shown_value(value: Any) -> str:
    """Return a value for a message."""
    if isinstance(value, tuple | list):
        return f"({', '.join(shown_value(part) for part in value)})"
    return readable(value)


def printed_like(value: Any, like: AskedPart, *, exact: bool = False) -> str:
    """Return a value as pages print it: rounded and with the unit as the right answer of its question.

    Args:
        exact: It is not rounded.
    """
    if isinstance(value, list):
        return " or ".join(printed_like(part, like, exact=exact) for part in value)
    if isinstance(value, tuple):
        return rf"\({latex_of(value)}\)"
    side = like.printed[0].sides[-1] if len(like.printed) == 1 else None
    unit = side.unit if side else ""
    if value.free_symbols or (endless(value) and not like.rounding and not (side and side.places)):
        text = rf"\({latex_of(value)}\)"
    elif side and side.scale:
        text = _scientific(value, side.places or 0, rounded=bool(like.rounding))
    elif (like.rounding and not exact and not _ROUNDED.search(like.expression)) or endless(value):
        text = round_half_up(value, like.rounding or f"{side.places if side else 2} dp")
    else:
        text = _decimal(value, money=unit == _CURRENCY)
    text = text.replace("-", "−") if not text.startswith("\\") else text
    if unit == _CURRENCY:
        return f"−£{text[1:]}" if text.startswith("−") else f"£{text}"
    return f"{text}{'' if unit in ('°', 'p', '') else ' '}{unit}"


def _scientific(value: Any, places: int, *, rounded: bool) -> str:
    """Return a number times a power of ten."""
    power = 0
    while (value != 0 and abs(signed(value)) >= 10) or 0 < abs(signed(value)) < 1:
        power, value = (power + 1, value / 10) if abs(signed(value)) >= 10 else (power - 1, value * 10)
    front = round_half_up(value, f"{places} dp") if rounded else _decimal(value, money=False)
    return rf"\({front}\times 10^{{{power}}}\)"


def _decimal(value: Any, *, money: bool) -> str:
    text = round_half_up(value, "money" if money and value.q != 1 else "12 dp")
    return text.rstrip("0").rstrip(".") if "." in text and not money else text.removesuffix(".000000000000")


def latex_of(value: Any) -> str:
    """Return TeX of a value."""
    return f"({', '.join(map(latex_of, value))})" if isinstance(value, tuple) else str(latex(value))
