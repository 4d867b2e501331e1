"""Box plots, bars, slices, histograms, stems with leaves."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from pipeline.drawing.canvas import SIZE, Canvas, polar, width_of, wrap
from pipeline.drawing.lines import FigureLines
from pipeline.drawing.plane import free
from pipeline.drawing.plots import fewer, frame, shown, spread, ticks
from pipeline.drawing.values import Axis, FigureFault, number

_WIDE, _HIGH = 240.0, 180.0
_STYLES = ("fill", "fill thick", "")


def boxes(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw box plots above their scale."""
    low, high, label = figure.value("scale")
    wide, found = 270.0, figure.all("box {name}")
    if len(found) > 4:
        raise FigureFault("more than four box plots cannot be read")
    bottom = 52.0 * len(found) + 6
    marks = ticks(low, high, None, 10)
    step = marks[1] - marks[0] if len(marks) > 1 else high - low
    fine = step / (4 if f"{step:e}"[0] == "2" else 5)

    def at(value: float) -> float:
        if not low <= value <= high:
            raise FigureFault(f"{shown(value)} lies outside the scale")
        return float((value - low) / (high - low) * wide)

    canvas.lines([((at(mark), 0), (at(mark), bottom + 6)) for mark in marks])
    canvas.lines([((at(mark), bottom), (at(mark), bottom + 4)) for mark in ticks(low, high, fine, 60)], "")
    canvas.line((0, bottom), (wide, bottom))
    for mark in fewer(marks, at):
        canvas.text(shown(mark), at(mark), bottom + 18)
    canvas.text(label, wide, bottom + 37, "end")
    for n, entry in enumerate(found):
        first, lower, median, upper, last = map(at, entry.value)
        y = 52.0 * n + 36
        canvas.text(entry.places[0], 2, y - 25, "start", "strong clear")
        canvas.rect(lower, y - 12, upper - lower, 24, "fill")
        canvas.line((median, y - 12), (median, y + 12), style="bold")
        canvas.lines(
            [
                ((first, y), (lower, y)),
                ((upper, y), (last, y)),
                ((first, y - 7), (first, y + 7)),
                ((last, y - 7), (last, y + 7)),
            ],
            "",
        )
        if any(abs(value / fine - round(value / fine)) > 1e-6 for value in entry.value):
            figure.warnings.append(f"box {entry.places[0]}: not all five numbers can be read from the scale")


def _floor(canvas: Canvas, y: Axis, top: float) -> tuple[float, float]:
    """Draw an upright axis from 0; return its range."""
    up = (y.low, y.high) if y.low is not None and y.high is not None else spread(Axis(""), (0.0, top))
    rows = ticks(*up, y.step)
    canvas.lines([((0, _level(value, up)), (_WIDE, _level(value, up))) for value in rows])
    for value in rows:
        canvas.text(shown(value), -6, _level(value, up), "end")
    for n, line in enumerate(named := wrap(y.label, 270)):
        canvas.text(line, -22, -22 - (len(named) - 1 - n) * (SIZE + 2), "start")
    canvas.line((0, -4), (0, _HIGH), (_WIDE, _HIGH))
    return up


def _level(value: float, up: tuple[float, float]) -> float:
    if not up[0] <= value <= up[1]:
        raise FigureFault(f"{shown(value)} lies outside the axis")
    return _HIGH - (value - up[0]) / (up[1] - up[0]) * _HIGH


def bars(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw bars, or groups of bars with a legend."""
    found, groups = figure.all("bar {name}"), figure.value("groups", ())
    each = len(found[0].value)
    if any(len(entry.value) != each for entry in found) or (each > 1 and len(groups) != each) or each > 3:
        raise FigureFault("every bar needs as many heights as the line groups has names, at most three")
    if any(value < 0 for entry in found for value in entry.value):
        raise FigureFault("the height of a bar is not less than 0")
    up = _floor(canvas, figure.value("y"), max(value for entry in found for value in entry.value) or 1)
    room = _WIDE / len(found)
    names = [wrap(entry.places[0], room) for entry in found]
    upright = any(width_of(line) > room - 2 for lines in names for line in lines)
    if upright and (room < SIZE + 2 or max(width_of(entry.places[0]) for entry in found) > 150):
        raise FigureFault("more or longer names of bars than can be read")
    deep = 0.0
    for n, entry in enumerate(found):
        left, wide = (n + 0.16) * room, room * 0.68 / each
        for at, value in enumerate(entry.value):
            top = _level(value, up)
            canvas.rect(left + at * wide, top, wide, _HIGH - top, _STYLES[at] if each > 1 else "fill")
        middle = (n + 0.5) * room
        if upright:
            wide = width_of(entry.places[0])
            canvas.text(entry.places[0], middle, _HIGH + 6 + wide / 2, style="up")
            deep = max(deep, wide)
        else:
            for row, line in enumerate(names[n]):
                canvas.text(line, middle, _HIGH + 14 + row * (SIZE + 1))
            deep = max(deep, len(names[n]) * (SIZE + 1))
    canvas.text(figure.value("x").label, _WIDE, _HIGH + deep + 20, "end")
    left, y = 0.0, _HIGH + deep + 42
    for style, name in zip(_STYLES, groups, strict=False):
        canvas.rect(left, y - 7, 14, 14, style)
        canvas.text(name, left + 20, y, "start")
        left += width_of(name) + 40


def slices(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a pie chart: clockwise from the top."""
    found = figure.all("slice {name}")
    known = [entry.value.value for entry in found if entry.value.value is not None]
    open_ = len(found) - len(known)
    if len(found) < 2 or len(found) > 9:
        raise FigureFault("a pie chart has 2 to 9 slices")
    if (not open_ and abs(sum(known) - 360) > 0.5) or (open_ and sum(known) >= 360):
        raise FigureFault(f"the angles of a pie chart add up to 360°, these to {sum(known):g}°")
    start, radius = 90.0, 95.0
    for entry in found:
        turn = entry.value.value if entry.value.value is not None else (360 - sum(known)) / open_
        if turn < 12:
            raise FigureFault(f"slice {entry.places[0]} is too thin to read: less than 12°")
        canvas.line((0, 0), polar((0, 0), radius, start))
        middle = start - turn / 2
        canvas.label(
            entry.text, polar((0, 0), radius * (0.62 if turn >= 30 else 0.8), middle), middle, -14, free(entry.value)
        )
        canvas.label(entry.places[0], polar((0, 0), radius, middle), middle, 5)
        start -= turn
    canvas.circle((0, 0), radius, "fill")


def histogram(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a histogram."""
    found = [
        (number(entry.places[0]), number(entry.places[1]), entry.value) for entry in figure.all("class {n} to {n}")
    ]
    x, y = figure.value("x"), figure.value("y")
    if any(low >= high for low, high, _ in found) or any(value < 0 for *_, value in found):
        raise FigureFault("a class goes from less to more, and its height is not less than 0")
    if any(one[1] != other[0] for one, other in itertools.pairwise(found)):
        raise FigureFault("the classes must be in order, each starting where the one before ends")
    widths = {round(high - low, 9) for low, high, _ in found}
    if len(widths) > 1 and "density" not in y.label.lower():
        raise FigureFault("classes of unequal width need heights that are densities: say so in y")
    across = (found[0][0], found[-1][1])
    up = spread(y, (0.0, max(value for *_, value in found) or 1.0))
    step = next(iter(widths)) if len(widths) == 1 else None
    place = frame(canvas, Axis(x.label, *across, step), y, across, up, True)
    for low, high, value in found:
        (left, top), (right, bottom) = place(low, value), place(high, up[0])
        if top < -1:
            raise FigureFault(f"{shown(value)} lies outside the axis")
        canvas.rect(left, top, right - left, bottom - top, "fill")


def stems(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw stems with their leaves, perhaps back to back."""
    rows = {entry.places[0]: entry.value for entry in figure.all("stem {n}")}
    left = {entry.places[0]: entry.value for entry in figure.all("left {n}")}
    order = sorted(set(rows) | set(left), key=number)
    key = re.match(r"([-−]?\d+) \| (\d) (?:means|represents|=) (.*)", figure.text("key"))
    if not key or key[1] + key[2] != re.sub(r"\D", "", key[3])[: len(key[1]) + 1]:
        raise FigureFault("the key must read 1 | 2 means 12, with a stem, a leaf and their number")
    if max(len(leaves) for leaves in (*rows.values(), *left.values())) > (18 if not left else 9):
        raise FigureFault("more leaves in a row than can be read")
    wide = max(width_of(stem) for stem in order) + 14
    start = 14.0 * max(map(len, left.values()), default=0)
    for n, stem in enumerate(order):
        y = 22.0 * n
        canvas.text(stem, start + wide / 2, y)
        _leaves(canvas, rows.get(stem, ()), start + wide, y, 14.0)
        _leaves(canvas, left.get(stem, ())[::1], start, y, -14.0)
    bottom = 22.0 * len(order) - 9
    canvas.line((start + wide, -11), (start + wide, bottom))
    if left:
        canvas.line((start, -11), (start, bottom))
        for name, x, anchor in zip(figure.value("sides", ()), (start, start + wide), ("end", "start"), strict=False):
            canvas.text(name, x, -22, anchor, "strong")
    canvas.text(f"Key: {figure.text('key')}", 0, bottom + 18, "start")


def _leaves(canvas: Canvas, leaves: Sequence[int], start: float, y: float, step: float) -> None:
    for n, leaf in enumerate(leaves):
        canvas.text(str(leaf), start + step * (n + 0.7), y)
