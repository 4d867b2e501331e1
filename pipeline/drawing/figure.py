"""Figures as lessons have them, {"kind", "lines"}: their faults, numbers, description, data and drawing."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pipeline.drawing import lines
from pipeline.drawing.kinds import KINDS
from pipeline.drawing.lines import FigureEntry, FigureKind, FigureLines
from pipeline.drawing.values import FigureFault, plain, printed_numbers


def _plain_name(name: str) -> str:
    return re.sub(r"[-_ ]+", " ", name.strip().lower()).removesuffix(" diagram")


_NAMES = {_plain_name(name): kind for kind in KINDS for name in (kind.name, *kind.also) if name}
#: Longer descriptions are cut: the data are in the table.
_LONGEST_ALT = 150

Data = Mapping[str, Any]


def faults(figure: Data) -> list[str]:
    """Return what is wrong with a figure; empty where it can be drawn."""
    return list(_read(figure).faults)


def warnings(figure: Data) -> list[str]:
    """Return what looks wrong with a figure that can be drawn."""
    return list(_read(figure).warnings)


def numbers(figure: Data) -> list[str]:
    """Return the numbers that a figure gives, as printed, in its order."""
    read = _read(figure)
    given = [entry for entry in read.entries if entry.line.given and not read.hides(entry.line.hidden)]
    return list(dict.fromkeys(found for entry in given for found in printed_numbers(_data(entry))))


def title(figure: Data) -> str:
    """Return the caption its author gave it, or nothing."""
    return _read(figure).text("title")


def alt(figure: Data) -> str:
    """Return a description of at most 150 characters: all that is given, nothing that is sought.

    Where the data are longer, the rest is in the table.
    """
    return _alt(_kind(figure), _read(figure))[0]


def description(figure: Data) -> str:
    """Return the whole description, however long: for a drawing that has no table beside it."""
    return _alt(_kind(figure), _read(figure), longest=sys.maxsize)[0]


def table(figure: Data) -> tuple[list[str], list[list[str]]]:
    """Return the data as column heads and rows; two empty lists where the description says all."""
    kind, read = _kind(figure), _read(figure)
    if kind and kind.rows:
        heads, rows = kind.rows(read)
        if rows:
            return heads, rows
    if kind and _alt(kind, read)[1]:
        return ["Given"], [[_said(read, entry)] for entry in read.entries if _said(read, entry)]
    return [], []


def svg(figure: Data, prefix: str) -> str:
    """Return the drawing as one element; empty where a figure has faults or is a table."""
    kind, read = _kind(figure), _read(figure)
    if kind is None or kind.draw is None or read.faults:
        return ""
    return read.canvas.element(_alt(kind, read)[0], prefix)


def prompt_lines() -> list[str]:
    """Return the kinds with their lines, one kind a line."""
    said: dict[tuple[lines.Line, ...], str] = {}
    out = []
    for kind in KINDS:
        shown = "; ".join(dict.fromkeys(line.example for line in kind.lines))
        out.append(f"{kind.name} ({kind.says})" + (f": {shown}" if kind.lines not in said else ""))
        said[kind.lines] = kind.name
    return out


def _kind(figure: Data) -> FigureKind | None:
    return _NAMES.get(_plain_name(str(figure.get("kind", ""))))


def _read(figure: Data) -> FigureLines:
    return _read_lines(_kind(figure), str(figure.get("kind", "")), tuple(map(str, figure.get("lines", ()))))


@lru_cache(maxsize=512)
def _read_lines(kind: FigureKind | None, name: str, raw: tuple[str, ...]) -> FigureLines:
    if kind is None:
        return FigureLines(faults=[f"no kind '{name[:40]}'; there are: {', '.join(one.name for one in KINDS)}"])
    figure = lines.read(raw, (lines.TITLE, *kind.lines))
    if kind.rows and not kind.draw and not figure.faults:
        heads, rows = kind.rows(figure)
        uneven = [" | ".join(row) for row in rows if len(row) != len(heads)]
        figure.faults += [f"'{row}' is not one cell for each of the {len(heads)} columns" for row in uneven]
    if kind.draw and not figure.faults:
        try:
            kind.draw(figure, figure.canvas)
            figure.canvas.element("", "")
        except FigureFault as fault:
            figure.faults.append(str(fault))
        except ArithmeticError:
            figure.faults.append("nothing can be drawn from these values")
    return figure


def _said(figure: FigureLines, entry: FigureEntry) -> str:
    """Return how the description says a line; of what is hidden, the name alone."""
    if not figure.hides(entry.line.hidden):
        return entry.said()
    return " ".join(entry.places) or ("a curve" if entry.line.hidden == "function" else f"{entry.line.hidden} not told")


def _data(entry: FigureEntry) -> str:
    """Return the numbers' part of an entry: its value, and its places where they are numbers."""
    places = entry.places if entry.line.key in ("class {n} to {n}", "force at {n}°") else ()
    return " | ".join((*map(plain, places), entry.text))


def _alt(kind: FigureKind | None, figure: FigureLines, longest: int = _LONGEST_ALT) -> tuple[str, bool]:
    """Return the description and whether it had to be cut."""
    if kind is None:
        return "", False
    head = figure.text("title") or (kind.head(figure) if kind.head else kind.name[0].upper() + kind.name[1:])
    parts = [_said(figure, entry) for entry in figure.entries]
    said = _sentence(head, [part for part in parts if part])
    if len(said) <= longest:
        return said, False
    ending = "; data in the table"
    kept: list[str] = []
    for part in filter(None, parts):
        if len(_sentence(head, [*kept, part], ending)) > longest:
            break
        kept.append(part)
    return _sentence(head[: longest - len(ending) - 1], kept, ending), True


def _sentence(head: str, parts: Sequence[str], ending: str = "") -> str:
    return f"{head.rstrip('.')}{': ' if parts else ''}{', '.join(parts)}{ending}."
