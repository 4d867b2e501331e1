"""Numbers and formulas of texts, and the numbers that need no source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

FORMULA = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]{3,}")
#: An answer of more words than this is one in words.
_FEW_WORDS = 3
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\}|[ \u00a0\u202f\u2009]|\\,)(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ALONE = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?!\w)")
#: Digits of the longest number that is read.
_LONGEST = 40
#: Constants of the data sheet.
_SHEET = ("9.8", "3e8", "6.67e-11", "6.63e-34", "1.6e-19", "9.11e-31", "1.673e-27", "1.675e-27", "340")
CONSTANTS = frozenset(map(Fraction, _SHEET))
#: Roots of two and three, what they divide by, and pi, which words round.
ROUNDED = frozenset(map(Fraction, ("1.41421356", "0.70710678", "1.73205081", "0.57735027", "3.14159265")))
#: Numbers that need not stand in a question: of formulas, time, turns, percentages, metric units and the data sheet.
FREE = frozenset(
    {Fraction(n) for n in (0, 1, 2, 3, 4, 5, "0.5", "0.05", 50, 500, 7, 10, 12, 24, 52, 60, 365, 3600)}
    | {Fraction(n) for n in (90, 180, 270, 360, 100, 1000, 1_000_000)}
    | {Fraction(constant.partition("e")[0]) for constant in _SHEET}
)


def ungrouped(text: str) -> str:
    """Return a text whose thousands are not parted: 1,200 as 1200."""
    return _GROUPED.sub("", text)


def numbers_in(text: str) -> list[Fraction]:
    """Return the numbers that a text shows, in order, also those of 11x and x^2."""
    return [Fraction(found) for found in _NUMBER.findall(ungrouped(text)) if len(found) < _LONGEST]


def numbers_alone(text: str) -> set[Fraction]:
    """Return the numbers of a text that no letter touches."""
    found = _ALONE.findall(text.replace("{,}", ","))
    return {Fraction(number.replace(",", "")) for number in found if len(number) < _LONGEST}


def without_formulas(text: str, instead: str = "") -> str:
    """Return a text with something else in the place of its formulas."""
    return FORMULA.sub(lambda _: instead, text)


def in_words(answer: str) -> bool:
    """Say whether an answer is one in words, not a value."""
    return len(_WORD.findall(without_formulas(answer))) > _FEW_WORDS


def one_step(a: Fraction, b: Fraction) -> Iterator[Fraction]:
    """Yield what one step makes of two numbers."""
    yield from (a + b, abs(a - b), a * b)
    if b:
        yield a / b
