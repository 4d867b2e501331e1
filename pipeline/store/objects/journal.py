"""The one writer of a run's objects: each append is one object, created only where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.records.lines import line_body, line_seq
from pipeline.store.base import Taken
from pipeline.store.emergency import EmergencyFile
from pipeline.store.head import head_bytes
from pipeline.store.late import refused, worth_keeping
from pipeline.store.lock import drop_in_children
from pipeline.store.objects import keys
from pipeline.store.objects.blobs import Blobs
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.late import LateJournal
from pipeline.store.objects.lease import Lease
from pipeline.store.objects.lines import entries
from pipeline.store.objects.lines import lines as stored_lines

#: So many appends are written once more as one object, so that a long run is read in few requests.
SEGMENT_APPENDS = 256


@dataclass
class End:
    """Where a journal ends, as its new owner found it."""

    last_seq: int = 0
    size: int = 0
    #: The seq that the last append begins with (0: there is none).
    last_append: int = 0
    #: The appends that no segment holds yet.
    tail: list[bytes] = field(default_factory=list)
    #: The etag of the object that keeps the next append's place; "" if none does.
    fence: str = ""


class ObjectJournal:
    """An open journal; see store.base.Journal. One thread at a time."""

    #: There is no disk to fill.
    strained = False
    queried = False

    def __init__(
        self,
        bucket: Bucket,
        run: str,
        lease: Lease,
        end: End,
        *,
        head_etag: str,
        repairs: Sequence[Sequence[Any]] = (),
        closed: Callable[[ObjectJournal], None],
    ) -> None:
        self.run_id = run
        self.last_seq = end.last_seq
        self.size = end.size
        self.repairs = repairs
        self._bucket = bucket
        self._lease = lease
        self._end = end
        self._head_etag = head_etag
        self._blobs = Blobs(bucket, run)
        self._closed = closed
        self._open = True
        self._emergency = EmergencyFile(run, bucket.address.place)
        self.taken: Sequence[Taken] = ()
        self._late: LateJournal | None = None
        #: The run was removed under its owner.
        self._gone = False
        #: Why nothing is taken any more, once that is so.
        self._why = "The journal is closed."
        drop_in_children(self)

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """See store.base.Journal.append. What is written is durable, asked or not."""
        if sync and self._open:
            self._lease.confirm()
        if not self._open or self._lease.lost:
            self._refuse(lines)
        if first_seq != self.last_seq + 1:
            lines = self._unseen(first_seq, lines)
        data = b"".join(lines)
        if not data:
            return
        seq = self.last_seq + 1
        key = keys.journal(self.run_id, seq)
        try:
            fence, bucket = self._end.fence, self._bucket
            etag = bucket.put_over(key, data, fence) if fence else bucket.put_new(key, data)
        except WriteFailed as error:
            self._give_up(data, error)
        if etag is None:
            self._lease.lost = True
            self._refuse(lines)
        self._bucket.remember(key, etag, data)
        self._end.fence, self._end.last_append = "", seq
        self.last_seq += len(lines)
        self.size += len(data)
        self._end.tail.append(data)
        if len(self._end.tail) >= SEGMENT_APPENDS:
            self._write_segment()

    def put_blob(self, data: bytes) -> str:
        """See store.base.Journal.put_blob."""
        # A reply in flight may still be stored by an owner that was fenced out: blobs harm nobody.
        if not self._open:
            raise self._failed("The journal is closed.")
        return self._blobs.put(data)

    def get_blob(self, blob: str) -> bytes:
        """See store.base.Journal.get_blob."""
        return self._blobs.get(blob)

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """See store.base.Journal.write_head."""
        if not self._open or self._lease.lost or "/" in self.run_id:
            return
        data, key = head_bytes(document), keys.head(self.run_id)
        notes = head_notes(self.last_seq, self._end.last_append)
        with contextlib.suppress(PipelineError):
            etag = self._bucket.put_over(key, data, self._head_etag, notes)
            if etag is None:
                # Another's is there: of the owner now, or of one before whose last word came after its takeover.
                self._lease.renew()
                if self._lease.lost:
                    return
                found = self._bucket.get(key)
                put = self._bucket
                etag = put.put_over(key, data, found.etag, notes) if found else put.put_new(key, data, notes)
            self._head_etag = etag or self._head_etag

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """See store.base.Journal.leave_behind."""
        self._emergency.add(b"".join(lines))
        return self._emergency.path

    def close(self) -> None:
        """See store.base.Journal.close."""
        self._emergency.close()
        if not self._open:
            return
        self._open = False
        self._lease.release()
        with contextlib.suppress(PipelineError):
            self._closed(self)

    def left(self) -> tuple[Lease, End, str] | None:
        """How it was given up: with this lease, end and etag of its head; None: what is there is not known."""
        if self._open or self._lease.lost or not self._lease.left:
            return None
        return self._lease, replace(self._end, last_seq=self.last_seq, size=self.size), self._head_etag

    def drop(self) -> None:
        """In a forked child: the parent owns the run, so nothing here writes any more."""
        self._open = False
        self._emergency.close()

    def _unseen(self, first_seq: int, lines: Sequence[bytes]) -> Sequence[bytes]:
        if first_seq > self.last_seq + 1:
            raise StoreError(f"Record {first_seq} cannot follow record {self.last_seq}.", seq=first_seq)
        known, after = self.last_seq + 1 - first_seq, first_seq - 1
        listed = entries(self._bucket, self.run_id, after)
        stored = {line_seq(line): line for line in stored_lines(self._bucket, self.run_id, listed, after)}
        for seq, line in enumerate(lines[:known], first_seq):
            if seq not in stored or line_body(stored[seq]) != line_body(line):
                raise StoreError(f"Record {seq} holds another fact.", seq=seq)
        return lines[known:]

    def _write_segment(self) -> None:
        """A second form of what is there already: where it fails, the next one is longer."""
        data = b"".join(self._end.tail)
        key = keys.segment(self.run_id, line_seq(data), self.last_seq)
        with contextlib.suppress(PipelineError):
            self._bucket.put(key, data)
            self._end.tail.clear()

    def _refuse(self, lines: Sequence[bytes]) -> NoReturn:
        """Nothing is appended any more; what was paid for goes where the run finds it."""
        if not self._lease.lost:
            if self._emergency.path:
                self._emergency.add(b"".join(lines))
            raise self._failed(self._why)
        if self._late is None and not self._gone:
            with contextlib.suppress(PipelineError):
                self._gone = self._bucket.get(keys.lease(self.run_id)) is None
        if self._gone:
            self._emergency.add(b"".join(lines) if self._open else b"")
            raise self._failed(self._why)
        if self._late is None:
            self._late = LateJournal(self._bucket, self.run_id, self._lease.epoch)
        kept = worth_keeping(lines)
        if self._open and not self._late.add(kept):
            self._emergency.add(b"".join(kept))
        raise self._failed(self._why)

    def _give_up(self, data: bytes, error: WriteFailed) -> NoReturn:
        """Nobody knows whether the object will still appear, so its place is not used again by this owner."""
        self._emergency.add(data)
        self._shut()
        self._why = f"A record could not be stored. {error.message}"
        raise self._failed(self._why) from error

    def _shut(self) -> None:
        self._open = False
        self._lease.release()

    def _failed(self, what: str) -> WriteFailed:
        return refused(
            self.run_id, what, lost=self._lease.lost, gone=self._gone, kept=self._emergency.path, awaited="server"
        )


def head_notes(last_seq: int, last_append: int) -> dict[str, str]:
    """What is attached to a head: up to which record it tells, and the append that this record is in."""
    return {"seq": str(last_seq), "append": str(last_append)}
