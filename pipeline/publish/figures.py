"""Tables with a caption and scopes, figures with their data, and squared paper."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.html import Html, el, join
from pipeline.publish.prose import LONG_FORMULA, inline

#: More columns than fit a phone.
_MANY_COLUMNS = 4
_ANNOTATION = re.compile(r"<annotation[^>]*>(.*?)</annotation>", re.DOTALL)


def table(
    caption: object,
    head: Sequence[object],
    body: Sequence[Html],
    *,
    foot: Html | None = None,
    right: int = -1,
    cls: str = "",
) -> Html:
    """Return a table.

    Args:
        caption: Shown above it.
        head: Column headings.
        body: Its tbody elements.
        foot: A row for tfoot.
        right: The column whose numbers are aligned right.
        cls: Class of the table.
    """
    headings = [el("th", cell, scope="col", cls="r" if place == right else None) for place, cell in enumerate(head)]
    made = el(
        "table",
        el("caption", caption),
        el("thead", el("tr", headings)),
        body,
        el("tfoot", foot) if foot else None,
        cls=cls or None,
    )
    longest = max((len(source) for source in _ANNOTATION.findall(made)), default=0)
    if len(head) <= _MANY_COLUMNS and longest <= LONG_FORMULA:
        return el("div", made, cls="scroll")
    return el("div", made, cls="scroll", role="group", tabindex="0", aria_label="Table, scrolls sideways")


def row(head: object, *cells: object, right: int = -1) -> Html:
    """Return a row whose first cell is its heading; `right` counts from 0 with the heading."""
    made = [el("td", cell, cls="r" if place == right else None) for place, cell in enumerate(cells, 1)]
    return el("tr", el("th", head, scope="row"), made)


def group_row(head: object, columns: int) -> Html:
    """Return a row that heads a tbody."""
    return el("tr", el("th", head, scope="rowgroup", colspan=columns))


def figure(data: Mapping[str, Any], anchor: str) -> Html:
    """Return a figure with its caption and its data; `anchor` is unique on the page."""
    drawing, words, (columns, rows) = Html(draw.svg(data, anchor)), draw.alt(data), draw.table(data)
    body = el("tbody", [row(inline(cells[0]), *map(inline, cells[1:])) for cells in rows])
    heads = [inline(cell) or "\u2013" for cell in columns]
    caption = draw.title(data)
    if not drawing:
        # The data need not be said twice.
        said = caption or words.partition(":")[0]
        return table(inline(said), heads, [body], cls="data") if rows else el("p", inline(words))
    shown = el("figure", drawing, el("figcaption", inline(caption)) if caption else None)
    same = table("The same data", heads, [body], cls="data") if rows else None
    return join([shown, el("details", el("summary", "The data of this figure"), same) if same else None])


#: Squared paper, 10 by 10, for a graph that is drawn by hand.
GRID_PATH = "".join(f"M{n * 10} 0V100M0 {n * 10}H100" for n in range(11))


def squared_paper() -> Html:
    """Return a printed grid for an answer that is a drawing."""
    path = el("path", d=GRID_PATH, fill="none", stroke="currentColor", stroke_width="0.3")
    return el("svg", path, viewBox="-1 -1 102 102", width="302", height="302", aria_hidden="true")
