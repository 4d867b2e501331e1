"""Vectors on squares and journeys by bearings."""

from __future__ import annotations

import math
import re

from pipeline.drawing.canvas import Canvas, Point, direction, fit, middle, polar
from pipeline.drawing.lines import FigureLines
from pipeline.drawing.plane import between, free
from pipeline.drawing.values import FigureFault, corners, quantity

_MOST = 24


def vectors(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw vectors: chained where their points say so, else beside each other."""
    points: dict[str, Point] = {entry.places[0]: entry.value for entry in figure.all("{P}")}
    drawn: list[tuple[str, Point, Point]] = []
    right = max((x for x, _ in points.values()), default=0.0)
    for entry in figure.entries:
        key = entry.line.key
        if key not in ("{u}", "{PQ}", "{u} from {P}"):
            continue
        x, y = entry.value
        if not x and not y:
            raise FigureFault(f"{entry.places[0]} is the zero vector, which cannot be drawn")
        start, end = corners(entry.places[0]) if key == "{PQ}" else (entry.places[1] if "from" in key else "", "")
        if start in points:
            at = points[start]
        elif end in points:
            at = points[end][0] - x, points[end][1] - y
        else:
            at = right + max(0, -x) + (1 if drawn or points else 0), max(0, -y)
        there = at[0] + x, at[1] + y
        for name, place in ((start, at), (end, there)):
            if name and math.dist(points.setdefault(name, place), place) > 0.01:
                raise FigureFault(f"{name} would lie at two places")
        right = max(right, at[0], there[0])
        drawn.append(("" if key == "{PQ}" else entry.places[0], at, there))
    _vectors(figure, canvas, points, drawn)


def _vectors(
    figure: FigureLines, canvas: Canvas, points: dict[str, Point], drawn: list[tuple[str, Point, Point]]
) -> None:
    everything = [place for _, *places in drawn for place in places] + list(points.values())
    if not everything:
        raise FigureFault("no vector is given")
    xs, ys = ([place[n] for place in everything] for n in (0, 1))
    left, low = math.floor(min(xs)), math.floor(min(ys))
    wide, high = max(1, math.ceil(max(xs)) - left), max(1, math.ceil(max(ys)) - low)
    if max(wide, high) > _MOST:
        raise FigureFault(f"more than {_MOST} squares cannot be read: take smaller vectors")
    unit = min(28.0, 250 / wide, 220 / high)

    def at(place: Point) -> Point:
        return (place[0] - left) * unit, (low + high - place[1]) * unit

    if figure.text("grid", "yes") == "yes":
        canvas.lines([((n * unit, 0), (n * unit, high * unit)) for n in range(wide + 1)])
        canvas.lines([((0, n * unit), (wide * unit, n * unit)) for n in range(high + 1)])
    for name, start, end in drawn:
        canvas.arrow(at(start), at(end), "bold")
        canvas.label(name, middle(at(start), at(end)), direction(at(start), at(end)) + 90, 4, "strong")
    found = re.match(r"([A-Z]['′]?\d?)([A-Z]['′]?\d?)\Z", figure.text("find"))
    if found and {found[1], found[2]} <= set(points):
        canvas.arrow(at(points[found[1]]), at(points[found[2]]), "dash")
    heart = between([at(place) for place in everything])
    for name, place in points.items():
        canvas.dot(at(place), 2.5)
        canvas.label(name, at(place), direction(heart, at(place)), 4, "strong")


def bearings(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw legs by bearing and distance, with north lines."""
    legs = figure.all("{P} to {P}")
    far = [quantity(entry.value[2]).size for entry in legs]
    known = [size for size in far if size]
    usual = sum(known) / len(known) if known else 1.0
    plane: dict[str, Point] = {legs[0].places[0]: (0.0, 0.0)}
    turn = 20.0
    for entry, size in zip(legs, far, strict=True):
        start, end = entry.places
        if start not in plane or end in plane:
            raise FigureFault(
                f"{start} to {end}: each leg starts where one before started or ended, and leads to a new point"
            )
        turn = entry.value[0] if entry.value[0] is not None else turn + 80
        x, y = plane[start]
        way = math.radians(turn)
        plane[end] = x + (size or usual) * math.sin(way), y + (size or usual) * math.cos(way)
    _fits(figure, plane, complete=len(known) == len(legs))
    names = list(plane)
    room = fit(list(plane.values()), 190, 170)
    _journey(figure, canvas, dict(zip(names, room, strict=True)))


def _fits(figure: FigureLines, plane: dict[str, Point], *, complete: bool) -> None:
    """Check distances and angles that are given besides the legs."""
    for entry in figure.all("{PQ}"):
        a, b = (plane.get(name) for name in corners(entry.places[0]))
        if a and b and complete and entry.value.size and abs(math.dist(a, b) / entry.value.size - 1) > 0.02:
            would = entry.value.value * math.dist(a, b) / entry.value.size
            raise FigureFault(f"{entry.places[0]} would be {would:.3g} by the bearings, not {entry.text}")
    for entry in figure.all("angle {PQR}"):
        named = [plane.get(name) for name in corners(entry.places[0])]
        a, at, b = named if len(named) == 3 else (None, None, None)
        turn = abs((direction(at, a) - direction(at, b) + 180) % 360 - 180) if a and at and b else None
        if turn is not None and entry.value.value is not None and abs(turn - entry.value.value) > 1.5:
            raise FigureFault(f"angle {entry.places[0]} is not {entry.text} by the bearings")


def _journey(figure: FigureLines, canvas: Canvas, at: dict[str, Point]) -> None:
    heart = between(list(at.values()))
    asked = re.match(r"bearing (?:of )?([A-Z]\d?) from ([A-Z]\d?)\Z", figure.text("find"))
    norths: set[str] = set()
    turns = [(e.places[0], e.places[1], e.value[1]) for e in figure.all("{P} to {P}")]
    if asked and {asked[1], asked[2]} <= set(at):
        turns.append((asked[2], asked[1], "?"))
        canvas.line(at[asked[2]], at[asked[1]], style="dash")
    for start, end, shown in turns:
        if start not in norths:
            canvas.arrow(at[start], polar(at[start], 52, 90), "dash")
            canvas.label("N", polar(at[start], 52, 90), 90, 3)
        turn = (90 - direction(at[start], at[end])) % 360
        far = 17 + 11 * sum(one == start for one in norths) + (8 if start in norths else 0)
        norths.add(start)
        canvas.arc(at[start], far, 90, -turn)
        told = 90 - turn * (0.5 if far == 17 else 0.82)
        canvas.label(shown, polar(at[start], far, told), told, 3, "inside" if 50 <= turn < 75 else "")
    _distances(figure, canvas, at, heart)
    for entry in figure.all("angle {PQR}"):
        if set(named := corners(entry.places[0])) <= set(at) and len(named) == 3:
            a, b, c = (at[name] for name in named)
            canvas.angle(b, a, c, entry.text)
    for name, place in at.items():
        canvas.dot(place, 2.5)
        canvas.label(name, place, direction(heart, place), 5, "strong at")


def _distances(figure: FigureLines, canvas: Canvas, at: dict[str, Point], heart: Point) -> None:
    for entry in figure.all("{P} to {P}"):
        one, other = (at[name] for name in entry.places)
        canvas.line(one, other, style="bold")
        away = direction(heart, middle(one, other)) if len(at) > 2 else direction(one, other) - 90
        canvas.label(entry.value[2], middle(one, other), away, 5)
    extra = [(corners(e.places[0]), e.text, free(e.value)) for e in figure.all("{PQ}")]
    found = re.match(r"([A-Z]\d?)([A-Z]\d?)\Z", figure.text("find"))
    if found and not any({found[1], found[2]} == set(pair) for pair, *_ in extra):
        extra.append(((found[1], found[2]), "?", ""))
    for pair, text, style in extra:
        if set(pair) <= set(at):
            one, other = (at[name] for name in pair)
            canvas.line(one, other, style="dash")
            canvas.label(text, middle(one, other), direction(heart, middle(one, other)), 5, style)
