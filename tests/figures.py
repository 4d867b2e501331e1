"""Figures of every kind; `python -m tests.figures` prints their documentation, with `page` a page with all of them."""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.drawing import figure as drawing
from pipeline.drawing.kinds import KINDS
from pipeline.html import Html, el, join

ROOT = Path(__file__).parent.parent

EXAMPLES: dict[str, list[list[str]]] = {
    "triangle": [
        ["corners: P Q R", "PQ: 9 cm", "QR: x cm", "angle Q: 52°", "find: PR"],
        ["corners: A B C", "AB: 5 cm", "BC: 12 cm", "right angle: B", "find: AC"],
        ["corners: K L M", "KL: 8 cm", "LM: 11 cm", "KM: 7 cm", "find: angle K"],
        ["corners: A B C", "BC: 14 cm", "height from A: 6 cm"],
        ["corners: D E F", "equal: DE DF", "angle D: 40°", "angle E: ?"],
    ],
    "polygon": [
        ["corners: A B C D", "shape: parallelogram", "AB: 8 cm", "BC: 5 cm", "angle A: 70°", "diagonal: AC"],
        ["corners: A B C D", "shape: trapezium", "parallel: AB DC", "AB: 12 m", "DC: 7 m", "right angle: A", "AD: 5 m"],
        ["corners: A B C D E F", "shape: regular", "AB: 4 cm", "find: angle A"],
        ["corners: P Q R S", "shape: kite", "PQ: 6 cm", "QR: 10 cm", "angle P: 100°", "diagonal: PR", "diagonal: QS"],
        ["corners: A B C D", "shape: rectangle", "AB: (x + 3) cm", "BC: x cm"],
        ["corners: A B C D E F", "shape: any", "AB: 9 m", "BC: 3 m", "CD: 5 m", "EF: 4 m", "right angle: A B C E F"],
    ],
    "circle": [
        ["centre: O", "radius: 10 cm", "points: A at 200°, B at 340°", "middle M: AB", "join: OA AB OM", "AB: 16 cm"],
        ["centre: O", "radius: 6 cm", "points: A at 20°, B at 140°", "sector: AOB", "angle AOB: 120°"],
        ["centre: O", "radius: 5 cm", "points: A at 215°, B at 325°", "join: OA AB", "AB: 8 cm", "distance O to AB: ?"],
        [
            "centre: O",
            "points: A at 210°, B at 330°, C at 100°",
            "join: AC BC OA OB",
            "angle AOB: 120°",
            "find: angle ACB",
        ],
        ["centre: O", "radius: 7 cm", "points: A at 40°", "tangent at: A to T", "join: OA OT", "AT: 12 cm", "find: OT"],
        ["centre: O", "diameter: 10 cm", "points: P at 180°, Q at 0°, R at 60°", "join: PQ PR QR", "angle QPR: 30°"],
    ],
    "solid": [
        ["solid: cuboid", "corners: A B C D E F G H", "AB: 8 cm", "BC: 6 cm", "CG: 5 cm", "AC: 10 cm", "find: AG"],
        ["solid: pyramid", "corners: O A B C D", "point D: (2, 2, 6)", "point B: ?"],
        ["solid: cuboid", "length: 8 cm", "breadth: 5 cm", "height: 4 cm"],
        ["solid: cuboid", "corners: O A B C D E F G", "point A: (4, 0, 0)", "point F: ?"],
        ["solid: cylinder", "radius: 3 cm", "height: 10 cm"],
        ["solid: cone", "radius: 5 cm", "height: 12 cm", "slant height: ?"],
        ["solid: sphere", "diameter: 18 cm"],
        ["solid: hemisphere", "radius: 9 cm"],
        ["solid: pyramid", "length: 6 cm", "breadth: 6 cm", "height: 10 cm"],
        ["solid: prism", "breadth: 4 cm", "height: 3 cm", "length: 12 cm"],
    ],
    "axes": [
        ["x: x, -1 to 5", "y: y, -2 to 8", "function: y = x^2 - 4*x + 3", "label A: (2, -1)"],
        ["x: x / °, 0 to 360 step 90", "y: y, -2 to 2", "function: y = 2*sin(x)", "hide: function"],
        ["x: x, -4 to 4", "y: y, -6 to 6", "line 1: (-4, -6) (2, 6)", "line 2: (-4, 5) (4, -3)"],
        ["x: x, -3 to 5", "y: y, -6 to 10", "function: y = (x + 1)*(x - 3)", "label P: (-1, 0)", "label Q: (3, 0)"],
        ["x: Time in s, 0 to 50", "y: Velocity in m/s, 0 to 25", "line: (0, 0) (10, 20) (40, 20)"],
        [
            "x: reaction path, 0 to 8",
            "y: potential energy / kJ mol⁻¹, 0 to 180",
            "curve: (0, 20) (1, 20) (4, 160) (7, 100) (8, 100)",
            "label reactants: (0, 20)",
            "label products: (8, 100)",
            "hide: x numbers",
        ],
    ],
    "scatter graph": [
        [
            "x: hours of practice, 0 to 10",
            "y: score, 0 to 100",
            "points: (1, 32) (2, 38) (4, 55) (5, 58) (7, 75) (9, 88)",
            "best fit: y = 7*x + 25",
            "hide: best fit",
        ],
        ["x: age / years, 0 to 12", "y: value / £1000, 0 to 20", "points: (1, 17) (3, 13.5) (6, 9) (8, 6.5) (11, 2)"],
    ],
    "motion graph": [
        ["x: time / s, 0 to 60", "y: velocity / m s⁻¹, 0 to 20", "line: (0, 0) (10, 16) (40, 16) (60, 0)"],
        ["x: time / s, 0 to 1.5", "y: velocity / m s⁻¹, -10 to 10", "line: (0, 0) (0.7, -6.9) (0.7, 5) (1.2, 0)"],
    ],
    "number line": [
        ["from: -5", "to: 5", "inequality: x > 2"],
        ["from: -3", "to: 6", "inequality: -1 <= x < 4"],
        ["from: 0", "to: 1", "step: 0.1", "point A: 0.35", "point B: 0.8"],
    ],
    "scale": [
        ["from: 20", "to: 40", "numbers every: 10", "marks every: 2", "unit: °C", "pointer: 34", "hide: pointer"],
    ],
    "vectors": [
        ["u: (3, -2)", "v: (1, 4)", "grid: yes"],
        ["A: (0, 0)", "AB: (1, 4)", "BC: (5, -2)", "find: AC"],
        ["u: (-4, 0)", "v: (2, 3)", "hide: components"],
    ],
    "bearings": [
        ["A to B: 065°, 12 km", "B to C: 155°, 9 km", "find: AC"],
        ["P to Q: 120°, 40 km", "P to R: 230°, 55 km", "find: QR"],
        ["H to L: 310°"],
    ],
    "box plot": [
        ["scale: 0 to 50, marks", "box Class A: 3 12 18 25 40", "box Class B: 8 15 24 30 47"],
        ["scale: 10 to 30, time / s", "box Runners: 12 15 18 24 28"],
    ],
    "bar chart": [
        ["x: colour", "y: pupils", "bar red: 12", "bar blue: 7", "bar green: 9", "bar yellow: 3"],
        ["x: day", "y: visitors", "groups: adults | children", "bar Friday: 30 | 18", "bar Saturday: 45 | 52"],
    ],
    "pie chart": [
        ["slice bus: 90°", "slice car: 120°", "slice walk: 105°", "slice bicycle: 45°"],
        ["slice yes: 200°", "slice no: ?"],
    ],
    "histogram": [
        [
            "x: time / min",
            "y: pupils",
            "class 0 to 10: 5",
            "class 10 to 20: 12",
            "class 20 to 30: 8",
            "class 30 to 40: 2",
        ],
    ],
    "stem-and-leaf": [
        ["stem 1: 2 4 4 8", "stem 2: 0 3 5 5 9", "stem 3: 1 6", "key: 1 | 2 means 12"],
        [
            "sides: girls | boys",
            "left 4: 3 5",
            "stem 4: 1 1 7",
            "left 5: 0 2 8",
            "stem 5: 2 6",
            "key: 4 | 1 means 41 s",
        ],
    ],
    "Venn": [
        ["sets: A B", "A only: 5", "both: 3", "B only: 4", "neither: 2"],
        ["sets: Football | Tennis", "Football only: 11", "both: x", "Tennis only: 8", "neither: 4"],
        [
            "sets: A B C",
            "A only: 4",
            "B only: 3",
            "C only: 6",
            "A and B: 2",
            "B and C: 1",
            "A and C: 5",
            "all: 2",
            "neither: 7",
        ],
    ],
    "tree": [
        [
            "first red: 3/5",
            "first blue: 2/5",
            "red then red: 2/4",
            "red then blue: 2/4",
            "blue then red: 3/4",
            "blue then blue: 1/4",
        ],
        [
            "events: Monday | Tuesday",
            "first rain: 0.3",
            "first dry: ?",
            "rain then rain: 0.6",
            "rain then dry: 0.4",
            "dry then rain: 0.2",
            "dry then dry: 0.8",
        ],
    ],
    "table": [
        ["columns: time / s | speed / m s⁻¹", "row 1: 0 | 4", "row 2: 2 | 8", "row 3: 4 | ?"],
    ],
    "circuit": [
        ["battery: 12 V", "series R1: 4 Ω", "series R2: 2 Ω", "ammeter: 2 A", "voltmeter across R1: 8 V"],
        ["battery: 6 V", "internal resistance: 0.5 Ω", "switch: closed", "parallel R1 R2: 6 Ω | 3 Ω", "ammeter: ?"],
        ["battery: 9 V", "switch: open", "series R: 10 kΩ", "capacitor C: 100 µF", "voltmeter across C: ?"],
        ["battery: 5 V", "thermistor T: shown", "series R: 1.2 kΩ", "voltmeter across R: 2 V"],
        ["battery: 12 V", "series R1: 4 Ω", "parallel R2 R3: 6 Ω | 3 Ω", "voltmeter across R2: ?", "ammeter: 2 A"],
        ["battery: 3 V", "lamp L: shown", "diode D: shown", "variable resistor R: shown"],
    ],
    "rays": [
        ["media: air | glass", "angle in: 40°", "angle out: 25°"],
        ["media: glass | air", "angle in: 50°", "reflected: 50°"],
        ["media: air | water", "angle in: 60°", "angle out: ?", "refractive index: 1.33"],
    ],
    "free body": [
        [
            "object: box",
            "force up: 20 N normal",
            "force down: 20 N weight",
            "force right: 12 N pull",
            "force left: 5 N friction",
        ],
        [
            "object: crate",
            "slope: 30°",
            "force down: 40 N weight",
            "force up the slope: 5 N friction",
            "force normal to the slope: R",
        ],
        ["object: sledge", "force at 30°: 80 N pull", "force left: 25 N friction"],
        ["object: rocket", "force up: 5000 N thrust", "force down: W"],
    ],
    "wave": [
        ["amplitude: 2 cm", "wavelength: 8 cm"],
        ["length: 24 m", "cycles: 3"],
        ["wavelength: ?", "amplitude: 0.5 m", "cycles: 2"],
    ],
    "trace": [
        ["time per division: 5 ms", "volts per division: 2 V", "peak divisions: 3", "cycles: 2", "divisions: 10"],
        ["volts per division: 0.5 V", "peak divisions: 2", "cycles: 4"],
    ],
    "energy levels": [
        [
            "level 1: −2.18 × 10⁻¹⁸ J",
            "level 2: −0.545 × 10⁻¹⁸ J",
            "level 3: −0.242 × 10⁻¹⁸ J",
            "transition: 3 to 1",
            "transition: 2 to 1",
        ],
    ],
}

_INTRODUCTION = """# Figures

A figure is a kind and lines "name: value". Code computes every coordinate, draws, and writes the description for those
who do not see it from the same lines. A figure that cannot be right is a fault: a triangle whose sides do not meet,
angles that do not add up, a chord longer than the diameter, probabilities that do not add up to 1, labels that overlap,
an angle under 12°. Values that only look wrong (current, resistance and voltage that do not fit) are
warnings for who reviews the lesson.

- A value is a number with its unit (`9 cm`, `52°`, `-2.18 × 10^-18 J`), an unknown (`x cm`, `2x + 1`), or `?` for what
  is sought. Lengths that are not known are guessed, and the drawing says "not to scale".
- Points and corners are capital letters. `find` names what is sought; the drawing shows `?` there.
- `hide` draws something without telling it: the equation of a curve, the components of a vector.
- Every kind may have `title: …`, the caption people read. A line that must be there is marked with *.
"""


def documentation() -> str:
    """Return the page of the documentation, from the table of kinds."""
    parts = [_INTRODUCTION]
    for kind in KINDS:
        said: dict[str, str] = {line.example: "*" if line.needed else "" for line in reversed(kind.lines)}
        lines = ", ".join(f"`{example}`{mark}" for example, mark in reversed(said.items()))
        example = "\n".join(EXAMPLES[kind.name][0])
        parts.append(
            f"## {kind.name}\n\n{kind.says[0].upper()}{kind.says[1:]}.\n\n{lines}\n\n```text\n{example}\n```\n"
        )
    return "\n".join(parts)


def page() -> str:
    """Return a page with every example, to be looked at in a browser."""
    shown = []
    for kind, examples in EXAMPLES.items():
        shown.append(el("h2", kind))
        for n, lines in enumerate(examples):
            figure = {"kind": kind, "lines": lines}
            svg = drawing.svg(figure, f"{kind.replace(' ', '')}{n}")
            shown.append(el("figure", Html(svg), el("figcaption", drawing.alt(figure))))
    css = (ROOT / "pipeline/publish/site.css").read_text()
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return f'{head}<title>Figures</title><style>{css}</style><main class="wrap">{join(shown)}</main></html>'


if __name__ == "__main__":
    sys.stdout.write(page() if "page" in sys.argv else documentation())
