"""Runs that are looked at: each one's state, folded on as its records come, and whether its owner lives."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from pipeline.app.run_trail import Trail
from pipeline.app.stores import head_of, state_of
from pipeline.clock import Clock
from pipeline.records.fold import Builder
from pipeline.records.run import RunState
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Head, Store
from pipeline.store.view import records_in

#: A run is looked at again after so many seconds: many viewers cost no more than one.
FRESH_SECONDS = 0.3
#: Runs whose state is kept.
_MOST = 16


@dataclass(frozen=True)
class RunNow:
    """A run as it stood when it was looked at."""

    head: Head
    #: Nothing changes it later.
    state: RunState
    #: How it went; gathered with the state.
    trail: Trail

    @property
    def owned(self) -> bool:
        """Return whether a living process owns it."""
        return self.head.owned

    @property
    def gone(self) -> bool:
        """Return whether it counts as running, but its process is gone."""
        return not self.owned and self.state.status == IN_PROGRESS and self.state.detail == "running"

    @property
    def ended(self) -> bool:
        """Return whether it has come to an end of its own: nothing follows unless it is resumed."""
        return not self.owned and self.state.status != IN_PROGRESS


class _Watch:
    """One run; one thread at a time looks, the others get what it found."""

    def __init__(self, store: Store, run: str, clock: Clock) -> None:
        self._store = store
        self._run = run
        self._clock = clock
        self._lock = threading.Lock()
        self._builder = Builder(run)
        self._trail = Trail()
        self._looked = 0.0
        self._now: RunNow | None = None

    def now(self) -> RunNow:
        with self._lock:
            if self._now is None or self._clock.monotonic() - self._looked > FRESH_SECONDS:
                self._now = self._look()
                self._looked = self._clock.monotonic()
            return self._now

    def _look(self) -> RunNow:
        # The owner first: what it wrote before it was gone is then in the records.
        head = head_of(self._store, self._run)
        if self._is_simple(head):
            if int(head.document.get("seq") or 0) < self._builder.state.seq and not head.owned:
                # Mended, or another run of that name.
                self._builder, self._trail = Builder(self._run), Trail()
            seen = self._builder.state.seq
            for record in records_in(self._store.read(self._run, after=seen), after=seen):
                self._builder.apply(record)
                self._trail.apply(record, self._builder.state)
            if self._is_simple(head):
                if self._now is not None and self._builder.state.seq == seen:
                    return RunNow(head, self._now.state, self._now.trail)
                return RunNow(head, self._builder.freeze(), self._trail.freeze())
        return RunNow(head, state_of(self._store, head), Trail.of(self._store, self._run))

    def _is_simple(self, head: Head) -> bool:
        """Return whether its own records in a row say it all: none is missing, and no part of it is elsewhere."""
        document, state = head.document, self._builder.state
        strange = head.corrupt or document.get("imported") or document.get("holes")
        return not (strange or state.submitted or state.gaps)


class Watches:
    """The runs that were looked at last."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Watch] = OrderedDict()

    def now(self, run: str) -> RunNow:
        """Return a run as it is now.

        Raises:
            RunNotFound: No such run.
        """
        with self._lock:
            watch = self._runs.setdefault(run, _Watch(self._store, run, self._clock))
            self._runs.move_to_end(run)
            while len(self._runs) > _MOST:
                self._runs.popitem(last=False)
        return watch.now()
