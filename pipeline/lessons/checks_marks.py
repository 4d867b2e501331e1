"""Checks of marks, of the options of multiple-choice questions, and of the lesson against its plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pipeline.lessons.algebra import equal_expressions
from pipeline.lessons.answers import Geometry, Mcq, Numeric, Option, Science, Statistics, Structured
from pipeline.lessons.expressions import EvaluationError, UndefinedValue, evaluate, letters
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.rounding import gap, half_place, read_printed
from pipeline.lessons.schemas import ExplainerCard, Item, ModellingCard, QuestionCard

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
    """Check row 16: one bullet a mark; parts add up to the question; "state" is worth one mark; bands fall."""
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
    """Check row 19: a unit is known, is in the shown answer, and is said or asked for; pounds have 0 or 2 places."""
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


_OF_ABOVE = re.compile(r"\b(?:all|none|both|neither) of (?:the )?(?:above|these)\b|\ball the above\b", re.IGNORECASE)
_TRUE_FALSE = re.compile(r"\btrue or false\b|^\W*(?:true|false)\W*$", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"\bwhich (?:\w+ ){0,6}(?:is|are|does|do|was|can) ?not\b|\bwhich (?:\w+ ){0,6}(?:isn|aren|doesn|don)['’]t\b"
    r"|\b(?:all|each) (?:\w+ ){0,6}except\b|\bexcept which\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"[a-z]{5,}")


def _choices(case: Case) -> Iterator[tuple[str, str, Mcq]]:
    for where, item, answer in case.answers():
        if isinstance(answer, Mcq):
            yield where, item.stem, answer


def one_right(case: Case) -> Iterator[Fault]:
    """Check row 8: options differ in text and value, each shows its value, and the key is what its method gives."""
    for where, _, answer in _choices(case):
        texts = [" ".join(option.text.lower().split()) for option in answer.options]
        for index, text in enumerate(texts):
            if text in texts[:index]:
                yield Fault(
                    f"{where}.options.{index}", f"{answer.options[index].text} stands twice", "different options"
                )
        try:
            yield from _by_value(where, answer)
        except EvaluationError as refused:
            yield Fault(f"{where}.options", str(refused), "values in evaluator notation, or none")


def _by_value(where: str, answer: Mcq) -> Iterator[Fault]:
    valued = [(index, option) for index, option in enumerate(answer.options) if _has_value(option.expression)]
    for place, (index, option) in enumerate(valued):
        for earlier, other in valued[:place]:
            if _equal(option.expression, other.expression):
                yield Fault(
                    f"{where}.options",
                    f"{option.text} and {other.text} are equal",
                    f"one right option ({earlier}, {index})",
                )
        if shown := _misprint(option):
            yield Fault(f"{where}.options.{index}", shown, "a text that shows the option's value")
    key = answer.options[answer.key]
    if _has_value(key.expression) and _has_value(key.method) and not _gives(key.method, key.expression):
        yield Fault(f"{where}.key", f"{key.method} does not give {key.text}", "the right option as key")


def _has_value(expression: str) -> bool:
    return bool(expression.strip()) and not any(sign in expression for sign in "=<>,;")


def _equal(left: str, right: str) -> bool:
    try:
        return equal_expressions(left, right, letters(left, right))
    except UndefinedValue:
        return False


def _gives(method: str, value: str) -> bool:
    """Say whether a calculation gives a value: equal, or equal once rounded to the places the value shows."""
    if _equal(method, value):
        return True
    if letters(method, value) or "." not in value:
        return False
    try:
        shown = read_printed(value)
    except EvaluationError:
        return False
    return gap(evaluate(method), shown) <= half_place(value)


def _misprint(option: Option) -> str | None:
    """Return what is wrong where the text is a number that is not the option's value as printed."""
    plain = option.text.strip().removeprefix("£")
    try:
        printed = read_printed(plain)
    except EvaluationError:
        return None
    if letters(option.expression):
        return None
    # Options may be printed rounded: half of the last place shown is allowed, or of the last figure of a whole number.
    if gap(evaluate(option.expression), printed) <= half_place(plain):
        return None
    return f"the text says {option.text}, the value is {option.expression}"


def wording(case: Case) -> Iterator[Fault]:
    """Check row 12: no "all of the above", true/false or "which is not"; a stem's word in the key only: a warning."""
    for where, stem, answer in _choices(case):
        for index, option in enumerate(answer.options):
            if _OF_ABOVE.search(option.text):
                yield Fault(f"{where}.options.{index}", option.text, "an answer of its own")
            if _TRUE_FALSE.search(option.text):
                yield Fault(f"{where}.options.{index}", option.text, "no true or false")
        if _TRUE_FALSE.search(stem) or _NEGATIVE.search(stem):
            yield Fault(f"{where}.stem", stem, "a question asked positively, not true or false")
        if given_away := _only_in_key(stem, answer):
            yield Fault(f"{where}.options", f"{given_away!r} of the stem stands in the key only", "no such hint", "W")


def _only_in_key(stem: str, answer: Mcq) -> str | None:
    asked = set(_CONTENT.findall(stem.lower()))
    key = asked & set(_CONTENT.findall(answer.options[answer.key].text.lower()))
    others = " ".join(option.text.lower() for index, option in enumerate(answer.options) if index != answer.key)
    return next((word for word in sorted(key) if word not in others), None)


def references(case: Case) -> Iterator[Fault]:
    """Check row 2: outcome, cross-cutting and point ids equal the entry's; order, kind, calculator and time too."""
    lesson, entry = case.lesson, case.entry
    for name in ("outcome_refs", "cross_cutting"):
        yield from _same_ids(name, getattr(lesson, name), entry[name])
    for name in ("order", "lesson_type", "calculator", "minutes"):
        if getattr(lesson, name) != entry[name]:
            yield Fault(name, str(getattr(lesson, name)), str(entry[name]))
    planned = set(entry["points"])
    for index, point in enumerate(lesson.points):
        if point.ref not in planned:
            yield Fault(f"points.{index}.ref", f"{point.ref} is not planned", _some(sorted(planned)))
    for item in lesson.items():
        for ref in item.points:
            if ref not in planned:
                yield Fault(f"{item.id}.points", f"{ref} is not planned", _some(sorted(planned)))
    yield from _unknown(case)


def _same_ids(name: str, found: Sequence[str], wanted: Sequence[str]) -> Iterator[Fault]:
    if set(found) != set(wanted) or len(found) != len(set(found)):
        yield Fault(name, _some(found), _some(wanted))


def _unknown(case: Case) -> Iterator[Fault]:
    known = {outcome["id"] for group in case.course["groups"] for outcome in group["outcomes"]}
    for ref in (*case.lesson.outcome_refs, *case.lesson.cross_cutting):
        if ref not in known:
            yield Fault("outcome_refs", f"{ref} is not in the catalogue", "an id of the catalogue")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:12]) or "none"


def points(case: Case) -> Iterator[Fault]:
    """Check row 3: point → a card that teaches it → an item that asks it."""
    lesson = case.lesson
    listed = {point.ref: point for point in lesson.points}
    teaching = {card.id for card in lesson.cards if isinstance(card, ExplainerCard | ModellingCard)}
    asks = {item.id: set(item.points) for item in lesson.items()}
    for ref in case.entry["points"]:
        if ref not in listed:
            yield Fault("points", f"{ref} is missing", "every point of the scheme's entry")
            continue
        point = listed[ref]
        if lesson.lesson_type == "teach" and point.card not in teaching:
            yield Fault(f"points.{ref}.card", point.card, "an explainer or modelling card")
        silent = [name for name in point.items if ref not in asks[name]]
        if silent:
            yield Fault(
                f"points.{ref}.items", f"{', '.join(silent)} do not name the point", f"items with {ref} in points"
            )
