"""The end of a journal of objects: each append is one object, created only where there is none, or over an own fence.

The lease says who owns it; the fence at the next number is what stops the owner before. A head is put over the very
head that was read or put last, and a new owner puts it once, so that the one before can replace it no more.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.clock import SystemClock
from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.records.codec import decode_line
from pipeline.records.kinds import RunStarted
from pipeline.records.lines import LineDamaged, line_seq
from pipeline.store.backend import Fenced, Gone, Tail, Unsure, claim_text
from pipeline.store.lease import parse
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket, Entry, Found
from pipeline.store.objects.segments import FENCE, SEGMENT_APPENDS, Listing, appends, is_sound, listing, numbers

if TYPE_CHECKING:
    from pipeline.store.objects.backend import ObjectBackend

#: After how long a record is written only once the server has said that the lease is held still.
CONFIRM_SECONDS = 5
_TRIES = 100
#: How many numbers further on an owner that still appends is stopped, at first.
_AHEAD = 8
#: What is put in the place of a head that is not written yet, so that the run is listed.
_NO_HEAD = b"{}"
#: Real seconds, whatever a run's clock says: the server counts them too.
_CLOCK = SystemClock()


@dataclass
class End:
    """Where a journal ends, as its owner knows it."""

    #: The numbers of the last line, and of the line that the last append begins with (0: there is none).
    last: int = 0
    last_append: int = 0
    #: Own fences: number → etag.
    fences: dict[int, str] = field(default_factory=dict)
    #: The appends that no segment holds yet.
    unsegmented: list[Entry] = field(default_factory=list)
    #: The etag of the head; None: not known.
    head: str | None = None


class Left(NamedTuple):
    """How this process left a journal. It has had no other owner while its lease has this etag."""

    etag: str
    epoch: int
    stamp: str
    end: End


class ObjectTail(Tail):
    """The end of a run's or part's journal in a bucket, or of a claim, which is its lease alone."""

    def __init__(self, backend: ObjectBackend, name: str, text: Mapping[str, Any], etag: str) -> None:
        self.epoch: int = text["epoch"]
        self.name = name
        #: The run was removed.
        self.gone = False
        self._backend = backend
        self._bucket: Bucket = backend.bucket
        self._text = dict(text)
        self._etag = etag
        self._end = End()
        self._last_put: tuple[int, bytes] = (0, b"")
        self._lost = self._released = self._resumed = False
        self._stamp = ""
        self._lock = threading.Lock()
        self._asked = _CLOCK.monotonic()

    @property
    def inherits(self) -> bool:
        return self.epoch > 1 and not self._resumed

    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
        """See Tail.append. What is written is durable, asked or not."""
        data, end = b"".join(lines), self._end
        if not data or (seq, data) == self._last_put:
            return
        if sync and _CLOCK.monotonic() - self._asked > CONFIRM_SECONDS:
            with contextlib.suppress(StoreError):
                self.renew()
        self._check()
        key, last = keys.journal(self.name, seq), seq + len(lines) - 1
        try:
            if not end.last and keys.is_run(self.name):
                self._begin(data)
            etag = self._bucket.put(key, data, end.fences.get(seq, ""))
        except WriteFailed as error:
            # Whether the object will still appear is not known, so its place is not used again.
            raise Unsure(f"A record could not be stored. {error.message}", error.hint) from error
        if etag is None:
            raise self._lose()
        self._bucket.remember(key, etag, data)
        # Fences within this append are of no use any more.
        over = [number for number in end.fences if number <= last]
        self._unfence([number for number in over if number != seq])
        end.fences = {number: tag for number, tag in end.fences.items() if number > last}
        end.last, end.last_append, self._last_put = max(last, _number(lines[-1])), seq, (seq, data)
        end.unsegmented.append(Entry(key, len(data), etag, _CLOCK.now()))
        if len(end.unsegmented) >= SEGMENT_APPENDS:
            self._write_segment()

    def head(self, data: bytes, sync: bool) -> None:
        self._put_head(padded(data, self.epoch), head_notes(self._end.last, self._end.last_append))

    def put(self, key: str, data: bytes) -> None:
        if self.gone:
            raise Gone
        self._bucket.put(keys.object_key(key), data)

    def rewrite(self, lines: Sequence[bytes]) -> None:
        """See Tail.rewrite. One segment replaces all; of a claim only the ownership is proved."""
        self.renew()
        self._check()
        if keys.is_claim(self.name):
            return
        data, last = b"".join(lines), _number(lines[-1]) if lines else 0
        before = [entry for entry in self._bucket.listed(f"{keys.home(self.name)}/s") if keys.is_segment(entry.key)]
        before = [entry for entry in before if keys.is_rewritten(entry.key)]
        number = max((int(entry.key[-6:]) for entry in before), default=0) + 1
        if self._bucket.put(f"{keys.segment(self.name, 1, last)}-{number:06d}", data, "") is None:
            raise self._lose()
        there = list(appends(self._bucket, self.name))
        torn = [entry for entry in there if keys.seq(entry.key) > last]
        self._bucket.delete(each.key for each in (*before, *torn) if each.etag not in self._end.fences.values())
        self._end.last, self._end.unsegmented, self._last_put = last, [], (0, b"")
        self._end.last_append = max((keys.seq(entry.key) for entry in there if keys.seq(entry.key) <= last), default=0)

    def left(self) -> str:
        """See Tail.left. What the first owner wrote is surveyed once."""
        if self._lost or not self._end.last or self.epoch == 1:
            return ""
        self._stamp = self._stamp or f"{self._text['id']}.{self._end.last}"
        return self._stamp

    def renew(self) -> None:
        with self._lock:
            if self._released:
                return
            # Never the same text twice: its etag would not change.
            self._text["beat"] += 1
            self._asked = _CLOCK.monotonic()
            # Of a run that was removed the next append tells.
            with contextlib.suppress(Gone):
                self._put_lease(self._text)

    def release(self) -> None:
        with self._lock:
            if self._released:
                return
            # Never the same text twice, also where a run of the same name comes later.
            with contextlib.suppress(Fenced, Gone):
                if not (self._lost or self.gone):
                    self._put_lease({"epoch": self.epoch, "id": self._text["id"][:8]})
            self._released = True
        if self._stamp and not self._lost:
            self._backend.note(self.name, Left(self._etag, self.epoch, self._stamp, self._end))

    def drop(self) -> None:
        self._lock = threading.Lock()
        self._released = True

    def resume(self, left: Left) -> None:
        """Continue where this process left the journal."""
        self.found, self._end, self._resumed = left.stamp, left.end, True

    def take_over(self, head: Found | None) -> None:
        """Take the place of the next append and replace the head, so that who wrote before can do neither.

        Args:
            head: That of an owner which may still write, as it was before the lease was taken; else None.

        Raises:
            StoreError: The server does not answer, or others write there all the time.
        """
        found = listing(self._bucket, self.name)
        if keys.is_run(self.name) and (found is None or not self._begins_well(found)):
            # A leftover, or a run that cannot be opened: it is left as it is.
            return
        self._end.fences = self._fence(found or Listing())
        if head is not None:
            self._put_head(padded(head_data(head) or _NO_HEAD, self.epoch), head.notes)

    def _begins_well(self, found: Listing) -> bool:
        data = self._bucket.fetch((found.segments or found.appends)[0])
        return next(numbers(data), 0) == 1

    def _fence(self, found: Listing) -> dict[int, str]:
        """Find the end and put a fence there; return the fences that are known.

        Who still appends may do so faster than its end can be found, so a fence further on stops it.
        """
        barriers, ahead, end = dict[int, str](), _AHEAD, self._end
        try:
            for _ in range(_TRIES):
                old = self._read_end(found, barriers)
                seq = end.last + 1
                if seq in barriers:
                    return {**old, seq: barriers.pop(seq)}
                key = keys.journal(self.name, seq)
                etag = self._bucket.put(key, self._fence_text(), old.get(seq, ""))
                if etag is not None:
                    return {**old, seq: etag}
                if max(barriers, default=0) < seq:
                    etag = self._bucket.put(keys.journal(self.name, seq + ahead), self._fence_text(), "")
                    if etag is not None:
                        barriers[seq + ahead] = etag
                    ahead *= 2
                found = listing(self._bucket, self.name) or Listing()
        finally:
            self._unfence(barriers)
        raise self._busy()

    def _read_end(self, found: Listing, barriers: Mapping[int, str]) -> dict[int, str]:
        """Note where the journal ends; return the fences of owners before that are there."""
        end, fences = self._end, dict[int, str]()
        end.last = found.covered
        end.last_append = 0
        end.unsegmented = []
        for entry in reversed(found.appends):
            seq = keys.seq(entry.key)
            data = self._bucket.fetch(entry)
            if data.startswith(FENCE):
                if seq not in barriers:
                    fences[seq] = entry.etag
                continue
            if not end.last_append:
                # A damaged line has had a number too.
                many = list(numbers(data))
                end.last, end.last_append = max(seq + len(many) - 1, *many, seq), seq
                end.unsegmented = [each for each in found.appends if keys.seq(each.key) <= seq]
                break
        if not end.last_append and end.last:
            there = (keys.seq(entry.key) for entry in appends(self._bucket, self.name))
            end.last_append = max((seq for seq in there if seq <= end.last), default=0)
        return fences

    def _begin(self, data: bytes) -> None:
        """Put the run into the lists, of all runs and of its claim, before it exists."""
        self._end.head = self._bucket.put(keys.head(self.name), _NO_HEAD, "")
        for key in claim_key(self.name, data.partition(b"\n")[0]):
            self._bucket.put(key, b"")

    def _put_head(self, data: bytes, notes: dict[str, str]) -> None:
        key, end = keys.head(self.name), self._end
        for _ in range(_TRIES):
            self._check()
            if end.head is None:
                found = self._bucket.get(key)
                end.head = found.etag if found else ""
            end.head = self._bucket.put(key, data, end.head, notes)
            if end.head is not None:
                return
            # Another's is there: of the owner now, or of one before whose last word came late.
            self.renew()
        raise self._busy()

    def _put_lease(self, text: Mapping[str, Any]) -> None:
        """Put the lease over the own one.

        Raises:
            Fenced, Gone: Another owner has it.
            WriteFailed: Whether it was put is not known.
        """
        key = keys.lease(self.name)
        etag = self._bucket.put(key, encode(text), self._etag)
        if etag is None:
            found = self._bucket.get(key)
            if found is not None and parse(found.data).get("id") == self._text["id"]:
                # An own beat whose answer was lost.
                etag = self._bucket.put(key, encode(text), found.etag)
        if etag is None:
            raise self._lose()
        self._etag = etag

    def _lose(self) -> Fenced | Gone:
        self._lost = True
        with contextlib.suppress(PipelineError):
            self.gone = self.gone or self._bucket.get(keys.lease(self.name)) is None
        return Gone() if self.gone else Fenced()

    def _check(self) -> None:
        if self.gone:
            raise Gone
        if self._lost or self._released:
            raise Fenced

    def _write_segment(self) -> None:
        """Write the appends once more as one object; where that fails, the next one is longer."""
        end = self._end
        with contextlib.suppress(PipelineError):
            data = b"".join(each for each in self._bucket.fetch_all(end.unsegmented) if not each.startswith(FENCE))
            first = keys.seq(end.unsegmented[0].key)
            if is_sound(data, first, end.last):
                self._bucket.put(keys.segment(self.name, first, end.last), data)
            end.unsegmented.clear()

    def _unfence(self, numbers: Sequence[int] | Mapping[int, str]) -> None:
        if numbers:
            self._bucket.delete([keys.journal(self.name, number) for number in numbers])

    def _fence_text(self) -> bytes:
        return FENCE + f"epoch {self.epoch} {os.urandom(8).hex()}\n".encode()

    def _busy(self) -> StoreError:
        text = f"Run {self.name} is being written to by another process."
        return StoreError(text, hint="Try again.", run=self.name, code="store_busy")


def _number(line: bytes) -> int:
    """Return the number of a line; 0: it says none."""
    with contextlib.suppress(ValueError):
        return line_seq(line)
    return 0


def claim_hash(claim: str) -> str:
    """Return the name of a claim in keys."""
    return sha256(claim.encode()).hexdigest()[:32]


def claim_key(run: str, first: bytes) -> list[str]:
    """Return the key that lists a run below the claim that its first record holds; [] if it holds none."""
    try:
        fact = decode_line(first).fact
    except LineDamaged:
        return []
    claim = fact.claim if isinstance(fact, RunStarted) else None
    return [keys.claim(claim_hash(claim_text(claim)), run)] if claim else []


def head_notes(last: int, last_append: int) -> dict[str, str]:
    """Return what is attached to a head: up to which record it tells, and the append that this record is in."""
    return {"seq": str(last), "append": str(last_append)}


def padded(data: bytes, epoch: int) -> bytes:
    """Return a head in bytes, and so with an etag, that no owner shortly before or after this one gives it."""
    return data + b" " * (epoch % 61 + 1)


def head_data(found: Found) -> bytes | None:
    """Return a head as it was given; None where only its place is kept."""
    data = found.data.rstrip(b" ")
    return None if data == _NO_HEAD else data


def encode(text: Mapping[str, Any]) -> bytes:
    """Return a lease as it is kept."""
    return json.dumps(text, separators=(",", ":")).encode()
