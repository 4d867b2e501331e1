"""The chart of costs as PNG, by matplotlib: an extra, loaded only here and only when a PNG is asked for."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from pipeline.cli.cost.panels import Panel
from pipeline.cli.cost.scale import label, ticks
from pipeline.cli.cost.svg import PARTS, shown
from pipeline.extras import not_installed

_INCHES, _DPI = (9.0, 7.5), 120


def png_of(panels: Sequence[Panel]) -> bytes:
    """The picture: columns of days above, bars of steps below.

    Raises:
        PackageMissing: matplotlib is not installed; the hint says how to install it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise not_installed("plot", "A .png", " installs it; an .svg needs nothing.") from None
    figure = Figure(figsize=_INCHES, layout="constrained")
    above, below = figure.subplots(2, 1)
    _draw(above, panels[0], across=False)
    _draw(below, panels[1], across=True)
    handles, names = above.get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside upper right", ncols=len(names), frameon=False)
    out = io.BytesIO()
    FigureCanvasAgg(figure).print_png(out, pil_kwargs={"dpi": (_DPI, _DPI)})  # type: ignore[no-untyped-call]
    return out.getvalue()


def _draw(axes: Any, panel: Panel, *, across: bool) -> None:
    """One panel; with `across` its bars lie, the first on top."""
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
    keys = [_plain(shown(bar.key)) for bar in panel.bars]
    places = list(range(len(keys)))
    begin = [0.0] * len(keys)
    for part, colour, name in PARTS:
        sizes = [float(getattr(bar, part)) for bar in panel.bars]
        if across:
            axes.barh(places, sizes, left=begin, color=colour, label=name)
        else:
            axes.bar(places, sizes, bottom=begin, color=colour, label=name)
        begin = [a + b for a, b in zip(begin, sizes, strict=True)]
    every = 1 if across else -(-max(1, len(keys)) // 12)
    marks = ticks(bar.whole for bar in panel.bars)
    money = {"ticks": [float(mark) for mark in marks], "labels": [_plain(label(mark, marks[1])) for mark in marks]}
    named = {"ticks": places[::every], "labels": keys[::every], "fontsize": 8}
    if across:
        axes.set_xticks(**money)
        axes.set_xlim(0, float(marks[-1]))
        axes.set_yticks(**named)
        axes.invert_yaxis()
    else:
        axes.set_yticks(**money)
        axes.set_ylim(0, float(marks[-1]))
        axes.set_xticks(**named)


def _plain(text: str) -> str:
    """A $ in a text would begin a formula of matplotlib's own."""
    return text.replace("$", r"\$")
