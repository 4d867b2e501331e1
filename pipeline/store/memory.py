"""Runs in memory, gone at the end: the public fake of the store and of the account, under the same contract suite."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.errors import RunNotFound, StoreError, WriteFailed
from pipeline.records.lines import line_body, line_seq
from pipeline.records.values import digest
from pipeline.store.account import Sums, reserved, settled, utc_day
from pipeline.store.base import Claim, Head, Taken
from pipeline.store.claims import refuse_if_held
from pipeline.store.head import head_bytes, parse_head
from pipeline.store.lock import locked
from pipeline.store.names import minted, newest_first, split
from pipeline.store.owner import process, seen_now
from pipeline.store.packed import whole
from pipeline.store.view import first_problem, fresh_document


@dataclass
class _Run:
    """What is remembered of one run or sub-journal."""

    lines: list[bytes] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    #: Bytes that the lines would take in a file.
    size: int = 0
    blobs: dict[str, bytes] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)
    owner: dict[str, Any] = field(default_factory=dict)

    def add(self, seq: int, line: bytes) -> None:
        self.lines.append(line.rstrip(b"\n"))
        self.seqs.append(seq)
        self.size += len(self.lines[-1]) + 1


class MemoryJournal:
    """An open journal in memory; see store.base.Journal."""

    queried = False

    def __init__(self, run_id: str, run: _Run, since: datetime) -> None:
        self.run_id = run_id
        self.last_seq = run.seqs[-1] if run.seqs else 0
        self.size = run.size
        self.repairs: Sequence[Sequence[Any]] = ()
        self.taken: Sequence[Taken] = ()
        self.strained = False
        self._run = run
        self._open = True
        run.owner = {**process(), "since": iso(since)}

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """See store.base.Journal.append."""
        self._check()
        if first_seq != self.last_seq + 1:
            lines = self._unseen(first_seq, lines)
            first_seq = self.last_seq + 1
        for seq, line in enumerate(lines, first_seq):
            self._run.add(seq, line)
        self.last_seq += len(lines)
        self.size = self._run.size

    def put_blob(self, data: bytes) -> str:
        """See store.base.Journal.put_blob."""
        self._check()
        blob = digest(data)
        self._run.blobs[blob] = bytes(data)
        return blob

    def get_blob(self, blob: str) -> bytes:
        """See store.base.Journal.get_blob."""
        return _blob(self._run, blob)

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """See store.base.Journal.write_head."""
        if self._open:
            self._run.head = parse_head(head_bytes(document)) or {}

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """See store.base.Journal.leave_behind. What ends with the process is kept nowhere."""
        return ""

    def close(self) -> None:
        """See store.base.Journal.close."""
        if self._open:
            self._open = False
            self._run.owner = {}

    def _check(self) -> None:
        if not self._open:
            raise WriteFailed("The journal is closed.", fatal=True, emergency="", run=self.run_id)

    def _unseen(self, first_seq: int, lines: Sequence[bytes]) -> Sequence[bytes]:
        if first_seq > self.last_seq + 1:
            raise StoreError(f"Record {first_seq} cannot follow record {self.last_seq}.", seq=first_seq)
        known = self.last_seq + 1 - first_seq
        stored = dict(zip(self._run.seqs, self._run.lines, strict=True))
        for seq, line in enumerate(lines[:known], first_seq):
            if seq not in stored or line_body(stored[seq]) != line_body(line):
                raise StoreError(f"Record {seq} holds another fact.", seq=seq)
        return lines[known:]


class MemoryStore:
    """Runs of this process; see store.base.Store."""

    url = "memory:"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._lock = threading.RLock()

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, MemoryJournal]:
        """See store.base.Store.create."""
        with self._lock:
            if claim is not None:
                refuse_if_held(self.heads, claim, at)
            run_id = next(name for name in minted(at) if name not in self._runs)
            run = self._runs[run_id] = _Run()
            for seq, line in enumerate(first.splitlines(), 1):
                run.add(seq, line)
            journal = MemoryJournal(run_id, run, at)
        for data in blobs:
            journal.put_blob(data)
        return run_id, journal

    def create_named(self, run: str, first: bytes, blobs: Iterable[bytes] = (), *, at: datetime) -> MemoryJournal:
        """See store.base.Movable.create_named."""
        with self._lock:
            if split(run)[1] or run in self._runs:
                raise StoreError(f"A run named {run} cannot be made: the name is taken.", run=run)
            made = self._runs[run] = _Run()
            for line in first.splitlines():
                made.add(line_seq(line), line)
            journal = MemoryJournal(run, made, at)
        for data in blobs:
            journal.put_blob(data)
        return journal

    def parts(self, run: str) -> list[str]:
        """See store.base.Movable.parts."""
        self._find(run)
        return sorted(name.removeprefix(f"{run}/") for name in self._runs if name.startswith(f"{run}/"))

    def blobs(self, run: str) -> list[str]:
        """See store.base.Movable.blobs."""
        return sorted(self._find(run).blobs)

    def flaws(self, run: str) -> Iterator[str]:
        """See store.base.Movable.flaws; memory has none of its own."""
        self._find(run)
        return iter(())

    def leftovers(self) -> list[str]:
        """See store.base.Movable.leftovers."""
        return []

    def unlisted(self) -> list[str]:
        """See store.base.Movable.unlisted."""
        return []

    def is_there(self) -> bool:
        """See store.base.Movable.is_there."""
        return True

    def open(self, run: str) -> MemoryJournal:
        """See store.base.Store.open."""
        with self._lock:
            main = self._find(run)
            found = main
            if split(run)[1]:
                found = self._runs.setdefault(run, _Run(blobs=main.blobs))
            elif problem := first_problem(found.lines[0]):
                raise problem
            if found.owner:
                raise locked(run, found.owner)
            return MemoryJournal(run, found, self._clock.now())

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        """See store.base.Store.read."""
        self._find(run)
        if run not in self._runs:
            raise RunNotFound(f"There is no run {run}.", run=run)
        found = self._runs[run]
        return iter(found.lines[bisect_right(found.seqs, after) :])

    def get_blob(self, run: str, blob: str) -> bytes:
        """See store.base.Store.get_blob."""
        return _blob(self._find(run), blob)

    def written_head(self, run: str) -> Mapping[str, Any]:
        """See store.base.Store.written_head."""
        return self._find(run).head

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        for run_id in newest_first([name for name in list(self._runs) if "/" not in name]):
            run = self._runs.get(run_id)
            if run is None:
                continue
            if problem := first_problem(run.lines[0]):
                yield Head(run_id, {}, corrupt=problem.message, owned=bool(run.owner), known=run.head)
                continue
            document = run.head
            if document.get("journal_bytes") != run.size:
                document = fresh_document(run_id, run.lines, run.size, run.head, run.blobs.__getitem__)
            document = {**document, **seen_now(document, bool(run.owner))}
            if match is None or match(document):
                yield Head(run_id, document, owned=bool(run.owner))

    def delete(self, run: str) -> None:
        """See store.base.Store.delete."""
        with self._lock:
            self._find(run)
            names = [name for name in self._runs if name == run or name.startswith(run + "/")]
            for name in names:
                if self._runs[name].owner:
                    raise locked(run, self._runs[name].owner)
            for name in names:
                del self._runs[name]

    def sweep(self, before: datetime) -> list[str]:
        """See store.base.Store.sweep; nothing is ever half built here."""
        return []

    def _find(self, run: str) -> _Run:
        run_id, _ = split(run)
        if run_id not in self._runs:
            raise RunNotFound(f"There is no run {run}.", hint="`list` shows the runs there are.", run=run)
        return self._runs[run_id]


def _blob(run: _Run, blob: str) -> bytes:
    return whole(blob, run.blobs.get(blob))


class MemoryAccount:
    """An account of this process; see store.base.Account."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sums = Sums()
        self._lock = threading.Lock()

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
        """See store.base.Account.reserve."""
        name, day = self._clock.new_id(), utc_day(at)
        fact = reserved(name, owner, day, usd)
        with self._lock:
            if not self._sums.fits(day, usd, limit):
                return None
            self._sums.apply(fact)
        return name

    def settle(self, slice_id: str, usd: Decimal) -> None:
        """See store.base.Account.settle."""
        with self._lock:
            self._sums.apply(settled(self._sums, slice_id, usd))

    def total(self, day: date) -> Decimal:
        """See store.base.Account.total."""
        with self._lock:
            return self._sums.total(day.isoformat())

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        """See store.base.Account.keep."""
        with self._lock:
            self._sums.apply({"kind": "kept", "run": run, "sums": dict(sums)})

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """See store.base.Account.kept."""
        with self._lock:
            return dict(self._sums.kept)

    def lost(self) -> str:
        """See store.base.Account.lost."""
        return ""

    def flaws(self) -> Iterator[str]:
        """See store.base.Account.flaws."""
        return iter(())
