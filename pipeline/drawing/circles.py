"""Circles with chords, tangents, sectors."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from pipeline.drawing import plane
from pipeline.drawing.canvas import Canvas, Point, direction, middle, polar
from pipeline.drawing.lines import FigureLines
from pipeline.drawing.plane import Measure, Relation
from pipeline.drawing.values import FigureFault, corners

_RADIUS = 90.0
_START = (205, 335, 95, 150, 40, 270, 0, 180)
_AT = re.compile(r"([A-Z]['′]?\d?)(?: at ([-−]?\d+(?:\.\d+)?)°?)?\Z")

Pair = frozenset[str]
Named = tuple[str, ...]
#: Where tangents touch, and the point outside that they lead to.
Tangent = tuple[Named, str]


def draw(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a circle."""
    centre = (figure.value("centre") or ("O",))[0]
    tangents = [entry.value for entry in figure.all("tangent at")]
    pairs = _pairs(figure, tangents)
    at = _places(figure, centre, tangents, pairs)
    if unknown := [name for pair in pairs for name in pair if name not in at]:
        raise FigureFault(f"{unknown[0]} is no point of this circle")
    canvas.circle((0, 0), _RADIUS)
    if sector := figure.value("sector"):
        _shade(figure, canvas, [at[name] for name in sector])
    if figure.get("centre") or len(at) == 1:
        canvas.dot((0, 0), 2.5)
    for touching, outside in tangents:
        if not outside:
            turn = direction((0, 0), at[touching[0]])
            canvas.line(polar(at[touching[0]], 75, turn - 90), polar(at[touching[0]], 75, turn + 90))
    drawn = list(dict.fromkeys(map(frozenset, pairs)))
    for a, b in map(sorted, drawn):
        canvas.line(at[a], at[b])
    _sizes(figure, canvas, centre, at, drawn)
    radii = [direction((0, 0), at[name]) for pair in drawn if centre in pair for name in pair - {centre}]
    for name, place in at.items():
        if name != centre or figure.get("centre"):
            away = _free(radii, 225) if name == centre else direction((0, 0), place)
            canvas.label(name, place, away, 5, "strong at")


def _pairs(figure: FigureLines, tangents: Sequence[Tangent]) -> list[Named]:
    """Return the lines that are joined or measured, or the arms of angles."""
    joined = [corners(word) for word in re.split(r"[\s,]+", figure.text("join")) if word]
    out: list[Named] = [pair for word in joined for pair in itertools.pairwise(word)]
    out += [named for named, *_ in plane.measures(figure, "length")]
    out += [corners(entry.places[1]) for entry in figure.all("distance {P} to {PQ}")]
    out += [(name, outside) for touching, outside in tangents if outside for name in touching]
    angles = [named for named, *_ in plane.measures(figure, "angle")] + plane.rights(figure)
    for named in (*angles, *filter(None, [figure.value("sector")])):
        if len(named) != 3:
            raise FigureFault("an angle of a circle needs three points, such as AOB")
        out += itertools.pairwise(named)
    if any(len(set(pair)) != 2 for pair in out):
        raise FigureFault("a line leads from one point to another, such as OA")
    return out


def _places(figure: FigureLines, centre: str, tangents: Sequence[Tangent], pairs: Sequence[Named]) -> dict[str, Point]:
    """Return where all points lie: those on the circle, outside it, and in the middle of chords."""
    chords = {entry.places[0]: entry.value for entry in figure.all("middle {P}")}
    outside = {name: touching for touching, name in tangents if name}
    named = [*itertools.chain(*pairs, *chords.values(), *(touching for touching, _ in tangents))]
    named += [name for points, *_ in plane.measures(figure, "arc") for name in points]
    if any(centre in touching for touching, _ in tangents):
        raise FigureFault("a tangent touches the circle at a point of it, not at its centre")
    turns = _turns(figure, [name for name in named if name not in {*chords, *outside, centre}])
    start = {name: polar((0, 0), 1, turn) for name, turn in turns.items()}
    relations = [plane.distance(centre, name, 1) for name in turns]
    for name, touching in outside.items():
        heart = plane.between([start[one] for one in touching])
        start[name] = polar(heart, 1, direction((0, 0), heart) - (60 if len(touching) == 1 else 0))
        relations += [plane.angle((centre, one, name), 90) for one in touching]
    relations += _measured(figure, centre, {*turns, *outside})
    found = plane.solved(start, relations, {centre: (0.0, 0.0)})
    if not found:
        raise FigureFault("no such circle: the given lengths and angles do not fit together, or not at these places")
    at = {name: (x * _RADIUS, y * _RADIUS) for name, (x, y) in found.items()}
    if any(math.hypot(*at[name]) > 2.7 * _RADIUS for name in outside):
        raise FigureFault("the tangent is too long to read beside its circle")
    for name, chord in chords.items():
        if len(chord) != 2:
            raise FigureFault(f"middle {name}: a chord is named by its two ends")
        at[name] = middle(at[chord[0]], at[chord[1]])
    return at


def _turns(figure: FigureLines, named: Sequence[str]) -> dict[str, float]:
    """Return the directions in which points of the circle are to lie; guessed where nothing is said."""
    turns: dict[str, float] = {}
    for part in filter(None, re.split(r"\s*[,;]\s*", figure.text("points"))):
        if not (found := _AT.match(part)):
            raise FigureFault(f"points: '{part}' is not 'A at 20°'")
        turns[found[1]] = float(found[2].replace("−", "-")) if found[2] else _START[len(turns) % 8]
    for name in named:
        turns.setdefault(name, _START[len(turns) % 8])
    if len(turns) > 8:
        raise FigureFault("more than 8 points on a circle cannot be read")
    return turns


def _measured(figure: FigureLines, centre: str, free: set[str]) -> list[Relation]:
    """Return what lengths, distances and angles say of points in a circle of radius 1."""
    unit = plane.longest(figure)
    radius = (plane.radius_of(figure) or 0) / unit
    known = free | {centre}
    out: list[Relation] = []
    for (a, b), text, _, value in plane.measures(figure, "length"):
        if value and radius and {a, b} <= known:
            if value > 2 * radius * 1.001 and centre not in (a, b) and " to " not in figure.text("tangent at"):
                raise FigureFault(f"the chord {a}{b} is longer than the diameter: {text}")
            out.append(plane.distance(a, b, value / radius))
    for entry in figure.all("distance {P} to {PQ}"):
        named = (entry.places[0], *corners(entry.places[1]))
        if entry.value.value and radius and set(named) <= known:
            out.append(plane.beyond(named, entry.value.size / unit / radius))
    angles = [(named, value) for named, _, _, value in plane.measures(figure, "angle") if value is not None]
    for named, value in angles + [(named, 90.0) for named in plane.rights(figure)]:
        if set(named) <= known:
            out.append(plane.angle(named, min(value, 360 - value)))
    return out


def _shade(figure: FigureLines, canvas: Canvas, sector: Sequence[Point]) -> None:
    start = direction(sector[1], sector[0])
    turn = (direction(sector[1], sector[2]) - start + 180) % 360 - 180
    canvas.arc((0, 0), _RADIUS, start, turn - math.copysign(360, turn) if _large(figure) else turn, "fill bare")


def _large(figure: FigureLines) -> bool:
    sector = figure.value("sector", ())
    return any(
        named in (sector, sector[::-1]) and (value or 0) > 180 for named, _, _, value in plane.measures(figure, "angle")
    )


def _sizes(figure: FigureLines, canvas: Canvas, centre: str, at: dict[str, Point], drawn: list[Pair]) -> None:
    sides = plane.measures(figure, "length")
    sides += _across(figure, canvas, centre, at, [pair for pair in drawn if pair not in [set(one[0]) for one in sides]])
    for named in plane.rights(figure):
        canvas.corner(at[named[1]], at[named[0]], at[named[2]])
    for named, text, style, value in plane.measures(figure, "angle"):
        a, b, c = (at[name] for name in named)
        reflex = (value or 0) > 180
        if reflex and (direction(b, c) - direction(b, a)) % 360 < 180:
            a, c = c, a
        canvas.angle(b, a, c, text, style, reflex=reflex)
    for named, text, style, _ in sides:
        a, b = (at[name] for name in sorted(named))
        others = [place for name, place in at.items() if centre in named and name not in named] or [(0.0, 0.0)]
        away = plane.away_from(plane.between(others), direction(a, b) + 90, middle(a, b))
        halved = any(math.dist(middle(a, b), place) < 1 for name, place in at.items() if name not in named)
        canvas.label(text, middle(a, b, 0.26 if halved else 0.5), away, 4, style)
    for entry in figure.all("distance {P} to {PQ}"):
        start, (a, b) = at.get(entry.places[0]), (at[name] for name in corners(entry.places[1]))
        if start is None:
            raise FigureFault(f"{entry.places[0]} is no point of this circle")
        foot = middle(a, b)
        canvas.line(start, foot, style="dash")
        canvas.corner(foot, a, start)
        canvas.label(entry.text, middle(start, foot), direction(a, b), 4, plane.free(entry.value))
    for named, text, style, _ in plane.measures(figure, "arc"):
        turn = direction((0, 0), plane.between([at[name] for name in named])) + (180 if _large(figure) else 0)
        canvas.label(text, polar((0, 0), _RADIUS, turn), turn, 5, style)


def _across(
    figure: FigureLines, canvas: Canvas, centre: str, at: dict[str, Point], unsaid: list[Pair]
) -> list[Measure]:
    """Return radius and diameter as measures of lines that show them; draw a line for what no line shows."""
    out: list[Measure] = []
    for key, reach in (("radius", 1), ("diameter", 2)):
        if (entry := figure.get(key)) is None:
            continue
        fitting = [pair for pair in sorted(unsaid, key=sorted) if (centre in pair) == (reach == 1)]
        fitting = [pair for pair in fitting if abs(math.dist(*(at[name] for name in pair)) - reach * _RADIUS) < 1]
        if fitting:
            out.append((tuple(sorted(fitting[0])), entry.text, plane.free(entry.value), None))
            continue
        turn = _free([direction((0, 0), place) for name, place in at.items() if name != centre], 330)
        canvas.line((0, 0) if reach == 1 else polar((0, 0), _RADIUS, turn + 180), polar((0, 0), _RADIUS, turn))
        canvas.label(entry.text, polar((0, 0), _RADIUS * 0.5, turn), turn + 90, 4, plane.free(entry.value))
    return out


def _free(turns: Sequence[float], usual: float) -> float:
    """Return the direction that is farthest from others; where there are none, the usual one."""

    def room(one: float) -> float:
        return min((abs((one - other + 180) % 360 - 180) for other in turns), default=-abs(one - usual))

    return max(range(0, 360, 15), key=room)
