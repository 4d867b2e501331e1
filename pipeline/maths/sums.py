"""Sums that a text says in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

_N = r"(?P<{}>\d[\d,]*(?:\.\d+)?)"
_IS = r"\s(?:is|are|makes?|equals?|gives?)\s"
_RESULT = rf"{_IS}(?:£\s?)?{_N.format('c')}(?![\d.,]*\d|\s?(?:%|per cent|times|more|less|out|of|/|×|x\s|or|and|to|in))"
_SUMS = (
    (rf"{_N.format('a')}\s?(?:%|per cent)\sof\s(?:£\s?)?{_N.format('b')}{_RESULT}", lambda a, b: a * b / 100),
    (
        rf"{_N.format('a')}\s(?:and|plus|\+)\s{_N.format('b')}\s(?:make|makes|equals?|give)\s{_N.format('c')}",
        lambda a, b: a + b,
    ),
    (rf"{_N.format('a')}\s(?:times|×|multiplied by)\s{_N.format('b')}{_RESULT}", lambda a, b: a * b),
    (rf"{_N.format('a')}\s(?:minus|−|take away)\s{_N.format('b')}{_RESULT}", lambda a, b: a - b),
    (rf"{_N.format('a')}\s(?:divided by|÷)\s{_N.format('b')}{_RESULT}", lambda a, b: a / b),
    (rf"\b[Hh]alf of (?:£\s?)?{_N.format('b')}(?P<a>){_RESULT}", lambda a, b: b / 2),
    (rf"\b(?:[Dd]ouble|[Tt]wice) (?:£\s?)?{_N.format('b')}(?P<a>){_RESULT}", lambda a, b: b * 2),
    (rf"\b[Aa] quarter of (?:£\s?)?{_N.format('b')}(?P<a>){_RESULT}", lambda a, b: b / 4),
    (rf"\b[Aa] third of (?:£\s?)?{_N.format('b')}(?P<a>){_RESULT}", lambda a, b: b / 3),
    (rf"\b[Tt]he square of {_N.format('b')}(?P<a>){_RESULT}", lambda a, b: b * b),
    (rf"\b[Tt]he square root of {_N.format('b')}(?P<a>){_RESULT}", lambda a, b: _whole_root(b, 2)),
    (rf"\b[Tt]he cube root of {_N.format('b')}(?P<a>){_RESULT}", lambda a, b: _whole_root(b, 3)),
    (rf"{_N.format('b')}\ssquared(?P<a>){_RESULT}", lambda a, b: b * b),
)
#: "90°, 162° and 108° make 360°": three numbers or more, and their sum.
_MANY = re.compile(
    r"(?<![\d.,] )((?:£?\d[\d,]*(?:\.\d+)?[°%]?(?:,| and|, and| plus)\s){2,}£?\d[\d,]*(?:\.\d+)?)[°%]?"
    r"\s(?:together\s)?(?:make|makes|add up to|come to|give|total)\s£?(?P<c>\d[\d,]*(?:\.\d+)?)(?![\d.,]*\d)"
)

#: A number that a sum may begin with.
_WHOLE = re.compile(r"\d\s$")


def _whole_root(value: Fraction, index: int) -> Fraction:
    return Fraction(round(float(value) ** (1 / index) * 10**6), 10**6)


def false_sums(sentence: str) -> Iterator[str]:
    """Yield the sums of a sentence that are not true: "20 % of 80 is 18"."""
    for match in _MANY.finditer(sentence):
        parts = [Fraction(n.replace(",", "").rstrip(".")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", match[1])]
        if sum(parts) != Fraction(match["c"].replace(",", "").rstrip(".")):
            yield f"{match[0]} is not true"
    for pattern, rule in _SUMS:
        for match in re.finditer(
            rf"(?:^|[,;:(…]\s*|\b(?:and|[Ss]o|that|[Bb]ecause|[Tt]hen|as|since|[Hh]ere)\s){pattern}", sentence
        ):
            if _WHOLE.search(sentence[: match.start()]) and match[0].startswith("and "):
                # "£68 and 15 % of £68 is £78.20": the sum begins before.
                continue
            a, b, c = (Fraction((match[name] or "0").replace(",", "").rstrip(".")) for name in "abc")
            if b and abs(rule(a, b) - c) > Fraction(1, 2) / 10 ** len(match["c"].partition(".")[2]) * (
                rule(a, b) % 1 != 0
            ):
                yield f"{match[0]} is not true"
