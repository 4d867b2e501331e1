"""Numbers and formulas of texts, and the numbers that need no source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

FORMULA = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]{3,}")
#: An answer of more words than this is one in words.
_FEW_WORDS = 3
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\}|[ \u00a0\u202f\u2009]|\\,)(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ALONE = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?!\w)")
_ONES = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SPELT = dict(zip([*_ONES, *_TENS], [*range(1, 20), *range(20, 100, 10)], strict=True))
_SPELLING = re.compile(rf"\b(?:({'|'.join(_TENS)})(?:[- ]({'|'.join(_ONES[:9])}))?|({'|'.join(_ONES)}))\b")
#: A year of a question that nothing is calculated in: of history, of an author, of a law.
ANY_YEAR = re.compile(r"(?<![\d.,])(1\d{3}|20\d\d)(?![\d,]*\d|\.\d)")
_MIXED = re.compile(r"(?<![\d.,/])(?:(\d{1,9}) )?(\d{1,9})/(\d{1,9})(?![\d/])")
#: Digits of the longest number that is read.
_LONGEST = 40
#: Constants of the data sheet.
_SHEET = ("9.8", "3e8", "6.67e-11", "6.63e-34", "1.6e-19", "9.11e-31", "1.673e-27", "1.675e-27", "340")
CONSTANTS = frozenset(map(Fraction, _SHEET))
#: Roots of two and three, what they divide by, and pi, which words round.
ROUNDED = frozenset(map(Fraction, ("1.41421356", "0.70710678", "1.73205081", "0.57735027", "3.14159265")))
#: Numbers of time, of turns, of percentages and metric units.
OF_TIME = frozenset(map(Fraction, (7, 12, 24, 52, 60, 365, 3600)))
OF_TURNS = frozenset(map(Fraction, (90, 180, 270, 360)))
OF_UNITS = frozenset(map(Fraction, (10, 100, 1000, 1_000_000)))
_TIME = re.compile(
    r"\b(?:min|mins|minutes?|hours?|h|seconds?|s|km/h|kWh|days?|daily|weeks?|weekly|months?|monthly|years?|yearly)\b"
)
_TURN = re.compile(
    r"°|\b(?:angle|turn|pie|triangle|circle|polygon|bearing|sector|arc|square|rectangle)s?\b", re.IGNORECASE
)
#: Nought degrees Celsius in kelvin.
OF_KELVIN = frozenset(map(Fraction, ("273", "273.15")))
#: Numbers that need not stand in a question: those, and numbers of formulas and of the data sheet.
FREE = (OF_TIME | OF_TURNS | OF_UNITS).union(
    (Fraction(n) for n in (0, 1, 2, 3, 4, 5, "0.5", "0.05", 50, 500)),
    (Fraction(constant.partition("e")[0]) for constant in _SHEET),
)


def brought_by(text: str) -> frozenset[Fraction]:
    """Return the numbers that the words of a text bring along: those of time, of turns, of temperatures."""
    kelvin = OF_KELVIN if "°C" in text else ()
    return frozenset().union(OF_TIME if _TIME.search(text) else (), OF_TURNS if _TURN.search(text) else (), kelvin)


def ungrouped(text: str) -> str:
    """Return a text whose thousands are not parted: 1,200 as 1200."""
    return _GROUPED.sub("", text)


def numbers_spelt(text: str) -> set[Fraction]:
    """Return the numbers from 1 to 99 that a text says in words: four, twenty-five."""
    return {Fraction(sum(_SPELT[word] for word in found if word)) for found in _SPELLING.findall(text.lower())}


def mixed_numbers(text: str) -> set[Fraction]:
    """Return the values of the fractions and mixed numbers that a text prints beside formulas: 3 1/4 is 13/4."""
    return {int(whole or 0) + Fraction(int(top), int(low)) for whole, top, low in _MIXED.findall(text) if int(low)}


@lru_cache(4_096)
def numbers_in(text: str) -> tuple[Fraction, ...]:
    """Return the numbers that a text shows, in order, also those of 11x and x^2."""
    return tuple(number_of(found) for found in _NUMBER.findall(ungrouped(text)) if len(found) < _LONGEST)


@lru_cache(4_096)
def numbers_alone(text: str) -> frozenset[Fraction]:
    """Return the numbers of a text that no letter touches."""
    found = _ALONE.findall(text.replace("{,}", ","))
    return frozenset(number_of(number) for number in found if len(number) < _LONGEST)


@lru_cache(4_096)
def number_of(text: str) -> Fraction:
    """Return the value of one number as printed, commas left out: "1,200" is 1200."""
    return Fraction(text.replace(",", ""))


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
