"""Tables with a caption and scopes, and charts drawn from their data as SVG, always with the data as a table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.publish.html import Html, clean, el, join
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


_WIDTH, _HEIGHT = 340, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 326, 14, 192
_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?\Z")
#: More points or bars than a small drawing can hold.
_MOST = 20
_CHARTS = ("bar_chart", "line_graph", "scatter", "function_graph")

Points = Sequence[tuple[float, float]]


def figure(data: Mapping[str, Any], anchor: str) -> Html:
    """Return the figure with its caption and data.

    A shape (triangle, solid, …) is given by its parts and measures in the table: nothing is
    drawn that code did not compute. `anchor` is unique on the page.
    """
    drawing = _drawing(data, anchor)
    rows = [row(inline(cells[0]), *map(inline, cells[1:])) for cells in data["rows"] if cells]
    caption = "The same data" if drawing else inline(data["alt"])
    function = data.get("function") or ""
    return join([
        el("figure", drawing, el("figcaption", inline(data["alt"]))) if drawing else None,
        el("p", f"y = {function}") if function and data["kind"] == "function_graph" and not drawing else None,
        table(caption, [inline(cell) for cell in data["columns"]], [el("tbody", rows)], cls="data"),
    ])  # fmt: skip


def _drawing(data: Mapping[str, Any], anchor: str) -> Html | None:
    kind = data["kind"]
    rows = [row for row in data["rows"] if len(row) >= 2]
    if kind not in _CHARTS or not 2 <= len(rows) <= _MOST:
        return None
    heights = [_number(row[1]) for row in rows]
    places = list(range(len(rows))) if kind == "bar_chart" else [_number(row[0]) for row in rows]
    points = [(float(x), y) for x, y in zip(places, heights, strict=True) if x is not None and y is not None]
    if len(points) != len(rows):
        return None
    shown = _bars(rows, points) if kind == "bar_chart" else _plot(points, joined=kind != "scatter")
    names = [clean(name) for name in data["columns"][:2]]
    return el(
        "svg",
        el("title", clean(re.sub(r"\\[()\[\]]", "", data["alt"])), id=f"{anchor}-t"),
        shown,
        _axis_names(names),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH,
        height=_HEIGHT,
        role="img",
        aria_labelledby=f"{anchor}-t",
    )


def _number(value: str) -> float | None:
    found = _NUMBER.match(clean(value).strip().lstrip("£").replace(",", ""))
    return float(found[0].replace("−", "-")) if found else None


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from at or below `low` to at or above `high`; 0 is among them where it lies near."""
    low, high = min(low, 0.0) if low < high / 2 or low < 0 else low, max(high, 0.0)
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if span / (factor * power) <= 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [count * step for count in range(first, last + 1)]


def _at(value: float, ticks: Sequence[float], start: int, end: int) -> float:
    return start + (value - ticks[0]) / ((ticks[-1] - ticks[0]) or 1) * (end - start)


def _n(value: float) -> str:
    """Return a coordinate or a tick as text: the same on every machine."""
    return f"{round(value, 2):g}".replace("-0", "0") if abs(value) < 0.005 else f"{round(value, 2):g}"


def _label(value: float) -> str:
    return _n(value).replace("-", "−")


def _grid_y(ticks: Sequence[float]) -> list[Html]:
    out = []
    for tick in ticks:
        y = _n(_at(tick, ticks, _BOTTOM, _TOP))
        out.append(el("path", d=f"M{_LEFT} {y}H{_RIGHT}", stroke="currentColor", stroke_opacity="0.25"))
        out.append(el("text", _label(tick), x=_LEFT - 8, y=y, dy="0.35em", text_anchor="end"))
    return out


def _bars(rows: Sequence[Sequence[str]], points: Points) -> list[Html]:
    ticks = _ticks(min(0.0, *(y for _, y in points)), max(y for _, y in points))
    floor = _at(0.0, ticks, _BOTTOM, _TOP)
    wide = (_RIGHT - _LEFT) / len(points)
    out = _grid_y(ticks)
    room = int(wide / 8)
    for index, (_, value) in enumerate(points):
        x, y = _LEFT + (index + 0.2) * wide, _at(value, ticks, _BOTTOM, _TOP)
        top, height = min(y, floor), abs(floor - y)
        out.append(el("rect", x=_n(x), y=_n(top), width=_n(0.6 * wide), height=_n(height)))
        name = clean(rows[index][0])
        short = name if len(name) <= room else name[: max(room - 1, 1)] + "…"
        out.append(el("text", short, x=_n(x + 0.3 * wide), y=_BOTTOM + 19, text_anchor="middle"))
    return out


def _plot(points: Points, *, joined: bool) -> list[Html]:
    across = _ticks(min(x for x, _ in points), max(x for x, _ in points))
    up = _ticks(min(y for _, y in points), max(y for _, y in points))
    out = _grid_y(up)
    for tick in across:
        x = _n(_at(tick, across, _LEFT, _RIGHT))
        out.append(el("path", d=f"M{x} {_TOP}V{_BOTTOM}", stroke="currentColor", stroke_opacity="0.25"))
        out.append(el("text", _label(tick), x=x, y=_BOTTOM + 19, text_anchor="middle"))
    spots = [(_n(_at(x, across, _LEFT, _RIGHT)), _n(_at(y, up, _BOTTOM, _TOP))) for x, y in sorted(points)]
    if joined:
        path = "M" + "L".join(f"{x} {y}" for x, y in spots)
        out.append(el("path", d=path, fill="none", stroke="currentColor", stroke_width="2"))
    out += [el("circle", cx=x, cy=y, r="3.5", fill="currentColor") for x, y in spots]
    return out


def _axis_names(names: Sequence[str]) -> list[Html]:
    across, up = (name if len(name) <= 34 else name[:33] + "…" for name in names)
    middle = (_TOP + _BOTTOM) // 2
    return [
        el("text", across, x=(_LEFT + _RIGHT) // 2, y=_HEIGHT - 4, text_anchor="middle"),
        el("text", up if len(up) <= 22 else up[:21] + "…", x=13, y=middle, text_anchor="middle",
           transform=f"rotate(-90 13 {middle})"),
    ]  # fmt: skip


#: Squared paper, 10 by 10, for a graph that is drawn by hand.
GRID_PATH = "".join(f"M{n * 10} 0V100M0 {n * 10}H100" for n in range(11))


def squared_paper() -> Html:
    """Return a printed grid for an answer that is a drawing."""
    path = el("path", d=GRID_PATH, fill="none", stroke="currentColor", stroke_width="0.3")
    return el("svg", path, viewBox="-1 -1 102 102", width="302", height="302", aria_hidden="true")
