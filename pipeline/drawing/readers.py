"""Readers of the values that only one kind of figure has."""

from __future__ import annotations

import re

from pipeline.drawing.values import (
    FigureFault,
    Quantity,
    cells,
    corners,
    degrees,
    number,
    numbers,
    plain,
    quantity,
    size,
)

_SIGN = r"(?:<=|>=|[<>≤≥])"
_INEQUALITY = re.compile(rf"(?:(?P<a>[-−\d./]+)\s*(?P<one>{_SIGN})\s*)?[a-z]\s*(?P<two>{_SIGN})\s*(?P<b>[-−\d./]+)\Z")
_BEARING = re.compile(r"(?P<bearing>\d{3}(?:\.\d+)?|[a-z?])°?(?:,\s*(?P<far>.+))?\Z")


def tangent(value: str) -> tuple[tuple[str, ...], str]:
    """Return where tangents touch, and the point outside that they lead to, if it has a name."""
    touching, _, outside = value.partition(" to ")
    return corners(touching), corners(outside)[0] if outside else ""


def inequality(value: str) -> tuple[float | None, bool, float | None, bool]:
    """Return (low, low is in, high, high is in) of "x > 2", "-1 <= x < 3"."""
    found = _INEQUALITY.match(value.strip())
    if not found:
        raise FigureFault(f"'{value}' is not an inequality such as x > 2 or -1 <= x < 3")
    sign, end = plain(found["two"]), number(found["b"])
    if found["a"] is None:
        return (end, sign == "≥", None, False) if sign in ">≥" else (None, False, end, sign == "≤")
    one, start = plain(found["one"]), number(found["a"])
    if (one in "<≤") != (sign in "<≤"):
        raise FigureFault(f"'{value}': both signs must point the same way")
    made = (start, one in "≤≥", end, sign in "≤≥")
    return made if sign in "<≤" else (end, sign in "≤≥", start, one in "≤≥")


def bearing(value: str) -> tuple[float | None, str, str]:
    """Return (degrees or None, bearing as text, distance as text) of "065°, 12 km"."""
    found = _BEARING.match(value)
    if not found:
        raise FigureFault(f"'{value}' is not a bearing in three figures with its distance, such as 065°, 12 km")
    shown = found["bearing"]
    turn = float(shown) if shown[0].isdigit() else None
    if turn is not None and turn > 360:
        raise FigureFault(f"'{value}': a bearing is from 000° to 360°")
    if found["far"]:
        size(found["far"])
    return turn, shown + ("" if shown == "?" else "°"), (found["far"] or "").strip()


def scale(value: str) -> tuple[float, float, str]:
    """Return (low, high, label) of "0 to 50, marks"."""
    found = re.match(r"([-−\d.,]+?) to ([-−\d.]+)(?:,\s*(.*))?\Z", value)
    if not found or number(found[1]) >= number(found[2]):
        raise FigureFault(f"'{value}' is not a rising scale such as 0 to 50, marks")
    return number(found[1]), number(found[2]), (found[3] or "").strip()


def five(value: str) -> tuple[float, ...]:
    """Return the five numbers of a box plot."""
    made = numbers(value)
    if len(made) != 5 or list(made) != sorted(made):
        raise FigureFault(
            f"'{value}' must be five rising numbers: lowest, lower quartile, median, upper quartile, highest"
        )
    return made


def amounts(value: str) -> tuple[float, ...]:
    """Return the heights of one bar, or of a group of bars divided by bars."""
    return tuple(number(part) for part in cells(value))


def leaves(value: str) -> tuple[int, ...]:
    """Return the leaves of a stem: single digits, rising."""
    found = value.replace(",", " ").split()
    if not all(re.fullmatch(r"\d", leaf) for leaf in found) or found != sorted(found):
        raise FigureFault(f"'{value}' must be single digits in rising order, or nothing")
    return tuple(map(int, found))


def probability(value: str) -> float | None:
    """Return a probability from 0 to 1; None for an unknown."""
    made = quantity(value).value
    if made is not None and not 0 <= made <= 1:
        raise FigureFault(f"'{value}' is not a probability from 0 to 1")
    return made


def share(value: str) -> Quantity:
    """Return a slice in degrees; it may be given as a percentage."""
    made = quantity(value)
    return Quantity(value, made.value * 3.6, "°") if made.unit == "%" and made.value else degrees(value)


def sizes(value: str) -> tuple[Quantity, ...]:
    """Return the values of parallel parts, divided by bars."""
    return tuple(size(part) for part in cells(value))


def force(value: str) -> tuple[Quantity, str]:
    """Return the size and the name of "20 N normal"; the size may be an unknown."""
    found = re.match(r"(?P<size>[-−\d].*?\s?k?N\b|\? ?k?N\b|\S+)\s*(?P<name>.*)\Z", value)
    if not found:
        raise FigureFault("a force needs its size or a letter, such as 20 N normal")
    return size(found["size"]), found["name"]
