"""The map of a run's items: many of them as one drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline.app.run_trail import BATCH, BEGUN, CUT_OFF, INTERRUPTED, REUSED, RUNNING, UNWRITTEN, Items
from pipeline.records.statuses import COMPLETED, FAILED, PENDING

#: Up to so many items the table alone is shown; cells of the map at most, and in a row.
FEW, MOST_CELLS, COLUMNS = 60, 2_000, 100
#: The worst first: a cell shows the worst of its items.
WORST = (FAILED, CUT_OFF, INTERRUPTED, BEGUN, RUNNING, BATCH, PENDING, UNWRITTEN, COMPLETED, REUSED)
#: How a state is drawn: offset, length of a dash, width of the line; a cell is 10 by 10.
_SQUARES = {PENDING: (4, 2, 2), UNWRITTEN: (2, 6, 2), COMPLETED: (2, 6, 6), REUSED: (2, 6, 6)}
_WHOLE = (0, 10, 10)


def map_of(items: Items) -> dict[str, Any]:
    """Return the map: a path a state, and what each cell holds, run by run."""
    each = -(-len(items.words) // MOST_CELLS)
    held = [_held(items.words[at : at + each]) for at in range(0, len(items.words), each)]
    shown = [min(cell, key=WORST.index) for cell in held]
    paths: dict[str, list[str]] = {}
    for row in range(0, len(shown), COLUMNS):
        column = 0
        for word, same in groupby(shown[row : row + COLUMNS]):
            length = len(list(same))
            offset = _SQUARES.get(word, _WHOLE)[0]
            at = f"M{column * 10 + offset} {row // COLUMNS * 10 + 5}h{length * 10 - 2 * offset}"
            paths.setdefault(word, []).append(at)
            column += length
    return {
        "count": len(items.words), "each": each, "cells": len(shown), "columns": COLUMNS,
        "rows": -(-len(shown) // COLUMNS),
        "paths": [_path(word, paths[word]) for word in WORST if word in paths],
        "words": list(WORST), "held": ";".join(_runs(held)),
    }  # fmt: skip


def _held(words: Sequence[str]) -> dict[str, int]:
    first = words[0]
    return {first: len(words)} if words.count(first) == len(words) else dict(Counter(words))


def _path(word: str, parts: Sequence[str]) -> dict[str, Any]:
    _, dash, width = _SQUARES.get(word, _WHOLE)
    return {"word": word, "d": "".join(parts), "width": width, "dashes": f"{dash} {10 - dash}"}


def _runs(held: Sequence[Mapping[str, int]]) -> Iterable[str]:
    """Return the cells for a script: "40*6:50" says that each of the next 40 holds 50 items of the sixth state."""
    for cell, same in groupby(held):
        many = len(list(same))
        inside = ",".join(f"{WORST.index(word)}:{number}" for word, number in cell.items())
        yield f"{many}*{inside}" if many > 1 else inside
