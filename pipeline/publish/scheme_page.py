"""The scheme of work: one table of all lessons in teaching order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline.publish import tables
from pipeline.publish.html import Html, clean, el, join
from pipeline.publish.index_page import count
from pipeline.publish.page import Page
from pipeline.publish.prose import inline
from pipeline.publish.view import TYPES, CourseView

PATH = "scheme.html"
_COLUMNS = ("No", "Lesson", "Type", "Minutes")
_MINUTES = len(_COLUMNS) - 1


def build(view: CourseView) -> Page:
    """scheme.html."""
    entries = list(view.entries.values())
    blocks = [(block, list(rows)) for block, rows in groupby(entries, key=lambda entry: clean(entry.get("block", "")))]
    total = sum(int(entry.get("minutes", 0)) for entry in entries)
    foot = el("tr", el("th", "Total", scope="row", colspan=_MINUTES), el("td", hours(total), cls="r"))
    body = join(
        [
            el("h1", "Scheme of work"),
            el("p", f"{count(len(entries), 'lesson')} in teaching order.", cls="lede"),
            tables.table(
                "Lessons by block",
                _COLUMNS,
                [_block(view, block, rows) for block, rows in blocks],
                foot=foot,
                right=_MINUTES,
            ),
        ]
    )
    return Page(PATH, "Scheme of work", body)


def hours(minutes: int) -> str:
    """Minutes as hours: 90 → "1.5 h"."""
    return f"{minutes / 60:.1f}".removesuffix(".0") + "\u202fh"


def _block(view: CourseView, block: str, rows: Sequence[Mapping[str, Any]]) -> Html:
    minutes = sum(int(entry.get("minutes", 0)) for entry in rows)
    head = join([inline(block or "Lessons"), el("span", hours(minutes), cls="sub")])
    return el("tbody", tables.group_row(head, len(_COLUMNS)), [_entry(view, entry) for entry in rows])


def _entry(view: CourseView, entry: Mapping[str, Any]) -> Html:
    order = int(entry["order"])
    found = next((lesson for lesson in view.lessons if lesson.order == order), None)
    if found:
        name: object = el("a", inline(found.title), href=f"lessons/{found.file}.html")
    else:
        name = join([inline(entry.get("label", "")), " (not in this course)"])
    numbers = [view.outcome_names.get(ref, ref).split(" ")[0] for ref in entry.get("outcome_refs", ())]
    codes = el("span", _codes(numbers), cls="sub")
    kind = TYPES.get(entry.get("lesson_type", ""), "Lesson")
    return tables.row(order, join([name, codes]), kind, entry.get("minutes", ""), right=_MINUTES)


def _codes(numbers: Sequence[str]) -> str:
    few = 6
    shown = ", ".join(clean(number) for number in numbers[:few])
    return f"{shown} and {len(numbers) - few} more" if len(numbers) > few else shown
