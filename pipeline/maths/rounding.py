"""Rounds exact values half up, in decimal arithmetic; no float is ever in between."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

#: Digits of a rounded value at most: enough for every number a school prints.
MAX_PLACES = 12
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
#: What an irrational value is worked out to, and then cut to, so that 0.125 written with roots is still a tie.
_DIGITS, _TRUSTED = 50, 40
_RULE = re.compile(r"(\d{1,2}) (dp|sf)|money|nearest (\d{1,9}(?:\.\d{1,6})?)")


class RoundingError(ValueError):
    """A value or a rule that cannot be rounded by."""

    code = "not_rounded"


def decimal_of(value: Any) -> Decimal:
    """Return a value as a decimal of at least 40 true digits.

    Args:
        value: A Fraction, or a number of SymPy.

    Raises:
        RoundingError: It has letters, or is no real number.
    """
    if isinstance(value, int | Fraction):
        return _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    return _irrational(value)


@lru_cache(8_192)
def _irrational(value: Any) -> Decimal:
    digits = value.evalf(_DIGITS) if getattr(value, "is_number", False) else None
    if digits is None or not (digits.is_Float or digits.is_Integer):
        raise RoundingError(f"{value} is not one real number")
    exact = Decimal(str(digits))
    return _WIDE.quantize(exact, Decimal(1).scaleb(min(exact.adjusted(), 0) - _TRUSTED)).normalize(_WIDE)


def round_half_up(value: Any, rule: str) -> str:
    """Return a value as digits, rounded half up: "-0.038", "12300", "12.50".

    Args:
        value: A Fraction, or a number of SymPy.
        rule: "2 dp", "3 sf", "money" (two places) or "nearest 10".

    Raises:
        RoundingError: The rule is none of these, or the value is no real number.
    """
    match = _RULE.fullmatch(rule)
    count = int(match[1] or 0) if match else 0
    if match is None or count > MAX_PLACES or (match[2] == "sf" and not count):
        raise RoundingError(f"{rule!r} is no rounding; write 2 dp, 3 sf, money or nearest 10")
    exact = decimal_of(value)
    if exact.adjusted() > 40:
        raise RoundingError("the value is too large to print")
    if match[3]:
        step = Decimal(match[3])
        if not step:
            raise RoundingError("nearest 0 is no rounding")
        return _plain(_WIDE.multiply(_WIDE.divide(exact, step).quantize(Decimal(1), ROUND_HALF_UP), step))
    if match[2] == "sf":
        return _plain(_to_figures(exact, count))
    return _plain(_to_places(exact, count if match[2] else 2))


def _to_places(exact: Decimal, places: int) -> Decimal:
    return _WIDE.quantize(exact, Decimal(1).scaleb(-places))


def _to_figures(exact: Decimal, figures: int) -> Decimal:
    if not exact:
        return Decimal(0)
    rounded = _to_places(exact, figures - 1 - exact.adjusted())
    # 9.96 to two figures is 10, not 10.0: a carry makes the number one place longer.
    return _to_places(exact, figures - 1 - rounded.adjusted())


def _plain(rounded: Decimal) -> str:
    text = f"{rounded:f}"
    return text.lstrip("-") if not rounded else text
