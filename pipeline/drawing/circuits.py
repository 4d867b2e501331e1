"""Circuits: one loop with its supply above and its parts below; voltmeters hang beneath."""

from __future__ import annotations

import math
import re

from pipeline.drawing.canvas import Canvas, Point, polar, width_of
from pipeline.drawing.lines import FigureEntry, FigureLines
from pipeline.drawing.values import LOWERED, FigureFault, Quantity

_DEEP, _BRANCH, _SIDE = 118.0, 54.0, 46.0
_ABOVE = ("battery", "supply", "internal resistance", "switch", "ammeter")
_PREFIX = {"k": 1e3, "M": 1e6, "m": 1e-3, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}

_DIODE = (((-9, -9), (-9, 9), (9, 0), (-9, -9)), ((9, -9), (9, 9)))
#: Lines of symbols, from their middle.
_STROKES: dict[str, tuple[tuple[Point, ...], ...]] = {
    "battery": (((-9, -11), (-9, 11)), ((-3, -5), (-3, 5)), ((3, -11), (3, 11)), ((9, -5), (9, 5))),
    "capacitor": (((-4, -12), (-4, 12)), ((4, -12), (4, 12))),
    "diode": _DIODE,
    "LED": _DIODE,
    "fuse": (((-20, 0), (20, 0)),),
    "thermistor": (((-26, 15), (-16, 15), (18, -15)),),
}
_ARROWS: dict[str, tuple[tuple[Point, Point], ...]] = {
    "LED": (((4, 10), (12, 22)), ((13, 10), (21, 22))),
    "variable resistor": (((-18, 15), (18, -15)),),
    "LDR": (((-20, 26), (-12, 11)), ((-6, 26), (2, 11))),
}


def draw(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a circuit."""
    above = [entry for entry in figure.entries if entry.line.key in _ABOVE]
    below = [entry for entry in figure.entries if entry.line.key not in (*_ABOVE, "voltmeter across {R}", "title")]
    if not above or len(above) > 4 or len(below) > 4:
        raise FigureFault("a circuit has a battery or supply, and at most 4 parts beside it and 4 opposite")
    names = [name for entry in below for name in entry.places]
    if len(set(names)) < len(names):
        raise FigureFault("two parts have the same name")
    count = max(2, len(above), len(below))
    wide = count * min(110.0, 296 / count)
    middles = {id(entry): wide * (n + 0.5) / len(row) for row in (above, below) for n, entry in enumerate(row)}
    _wire(canvas, [(middles[id(entry)], _half(entry.line.key)) for entry in above], wide, 0)
    for entry in above:
        _part(canvas, entry.line.key, (middles[id(entry)], 0), entry)
        _label(canvas, _told(entry), middles[id(entry)], 24, wide / len(above), 16)
    _wire(canvas, [(middles[id(entry)], _half(entry.line.key)) for entry in below], wide, _DEEP)
    canvas.lines([((0, 0), (0, _DEEP)), ((wide, 0), (wide, _DEEP))], "")
    places: dict[str, tuple[Point, float]] = {}
    for entry in below:
        _lower(canvas, entry, middles[id(entry)], wide / len(below), places)
    if not below:
        raise FigureFault("a circuit has at least one part opposite its battery")
    _voltmeters(figure, canvas, places, {entry.line.key: (middles[id(entry)], 0.0) for entry in above})
    _consistent(figure)


def _half(key: str) -> float:
    return {"battery": 9.0, "capacitor {R}": 4.0, "supply": 12.0, "lamp {R}": 12.0, "motor {R}": 12.0, "ammeter": 12.0,
            "diode {R}": 9.0, "LED {R}": 9.0}.get(key, 20.0)  # fmt: skip


def _wire(canvas: Canvas, gaps: list[tuple[float, float]], wide: float, y: float) -> None:
    left = 0.0
    for at, half in gaps:
        canvas.line((left, y), (at - half, y))
        left = at + half
    canvas.line((left, y), (wide, y))


def _lower(canvas: Canvas, entry: FigureEntry, x: float, room: float, places: dict[str, tuple[Point, float]]) -> None:
    """Draw a part of the lower row; parallel parts hang below each other."""
    count, side = len(entry.places), min(_SIDE, room / 2 - 3)
    if count > 1 and len(entry.value) != count:
        raise FigureFault(f"{' '.join(entry.places)}: as many values as parallel parts, divided by |")
    for n, name in enumerate(entry.places):
        y = _DEEP + n * _BRANCH
        if n:
            for at in (-side, side):
                canvas.line((x + at, y - _BRANCH), (x + at, y), (x + math.copysign(20, at), y))
        _part(canvas, entry.line.key, (x, y), entry)
        value = entry.value[n] if isinstance(entry.value, tuple) else entry.value
        _label(canvas, _value(name, value.text), x, y - 20, room if count == 1 else 2 * side, -16)
        places[name] = ((x, _DEEP + (count - 1) * _BRANCH), side if count > 1 else 28.0)


def _label(canvas: Canvas, text: str, x: float, y: float, room: float, down: float) -> None:
    """Write a name with its value; on two lines where one is too long."""
    lines = text.split(" = ", 1) if width_of(text) > room - 8 else [text]
    for n, line in enumerate(lines):
        canvas.text(line, x, y + (n if down > 0 else n - len(lines) + 1) * abs(down))


def _told(entry: FigureEntry) -> str:
    if entry.line.key == "switch":
        return "" if entry.text == "shown" else entry.text
    return _value("r", entry.text) if entry.line.key == "internal resistance" else entry.text.removeprefix("shown")


def _value(name: str, text: str) -> str:
    shown = re.sub(r"(?<=[A-Za-z])\d+\Z", lambda found: found[0].translate(LOWERED), name)
    return shown if text in ("shown", "") else f"{shown} = {text}"


def _voltmeters(
    figure: FigureLines, canvas: Canvas, places: dict[str, tuple[Point, float]], above: dict[str, Point]
) -> None:
    for entry in figure.all("voltmeter across {R}"):
        name = entry.places[0]
        if name in above:
            (x, y), side, down = above[name], 30.0, -42.0
        elif name in places:
            (x, y), side = places[name]
            down = 42.0
        else:
            raise FigureFault(f"voltmeter across {name}: there is no such part")
        for turn in (-side, side):
            canvas.line((x + turn, y), (x + turn, y + down), (x + (12 if turn > 0 else -12), y + down))
        _meter(canvas, (x, y + down), "V")
        canvas.text(entry.text if entry.text != "shown" else "", x, y + down + (22 if down > 0 else -22))


def _meter(canvas: Canvas, at: Point, letter: str) -> None:
    """Draw a meter; without a letter, a lamp."""
    canvas.circle(at, 12)
    if letter:
        canvas.text(letter, *at)
    else:
        canvas.lines([(polar(at, 12, turn), polar(at, 12, turn + 180)) for turn in (45, 135)], "")


def _part(canvas: Canvas, key: str, at: Point, entry: FigureEntry) -> None:
    """Draw the symbol of a part, level, its middle at a point."""
    name = key.replace(" {R}", "")
    strokes = list(_STROKES.get(name, ()))
    if name in ("ammeter", "motor", "lamp"):
        _meter(canvas, at, {"ammeter": "A", "motor": "M"}.get(name, ""))
    elif name == "supply":
        for side in (-8, 8):
            canvas.circle((at[0] + side, at[1]), 4)
    elif name == "switch":
        for side in (-20, 20):
            canvas.dot((at[0] + side, at[1]), 2.5)
        strokes = [((-20, 0), (20, 0) if entry.text == "closed" else (16, -14))]
    elif name not in ("battery", "capacitor", "diode", "LED"):
        canvas.rect(at[0] - 20, at[1] - 8, 40, 16)
    for stroke in strokes:
        canvas.line(*((at[0] + x, at[1] + y) for x, y in stroke))
    for start, end in _ARROWS.get(name, ()):
        canvas.arrow((at[0] + start[0], at[1] + start[1]), (at[0] + end[0], at[1] + end[1]))


def _base(value: Quantity) -> float | None:
    """Return the value in its unit without a prefix."""
    unit = value.unit.split(" ")[0]
    return None if value.value is None else value.value * (_PREFIX.get(unit[0], 1.0) if len(unit) > 1 else 1.0)


def _consistent(figure: FigureLines) -> None:
    """Warn where current, resistances and voltages do not fit together."""
    current = _base(figure.value("ammeter", Quantity("", None)))
    resistances = {entry.places[0]: _base(entry.value) for entry in figure.all("series {R}")}
    for entry in figure.all("voltmeter across {R}"):
        resistance, volts = resistances.get(entry.places[0]), _base(entry.value)
        if current and resistance and volts and abs(current * resistance / volts - 1) > 0.03:
            figure.warnings.append(f"{entry.places[0]}: {current:g} A through {resistance:g} Ω is not {volts:g} V")
    if figure.text("switch") == "open" and current:
        figure.warnings.append("the switch is open, but the ammeter shows a current")
    volts = sum(_base(entry.value) or 0 for entry in figure.all("battery"))
    parts: list[float | None] = [*resistances.values()]
    parts += [_base(entry.value) for entry in figure.all("internal resistance")]
    for entry in figure.entries:
        if entry.line.key.startswith("parallel"):
            values = [_base(value) for value in entry.value]
            parts.append(1 / sum(1 / value for value in values if value) if all(values) else None)
    simple = not any(
        entry.line.key.split(" ")[0] in ("capacitor", "lamp", "diode", "LED", "thermistor", "LDR", "variable", "motor")
        for entry in figure.entries
    )
    whole = sum(filter(None, parts)) if simple and None not in parts else 0.0
    if current and volts and whole and abs(current * whole / volts - 1) > 0.03:
        figure.warnings.append(f"{current:g} A through {whole:g} Ω in all is not {volts:g} V")
