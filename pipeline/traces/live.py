"""Traces of runs that go on: a thread reads their records behind them, and sends what is finished.

The journal is the queue: nothing waits in memory but one request's spans, and a run never waits for the collector.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pipeline.clock import Clock
from pipeline.engine.events import Event
from pipeline.errors import PipelineError
from pipeline.records.codec import Record
from pipeline.records.kinds import RunEnded, RunResumed, RunStarted
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.store.view import records_in
from pipeline.traces.call import Told
from pipeline.traces.measures import Measures
from pipeline.traces.otlp import MOST_SPANS, Collector, portions
from pipeline.traces.spans import Span, Tree

#: Between two looks, as OpenTelemetry's own batches are sent; between two reports of metrics.
_LOOK_VARIABLE, _LOOK_SECONDS = "OTEL_BSP_SCHEDULE_DELAY", 5.0
_REPORT_VARIABLE, _REPORT_SECONDS = "OTEL_METRIC_EXPORT_INTERVAL", 60.0
#: How long the end of the program waits for a collector that answered so far.
LAST_SECONDS, _LOOK_AGAIN = 2.0, 0.05
_BEGUN = frozenset({"run_started", "run_resumed"})


@dataclass(slots=True)
class _Followed:
    """One run."""

    run: str
    tree: Tree
    #: The first record of this process; the last that was read; what was finished and is not sent yet.
    first: int
    seq: int = 0
    unsent: list[Span] = field(default_factory=list)
    #: The last record says that its process has left it.
    ended: bool = False


class LiveTraces:
    """Hears the events of runs, and sends their traces from a thread of its own."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        collector: Collector,
        clock: Clock,
        *,
        tell: Callable[[str], None],
        told_of: Callable[[Store, str], Told],
        command: Callable[[str], str],
        metrics: bool = True,
    ) -> None:
        """Begin; nothing is sent before a run has begun.

        Args:
            open_store: Opens the store of the runs; the thread has one of its own.
            tell: Takes the one sentence about a collector that does not take what is sent; of any thread.
            told_of: What tells the texts of a run's calls.
            command: The command that sends the traces of a run later, for people.
            metrics: Send these too.
        """
        self._open_store = open_store
        self._collector = collector
        self._clock = clock
        self._tell = tell
        self._told_of = told_of
        self._command = command
        self._store: Store | None = None
        self._begun: list[str] = []
        self._runs: list[_Followed] = []
        self._meter = collector.meter() if metrics else None
        self._measures = Measures(self._meter.instruments) if self._meter is not None else None
        self._wake, self._closing = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._saying = threading.Lock()
        #: A sentence was told; all was sent.
        self._told = self._done = False

    def __call__(self, event: Event) -> None:
        """Hear an event; it takes no time."""
        if event.type in _BEGUN:
            self._begun.append(str(event.data["run"]))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
                self._thread.start()
        if self._measures is not None:
            self._measures.hear(event)

    def close(self) -> None:
        """Send what is left, within some seconds; a collector that did not answer is not waited for."""
        if self._thread is None:
            return
        self._closing.set()
        self._wake.set()
        until = self._clock.monotonic() + LAST_SECONDS
        while self._thread.is_alive() and not self._collector.silent and self._clock.monotonic() < until:
            self._thread.join(_LOOK_AGAIN)
        if not self._done:
            refused = self._collector.refused
            self._say("it does not answer in time" if refused is None else refused.reason)
        self._collector.close()

    # --- the thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        look, report = _seconds(_LOOK_VARIABLE, _LOOK_SECONDS), _seconds(_REPORT_VARIABLE, _REPORT_SECONDS)
        due = self._clock.monotonic() + report
        while True:
            closing = self._closing.is_set()
            sent = self._look()
            self._done = closing and sent
            if self._meter is not None and not self._collector.silent and (closing or self._clock.monotonic() >= due):
                due = self._clock.monotonic() + report
                self._report()
            if closing:
                return
            self._clock.wait(self._wake, look)

    def _look(self) -> bool:
        """Send what is finished; return whether all of it was taken."""
        try:
            store = self._store = self._store or self._open_store()
            while self._begun:
                if all(each.run != self._begun[0] for each in self._runs):
                    self._runs.append(self._followed(store, self._begun[0]))
                del self._begun[0]
            self._runs = [each for each in self._runs if not self._advance(store, each) or not each.ended]
            return not any(each.unsent for each in self._runs)
        except (PipelineError, OSError):
            # The run itself tells of a store that is gone.
            return False

    def _followed(self, store: Store, run: str) -> _Followed:
        first = max((record.seq for record in records(store, run) if _is_owner(record)), default=1)
        return _Followed(run, Tree(run, told=self._told_of(store, run)), first)

    def _advance(self, store: Store, run: _Followed) -> bool:
        """Send what a run has finished; return whether it was taken."""
        while True:
            if not run.unsent:
                self._read(store, run)
            if not run.unsent:
                return True
            for portion in portions([*run.unsent]):
                refused = self._collector.send(portion)
                if refused is not None:
                    self._say(refused.reason)
                    return False
                del run.unsent[: len(portion)]

    def _read(self, store: Store, run: _Followed) -> None:
        """Read on until there is enough for a request; what an earlier process left finished was its to send."""
        for record in _after(store, run):
            run.seq = record.seq
            made = run.tree.apply(record)
            run.ended = isinstance(record.fact, RunEnded)
            if record.seq >= run.first:
                run.unsent += made
                if self._measures is not None:
                    self._measures.count(made)
            if len(run.unsent) >= MOST_SPANS:
                break

    def _report(self) -> None:
        assert self._meter is not None
        refused = self._meter.send()
        if refused is not None and refused.is_absent:
            # It takes traces only.
            self._meter = None

    def _say(self, why: str) -> None:
        """Tell, once, that traces are missing there, and how to send them later."""
        with self._saying:
            told, self._told = self._told, True
        if not told:
            command = self._command(self._runs[0].run if self._runs else "RUN")
            self._tell(
                f"The traces cannot be sent to {self._collector.shown} now: {why}. The run does not wait for it; "
                f"`{command}` sends them later."
            )


def _after(store: Store, run: _Followed) -> Iterator[Record]:
    return records_in(store.read(run.run, after=run.seq), after=run.seq) if run.seq else records(store, run.run)


def _is_owner(record: Record) -> bool:
    return isinstance(record.fact, (RunStarted, RunResumed))


def _seconds(name: str, default: float) -> float:
    """Return a variable of milliseconds in seconds."""
    try:
        seconds = float(os.environ.get(name, "")) / 1000
    except ValueError:
        return default
    return seconds if 0 < seconds < default * 1000 else default
