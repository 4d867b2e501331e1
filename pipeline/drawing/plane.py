"""Points of the plane that satisfy lengths, angles and relations, and what is written beside them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence

from pipeline.drawing.canvas import Point, direction
from pipeline.drawing.lines import FigureEntry, FigureLines
from pipeline.drawing.solver import solve
from pipeline.drawing.values import FigureFault, Quantity, corners

#: Given values are rounded: lengths may be off by this share, angles by this many radians.
OFF = 0.02
_KEYS = {"length": "{PQ}", "angle": "angle {PQR}", "arc": "arc {PQ}"}

Places = Mapping[str, Point]
Relation = Callable[[Places], float]
#: The points of a measure, its text and the style of its label, its value.
Measure = tuple[tuple[str, ...], str, str, float | None]


def free(value: Quantity) -> str:
    """Return the style of a value's label: unknowns are set as variables."""
    return "free" if value.value is None else ""


def longest(figure: FigureLines) -> float:
    """Return the longest length in metres; geometry is done in shares of it."""
    lengths = [e.value.size for e in figure.entries if isinstance(e.value, Quantity) and e.value.unit not in ("°", "%")]
    return max((length for length in lengths if length), default=1.0)


def radius_of(figure: FigureLines) -> float | None:
    """Return the radius in metres, told as such or as the diameter; None where it is not known."""
    radius, diameter = (figure.value(name, Quantity("", None)).size for name in ("radius", "diameter"))
    if radius and diameter and abs(diameter - 2 * radius) > OFF * diameter:
        raise FigureFault("the diameter is not twice the radius")
    return radius or (diameter / 2 if diameter else None)


def measures(figure: FigureLines, what: str) -> list[Measure]:
    """Return the lengths (as shares of the longest), angles or arcs to be written, with what is sought."""
    unit = longest(figure) if what == "length" else 1.0
    listed = [(corners(e.places[0]), e) for e in figure.all(_KEYS[what])]
    out = [(named, e.text, free(e.value), None if e.value.size is None else e.value.size / unit) for named, e in listed]
    found = re.match(r"(angle |arc )?([A-Z][A-Z′'₀-₉\d]*)\Z", figure.text("find"))
    named = corners(found[2]) if found else ()
    if not found or what != ((found[1] or "").strip() or {2: "length", 3: "angle"}.get(len(named), "")):
        return out
    same = [value for points, _, _, value in out if points in (named, named[::-1])]
    if any(value is not None for value in same):
        raise FigureFault(f"{figure.text('find')} is asked for and given")
    return out if same else [*out, (named, "?", "", None)]


def rights(figure: FigureLines) -> list[tuple[str, ...]]:
    """Return the right angles: each by its corner or by three points."""
    out: list[tuple[str, ...]] = []
    for entry in figure.all("right angle"):
        for word in filter(None, re.split(r"[\s,]+|and", entry.text)):
            named = corners(word)
            out += [named] if len(named) == 3 else [(name,) for name in named]
    return out


def turn_of(a: Point, at: Point, c: Point, inner: bool) -> float:
    """Return the angle at a point in degrees; the inner one turns from a to c against the clock."""
    turn = (math.degrees(math.atan2(c[1] - at[1], c[0] - at[0]) - math.atan2(a[1] - at[1], a[0] - at[0]))) % 360
    return turn if inner else min(turn, 360 - turn)


def distance(a: str, b: str, size: float) -> Relation:
    """Say how far apart two points are."""
    return lambda at: math.dist(at[a], at[b]) / size - 1


def angle(named: Sequence[str], size: float, inner: bool = False) -> Relation:
    """Say how large an angle is."""
    a, b, c = named
    return lambda at: math.radians((turn_of(at[a], at[b], at[c], inner) - size + 180) % 360 - 180)


def beyond(named: Sequence[str], size: float) -> Relation:
    """Say how far the first point lies from the line through the others."""
    top, b, c = named

    def off(at: Places) -> float:
        (x, y), (u, v), (s, t) = at[top], at[b], at[c]
        return abs((s - u) * (y - v) - (t - v) * (x - u)) / (math.dist(at[b], at[c]) or 1e-9) / size - 1

    return off


def pairs(entry: FigureEntry) -> list[tuple[str, str]]:
    """Return the sides that a line names."""
    named = entry.value
    if len(named) < 4 or len(named) % 2:
        raise FigureFault(f"'{entry.line.key}: {entry.text}' must name two sides, such as {entry.line.example}")
    return list(zip(named[::2], named[1::2], strict=True))


def equal(sides: Sequence[tuple[str, str]]) -> list[Relation]:
    """Say that sides are as long as each other."""

    def off(at: Places, one: tuple[str, str], other: tuple[str, str]) -> float:
        return math.dist(at[one[0]], at[one[1]]) / (math.dist(at[other[0]], at[other[1]]) or 1e-9) - 1

    return [lambda at, a=a, b=b: off(at, a, b) for a, b in itertools.pairwise(sides)]  # type: ignore[misc]


def parallel(sides: Sequence[tuple[str, str]]) -> list[Relation]:
    """Say that sides are parallel."""

    def off(at: Places, one: tuple[str, str], other: tuple[str, str]) -> float:
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = (at[name] for name in (*one, *other))
        cross = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
        return cross / (math.hypot(bx - ax, by - ay) * math.hypot(dx - cx, dy - cy) or 1e-9)

    return [lambda at, a=a, b=b: off(at, a, b) for a, b in itertools.pairwise(sides)]  # type: ignore[misc]


def solved(start: Places, relations: Sequence[Relation], fixed: Places) -> dict[str, Point] | None:
    """Return places near the start that satisfy all relations, or nothing; those that are fixed stay."""

    def places(flat: Sequence[float]) -> dict[str, Point]:
        return {**fixed, **dict(zip(start, zip(flat[::2], flat[1::2], strict=True), strict=True))}

    def residuals(flat: Sequence[float]) -> list[float]:
        at = places(flat)
        return [relation(at) for relation in relations]

    flat, worst = solve([value for point in start.values() for value in point], residuals)
    return places(flat) if worst <= OFF else None


def away_from(heart: Point, turn: float, at: Point) -> float:
    """Return the one of two opposite directions that leads away from a point."""
    return turn if math.cos(math.radians(turn - direction(heart, at))) > 0.01 else turn + 180


def between(points: Sequence[Point]) -> Point:
    """Return the middle of points."""
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
