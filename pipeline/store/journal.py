"""The one writer of a run, over any backend: appends, and what becomes of lines that are refused. Knows no facts."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.records.lines import line_body, line_seq
from pipeline.store import fenced_records
from pipeline.store.backend import Backend, Fenced, Gone, Refused, Tail, Unsure
from pipeline.store.base import Taken
from pipeline.store.emergency import EmergencyFile, advice
from pipeline.store.head import head_bytes
from pipeline.store.lease import Lease
from pipeline.store.lock import drop_in_children
from pipeline.store.survey import whole_lines
from pipeline.store.values import RunValues

#: Journals of this process whose unsynced lines may be held back, so that its own readers see them.
_holding: weakref.WeakSet[RunJournal] = weakref.WeakSet()
_changing = threading.Lock()


def flush(backend: Backend) -> None:
    """Write what journals of this process hold back from a backend."""
    if backend.lazy:
        with _changing:
            found = [journal for journal in _holding if journal.place == backend.place]
        for journal in found:
            journal.flush()


class RunJournal:
    """An open journal; see store.base.Journal. One thread at a time."""

    def __init__(
        self,
        backend: Backend,
        run: str,
        tail: Tail,
        values: RunValues,
        *,
        last_seq: int,
        size: int,
        repairs: Sequence[Sequence[Any]] = (),
        closed: Callable[[RunJournal, str | None], None],
    ) -> None:
        """Begin to write behind record `last_seq`.

        Args:
            size: Bytes of all lines so far.
            closed: Told of the journal and of its stamp (`Tail.left`) when it is left whole; of None as its stamp
                when it has left fenced records behind.
        """
        self.run_id = run
        self.last_seq = last_seq
        self.size = size
        self.repairs = repairs
        self.taken: Sequence[Taken] = ()
        self.queried = backend.queried
        self.place = backend.place
        self._backend = backend
        self._tail = tail
        self._values = values
        self._closed = closed
        self._emergency = EmergencyFile(run, backend.place_of(run))
        #: Takes lines; and, where it does not any more, the run's owner still has its lock.
        self._open = self._owned = True
        #: Why it is not open, where something went wrong.
        self._gone: Gone | None = None
        self._fenced = self._whole = False
        #: The run's next owner has records of this one to take in.
        self._kept_apart = False
        #: Where the journal ends as far as it was appended, and as far as it is durable: last seq, size.
        self._written = self._durable = (last_seq, size)
        #: Lines that were appended since the last sync: they may be lost with a power cut.
        self._loose: list[bytes] = []
        #: Lines that are held back until the next sync or tick.
        self._waiting: list[bytes] = []
        #: The last line that was appended: it tells of a run that went away with its store when nothing else was open.
        self._last = b""
        #: Held by the thread that appends; values are stored by others meanwhile.
        self._writing = threading.Lock()
        self._lease = None
        if backend.leased:
            self._lease = Lease(backend.place, run, tail, self.flush if backend.lazy else None)
        drop_in_children(self)

    @property
    def strained(self) -> bool:
        return self._tail.strained

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        with self._writing:
            if not self._open or self._lost:
                self._refuse(lines)
            if first_seq != self.last_seq + 1:
                lines = self._unseen(first_seq, lines)
            if not sync and self._backend.lazy:
                self._waiting += lines
                self.last_seq += len(lines)
                self.size += sum(map(len, lines))
                with _changing:
                    _holding.add(self)
            elif lines or sync:
                self._write(lines, sync)

    def flush(self) -> None:
        """Write what is held back, so that others see it. What goes wrong the next append tells."""
        with self._writing, contextlib.suppress(PipelineError):
            if self._open and self._waiting:
                if self._lost:
                    self._refuse(())
                self._write((), sync=False)

    def put_blob(self, data: bytes) -> str:
        # A reply in flight may still be stored when its record goes into the emergency file, or by an owner that was
        # fenced: a value does no harm.
        if not self._open and (self._gone or not (self._owned and self._emergency.path)):
            raise self._failed("The journal is closed.", "journal_closed")
        try:
            return self._values.put(self._tail, data)
        except Gone as gone:
            with self._writing:
                if self._open:
                    self._leave(gone, self._waiting)
            raise self._failed("The journal is closed.", "journal_closed") from None
        except StoreError as error:
            if error.data.get("gone"):
                with self._writing:
                    # The last line was durable: a call that it begins may be out.
                    kept = b"".join([*self._loose, *self._waiting]) or self._last
                    self._emergency.add(kept, sent=self._durable[0])
                    error.data["emergency"] = self._emergency.path
            raise

    def get_blob(self, blob: str) -> bytes:
        return self._values.get(blob)

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """See store.base.Journal.write_head. On a full disk the space is left to the records."""
        if not self._open or self._lost or "/" in self.run_id or (self.strained and not durable):
            return
        data = head_bytes(document)
        self.flush()
        with contextlib.suppress(OSError, PipelineError, Refused, Fenced, Gone):
            self._tail.head(data, durable)

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        # Without the lock: the thread that waits for the store has it.
        self._emergency.add(b"".join(dict.fromkeys([*self._waiting, *lines])))
        return self._emergency.path

    def close(self) -> None:
        self.flush()
        if self._open and self._lease is not None and self._tail.inherits and not self._lost:
            # Only a fenced owner leaves something, and there is none before the first.
            with contextlib.suppress(PipelineError):
                fenced_records.take_in(self._backend, self)
        if self._open and not self._lost and not self._emergency.path:
            self._closed(self, self._tail.left())
        kept_apart, self._kept_apart = self._kept_apart and self._open, False
        self._open = False
        self._emergency.close()
        self._release()
        if kept_apart:
            self._closed(self, None)

    def drop(self) -> None:
        """Write nothing in a forked child: the parent owns the run."""
        self._open = self._owned = False
        self._writing = threading.Lock()
        self._waiting = []
        self._tail.drop()
        self._emergency.close()

    @property
    def _lost(self) -> bool:
        return self._fenced or (self._lease is not None and self._lease.lost)

    def _write(self, lines: Sequence[bytes], sync: bool) -> None:
        """Append what waits, and these lines behind it."""
        if self._waiting:
            lines = [*self._waiting, *lines]
        try:
            self._tail.append(self._written[0] + 1, lines, sync)
        except Fenced:
            self._fenced = True
            self._forget()
            self._refuse(lines)
        except Gone as gone:
            self._leave(gone, lines)
        except Unsure as error:
            # What the backend holds is not known, so this owner adds nothing more.
            self._end_at(self._durable)
            self._emergency.add(b"".join([*self._loose, *lines]))
            self._shut()
            raise self._failed(error.message, "write_unsure", error) from error
        except Refused as error:
            self._forget()
            self._emergency.add(b"".join(lines))
            raise self._failed(error.message, "write_refused", error) from error
        seq, size = self._written
        self._written = seq + len(lines), size + (len(lines[0]) if len(lines) == 1 else sum(map(len, lines)))
        self._forget()
        if lines:
            self._last = lines[-1]
        if not sync:
            self._loose += lines
            return
        self._durable = self._written
        if self._loose:
            self._loose.clear()

    def _unseen(self, first_seq: int, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Return those lines that are not in the journal already.

        Raises:
            StoreError: A seq holds another fact, or would leave a hole.
        """
        if first_seq > self.last_seq + 1 and self._emergency.path:
            # The records before these were refused and are kept elsewhere; what follows goes there too.
            self._refuse(lines)
        if first_seq > self.last_seq + 1:
            text = f"Record {first_seq} cannot follow record {self.last_seq}."
            raise StoreError(text, seq=first_seq, code="seq_hole")
        if self._waiting:
            self._write((), sync=False)
        known = self.last_seq + 1 - first_seq
        read = whole_lines(self._backend.read(self.run_id, first_seq - 1), first_seq - 1)
        stored = {line_seq(line): line for line in read}
        for seq, line in enumerate(lines[:known], first_seq):
            if seq not in stored or line_body(stored[seq]) != line_body(line):
                raise StoreError(f"Record {seq} holds another fact.", seq=seq, code="seq_taken")
        return lines[known:]

    def _refuse(self, lines: Sequence[bytes]) -> NoReturn:
        """Take nothing more: what was paid for goes where the run finds it, or where what was refused went."""
        lines = [*self._waiting, *lines]
        self._forget()
        if self._lost and self._open:
            kept = fenced_records.worth_keeping(lines)
            if kept and fenced_records.keep(self._backend, self.run_id, self._tail.epoch, kept):
                self._kept_apart = True
            elif kept:
                self._emergency.add(b"".join(kept))
        elif self._owned and self._emergency.path:
            self._emergency.add(b"".join(lines))
        raise self._failed("The journal is closed.", "journal_closed")

    def _leave(self, gone: Gone, lines: Sequence[bytes]) -> NoReturn:
        """Keep all of a run that was taken away under its owner, since this may be the last of it."""
        rest = b"".join([*self._loose, *lines])
        self._end_at(self._durable)
        stored = gone.stored()
        if stored is not None:
            lost = b"" if gone.written else b"".join(lines)
            self._emergency.add(stored + lost, sent=self.last_seq)
        else:
            self._emergency.add(rest)
        self._gone, self._whole = gone, stored is not None
        self._shut()
        raise self._failed("The journal is closed.", "journal_closed")

    def _end_at(self, end: tuple[int, int]) -> None:
        self._written = end
        self._forget()

    def _forget(self) -> None:
        """Take what is held back for not given."""
        self.last_seq, self.size = self._written
        if self._waiting:
            self._waiting = []
            with _changing:
                _holding.discard(self)

    def _shut(self) -> None:
        self._loose = []
        self._open = False
        if self._lease is not None:
            self._lease.release()

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()
        elif self._owned:
            self._tail.release()
        self._owned = False

    def _failed(self, why: str, code: str, error: Refused | None = None) -> WriteFailed:
        """Return why nothing was appended, and what to do."""
        path, run = self._emergency.path, self.run_id
        named = self._backend.named(run)
        fatal = not self._open or self._lost
        if self._gone is not None:
            where = self._gone.where
            back = f"Bring {where} back to its place" if where else "Restore the run from a copy of the store"
            hint = (
                f"{back}, or restore the run from the emergency file: `./pipeline.sh recover {named} {path}`."
                if path
                else f"{back}."
            )
            why = f"Run {named} is gone: it was removed from the store while it was running."
            if where:
                why = (
                    f"Run {named} is gone from {where}: its journal or its lock was removed, moved or replaced while "
                    "the run was running."
                )
            else:
                hint = f"{back}, then resume the run."
            return WriteFailed(
                why, code="run_gone", hint=hint, fatal=True, emergency=path, run=run, gone=back,
                whole=self._whole,
            )  # fmt: skip
        hint = error.hint if error is not None else ""
        if self._lost:
            why, code = f"Run {named} was taken over by another process, so this one stops.", "run_taken_over"
            hint = f"What it had paid for is kept with the run: `./pipeline.sh status {named}` shows it."
        data = error.data if error is not None else {}
        if path and not data.get("gone"):
            hint = advice(named, path)
        return WriteFailed(why, code=code, hint=hint, fatal=fatal, emergency=path, run=run, **data)
