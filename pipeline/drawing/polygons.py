"""Triangles and polygons: their rules, and the drawing of them."""

from __future__ import annotations

import math

from pipeline.drawing import plane
from pipeline.drawing.canvas import Canvas, Point, direction, fit, middle, polar
from pipeline.drawing.lines import FigureEntry, FigureLines
from pipeline.drawing.plane import Relation
from pipeline.drawing.values import FigureFault

_THIN = 12.0

Names = tuple[str, ...]
#: The angles of shapes that say nothing of theirs: none of them is right.
_TURNS = {
    "parallelogram": (68, 112, 68, 112),
    "rhombus": (68, 112, 68, 112),
    "trapezium": (62, 74, 106, 118),
    "kite": (100, 100, 60, 100),
    "any": (82, 76, 108, 94),
}


def draw(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a triangle or polygon."""
    names: Names = figure.value("corners")
    if not 3 <= len(names) <= 10 or len(set(names)) < len(names):
        raise FigureFault("corners must name 3 to 10 different points, in order round the shape")
    _all_known(figure, names)
    if len(names) == 3:
        _triangle_rules(figure)
    relations = _relations(figure, names)
    points = _solved(figure, names, relations)
    _thin(points)
    at = dict(zip(names, fit(_turned(figure, names, points), 190, 170), strict=True))
    _shape(figure, canvas, names, at)
    lengths = [value for *_, value in plane.measures(figure, "length") if value]
    if len(relations) < 2 * len(names) - (3 if lengths else 4):
        canvas.text("not to scale", min(x for x, _ in at.values()), max(y for _, y in at.values()) + 36, "start")


def _all_known(figure: FigureLines, names: Names) -> None:
    named = [name for what in ("length", "angle") for points, *_ in plane.measures(figure, what) for name in points]
    named += [name for key in ("equal", "parallel", "diagonal") for entry in figure.all(key) for name in entry.value]
    named += [name for points in plane.rights(figure) for name in points]
    named += [entry.places[0] for entry in figure.all("height from {P}")]
    if unknown := [name for name in named if name not in names]:
        raise FigureFault(f"{unknown[0]} is none of the corners")


def _triangle_rules(figure: FigureLines) -> None:
    sides = [(text, value) for _, text, _, value in plane.measures(figure, "length") if value is not None]
    if len(sides) == 3 and 2 * max(value for _, value in sides) >= sum(value for _, value in sides):
        told = ", ".join(text for text, _ in sides)
        raise FigureFault(f"no triangle has the sides {told}: two must be longer than the third")
    angles = [size for _, size in _angles(figure)]
    if len(angles) == 3 and abs(sum(angles) - 180) > 1.5:
        raise FigureFault(f"the angles of a triangle add up to 180°, these to {sum(angles):g}°")
    if len(angles) < 3 and sum(angles) >= 180:
        raise FigureFault("two angles of a triangle are less than 180° together")


def _angles(figure: FigureLines) -> list[tuple[Names, float]]:
    known = [(named, value) for named, _, _, value in plane.measures(figure, "angle") if value is not None]
    return known + [(named, 90.0) for named in plane.rights(figure)]


def _three(names: Names, named: Names) -> tuple[str, str, str, bool]:
    """Return the points of an angle: before, at, after; and whether it is an inner angle of the shape."""
    if len(named) not in (1, 3):
        raise FigureFault(f"angle {''.join(named)} must be named by one corner or by three")
    at = names.index(named[len(named) // 2])
    after, before = names[(at + 1) % len(names)], names[at - 1]
    if len(named) == 1 or {named[0], named[2]} == {before, after}:
        return after, names[at], before, True
    return *named, False  # type: ignore[return-value]


def _relations(figure: FigureLines, names: Names) -> list[Relation]:
    lengths = [(named, value) for named, _, _, value in plane.measures(figure, "length") if value]
    out = [plane.distance(named[0], named[1], size) for named, size in lengths]
    for named, size in _angles(figure):
        a, b, c, inner = _three(names, named)
        out.append(plane.angle((a, b, c), size, inner))
    for entry in figure.all("equal"):
        out += plane.equal(plane.pairs(entry))
    for entry in figure.all("parallel"):
        out += plane.parallel(plane.pairs(entry))
    for entry in figure.all("height from {P}"):
        if entry.value.value is not None:
            size = entry.value.size / plane.longest(figure)
            out.append(plane.beyond((entry.places[0], *_base(names, entry)), size))
    return out + _named_shape(figure, names)


def _base(names: Names, entry: FigureEntry) -> tuple[str, str]:
    at = names.index(entry.places[0])
    return names[(at + 1) % 3], names[(at + 2) % 3]


def _named_shape(figure: FigureLines, names: Names) -> list[Relation]:
    shape, count = figure.value("shape", "any"), len(names)
    sides = [(name, names[(n + 1) % count]) for n, name in enumerate(names)]
    right = [plane.angle(_three(names, (name,))[:3], 180 - 360 / count, True) for name in names[1:-1]]
    if shape == "regular":
        return plane.equal(sides) + right
    if shape != "any" and count != 4:
        raise FigureFault(f"a {shape} has 4 corners, not {count}")
    out: list[Relation] = []
    if shape in ("rectangle", "square"):
        out += [*right, plane.angle(_three(names, names[:1])[:3], 90, True)]
    if shape in ("parallelogram", "rhombus"):
        out += plane.parallel([sides[0], sides[2]]) + plane.parallel([sides[1], sides[3]])
    if shape == "trapezium" and not figure.all("parallel"):
        out += plane.parallel([sides[0], sides[2]])
    if shape in ("square", "rhombus", "kite"):
        out += plane.equal([sides[0], sides[3]])
    return out + (plane.equal([sides[1], sides[2]]) if shape == "kite" else [])


def _solved(figure: FigureLines, names: Names, relations: list[Relation]) -> list[Point]:
    """Return corners that satisfy all relations; of several shapes the one that reads best."""
    best: list[Point] = []
    for stretch in (1.35, 1.0, 0.7, 2.0):
        found = plane.solved(dict(zip(names, _walk(figure, names, stretch), strict=True)), relations, {})
        if found and (not best or _sharpest(list(found.values())) > _sharpest(best) + 3):
            best = list(found.values())
            if _sharpest(best) > 35:
                break
    if not best:
        raise FigureFault("no such shape: the given sides and angles do not fit together")
    return best


def _walk(figure: FigureLines, names: Names, stretch: float) -> list[Point]:
    """Return corners found by walking round the shape: known turns and sides, the others guessed."""
    three = [(_three(names, named), size) for named, size in _angles(figure)]
    turns = {at: size for (_, at, _, inner), size in three if inner}
    guesses = _TURNS.get(figure.value("shape", "any"), ()) if len(names) == 4 else ()
    usual_turns = dict(zip(names, guesses or (90,) * len(names), strict=True))
    guessed = sum(usual_turns[name] for name in names if name not in turns) or 1
    rest = ((len(names) - 2) * 180 - sum(turns.values())) / guessed
    sides = {frozenset(named): value for named, _, _, value in plane.measures(figure, "length") if value}
    usual = sum(sides.values()) / len(sides) if sides else 1.0
    if any(frozenset((name, names[(n + 1) % len(names)])) in sides for n, name in enumerate(names) if n % 2 == 0):
        usual /= stretch
    at, way, out = (0.0, 0.0), 0.0, []
    for n, (name, after) in enumerate(zip(names, (*names[1:], names[0]), strict=True)):
        out.append(at)
        far = sides.get(frozenset((name, after)), usual * (stretch if n % 2 == 0 else 1))
        at = (at[0] + far * math.cos(way), at[1] + far * math.sin(way))
        way += math.radians(180 - turns.get(after, rest * usual_turns[after]))
    return out


def _sharpest(at: list[Point]) -> float:
    """Return the smallest angle between neighbouring sides; less than 0 where sides cross."""
    count = len(at)
    turns = [plane.turn_of(at[(n + 1) % count], at[n], at[n - 1], True) for n in range(count)]
    return min(turns) if abs(sum(turns) - (count - 2) * 180) < 1 else -1.0


def _thin(at: list[Point]) -> None:
    if (sharpest := _sharpest(at)) < 0:
        raise FigureFault("no such shape: its sides cross")
    if sharpest < _THIN:
        raise FigureFault(f"too thin to read: an angle of {sharpest:.1f}°, less than {_THIN:.0f}°")
    xs, ys = zip(*at, strict=True)
    sides = [math.dist(a, b) for a, b in zip(at, (*at[1:], at[0]), strict=True)]
    if min(*sides, max(xs) - min(xs), max(ys) - min(ys)) < max(sides) / 9:
        raise FigureFault("too thin to read: one side is over 9 times as long as another")


def _turned(figure: FigureLines, names: Names, at: list[Point]) -> list[Point]:
    """Return the corners, the base level: opposite a height or the first corner, or beside a right angle."""
    heights, rights = figure.all("height from {P}"), plane.rights(figure)
    base, upright = 0, figure.value("shape") in ("kite", "rhombus")
    if len(names) == 3:
        base = names.index(rights[0][len(rights[0]) // 2]) if rights else 1
        base = names.index(_base(names, heights[0])[0]) if heights else base
    start, end = at[base], at[2 if upright else (base + 1) % len(names)]
    turn = -math.atan2(end[1] - start[1], end[0] - start[0]) - (math.pi / 2 if upright else 0)
    return [(x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)) for x, y in at]


def _shape(figure: FigureLines, canvas: Canvas, names: Names, at: dict[str, Point]) -> None:
    canvas.line(*at.values(), style="fill", closed=True)
    for entry in figure.all("diagonal"):
        canvas.line(*(at[name] for name in entry.value), style="dash")
    for entry in figure.all("height from {P}"):
        _height(canvas, at[entry.places[0]], [at[name] for name in _base(names, entry)], entry)
    for group, entry in enumerate(figure.all("equal"), 1):
        for a, b in plane.pairs(entry):
            way = direction(at[a], at[b])
            for n in range(group):
                tick = polar(middle(at[a], at[b]), 4 * (n - (group - 1) / 2), way)
                canvas.line(polar(tick, 5, way + 90), polar(tick, 5, way - 90))
    for entry in figure.all("parallel"):
        for a, b in plane.pairs(entry):
            canvas.head(middle(at[a], at[b], 0.62), direction(at[a], at[b]))
    _labels(figure, canvas, names, at)


def _labels(figure: FigureLines, canvas: Canvas, names: Names, at: dict[str, Point]) -> None:
    for named in plane.rights(figure):
        a, b, c, _ = _three(names, named)
        canvas.corner(at[b], at[a], at[c])
    for named, text, style, _ in plane.measures(figure, "angle"):
        a, b, c, inner = _three(names, named)
        canvas.angle(at[b], at[a], at[c], text, style, reflex=inner)
    for (a, b), text, style, _ in plane.measures(figure, "length"):
        if (names.index(b) - names.index(a)) % len(names) != 1:
            a, b = b, a
        canvas.label(text, middle(at[a], at[b]), direction(at[a], at[b]) - 90, 5, style)
    for n, name in enumerate(names):
        sides = [polar(at[name], 10, direction(at[name], at[names[m % len(names)]])) for m in (n - 1, n + 1)]
        canvas.label(name, at[name], direction(plane.between(sides), at[name]), 3, "strong at")


def _height(canvas: Canvas, top: Point, base: list[Point], entry: FigureEntry) -> None:
    b, c = base
    foot = (top[0], b[1])
    canvas.line(top, foot, style="dash")
    near, far = (b, c) if abs(b[0] - foot[0]) < abs(c[0] - foot[0]) else (c, b)
    if not min(b[0], c[0]) <= foot[0] <= max(b[0], c[0]):
        canvas.line(near, foot, style="dash")
    canvas.corner(foot, top, far)
    canvas.label(entry.text, middle(top, foot, 0.6), 0, 4, plane.free(entry.value))
