"""Rows 5, 6 and 15: answers are recomputed, their calculations belong to the question, their form is as asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction

from pipeline.lessons import answers as a
from pipeline.lessons.evaluator import FUNCTIONS, tokens
from pipeline.lessons.exact import EvaluationError
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.forms import form_fault
from pipeline.lessons.schemas import Item
from pipeline.lessons.verify import fault

#: Numbers that need not stand in the question: small ones of formulas, of time, turns, percentages and metric units.
_ALLOWED = frozenset(
    Fraction(number)
    for number in ("0", "1", "2", "3", "4", "0.5", "7", "10", "12", "24", "52", "60", "90", "100", "180", "360", "365",
                   "1000", "3600", "1000000")
)  # fmt: skip
#: Constants of the physics data sheet, beside the powers of ten.
_DATA_SHEET = frozenset(
    Fraction(number)
    for number in ("9.8", "3.00", "6.67", "6.63", "1.60", "1.6", "9.11", "1.673", "1.675", "2.3", "340", "1.5", "1.33")
)
_WORDS = {
    "half": "0.5", "double": "2", "twice": "2", "triple": "3", "quarter": "4", "third": "3", "dozen": "12",
    "ten": "10", "five": "5", "six": "6", "eight": "8", "nine": "9", "eleven": "11", "hundred": "100",
    "thousand": "1000", "million": "1000000", "square": "2", "cube": "3", "pentagon": "5", "hexagon": "6",
    "octagon": "8", "decagon": "10",
}  # fmt: skip
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
_WORD = re.compile(r"[a-z]{3,9}")
_CALCULATED = (a.Numeric, a.Exact, a.Geometry, a.Vector, a.Science)


def values(case: Case) -> Iterator[Fault]:
    """Row 5: the printed answer is what the expression gives, under its rounding and tolerance."""
    for where, _, answer in case.answers():
        if wrong := fault(answer):
            yield Fault(f"{where}.answer", wrong, "an answer that its own calculation gives")


def belongs(case: Case) -> Iterator[Fault]:
    """Row 6: a calculation has an operation, and its numbers stand in the question."""
    for where, item, answer in case.answers():
        if isinstance(answer, _CALCULATED):
            texts = answer.expressions if isinstance(answer, a.Vector) else [answer.expression]
            there = _numbers_of(item)
            if isinstance(answer, a.Science):
                there |= _DATA_SHEET
            for text in texts:
                yield from _belonging(where, text, there, needs_operation=not isinstance(answer, a.Vector))


def _belonging(where: str, expression: str, there: set[Fraction], *, needs_operation: bool) -> Iterator[Fault]:
    try:
        found = tokens(expression)
    except EvaluationError:
        # Row 5 says so already.
        return
    if needs_operation and not any(token in ("+", "-", "*", "/", "**", *FUNCTIONS) for token in found):
        yield Fault(f"{where}.answer.expression", expression, "the whole calculation, not only its result")
    numbers = [token for token in found if token[0].isdigit() or token[0] == "."]
    strangers = [token for token in numbers if Fraction(token) not in there]
    if strangers:
        yield Fault(
            f"{where}.answer.expression",
            f"{', '.join(dict.fromkeys(strangers))} not in the question",
            "numbers of the stem, its givens or figures",
        )


def _numbers_of(item: Item) -> set[Fraction]:
    """Return the numbers a calculation may use: those in the question, as they stand, and as percentages."""
    found = {Fraction(text) for line in _texts(item) for text in _NUMBER.findall(_GROUPED.sub("", line))}
    found |= {Fraction(_WORDS[word]) for word in _WORD.findall(item.stem.lower()) if word in _WORDS}
    shares = {share for number in found for share in (number / 100, 1 + number / 100, abs(1 - number / 100))}
    changed = {abs(100 - number) for number in found} | {100 + number for number in found}
    return found | shares | changed | _ALLOWED


def _texts(item: Item) -> Iterable[str]:
    yield item.stem
    for given in item.givens:
        yield given.value
    for figure in item.figures:
        yield figure.alt
        yield from figure.columns
        for row in figure.rows:
            yield from row
    if isinstance(item.answer, a.Structured):
        for part in item.answer.parts:
            yield part.prompt
            # A later part may use what an earlier one found.
            yield str(getattr(part.answer, "value", ""))


def forms(case: Case) -> Iterator[Fault]:
    """Row 15: simplified, factorised, in lowest terms: what equality cannot see."""
    for where, _, answer in case.answers():
        if isinstance(answer, a.Exact):
            yield from _form(where, answer.form, answer.value, [])
        elif isinstance(answer, a.Algebra):
            letters = [name for name in answer.variables if name != answer.subject]
            yield from _form(where, answer.form, answer.answer, letters)


def _form(where: str, form: str, text: str, letters: list[str]) -> Iterator[Fault]:
    try:
        reason = form_fault(form, text, letters)
    except EvaluationError as refused:
        reason = str(refused)
    if reason:
        yield Fault(f"{where}.answer", f"{text}: {reason}", f"the form {form}")
