"""Runs that are looked at: each one's state, folded on as its records come, and whether its owner lives."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.app.run_trail import Trail
from pipeline.app.stores import head_of, state_of
from pipeline.clock import Clock
from pipeline.errors import RunNotFound
from pipeline.records.codec import Record
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder
from pipeline.records.run import RunState
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Head, Store
from pipeline.store.owner import seen_now
from pipeline.store.reader import records
from pipeline.store.view import pinned_nodes, records_in

#: A run is looked at again after so many seconds: many viewers cost no more than one.
FRESH_SECONDS = 0.3
#: So seldom where it must be read as a whole each time.
_SLOW_SECONDS = 2.0
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
        self._fresh = FRESH_SECONDS
        self._now: RunNow | None = None
        self._nodes: tuple[str, Sequence[str]] = ("", ())

    def now(self) -> RunNow:
        with self._lock:
            if self._now is None or self._clock.monotonic() - self._looked > self._fresh:
                self._now = self._look(self._now)
                self._looked = self._clock.monotonic()
            return self._now

    def _look(self, before: RunNow | None) -> RunNow:
        # The owner first: what it wrote before it was gone is then in the records.
        owned = bool(self._store.holder(self._run))
        seen = self._builder.state.seq
        for record in self._records(seen):
            self._builder.apply(record)
            self._trail.apply(record, self._builder.state)
        is_new = before is None or self._builder.state.seq != seen
        if before is not None and not is_new and owned == before.owned and self._fresh == FRESH_SECONDS:
            return before
        if not self._is_whole(owned):
            self._fresh = _SLOW_SECONDS
            return self._read(before)
        self._fresh = FRESH_SECONDS
        if before is None or is_new:
            state = self._builder.freeze()
            return RunNow(self._head(state, owned), state, self._trail.freeze())
        return RunNow(self._head(before.state, owned), before.state, before.trail)

    def _records(self, seen: int) -> Iterator[Record]:
        if not seen:
            return records(self._store, self._run)
        return records_in(self._store.read(self._run, after=seen), after=seen)

    def _is_whole(self, owned: bool) -> bool:
        """Return whether its own records in a row say it all: none is missing, and no part of it is elsewhere."""
        state = self._builder.state
        if not state.seq or state.gaps or state.submitted or state.imported:
            return False
        if owned and self._now is not None:
            return True
        head = self._store.written_head(self._run)
        return not head.get("holes") and int(head.get("seq") or 0) <= state.seq

    def _read(self, before: RunNow | None) -> RunNow:
        """Return a run of which more must be looked at than its records in a row."""
        head = head_of(self._store, self._run)
        if before is not None and head == before.head and not before.state.submitted:
            return before
        return RunNow(head, state_of(self._store, head), Trail.of(self._store, self._run))

    def _head(self, state: RunState, owned: bool) -> Head:
        """Return the head as the records say it: the written one may be older, and then it is read anew at length."""
        graph = state.pins.get("graph", "")
        if graph != self._nodes[0]:
            self._nodes = graph, pinned_nodes(state, lambda blob: self._store.get_blob(self._run, blob))
        document = head_document(state, 0, self._nodes[1])
        changed = seen_now(document, owned)
        return Head(self._run, {**document, **changed}, owned=owned, gone=bool(changed))


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
        try:
            return watch.now()
        except RunNotFound:
            # Whatever has this name later is another run.
            with self._lock:
                self._runs.pop(run, None)
            raise
