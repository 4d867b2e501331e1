"""Graphs on axes, number lines, vectors, bearings."""

from __future__ import annotations

import re

from pipeline.publish.drawing import arrows, plots
from pipeline.publish.drawing.lines import FigureKind, FigureLines, Line, Rows, choice
from pipeline.publish.drawing.values import FigureFault, axis, degrees, function, number, plain, point, points, size

_SERIES = tuple(
    line
    for n in ("", " {n}")
    for line in (
        Line(f"function{n}", function, "function: y = x^2 - 4*x + 3", say="{v}", many=True, hidden="function"),
        Line(f"points{n}", points, "points: (1, 2) (3, 4)", say="points {v}", many=True),
        Line(f"line{n}", points, "line: (0, 0) (4, 12)", say="line {v}", many=True),
    )
)
_AXES = (
    Line("x", axis, "x: time / s, 0 to 10", say="", given=False, needed=True),
    Line("y", axis, "y: velocity / m s⁻¹, 0 to 20", say="", given=False, needed=True),
    *_SERIES,
    Line("label {R}", point, "label A: (1, 2)", say="{0}{v}", hidden="label"),
    Line("best fit", function, "best fit: y = 2*x + 1", say="line of best fit {v}", hidden="best fit"),
    Line("hide", choice("function", "best fit", "label"), "hide: function", say="", given=False, many=True),
    Line("grid", choice("yes", "no"), "grid: no", say="", given=False),
)


def _graph(figure: FigureLines) -> str:
    x, y = (figure.value(name) for name in "xy")
    return f"Graph of {y.label or 'y'} against {x.label or 'x'}" if x and y else "Graph"


def _series(figure: FigureLines) -> Rows:
    """Return the points of a graph as rows."""
    heads = [(figure.value(name).label or name) if figure.value(name) else name for name in "xy"]
    listed = [entry for key in ("points", "points {n}", "line", "line {n}") for entry in figure.all(key)]
    pairs = [pair for entry in listed for pair in re.findall(r"\(([^,()]+),\s*([^()]+?)\s*\)", entry.text)]
    x, y = figure.value("x"), figure.value("y")
    if figure.hides("function") and x and y and None not in (x.low, y.low):
        marks = plots.ticks(x.low, x.high, x.step or (90 if "°" in x.label and x.high - x.low >= 270 else None), 12)
        for curve in (entry.value for entry in figure.entries if entry.line.hidden == "function"):
            seen = [(mark, curve(mark)) for mark in marks]
            pairs += [
                (plots.shown(at), plots.shown(round(high, 2)))
                for at, high in seen
                if high is not None and y.low <= high <= y.high
            ]
    return heads, [list(pair) for pair in pairs]


AXES = FigureKind(
    "axes",
    "curves, lines and points on axes; hide keeps an equation from the pupil",
    _AXES,
    plots.draw,
    head=_graph,
    rows=_series,
    also=("graph", "line graph"),
)
SCATTER = FigureKind(
    "scatter graph",
    "as axes",
    _AXES,
    plots.draw,
    head=lambda figure: _graph(figure).replace("Graph", "Scatter graph", 1),
    rows=_series,
    also=("scatter",),
)  # fmt: skip
MOTION = FigureKind(
    "motion graph", "as axes; straight pieces through the corners of line", _AXES, plots.draw, head=_graph, rows=_series
)
_SIGN = r"(?:<=|>=|[<>≤≥])"
_INEQUALITY = re.compile(rf"(?:(?P<a>[-−\d./]+)\s*(?P<one>{_SIGN})\s*)?[a-z]\s*(?P<two>{_SIGN})\s*(?P<b>[-−\d./]+)\Z")


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


NUMBER_LINE = FigureKind(
    "number line",
    "numbers, points, inequalities on a line",
    (
        Line("from", number, "from: -5", given=False, needed=True, say="from {v}"),
        Line("to", number, "to: 5", given=False, needed=True, say="to {v}"),
        Line("step", number, "step: 1", given=False, say="step {v}"),
        Line("point {R}", number, "point A: 2", say="{0} at {v}", hidden="points"),
        Line("inequality", inequality, "inequality: x > 2", say="{v}", many=True, hidden="inequality"),
        Line("hide", choice("inequality", "points"), "hide: inequality", say="", given=False),
    ),
    plots.number_line,
)
SCALE = FigureKind(
    "scale",
    "a measuring scale (ruler, thermometer, jug) with a pointer",
    (
        *(Line(name, number, f"{name}: 20", given=False, needed=True) for name in ("from", "to")),
        Line("numbers every", number, "numbers every: 10", given=False, needed=True),
        Line("marks every", number, "marks every: 2", given=False),
        Line("unit", str, "unit: °C", say="{v}", given=False),
        Line("pointer", number, "pointer: 34", hidden="pointer"),
        Line("hide", choice("pointer"), "hide: pointer", say="", given=False),
    ),
    plots.scale,
)
VECTORS = FigureKind(
    "vectors",
    "vectors by components, on squares",
    (
        Line("{u}", point, "u: (3, -2)", hidden="components"),
        Line("{PQ}", point, "AB: (1, 4)", hidden="components"),
        Line("{P}", point, "A: (0, 0)", say="{0}{v}", given=False),
        Line("{u} from {P}", point, "u from A: (3, -2)", hidden="components"),
        Line("grid", choice("yes", "no"), "grid: yes", say="", given=False),
        Line("hide", choice("components"), "hide: components", say="", given=False),
        Line("find", str, "find: AC", say="find {v}", given=False),
    ),
    arrows.vectors,
)
_BEARING = re.compile(r"(?P<bearing>\d{3}(?:\.\d+)?|[a-z?])°?(?:,\s*(?P<far>.+))?\Z")


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


BEARINGS = FigureKind(
    "bearings",
    "legs of a journey with north lines",
    (
        Line("{P} to {P}", bearing, "A to B: 065°, 12 km", needed=True),
        Line("angle {PQR}", degrees, "angle ABC: 90°"),
        Line("{PQ}", size, "AC: 15 km"),
        Line("find", str, "find: AC", say="find {v}", given=False),
    ),
    arrows.bearings,
)
KINDS = (AXES, SCATTER, MOTION, NUMBER_LINE, SCALE, VECTORS, BEARINGS)
