"""Parts of a run: journals of tasks that work elsewhere, and how their records read as the run's own.

What people decide while a process owns the run stands in a part, too, until an owner takes it in.

Copied calls say where they come from, so that what is copied twice counts once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from pipeline.clock import Clock
from pipeline.errors import RunLocked, RunNotFound
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    Decision,
    Fact,
    Invalidated,
    MemoryRead,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    replace,
)
from pipeline.records.run import REVIEW, RunState, Submitted
from pipeline.store.base import Journal, Store
from pipeline.store.view import records_in

#: The pipeline of the runs that make a course, and the visit that writes its lessons.
COURSES, LESSONS = "lessons", "lessons#1"
#: How often, and at what intervals in seconds, a part that is owned for a moment is tried again.
_TRIES, _TRY_SECONDS = 40, 0.05
_COPIED = (Invalidated, MemoryRead, TaskCompleted, TaskFailed, TaskStarted)


class Copying:
    """Makes facts of one part into facts of its run, in order."""

    def __init__(self, submitted: Submitted, is_open: Callable[[int], bool], *, void: bool) -> None:
        """Begin.

        Args:
            is_open: Whether the call with that seq here has no end here.
            void: What the part made is of no use any more; only its calls count.
        """
        self._part = submitted.part
        self._here = dict(submitted.copied)
        self._is_open = is_open
        self._void = void

    def fact(self, record: Record) -> Fact | None:
        """Return the record's fact as the run's own; None: it is there already, or says nothing to the run."""
        fact = record.fact
        if isinstance(fact, CallStarted):
            return None if record.seq in self._here else replace(fact, origin=f"{self._part}:{record.seq}")
        if isinstance(fact, CallEnded):
            here = self._here.get(fact.call)
            return None if here is None or not self._is_open(here) else replace(fact, call=here)
        return fact if isinstance(fact, _COPIED) and not self._void else None

    def note(self, record: Record, seq: int) -> None:
        """Note that the record's fact is in the run now, with this seq."""
        if isinstance(record.fact, CallStarted):
            self._here[record.seq] = seq


def part_records(store: Store, run: str, part: str, after: int = 0) -> Iterator[Record]:
    """Return the records of a part; none where no worker has begun it."""
    try:
        yield from records_in(store.read(f"{run}/{part}", after), after)
    except RunNotFound:
        return


def own_part(store: Store, run: str, part: str, clock: Clock) -> Journal:
    """Own a part for a moment, after its present owner.

    Raises:
        RunLocked: Its owner does not give it up.
    """
    for _ in range(_TRIES):
        try:
            return store.open(f"{run}/{part}")
        except RunLocked:
            clock.wait(threading.Event(), _TRY_SECONDS)
    return store.open(f"{run}/{part}")


def decisions_beside(store: Store, state: RunState) -> Iterator[Record]:
    """Return what people decided about what a course's tasks made, as far as the run's journal does not hold it."""
    if state.pipeline != COURSES:
        return
    for record in part_records(store, state.run_id, REVIEW, state.reviewed):
        if isinstance(record.fact, Decision):
            fact = replace(record.fact, origin=f"{REVIEW}:{record.seq}")
            yield Record(record.seq, record.at, record.owner, fact)


def is_void(state: RunState, key: tuple[str, str]) -> bool:
    """Return whether a submitted task is to be made anew, whatever its part says."""
    return state.attempts.get(key, 1) != state.submitted[key].attempt


def not_copied(store: Store, state: RunState) -> Iterator[Record]:
    """Return what parts hold and the run's journal does not yet, as records that might follow its last one."""
    seq = state.seq
    for key, submitted in list(state.submitted.items()):
        open_here = set(state.open_calls)
        copying = Copying(submitted, open_here.__contains__, void=is_void(state, key))
        for record in part_records(store, state.run_id, submitted.part):
            fact = copying.fact(record)
            if fact is None:
                continue
            seq += 1
            copying.note(record, seq)
            if isinstance(fact, CallStarted):
                open_here.add(seq)
            yield Record(seq, record.at, state.owner, fact)
    for record in decisions_beside(store, state):
        seq += 1
        yield Record(seq, record.at, state.owner, record.fact)


def with_parts(store: Store, run: str, records: Iterator[Record]) -> Iterator[Record]:
    """Return a run's records, followed by those that are in its parts only."""
    builder = Builder(run)
    for record in records:
        builder.apply(record)
        yield record
    yield from not_copied(store, builder.state)
