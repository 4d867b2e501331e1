"""The table of kinds: their lines from kinds.txt, with who reads, draws and describes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.drawing import (
    arrows,
    bars,
    circles,
    circuits,
    plots,
    polygons,
    readers,
    sets,
    solids,
    values,
    waves,
)
from pipeline.drawing.canvas import Canvas
from pipeline.drawing.lines import FigureKind, FigureLines, Line, Rows, choice
from pipeline.drawing.values import cells, plain

_PAIR = re.compile(r"\(([^,()]+),\s*([^()]+?)\s*\)")
_TABLE = Path(__file__).with_name("kinds.txt")
_HEADER = re.compile(r"(?P<name>[^(:]+?)(?: \((?P<also>[^)]*)\))?: (?P<says>.*)\Z")


def _corners(figure: FigureLines) -> str:
    return "".join(figure.value("corners", ()))


def _polygon(figure: FigureLines) -> str:
    shape = figure.text("shape", "any")
    return f"{ {'regular': 'Regular polygon', 'any': 'Polygon'}.get(shape, shape.capitalize()) } {_corners(figure)}"


def _graph(figure: FigureLines) -> str:
    x, y = (figure.value(name) for name in "xy")
    return f"Graph of {y.label or 'y'} against {x.label or 'x'}" if x and y else "Graph"


def _label(figure: FigureLines, axis: str) -> str:
    found = figure.value(axis)
    return found.label if found else ""


def _series(figure: FigureLines) -> Rows:
    """Return the points of lines and of hidden curves; where there are several, each row names its own."""
    listed = [entry for key in ("points", "line", "curve") for entry in (*figure.all(key), *figure.all(f"{key} {{n}}"))]
    series = [
        (" ".join((entry.line.key.split(" ")[0], *entry.places)), re.findall(_PAIR, entry.text)) for entry in listed
    ]
    if figure.hides("function"):
        hidden = [entry.value for entry in figure.entries if entry.line.hidden == "function"]
        series += [(f"curve {n}", _heights(figure, curve)) for n, curve in enumerate(hidden, start=1)]
    heads = [_label(figure, name) or name for name in "xy"]
    if len(series) == 1:
        return heads, [list(pair) for pair in series[0][1]]
    return ["", *heads], [[name, *pair] for name, pairs in series for pair in pairs]


def _heights(figure: FigureLines, curve: Callable[[float], float | None]) -> list[tuple[str, str]]:
    """Return points of a curve at round numbers, as far as it lies within the axes."""
    x, y = figure.value("x"), figure.value("y")
    if not x or not y or None in (x.low, y.low):
        return []
    marks = plots.ticks(x.low, x.high, x.step or (90 if "°" in x.label and x.high - x.low >= 270 else None), 12)
    seen = [(mark, curve(mark)) for mark in marks]
    return [
        (plots.shown(at), plots.shown(round(high, 2)))
        for at, high in seen
        if high is not None and y.low <= high <= y.high
    ]


def _bars(figure: FigureLines) -> Rows:
    heads = [_label(figure, "x"), *(figure.value("groups", ()) or [_label(figure, "y")])]
    return heads, [[entry.places[0], *cells(entry.text)] for entry in figure.all("bar {name}")]


def _stem_rows(figure: FigureLines) -> Rows:
    return ["Stem", "Leaves"], [
        [f"{entry.places[0]} ({'left' if entry.line.key.startswith('left') else 'right'})", entry.text]
        for entry in figure.entries
        if entry.line.key[:4] in ("stem", "left")
    ]


def _table(figure: FigureLines) -> Rows:
    """Return the rows; one with a cell less than there are columns begins with its name, or year, unless counted."""
    heads = list(figure.value("columns", ()))
    rows = [entry for entry in figure.entries if entry.line.key.startswith("row")]
    counted = [entry.places[:1] in ((), (str(place),)) for place, entry in enumerate(rows, 1)]
    named = [not count and len(entry.value) == len(heads) - 1 for count, entry in zip(counted, rows, strict=True)]
    return heads, [[*entry.places[:name], *entry.value] for entry, name in zip(rows, named, strict=True)]


def _classes(figure: FigureLines) -> Rows:
    heads = [_label(figure, name) for name in "xy"]
    found = figure.all("class {n} to {n}")
    return heads, [[f"{plain(entry.places[0])} to {plain(entry.places[1])}", entry.text] for entry in found]


def _slices(figure: FigureLines) -> Rows:
    return ["", "Angle"], [[entry.places[0], entry.text] for entry in figure.all("slice {name}")]


_DRAW: dict[str, Callable[[FigureLines, Canvas], None]] = {
    "triangle": polygons.draw,
    "polygon": polygons.draw,
    "circle": circles.draw,
    "solid": solids.draw,
    "axes": plots.draw,
    "scatter graph": plots.draw,
    "motion graph": plots.draw,
    "number line": plots.number_line,
    "scale": plots.scale,
    "vectors": arrows.vectors,
    "bearings": arrows.bearings,
    "box plot": bars.boxes,
    "bar chart": bars.bars,
    "pie chart": bars.slices,
    "histogram": bars.histogram,
    "stem-and-leaf": bars.stems,
    "Venn": sets.venn,
    "tree": sets.tree,
    "circuit": circuits.draw,
    "rays": waves.rays,
    "free body": waves.free_body,
    "wave": waves.wave,
    "trace": waves.trace,
    "energy levels": waves.levels,
}
#: How descriptions begin that do not begin with the name of the kind.
_HEADS: dict[str, Callable[[FigureLines], str]] = {
    "triangle": lambda figure: f"Triangle {_corners(figure)}",
    "polygon": _polygon,
    "solid": lambda figure: figure.text("solid", "solid").capitalize(),
    "axes": _graph,
    "scatter graph": lambda figure: _graph(figure).replace("Graph", "Scatter graph", 1),
    "motion graph": _graph,
    "box plot": lambda figure: f"Box plot of {(figure.value('scale') or ('', '', ''))[2] or 'data'}",
    "stem-and-leaf": lambda figure: "Stem-and-leaf diagram",
    "Venn": lambda figure: f"Venn diagram of {', '.join(figure.value('sets', ()))}",
    "tree": lambda figure: "Tree diagram",
    "rays": lambda figure: f"Ray from {' to '.join(figure.value('media', ()))}",
    "trace": lambda figure: "Oscilloscope trace",
}
_ROWS: dict[str, Callable[[FigureLines], Rows]] = {
    "axes": _series,
    "scatter graph": _series,
    "motion graph": _series,
    "bar chart": _bars,
    "pie chart": _slices,
    "histogram": _classes,
    "stem-and-leaf": _stem_rows,
    "table": _table,
}


def _reader(name: str) -> Callable[[str], Any]:
    if "|" in name:
        return choice(*filter(None, name.split("|")))
    if name == "text":
        return str
    found: Callable[[str], Any] = getattr(readers, name, None) or getattr(values, name)
    return found


def _line(text: str) -> Line:
    key, reader, example, marks, say = (*text.split(" ~ "), "", "")[:5]
    listed = [mark.strip() for mark in marks.split(",")]
    return Line(
        key,
        _reader(reader),
        example,
        say="" if "quiet" in listed else say or None,
        given="told" not in listed,
        needed="needed" in listed,
        many="many" in listed,
        hidden=next((mark.removeprefix("hidden ") for mark in listed if mark.startswith("hidden ")), ""),
    )


def read_kinds() -> tuple[FigureKind, ...]:
    """Return the kinds, in their order."""
    found: dict[str, tuple[list[str], str, list[Line]]] = {}
    name = ""
    for row in _TABLE.read_text(encoding="utf-8").splitlines():
        if header := _HEADER.match(row) if row[:1] not in ("#", " ") else None:
            name = header["name"]
            found[name] = ((header["also"] or "").split(", "), header["says"], [])
        elif row.startswith("  = "):
            found[name][2].extend(found[row[4:]][2])
        elif row.startswith("  "):
            found[name][2].append(_line(row[2:]))
    return tuple(
        FigureKind(name, says, tuple(listed), _DRAW.get(name), _HEADS.get(name), _ROWS.get(name), tuple(also))
        for name, (also, says, listed) in found.items()
    )


KINDS = read_kinds()
