"""Checks of the data of a question: what its stem says and its calculation uses are the same numbers (6).

A calculation may begin from numbers that formulas bring along, or that one step makes of the data. But where the stem
has a quantity that nothing uses, and the calculation a number that the stem has not, one of the two is a slip.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from pipeline.content.findings import Case, Fault
from pipeline.content.lesson import Item
from pipeline.content.numbers import CONSTANTS, FORMULA, OF_TIME, OF_UNITS, brought_by, number_of, without_formulas
from pipeline.content.question import AskedPart, asked, calculated
from pipeline.drawing import figure
from pipeline.maths import units
from pipeline.maths.evaluation import EvaluationError
from pipeline.maths.statements import follows, names_of
from pipeline.maths.trees import NotReadError

#: A number as printed or in a calculation, with its power of ten.
_NUMBER = re.compile(
    r"(?<![\w.^])(\d+(?:(?:,|\{,\})\d{3})*(?:\.\d+)?)(?:\s*(?:\\times|×|\*)\s*10\s*\^\s*[({]?\s*([-−]?\d{1,3})\s*[)}]?)?"
)
#: A formula that is one number, as quantities in powers of ten are printed.
_ALONE = re.compile(r"\\\(\s*[-−]?\d[\d.,]*(?:\s*\\times\s*10\^(?:\{[-−]?\d+\}|\d))?\s*\\\)")
_UNIT = re.compile(rf"\s?(?:\\\)\s?)?({units.PATTERN.pattern})")
_ROUNDED = re.compile(r"\b(?:significant|decimal|nearest)\b", re.IGNORECASE)
#: Numbers that formulas bring along, whatever the data are.
_OF_FORMULAS = frozenset(Fraction(n) for n in ("0", "1", "2", "0.5", "3", "4", "100"))
#: A number of things, and words that make none of what stands before them.
_COUNT = re.compile(r"(?<![\w.,£/])(\d+) (?:equal |whole |black |blue |red )?([a-z]{3,})\b")
_NO_THINGS = frozenset((
    "significant", "decimal", "figures", "times", "and", "per", "for", "from", "with", "out", "are", "more", "less",
    "than", "years",
))  # fmt: skip
LISTS = re.compile(r"\b(?:mean|median|sd|iqr|max|min|lower_quartile|upper_quartile)\(([^()]*)\)")
#: Questions whose answer is the same equation in another form.
REARRANGED = re.compile(r"\b(?:subject|rearrange|solve|make \\\(\w+\\\))\b", re.IGNORECASE)
_POWERS = tuple(Fraction(10) ** n for n in range(-12, 13) if n)


@dataclass(frozen=True)
class Datum:
    """Holds one number of a stem with what stands behind it."""

    value: Fraction
    text: str
    unit: str


def data_of(text: str) -> list[Datum]:
    """Return the quantities of a text: numbers with a unit or a currency, none of those that say how to round."""
    plain = _ALONE.sub(lambda match: match[0][2:-2] + " ", text)
    plain = FORMULA.sub(lambda match: " " * len(match[0]), plain)
    found = []
    for match in _NUMBER.finditer(plain):
        if plain[match.start() - 1 : match.start()] == "/":
            # The lower number of 3/4 inch.
            continue
        unit = _UNIT.match(plain, match.end())
        money = plain[: match.start()].rstrip().endswith("£")
        if (unit or money) and not _ROUNDED.search(plain[max(0, match.start() - 12) : match.end() + 24]):
            found.append(Datum(value_of(match), match[0], unit[1] if unit else "£"))
    return found


def value_of(match: re.Match[str]) -> Fraction:
    """Return the value of a number that was found."""
    number = number_of(match[1].replace("{,}", ""))
    return number * Fraction(10) ** max(-40, min(40, int(match[2].replace("−", "-")))) if match[2] else number


@lru_cache(4_096)
def values_in(text: str) -> tuple[Fraction, ...]:
    """Return the numbers of a text, each with its power of ten."""
    return tuple(value_of(match) for match in _NUMBER.finditer(text) if len(match[1]) < 40)


def slips(case: Case) -> Iterator[Fault]:
    """Find stems with a quantity that nothing uses, beside a calculation with a number that the stem has not."""
    for where, item in case.lesson.items():
        calculations = [part.expression or "" for part in item.parts or (item,)]
        if not any(calculations) or not all(one.outcome().compared for one in asked(where, item) if one.expression):
            continue
        there = shown(item)
        used = [n for text in calculations for n in values_in(text)]
        brought, shares = _brought(item), bool(re.search("%|per cent", item.ask))
        strange = [n for n in dict.fromkeys(used) if n not in brought and not from_data(n, there, shares=shares)]
        strange += [n for text in calculations for n in _more_often(text, there)]
        known = {*used, *(n for text in (item.answer or "", *item.working) for n in values_in(text))}
        unused = [
            datum
            for datum in [*data_of(item.ask), *_counts(item.ask)]
            # "Each month for 1 year": a one is seldom calculated with.
            if not _used(datum, known) and datum.value not in (0, 1)
        ]
        if strange and unused:
            found = f"{unused[0].text} {unused[0].unit} is not used, and {float(strange[0]):g} is not in the question"
            yield Fault(f"{where}.ask", found, "the same numbers in question and calculation", "R",
                        [f"{where}.expression"])  # fmt: skip


def _brought(item: Item) -> frozenset[Fraction]:
    """Return the numbers that a calculation brings along, by what its question is about."""
    text = " ".join([item.ask, *(part.ask for part in item.parts or ()), *(one.kind for one in item.figures or ())])
    return _OF_FORMULAS | OF_UNITS | CONSTANTS | brought_by(text)


def _counts(text: str) -> list[Datum]:
    """Return the numbers of people and things in the words of a text."""
    found = _COUNT.finditer(without_formulas(text, " … "))
    return [Datum(Fraction(match[1]), match[1], match[2]) for match in found if match[2] not in _NO_THINGS]


def equations(case: Case) -> Iterator[Fault]:
    """Find expressions that are another equation than the one that the question gives."""
    for where, item in case.lesson.items():
        for one in asked(where, item):
            given = [formula for formula in one.formulas if formula.relations]
            if len(given) != 1 or len(one.task) != 1 or not one.expression or not REARRANGED.search(one.ask):
                continue
            task = one.task[0]
            if given[0].relations == task.relations == ("=",) and names_of(task) == names_of(given[0]):
                try:
                    same = follows(task.sides[0], task.sides[-1], given[0])
                except NotReadError:
                    continue
                if not same:
                    said = (
                        f"{one.expression}, but the question has {given[0].sides[0].text} = {given[0].sides[-1].text}"
                    )
                    yield Fault(
                        f"{one.where}.expression", said, "the equation of the question", "R", [f"{one.where}.ask"]
                    )


def conversions(case: Case) -> Iterator[Fault]:
    """Find calculations that use a quantity in grams, milliseconds or centimetres as if it were in the base unit."""
    for where, item in case.lesson.items():
        for one in asked(where, item):
            side = one.printed[0].sides[-1] if len(one.printed) == 1 else None
            known = units.unit(side.unit) if side and one.expression else None
            if (
                not side
                or not known
                or not known.bases
                or known.quantity in ("money", "percentage", "angle", "temperature")
            ):
                continue
            data = [(datum, units.unit(datum.unit)) for datum in data_of(one.question)]
            factors = {datum.value: found.factor for datum, found in data if found and datum.value > 4}
            # A number that stands with two units, as "5 V high and 5 ms wide", could be either in the calculation.
            pairs = {(datum.value, found and found.factor) for datum, found in data}
            if len(factors) != len(pairs) or set(factors.values()) <= {Fraction(1)}:
                continue
            used = values_in(one.expression)
            # So could one that stands in the calculation twice: 10 divisions of 10 ms.
            if any(used.count(value) > 1 for value, factor in factors.items() if factor != 1):
                continue
            converted = any(n in (60, 100, 1000, 3600) for n in used)
            # Some convert to centimetres or litres on the way: then nothing is known of the others.
            if converted and known.factor != 1:
                continue
            # A mass in grams over a relative mass is right in moles: all that is calculated with must have a unit.
            bare = [n for n in values_in(one.expression) if n not in _OF_FORMULAS and not from_data(n, [*factors])]
            if (
                "part_" in one.expression
                or "mol" in f"{one.question} {one.answer}"
                or any(n > 4 for n in bare if not converted)
            ):
                continue
            said = _off_by(one, factors, float(known.factor))
            if said:
                found = f"{one.expression} gives {one.answer} only if a unit is not converted: off by {said}"
                yield Fault(f"{one.where}.expression", found, "quantities in units that go together", "R",
                            [f"{one.where}.ask", f"{one.where}.answer"])  # fmt: skip


def _off_by(one: AskedPart, factors: Mapping[Fraction, Fraction], unit: float) -> str:
    """Return the power of ten by which an answer misses what its calculation gives in base units, "" for none."""

    def in_base(match: re.Match[str]) -> str:
        factor = factors.get(value_of(match), Fraction(1)) if not match[2] else Fraction(1)
        return match[0] if factor == 1 else f"({match[0]}*{factor.numerator}/{factor.denominator})"

    # A power of ten behind a number converts it, unless it is one of the data itself.
    steps = "|".join(str(n) for n in (10, 60, 100, 1000, 3600, 10_000) if n not in factors) or "x"
    text = re.sub(rf"{_NUMBER.pattern}(?!\s*(?:/|\*)\s*\(?(?:{steps})\b)", in_base, one.expression)
    try:
        value, shown = float(calculated(text, one.names)), float(calculated(one.expression, one.names)) * unit
    except (EvaluationError, TypeError, OverflowError):
        return ""
    ratio = abs(shown / value) if value and shown else 1.0
    power = round(math.log10(ratio)) if 1e-30 < ratio < 1e30 else 0
    made = list(_made(one.expression, factors))
    off = power and abs(ratio / 10.0**power - 1) < 1e-6 and abs(power) not in (*made, sum(made))
    return f"10^{power}" if off else ""


def _made(expression: str, factors: Mapping[Fraction, Fraction]) -> Iterator[int]:
    """Yield the powers of ten that convert a whole product or sum: of 45*8/100, (85+45)/100."""
    for match in re.finditer(rf"(?:{_NUMBER.pattern})?\s*[*/]\s*\(?(10+)\b(?!\.)", expression):
        if Fraction(match[3]) not in factors:
            own = factors.get(value_of(match), Fraction(1)) if match[1] else Fraction(1)
            yield len(match[3]) - 1 - round(abs(math.log10(own)))


def shown(item: Item) -> list[Fraction]:
    """Return the numbers that a pupil sees before working anything out."""
    texts = [item.ask, *(part.ask for part in item.parts or ())]
    for drawn in item.figures or ():
        texts += [*drawn.lines, *figure.numbers(drawn.model_dump())]
    return [n for text in texts for n in values_in(text)]


def from_data(number: Fraction, shown: Sequence[Fraction], *, shares: bool = True) -> bool:
    """Say whether a number stands in a question, as it is or moved by a power of ten, as a share or its rest."""
    if number in shown or any(number * power in shown for power in _POWERS):
        return True
    return shares and any(
        near in shown for near in (abs(1 - number) * 100, (number - 1) * 100, 100 - number, number - 100)
    )


def _more_often(text: str, shown: Sequence[Fraction]) -> Iterator[Fraction]:
    """Yield the readings of a list that stand there more often than the question says them."""
    said = Counter(shown)
    for found in LISTS.finditer(text):
        yield from (n for n, times in Counter(values_in(found[1])).items() if times > said[n] > 0)


def _used(datum: Datum, known: set[Fraction]) -> bool:
    value = datum.value
    steps = OF_TIME if re.match("day|week|month|year", datum.unit) else map(Fraction, (60, 3600))
    forms = {value, *(value * power for power in _POWERS), *(form for n in steps for form in (value * n, value / n))}
    if datum.unit in ("%", "per cent"):
        forms |= {1 + value / 100, 1 - value / 100, 100 - value, 100 + value}
    return bool(forms & known)
