"""The Recorder: facts from many threads become journal lines in one order, durable before they count.

Group commit without a thread of its own: the first thread that finds no write in progress writes for all that queued.
It gives seq before the write; fold, events and head follow after it, in order. Once the disk has refused anything
nothing new is taken; how what was in flight ended still goes where the store keeps what it can.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.clock import Clock
from pipeline.errors import InvalidValue, Pause, PipelineError, StoreError, WriteFailed
from pipeline.records.codec import Record, encode_fact
from pipeline.records.documents import head_document, large_keys
from pipeline.records.fold import Builder
from pipeline.records.kinds import CallEnded, Fact, StepCompleted, StepFailed, TaskCompleted
from pipeline.records.lines import encode_line
from pipeline.records.run import RunState
from pipeline.records.values import INLINE_LIMIT, encode_value, reference
from pipeline.store.base import Journal

#: The document and the state that it was made from → the document to write.
Shape = Callable[[dict[str, Any], RunState], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class HeadView:
    """checkpoint.json as a format wants it."""

    #: Adds names to the document; pure, and in time that grows with the state only.
    shape: Shape
    #: Write it at every checkpoint, not only now and then; a large one a little less often.
    each_checkpoint: bool = False


#: Unsynced records are synced with the first record that comes this many seconds later.
LAZY_SECONDS = 0.02
#: The head is rewritten once this many times its last cost has passed.
HEAD_FACTOR = 20
_HEAD_MIN_SECONDS = 0.2
#: Where a head is wanted at each checkpoint: one of more visits than this waits this many times its cost.
_LARGE_STEPS = 200
_CHECKPOINT_FACTOR = 4
_WARN_BYTES = 500_000

Told = Callable[[], None]
#: A record, its line, and whom to tell once it is durable.
_Entry = tuple[Record, bytes, Told | None]
#: Money was spent, or the world was changed, whatever the disk says.
_ENDS = (CallEnded, TaskCompleted)


class Reading:
    """Holds the fold still while it is read."""

    def __init__(self, lock: threading.Lock, state: RunState) -> None:
        self._lock = lock
        self._state = state

    def __enter__(self) -> RunState:
        self._lock.acquire()
        return self._state

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Recorder:
    """The one writer above an open journal; owns the fold."""

    def __init__(
        self,
        journal: Journal,
        builder: Builder,
        clock: Clock,
        *,
        owner: int,
        nodes: Sequence[str],
        warn: Callable[[str], None],
        view: HeadView | None = None,
    ) -> None:
        self.journal = journal
        self._builder = builder
        self._clock = clock
        self.owner = owner
        self._nodes = nodes
        self._warn = warn
        self._view = view
        self._lock = threading.Lock()
        self._turn = threading.Condition(self._lock)
        #: How many threads wait for their turn or their record.
        self._waiting = 0
        self._queue: list[_Entry] = []
        #: What is queued is synced when it is written: some fact asks for it, or a thread has waited long.
        self._urgent = False
        self._next = journal.last_seq + 1
        self._done = journal.last_seq
        self._leading = False
        #: What is being written now, and ends of calls whose replies are being stored, by number.
        self._writing: list[_Entry] = []
        self._ends: dict[int, Fact] = {}
        #: The process ends now: nothing acts on what is still written.
        self._left = False
        self._broken: PipelineError | None = None
        self._untold: list[Told] = []
        self._synced_at = clock.monotonic()
        # A head that is there already says enough until work has begun.
        self._head_due = clock.monotonic() + (_HEAD_MIN_SECONDS if journal.last_seq > 1 else 0)
        #: When the head is next written at a checkpoint, where a format wants that.
        self._checkpoint_due = math.inf
        self._warned = False
        #: Called when the disk is full and the store lives on what it had held back.
        self.on_strain: Told | None = None
        self._blobs = threading.Lock()
        self._reading = Reading(self._lock, builder.state)

    @property
    def state(self) -> RunState:
        """Return the live fold; read it inside `reading()` where threads are running."""
        return self._builder.state

    @property
    def refused(self) -> PipelineError | None:
        """Return why nothing more can be recorded; None while the disk takes everything."""
        return self._broken

    def reading(self) -> Reading:
        """Return the state, held still within a `with`."""
        return self._reading

    def append(
        self,
        fact: Fact,
        outputs: bytes | None = None,
        *,
        sync: bool = True,
        then: Told | None = None,
        follow: Sequence[Fact] = (),
        at: str = "",
    ) -> int:
        """Record a fact and return its seq.

        With `sync` it is durable on return. Without, it is written on return and synced with the next
        record that is; `then` is called once it is durable. `outputs`: see encode_fact. `follow` are
        facts that it leads to: the next records, in the same write. `at`: when it was first recorded,
        if that was in a part.

        Raises:
            Pause: The disk refused it; nothing more may start.
        """
        body = encode_fact(fact, outputs)
        after = [(each, encode_fact(each)) for each in follow]
        with self._lock:
            at = at or self._clock.stamp()
            if self._broken is not None:
                self._save(fact, at, body)
                raise Pause("store", self._broken)
            entry = self._enter(fact, at, body, then)
            seq = entry[0].seq
            for each, text in after:
                self._enter(each, at, text, None)
            if sync or (then is not None and self._clock.monotonic() - self._synced_at > LAZY_SECONDS):
                self._urgent = True
            while self._done < seq and self._broken is None:
                if self._leading:
                    self._wait()
                else:
                    self._lead()
            if self._done < seq:
                assert self._broken is not None
                if entry in self._queue:
                    self._queue.remove(entry)
                    self._save(fact, at, body)
                raise Pause("store", self._broken)
            if self._left and self._broken is not None:
                raise Pause("store", self._broken)
        return seq

    def _enter(self, fact: Fact, at: str, body: bytes, then: Told | None) -> _Entry:
        """Give a fact its place in the journal."""
        seq = self._next
        self._next = seq + 1
        owner = self.owner or seq
        entry = (Record(seq, at, owner, fact), encode_line(seq, at, owner, body), then)
        self._queue.append(entry)
        return entry

    def _wait(self) -> None:
        """Wait for the present write to end."""
        self._waiting += 1
        self._turn.wait()
        self._waiting -= 1

    def _save(self, fact: Fact, at: str, body: bytes) -> None:
        """Store, after a refusal, the end of what was in flight where the store keeps what it can."""
        if not isinstance(fact, _ENDS):
            return
        while self._leading:
            self._wait()
        seq = self.journal.last_seq + 1
        try:
            self.journal.append(seq, [encode_line(seq, at, self.owner, body)], True)
        except WriteFailed as error:
            self._break(error)

    def _break(self, error: PipelineError) -> None:
        """Take nothing new; the error that says where refused records are kept is the one to show."""
        if self._broken is None or (error.data.get("emergency") and not self._broken.data.get("emergency")):
            self._broken = error

    def sync(self) -> None:
        """Make all that was written durable.

        Raises:
            Pause: The disk refused.
        """
        with self._lock:
            while self._untold and self._broken is None:
                if self._leading:
                    self._wait()
                else:
                    self._urgent = True
                    self._lead()
            if self._broken is not None:
                raise Pause("store", self._broken)

    def _lead(self) -> None:
        """Write what is queued, for all threads that wait; called and left with the lock held."""
        batch, self._queue = self._queue, []
        self._writing = batch
        sync, self._urgent = self._urgent, False
        self._leading = True
        self._lock.release()
        error: PipelineError | None = None
        try:
            self.journal.append(self._done + 1, [line for _, line, _ in batch], sync)
        except WriteFailed as caught:
            error = caught
        except BaseException as caught:
            error = WriteFailed(f"The journal could not be written: {caught}", code="journal_failed")
            raise
        finally:
            self._lock.acquire()
            self._leading, self._writing = False, []
            if error is None:
                self._apply(batch, sync)
            else:
                self._break(error)
            if self._waiting:
                self._turn.notify_all()

    def _apply(self, batch: list[_Entry], synced: bool) -> None:
        apply = self._builder.apply
        for record, _, then in batch:
            apply(record)
            if then is not None:
                self._untold.append(then)
        if batch:
            self._done = batch[-1][0].seq
        now = self._clock.monotonic()
        if synced:
            self._synced_at = now
            if self._untold:
                told, self._untold = self._untold, []
                for then in told:
                    then()
        if self.on_strain is not None and getattr(self.journal, "strained", False):
            self.on_strain()
        if now >= self._head_due or (now >= self._checkpoint_due and _reached(batch)):
            self._write_head(durable=False)

    def _write_head(self, *, durable: bool) -> None:
        begun = self._clock.monotonic()
        document = head_document(self._builder.state, self.journal_bytes, self._nodes)
        if self._view is not None:
            document = self._view.shape(document, self._builder.state)
        self.journal.write_head(document, durable)
        ended = self._clock.monotonic()
        cost = ended - begun
        self._head_due = ended + max(HEAD_FACTOR * cost, _HEAD_MIN_SECONDS)
        if self._view is not None and self._view.each_checkpoint:
            many = len(self._builder.state.steps) > _LARGE_STEPS
            self._checkpoint_due = ended + (_CHECKPOINT_FACTOR * cost if many else 0)
        # A large document needs a large journal (or an import).
        big = self.journal_bytes > _WARN_BYTES or bool(self.state.imported)
        if big and not self._warned and (large := large_keys(document)):
            self._warned = True
            self._warn(f"checkpoint.json is larger than {_WARN_BYTES // 1000} kB; largest: {', '.join(large[:3])}")

    @property
    def journal_bytes(self) -> int:
        return int(getattr(self.journal, "size", 0))

    def leave(self) -> None:
        """Write the final head; the journal stays open."""
        with self._lock:
            while self._leading:
                self._wait()
            if self._broken is None:
                self._write_head(durable=True)

    def leave_behind(self, seconds: float) -> str:
        """Take nothing more, since the process ends; what is not durable within some seconds is kept elsewhere.

        Returns:
            The file that keeps it; "" where all of it is in the journal.
        """
        with self._lock:
            self._waiting += 1
            self._turn.wait_for(lambda: not (self._leading or self._queue), seconds)
            self._waiting -= 1
            lines = [line for _, line, _ in (*self._writing, *self._queue)]
            for seq, fact in enumerate(list(self._ends.values()), self._next):
                lines.append(encode_line(seq, self._clock.stamp(), self.owner, encode_fact(fact)))
            stuck = bool(lines) or self._leading or self._broken is not None
            kept = self.journal.leave_behind(lines) if stuck else ""
            self._left = True
            self._break(WriteFailed("The process exits immediately.", code="left_at_once", emergency=kept))
        return kept

    def fit(self, value: Any, encoded: bytes) -> Any:
        """Return the value as it goes into a record: itself, or a reference to a blob of its JSON text."""
        if len(encoded) <= INLINE_LIMIT and not (isinstance(value, Mapping) and "$blob" in value):
            return value
        return reference(self.put_blob(encoded), len(encoded))

    def fit_text(self, value: Any, where: str) -> bytes:
        """Return the JSON text of the value, or of a reference to a blob of it, as it goes into a record.

        Raises:
            InvalidValue: It is not JSON; names the key below `where`.
        """
        encoded = encode_value(value, where)
        stored = self.fit(value, encoded)
        return encoded if stored is value else encode_value(stored)

    def fit_reply(self, reply: dict[str, Any], ended: Callable[[bytes], Fact]) -> bytes:
        """Do as `fit_text`, for what was paid for: it never raises.

        Where the disk takes no blob, the record holds the reply itself; what is not JSON is left out.

        Args:
            ended: The record of a reply with that text, kept should the process have to leave before it is stored.
        """
        try:
            encoded = encode_value(reply, "reply")
        except InvalidValue as problem:
            encoded = encode_value({**reply, "usage": {}, "extra": {"left_out": problem.message}}, "reply")
        if len(encoded) <= INLINE_LIMIT:
            return encoded
        number = id(encoded)
        self._ends[number] = ended(encoded)
        try:
            with self._blobs:
                return encode_value(reference(self.journal.put_blob(encoded), len(encoded)))
        except StoreError:
            return encoded
        finally:
            del self._ends[number]

    def put_blob(self, data: bytes) -> str:
        """Store bytes by hash, durable on return.

        Raises:
            Pause: The disk refused.
        """
        try:
            with self._blobs:
                return self.journal.put_blob(data)
        except WriteFailed as error:
            with self._lock:
                self._break(error)
            raise Pause("store", error) from None


def _reached(batch: Sequence[_Entry]) -> bool:
    """Return whether the end of a step is among the records."""
    return any(isinstance(record.fact, (StepCompleted, StepFailed)) for record, _, _ in batch)


class StepEndHook(Protocol):
    """Called after each recorded step end, in the step's thread; it may record more."""

    def begun(self, recorder: Recorder) -> None:
        """Take note that an owner has the run and starts its loop now."""

    def ended(self, path: str) -> None:
        """Take note that the end of a visit's attempt is recorded."""
