"""Solids, drawn aslant: hidden edges are dashed; measures are not to scale where they would not be readable."""

from __future__ import annotations

import math

from pipeline.drawing.canvas import Canvas, Point, direction, middle, polar
from pipeline.drawing.lines import FigureLines
from pipeline.drawing.plane import OFF, free, measures, radius_of
from pipeline.drawing.values import FigureFault, Quantity, points

_DEPTH = 32.0
_MEASURES = {
    "cuboid": {"length", "breadth", "height"},
    "cube": {"length"},
    "cylinder": {"radius", "diameter", "height"},
    "cone": {"radius", "diameter", "height", "slant height"},
    "sphere": {"radius", "diameter"},
    "hemisphere": {"radius", "diameter"},
    "pyramid": {"length", "breadth", "height", "slant height"},
    "prism": {"length", "breadth", "height"},
}


def draw(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a solid."""
    solid = figure.value("solid")
    for entry in figure.entries:
        if isinstance(entry.value, Quantity) and entry.line.key != "{PQ}" and entry.line.key not in _MEASURES[solid]:
            raise FigureFault(f"a {solid} has no {entry.line.key}; it may have {', '.join(sorted(_MEASURES[solid]))}")
    if solid in ("cuboid", "cube", "pyramid"):
        _edges(figure, canvas, solid)
    elif solid == "prism":
        _prism(figure, canvas)
    else:
        _round(figure, canvas, solid)


def _size(figure: FigureLines, name: str) -> float | None:
    found = figure.get(name)
    return found.value.size if found else None


def _shares(*sizes: float | None) -> list[float]:
    """Return readable proportions of sizes; what is not known is as large as the rest."""
    known = [size for size in sizes if size] or [1.0]
    usual = math.prod(known) ** (1 / len(known))
    return [max(0.55, min(1.7, (size or usual) / usual)) for size in sizes]


def _name(figure: FigureLines, canvas: Canvas, key: str, at: Point, turn: float) -> None:
    if entry := figure.get(key):
        canvas.label(entry.text, at, turn, 5, free(entry.value))


def _edges(figure: FigureLines, canvas: Canvas, solid: str) -> None:
    """Draw a box or a pyramid: the corners of the base from the front left, round, then above them."""
    measures = [_size(figure, name) for name in ("length", "breadth", "height")]
    names = figure.value("corners", ())
    places = {entry.places[0]: entry.text for entry in figure.all("point {P}")}
    if solid == "cube":
        measures = [measures[0]] * 3
    long, deep, high = (85 * share for share in _shares(*measures))
    if solid == "pyramid":
        long, deep, high = max(long, 100), max(deep, 95), min(high, 105)
    back = polar((0, 0), deep * 0.6, _DEPTH)
    a, b, c, d = (0.0, 0.0), (long, 0.0), (long + back[0], back[1]), back
    if solid == "pyramid":
        top = (middle(a, c)[0], middle(a, c)[1] - high * 1.35)
        at = [a, b, c, d, top]
        canvas.line(a, b, c, top, a)
        canvas.line(b, top)
        canvas.line(a, d, c, style="dash")
        canvas.line(d, top, style="dash")
        if figure.get("height"):
            canvas.line(top, middle(a, c), style="dash")
            beside = c[0] + 14
            canvas.arrow((beside, middle(top, middle(a, c))[1]), (beside, top[1]))
            canvas.arrow((beside, middle(top, middle(a, c))[1]), (beside, middle(a, c)[1]))
            _name(figure, canvas, "height", (beside, middle(top, middle(a, c))[1]), 0)
        if figure.get("slant height"):
            canvas.line(top, middle(b, c), style="dash")
            _name(figure, canvas, "slant height", middle(top, middle(b, c), 0.6), 20)
        _slant(figure, (_size(figure, "length") or 0) / 2)
    else:
        at = [a, b, c, d, *((x, y - high) for x, y in (a, b, c, d))]
        canvas.line(at[0], at[1], at[5], at[4], closed=True, style="fill")
        canvas.line(at[1], at[2], at[6], at[7], at[4])
        canvas.line(at[5], at[6])
        for other in (0, 2, 7):
            canvas.line(at[3], at[other], style="dash")
        _name(figure, canvas, "height", middle(c, at[6]), 0)
    _name(figure, canvas, "length", middle(a, b), -90)
    _name(figure, canvas, "breadth", middle(b, c), -40)
    if names or places:
        _corners(figure, canvas, solid, names, at, places)


def _corners(
    figure: FigureLines, canvas: Canvas, solid: str, names: tuple[str, ...], at: list[Point], places: dict[str, str]
) -> None:
    if len(names) != len(at):
        raise FigureFault(f"a {solid} has {len(at)} corners, named round the base from the front left, then above")
    unknown = [name for name in places if name not in names]
    if unknown:
        raise FigureFault(f"{unknown[0]} is none of the corners")
    if places and solid != "pyramid":
        _coordinates(names, {name: text for name, text in places.items() if "?" not in text})
    if places or figure.text("axes", "no") == "yes":
        for end, name, turn in (
            (polar(at[1], 34, 0), "x", 0),
            (polar(at[3], 48, _DEPTH), "y", 30),
            ((0, at[4][1] - 34), "z", 90),
        ):
            start = at[1] if name == "x" else at[3] if name == "y" else at[4] if solid != "pyramid" else at[0]
            canvas.arrow(start, end, "free")
            canvas.label(name, end, turn, 3, "free")
    heart = middle(at[0], at[6] if len(at) == 8 else at[4])
    _joined(figure, canvas, dict(zip(names, at, strict=True)), heart)
    for name, place in zip(names, at, strict=True):
        told = places.get(name, "").replace("?", "")
        canvas.label(f"{name}{told}", place, direction(heart, place), 4, "strong at")


def _joined(figure: FigureLines, canvas: Canvas, at: dict[str, Point], heart: Point) -> None:
    """Write lengths between named corners; draw those lines that are no edges."""
    order = list(at)
    for named, text, style, _ in measures(figure, "length"):
        if not set(named) <= set(at):
            raise FigureFault(f"{''.join(named)}: no such corners")
        one, other = (order.index(name) for name in named)
        a, b = at[named[0]], at[named[1]]
        edge = len(at) != 8 or abs(one - other) == 4 or (one // 4 == other // 4 and abs(one - other) != 2)
        if not edge:
            canvas.line(a, b, style="dash bold")
        canvas.label(text, middle(a, b), direction(heart, middle(a, b)) if edge else direction(a, b) + 90, 5, style)


def _coordinates(names: tuple[str, ...], places: dict[str, str]) -> None:
    """Check that known coordinates belong to one box that starts at the origin."""
    size: list[float | None] = [None, None, None]
    for name, text in places.items():
        pair = text.strip("() ").split(",")
        if len(pair) != 3:
            raise FigureFault(f"point {name}: three coordinates such as (4, 0, 0), or ?")
        place = names.index(name)
        there = (place % 4 in (1, 2), place % 4 in (2, 3), place >= 4)
        values = points(f"({pair[0]}, {pair[1]}) ({pair[2]}, 0)")
        for axis, (value, far) in enumerate(zip((*values[0], values[1][0]), there, strict=True)):
            if (far and value == 0) or (not far and value != 0) or (far and size[axis] not in (None, value)):
                raise FigureFault(
                    f"point {name}{text} does not fit a box whose first corner is the origin, its edges along the axes"
                )
            size[axis] = value if far else size[axis]


def _slant(figure: FigureLines, half: float) -> None:
    high, slant = _size(figure, "height"), _size(figure, "slant height")
    if high and slant and slant <= high:
        raise FigureFault("the slant height must be greater than the height")
    if high and slant and half and abs(math.hypot(high, half) / slant - 1) > OFF:
        raise FigureFault("height, slant height and base do not fit together")


def _prism(figure: FigureLines, canvas: Canvas) -> None:
    wide, high, long = (
        95 * share for share in _shares(*(_size(figure, name) for name in ("breadth", "height", "length")))
    )
    wide, high = max(wide, 90), max(high, 75)
    back = polar((0, 0), long * 0.7, _DEPTH)
    front = [(0.0, 0.0), (wide, 0.0), (wide * 0.42, -high)]
    behind = [(x + back[0], y + back[1]) for x, y in front]
    canvas.line(*front, closed=True, style="fill")
    canvas.line(front[1], behind[1], behind[2], front[2])
    canvas.line(front[0], behind[0], behind[1], style="dash")
    canvas.line(behind[0], behind[2], style="dash")
    if figure.get("height"):
        canvas.line(front[2], (wide * 0.42, 0), style="dash")
        _name(figure, canvas, "height", (wide * 0.42, -high * 0.45), 0)
    _name(figure, canvas, "breadth", middle(front[0], front[1]), -90)
    _name(figure, canvas, "length", middle(front[1], behind[1]), -40)


def _round(figure: FigureLines, canvas: Canvas, solid: str) -> None:
    half = radius_of(figure)
    _slant(figure, half or 0)
    across, up = 75.0, 20.0
    base = (0.0, 0.0)
    if solid in ("sphere", "hemisphere"):
        canvas.ellipse(base, across, up, 180, 180)
        canvas.ellipse(base, across, up, 0, 180, "dash")
        canvas.circle(base, across) if solid == "sphere" else canvas.arc(base, across, 0, 180)
    else:
        wide, tall = _shares(half * 2 if half else None, _size(figure, "height"))
        across, rise = (
            75 * min(1.0, wide / tall + 0.15),
            max(110.0, 150 * min(1.0, tall / wide)) if solid == "cone" else 150 * min(1.0, tall / wide),
        )
        up = across * 0.27
        canvas.ellipse(base, across, up, 180, 180)
        canvas.ellipse(base, across, up, 0, 180, "dash")
        if solid == "cone":
            canvas.line((-across, 0), (0, -rise), (across, 0))
            _name(figure, canvas, "slant height", middle((0, -rise), (across, 0)), 30)
            if figure.get("height"):
                canvas.line((0, -rise), base, style="dash")
                canvas.corner(base, (0, -rise), (-across, 0))
                _name(figure, canvas, "height", (0, -rise * 0.4), 180)
        else:
            canvas.line((-across, 0), (-across, -rise))
            canvas.line((across, 0), (across, -rise))
            base = (0.0, -rise)
            canvas.ellipse(base, across, up)
            _name(figure, canvas, "height", (across, -rise / 2), 0)
    if figure.get("diameter"):
        canvas.line((-across, base[1]), (across, base[1]), style="dash")
    elif figure.get("radius"):
        canvas.line(base, (across, base[1]), style="dash")
        canvas.dot(base, 2)
    side = -90 if solid in ("cone", "sphere", "hemisphere") else 90
    _name(figure, canvas, "radius", (across / 2, base[1]), side)
    _name(figure, canvas, "diameter", base, side)
