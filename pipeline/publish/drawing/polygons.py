"""Triangles and polygons: corners that satisfy what is given, and the drawing of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence

from pipeline.publish.drawing.canvas import Canvas, Point, direction, fit, middle, polar
from pipeline.publish.drawing.lines import Entry, Figure
from pipeline.publish.drawing.solver import solve
from pipeline.publish.drawing.values import Fault, Quantity, corners

#: Given values are rounded: lengths may be off by this share, angles by this many radians.
_OFF = 0.02
_THIN = 12.0
_ROOM = (190.0, 170.0)

Plane = Sequence[Point]
Relation = Callable[[Plane], float]


def free(value: Quantity) -> str:
    """Return the style of a value's label: unknowns are set as variables."""
    return "free" if value.value is None else ""


def sought(figure: Figure) -> tuple[str, tuple[str, ...]]:
    """Return whether a length or an "angle" is sought, and the points that name it; nothing for other words."""
    found = re.match(r"(angle |arc )?([A-Z][A-Z′'₀-₉\d]*)\Z", figure.text("find"))
    if not found or figure.text("find") == "?":
        return "", ()
    named = corners(found[2])
    what = (found[1] or "").strip() or {2: "length", 3: "angle"}.get(len(named), "")
    for entry in figure.all({"length": "{PQ}", "angle": "angle {PQR}", "arc": "arc {PQ}"}[what] if what else ""):
        given = corners(entry.places[0])
        if given in (named, named[::-1]) and entry.value.value is not None:
            raise Fault(f"{figure.text('find')} is asked for and given")
    return what, named


def draw(figure: Figure, canvas: Canvas) -> None:
    """Check and draw a triangle or polygon."""
    names: tuple[str, ...] = figure.value("corners")
    if len(names) < 3 or len(names) > 10 or len(set(names)) < len(names):
        raise Fault("corners must name 3 to 10 different points, in order round the shape")
    if len(names) == 3:
        _triangle_rules(figure, names)
    relations = _relations(figure, names)
    plane = _solved(figure, names, relations)
    _thin(plane)
    at = dict(zip(names, fit(_turned(figure, names, plane), *_ROOM), strict=True))
    _shape(figure, canvas, names, at)
    fixed = 2 * len(names) - 3 - (0 if any(e.value.value for e in figure.all("{PQ}")) else 1)
    if len(relations) < fixed:
        canvas.text("not to scale", min(x for x, _ in at.values()), max(y for _, y in at.values()) + 36, "start")


def _known(figure: Figure, key: str) -> list[tuple[tuple[str, ...], float]]:
    return [(corners(e.places[0]), e.value.value) for e in figure.all(key) if e.value.value is not None]


def _rights(figure: Figure) -> list[tuple[str, ...]]:
    """Return the right angles: each by its corner or by three points."""
    out: list[tuple[str, ...]] = []
    for entry in figure.all("right angle"):
        for word in re.split(r"[\s,]+|and", entry.text):
            named = corners(word) if word else ()
            out += [named] if len(named) == 3 else [(name,) for name in named]
    return out


def _triangle_rules(figure: Figure, names: tuple[str, ...]) -> None:
    sides = [length for _, length in _known(figure, "{PQ}")]
    if len(sides) == 3 and 2 * max(sides) >= sum(sides):
        raise Fault(
            f"no triangle has the sides {', '.join(f'{side:g}' for side in sides)}: two must be longer than the third"
        )
    angles = [size for _, size in _known(figure, "angle {PQR}")] + [90.0 for _ in _rights(figure)]
    if len(angles) == 3 and abs(sum(angles) - 180) > 1.5:
        raise Fault(f"the angles of a triangle add up to 180°, these to {sum(angles):g}°")
    if len(angles) < 3 and sum(angles) >= 180:
        raise Fault("two angles of a triangle are less than 180° together")


def _index(names: tuple[str, ...], named: Sequence[str]) -> list[int]:
    unknown = [name for name in named if name not in names]
    if unknown:
        raise Fault(f"{unknown[0]} is none of the corners")
    return [names.index(name) for name in named]


def _three(names: tuple[str, ...], named: Sequence[str]) -> tuple[int, int, int, bool]:
    """Return the corners of an angle: before, at, after; and whether it is the inner angle of the shape."""
    at = _index(names, named)
    count = len(names)
    if len(at) == 1:
        return (at[0] + 1) % count, at[0], (at[0] - 1) % count, True
    if len(at) != 3:
        raise Fault(f"angle {''.join(named)} must be named by one corner or by three")
    a, b, c = at
    if {a, c} == {(b + 1) % count, (b - 1) % count}:
        return (b + 1) % count, b, (b - 1) % count, True
    return a, b, c, False


def turn_of(a: Point, at: Point, c: Point, inner: bool) -> float:
    """Return the angle at a point in degrees; the inner one turns from a to c against the clock."""
    turn = (math.degrees(math.atan2(c[1] - at[1], c[0] - at[0]) - math.atan2(a[1] - at[1], a[0] - at[0]))) % 360
    return turn if inner else min(turn, 360 - turn)


def _relations(figure: Figure, names: tuple[str, ...]) -> list[Relation]:
    out: list[Relation] = []

    def length(a: int, b: int, size: float) -> None:
        out.append(lambda at: math.dist(at[a], at[b]) / size - 1)

    def angle(named: Sequence[str], size: float) -> None:
        a, b, c, inner = _three(names, named)
        out.append(lambda at: math.radians((turn_of(at[a], at[b], at[c], inner) - size + 180) % 360 - 180))

    for named, size in _known(figure, "{PQ}"):
        length(*_index(names, named), size)
    for named, size in _known(figure, "angle {PQR}"):
        angle(named, size)
    for named in _rights(figure):
        angle(named, 90)
    for entry in figure.all("equal"):
        _equal(out, _pairs(names, entry))
    for entry in figure.all("parallel"):
        _parallel(out, _pairs(names, entry))
    for entry in figure.all("height from {P}"):
        top = _index(names, entry.places)[0]
        if entry.value.value is not None:
            out.append(_height(top, (top + 1) % 3, (top + 2) % 3, entry.value.value))
    _named_shape(figure, names, out, angle)
    return out


def _height(top: int, b: int, c: int, size: float) -> Relation:
    def off(at: Plane) -> float:
        (x, y), (u, v), (s, t) = at[top], at[b], at[c]
        return abs((s - u) * (y - v) - (t - v) * (x - u)) / (math.dist(at[b], at[c]) or 1e-9) / size - 1

    return off


def _pairs(names: tuple[str, ...], entry: Entry) -> list[tuple[int, int]]:
    named = _index(names, entry.value)
    if len(named) < 4 or len(named) % 2:
        raise Fault(f"'{entry.line.key}: {entry.text}' must name two sides, such as {entry.line.example}")
    return list(zip(named[::2], named[1::2], strict=True))


def _equal(out: list[Relation], pairs: list[tuple[int, int]]) -> None:
    for (a, b), (c, d) in itertools.pairwise(pairs):
        out.append(lambda at, a=a, b=b, c=c, d=d: math.dist(at[a], at[b]) / (math.dist(at[c], at[d]) or 1e-9) - 1)  # type: ignore[misc]


def _parallel(out: list[Relation], pairs: list[tuple[int, int]]) -> None:
    def off(at: Plane, one: tuple[int, int], other: tuple[int, int]) -> float:
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = (at[place] for place in (*one, *other))
        cross = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
        return cross / (math.dist(at[one[0]], at[one[1]]) * math.dist(at[other[0]], at[other[1]]) or 1e-9)

    for one, other in itertools.pairwise(pairs):
        out.append(lambda at, one=one, other=other: off(at, one, other))  # type: ignore[misc]


def _named_shape(
    figure: Figure, names: tuple[str, ...], out: list[Relation], angle: Callable[[Sequence[str], float], None]
) -> None:
    shape, count = figure.text("shape", "any"), len(names)
    if shape == "regular":
        _equal(out, [(at, (at + 1) % count) for at in range(count)])
        for name in names[1:-1]:
            angle((name,), 180 - 360 / count)
    elif shape != "any" and count != 4:
        raise Fault(f"a {shape} has 4 corners, not {count}")
    elif shape in ("rectangle", "square"):
        for name in names[:3]:
            angle((name,), 90)
    if shape in ("parallelogram", "rhombus"):
        _parallel(out, [(0, 1), (3, 2)])
        _parallel(out, [(1, 2), (0, 3)])
    if shape == "trapezium" and not figure.all("parallel"):
        _parallel(out, [(0, 1), (3, 2)])
    if shape in ("square", "rhombus", "kite"):
        _equal(out, [(0, 1), (0, 3)])
    if shape == "kite":
        _equal(out, [(2, 1), (2, 3)])


def _solved(figure: Figure, names: tuple[str, ...], relations: list[Relation]) -> list[Point]:
    """Return corners that satisfy all relations; of several shapes the one that reads best."""

    def residuals(flat: Sequence[float]) -> list[float]:
        at = list(zip(flat[::2], flat[1::2], strict=True))
        return [relation(at) for relation in relations]

    best: tuple[float, list[Point]] | None = None
    for stretch in (1.35, 1.0, 0.7, 2.0):
        flat, worst = solve([value for at in _walk(figure, names, stretch) for value in at], residuals)
        at = list(zip(flat[::2], flat[1::2], strict=True))
        if worst <= _OFF and (best is None or _sharpest(at) > best[0] + 3):
            best = (_sharpest(at), at)
            if best[0] > 35:
                break
    if best is None:
        raise Fault("no such shape: the given sides and angles do not fit together")
    return best[1]


def _walk(figure: Figure, names: tuple[str, ...], stretch: float) -> list[Point]:
    """Return corners found by walking round the shape: known turns and sides, the others guessed."""
    count = len(names)
    turns: dict[int, float] = {}
    for named, size in (*_known(figure, "angle {PQR}"), *((right, 90.0) for right in _rights(figure))):
        _, at, _, inner = _three(names, named)
        if inner:
            turns[at] = size
    rest = ((count - 2) * 180 - sum(turns.values())) / max(1, count - len(turns))
    sides = {tuple(sorted(_index(names, named))): size for named, size in _known(figure, "{PQ}")}
    usual = sum(sides.values()) / len(sides) if sides else 1.0
    at, way, out = (0.0, 0.0), 0.0, []
    for place in range(count):
        out.append(at)
        guess = usual * (stretch if place % 2 == 0 else 1)
        far = sides.get(tuple(sorted((place, (place + 1) % count))), guess)
        at = (at[0] + far * math.cos(way), at[1] + far * math.sin(way))
        way += math.radians(180 - turns.get((place + 1) % count, rest))
    return out


def _sharpest(at: Plane) -> float:
    """Return the smallest angle between neighbouring sides; 0 where the shape turns the wrong way."""
    count = len(at)
    turns = [turn_of(at[(n + 1) % count], at[n], at[n - 1], True) for n in range(count)]
    if abs(sum(turns) - (count - 2) * 180) > 1:
        return -1.0
    return min(turns)


def _thin(at: Plane) -> None:
    sharpest = _sharpest(at)
    if sharpest < 0:
        raise Fault("no such shape: its sides cross")
    if sharpest < _THIN:
        raise Fault(f"too thin to read: an angle of {sharpest:.0f}°, less than {_THIN:.0f}°")
    xs, ys = zip(*at, strict=True)
    sides = [math.dist(a, b) for a, b in zip(at, (*at[1:], at[0]), strict=True)]
    if min(sides) < max(sides) / 9 or min(max(xs) - min(xs), max(ys) - min(ys)) < max(sides) / 9:
        raise Fault("too thin to read: one side is over 9 times as long as another")


def _turned(figure: Figure, names: tuple[str, ...], at: list[Point]) -> list[Point]:
    """Return the corners, the base level: opposite a height or the first corner, or beside a right angle."""
    count = len(names)
    base = 1 if count == 3 else 0
    tops = [names.index(entry.places[0]) for entry in figure.all("height from {P}")]
    if count == 3 and tops:
        base = (tops[0] + 1) % 3
    elif count == 3 and _rights(figure):
        base = _three(names, _rights(figure)[0])[1]
    upright = figure.text("shape") in ("kite", "rhombus")
    start, end = at[base], at[2 if upright else (base + 1) % count]
    turn = -math.atan2(end[1] - start[1], end[0] - start[0]) - (math.pi / 2 if upright else 0)
    return [(x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)) for x, y in at]


def _shape(figure: Figure, canvas: Canvas, names: tuple[str, ...], at: dict[str, Point]) -> None:
    canvas.line(*at.values(), style="fill", closed=True)
    heart = (sum(x for x, _ in at.values()) / len(at), sum(y for _, y in at.values()) / len(at))
    for entry in figure.all("diagonal"):
        canvas.line(*(at[names[place]] for place in _index(names, entry.value)), style="dash")
    for entry in figure.all("height from {P}"):
        _draw_height(canvas, names, at, entry)
    for group, entry in enumerate(figure.all("equal")):
        for a, b in _pairs(names, entry):
            _ticks(canvas, at[names[a]], at[names[b]], group + 1)
    for entry in figure.all("parallel"):
        for a, b in _pairs(names, entry):
            one, other = at[names[a]], at[names[b]]
            canvas.head(middle(one, other, 0.62), direction(one, other))
    for named in _rights(figure):
        a, b, c, _ = _three(names, named)
        canvas.corner(at[names[b]], at[names[a]], at[names[c]])
    _labels(figure, canvas, names, at)
    order = list(names)
    for place, name in enumerate(order):
        before, after = at[order[place - 1]], at[order[(place + 1) % len(order)]]
        out = direction(
            middle(polar(at[name], 10, direction(at[name], before)), polar(at[name], 10, direction(at[name], after))),
            at[name],
        )
        if math.dist(middle(before, after), heart) < 1e-6:
            out = direction(heart, at[name])
        canvas.label(name, at[name], out, 3, "strong at")


def _labels(figure: Figure, canvas: Canvas, names: tuple[str, ...], at: dict[str, Point]) -> None:
    what, wanted = sought(figure)
    sides = [(corners(e.places[0]), e.text, free(e.value)) for e in figure.all("{PQ}")]
    angles = [(corners(e.places[0]), e.text, free(e.value)) for e in figure.all("angle {PQR}")]
    if what == "length" and not any(set(named) == set(wanted) for named, _, _ in sides):
        sides.append((wanted, "?", ""))
    if what == "angle" and not any(wanted in (named, named[::-1]) for named, _, _ in angles):
        angles.append((wanted, "?", ""))
    for named, text, style in angles:
        a, b, c, inner = _three(names, named)
        canvas.angle(at[names[b]], at[names[a]], at[names[c]], text, style, reflex=inner)
    for named, text, style in sides:
        a, b = _index(names, named)
        one, other = at[names[a]], at[names[b]]
        beside = abs(a - b) in (1, len(names) - 1)
        if (b - a) % len(names) != 1:
            one, other = other, one
        canvas.label(text, middle(one, other), direction(one, other) - 90, 5 if beside else 3, style)


def _draw_height(canvas: Canvas, names: tuple[str, ...], at: dict[str, Point], entry: Entry) -> None:
    top = at[entry.places[0]]
    b, c = (at[name] for name in names if name != entry.places[0])
    foot = (top[0], b[1])
    canvas.line(top, foot, style="dash")
    near = b if abs(b[0] - foot[0]) < abs(c[0] - foot[0]) else c
    if not min(b[0], c[0]) <= foot[0] <= max(b[0], c[0]):
        canvas.line(near, foot, style="dash")
    canvas.corner(foot, top, c if near is b else b)
    canvas.label(entry.text, middle(top, foot, 0.6), 0, 4, free(entry.value))


def _ticks(canvas: Canvas, a: Point, b: Point, count: int) -> None:
    way = direction(a, b)
    for n in range(count):
        at = polar(middle(a, b), 4 * (n - (count - 1) / 2), way)
        canvas.line(polar(at, 5, way + 90), polar(at, 5, way - 90))
