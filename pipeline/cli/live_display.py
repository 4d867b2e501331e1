"""Live progress on a terminal (rich): the step, a bar that separates restored from new items, money, waiting."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.spinner import Spinner
from rich.text import Text

from pipeline.app.words import money
from pipeline.cli.progress import Quiet, Tally, lines_of
from pipeline.cli.text import for_stream
from pipeline.engine.events import Event

BAR = 40
#: Events whose lines stay above the live part; the others only move it.
_KEPT = frozenset(
    {"run_new", "run_continuing", "run_already_completed", "run_resumed", "run_started", "plan", "step_completed",
     "step_failed", "task_failed", "note", "looking", "stopping", "leaving", "batch_submitted", "decision_asked",
     "decision"}
)  # fmt: skip

#: After these there is nothing live to show; the process may be gone right after `leaving`.
_LAST = frozenset({"step_completed", "step_failed", "leaving"})


def live_part(shown: Callable[[], RenderableType], console: Console) -> RichLive:
    """Start to draw something on a console, four times a second, until it is stopped."""
    live = RichLive(get_renderable=shown, console=console, transient=True, refresh_per_second=4,
                    redirect_stderr=False, redirect_stdout=False)  # fmt: skip
    live.start()
    return live


def console_of_stdout() -> Console:
    """Return the terminal, on which texts are only texts."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


class Live(Quiet):
    """Show a part of the screen that changes, from the first step to the end of the run."""

    def __init__(self, *, ascii_only: bool, console: Console | None = None) -> None:
        self._tally = Tally()
        self._ascii = ascii_only
        self._console = console or console_of_stdout()
        self._spinner = Spinner("line" if ascii_only else "dots")
        self._live: RichLive | None = None

    def __call__(self, event: Event) -> None:
        self._tally.apply(event.type, event.data)
        if event.type in _LAST:
            self.close()
        if event.type == "step_started":
            self._print(lines_of(event.type, event.data, self._tally)[:1])
            self._start()
        elif event.type in _KEPT:
            self._print(lines_of(event.type, event.data, self._tally))

    def close(self) -> None:
        """Take the live part off the screen; lines above it stay."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        running = self._live is not None
        self.close()
        yield
        if running:
            self._start()

    def __rich__(self) -> RenderableType:
        """Return what is on the screen now; drawn four times a second."""
        self._spinner.update(text=self._text(self._figures()))
        return Group(self._bar(), self._spinner) if self._tally.items else self._spinner

    def _start(self) -> None:
        if self._live is None:
            self._live = live_part(self.__rich__, self._console)

    def _print(self, lines: list[str]) -> None:
        for line in lines:
            self._console.print(self._text(line), soft_wrap=True)

    def _text(self, line: str) -> Text:
        return Text(for_stream(line, ascii_only=self._ascii))

    def _bar(self) -> Text:
        """Return `lessons ━━━━━━━━ 7/18`: restored dim, made bright, failed red, the rest empty."""
        tally = self._tally
        cells = [BAR * part // tally.items for part in (tally.restored, tally.restored + tally.made, tally.done)]
        full, empty = ("#", ".") if self._ascii else ("━", "╌")
        bar = Text(f"  {tally.map} ")
        bar.append(("=" if self._ascii else full) * cells[0], style="dim cyan")
        bar.append(full * (cells[1] - cells[0]), style="green")
        bar.append(("x" if self._ascii else full) * (cells[2] - cells[1]), style="red")
        bar.append(empty * (BAR - cells[2]), style="dim")
        bar.append(f" {tally.done}/{tally.items}")
        counts = ((tally.restored, "from before"), (tally.failed, "failed"))
        notes = [f"{number} {word}" for number, word in counts if number]
        return bar.append(f" ({', '.join(notes)})" if notes else "")

    def _figures(self) -> str:
        """Return `step 3/4 lessons · $1.85 spent, $0.20 since the resume · 12,345 tokens · 4 calls out`."""
        tally = self._tally
        spent = f"{tally.spent_text} spent"
        if tally.before:
            spent += f", {money(tally.since)} since the resume"
        if tally.possibly:
            spent += f", possibly {money(tally.possibly)} more"
        parts = [f"step {tally.index}/{tally.total} {tally.step}", spent, f"{tally.tokens:,} tokens"]
        if tally.in_flight:
            parts.append(f"{tally.in_flight} in flight")
        if tally.waiting:
            parts.append(f"waiting: {tally.waiting}")
        return " · ".join(parts)
