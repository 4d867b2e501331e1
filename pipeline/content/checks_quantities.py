"""Checks of quantities: what works out by hand, units of what is asked for, numbers that make sense (18, 19, 20)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from pipeline.content.checks_answers import answer_at, numeric, questions
from pipeline.content.checks_data import data_of
from pipeline.content.checks_sizes import impossible, impossible_answer
from pipeline.content.checks_working import taught
from pipeline.content.findings import Case, Check, Fault, Severity
from pipeline.content.lesson import Item, QuestionCard, WorkedExample
from pipeline.content.numbers import FORMULA, numbers_in
from pipeline.content.question import AskedPart
from pipeline.maths import units
from pipeline.maths.evaluation import EvaluationError
from pipeline.maths.notation import NotReadError, PrintedSide
from pipeline.maths.statements import endless, signed
from pipeline.publish.view import has_calculators


def without_calculator(case: Case) -> Iterator[Fault]:
    """Check row 18: a question for the head and paper has an exact answer and small numbers."""
    if not has_calculators(case.course):
        return
    for item, one in questions(case):
        if _calculator(case, one.where, item) or "calculation" in one.ask:
            continue
        try:
            value: Any = one.value if not one.task else None
        except EvaluationError:
            continue
        side = one.printed[0].sides[-1] if numeric(value) and len(one.printed) == 1 else None
        if side is None:
            continue
        wanted = 'numbers that work out by hand, or "calculator: yes" in more'
        also = (f"{one.where.partition('(')[0]}.more",)
        if side.places is not None and not value.is_Rational:
            yield Fault(f"{one.where}.ask", f"{one.answer} needs a calculator", wanted, also=also)
        sizes = [len(str(n.numerator).strip("0")) for n in numbers_in(one.expression)]
        long = max(sizes, default=0) > 3 and sum(size > 1 for size in sizes) > 1 and re.search(r"[*/^]", one.expression)
        if long or (value.is_Rational and _figures(value) > 6):
            found = f"{one.source} is too long for paper"
            yield Fault(f"{one.where}.ask", found, wanted, also=also)


def _figures(value: Any) -> int:
    """Return how many figures a decimal without end has at most, 0 where it has an end or is a fraction."""
    if endless(value):
        return 0
    scaled = int(value.p) * 10**24 // int(value.q)
    return len(str(abs(scaled)).strip("0"))


def _calculator(case: Case, where: str, item: Item) -> bool:
    card = case.lesson.cards[int(where[1:].partition(".")[0]) - 1]
    if isinstance(card, QuestionCard) and card.component:
        parts = (case.course.get("assessment") or {}).get("components", ())
        own = [part.get("calculator") for part in parts if part.get("id") == card.component]
        return not own or own[0] is not False
    if told := item.of("calculator"):
        return told[0].strip().lower() == "yes"
    return case.entry.get("calculator") == "calc"


_IN = re.compile(
    rf"\bin ({units.PATTERN.pattern})(?=\s*(?:[,.;?)]|$|and\b|are\b|is\b|to\b|correct\b|at\b|of\b|when\b|from\b|for\b))"
)
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_COMMAND = re.compile(
    r"\b(?:calculate|find|determine|work out|give|express|write|state|estimate|what|how)\b", re.IGNORECASE
)
_AVERAGE = re.compile(r"\b(?:mean|median|mode|range|quartile|standard deviation)\b")
#: What words of quantities mean in everyday life.
_EVERYDAY = {"weight": "mass", "charge": "money"}
_MEASURED = frozenset(units.QUANTITIES) - {"percentage", "angle", "amount of substance", "temperature"}


def fitting_units(case: Case) -> Iterator[Fault]:
    """Check row 19: the unit that is asked for, of the quantity that is asked for."""
    yield from told_units(case)
    for item, one in questions(case):
        if len(one.printed) != 1 or (one.printed[0].sides[-1].node.letters and not one.expression):
            continue
        side = one.printed[0].sides[-1]
        if said := _unit_fault(one, side):
            yield Fault(
                answer_at(item, one),
                said,
                "the unit of the quantity, as the question names it",
                also=(f"{one.where}.ask",),
            )


def _unit_fault(one: AskedPart, side: PrintedSide) -> str:
    named = [unit for said in _SENTENCE.split(one.ask) if _COMMAND.search(said) for unit in _named(said)]
    quantities = [name for name in units.asked(one.ask) if name in _MEASURED]
    known = units.unit(side.unit)
    if not side.unit:
        # A rate has a unit, be it one that is not known: 2 square yards per bag, £0.30 per ounce.
        if re.search(r"\bper\b", one.answer) or side.node.kind == "vector":
            return ""
        if re.search(r"\b(?:calculation|expression|formula|equation)\b", one.ask):
            return ""
        if len(named) == 1 and not side.node.letters:
            return f"{one.answer} has no unit, asked in {named[0]}"
        measured = any(found and found.quantity for found in map(units.unit, _units(one.question)))
        return f"{one.answer} has no unit of {quantities[0]}" if len(quantities) == 1 and measured else ""
    if known is None:
        return ""
    if len(named) == 1 and not units.same_unit(named[0], side.unit):
        return f"{one.answer} is in {side.unit}, asked in {named[0]}"
    if len(named) == 1:
        return ""
    shown = {found.bases for found in map(units.unit, [*_units(one.question), *_named(one.question)]) if found}
    if _AVERAGE.search(one.ask) and len(shown) == 1 and known.bases not in shown and side.unit != "%":
        return f"{one.answer}: {side.unit} is no unit of the data"
    everyday = (quantity for word, quantity in _EVERYDAY.items() if word in one.ask and known.bases in shown)
    fitting = {"", "percentage", quantities[0], *everyday} if quantities else set()
    if len(quantities) == 1 and known.quantity not in fitting:
        return f"{one.answer}: {side.unit} is a unit of {known.quantity}, asked is a {quantities[0]}"
    return ""


def _named(text: str) -> list[str]:
    return [match[1] for match in _IN.finditer(text)]


def _units(text: str) -> Iterator[str]:
    for match in re.finditer(rf"(?<=[\d)])\s?({units.PATTERN.pattern})|£", text):
        yield match[0].strip()


#: Quantities whose names mean other things, too: a power of 2, a cost of 5 kg of apples.
_VAGUE = frozenset(("money", "percentage", "temperature", "amount of substance", "power", "angle"))
_NAMED = "|".join(words for name, (_, words) in units.QUANTITIES.items() if name not in _VAGUE).replace(".", "[.]")
#: "the acceleration is 2 m/s", "velocity in m", "speed / m".
_TOLD = re.compile(
    rf"(?<!air )\b({_NAMED})"
    r"(?:(?: is| was| are| of|:| =)(?: about| only| still| then)?\s(?:\\\([-−(]?\d(?:(?!\\\)).)*\\\)|[-−]?\d[\d.,]*)"
    rf"| (?:is (?:measured )?)?in| /)\s({units.PATTERN.pattern})(?![\w²³⁻])",
    re.IGNORECASE,
)
#: How much of a thing there is.
_AMOUNTS = frozenset(("mass", "volume", "amount of substance", "length", "time", "power", "current", "voltage"))
#: Texts that may say what is false, and such as are no sentences.
_NO_FACTS = re.compile(r"\.(?:belief|error|non_example|watch_for|why|method|expression|options\.\d+\.text)$")


def told_units(case: Case) -> Iterator[Fault]:
    """Find quantities that a text gives in the unit of another, and numbers of a question in another unit than its."""
    for where, text in case.texts:
        for match in _TOLD.finditer(text) if not _NO_FACTS.search(where) else ():
            known = units.unit(match[2])
            wanted = next(n for n, (_, words) in units.QUANTITIES.items() if re.fullmatch(words, match[1], re.I))
            mass = wanted == "force" and match[1].lower() == "weight"
            # "the velocity at this time in m/s": what is measured in the unit stands before.
            if wanted == "time" and " in " in match[0]:
                continue
            # "the pressure of 2 mol", "a volume of 3 kg of ice": of a thing that is measured so.
            the, more = text[: match.start()].lower().endswith("the "), text[match.end() :].startswith(" of ")
            if " of " in match[0] and (the or more) and known and known.quantity in _AMOUNTS:
                continue
            if known and known.quantity not in ("", "percentage", "money", wanted, "mass" if mass else wanted):
                found = f"{match[0]}: {match[2]} is a unit of {known.quantity}"
                yield Fault(where, found, f"a unit of {wanted}")
    parts: list[tuple[str, Item | WorkedExample]] = [*case.lesson.items(), *case.lesson.examples()]
    for where, part in parts:
        yield from _other_units(where, part)


_RATE = re.compile(r"\s?(?:in )?(?:each|every|per|an?|for|of)\b")


def _other_units(where: str, part: Item | WorkedExample) -> Iterator[Fault]:
    """Find the answer's number in the unit of another quantity, and one of the question in another of its units."""
    pieces = [part, *(part.parts or ())] if isinstance(part, Item) else [part]
    asked = " ; ".join(f"{piece.ask} ; {piece.answer or ''}" for piece in pieces)
    given: dict[Any, set[Any]] = {}
    for datum in data_of(asked):
        if _kind(datum.unit):
            given.setdefault(datum.value, set()).add(_kind(datum.unit))
    answers = {_kind(datum.unit) for piece in pieces for datum in data_of(piece.answer or "")}
    # Another quantity may have the same number: one that the working comes to, or that stands there alone.
    reached = [{n for side in line.split("=")[1:] for n in numbers_in(side)[:1]} for line in part.working]
    results = {datum.value for piece in pieces for datum in data_of(piece.answer or "")} - {Fraction(0)}
    # The answer's number is another quantity's too where a line before the last comes to it.
    free = (set().union(*reached) - results) | set().union(*reached[:-1])
    texts = [(f"{where}.working.{n}", line) for n, line in enumerate(part.working, 1)]
    if isinstance(part, Item):
        texts += [(f"{where}.feedback", part.feedback)]
        texts += [(f"{where}.marks.{n}", text) for n, text in enumerate(part.marks, 1)]
    for at, text in texts:
        plain = FORMULA.sub("…", text)
        for datum in data_of(plain):
            seen, kind = given.get(datum.value), _kind(datum.unit)
            rate = re.search(rf"{re.escape(datum.text)}\s?{re.escape(datum.unit)}{_RATE.pattern}", plain)
            if not seen or not kind or kind in seen or rate or datum.value in free:
                continue
            scaled, alone = {bases for bases, _ in seen} == {kind[0]}, text.endswith(f"\n{datum.text} {datum.unit}")
            if scaled or (alone and ".marks." in at and datum.value in results):
                yield Fault(at, f"{datum.text} {datum.unit} has another unit in the question", "the unit of the number")
        said = re.search(rf"\bwith (?:its|the) unit ({units.PATTERN.pattern})", text)
        if said and answers and _kind(said[1]) not in answers:
            yield Fault(at, f"{said[0]} is not that of the answer", "the unit of the answer")


def _kind(text: str) -> Any:
    known = units.unit(text)
    measured = known and known.quantity not in ("temperature", "angle", "money", "percentage")
    return (known.bases, known.factor) if known and measured else None


_PEOPLE = (
    "people|pupils|children|men|women|students|teachers|passengers|customers|cars|buses|trains|houses|tickets|books|"
    "eggs|cats|dogs|cows|sheep|trees|votes|goals|players|members|boxes|tins|bags|packets|tiles|bottles|coins"
)
_WHOLE = re.compile(rf"(?<![\d.,])(\d+\.\d*[1-9]\d*|\d+ ?½)\s(?:{_PEOPLE})\b")
_ONE_DECIMAL = re.compile(r"£\d[\d,]*\.\d(?!\d|\s?(?:million|billion|m\b|bn\b|k\b))")
_COUNTED = re.compile(rf"\bhow many (?:more )?(?:{_PEOPLE})\b", re.IGNORECASE)
_CHANCE = re.compile(
    r"\b(?:calculate|find|what is|state|determine|work out|give|write down) the probability\b", re.IGNORECASE
)
_OLD = re.compile(
    r"\b(?:(?:he|she|who|(?:wo)?man|person|(?:grand)?(?:mother|father)|teacher|aunt|uncle) (?:is|was)|aged?"
    r"|(?:is|was)(?=.{4,8}years old))"
    r"\s(\d{3,})(?=\syears\sold|[,.])",
    re.IGNORECASE,
)


def sense(case: Case) -> Iterator[Fault]:
    """Check row 20: whole people and things, chances from 0 to 1, sizes that are positive and possible."""
    told = [(f"c{n}.instructions", getattr(card, "instructions", None)) for n, card in enumerate(case.lesson.cards, 1)]
    told += [(f"{where}.ask", item.ask) for where, item in case.lesson.items()]
    for at, text in [*((at, text) for at, text in told if text), *taught(case)]:
        yield from (Fault(at, said, "a size that can be") for said in impossible(text))
    for item, one in questions(case):
        at = answer_at(item, one)
        if pounds := _ONE_DECIMAL.search(one.answer):
            yield Fault(at, pounds[0], "pounds alone, or with two places for the pence")
        for match in _WHOLE.finditer(f"{one.ask} {one.answer}"):
            where = at if match[0] in one.answer else f"{one.where}.ask"
            if not re.search(r"\b(?:mean|average|per)\b", one.question):
                yield Fault(where, match[0], "whole people and things")
        if age := _OLD.search(one.question):
            yield Fault(f"{one.where}.ask", f"an age of {age[1]}", "an age that people reach")
        side = one.printed[0].sides[-1] if len(one.printed) == 1 else None
        if side and not side.node.letters and side.node.kind != "vector" and (said := _senseless(one, side)):
            yield Fault(at, said, "a value that can be", also=(f"{one.where}.ask",))


def _senseless(one: AskedPart, side: PrintedSide) -> str:
    try:
        value = signed(side.value)
    except NotReadError:
        return ""
    known = units.unit(side.unit)
    size = value * float(known.factor) if known else value
    if _CHANCE.search(one.ask) and not 0 <= value <= (100 if side.unit == "%" else 1):
        return f"a probability of {one.answer}"
    if _COUNTED.search(one.ask) and value < 0:
        return f"{one.answer} is less than none"
    if _COUNTED.search(one.ask) and value % 1:
        return f"{one.answer} is no whole number"
    quantity = known.quantity if known else ""
    asked_for = [*units.asked(one.ask)]
    scalar = quantity in ("area", "volume", "mass", "density") or (quantity == "speed" and "speed" in one.ask.lower())
    length = quantity == "length" and re.search(
        r"\b(?:length|distance|height|width|depth|thickness|diameter|radius|perimeter|circumference|wavelength"
        r"|how (?:far|long|high|tall|wide|deep))\b",
        one.ask,
        re.IGNORECASE,
    )
    if value < 0 and (scalar or length or (quantity == "time" and "time" in asked_for)):
        return f"a negative {quantity} of {one.answer}"
    if said := impossible_answer(one.ask, value):
        return f"{one.answer}: {said}"
    if quantity == "speed" and abs(size) > 3.0e8:
        return f"{one.answer} is faster than light"
    return ""


ROWS: tuple[tuple[int, Severity, str, Check, str], ...] = (
    (18, "R", "a question without a calculator works out by hand", without_calculator,
     "Without a calculator numbers have at most three figures and the answer is exact; else more has "
     '"calculator: yes".'),
    (19, "R", "units fit and are given", fitting_units,
     "The answer has the unit that the question names, or one of the quantity asked for: 24 cm² for an area, 12 m/s "
     "for a velocity. A quantity that any text names has a unit of its own (an acceleration of 2 m/s², not 2 m/s), and "
     "a number of the question keeps its unit in working, marks and feedback."),
    (20, "R", "numbers make sense", sense,
     "People and things are whole, a probability is from 0 to 1, an efficiency at most 100 %; lengths, areas, volumes, "
     "masses, kinetic energies and frequencies are positive, two sides of a triangle longer than the third, shares of "
     "a whole at most 100 % together; people, things, speeds and prices have sizes that one meets; £12.90, not £12.9."),
)  # fmt: skip
