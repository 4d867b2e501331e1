"""Circuits, rays, free bodies, waves, traces, energy levels."""

from __future__ import annotations

import re

from pipeline.publish.drawing import circuits, waves
from pipeline.publish.drawing.lines import FigureKind, Line, choice
from pipeline.publish.drawing.values import FigureFault, Quantity, cells, degrees, number, quantity, size, words

_PART = ("capacitor", "lamp", "diode", "LED", "thermistor", "LDR", "variable resistor", "motor", "fuse")


def sizes(value: str) -> tuple[Quantity, ...]:
    """Return the values of parallel parts, divided by bars."""
    return tuple(size(part) for part in cells(value))


def force(value: str) -> tuple[Quantity, str]:
    """Return the size and the name of "20 N normal"; the size may be an unknown."""
    found = re.match(r"(?P<size>[-−\d].*?\s?k?N\b|\? ?k?N\b|\S+)\s*(?P<name>.*)\Z", value)
    if not found:
        raise FigureFault("a force needs its size or a letter, such as 20 N normal")
    return size(found["size"]), found["name"]


CIRCUIT = FigureKind(
    "circuit",
    'one loop: battery, parts in series in their order, one group in parallel, meters; a value may be "shown" or ?',
    (
        Line("battery", size, "battery: 12 V", many=True),
        Line("supply", size, "supply: 230 V a.c."),
        Line("internal resistance", size, "internal resistance: 0.5 Ω"),
        Line("switch", choice("open", "closed"), "switch: open"),
        Line("ammeter", size, "ammeter: 2 A"),
        Line("series {R}", size, "series R1: 4 Ω"),
        Line("parallel {R} {R}", sizes, "parallel R2 R3: 6 Ω | 3 Ω"),
        Line("parallel {R} {R} {R}", sizes, "parallel R2 R3 R4: 6 Ω | 3 Ω | 2 Ω"),
        Line("voltmeter across {R}", size, "voltmeter across R1: 8 V"),
        *(Line(f"{name} {{R}}", size, f"{name} {name[0].upper()}: shown") for name in _PART),
    ),
    circuits.draw,
)
RAYS = FigureKind(
    "rays",
    "a ray at the boundary of two media; angles are to the normal",
    (
        Line("media", words, "media: air | glass", say="", needed=True),
        Line("angle in", degrees, "angle in: 40°", needed=True),
        Line("angle out", degrees, "angle out: 25°"),
        Line("reflected", degrees, "reflected: 40°"),
        Line("refractive index", number, "refractive index: 1.5"),
    ),
    waves.rays,
    head=lambda figure: f"Ray from {' to '.join(figure.value('media', ()))}",
)
_WAYS = ("up", "down", "left", "right", "up the slope", "down the slope", "normal to the slope", "into the slope")
FREE_BODY = FigureKind(
    "free body",
    "an object with the forces on it, on a level surface or a slope",
    (
        Line("object", str, "object: box", say="{v}", needed=True),
        Line("slope", degrees, "slope: 30°"),
        *(Line(f"force {way}", force, f"force {way}: 20 N normal", many=True) for way in _WAYS),
        Line("force at {n}°", force, "force at 30°: 8 N pull", many=True),
    ),
    waves.free_body,
)
WAVE = FigureKind(
    "wave",
    "a wave with its amplitude and wavelength",
    (
        Line("amplitude", size, "amplitude: 2 cm"),
        Line("wavelength", size, "wavelength: 8 cm"),
        Line("length", size, "length: 24 m", say="{v} long in all"),
        Line("cycles", number, "cycles: 3", say="{v} waves"),
    ),
    waves.wave,
)
TRACE = FigureKind(
    "trace",
    "an oscilloscope screen",
    (
        Line("time per division", size, "time per division: 5 ms"),
        Line("volts per division", size, "volts per division: 2 V"),
        Line("peak divisions", number, "peak divisions: 3", say="peak {v} divisions high", needed=True),
        Line("cycles", number, "cycles: 2", say="{v} cycles", needed=True),
        Line("divisions", number, "divisions: 10", say="in {v} divisions"),
    ),
    waves.trace,
    head=lambda figure: "Oscilloscope trace",
    also=("oscilloscope",),
)
LEVELS = FigureKind(
    "energy levels",
    "levels from the lowest up, transitions as arrows",
    (
        Line("level {n}", quantity, "level 1: −2.18 × 10⁻¹⁸ J", say="E{0} {v}", needed=True),
        Line("transition", str, "transition: 3 to 1", say="transition {v}", given=False, many=True),
    ),
    waves.levels,
)
KINDS = (CIRCUIT, RAYS, FREE_BODY, WAVE, TRACE, LEVELS)
