"""Axes with curves, lines and points; number lines; scales."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from pipeline.drawing.canvas import SIZE, Canvas, Point, width_of, wrap
from pipeline.drawing.lines import FigureEntry, FigureLines
from pipeline.drawing.values import Axis, FigureFault, Function

_WIDE, _HIGH = 240.0, 200.0
_SAMPLES = 160
#: Into how many parts a step may be divided, by its first digit.
_PARTS = {"1": (5, 2), "2": (4, 2), "5": (5,)}

Place = Callable[[float, float], Point]


def ticks(low: float, high: float, step: float | None = None, most: int = 8) -> list[float]:
    """Return round numbers from low to high, at most so many."""
    if step is None or (high - low) / step > 2 * most:
        span = high - low
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(factor * power for factor in (1, 2, 5, 10, 20) if span / (factor * power) <= most + 1e-9)
        step = 1.0 if step == 0.5 and span >= 3 else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [count * step for count in range(first, last + 1)]


def _fine(
    canvas: Canvas, marks: list[float], ends: tuple[float, float], long: float, at: Callable[[float, bool], Point]
) -> None:
    """Draw the finer lines of squared paper across an axis, as many as can be told apart."""
    step = marks[1] - marks[0] if len(marks) > 1 else ends[1] - ends[0]
    parts = next((n for n in _PARTS.get(f"{step:e}"[0], (3, 2)) if step / n * long / (ends[1] - ends[0]) >= 7), 1)
    canvas.lines([(at(mark, False), at(mark, True)) for mark in ticks(*ends, step / parts, 99)], "fine")


def _every_other(marks: list[float]) -> list[float]:
    step = marks[1] - marks[0]
    return [mark for mark in marks if round(mark / step) % 2 == 0]


def fewer(marks: list[float], at: Callable[[float], float]) -> list[float]:
    """Return so many of the marks that their numbers do not touch."""
    while any(at(b) - at(a) < (width_of(shown(a)) + width_of(shown(b))) / 2 + 7 for a, b in itertools.pairwise(marks)):
        marks = _every_other(marks)
    return marks


def shown(value: float) -> str:
    """Return a number as an axis prints it."""
    text = f"{round(value, 6):.6f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:g}"
    if abs(value) >= 10_000 and "." not in text and "e" not in text:
        text = f"{int(value):,}"
    return "0" if text == "-0" else text.replace("-", "−")


def spread(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    """Return from where to where an axis goes: as it says, else round the values, with 0 where it is near."""
    if axis.low is not None and axis.high is not None:
        return axis.low, axis.high
    listed = list(values) or [0.0, 1.0]
    low, high = min(listed), max(listed)
    low, high = (min(low, 0.0) if low < high * 0.6 else low), max(high, 0.0 if low < 0 else high)
    if low == high:
        high = low + 1
    made = ticks(low, high)
    step = made[1] - made[0] if len(made) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def frame(
    canvas: Canvas,
    x: Axis,
    y: Axis,
    across: tuple[float, float],
    up: tuple[float, float],
    grid: bool,
    bare: str = "",
) -> Place:
    """Draw two axes with their ticks and names; return where a point lies. Axes named in bare have no numbers."""

    def place(a: float, b: float) -> Point:
        return (a - across[0]) / (across[1] - across[0]) * _WIDE, _HIGH - (b - up[0]) / (up[1] - up[0]) * _HIGH

    whole = across[1] - across[0]
    degrees = next((step for step in (90, 45, 30, 15) if whole >= 3 * step), None) if "°" in x.label else None
    columns = fewer(ticks(*across, x.step or degrees), lambda value: place(value, 0)[0])
    rows = ticks(*up, y.step)
    while len(rows) * (SIZE + 2) > _HIGH:
        rows = _every_other(rows)
    if grid:
        _fine(canvas, columns, across, _WIDE, lambda mark, far: place(mark, up[far]))
        _fine(canvas, rows, up, _HIGH, lambda mark, far: place(across[far], mark))
        canvas.lines(
            [(place(value, up[0]), place(value, up[1])) for value in columns]
            + [(place(across[0], value), place(across[1], value)) for value in rows]
        )
        for value in [] if "x" in bare else columns:
            canvas.text(shown(value), place(value, 0)[0], _HIGH + 15.5)
        for value in [] if "y" in bare else rows:
            canvas.text(shown(value), -6, place(0, value)[1], "end")
    zero = place(min(max(0, across[0]), across[1]), min(max(0, up[0]), up[1]))
    canvas.arrow((0, zero[1]), (_WIDE + 10, zero[1]))
    canvas.arrow((zero[0], _HIGH), (zero[0], -10))
    low = _HIGH + (33 if grid and "x" not in bare else 12)
    if width_of(x.label) <= 16 and across[0] <= 0 <= across[1] and not grid:
        canvas.text(x.label, _WIDE + 14, zero[1] + 13, "end", "free")
    else:
        for n, line in enumerate(wrap(x.label, _WIDE + 40)):
            canvas.text(line, _WIDE + 10, low + n * (SIZE + 2), "end", "free" if len(x.label) == 1 else "")
    named = wrap(y.label, 270)
    left = zero[0] if len(y.label) < 3 else -20.0
    for n, line in enumerate(named):
        canvas.text(
            line,
            left,
            -22 - (len(named) - 1 - n) * (SIZE + 2),
            "middle" if left == zero[0] else "start",
            "free" if len(y.label) == 1 else "",
        )
    return place


def draw(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a graph."""
    x, y = figure.value("x"), figure.value("y")
    listed = [e.value for e in figure.entries if e.line.key.split(" ")[0] in ("points", "line", "curve")]
    listed += [(e.value,) for e in _labels(figure)]
    across = spread(x, (a for row in listed for a, _ in row))
    functions = [e for e in figure.entries if isinstance(e.value, Function)]
    heights = [e.value(across[0] + share * (across[1] - across[0]) / 20) for e in functions for share in range(21)]
    up = spread(y, [b for row in listed for _, b in row] + [value for value in heights if value is not None])
    grid = figure.text("grid", "yes") == "yes"
    bare = "".join(axis for axis in "xy" if figure.hides(f"{axis} numbers"))
    place = frame(canvas, x, y, across, up, grid, bare)
    for a, b in (pair for row in listed for pair in row):
        if not (across[0] - 1e-9 <= a <= across[1] + 1e-9 and up[0] - 1e-9 <= b <= up[1] + 1e-9):
            raise FigureFault(f"({shown(a)}, {shown(b)}) lies outside the axes")
    # The first line is drawn through, so that it is told from the others.
    styles = itertools.chain(["bold"], itertools.repeat("bold dash"))
    for entry in figure.entries:
        key = entry.line.key.split(" ")[0]
        if key in ("line", "curve"):
            through = _smooth(entry.value) if key == "curve" else entry.value
            canvas.line(*(place(a, b) for a, b in through), style=next(styles))
        elif key == "points":
            for a, b in entry.value:
                _cross(canvas, place(a, b))
    for entry in functions:
        end = _curve(canvas, entry.value, across, up, place, next(styles))
        if not figure.hides(entry.line.hidden):
            canvas.label(entry.text, end, 160 if end[1] < _HIGH / 2 else 200, 8, "free clear")
    _points(figure, canvas, place)


def _labels(figure: FigureLines) -> list[FigureEntry]:
    return [*figure.all("label {P}"), *figure.all("label {name}")]


def _points(figure: FigureLines, canvas: Canvas, place: Place) -> None:
    """Mark the points that have a label: a letter stands with its coordinates, words stand alone."""
    for entry in _labels(figure):
        at = place(*entry.value)
        canvas.dot(at)
        told = "" if figure.hides("label") or entry.line.key == "label {name}" else entry.text
        canvas.label(f"{entry.places[0]}{told}", at, 20 if at[0] < _WIDE / 2 else 160, 5, "at clear")


def _smooth(points: Sequence[Point]) -> list[Point]:
    """Return a curve through points that turns only at them: cubic pieces with limited slopes (Fritsch-Carlson)."""
    if len(points) < 3 or any(b[0] <= a[0] for a, b in itertools.pairwise(points)):
        raise FigureFault("a curve has three points or more, from left to right")
    steps = [(b[0] - a[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in itertools.pairwise(points)]
    inner = [
        0.0 if one * other <= 0 else 3 * (h + k) / ((2 * k + h) / one + (k + 2 * h) / other)
        for (h, one), (k, other) in itertools.pairwise(steps)
    ]
    ends = [
        math.copysign(min(abs((3 * slope - beside) / 2), 3 * abs(slope)), slope) if slope else 0.0
        for (_, slope), beside in ((steps[0], inner[0]), (steps[-1], inner[-1]))
    ]
    slopes = [ends[0], *inner, ends[1]]
    out = [points[0]]
    for ((a, b), (c, d)), (m, n) in zip(itertools.pairwise(points), itertools.pairwise(slopes), strict=True):
        for part in range(1, 17):
            t, wide = part / 16, c - a
            rise = (3 - 2 * t) * t * t
            bend = wide * t * (1 - t) * (m * (1 - t) - n * t)
            out.append((a + wide * t, b + (d - b) * rise + bend))
    return out


def _cross(canvas: Canvas, at: Point) -> None:
    x, y = at
    canvas.line((x - 4, y - 4), (x + 4, y + 4))
    canvas.line((x - 4, y + 4), (x + 4, y - 4))


def _curve(
    canvas: Canvas, curve: Function, across: tuple[float, float], up: tuple[float, float], place: Place, style: str
) -> Point:
    """Draw a function as far as it lies within the axes; return where its label may stand."""
    pieces: list[list[Point]] = [[]]
    before: tuple[float, float] | None = None
    for n in range(_SAMPLES + 1):
        x = across[0] + (across[1] - across[0]) * n / _SAMPLES
        y = curve(x)
        if y is None or (before and abs(y - before[1]) > 3 * (up[1] - up[0])):
            pieces.append([])
            before = None if y is None else (x, y)
            continue
        inside = up[0] <= y <= up[1]
        if before and inside != (up[0] <= before[1] <= up[1]):
            edge = up[0] if min(y, before[1]) < up[0] else up[1]
            pieces[-1].append(place(before[0] + (x - before[0]) * (edge - before[1]) / (y - before[1]), edge))
        if inside:
            pieces[-1].append(place(x, y))
        elif pieces[-1]:
            pieces.append([])
        before = (x, y)
    drawn = [piece for piece in pieces if len(piece) > 1]
    if not drawn:
        raise FigureFault(f"no part of {curve.text} lies within the axes")
    for piece in drawn:
        canvas.line(*_thinned(piece), style=style)
    return drawn[-1][-1] if drawn[-1][-1][0] < _WIDE - 20 or len(drawn[-1]) < 9 else drawn[-1][-8]


def _thinned(piece: Sequence[Point]) -> list[Point]:
    """Return the points of a curve without those that lie on a straight line between their neighbours."""
    out = [piece[0]]
    for point, after in itertools.pairwise(piece):
        (a, b), (c, d), (e, f) = out[-1], point, after
        if abs((c - a) * (f - b) - (d - b) * (e - a)) > 0.6:
            out.append(point)
    return [*out, piece[-1]]


def number_line(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a number line."""
    low, high = figure.value("from"), figure.value("to")
    if low >= high:
        raise FigureFault("a number line must rise: from is less than to")
    step = figure.value("step")
    if step is not None and not 0 < step <= high - low:
        raise FigureFault("the step does not fit the line")
    marks = ticks(low, high, step, 12)
    wide = 270.0

    def at(value: float, level: float = 0) -> Point:
        if not low - 1e-9 <= value <= high + 1e-9:
            raise FigureFault(f"{shown(value)} lies outside the line")
        return 15 + (value - low) / (high - low) * (wide - 30), level

    canvas.arrow((15, 0), (-4, 0))
    canvas.arrow((0, 0), (wide + 4, 0))
    canvas.lines([((at(mark)[0], -5), (at(mark)[0], 5)) for mark in marks], "")
    for mark in fewer(marks, lambda value: at(value)[0]):
        canvas.text(shown(mark), at(mark)[0], 17)
    for entry in figure.all("point {R}"):
        canvas.dot(at(entry.value), 4)
        steps = entry.value / (step or 1)
        told = "" if figure.hides("points") or abs(steps - round(steps)) < 1e-9 else f" {entry.text}"
        canvas.label(f"{entry.places[0]}{told}", at(entry.value), 90, 6, "strong")
    for n, entry in enumerate(figure.all("inequality")):
        _inequality(canvas, entry, wide, -18.0 - 22 * n, at)


def _inequality(
    canvas: Canvas, entry: FigureEntry, wide: float, level: float, at: Callable[[float, float], Point]
) -> None:
    start, start_in, end, end_in = entry.value
    if start is not None and end is not None and start >= end:
        raise FigureFault(f"'{entry.text}' holds for no number")
    left = (0.0, level) if start is None else at(start, level)
    right = (wide, level) if end is None else at(end, level)
    canvas.line((left[0] + 6, level), (right[0] - 6, level), style="bold")
    for value, place, closed, turn in ((start, left, start_in, 180), (end, right, end_in, 0)):
        if value is None:
            canvas.head(place, turn, "bold")
        elif closed:
            canvas.dot(place, 5)
        else:
            canvas.circle(place, 5)


def scale(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a measuring scale with its pointer."""
    low, high = figure.value("from"), figure.value("to")
    every, fine = figure.value("numbers every"), figure.value("marks every", None) or figure.value("numbers every")
    if low >= high or every <= 0 or fine <= 0 or (high - low) / fine > 60 or (high - low) / every > 12:
        raise FigureFault("a scale rises, with at most 12 numbers and 60 marks")
    wide = 260.0

    def at(value: float) -> float:
        return float(20 + (value - low) / (high - low) * (wide - 40))

    canvas.rect(0, -4, wide, 50)
    canvas.lines([((at(mark), -4), (at(mark), 6)) for mark in ticks(low, high, fine, 60)], "")
    canvas.lines([((at(mark), -4), (at(mark), 13)) for mark in ticks(low, high, every, 12)], "")
    for mark in ticks(low, high, every, 12):
        canvas.text(shown(mark), at(mark), 22)
    canvas.text(figure.text("unit"), wide - 6, 38, "end")
    for entry in figure.all("pointer"):
        if not low <= entry.value <= high:
            raise FigureFault(f"the pointer at {entry.text} lies outside the scale")
        canvas.arrow((at(entry.value), -40), (at(entry.value), -4), "bold")
        if not figure.hides("pointer"):
            canvas.label(entry.text, (at(entry.value), -40), 90, 3)
