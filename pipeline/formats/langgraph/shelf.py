"""Threads in a store: read as far as they have grown, owned for one write, replaced as a whole, removed.

An owner holds a thread only while it writes, so any process may take a turn; two at the same moment wait for each
other. What is known of a thread is kept in memory and read on from where it ended.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from pipeline.clock import Clock, iso
from pipeline.engine.head import HeadView
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import host
from pipeline.engine.takeover import record_repairs
from pipeline.errors import Pause, RunExists, RunLocked, RunNotFound
from pipeline.formats.langgraph.finding import PIPELINE, REPLACES, SOURCE, chosen, claim_of, run_of, runs_of
from pipeline.formats.langgraph.thread import MOVED, Key, Thread
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.fold import Builder
from pipeline.records.kinds import DocumentKept, RunEnded, RunStarted
from pipeline.records.lines import LineDamaged, encode_line, line_seq
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import encode_value
from pipeline.store.base import Journal, Store
from pipeline.store.reading import records

#: How many threads are remembered; the one that was met first is forgotten first.
MOST_KNOWN = 256
_STRIPES = 64
#: How often a thread that another process writes to is tried again.
_AGAIN_SECONDS = 0.01
_KIND = b'"kind":"document_kept"'
#: The kind stands behind the envelope, within so many bytes.
_ENVELOPE = 140
_log = logging.getLogger("pipeline")
_T = TypeVar("_T")


class Addition(NamedTuple):
    """What is to be recorded of a thread."""

    documents: Sequence[Mapping[str, Any]]
    #: What stands out of line, by hash.
    blobs: Mapping[str, bytes]


@dataclass
class _Known:
    """What this process knows of a thread's run."""

    thread: Thread
    #: The last record that was read.
    seq: int = 0
    builder: Builder | None = None
    #: Blobs that were written.
    sound: set[str] = field(default_factory=set)


#: What is known of a thread (None: there is none) → what to add to it; None: nothing.
Make = Callable[[Thread | None], Addition | None]


class Shelf:
    """The threads of a store; for any number of threads of this process at once."""

    def __init__(self, store: Store, clock: Clock, wait_seconds: float) -> None:
        self.store = store
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._known: dict[str, _Known] = {}
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
                known = self._current(thread_id)
                if known is None:
                    addition = make(None)
                    if addition is None or self._begin(thread_id, addition):
                        return
                    continue
                with self._owning(thread_id, known) as recorder:
                    if recorder is not None:
                        addition = make(known.thread)
                        if addition is not None:
                            self._record(recorder, known, addition)
                        return

    def keep(self, thread_id: str, choose: Callable[[Thread], Collection[Key]]) -> None:
        """Leave only the chosen checkpoints of a thread, and free what the others took; none chosen: it is removed.

        Raises:
            RunLocked, WriteFailed: As `add`.
        """
        with self._stripe(thread_id):
            while (known := self._current(thread_id)) is not None:
                with self._owning(thread_id, known) as recorder:
                    if recorder is None:
                        continue
                    stay = set(choose(known.thread))
                    if stay >= known.thread.checkpoints.keys():
                        return
                    # A process that waits for the thread looks where it has gone; if we die here it stays where it is.
                    recorder.append(DocumentKept(encode_value({"type": MOVED}), SOURCE))
                    if stay:
                        self._make(thread_id, self._copied(known.thread, stay), replaces=known.thread.run_id)
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
            copied = self._copied(thread, thread.checkpoints.keys() | thread.writes.keys())
        with self._stripe(target):
            if self._current(target) is not None or not self._begin(target, copied):
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
            for run in runs_of(self.store, thread_id):
                self._delete(thread_id, run)

    def _stripe(self, thread_id: str) -> threading.Lock:
        return self._stripes[hash(thread_id) % _STRIPES]

    def _current(self, thread_id: str) -> _Known | None:
        """What is known of a thread, as far as it has grown by now."""
        known = self._known.get(thread_id)
        if known is not None:
            with suppress(RunNotFound):
                self._read_on(known)
                if not known.thread.moved:
                    return known
            self._forget(thread_id)
        run = run_of(self.store, thread_id)
        if run is None:
            return None
        known = _Known(Thread(run))
        try:
            self._read_on(known)
        except RunNotFound:
            # It was removed, or replaced, since we found it.
            return self._current(thread_id)
        with self._guard:
            self._known[thread_id] = known
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return known

    def _forget(self, thread_id: str) -> None:
        with self._guard:
            self._known.pop(thread_id, None)

    def _read_on(self, known: _Known) -> None:
        """Take in the records that came since."""
        run = known.thread.run_id
        for line in self.store.read(run, after=known.seq):
            seq = line_seq(line)
            if seq > known.seq + 1:
                _log.warning("Records %s to %s of run %s are damaged: the checkpoints that they held are not found.",
                             known.seq + 1, seq - 1, run)  # fmt: skip
            known.seq = seq
            if _KIND in line[:_ENVELOPE]:
                _take(known.thread, line)

    @contextmanager
    def _owning(self, thread_id: str, known: _Known) -> Iterator[Recorder | None]:
        """The run of a thread, owned; None where the thread is no longer there: look for it again."""
        run = known.thread.run_id
        try:
            journal = self._wait_for(thread_id, lambda: self.store.open(run))
        except RunNotFound:
            self._forget(thread_id)
            yield None
            return
        try:
            self._read_on(known)
            if known.thread.moved and run_of(self.store, thread_id) != run:
                self._forget(thread_id)
                yield None
                return
            yield self._recorder(journal, known)
        except Pause as pause:
            raise pause.cause from None
        finally:
            journal.close()

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

    def _recorder(self, journal: Journal, known: _Known) -> Recorder:
        builder = known.builder
        if builder is None or builder.state.seq != journal.last_seq or journal.repairs:
            builder = known.builder = Builder(journal.run_id)
            for record in records(self.store, journal.run_id):
                builder.apply(record)
        recorder = Recorder(
            journal, builder, self._clock, owner=builder.state.owner, nodes=(), warn=_log.warning,
            view=HeadView(lambda document, state: _shaped(document, state, known.thread)),
        )  # fmt: skip
        record_repairs(journal, recorder)
        return recorder

    def _record(self, recorder: Recorder, known: _Known, addition: Addition) -> None:
        for blob, data in addition.blobs.items():
            if blob not in known.sound:
                recorder.put_blob(data)
                known.sound.add(blob)
        for document in addition.documents:
            recorder.append(DocumentKept(encode_value(document), SOURCE))
        self._read_on(known)
        recorder.leave()

    def _begin(self, thread_id: str, addition: Addition) -> bool:
        """Make the run of a new thread; False: another process was faster, and its run holds the thread."""
        made = self._make(thread_id, addition)
        if chosen(self.store, runs_of(self.store, thread_id)) == made:
            return True
        self.store.delete(made)
        return False

    def _make(self, thread_id: str, addition: Addition, replaces: str = "") -> str:
        """A run that holds the thread from its first moment on; its id."""
        identity = {REPLACES: replaces} if replaces else {}
        claim = claim_of(thread_id).to_json()
        # Completed: there is nothing for us to go on with; and the newest of its claim, so that no clean-up takes it.
        facts = [RunStarted(PIPELINE, {"subject": thread_id}, identity, {}, claim=claim, host=host()),
                 *(DocumentKept(encode_value(document), SOURCE) for document in addition.documents),
                 RunEnded(COMPLETED)]  # fmt: skip
        now = self._clock.now()
        lines = [encode_line(seq, iso(now), 1, encode_fact(fact)) for seq, fact in enumerate(facts, 1)]
        run, journal = self.store.create(b"".join(lines), list(addition.blobs.values()), at=now)
        try:
            known = _Known(Thread(run))
            self._read_on(known)
            self._recorder(journal, known).leave()
        finally:
            journal.close()
        return run

    def _copied(self, thread: Thread, keys: AbstractSet[Key]) -> Addition:
        blobs = {blob: self.store.get_blob(thread.run_id, blob) for blob in sorted(thread.blobs(keys))}
        return Addition(list(thread.documents(keys)), blobs)

    def _delete(self, thread_id: str, run: str) -> None:
        with suppress(RunNotFound):
            self._wait_for(thread_id, lambda: self.store.delete(run))


def _take(thread: Thread, line: bytes) -> None:
    """Add what a record says, if it is one of ours and makes sense."""
    try:
        fact = decode_line(line, whole=not line.endswith(b"\n")).fact
        if isinstance(fact, DocumentKept) and fact.source == SOURCE:
            thread.take(json.loads(fact.content))
    except (LineDamaged, ValueError, TypeError, KeyError, AttributeError) as error:
        _log.warning("Record %s of run %s makes no sense (%s); what it held is not found.",
                     line_seq(line), thread.run_id, error)  # fmt: skip


def _shaped(document: dict[str, Any], state: RunState, thread: Thread) -> dict[str, Any]:
    """checkpoint.json of a thread's run: how many checkpoints it holds."""
    return {**document, "checkpoints": len(thread.checkpoints)}
