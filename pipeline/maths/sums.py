"""Sums that a text says in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from pipeline.maths import units

_DIGIT = re.compile(r"\d")
_DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?"
_A, _B, _C = (rf"(?P<{name}>{_DIGITS})" for name in "abc")
#: Words behind a number that make another of it: "3 million", "3 remainder 4", "12 tens", "2 plus 2", "1 pair".
_OTHER = (
    r"[%/×÷+−½¼¾⅓⅔]|(?:x|per cent|times|more|less|out|of|or|and(?!\s\d+\s(?:times|plus|minus|squared)\b)|to|in"
    r"|plus|minus|squared|cubed|divided|multiplied"
    r"|remainder|with|rounded|tens|hundreds?|thousands?|millions?|billions?|dozens?|pairs?|wholes?|hal(?:f|ves)|thirds?|quarters?"
    r"|(?!months?\b)\w+ths?)\b"
)
_NO_MORE = r"(?![\d.,]*\d)"
_RESULT = rf"\s(?:is|are|makes?|equals?|gives?)\s(?:£\s?)?{_C}{_NO_MORE}(?!,?\s?(?:{_OTHER}))"
#: Behind "3, 4 and 5 make 12" only a unit: they make 1 right angle, and 6 numbers.
_TOTAL = (
    rf"£?{_C}{_NO_MORE}(?:\s?(?:[°%]|{units.PATTERN.pattern}))?(?=\s*(?:[.,;:)…]|$)|\s(?:in all|altogether|together)\b)"
)
#: What a sum stands behind.
_BEHIND = r"(?:^|[,;:(…]\s*|\b(?:and|[Ss]o|that|[Bb]ecause|[Tt]hen|as|since|[Hh]ere)\s)"
_SUMS: tuple[tuple[str, Callable[[Fraction, Fraction], Fraction]], ...] = (
    (rf"{_A}\s?(?:%|per cent)\sof\s(?:£\s?)?{_B}{_RESULT}", lambda a, b: a * b / 100),
    (rf"{_A}\sand\s{_B}\smakes?\s{_TOTAL}", lambda a, b: a + b),
    (rf"{_A}\s(?:plus|\+)\s{_B}{_RESULT}", lambda a, b: a + b),
    (rf"{_A}\s(?:times|×|multiplied by)\s{_B}{_RESULT}", lambda a, b: a * b),
    (rf"{_A}\s(?:minus|−|take away)\s{_B}{_RESULT}", lambda a, b: a - b),
    (rf"{_A}\s(?:divided by|÷)\s{_B}{_RESULT}", lambda a, b: a / b),
    (rf"\b[Hh]alf of (?:£\s?)?{_B}(?P<a>){_RESULT}", lambda a, b: b / 2),
    (rf"\b(?:[Dd]ouble|[Tt]wice) (?:£\s?)?{_B}(?P<a>){_RESULT}", lambda a, b: b * 2),
    (rf"\b[Aa] quarter of (?:£\s?)?{_B}(?P<a>){_RESULT}", lambda a, b: b / 4),
    (rf"\b[Aa] third of (?:£\s?)?{_B}(?P<a>){_RESULT}", lambda a, b: b / 3),
    (rf"\b[Tt]he square of {_B}(?P<a>){_RESULT}", lambda a, b: b * b),
    (rf"\b[Tt]he square root of {_B}(?P<a>){_RESULT}", lambda a, b: _whole_root(b, 2)),
    (rf"\b[Tt]he cube root of {_B}(?P<a>){_RESULT}", lambda a, b: _whole_root(b, 3)),
    (rf"{_B}\ssquared(?P<a>){_RESULT}", lambda a, b: b * b),
)
_READ_SUMS = [(re.compile(_BEHIND + pattern), rule) for pattern, rule in _SUMS]
#: "90°, 162° and 108°": three numbers or more.
_MANY = re.compile(rf"(?<![\d.,] )(?:£?{_DIGITS}[°%]?(?:,| and|, and| plus)\s){{2,}}£?{_DIGITS}[°%]?")
_MAKE = re.compile(rf"\s(?:together\s)?(?:makes?|add up to|come to|total)\s{_TOTAL}")
#: Numbers that stand side by side or are multiplied: "the factors 2, 3 and 5 make 30".
_NO_SUM = re.compile(r"\b(?:digits?|factors?|product|multipl\w+)\b", re.IGNORECASE)
#: A number that a sum may begin with.
_WHOLE = re.compile(r"\d\s$")


#: "an eighth is 12.5 %".
_NAMED = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_PART_OF = re.compile(
    rf"\b(?:[Aa]|[Aa]n|[Oo]ne) (?P<part>{'|'.join(_NAMED)}) (?:is|equals|means) {_C}\s?(?:%|per cent)"
)


_U, _V = (rf"(?:\s?(?P<{name}>[°%]|{units.PATTERN.pattern}))?" for name in "uv")
#: "27 is less than 36", "350 g is 0.35 kg": two numbers and nothing of a calculation before or behind them.
_BEFORE, _END = r"(?:^|[,;:(]\s*|\b(?:and|but|so|that|[Bb]ecause|as|since|[Hh]ere)\s)", r"(?=\s*(?:[.,;:)]|$))"
_MORE = r"(?P<more>less|lower|smaller|greater|more|larger|higher)"
_COMPARED = re.compile(rf"{_BEFORE}£?{_A}{_U} is {_MORE} than £?{_B}{_NO_MORE}{_V}{_END}")
_CONVERTED = re.compile(rf"{_BEFORE}{_A}{_U} (?:is|are|equals?|makes?) {_B}{_NO_MORE}{_V}{_END}")


def _false_comparisons(text: str) -> Iterator[str]:
    """Yield comparisons and conversions in words that are not true."""
    for match in _COMPARED.finditer(text):
        one, two = _value(match["a"]), _value(match["b"])
        less = match["more"] in ("less", "lower", "smaller")
        if match["u"] == match["v"] and not (one < two if less else one > two):
            yield f"{match[0].strip()} is not true"
    for match in _CONVERTED.finditer(text):
        first, second = (units.unit(match[name] or "") for name in "uv")
        if not first or not second or first.bases != second.bases or first.factor == second.factor:
            continue
        one, two = _value(match["a"]) * first.factor, _value(match["b"]) * second.factor
        if first.quantity != "temperature" and abs(one - two) > abs(one) / 50:
            yield f"{match[0].strip()} is not true"


def _whole_root(value: Fraction, index: int) -> Fraction:
    return Fraction(round(float(value) ** (1 / index) * 10**6), 10**6)


def false_sums(sentence: str) -> Iterator[str]:
    """Yield the sums of a sentence that are not true: "20 % of 80 is 18"."""
    if not _DIGIT.search(sentence):
        return
    for many in _MANY.finditer(sentence):
        total = _MAKE.match(sentence, many.end())
        parts = [_value(number) for number in re.findall(_DIGITS, many[0])]
        if total and sum(parts) != _value(total["c"]) and not _NO_SUM.search(sentence):
            yield f"{many[0]}{total[0]} is not true"
    # The last two of three numbers are no pair.
    pairs = _MANY.sub("…", sentence)
    yield from _false_comparisons(pairs)
    for match in _PART_OF.finditer(pairs):
        percent = _value(match["c"])
        if abs(Fraction(100, _NAMED[match["part"]]) - percent) > Fraction(1, 2):
            yield f"{match[0]} is not true"
    for pattern, rule in _READ_SUMS:
        for match in pattern.finditer(pairs):
            if _WHOLE.search(pairs[: match.start()]) and match[0].startswith("and "):
                # "£68 and 15 % of £68 is £78.20": the sum begins before.
                continue
            a, b, c = (_value(match[name] or "0") for name in "abc")
            if b and abs(rule(a, b) - c) > Fraction(1, 2) / 10 ** len(match["c"].partition(".")[2]) * (
                rule(a, b) % 1 != 0
            ):
                yield f"{match[0]} is not true"


def _value(number: str) -> Fraction:
    return Fraction(number.replace(",", ""))
