"""Threads in a store: read as far as they have grown, owned for one write, replaced as a whole, removed.

An owner holds a thread only while it writes, so any process may take a turn; two at the same moment wait for each
other. What is known of a thread is kept in memory and read on from where it ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import TypeVar, cast

from pipeline.clock import Clock
from pipeline.errors import CheckpointCorrupt, RunExists, RunLocked, RunNotFound, StoreError
from pipeline.formats.langgraph.finding import found, home_of, homes, names_of
from pipeline.formats.langgraph.known import Known, unread
from pipeline.formats.langgraph.thread import MOVED, Key, Thread
from pipeline.formats.langgraph.writing import Addition, copied, first_lines, record, record_repairs, write_head
from pipeline.store.base import Journal, Movable, Store

#: How many threads are remembered; the one that was met first is forgotten first.
MOST_KNOWN = 256
_STRIPES = 64
#: How often a thread that another process writes to is tried again.
_AGAIN_SECONDS = 0.01
_T = TypeVar("_T")
_log = logging.getLogger("pipeline")


#: What is known of a thread (None: there is none) → what to add to it; None: nothing.
Make = Callable[[Thread | None], Addition | None]


class Shelf:
    """The threads of a store; for any number of threads of this process at once."""

    def __init__(self, store: Store, clock: Clock, wait_seconds: float) -> None:
        self.store = cast(Movable, store)
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._known: dict[str, Known] = {}
        self._guard = threading.Lock()
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]

    @contextmanager
    def reading(self, thread_id: str) -> Iterator[Thread | None]:
        """The thread, standing still within a `with`; None: there is none.

        Raises:
            SchemaTooNew, StoreError: It cannot be read.
        """
        with self._stripe(thread_id):
            known = self._current(thread_id)
            yield None if known is None else known.thread

    def add(self, thread_id: str, make: Make) -> None:
        """Record what `make` says of the thread as it stands; durable on return.

        Raises:
            RunLocked: Another process has been writing to it all the time that we wait.
            WriteFailed: The disk refused.
        """
        with self._stripe(thread_id):
            while True:
                # Its owner reads on: what it does not know yet need not be read before.
                known = self._known.get(thread_id) or self._current(thread_id)
                if known is None:
                    addition = make(None)
                    if addition is None or self._begin(thread_id, addition):
                        return
                    continue
                with self._owning(thread_id, known) as journal:
                    if journal is not None:
                        addition = make(known.thread)
                        if addition is not None:
                            record(journal, known, addition, self._clock.stamp())
                        return

    def keep(self, thread_id: str, choose: Callable[[Thread], Collection[Key]]) -> None:
        """Leave only the chosen checkpoints of a thread, and free what the others took; none chosen: it is removed.

        Raises:
            RunLocked, WriteFailed: As `add`.
        """
        with self._stripe(thread_id):
            while (known := self._current(thread_id)) is not None:
                with self._owning(thread_id, known) as journal:
                    if journal is None:
                        continue
                    stay = set(choose(known.thread))
                    if stay >= known.thread.checkpoints.keys():
                        return
                    # A process that waits for the thread looks where it has gone; if we die here it stays where it is.
                    record(journal, known, Addition([{"type": MOVED}], {}), self._clock.stamp())
                    if stay:
                        self._move(thread_id, known.thread, stay)
                self._forget(thread_id)
                self._delete(thread_id, known.thread.run_id)
                return

    def copy(self, source: str, target: str) -> None:
        """Make a thread that holds all that another does; nothing happens where that is not there.

        Raises:
            RunExists: There is such a thread already.
        """
        with self.reading(source) as thread:
            if thread is None:
                return
            whole = copied(self.store, thread, thread.checkpoints.keys() | thread.writes.keys())
        with self._stripe(target):
            if self._current(target) is not None or not self._begin(target, whole):
                raise RunExists(
                    f"There is a thread {target!r} already.", hint="Copy to another id, or delete it first."
                )

    def delete(self, thread_id: str) -> None:
        """Remove a thread and all that is stored of it; nothing happens where it is not there.

        Raises:
            RunLocked: As `add`.
        """
        with self._stripe(thread_id):
            self._forget(thread_id)
            try:
                runs = [home.run for home in homes(self.store, thread_id)]
            except CheckpointCorrupt:
                runs = [*names_of(thread_id)]
            # The one that counts goes last: none that it took the place of comes to light.
            for run in reversed(runs):
                self._delete(thread_id, run)

    def _stripe(self, thread_id: str) -> threading.Lock:
        return self._stripes[hash(thread_id) % _STRIPES]

    def _current(self, thread_id: str) -> Known | None:
        """What is known of a thread, as far as it has grown by now."""
        known = self._known.get(thread_id)
        if known is not None:
            with suppress(RunNotFound):
                if known.read_on(self.store) and not known.thread.moved:
                    return known
            self._forget(thread_id)
        known = self._found(thread_id)
        if known is not None:
            self._remember(thread_id, known)
        return known

    def _found(self, thread_id: str) -> Known | None:
        """The run that holds a thread, read to its end: of two the one that took the place of the other."""
        every: list[tuple[int, Known]] = []
        for run in names_of(thread_id):
            known = unread(run)
            with suppress(RunNotFound):
                known.read_on(self.store)
                every.append((home_of(known.first, run, thread_id).generation, known))
        if not every:
            return None
        _, best = max(every, key=lambda each: each[0])
        best.spare = next((known.thread.run_id for _, known in every if known is not best), "")
        return best

    def _remember(self, thread_id: str, known: Known) -> None:
        with self._guard:
            self._known[thread_id] = known
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def _forget(self, thread_id: str) -> None:
        with self._guard:
            self._known.pop(thread_id, None)

    @contextmanager
    def _owning(self, thread_id: str, known: Known) -> Iterator[Journal | None]:
        """The run of a thread, owned, with all of it known; None where it has changed its place: look for it again."""
        run = known.thread.run_id
        try:
            journal = self._wait_for(thread_id, lambda: self.store.open(run))
        except RunNotFound:
            self._forget(thread_id)
            yield None
            return
        try:
            if not known.read_on(self.store) or (known.thread.moved and homes(self.store, thread_id)[0].run != run):
                self._forget(thread_id)
                yield None
                return
            record_repairs(journal, known, self._clock.stamp())
            self._drop_spare(known)
            yield journal
        finally:
            journal.close()

    def _drop_spare(self, known: Known) -> None:
        """Remove what does not count any more, while the one that counts is owned and so cannot move to its name."""
        if known.spare:
            with suppress(RunNotFound, RunLocked):
                self.store.delete(known.spare)
                _log.warning("Run %s had been replaced by run %s and left behind; it is removed.",
                             known.spare, known.thread.run_id)  # fmt: skip
            known.spare = ""

    def _wait_for(self, thread_id: str, act: Callable[[], _T]) -> _T:
        """What `act` gives as soon as nobody else owns the thread."""
        until = self._clock.monotonic() + self._wait_seconds
        never = threading.Event()
        while True:
            try:
                return act()
            except RunLocked as error:
                if self._clock.monotonic() >= until:
                    raise RunLocked(
                        f"Another process is writing to thread {thread_id!r}: {error.message}",
                        hint="Run one graph at a time on a thread, or give this one a thread_id of its own.",
                        **{**error.data, "thread": thread_id},
                    ) from None
            self._clock.wait(never, _AGAIN_SECONDS)

    def _begin(self, thread_id: str, addition: Addition) -> bool:
        """Make the run of a new thread; False: another process was faster, and its run holds the thread."""
        name, other = names_of(thread_id)
        known = self._make(thread_id, name, 1, addition)
        if known is None:
            return False
        # While we were about it another may have made the thread under this name, and moved it to the other one.
        if found(self.store, other, thread_id) is not None:
            self._delete(thread_id, name)
            return False
        self._remember(thread_id, known)
        return True

    def _move(self, thread_id: str, thread: Thread, stay: AbstractSet[Key]) -> None:
        """Write what stays of a thread that we own into another run, which counts from its first moment on."""
        first, second = names_of(thread_id)
        target = first if thread.run_id == second else second
        left = copied(self.store, thread, stay)
        generation = homes(self.store, thread_id)[0].generation + 1
        while self._make(thread_id, target, generation, left) is None:
            # What a process left there that died while it pruned: this one had taken its place.
            self._delete(thread_id, target)

    def _make(self, thread_id: str, run: str, generation: int, addition: Addition) -> Known | None:
        """A run that holds the thread from its first moment on; None: there is one of that name."""
        now = self._clock.now()
        lines = first_lines(thread_id, generation, addition, now)
        values, first = list(addition.blobs.values()), b"".join(lines)
        try:
            journal = self._wait_for(thread_id, lambda: self.store.create_named(run, first, values, at=now))
        except StoreError:
            if found(self.store, run, thread_id) is None:
                raise
            return None
        try:
            known = unread(run)
            known.take(lines)
            write_head(journal, known)
        finally:
            journal.close()
        return known

    def _delete(self, thread_id: str, run: str) -> None:
        with suppress(RunNotFound):
            self._wait_for(thread_id, lambda: self.store.delete(run))
