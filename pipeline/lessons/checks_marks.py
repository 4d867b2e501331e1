"""Rows 16 and 19: marks add up, bullet by bullet; units are known, printed and asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from pipeline.lessons.answers import Geometry, Numeric, Science, Statistics, Structured
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.schemas import Item, QuestionCard

#: Command words that ask for one thing only.
_ONE_MARK = re.compile(r"^\W*(?:state|name|write down)\b(?!.{0,80}\b(?:and|two|three|both)\b)", re.IGNORECASE)
#: Units and the words for them; the symbol itself always counts, for units of the metric system also with a prefix.
_CALLED: Mapping[str, tuple[str, ...]] = {
    "£": ("pound",), "p": ("pence", "penny"), "%": ("per cent", "percent"), "°": ("circ", "degree", "bearing", "angle"),
    "mm": ("millimetre",), "cm": ("centimetre",), "m": ("metre",), "km": ("kilometre",), "mile": ("mile",),
    "g": ("gram",), "kg": ("kilogram",), "t": ("tonne",), "ml": ("millilitre",), "l": ("litre",), "s": ("second",),
    "min": ("minute",), "h": ("hour",), "day": ("day",), "week": ("week",), "month": ("month",), "year": ("year",),
    "°C": ("celsius",), "K": ("kelvin",), "N": ("newton",), "J": ("joule",), "W": ("watt",), "V": ("volt",),
    "A": ("amp",), "Ω": ("ohm", "omega"), "C": ("coulomb",), "F": ("farad",), "Hz": ("hertz",), "Pa": ("pascal",),
    "eV": ("electronvolt",), "T": ("tesla",), "Bq": ("becquerel",), "Sv": ("sievert",), "Gy": ("gray",),
    "unit": ("unit",), "people": ("people",), "€": ("euro",), "mph": ("miles per hour",),
}  # fmt: skip
_PREFIXES = ("f", "p", "n", "μ", "µ", "m", "k", "M", "G", "T")
_PREFIXED = frozenset({"m", "g", "s", "N", "J", "W", "V", "A", "Ω", "C", "F", "Hz", "Pa", "eV", "T", "Bq", "Sv", "Gy"})
_FACTOR = re.compile(r"[/ ·⋅*]+")
_POWER = re.compile(r"(?:\^?\(?[-−]?\d\)?|[²³]|⁻[¹²³])$")
_MONEY = re.compile(r"-?\d+(?:\.\d\d)?")


def marks(case: Case) -> Iterator[Fault]:
    """Row 16: one bullet a mark; parts sum to the question; "state" is worth one mark; bands fall from the best."""
    for item in case.lesson.items():
        if isinstance(item.answer, Structured):
            yield from _parts(item, item.answer)
        elif len(item.scheme) != item.marks:
            yield Fault(f"{item.id}.scheme", f"{len(item.scheme)} bullets for {item.marks} marks", "one bullet a mark")
        if item.marks > 1 and _ONE_MARK.match(item.stem):
            yield Fault(f"{item.id}.marks", f"{item.marks} marks for {item.stem[:40]}", "1 mark for this command", "W")
    for card in case.lesson.cards:
        if isinstance(card, QuestionCard) and card.rubric:
            yield from _bands(card)


def _parts(item: Item, answer: Structured) -> Iterator[Fault]:
    total = sum(part.marks for part in answer.parts)
    if total != item.marks:
        yield Fault(f"{item.id}.marks", f"parts have {total}, the question {item.marks}", "the sum of the parts")
    for part in answer.parts:
        if len(part.scheme) != part.marks:
            yield Fault(
                f"{item.id}{part.label}.scheme",
                f"{len(part.scheme)} bullets for {part.marks} marks",
                "one bullet a mark",
            )
        if part.uses and not part.follow_through:
            yield Fault(f"{item.id}{part.label}", "uses an earlier part without follow-through", "follow_through: true")


def _bands(card: QuestionCard) -> Iterator[Fault]:
    limits = [band.from_marks for band in card.rubric]
    total = sum(item.marks for item in card.items)
    if any(one <= two for one, two in pairwise(limits)) or limits[0] > total:
        yield Fault(f"{card.id}.rubric", f"bands from {limits} of {total} marks", "falling bands within the total")


def units(case: Case) -> Iterator[Fault]:
    """Row 19: a unit is known, stands in the shown answer, and is said or asked for; pounds have no or two places."""
    for where, item, answer in case.answers():
        if not isinstance(answer, Numeric | Statistics | Geometry | Science) or not answer.unit:
            continue
        bases = _bases(answer.unit)
        if bases is None:
            yield Fault(f"{where}.answer.unit", answer.unit, "a unit of the subject")
            continue
        if answer.unit == "£" and not _MONEY.fullmatch(answer.value):
            yield Fault(f"{where}.answer.value", f"£{answer.value}", "whole pounds or two decimal places")
        if not any(_said(base, answer.shown) for base in bases):
            yield Fault(f"{where}.answer.shown", f"{answer.shown} without {answer.unit}", "the answer with its unit")
        if not isinstance(answer, Science) and not _asked(item, bases):
            yield Fault(f"{where}.stem", f"{answer.unit} is neither given nor asked for", "the unit in the question")


def _bases(unit: str) -> list[str] | None:
    """Return the base units of "cm^2", "m/s", "kW h"; None where one is unknown."""
    if unit in _CALLED:
        return [unit]
    unit = unit.removeprefix("square ").removeprefix("cubic ")
    found = []
    for factor in _FACTOR.split(unit.replace(" per ", "/")):
        base = _POWER.sub("", factor)
        if base not in _CALLED and base[:1] in _PREFIXES and base[1:] in _PREFIXED:
            base = base[1:]
        base = base.removesuffix("s") if base not in _CALLED else base
        if base not in _CALLED:
            return None
        found.append(base)
    return found


def _asked(item: Item, bases: list[str]) -> bool:
    said = [item.stem, *(given.unit for given in item.givens)]
    for figure in item.figures:
        said += [figure.alt, *figure.columns, *(cell for row in figure.rows for cell in row)]
    if isinstance(item.answer, Structured):
        said += [part.prompt for part in item.answer.parts]
    text = " ".join(said)
    return "unit" in text.lower() or all(_said(base, text) for base in bases)


def _said(base: str, text: str) -> bool:
    """Say whether a text names a unit, by its symbol or in words."""
    lower = text.lower()
    if any(word in lower for word in _CALLED[base]):
        return True
    prefix = f"[{''.join(_PREFIXES)}]?" if base in _PREFIXED else ""
    # Not a word boundary: in m² the power belongs to the word for a regular expression.
    return re.search(rf"(?<![A-Za-z]){prefix}{re.escape(base)}(?![A-Za-z])", text) is not None
