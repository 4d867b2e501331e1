"""Rays, free bodies, waves, traces, energy levels."""

from __future__ import annotations

import math
import re

from pipeline.drawing.canvas import Canvas, Point, direction, polar, width_of
from pipeline.drawing.lines import FigureEntry, FigureLines
from pipeline.drawing.plane import free
from pipeline.drawing.values import LOWERED, FigureFault

_RAY = 105.0


def rays(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a ray that meets the boundary of two media from the upper left."""
    media, angle_in = figure.value("media"), figure.value("angle in").value
    out, back = (figure.get(name) for name in ("angle out", "reflected"))
    index = figure.value("refractive index")
    if len(media) != 2:
        raise FigureFault("media names two media: the upper one and the lower one")
    for entry in filter(None, (figure.get("angle in"), out, back)):
        if entry.value.value is not None and not 0 < entry.value.value < 90:
            raise FigureFault(f"{entry.line.key}: an angle to the normal is between 0° and 90°")
    if back and angle_in and back.value.value and abs(back.value.value - angle_in) > 0.1:
        raise FigureFault("the angle of reflection equals the angle of incidence")
    if index and angle_in and out and out.value.value:
        ratio = math.sin(math.radians(angle_in)) / math.sin(math.radians(out.value.value))
        if min(abs(ratio / index - 1), abs(1 / ratio / index - 1)) > 0.03:
            figure.warnings.append(f"sin {angle_in:g}° and sin {out.value.value:g}° do not have the ratio {index:g}")
    angle_in = angle_in or 45.0
    canvas.rect(-130, 0, 260, 105, "fill bare")
    canvas.line((-130, 0), (130, 0))
    canvas.line((0, -105), (0, 105), style="dash")
    _ray(canvas, polar((0, 0), _RAY, 90 + angle_in), (0, 0), 0.32)
    canvas.angle(
        (0, 0), (0, -1), polar((0, 0), 9, 90 + angle_in), figure.text("angle in"), free(figure.value("angle in"))
    )
    if back:
        turn = back.value.value or angle_in
        _ray(canvas, (0, 0), polar((0, 0), _RAY, 90 - turn))
        canvas.angle((0, 0), polar((0, 0), 9, 90 - turn), (0, -1), back.text, free(back.value))
    if out:
        turn = out.value.value or _bent(angle_in, media, index)
        _ray(canvas, (0, 0), polar((0, 0), _RAY, turn - 90))
        canvas.angle((0, 0), (0, 1), polar((0, 0), 9, turn - 90), out.text, free(out.value))
    canvas.text(media[0], 130, -14 if not back else -98, "end")
    canvas.text(media[1], -124, 90, "start")
    canvas.label("normal", (0, -105), 20, 2)


def _bent(angle: float, media: tuple[str, ...], index: float | None) -> float:
    """Return a readable angle of the ray beyond the boundary, where it is not told."""
    into_air = media[1].lower() in ("air", "vacuum")
    ratio = (index or 1.4) if into_air else 1 / (index or 1.4)
    sine = math.sin(math.radians(angle)) * ratio
    return math.degrees(math.asin(sine)) if sine < 0.99 else 80.0


def _ray(canvas: Canvas, start: Point, end: Point, share: float = 0.46) -> None:
    canvas.line(start, end, style="bold")
    turn = direction(start, end)
    canvas.head(polar(start, _RAY * share, turn), turn, "bold")


def free_body(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw an object with its forces."""
    slope = figure.value("slope")
    tilt = (slope.value if slope.value is not None else 30.0) if slope else 0.0
    if not 0 <= tilt <= 60:
        raise FigureFault("a slope is from 0° to 60°")
    forces = [entry for entry in figure.entries if entry.line.key.startswith("force")]
    if not forces or len(forces) > 8:
        raise FigureFault("a free body has 1 to 8 forces")
    known = [abs(entry.value[0].value) for entry in forces if entry.value[0].value]
    largest = max(known, default=1.0)
    box = [polar((0, 0), 33, tilt + turn) for turn in (27, 153, 207, 333)]
    canvas.line(*box, closed=True, style="fill")
    if slope:
        foot = polar(polar((0, 0), 15, tilt - 90), 110, tilt + 180)
        top = polar(foot, 200, tilt)
        canvas.line(foot, top)
        canvas.line(foot, (top[0], foot[1]), style="")
        canvas.angle(foot, (foot[0] + 9, foot[1]), polar(foot, 9, tilt), figure.text("slope"), free(slope))
    taken: dict[int, int] = {}
    for entry in forces:
        turn = _way(entry, tilt)
        count = taken[round(turn)] = taken.get(round(turn), 0) + 1
        size = entry.value[0].value
        far = 38 + 45 * (abs(size) / largest if size else 0.7)
        start = polar((0, 0), 30 if abs(math.sin(math.radians(turn - tilt))) < 0.5 else 15, turn)
        start = polar(start, 14.0 * (count - 1), turn + 90)
        end = polar(start, far, turn)
        canvas.arrow(start, end, "bold")
        canvas.label("\n".join(filter(None, (entry.value[0].text, entry.value[1]))), end, turn, 4, free(entry.value[0]))
    canvas.text(figure.text("object"), 0, 0) if width_of(figure.text("object")) < 54 else canvas.label(
        figure.text("object"), (0, 0), 135, 40
    )


def _way(entry: FigureEntry, tilt: float) -> float:
    """Return the direction of a force, from right over up."""
    if entry.places:
        return float(entry.places[0].replace("−", "-")) % 360
    way, along_slope, _ = entry.line.key.removeprefix("force ").partition(" the slope")
    turns = {"right": 0, "up": 90, "normal to": 90, "left": 180, "down": 270, "into": 270}
    along = {**turns, "up": 0, "down": 180}
    return float((along[way] + tilt if along_slope else turns[way]) % 360)


def wave(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a transverse wave."""
    cycles = figure.value("cycles", 2.0)
    if not 0.5 <= cycles <= 8:
        raise FigureFault("a wave shows 0.5 to 8 cycles")
    long, one = figure.get("length"), figure.get("wavelength")
    whole, each = (entry.value.value if entry else None for entry in (long, one))
    if whole and each and abs(cycles * each / whole - 1) > 0.02:
        raise FigureFault("the length is not the number of waves times the wavelength")
    wide, high = 270.0, 42.0
    canvas.line((0, 0), (wide + 8, 0), style="dash", ink=False)
    _sine(canvas, wide, high, cycles)
    period = wide / cycles
    if one:
        left = period / 4 if cycles >= 1.25 else 0.0
        canvas.arrow((left + period / 2, -high - 12), (left, -high - 12))
        canvas.arrow((left + period / 2, -high - 12), (min(left + period, wide), -high - 12))
        canvas.label(one.text, (left + period / 2, -high - 12), 90, 4, free(one.value))
    if entry := figure.get("amplitude"):
        at = period * (1.25 if cycles > 1.25 else 0.25)
        canvas.arrow((at, 0), (at, -high))
        canvas.label(entry.text, (at, -high / 2), 0, 4, free(entry.value))
    if long:
        canvas.arrow((wide / 2, high + 14), (0, high + 14))
        canvas.arrow((wide / 2, high + 14), (wide, high + 14))
        canvas.label(long.text, (wide / 2, high + 14), -90, 4, free(long.value))


def _sine(canvas: Canvas, wide: float, high: float, cycles: float) -> None:
    count = int(24 * cycles)
    canvas.line(
        *((wide * n / count, -high * math.sin(2 * math.pi * cycles * n / count)) for n in range(count + 1)),
        style="bold",
    )


def trace(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw the screen of an oscilloscope."""
    across, peak, cycles = figure.value("divisions", 10.0), figure.value("peak divisions"), figure.value("cycles")
    if not (2 <= across <= 12 and across == int(across)):
        raise FigureFault("a screen has 2 to 12 divisions across")
    if not 0 < peak <= 4:
        raise FigureFault("the peak is at most 4 divisions high")
    if not 0.5 <= cycles <= 10:
        raise FigureFault("a screen shows 0.5 to 10 cycles")
    unit = 26.0
    wide = across * unit
    canvas.lines([((n * unit, -4 * unit), (n * unit, 4 * unit)) for n in range(int(across) + 1)])
    canvas.lines([((0, n * unit), (wide, n * unit)) for n in range(-4, 5)])
    canvas.line((0, 0), (wide, 0), ink=False)
    _sine(canvas, wide, peak * unit, cycles)
    told = [
        f"{figure.text(key)} per division" for key in ("time per division", "volts per division") if figure.get(key)
    ]
    for n, line in enumerate(told):
        canvas.text(line, 0, 4 * unit + 16 + 19 * n, "start")


def levels(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw energy levels with their transitions."""
    found = figure.all("level {n}")
    sizes = [entry.value.value for entry in found]
    known = [size for size in sizes if size is not None]
    if known != sorted(known):
        raise FigureFault("the levels must rise from the lowest to the highest energy")
    if not 2 <= len(found) <= 8:
        raise FigureFault("2 to 8 levels can be read")
    low, high = (min(known), max(known)) if len(known) > 1 else (0.0, 1.0)
    heights: list[float] = []
    for n, size in enumerate(sizes):
        share = (size - low) / (high - low) if size is not None and high > low else n / (len(found) - 1)
        heights.append(max(share * 170, heights[-1] + 24 if heights else 0))
    at = {entry.places[0]: -height for entry, height in zip(found, heights, strict=True)}
    wide = 150.0
    for entry in found:
        y = at[entry.places[0]]
        canvas.line((0, y), (wide, y))
        canvas.text("E" + entry.places[0].translate(LOWERED), -6, y, "end")
        canvas.text(entry.text, wide + 6, y, "start", free(entry.value))
    moves = [re.match(r"(\d+) to (\d+)\Z", entry.text) for entry in figure.all("transition")]
    for n, move in enumerate(moves):
        if not move or move[1] == move[2] or not {move[1], move[2]} <= set(at):
            raise FigureFault("a transition goes from one level to another, such as 3 to 1")
        x = wide * (n + 1) / (len(moves) + 1)
        canvas.arrow((x, at[move[1]]), (x, at[move[2]]), "bold")
