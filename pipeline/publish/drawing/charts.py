"""Charts of data, Venn diagrams, trees, tables."""

from __future__ import annotations

import re

from pipeline.publish.drawing import bars, sets
from pipeline.publish.drawing.lines import FigureKind, FigureLines, Line, Rows
from pipeline.publish.drawing.values import (
    FigureFault,
    Quantity,
    axis,
    cells,
    degrees,
    number,
    numbers,
    plain,
    quantity,
    words,
)


def scale(value: str) -> tuple[float, float, str]:
    """Return (low, high, label) of "0 to 50, marks"."""
    found = re.match(r"([-−\d.,]+?) to ([-−\d.]+)(?:,\s*(.*))?\Z", value)
    if not found or number(found[1]) >= number(found[2]):
        raise FigureFault(f"'{value}' is not a rising scale such as 0 to 50, marks")
    return number(found[1]), number(found[2]), (found[3] or "").strip()


def five(value: str) -> tuple[float, ...]:
    """Return the five numbers of a box plot."""
    made = numbers(value)
    if len(made) != 5 or list(made) != sorted(made):
        raise FigureFault(
            f"'{value}' must be five rising numbers: lowest, lower quartile, median, upper quartile, highest"
        )
    return made


def amounts(value: str) -> tuple[float, ...]:
    """Return the heights of one bar, or of a group of bars divided by bars."""
    return tuple(number(part) for part in cells(value))


def leaves(value: str) -> tuple[int, ...]:
    """Return the leaves of a stem: single digits, rising."""
    found = value.replace(",", " ").split()
    if not all(re.fullmatch(r"\d", leaf) for leaf in found) or found != sorted(found):
        raise FigureFault(f"'{value}' must be single digits in rising order, or nothing")
    return tuple(map(int, found))


def probability(value: str) -> float | None:
    """Return a probability from 0 to 1; None for an unknown."""
    made = quantity(value).value
    if made is not None and not 0 <= made <= 1:
        raise FigureFault(f"'{value}' is not a probability from 0 to 1")
    return made


def share(value: str) -> Quantity:
    """Return a slice in degrees; it may be given as a percentage."""
    made = quantity(value)
    return Quantity(value, made.value * 3.6, "°") if made.unit == "%" and made.value else degrees(value)


def _bars(figure: FigureLines) -> Rows:
    x, groups = figure.value("x"), figure.value("groups", ())
    heads = [x.label if x else "", *(groups or [figure.value("y").label if figure.value("y") else ""])]
    return heads, [[entry.places[0], *cells(entry.text)] for entry in figure.all("bar {name}")]


BOX = FigureKind(
    "box plot",
    "one or two box plots on a scale: lowest, lower quartile, median, upper quartile, highest",
    (
        Line("scale", scale, "scale: 0 to 50, marks", say="", given=False, needed=True),
        Line("box {name}", five, "box Class A: 3 12 18 25 40", say="{0} {v}", needed=True),
    ),
    bars.boxes,
    head=lambda figure: f"Box plot of {(figure.value('scale') or ('', '', ''))[2] or 'data'}",
)
BAR = FigureKind(
    "bar chart",
    "a bar a category; groups of bars with 12 | 9 and a line groups",
    (
        Line("x", axis, "x: colour", say="", given=False, needed=True),
        Line("y", axis, "y: pupils", say="", given=False, needed=True),
        Line("groups", words, "groups: girls | boys", say="{v}", given=False),
        Line("bar {name}", amounts, "bar red: 12", say="{0} {v}", needed=True),
    ),
    bars.bars,
    rows=_bars,
)
PIE = FigureKind(
    "pie chart",
    "slices by their angles, together 360°, or percentages; one may be ?",
    (Line("slice {name}", share, "slice bus: 90°", say="{0} {v}", needed=True),),
    bars.slices,
    rows=lambda figure: (["", "Angle"], [[entry.places[0], entry.text] for entry in figure.all("slice {name}")]),
)
HISTOGRAM = FigureKind(
    "histogram",
    "classes that meet; of unequal width only where y says density",
    (
        Line("x", axis, "x: time / min", say="", given=False, needed=True),
        Line("y", axis, "y: pupils", say="", given=False, needed=True),
        Line("class {n} to {n}", number, "class 0 to 10: 5", say="{0} to {1}: {v}", needed=True),
    ),
    bars.histogram,
    rows=lambda figure: (
        [figure.value(name).label if figure.value(name) else "" for name in "xy"],
        [
            [f"{plain(entry.places[0])} to {plain(entry.places[1])}", entry.text]
            for entry in figure.all("class {n} to {n}")
        ],
    ),
)


def _stem_rows(figure: FigureLines) -> Rows:
    return ["Stem", "Leaves"], [
        [f"{entry.places[0]} ({'left' if entry.line.key.startswith('left') else 'right'})", entry.text]
        for entry in figure.entries
        if entry.line.key[:4] in ("stem", "left")
    ]


STEM = FigureKind(
    "stem-and-leaf",
    "stems with their leaves in order; left makes it back to back",
    (
        Line("stem {n}", leaves, "stem 1: 2 4 4 8", say="{0} | {v}", needed=True),
        Line("left {n}", leaves, "left 1: 3 5", say="left {0} | {v}"),
        Line("sides", words, "sides: girls | boys", say="{v}", given=False),
        Line("key", str, "key: 1 | 2 means 12", say="key {v}", needed=True, given=False),
    ),
    bars.stems,
    head=lambda figure: "Stem-and-leaf diagram",
    rows=_stem_rows,
)
VENN = FigureKind(
    "Venn",
    "two or three sets; numbers or members in each part",
    (
        Line("sets", words, "sets: A B", say="", needed=True),
        Line("both", quantity, "both: 3"),
        Line("all", quantity, "all: 2"),
        Line("neither", quantity, "neither: 2"),
        Line("{name} only", quantity, "A only: 5"),
        Line("{name} and {name}", quantity, "A and B: 3"),
    ),
    sets.venn,
    head=lambda figure: f"Venn diagram of {', '.join(figure.value('sets', ()))}",
)
TREE = FigureKind(
    "tree",
    "probabilities of two or three events; the branches of a point add up to 1",
    (
        Line("first {name}", probability, "first red: 3/5", say="{0} {v}", needed=True),
        Line("{name} then {name}", probability, "red then blue: 2/4", say="{0} then {1} {v}"),
        Line("events", words, "events: first bead | second bead", say="", given=False),
    ),
    sets.tree,
    head=lambda figure: "Tree diagram",
)  # fmt: skip


def _table(figure: FigureLines) -> Rows:
    return list(figure.value("columns", ())), [
        list(entry.value) for entry in figure.entries if entry.line.key.startswith("row")
    ]


TABLE = FigureKind(
    "table",
    "rows and columns; the page shows them, nothing is drawn",
    (
        Line("columns", cells, "columns: time / s | speed / m s⁻¹", say="columns {v}", given=False, needed=True),
        Line("row {name}", cells, "row 1: 2 | 8", say="{v}"),
        Line("row", cells, "row 1: 2 | 8", say="{v}", many=True),
    ),
    rows=_table,
)
KINDS = (BOX, BAR, PIE, HISTOGRAM, STEM, VENN, TREE, TABLE)
