"""How a run is watched: live on a terminal, as plain lines elsewhere, as JSON lines, or only by its warnings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from pipeline.cli.progress import Quiet, Tally, lines_of
from pipeline.cli.text import plain_ascii, say, say_json, warn
from pipeline.engine.events import Event, Listener
from pipeline.errors import ConfigError
from pipeline.settings import Display, Execution


class PlainLines(Quiet):
    """One line a fact, readable in a log file."""

    def __init__(self) -> None:
        self._tally = Tally()

    def __call__(self, event: Event) -> None:
        self._tally.apply(event.type, event.data)
        for line in lines_of(event.type, event.data, self._tally):
            say(line)
        sys.stdout.flush()


class JsonLines(Quiet):
    """Every event as one object per line."""

    def __call__(self, event: Event) -> None:
        data = {name: _number(name, value) for name, value in event.data.items()}
        say_json({"type": event.type, "at": event.at, **data})
        sys.stdout.flush()


def _number(name: str, value: Any) -> Any:
    """Return exact text of money, as events carry it, as a number, as everywhere else in JSON."""
    if name == "batches":
        return [{key: _number(key, each) for key, each in row.items()} for row in value]
    return Decimal(value) if isinstance(value, str) and (name.endswith("usd") or name == "usd_high") else value


class Traced(Quiet):
    """A display beside which traces are sent."""

    def __init__(self, shown: Quiet, execution: Execution, *, content: bool) -> None:
        from pipeline.app.traces import live_traces

        self._shown = shown
        #: What the thread that sends has to say: told between two events, for a display is one thread's.
        self._said: list[str] = []
        self._live = live_traces(execution, content=content, tell=self._said.append)

    def __call__(self, event: Event) -> None:
        self.beside(self._shown)(event)

    def beside(self, listener: Listener) -> Listener:
        def heard(event: Event) -> None:
            listener(event)
            self._live(event)
            while self._said:
                listener(Event("note", event.at, {"text": self._said.pop()}))

        return heard

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._shown.paused():
            yield

    def close(self) -> None:
        self._shown.close()

    def send_rest(self) -> None:
        """Send what is left, and tell what is still to be told."""
        self._live.close()
        for text in self._said:
            warn(text)


@contextmanager
def traced(execution: Execution, how: Display, shown: Quiet) -> Iterator[Quiet]:
    """Give a display within a `with`, beside which the traces of runs are sent where that is wanted.

    Raises:
        PackageMissing, ConfigError: --otel was given and cannot be done. Variables alone never end a start.
    """
    from pipeline.app.traces import is_wanted

    if not is_wanted(how.otel):
        yield shown
        return
    try:
        made = Traced(shown, execution, content=how.otel_content)
    except ConfigError as error:
        if how.otel:
            raise
        warn(f"No traces are sent: {error.message} {error.hint}")
        yield shown
        return
    try:
        yield made
    finally:
        made.send_rest()


def display(*, quiet: bool, json: bool) -> Quiet:
    """Return the display for this start: what was asked for, else what stdout can show."""
    if json:
        return JsonLines()
    if quiet:
        return Quiet()
    if on_screen():
        from pipeline.cli.live_display import Live

        return Live(ascii_only=plain_ascii(sys.stdout))
    return PlainLines()


def on_screen() -> bool:
    """Return whether stdout is a terminal on which something can be drawn anew."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def asker(shown: Quiet, *, json: bool) -> Callable[[str], bool] | None:
    """Return how to ask a person yes or no; None where there is no terminal."""
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None

    def ask(question: str) -> bool:
        with shown.paused():
            return ask_yes_no(question)

    return ask


def confirmer(*, yes: bool) -> Callable[[str], bool] | None:
    """Return how a command gets a yes: --yes is one, else a person on a terminal is asked; None: there is neither."""
    return (lambda _: True) if yes else asker(Quiet(), json=False)


def ask_yes_no(question: str) -> bool:
    """Put a question on the terminal; an empty answer, an end of input or anything but yes is no."""
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
