"""Rows 8 and 12: one option is right and only one, and the wording neither gives it away nor sets a trap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from pipeline.lessons.algebra import equal_expressions
from pipeline.lessons.answers import Mcq, Option
from pipeline.lessons.evaluator import FUNCTIONS, evaluate
from pipeline.lessons.exact import EvaluationError, UndefinedValue
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.rounding import as_decimal, read_printed

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
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
    """Row 8: options differ in text and in value, each shows its value, and the key is what its method gives."""
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


def _letters(*texts: str) -> list[str]:
    found = {name for text in texts for name in _NAME.findall(text)}
    return sorted(found - {*FUNCTIONS, "pi"})[:6]


def _equal(left: str, right: str) -> bool:
    try:
        return equal_expressions(left, right, _letters(left, right))
    except UndefinedValue:
        return False


def _gives(method: str, value: str) -> bool:
    """Say whether a calculation gives a value: equal, or equal once rounded to the places the value shows."""
    if _equal(method, value):
        return True
    if _letters(method, value) or "." not in value:
        return False
    try:
        shown = read_printed(value)
    except EvaluationError:
        return False
    half = Fraction(1, 2 * 10 ** len(value.rpartition(".")[2]))
    return abs(Fraction(as_decimal(evaluate(method))) - shown) <= half


def _misprint(option: Option) -> str | None:
    """Return what is wrong where the text is a number that is not the option's value as printed."""
    plain = option.text.strip().removeprefix("£")
    try:
        printed = read_printed(plain)
    except EvaluationError:
        return None
    if _letters(option.expression):
        return None
    places = len(plain.rpartition(".")[2]) if "." in plain else 0
    gap = abs(Fraction(as_decimal(evaluate(option.expression))) - printed)
    # Options may be printed rounded: half of the last place shown is allowed, or of the last figure of a whole number.
    zeros = len(plain) - len(plain.rstrip("0")) if not places else 0
    allowed = Fraction(10**zeros, 2 * 10**places)
    return f"the text says {option.text}, the value is {option.expression}" if gap > allowed else None


def wording(case: Case) -> Iterator[Fault]:
    """Row 12: no "all of the above", true/false or "which is not"; a word of the stem in the key only is a warning."""
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
