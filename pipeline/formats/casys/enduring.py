"""A store whose refusals do not end a run (seeds/003: log, go on): what it refuses is held in memory and tried again.

Only what is free goes on so. The start of a paid call is never held: it is durable before it leaves, or it stays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from pipeline.errors import StoreError, WriteFailed
from pipeline.records.lines import line_seq
from pipeline.records.values import digest
from pipeline.store.base import Claim, Head, Journal, Store

_PAID = (b'"kind":"call_started"', b'"kind":"batch_intended"')
#: The kind stands behind the envelope, within so many bytes.
_ENVELOPE = 120


class EnduringJournal:
    """An open journal that keeps what the disk refuses; see store.base.Journal."""

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.run_id = inner.run_id
        self.repairs = inner.repairs
        self.taken = inner.taken
        self.queried = inner.queried
        self.last_seq = inner.last_seq
        self.size = inner.size
        #: Lines and blobs that are not on the disk; the newest refusal, None while everything is.
        self.held: list[bytes] = []
        self.blobs: dict[str, bytes] = {}
        self.refused: StoreError | None = None

    @property
    def strained(self) -> bool:
        """A full disk stops nothing here."""
        return False

    @property
    def durable_seq(self) -> int:
        """The seq of the last line on the disk."""
        return self._inner.last_seq

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """See store.base.Journal.append; what is refused counts all the same, unless it would spend money.

        Raises:
            WriteFailed: The disk refuses, and the lines start a paid call.
        """
        with self._lock:
            paid = any(mark in line[:_ENVELOPE] for line in lines for mark in _PAID)
            if self.refused is None or paid:
                if self._write(first_seq, lines, sync):
                    return
                if paid:
                    assert self.refused is not None
                    raise self.refused
            self.held += lines
            self.last_seq += len(lines)

    def mend(self) -> StoreError | None:
        """Try again to write what is held; None where all is on the disk now, else the refusal."""
        with self._lock:
            if self.refused is not None:
                self._write(self.last_seq + 1, [], True)
            return self.refused

    def put_blob(self, data: bytes) -> str:
        """See store.base.Journal.put_blob."""
        with self._lock:
            if self.refused is None:
                try:
                    return self._inner.put_blob(data)
                except WriteFailed as error:
                    self.refused = error
            blob = digest(data)
            self.blobs[blob] = bytes(data)
            return blob

    def get_blob(self, blob: str) -> bytes:
        """See store.base.Journal.get_blob."""
        known = self.blobs.get(blob)
        return self._inner.get_blob(blob) if known is None else known

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """See store.base.Journal.leave_behind."""
        return self._inner.leave_behind([*self.held, *lines])

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """See store.base.Journal.write_head; while something is held, the head on the disk stays true."""
        if self.refused is None:
            self._inner.write_head(document, durable)

    def close(self) -> None:
        """See store.base.Journal.close; tries once more to write what is held."""
        self.mend()
        self._inner.close()

    def _write(self, first_seq: int, lines: Sequence[bytes], sync: bool) -> bool:
        """Write what is held and then these lines; whether all is on the disk. A refusal is tried once more."""
        for _ in range(2):
            try:
                for blob, data in list(self.blobs.items()):
                    self._inner.put_blob(data)
                    del self.blobs[blob]
                everything = [*self.held, *lines]
                if everything:
                    self._inner.append(first_seq - len(self.held), everything, sync or bool(self.held))
            except WriteFailed as error:
                self.refused = error
                if error.data.get("fatal"):
                    # A sync failed: nobody knows what the file holds, and another sync would lie.
                    return False
                continue
            self.held.clear()
            self.refused = None
            self.last_seq = first_seq + len(lines) - 1
            self.size = self._inner.size
            return True
        return False


class EnduringStore:
    """A store whose journals endure refusals; see store.base.Store."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.url = inner.url
        #: The journal opened last, by run.
        self.journals: dict[str, EnduringJournal] = {}

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, Journal]:
        """See store.base.Store.create: a run that cannot be resumed never exists, here neither."""
        run, journal = self._inner.create(first, blobs, at=at, claim=claim)
        return run, self._enduring(journal)

    def open(self, run: str) -> Journal:
        """See store.base.Store.open."""
        return self._enduring(self._inner.open(run))

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        """See store.base.Store.read; with what is held."""
        journal = self.journals.get(run)
        held = [] if journal is None else [line.rstrip(b"\n") for line in journal.held if line_seq(line) > after]
        return chain(self._inner.read(run, after), held)

    def written_head(self, run: str) -> Mapping[str, Any]:
        return self._inner.written_head(run)

    def get_blob(self, run: str, blob: str) -> bytes:
        """See store.base.Store.get_blob; of what is held too."""
        journal = self.journals.get(run)
        known = None if journal is None else journal.blobs.get(blob)
        return self._inner.get_blob(run, blob) if known is None else known

    def blobs(self, run: str) -> list[str]:
        """See store.base.Store.blobs; of what is held too."""
        journal = self.journals.get(run)
        return [*self._inner.blobs(run), *(journal.blobs if journal is not None else ())]

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        return self._inner.heads(match)

    def delete(self, run: str) -> None:
        """See store.base.Store.delete."""
        self._inner.delete(run)

    def sweep(self, before: datetime) -> list[str]:
        """See store.base.Store.sweep."""
        return self._inner.sweep(before)

    def is_there(self) -> bool:
        """See store.base.Store.is_there."""
        return self._inner.is_there()

    def _enduring(self, journal: Journal) -> EnduringJournal:
        made = self.journals[journal.run_id] = EnduringJournal(journal)
        return made
