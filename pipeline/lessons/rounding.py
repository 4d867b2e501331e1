"""Decides how a value is printed: half up, in decimal arithmetic, and what a printed value may be read as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from pipeline.lessons.expressions import EvaluationError, Number, Surd, approximate, same

#: Enough digits that no school value is cut before it is rounded.
_WIDE = Context(prec=60, rounding=ROUND_HALF_UP)
#: Digits of an inexact value that are trusted; the rest is noise of the float.
_TRUSTED = Context(prec=13, rounding=ROUND_HALF_UP)
_PRINTED = re.compile(r"[-−]?£?[-−]?\d{1,15}(?:,\d{3}){0,6}(?:\.\d{1,20})?")
_MIXED = re.compile(r"([-−]?)(?:(\d{1,9})\s+)?(\d{1,9})/(\d{1,9})")
MONEY_PLACES = 2


def as_decimal(value: Number) -> Decimal:
    """Return the value as a decimal; inexact ones lose the digits a float cannot be trusted with."""
    if isinstance(value, Fraction):
        return _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    if isinstance(value, Surd):
        # √r in decimal keeps more digits than a float: 60 of them.
        parts = [_WIDE.multiply(as_decimal(factor), _WIDE.sqrt(Decimal(root))) for root, factor in value.terms]
        total = Decimal(0)
        for part in parts:
            total = _WIDE.add(total, part)
        return total
    return _TRUSTED.create_decimal(repr(approximate(value)))


def round_half_up(value: Number, rule: Mapping[str, Any]) -> Decimal | None:
    """Return the value rounded by the rule; None where the rule is "exact".

    Args:
        rule: {"kind": "exact" | "dp" | "sf" | "nearest" | "money", "amount": places, figures or step}.

    Raises:
        EvaluationError: The rule is not one of these.
    """
    kind, count = rule.get("kind", "exact"), rule.get("amount")
    if kind == "exact":
        return None
    exact = as_decimal(value)
    if kind == "money":
        return _to_places(exact, MONEY_PLACES)
    if kind == "dp" and _whole(count, 0, 12):
        return _to_places(exact, int(count))  # type: ignore[arg-type]
    if kind == "sf" and _whole(count, 1, 12):
        return _to_figures(exact, int(count))  # type: ignore[arg-type]
    if kind == "nearest" and isinstance(count, int | float) and not isinstance(count, bool) and count > 0:
        step = Decimal(str(count))
        return _WIDE.multiply(_WIDE.quantize(_WIDE.divide(exact, step), Decimal(1)), step)
    raise EvaluationError(f"unknown rounding {kind!r} {count!r}")


def _whole(count: object, low: int, high: int) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and low <= count <= high


def _to_places(exact: Decimal, places: int) -> Decimal:
    if exact.adjusted() > 40:
        raise EvaluationError("the value is too large to print")
    return _WIDE.quantize(exact, Decimal(1).scaleb(-places))


def _to_figures(exact: Decimal, figures: int) -> Decimal:
    if not exact:
        return Decimal(0)
    if abs(exact.adjusted()) > 40:
        raise EvaluationError("the value is too large to print")
    rounded = _WIDE.quantize(exact, Decimal(1).scaleb(exact.adjusted() - figures + 1))
    # 9.96 to two figures is 10, not 10.0: a carry makes the number one place longer.
    if rounded.adjusted() > exact.adjusted():
        rounded = _WIDE.quantize(exact, Decimal(1).scaleb(rounded.adjusted() - figures + 1))
    return rounded


def read_printed(text: str) -> Fraction:
    """Return the number a printed answer shows: "£1,250.00", "−3.5", "7/8", "2 1/3".

    Raises:
        EvaluationError: The text is not one number.
    """
    plain = text.strip()[:60].replace("\u202f", " ").replace("\u00a0", " ")
    if match := _MIXED.fullmatch(plain):
        sign, whole, top, bottom = match.groups()
        if int(bottom) == 0:
            raise EvaluationError("a fraction over nought")
        size = int(whole or 0) + Fraction(int(top), int(bottom))
        return -size if sign else size
    if not _PRINTED.fullmatch(plain):
        raise EvaluationError(f"{plain!r} is not a printed number")
    return Fraction(plain.replace("−", "-").replace("£", "").replace(",", ""))


def agrees(printed: str, value: Number, rule: Mapping[str, Any], tolerance: Fraction = Fraction(0)) -> bool:
    """Say whether a printed answer is what the value prints as under the rule, within the tolerance.

    Raises:
        EvaluationError: The answer is not a number, or the rule is unknown.
    """
    shown = read_printed(printed)
    rounded = round_half_up(value, rule)
    target: Number = value if rounded is None else Fraction(rounded)
    if same(shown, target):
        return True
    return gap(target, shown) <= tolerance


def gap(value: Number, shown: Fraction) -> Fraction:
    """Return how far a printed number is from a value."""
    return abs(Fraction(as_decimal(value)) - shown)


def half_place(printed: str) -> Fraction:
    """Return half the worth of the last figure of a printed number; noughts that end a whole number are none."""
    whole, _, digits = printed.lstrip("-−").partition(".")
    figures = whole.rstrip("0")
    zeros = len(whole) - len(figures) if figures and not digits else 0
    return Fraction(10**zeros, 2 * 10 ** len(digits))


def last_place(printed: str, rule: Mapping[str, Any]) -> Fraction:
    """Return the worth of the last place a printed answer shows under the rule; 0 where the rule is "exact".

    Raises:
        EvaluationError: The answer is not a number.
    """
    kind = rule.get("kind", "exact")
    if kind == "exact":
        return Fraction(0)
    if kind == "nearest":
        return Fraction(max(int(rule.get("amount") or 1), 1))
    whole, _, digits = printed.partition(".")
    if digits:
        return Fraction(1, 10 ** len(digits))
    shown = str(abs(read_printed(whole).numerator))
    # 12,300 to three figures: its last place is the hundreds.
    figures = int(rule.get("amount") or 1) if kind == "sf" else len(shown)
    return Fraction(10 ** max(0, len(shown) - figures))


def show_fraction(value: Fraction) -> str:
    """Return a fraction as a whole number, a finite decimal of at most four places, or a/b."""
    if value.denominator == 1:
        return f"{value.numerator:,}" if abs(value.numerator) >= 10_000 else str(value.numerator)
    if (value * 10_000).denominator == 1:
        return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return f"{value.numerator}/{value.denominator}"
