"""How a question is answered at a computer: a choice, a number, a line that can be typed, words for a teacher."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pipeline.formulas.keyboard import typed_ways
from pipeline.html import clean
from pipeline.maths import forms
from pipeline.maths.notation import NotReadError, PrintedSide, PrintedStatement, read
from pipeline.maths.rounding import RoundingError, decimal_of
from pipeline.publish.questions import ShownQuestion

CHOICE, NUMBER, SHORT, ESSAY = "choice", "number", "short answer", "essay"

#: How a formula is typed; the same for all of them, so that it tells nothing of one.
TYPING = (
    "Type it in one line: x^2 for a power, sqrt(3) for a root, 3/4 for a fraction, * for times, "
    "a comma and a space between several values."
)
_SEVERAL = "Put a comma and a space between several values."
#: Solutions are joined by such a word; what stands in order is not.
_ANY_ORDER = re.compile(r"\b(?:or|and)\b")
#: What code cannot judge by the value or the words alone.
_BY_HAND = re.compile(
    r"\b(?:sketch|draw|plot|construct|show that|prove|explain|justify|describe|discuss|compare|reasons?)\b",
    re.IGNORECASE,
)
_WORD, _LITTLE = re.compile(r"[a-z]{3,}"), re.compile(r"(?:(?:at|in|on|by|from) )?(?:(?:an?|the) )?", re.I)
#: A short answer has at most so many words, and is accepted in at most so many ways.
_FEW_WORDS, _MOST_WAYS = 3, 16
#: A number as questions print it, and how pupils are told a unit.
_GIVEN = re.compile(r"\d[\d,]*(?:\.\d+)?")
MONEY = {"£": "in pounds", "$": "in dollars", "€": "in euros"}
_UNITS = {**MONEY, "%": "as a percentage", "°": "in degrees", "p": "in pence"}


@dataclass(frozen=True, slots=True)
class Response:
    """How one thing that is asked is answered, and what is right."""

    kind: str
    marks: int = 0
    #: "_A" of part (a), "" of a question without parts.
    suffix: str = ""
    #: Of a number: digits, and how far off is right.
    number: str = ""
    tolerance: str = "0"
    #: What stands before or behind the number: "£", "cm".
    unit: str = ""
    #: All that is right where texts are compared, best first; of a choice its letter.
    accepted: tuple[str, ...] = ()
    #: What pupils are told about how to type it.
    note: str = ""


def responses(asked: ShownQuestion) -> list[Response]:
    """Return how the question is answered, or each of its parts."""
    if asked.key:
        return [Response(CHOICE, asked.marks, accepted=(asked.key.letter,))]
    if asked.parts:
        return [
            replace(
                _response(asked, part.ask, part.answer, ()),
                marks=part.marks,
                suffix=f"_{part.label.strip('()').upper()}",
            )
            for part in asked.parts
        ]
    return [replace(_response(asked, asked.ask, asked.answer, asked.of("accept")), marks=asked.marks)]


def whole(asked: ShownQuestion) -> Response:
    """Return how the question is answered where a question has one answer: with parts it is for the teacher."""
    return Response(ESSAY, asked.marks) if asked.parts else responses(asked)[0]


def number_of(text: str) -> str:
    """Return the digits of a text that is one number, with or without its unit; "" for another text."""
    try:
        found = read(text.replace(_money(text), "£"))
        return _digits(found[0].sides[-1]) if len(found) == 1 and _is_number(found[0]) else ""
    except (NotReadError, RoundingError):
        return ""


def _response(asked: ShownQuestion, ask: str, answer: str, also: Sequence[str]) -> Response:
    if _BY_HAND.search(ask):
        return Response(ESSAY)
    try:
        money = _money(answer)
        found = read(answer.replace(money, "£"), frozenset(_WORD.findall(f"{asked.ask} {ask}".lower())))
        if len(found) == 1 and _is_number(found[0]):
            return _number(found[0].sides[-1], money, ask, forms.rounding(ask) or forms.rounding(asked.ask))
        ways = tuple(dict.fromkeys(typed_ways(found, in_order=not _ANY_ORDER.search(answer))))[:_MOST_WAYS]
        plain = all(side.places is not None and not side.scale for statement in found for side in statement.sides)
        return Response(SHORT, accepted=ways, note=_SEVERAL if plain else TYPING)
    except (NotReadError, RoundingError):
        return _words(answer, also)


def _words(answer: str, also: Sequence[str]) -> Response:
    """Return a short answer for a few plain words, else an essay."""
    told = [clean(text).strip().removesuffix(".") for text in (answer, *also)]
    short = [text for text in told if len(text.split()) <= _FEW_WORDS and "\\" not in text and "\n" not in text]
    if told[0] not in short:
        return Response(ESSAY)
    bare = [_LITTLE.sub("", text, count=1) for text in short]
    return Response(SHORT, accepted=tuple(dict.fromkeys([*short, *bare])))


def _money(text: str) -> str:
    """Return the sign of money in a text; what reads formulas knows pounds."""
    return next((sign for sign in MONEY if sign in text), "£")


# --- numbers ----------------------------------------------------------------------------------------


def _is_number(statement: PrintedStatement) -> bool:
    """Say whether it is one decimal number, perhaps behind a letter and an equals sign."""
    *before, side = statement.sides
    named = not before or (len(before) == 1 and before[0].node.kind == "letter" and statement.relations == ("=",))
    return named and side.places is not None and not side.scale and not side.direction and not _powers_of_ten(side)


def _powers_of_ten(side: PrintedSide) -> bool:
    return any(part.kind == "power" for part in side.node.walk())


def _digits(side: PrintedSide) -> str:
    return _plain(decimal_of(side.value))


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _number(side: PrintedSide, money: str, ask: str, rule: str) -> Response:
    digits, unit = _digits(side), side.unit.replace("£", money)
    note = f"Type the number only, {_UNITS.get(unit, f'in {unit}')}." if unit else ""
    tolerance = _tolerance(rule, Decimal(digits), ask)
    ways = tuple(_written(side.places or 0, digits, unit, bool(rule)))
    return Response(NUMBER, number=digits, tolerance=tolerance, unit=unit, accepted=ways, note=note)


def _tolerance(rule: str, value: Decimal, ask: str) -> str:
    """Return half of the last place that is asked for; 0 where a number of the question would then be right."""
    half = _step(rule, value) / 2 if rule else Decimal(0)
    given = (Decimal(text.replace(",", "")) for text in _GIVEN.findall(ask))
    return "0" if any(each != value and abs(each - value) <= half for each in given) else _plain(half)


def _step(rule: str, value: Decimal) -> Decimal:
    """Return the distance of two neighbouring values that a rounding can give."""
    count, _, kind = rule.partition(" ")
    if rule == "money":
        return Decimal("0.01")
    if count == "nearest":
        return Decimal(kind)
    if kind == "dp":
        return Decimal(1).scaleb(-int(count))
    return Decimal(1).scaleb(value.adjusted() - int(count) + 1) if value else Decimal(0)


def _written(places: int, digits: str, unit: str, rounded: bool) -> Iterator[str]:
    """Yield the ways to write a number where texts are compared: with its zeros, thousands and unit."""
    value, money = Decimal(digits), unit in MONEY
    ways = [f"{value:.{places}f}"] if rounded and not money else [f"{value:.{places}f}", digits]
    if money and places in (0, 2):
        ways += [f"{value:.2f}"]
    ways += [f"{Decimal(way):,}" for way in ways if abs(value) >= 1000]
    for way in dict.fromkeys(ways):
        yield way
        if money:
            yield f"-{unit}{way[1:]}" if way.startswith("-") else f"{unit}{way}"
        elif unit:
            yield from (f"{way} {unit}", f"{way}{unit}")
