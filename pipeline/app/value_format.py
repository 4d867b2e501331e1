"""Values and their differences in a few words, for screens; the whole of them is in --json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pipeline.app.words import one_line
from pipeline.records.values import is_reference
from pipeline.travel.differences import ADDED, REMOVED, Changes

#: Characters of a value that are shown.
WIDTH = 60


def brief(value: Any, width: int = WIDTH) -> str:
    """Return a value on one line, cut; a long one that was not read by its size."""
    if is_reference(value):
        return f"({value['bytes']:,} bytes)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, width) or '""'


def arrow(before: Any, after: Any, width: int = WIDTH) -> str:
    """Return `old → new`; what was not there before (Ellipsis) is left out."""
    return brief(after, width) if before is ... else f"{brief(before, width)} → {brief(after, width)}"


def change_lines(changes: Changes, indent: str) -> Iterator[str]:
    """Yield a line for each difference that was kept, and how many more there are."""
    for change in changes.told:
        place = f"{change.place}: " if change.place else ""
        if change.kind == ADDED:
            line = f"+ {place}{brief(change.after) if change.after is not None else '(added)'}"
        elif change.kind == REMOVED:
            line = f"- {place}{brief(change.before) if change.before is not None else '(gone)'}"
        else:
            line = f"~ {place}{arrow(change.before, change.after)}"
        yield indent + line
    if changes.left_out:
        yield f"{indent}… and {changes.left_out:,} more"
