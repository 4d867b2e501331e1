"""Circles with chords, tangents, sectors: points that satisfy what is given, and the drawing of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable

from pipeline.publish.drawing.canvas import Canvas, Point, direction, middle, polar
from pipeline.publish.drawing.lines import Entry, Figure
from pipeline.publish.drawing.polygons import free, sought
from pipeline.publish.drawing.solver import solve
from pipeline.publish.drawing.values import Fault, Quantity, corners

Relation = Callable[[dict[str, Point]], float]
_RADIUS = 90.0
_OFF = 0.02
_START = (205, 335, 95, 150, 40, 270, 0, 180)
_AT = re.compile(r"([A-Z]['′]?\d?)(?: at ([-−]?\d+(?:\.\d+)?)°?| on ([A-Z]{2}))?\Z")


def draw(figure: Figure, canvas: Canvas) -> None:
    """Check and draw a circle."""
    centre = (figure.value("centre") or ("O",))[0]
    radius = _radius(figure)
    turns, on_chord = _points(figure, centre)
    turns = _turned(figure, centre, radius, turns)
    at: dict[str, Point] = {centre: (0, 0), **{name: polar((0, 0), _RADIUS, turn) for name, turn in turns.items()}}
    tangents = [_tangent(figure, at, radius, entry.text) for entry in figure.all("tangent at")]
    for name, chord in on_chord.items():
        if len(chord) != 2:
            raise Fault(f"middle {name}: a chord is named by its two ends")
        at[name] = middle(at[chord[0]], at[chord[1]])
    canvas.circle((0, 0), _RADIUS)
    if figure.get("centre") or not turns:
        canvas.dot((0, 0), 2.5)
    for start, end in (line for lines in tangents for line in lines):
        canvas.line(start, end)
    drawn = _lines(figure, canvas, centre, at)
    _sizes(figure, canvas, centre, at, drawn)
    for name, place in at.items():
        if name != centre or figure.get("centre"):
            away = direction((0, 0), place) if name != centre else _free_side(centre, at, drawn)
            canvas.label(name, place, away, 5, "strong at")


def _radius(figure: Figure) -> float | None:
    radius, diameter = (figure.value(name, Quantity("", None)).value for name in ("radius", "diameter"))
    if radius and diameter and abs(diameter - 2 * radius) > _OFF * diameter:
        raise Fault("the diameter is not twice the radius")
    return radius or (diameter / 2 if diameter else None)


def _points(figure: Figure, centre: str) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """Return the points on the circle with their turns, and the middles of chords."""
    turns: dict[str, float] = {}
    middles: dict[str, tuple[str, ...]] = {entry.places[0]: entry.value for entry in figure.all("middle {P}")}
    for part in filter(None, re.split(r"\s*[,;]\s*", figure.text("points"))):
        found = _AT.match(part)
        if not found:
            raise Fault(f"points: '{part}' is not 'A at 20°' or 'M on AB', the middle of a chord")
        if found[3]:
            middles[found[1]] = (found[3][0], found[3][1])
        else:
            turns[found[1]] = float(found[2].replace("−", "-")) if found[2] else _START[len(turns) % 8]
    named = [name for chord in middles.values() for name in chord]
    outside = {name for entry in figure.all("tangent at") for name in _outside(entry.text)}
    named += [*figure.value("sector", ()), *(corners(figure.text("join")) if figure.get("join") else ())]
    for key in ("{PQ}", "arc {PQ}", "angle {PQR}"):
        named += [name for entry in figure.all(key) for name in corners(entry.places[0])]
    named += [name for entry in figure.all("tangent at") for name in corners(entry.text.split(" to ")[0])]
    for name in named:
        if name not in turns and name not in middles and name not in outside and name != centre:
            turns[name] = _START[len(turns) % 8]
    if len(turns) > 8:
        raise Fault("more than 8 points on a circle cannot be read")
    return turns, middles


def _outside(text: str) -> tuple[str, ...]:
    return corners(text.split(" to ")[1]) if " to " in text else ()


def _turned(figure: Figure, centre: str, radius: float | None, turns: dict[str, float]) -> dict[str, float]:
    """Return the turns at which all chords, distances and angles are as given."""
    names = list(turns)
    relations: list[Relation] = []
    for entry in figure.all("{PQ}"):
        relations += _chord(entry, centre, radius, turns)
    for entry in figure.all("distance {P} to {PQ}"):
        relations += _distance(entry, radius, turns)
    angles = [(corners(e.places[0]), e.value.value) for e in figure.all("angle {PQR}")]
    angles += [(e.value, 90.0) for e in figure.all("right angle")]
    for named, size in angles:
        if size is not None and len(named) == 3 and set(named) <= {centre, *turns}:
            relations.append(_angle(named, size))

    def residuals(flat: list[float]) -> list[float]:
        at = {
            centre: (0.0, 0.0),
            **{name: (math.cos(turn), math.sin(turn)) for name, turn in zip(names, flat, strict=True)},
        }
        return [relation(at) for relation in relations]

    flat, worst = solve([math.radians(turn) for turn in turns.values()], residuals)  # type: ignore[arg-type]
    if worst > _OFF:
        raise Fault("no such circle: the given chords and angles do not fit together, or not at these places")
    return dict(zip(names, map(math.degrees, flat), strict=True))


def _chord(entry: Entry, centre: str, radius: float | None, turns: dict[str, float]) -> list[Relation]:
    (a, b), length = corners(entry.places[0]), entry.value.value
    if length is None or radius is None:
        return []
    if {a, b} <= set(turns):
        if length > 2 * radius * 1.001:
            raise Fault(f"the chord {a}{b} is longer than the diameter")
        return [lambda at: math.dist(at[a], at[b]) - length / radius]
    if centre in (a, b) and {a, b} & set(turns) and abs(length / radius - 1) > _OFF:
        raise Fault(f"{a}{b} is a radius, but {entry.text} is not the radius")
    return []


def _distance(entry: Entry, radius: float | None, turns: dict[str, float]) -> list[Relation]:
    (a, b), far = corners(entry.places[1]), entry.value.value
    if far is None or radius is None or not {a, b} <= set(turns):
        return []
    if far >= radius:
        raise Fault(f"the chord {a}{b} would lie outside the circle")
    return [lambda at: math.hypot(*middle(at[a], at[b])) - far / radius]


def _angle(named: tuple[str, ...], size: float) -> Relation:
    def off(at: dict[str, Point]) -> float:
        a, b, c = (at[name] for name in named)
        turn = (direction(b, c) - direction(b, a)) % 360
        return math.radians((turn if size > 180 else min(turn, 360 - turn)) - size)

    return off


def _tangent(figure: Figure, at: dict[str, Point], radius: float | None, text: str) -> list[tuple[Point, Point]]:
    """Return the lines of a tangent, or of those to a point outside, which gets its place."""
    touching, outside = corners(text.split(" to ")[0]), _outside(text)
    if not outside:
        turn = direction((0, 0), at[touching[0]])
        return [(polar(at[touching[0]], 75, turn - 90), polar(at[touching[0]], 75, turn + 90))]
    if len(touching) == 2:
        one, other = (direction((0, 0), at[name]) for name in touching)
        half = ((other - one + 180) % 360 - 180) / 2
        if abs(half) > 75:
            raise Fault("the tangents meet too far away: bring their points nearer to each other")
        at[outside[0]] = polar((0, 0), _RADIUS / math.cos(math.radians(half)), one + half)
    else:
        named = {touching[0], outside[0]}
        long = [e.value.value for e in figure.all("{PQ}") if set(corners(e.places[0])) == named]
        share = long[0] / radius if long and long[0] and radius else 1.4
        if not 0.3 <= share <= 2.4:
            raise Fault("the tangent is too short or too long to read beside its circle")
        turn = direction((0, 0), at[touching[0]])
        at[outside[0]] = polar(
            at[touching[0]], _RADIUS * share, turn + (90 if math.sin(math.radians(turn)) < 0 else -90)
        )
    return [(at[name], at[outside[0]]) for name in touching]


def _lines(figure: Figure, canvas: Canvas, centre: str, at: dict[str, Point]) -> set[frozenset[str]]:
    """Draw the sector and all lines that are joined or measured; return them."""
    pairs: list[tuple[str, ...]] = []
    if figure.get("join"):
        named = [corners(word) for word in re.split(r"[\s,]+", figure.text("join"))]
        pairs += [pair for word in named for pair in itertools.pairwise(word)]
    pairs += [corners(entry.places[0]) for entry in figure.all("{PQ}")]
    pairs += [corners(entry.places[1]) for entry in figure.all("distance {P} to {PQ}")]
    angles = [corners(e.places[0]) for e in figure.all("angle {PQR}")] + [e.value for e in figure.all("right angle")]
    what, wanted = sought(figure)
    if what in ("angle", "length"):
        angles.append(wanted) if what == "angle" else pairs.append(wanted)
    if sector := figure.value("sector"):
        angles.append(sector)
    for named in angles:
        if len(named) != 3:
            raise Fault(f"an angle of a circle needs three points, such as A{centre}B")
        pairs += [(named[0], named[1]), (named[1], named[2])]
    if any(len(set(pair)) != 2 for pair in pairs):
        raise Fault("a line leads from one point to another, such as OA")
    unknown = [name for pair in pairs for name in pair if name not in at]
    if unknown:
        raise Fault(f"{unknown[0]} is no point of this circle")
    if sector:
        _shade(figure, canvas, sector, at)
    tangents = [
        frozenset((name, out))
        for e in figure.all("tangent at")
        for out in _outside(e.text)
        for name in corners(e.text.split(" to ")[0])
    ]
    drawn = list(dict.fromkeys(map(frozenset, pairs)))
    for a, b in (sorted(pair) for pair in drawn if pair not in tangents):
        canvas.line(at[a], at[b])
    return set(drawn)


def _shade(figure: Figure, canvas: Canvas, sector: tuple[str, ...], at: dict[str, Point]) -> None:
    a, o, b = (at[name] for name in sector)
    start = direction(o, a)
    turn = (direction(o, b) - start + 180) % 360 - 180
    canvas.arc(o, _RADIUS, start, turn - math.copysign(360, turn) if _large(figure) else turn, "fill bare")


def _large(figure: Figure) -> bool:
    sector = figure.value("sector")
    return any(
        corners(e.places[0]) in (sector, sector[::-1]) and (e.value.value or 0) > 180 for e in figure.all("angle {PQR}")
    )


def _sizes(figure: Figure, canvas: Canvas, centre: str, at: dict[str, Point], drawn: set[frozenset[str]]) -> None:
    sides = {frozenset(corners(e.places[0])): (e.text, free(e.value)) for e in figure.all("{PQ}")}
    what, wanted = sought(figure)
    if what == "length":
        sides.setdefault(frozenset(wanted), ("?", ""))
    _across(figure, canvas, centre, at, drawn, sides)
    angles = [
        (corners(e.places[0]), e.text, free(e.value), (e.value.value or 0) > 180) for e in figure.all("angle {PQR}")
    ]
    angles += [(e.value, "90°", "", False) for e in figure.all("right angle")]
    if what == "angle" and not any(set(wanted) == set(named) and wanted[1] == named[1] for named, *_ in angles):
        angles.append((wanted, "?", "", False))
    for named, text, style, reflex in angles:
        a, b, c = (at[name] for name in named)
        if reflex and (direction(b, c) - direction(b, a)) % 360 < 180:
            a, c = c, a
        canvas.angle(b, a, c, text, style, reflex=reflex)
    for pair, (text, style) in sides.items():
        a, b = (at[name] for name in sorted(pair))
        turn = direction(a, b) + 90
        others = [place for name, place in at.items() if centre in pair and name not in pair] or [(0.0, 0.0)]
        heart = (sum(x for x, _ in others) / len(others), sum(y for _, y in others) / len(others))
        away = turn if math.cos(math.radians(turn - direction(heart, middle(a, b)))) > 0.01 else turn + 180
        halved = any(math.dist(middle(a, b), place) < 1 for name, place in at.items() if name not in pair)
        canvas.label(text, middle(a, b, 0.26 if halved else 0.5), away, 4, style)
    for entry in figure.all("distance {P} to {PQ}"):
        a, b = (at[name] for name in corners(entry.places[1]))
        foot = middle(a, b)
        canvas.line(at[entry.places[0]], foot, style="dash")
        canvas.corner(foot, a, at[entry.places[0]])
        canvas.label(entry.text, middle(at[entry.places[0]], foot), direction(a, b), 4, free(entry.value))
    for named, text, style in (
        *((corners(e.places[0]), e.text, free(e.value)) for e in figure.all("arc {PQ}")),
        *([(wanted, "?", "")] if what == "arc" and not figure.all("arc {PQ}") else []),
    ):
        a, b = (at[name] for name in named)
        turn = direction((0, 0), middle(a, b)) + (180 if figure.get("sector") and _large(figure) else 0)
        canvas.label(text, polar((0, 0), _RADIUS, turn), turn, 5, style)


def _across(
    figure: Figure, canvas: Canvas, centre: str, at: dict[str, Point], drawn: set[frozenset[str]],
    sides: dict[frozenset[str], tuple[str, str]],
) -> None:  # fmt: skip
    """Write radius and diameter beside a line that shows them, else beside a line of their own."""
    for key, reach in (("radius", 1), ("diameter", 2)):
        entry = figure.get(key)
        if entry is None:
            continue
        fitting = [
            pair for pair in sorted(drawn, key=sorted) if pair not in sides and _reaches(pair, centre, at) == reach
        ]
        if fitting:
            sides[fitting[0]] = (entry.text, free(entry.value))
        else:
            turns = [direction((0, 0), place) for name, place in at.items() if name != centre]
            turn = max(
                range(0, 360, 15),
                key=lambda one: min((abs((one - other + 180) % 360 - 180) for other in turns), default=-abs(one - 330)),
            )
            start = (0.0, 0.0) if reach == 1 else polar((0, 0), _RADIUS, turn + 180)
            canvas.line(start, polar((0, 0), _RADIUS, turn))
            canvas.label(entry.text, polar((0, 0), _RADIUS * 0.5, turn), turn + 90, 4, free(entry.value))


def _reaches(pair: frozenset[str], centre: str, at: dict[str, Point]) -> int:
    a, b = (at[name] for name in sorted(pair))
    if centre in pair:
        return int(abs(math.dist(a, b) - _RADIUS) < 1)
    return 2 if abs(math.dist(a, b) - 2 * _RADIUS) < 0.5 else 0


def _free_side(centre: str, at: dict[str, Point], drawn: set[frozenset[str]]) -> float:
    """Return the way from the centre that is farthest from its lines."""
    turns = [direction((0, 0), at[next(iter(pair - {centre}))]) for pair in drawn if centre in pair]
    return max(
        range(0, 360, 15),
        key=lambda one: min((abs((one - other + 180) % 360 - 180) for other in turns), default=-abs(one - 225)),
    )
