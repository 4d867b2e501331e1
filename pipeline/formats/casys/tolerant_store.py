"""A store whose refusals do not end a run (seeds/003: log, continue): refused records are held and tried again.

Only free work continues so. The start of a paid call is never held: it is durable before the call, or there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from pipeline.errors import StoreError, WriteFailed
from pipeline.formats.shelf import ENVELOPE_BYTES
from pipeline.records.lines import line_seq
from pipeline.records.values import digest
from pipeline.store.base import Journal, Store

_PAID = (b'"kind":"call_started"', b'"kind":"batch_intended"')


class TolerantJournal:
    """An open journal that holds what the disk refuses; all else is that of the journal below (store.base.Journal)."""

    #: A full disk stops nothing here.
    strained = False

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.last_seq = inner.last_seq
        #: Lines and blobs that are not on the disk; the newest refusal, None while everything is.
        self.held: list[bytes] = []
        self.blobs: dict[str, bytes] = {}
        self.refused: StoreError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def durable_seq(self) -> int:
        """Return the seq of the last line on the disk."""
        return self._inner.last_seq

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """Append lines; refused ones are held and count all the same, unless they would spend money.

        Raises:
            WriteFailed: The disk refuses, and the lines start a paid call.
        """
        with self._lock:
            paid = any(mark in line[:ENVELOPE_BYTES] for line in lines for mark in _PAID)
            if self.refused is None or paid:
                if self._write(first_seq, lines, sync):
                    return
                if paid:
                    assert self.refused is not None
                    raise self.refused
            self.held += lines
            self.last_seq += len(lines)

    def mend(self) -> StoreError | None:
        """Try again to write what is held; return None where all is on the disk now, else the refusal."""
        with self._lock:
            if self.refused is not None:
                self._write(self.last_seq + 1, [], True)
            return self.refused

    def _write(self, first_seq: int, lines: Sequence[bytes], sync: bool) -> bool:
        """Write what is held and then these lines; return whether all is on the disk. A refusal is tried once more."""
        for _ in range(2):
            try:
                for blob, data in list(self.blobs.items()):
                    self._inner.put_blob(data)
                    del self.blobs[blob]
                everything = [*self.held, *lines]
                if everything:
                    self._inner.append(first_seq - len(self.held), everything, sync or bool(self.held))
            except WriteFailed as error:
                # After a failed sync the journal itself refuses whatever comes.
                self.refused = error
                continue
            self.held.clear()
            self.refused = None
            self.last_seq = first_seq + len(lines) - 1
            return True
        return False

    def put_blob(self, data: bytes) -> str:
        """Store bytes, or hold them; return their hash."""
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
        """Return the bytes of a hash, held or stored."""
        held = self.blobs.get(blob)
        return self._inner.get_blob(blob) if held is None else held

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """Keep what is held and these lines outside the store; return the file."""
        return self._inner.leave_behind([*self.held, *lines])

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """Replace the head; while something is held, that on the disk stays true."""
        if self.refused is None:
            self._inner.write_head(document, durable)

    def close(self) -> None:
        """Try once more to write what is held, and close."""
        self.mend()
        self._inner.close()


class TolerantStore:
    """A store whose journals hold what the disk refuses; reading sees that too. See store.base.Store for the rest."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        #: The journal opened last, by run.
        self.journals: dict[str, TolerantJournal] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def as_store(self) -> Store:
        return cast(Store, self)

    def create(self, *args: Any, **more: Any) -> tuple[str, Journal]:
        """Make a run; one that cannot be resumed never exists, here neither."""
        run, journal = self._inner.create(*args, **more)
        return run, self._tolerant(journal)

    def open(self, run: str) -> Journal:
        return self._tolerant(self._inner.open(run))

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        journal = self.journals.get(run)
        held = [] if journal is None else [line.rstrip(b"\n") for line in journal.held if line_seq(line) > after]
        return chain(self._inner.read(run, after), held)

    def get_blob(self, run: str, blob: str) -> bytes:
        journal = self.journals.get(run)
        held = None if journal is None else journal.blobs.get(blob)
        return self._inner.get_blob(run, blob) if held is None else held

    def blobs(self, run: str) -> list[str]:
        """Return the hashes of a run's values, held ones too."""
        journal = self.journals.get(run)
        return [*self._inner.blobs(run), *(journal.blobs if journal is not None else ())]

    def _tolerant(self, journal: Journal) -> Journal:
        made = self.journals[journal.run_id] = TolerantJournal(journal)
        return cast(Journal, made)
