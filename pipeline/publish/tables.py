"""Tables with a caption and scopes; a wide one scrolls in a labelled region that takes the focus."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.publish.html import Html, el
from pipeline.publish.prose import LONG_FORMULA

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
    """A table.

    Args:
        caption: Stands above it.
        head: Column headings.
        body: Its tbody elements.
        foot: A row for tfoot.
        right: The column whose numbers stand at the right.
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
    """A row whose first cell is its heading; `right` counts from 0 with the heading."""
    made = [el("td", cell, cls="r" if place == right else None) for place, cell in enumerate(cells, 1)]
    return el("tr", el("th", head, scope="row"), made)


def group_row(head: object, columns: int) -> Html:
    """A row that heads a tbody."""
    return el("tr", el("th", head, scope="rowgroup", colspan=columns))
