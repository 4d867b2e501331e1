"""`cost --plot`: two panels of bars, as SVG (nothing to install, every text escaped) or as PNG by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from pipeline.app.cost_bars import Bar, Panel, panels, ticks
from pipeline.app.cost_report import Statement
from pipeline.app.words import money
from pipeline.errors import ConfigError
from pipeline.extras import not_installed
from pipeline.files import replace_file
from pipeline.records.redaction import printable

#: Part of a bar → its colour and name.
PARTS = (("used", "#2f6f9f", "used"), ("wasted", "#c0532d", "wasted"), ("more", "#d9d9d9", "possibly more"))
#: Characters of a bar's name.
_KEY_LENGTH = 24
#: Pixels: the picture's width, a panel's drawing area, and the room for names, for the head and below.
_WIDTH, _PLOT_HEIGHT, _LEFT, _RIGHT, _HEAD, _FOOT, _ROW = 900, 260, 170, 90, 60, 70, 26
_GRID, _INK, _DPI = "#e4e4e4", "#333", 100


def check(file: Path) -> None:
    """Refuse a file of another kind before anything is read.

    Raises:
        ConfigError: Its name ends otherwise.
    """
    if file.suffix.lower() not in (".svg", ".png"):
        raise ConfigError(f"--plot {file} is neither an .svg nor a .png.", code="unknown_chart_format",
                          hint="End its name in .svg or .png: --plot costs.svg")  # fmt: skip


def draw(statement: Statement, file: Path) -> None:
    """Write the chart; a file of that name is replaced at once, or not at all.

    Raises:
        ConfigError: It cannot be written, or a .png is asked for and matplotlib is not installed.
    """
    shown = panels(statement)
    data = png_of(shown) if file.suffix.lower() == ".png" else svg_of(shown).encode()
    try:
        replace_file(file, data)
    except OSError as error:
        raise ConfigError(f"The chart {file} cannot be written: {error.strerror}.", code="file_not_written") from None


class Box(NamedTuple):
    """A filled rectangle, in pixels from the top left corner; one of a bar says what it stands for."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    hover: str = ""


class Caption(NamedTuple):
    """A text whose line stands at y."""

    x: float
    y: float
    text: str
    #: start, middle or end: which part of the text is at x.
    anchor: str = "start"
    bold: bool = False


def shapes_of(shown: Sequence[Panel]) -> tuple[int, list[Box | Caption]]:
    """Return the chart's height and what is drawn: columns of days above, bars of steps below."""
    days, steps = shown
    top = _HEAD + _PLOT_HEIGHT + _FOOT
    height = top + _HEAD + _ROW * max(1, len(steps.bars)) + _FOOT // 2
    return height, [Box(0, 0, _WIDTH, height, "white"), *_legend(), *_columns(days), *_rows(steps, top)]


def _legend() -> Iterator[Box | Caption]:
    x = _WIDTH - _RIGHT - 260
    for _, colour, name in PARTS:
        yield Box(x, 14, 12, 12, colour)
        yield Caption(x + 17, 24, name)
        x += 30 + 8 * len(name)


def _columns(panel: Panel) -> Iterator[Box | Caption]:
    yield Caption(_LEFT - 60, 24, panel.title, bold=True)
    marks, base = ticks(panel.bars), _HEAD + _PLOT_HEIGHT
    left, width, scale = _LEFT - 60, _WIDTH - _LEFT - _RIGHT + 120, _PLOT_HEIGHT / float(marks[-1][0])
    for mark, name in marks:
        y = base - float(mark) * scale
        yield Box(left, y - 0.5, width, 1, _GRID)
        yield Caption(left - 6, y + 4, name, "end")
    slot, every = width / max(1, len(panel.bars)), -(-len(panel.bars) // 12)
    for number, bar in enumerate(panel.bars):
        x, y = left + slot * number + slot * 0.15, float(base)
        for usd, colour, name in _parts(bar):
            y -= float(usd) * scale
            yield Box(x, y, slot * 0.7, float(usd) * scale, colour, f"{bar.key}: {money(usd)} {name}")
        if number % every == 0:
            yield Caption(x + slot * 0.35, base + 18, _short(bar.key), "middle")


def _rows(panel: Panel, top: int) -> Iterator[Box | Caption]:
    yield Caption(_LEFT - 60, top + 24, panel.title, bold=True)
    marks, bottom = ticks(panel.bars), top + _HEAD + _ROW * max(1, len(panel.bars))
    scale = (_WIDTH - _LEFT - _RIGHT) / float(marks[-1][0])
    for mark, name in marks:
        x = _LEFT + float(mark) * scale
        yield Box(x - 0.5, top + _HEAD - 8, 1, bottom - top - _HEAD + 8, _GRID)
        yield Caption(x, bottom + 18, name, "middle")
    for number, bar in enumerate(panel.bars):
        x, y = float(_LEFT), top + _HEAD + _ROW * number
        yield Caption(_LEFT - 8, y + 13, _short(bar.key), "end")
        for usd, colour, name in _parts(bar):
            yield Box(x, y, float(usd) * scale, _ROW * 0.65, colour, f"{bar.key}: {money(usd)} {name}")
            x += float(usd) * scale
        yield Caption(x + 6, y + 13, money(bar.used + bar.wasted))


def _parts(bar: Bar) -> Iterator[tuple[Decimal, str, str]]:
    for part, colour, name in PARTS:
        if usd := getattr(bar, part):
            yield usd, colour, name


def _short(key: str) -> str:
    """Return a bar's name as it fits beside it."""
    return key if len(key) <= _KEY_LENGTH else key[: _KEY_LENGTH - 1] + "…"


def svg_of(shown: Sequence[Panel]) -> str:
    """Return the chart as SVG; what a part of a bar stands for is shown under the mouse."""
    height, shapes = shapes_of(shown)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'role="img" font-family="sans-serif" font-size="12">',
        f"<title>{_text('; '.join(panel.title for panel in shown))}</title>",
    ]
    for each in shapes:
        if isinstance(each, Box):
            hover = f"<title>{_text(each.hover)}</title>" if each.hover else ""
            lines.append(f'<rect x="{each.x:.1f}" y="{each.y:.1f}" width="{each.width:.1f}" '
                         f'height="{each.height:.1f}" fill="{each.colour}">{hover}</rect>')  # fmt: skip
        else:
            weight = ' font-weight="bold"' if each.bold else ""
            lines.append(f'<text x="{each.x:.1f}" y="{each.y:.1f}" text-anchor="{each.anchor}"{weight} '
                         f'fill="{_INK}">{_text(each.text)}</text>')  # fmt: skip
    return "\n".join([*lines, "</svg>", ""])


def _text(text: str) -> str:
    return escape(printable(text), {'"': "&quot;"})


def png_of(shown: Sequence[Panel]) -> bytes:
    """Return the same chart, drawn by matplotlib.

    Raises:
        PackageMissing: matplotlib is not installed; the hint says how to install it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle
    except ImportError:
        raise not_installed("plot", "A .png", " installs it; an .svg needs no package.") from None
    height, shapes = shapes_of(shown)
    figure = Figure(figsize=(_WIDTH / _DPI, height / _DPI))
    sides = {"start": "left", "middle": "center", "end": "right"}
    for each in shapes:
        x, y = each.x / _WIDTH, 1 - each.y / height
        if isinstance(each, Box):
            size = (each.width / _WIDTH, -each.height / height)
            figure.add_artist(Rectangle((x, y), *size, color=each.colour, linewidth=0, transform=figure.transFigure))
        else:
            # A $ in a text would begin a formula of matplotlib's own.
            figure.text(x, y, printable(each.text), ha=sides[each.anchor], va="baseline", fontsize=8.5, color=_INK,
                        fontweight="bold" if each.bold else "normal", parse_math=False)  # fmt: skip
    out = io.BytesIO()
    FigureCanvasAgg(figure).print_png(out, pil_kwargs={"dpi": (_DPI, _DPI)})  # type: ignore[no-untyped-call]
    return out.getvalue()
