"""How a table keeps the width of a screen: closer columns, then words below each other, then a block a row."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

#: Spaces between columns: as many as there is room for.
GAPS = (3, 2, 1)
#: Between the fields of a block, and before all its lines but the first.
_BETWEEN, _INDENT = " · ", "  "


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table as lines of cells."""

    #: Lines of the head, then those of the rows; a cell of several lines has its rest in the lines below.
    head: list[list[str]]
    rows: list[list[str]]
    #: Spaces between two columns.
    gap: int


def fitted(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> Fitted | None:
    """The table within a width; None: it cannot be, as no word (an id, a sum) is ever cut.

    Args:
        width: In characters; None: any.
    """
    every = [head, *rows]
    whole = [max(len(row[at]) for row in every) for at in range(len(head))]
    if width is None:
        return Fitted([list(head)], [list(row) for row in rows], GAPS[0])
    between = len(head) - 1
    for gap in GAPS[:2]:
        if sum(whole) + gap * between <= width:
            return Fitted([list(head)], [list(row) for row in rows], gap)
    least = [max(_longest_word(row[at]) for row in every) for at in range(len(head))]
    for gap in GAPS[1:]:
        if sum(least) + gap * between <= width:
            widths = _narrowed(whole, least, width - gap * between)
            return Fitted(_lines(head, widths), [line for row in rows for line in _lines(row, widths)], gap)
    return None


def blocks(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a table that cannot be one: a block a row, its fields with their names; empty ones are left out."""
    found: list[str] = []
    for row in rows:
        first, *others = [f"{name}: {cell}" for name, cell in zip(head, row, strict=True) if cell.strip(" -")]
        found.append(first)
        line = ""
        for field in others:
            if line and len(_INDENT + line + _BETWEEN + field) > width:
                found += _folded(line, width)
                line = ""
            line = line + _BETWEEN + field if line else field
        found += _folded(line, width)
    return found


def _folded(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, initial_indent=_INDENT, subsequent_indent=_INDENT * 2,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _longest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _narrowed(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fill the room: the widest column that may be narrower gives first."""
    widths = list(whole)
    while sum(widths) > room:
        free = [at for at in range(len(widths)) if widths[at] > least[at]]
        widths[max(free, key=lambda at: widths[at])] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """A row as lines, each cell within its width."""
    cells = [
        textwrap.wrap(cell, max(width, 1), break_long_words=False, break_on_hyphens=False)
        if len(cell) > width
        else [cell]
        for cell, width in zip(row, widths, strict=True)
    ]
    height = max(map(len, cells), default=1)
    return [[cell[at] if at < len(cell) else "" for cell in cells] for at in range(height)]
