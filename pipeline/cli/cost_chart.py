"""`cost --plot`: two panels of bars, as SVG (nothing to install, every text escaped) or as PNG by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from pipeline.app.cost_report import Bar, Panel, Statement, panels
from pipeline.cli.text import money
from pipeline.errors import ConfigError
from pipeline.extras import not_installed
from pipeline.files import replace_file
from pipeline.records.redaction import printable

#: Part of a bar → its colour and name.
PARTS = (("used", "#2f6f9f", "used"), ("wasted", "#c0532d", "wasted"), ("more", "#d9d9d9", "possibly more"))
#: Lines across a chart, at most; characters of a bar's name.
_LINES, _KEY_LENGTH = 5, 24
#: Pixels: the picture's width, a panel's drawing area, and the room for names, for the head and below.
_WIDTH, _PLOT_HEIGHT, _LEFT, _RIGHT, _HEAD, _FOOT, _ROW = 900, 260, 170, 90, 60, 70, 26
_INCHES, _DPI = (9.0, 7.5), 120


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


def ticks(bars: Sequence[Bar]) -> list[tuple[Decimal, str]]:
    """Return equal round steps (1, 2 or 5 of a power of ten) from 0 to at least the largest bar, with their labels."""
    most = max((bar.whole for bar in bars), default=Decimal(0))
    step, number = Decimal(1), 1
    if most > 0:
        step = Decimal(10) ** (most.adjusted() - 1)
        while step * _LINES < most:
            step *= Decimal("2.5") if step.normalize().as_tuple().digits[0] == 2 else 2
        number = int((most / step).to_integral_value(ROUND_CEILING))
    exponent = step.normalize().as_tuple().exponent
    places = max(0, -exponent) if isinstance(exponent, int) else 0
    return [(step * n, f"${step * n:,.{places}f}") for n in range(number + 1)]


def _shown(text: str) -> str:
    """Return a text as it fits beside a bar, without what a picture cannot hold."""
    text = printable(text)
    return text if len(text) <= _KEY_LENGTH else text[: _KEY_LENGTH - 1] + "…"


# --- SVG ------------------------------------------------------------------------------------------


def svg_of(shown: Sequence[Panel]) -> str:
    """Return the chart: columns of days above, bars of steps below."""
    days, steps = shown
    top = _HEAD + _PLOT_HEIGHT + _FOOT
    height = top + _HEAD + _ROW * max(1, len(steps.bars)) + _FOOT // 2
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'role="img" font-family="sans-serif" font-size="12">',
        f"<title>{_text(days.title)}; {_text(steps.title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        *_legend(), *_columns(days), *_rows(steps, top), "</svg>", "",
    ])  # fmt: skip


def _legend() -> Iterator[str]:
    x = _WIDTH - _RIGHT - 260
    for _, colour, name in PARTS:
        yield f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>'
        yield _label(x + 17, 24, name)
        x += 30 + 8 * len(name)


def _columns(panel: Panel) -> Iterator[str]:
    yield _title(panel, 0)
    marks, base = ticks(panel.bars), _HEAD + _PLOT_HEIGHT
    left, width, scale = _LEFT - 60, _WIDTH - _LEFT - _RIGHT + 120, _PLOT_HEIGHT / float(marks[-1][0])
    for mark, name in marks:
        y = base - float(mark) * scale
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#e4e4e4"/>'
        yield _label(left - 6, y + 4, name, anchor="end")
    slot, every = width / max(1, len(panel.bars)), -(-len(panel.bars) // 12)
    for number, bar in enumerate(panel.bars):
        x, y = left + slot * number + slot * 0.15, float(base)
        for usd, colour, name in _parts(bar):
            y -= float(usd) * scale
            yield _rect((x, y, slot * 0.7, float(usd) * scale), colour, f"{bar.key}: {money(usd)} {name}")
        if number % every == 0:
            yield _label(x + slot * 0.35, base + 18, bar.key, anchor="middle")


def _rows(panel: Panel, top: int) -> Iterator[str]:
    yield _title(panel, top)
    marks, bottom = ticks(panel.bars), top + _HEAD + _ROW * max(1, len(panel.bars))
    scale = (_WIDTH - _LEFT - _RIGHT) / float(marks[-1][0])
    for mark, name in marks:
        x = _LEFT + float(mark) * scale
        yield f'<line x1="{x:.1f}" y1="{top + _HEAD - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#e4e4e4"/>'
        yield _label(x, bottom + 18, name, anchor="middle")
    for number, bar in enumerate(panel.bars):
        x, y = float(_LEFT), top + _HEAD + _ROW * number
        yield _label(_LEFT - 8, y + 13, bar.key, anchor="end")
        for usd, colour, name in _parts(bar):
            yield _rect((x, y, float(usd) * scale, _ROW * 0.65), colour, f"{bar.key}: {money(usd)} {name}")
            x += float(usd) * scale
        yield _label(x + 6, y + 13, money(bar.used + bar.wasted))


def _parts(bar: Bar) -> Iterator[tuple[Decimal, str, str]]:
    for part, colour, name in PARTS:
        if usd := getattr(bar, part):
            yield usd, colour, name


def _rect(box: tuple[float, float, float, float], colour: str, hover: str) -> str:
    x, y, width, height = box
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}">'
            f"<title>{_text(hover)}</title></rect>")  # fmt: skip


def _title(panel: Panel, top: int) -> str:
    return f'<text x="{_LEFT - 60}" y="{top + 24}" font-weight="bold" fill="#333">{_text(panel.title)}</text>'


def _label(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{_text(_shown(text))}</text>'


def _text(text: str) -> str:
    return escape(printable(text), {'"': "&quot;"})


# --- PNG ------------------------------------------------------------------------------------------


def png_of(shown: Sequence[Panel]) -> bytes:
    """Return the same chart, drawn by matplotlib.

    Raises:
        PackageMissing: matplotlib is not installed; the hint says how to install it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise not_installed("plot", "A .png", " installs it; an .svg needs no package.") from None
    figure = Figure(figsize=_INCHES, layout="constrained")
    above, below = figure.subplots(2, 1)
    _draw(above, shown[0], across=False)
    _draw(below, shown[1], across=True)
    handles, names = above.get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside upper right", ncols=len(names), frameon=False)
    out = io.BytesIO()
    FigureCanvasAgg(figure).print_png(out, pil_kwargs={"dpi": (_DPI, _DPI)})  # type: ignore[no-untyped-call]
    return out.getvalue()


def _draw(axes: Any, panel: Panel, *, across: bool) -> None:
    """Draw one panel; with `across` its bars lie, the first on top."""
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
    # A $ in a text would begin a formula of matplotlib's own.
    keys = [_shown(bar.key).replace("$", r"\$") for bar in panel.bars]
    places, begin = list(range(len(keys))), [0.0] * len(keys)
    for part, colour, name in PARTS:
        sizes = [float(getattr(bar, part)) for bar in panel.bars]
        if across:
            axes.barh(places, sizes, left=begin, color=colour, label=name)
        else:
            axes.bar(places, sizes, bottom=begin, color=colour, label=name)
        begin = [a + b for a, b in zip(begin, sizes, strict=True)]
    every = 1 if across else -(-max(1, len(keys)) // 12)
    marks = ticks(panel.bars)
    usd = {"ticks": [float(mark) for mark, _ in marks], "labels": [name.replace("$", r"\$") for _, name in marks]}
    named = {"ticks": places[::every], "labels": keys[::every], "fontsize": 8}
    if across:
        axes.set_xticks(**usd)
        axes.set_xlim(0, float(marks[-1][0]))
        axes.set_yticks(**named)
        axes.invert_yaxis()
    else:
        axes.set_yticks(**usd)
        axes.set_ylim(0, float(marks[-1][0]))
        axes.set_xticks(**named)
