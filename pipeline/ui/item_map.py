"""The items of a run: how each stands, the counts, a page of them, and the map of many of them as one drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED, FAILED, PENDING
from pipeline.records.tasks import TaskTable
from pipeline.ui.trail import Trail
from pipeline.ui.watch import RunNow

#: Up to so many items the table alone is shown; cells of the map at most, and in a row; rows of a page.
FEW, MOST_CELLS, COLUMNS, PAGE = 60, 2_000, 100, 100
RUNNING, CUT_OFF, REUSED, INTERRUPTED = "running", "cut off", "reused", "interrupted"
PERSON, BATCH = "waits for a person", "waits for a batch"
#: The worst first: a cell shows the worst of its items.
WORST = (FAILED, CUT_OFF, INTERRUPTED, RUNNING, BATCH, PENDING, COMPLETED, REUSED)
#: As counts and bars show them.
ORDER = (COMPLETED, REUSED, FAILED, RUNNING, BATCH, CUT_OFF, INTERRUPTED, PENDING)
#: How a state is drawn: offset, length of a dash, width of the line; a cell is 10 by 10.
_SQUARES = {PENDING: (4, 2, 2), COMPLETED: (2, 6, 6), REUSED: (2, 6, 6)}
_WHOLE = (0, 10, 10)


@dataclass(frozen=True)
class Items:
    """The items of one visit, in their order."""

    path: str
    names: Sequence[str]
    #: The state of each.
    words: Sequence[str]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Return how many are in each state, in the order of the bar."""
        found = Counter(self.words)
        return [(word, found[word]) for word in ORDER if found[word]]


def visits(state: RunState) -> list[str]:
    """Return the visits that have items, in order of their start."""
    begun = {path for path, _ in _begun(state)}
    return [path for path in state.steps if state.tasks.get(path) or path in begun]


def items_of(now: RunNow, trail: Trail, path: str) -> Items:
    """Return how the items of a visit stand, from the fold alone."""
    state = now.state
    table = state.tasks.get(path, {})
    ended = table.incomplete() if isinstance(table, TaskTable) else table
    others: dict[str, str] = {name: FAILED for name, task in ended.items() if task.status == FAILED}
    if state.inherited:
        others |= {name: REUSED for name, task in table.items() if task.seq <= state.inherited and name not in others}
    sent = {(call.path, call.task) for call in state.open_calls.values() if call.batch}
    word = open_word(now)
    for place, task in _begun(state):
        if place == path and (task not in table or task in ended):
            others[task] = BATCH if (place, task) in sent and word == RUNNING else word
    others |= {name: PENDING for name in _to_come(state, path) if name not in table and name not in others}
    names = trail.orders[path].names(table.keys() | others.keys() if others else table.keys())
    return Items(path, names, [others.get(name, COMPLETED) for name in names] if others else [COMPLETED] * len(names))


def open_word(now: RunNow) -> str:
    """Return how work stands that has begun and not ended: it runs only while a living process owns the run."""
    return RUNNING if now.owned else CUT_OFF if now.gone else INTERRUPTED


def _begun(state: RunState) -> Iterable[tuple[str, str]]:
    """Return (path, task) of items that have begun and have no end."""
    heard = {(path, task) for path, task, _ in state.memo if task is not None}
    return heard | state.unknown_tasks | state.submitted.keys()


def _to_come(state: RunState, path: str) -> list[str]:
    """Return the items that there are to be, where that is recorded: the lessons of a course."""
    sow = state.steps.get("sow#1")
    if state.pipeline != "lessons" or path != "lessons#1" or sow is None:
        return []
    total, sample = int(sow.outputs.get("lesson_count") or 0), state.execution.get("sample")
    return [f"lessons/{number}" for number in range(1, min(total, int(sample or total)) + 1)]


def page(items: Items, word: str, start: int) -> tuple[list[int], int]:
    """Return the places (from 0) of a page of items, and the number (from 1) that the next one begins with; 0: none.

    Args:
        word: Only items in this state; "": all.
        start: The number of the first item.
    """
    places = range(max(start - 1, 0), len(items.names))
    found: list[int] = []
    for place in places:
        if not word or items.words[place] == word:
            if len(found) == PAGE:
                return found, place + 1
            found.append(place)
    return found, 0


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
