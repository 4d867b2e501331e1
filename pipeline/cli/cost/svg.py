"""The chart of costs as SVG, written here: nothing to install, and every text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from xml.sax.saxutils import escape

from pipeline.cli.cost.panels import Bar, Panel
from pipeline.cli.cost.scale import label, ticks
from pipeline.cli.text import money
from pipeline.records.redaction import printable

#: What is used, wasted, and possibly spent: part of a bar → its colour and name.
PARTS = (("used", "#2f6f9f", "used"), ("wasted", "#c0532d", "wasted"), ("more", "#d9d9d9", "possibly more"))
#: Pixels: the picture's width, a panel's drawing area, and the room for names, for the head and below.
WIDTH, PLOT_HEIGHT = 900, 260
_LEFT, _RIGHT, _HEAD, _FOOT, _ROW = 170, 90, 60, 70, 26
_KEY_LENGTH = 24


def svg_of(panels: Sequence[Panel]) -> str:
    """The whole picture: columns of days above, bars of steps below."""
    days, steps = panels
    top = _HEAD + PLOT_HEIGHT + _FOOT
    height = top + _HEAD + _ROW * max(1, len(steps.bars)) + _FOOT // 2
    inner = [*_legend(), *_columns(days, 0), *_rows(steps, top)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'role="img" font-family="sans-serif" font-size="12">',
        f"<title>{_text(days.title)}; {_text(steps.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *inner, "</svg>", "",
    ])  # fmt: skip


def _legend() -> Iterator[str]:
    x = WIDTH - _RIGHT - 260
    for _, colour, name in PARTS:
        yield f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>'
        yield _label(x + 17, 24, name)
        x += 30 + 8 * len(name)


def _columns(panel: Panel, top: int) -> Iterator[str]:
    yield _title(panel, top)
    marks = ticks(bar.whole for bar in panel.bars)
    base, left, width = top + _HEAD + PLOT_HEIGHT, _LEFT - 60, WIDTH - _LEFT - _RIGHT + 120
    for mark in marks:
        y = base - _share(mark, marks) * PLOT_HEIGHT
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#e4e4e4"/>'
        yield _label(left - 6, y + 4, label(mark, marks[1]), anchor="end")
    slot = width / max(1, len(panel.bars))
    every = -(-len(panel.bars) // 12)
    for number, bar in enumerate(panel.bars):
        x, y = left + slot * number + slot * 0.15, float(base)
        for usd, colour, name in _parts(bar):
            size = _share(usd, marks) * PLOT_HEIGHT
            y -= size
            yield _rect((x, y, slot * 0.7, size), colour, bar.key, name, usd)
        if number % every == 0:
            yield _label(x + slot * 0.35, base + 18, bar.key, anchor="middle")


def _rows(panel: Panel, top: int) -> Iterator[str]:
    yield _title(panel, top)
    marks = ticks(bar.whole for bar in panel.bars)
    width, bottom = WIDTH - _LEFT - _RIGHT, top + _HEAD + _ROW * max(1, len(panel.bars))
    for mark in marks:
        x = _LEFT + _share(mark, marks) * width
        yield f'<line x1="{x:.1f}" y1="{top + _HEAD - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#e4e4e4"/>'
        yield _label(x, bottom + 18, label(mark, marks[1]), anchor="middle")
    for number, bar in enumerate(panel.bars):
        x, y = float(_LEFT), top + _HEAD + _ROW * number
        yield _label(_LEFT - 8, y + 13, bar.key, anchor="end")
        for usd, colour, name in _parts(bar):
            size = _share(usd, marks) * width
            yield _rect((x, y, size, _ROW * 0.65), colour, bar.key, name, usd)
            x += size
        yield _label(x + 6, y + 13, money(bar.used + bar.wasted))


def _share(usd: Decimal, marks: Sequence[Decimal]) -> float:
    """Of the axis's length."""
    return float(usd / marks[-1])


def _parts(bar: Bar) -> Iterator[tuple[Decimal, str, str]]:
    for part, colour, name in PARTS:
        if usd := getattr(bar, part):
            yield usd, colour, name


def _rect(box: tuple[float, float, float, float], colour: str, key: str, name: str, usd: Decimal) -> str:
    x, y, width, height = box
    hover = f"<title>{_text(key)}: {money(usd)} {name}</title>"
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">{hover}</rect>'


def _title(panel: Panel, top: int) -> str:
    return f'<text x="{_LEFT - 60}" y="{top + 24}" font-weight="bold" fill="#333">{_text(panel.title)}</text>'


def _label(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{_text(shown(text))}</text>'


def shown(text: str) -> str:
    """A text as it fits beside a bar, without what a picture cannot hold."""
    text = printable(text)
    return text if len(text) <= _KEY_LENGTH else text[: _KEY_LENGTH - 1] + "…"


def _text(text: str) -> str:
    return escape(printable(text), {'"': "&quot;"})
