"""The one writer of a run in a database: an append is one transaction that only the owner can commit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pipeline.clock import Clock, iso, parse_iso
from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.records.lines import line_body, line_seq
from pipeline.store.base import Taken
from pipeline.store.emergency import EmergencyFile
from pipeline.store.head import head_bytes
from pipeline.store.late import refused
from pipeline.store.lock import drop_in_children
from pipeline.store.sql import blobs, charges, late, layers
from pipeline.store.sql.database import Database
from pipeline.store.sql.lease import Lease
from pipeline.store.sql.link import Link
from pipeline.store.sql.patience import Patience
from pipeline.store.sql.rows import insert_records, lines_of

#: The lease, where it is this owner's still and the journal ends where this owner knows.
_MINE = (
    "SELECT journal FROM leases WHERE journal = ? AND epoch = ?"
    " AND (SELECT COALESCE(MAX(seq), 0) FROM records WHERE journal = ?) = ?"
)
#: An append as one statement, which is a transaction by itself: one way there and back.
_BOTH = (
    "WITH mine AS ({mine} FOR UPDATE) INSERT INTO records (journal, seq, line)"
    " SELECT mine.journal, each.seq, each.line FROM mine, unnest(?::bigint[], ?::bytea[]) AS each (seq, line)"
)
_SYNCED = _BOTH.format(mine=_MINE)
_LOOSE = _BOTH.format(mine=_MINE + " AND set_config('synchronous_commit', 'off', true) IS NOT NULL")
_PEOPLE = ("pipeline", "subject", "level", "status", "status_detail", "started_at", "updated_at", "total_cost_usd")
_TIMES = ("started_at", "updated_at")
_HEAD = f"UPDATE journals SET head = ?, {', '.join(f'{name} = ?' for name in _PEOPLE)} WHERE journal = ?"
_STILL = " AND EXISTS (SELECT 1 FROM leases WHERE leases.journal = journals.journal AND epoch = ?)"


class SqlJournal:
    """An open journal; see store.base.Journal. One thread at a time."""

    #: The disk is the database's.
    strained = False
    queried = True

    def __init__(
        self,
        database: Database,
        run: str,
        lease: Lease,
        clock: Clock,
        *,
        last_seq: int,
        size: int,
        repairs: Sequence[Sequence[Any]] = (),
    ) -> None:
        self.run_id = run
        self.last_seq = last_seq
        self.size = size
        self.repairs = repairs
        self._database = database
        self._lease = lease
        self._patience = Patience(database, clock)
        self._open = True
        self._emergency = EmergencyFile(run, database.address.url)
        self.taken: Sequence[Taken] = ()
        #: The run was removed under its owner.
        self._gone = False
        #: Where the journal ends in the database: last seq, size.
        self._written = (last_seq, size)
        #: Lines that go with the next synced append, or at the next tick, whichever is sooner.
        self._waiting: list[bytes] = []
        self._lock = threading.RLock()
        lease.tick = self.flush
        database.held.begin()
        drop_in_children(self)

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """See store.base.Journal.append."""
        with self._lock:
            if not self._open or self._lease.lost:
                self._refuse(lines)
            if first_seq != self.last_seq + 1:
                lines = self._unseen(first_seq, lines)
            new = [line.rstrip(b"\n") for line in lines]
            self._waiting += new
            self.last_seq += len(new)
            self.size += sum(map(len, new)) + len(new)
            if sync or any(map(_has_rows, new)):
                self._write_waiting(sync)
            elif new:
                self._database.waiting.add(self)

    def flush(self) -> None:
        """Write what waits for a sync, so that others see it. What goes wrong the next append tells."""
        with self._lock, contextlib.suppress(PipelineError):
            if self._open and self._lease.lost and self._waiting:
                self._refuse([])
            if self._open and not self._lease.lost:
                self._write_waiting(sync=False)

    def put_blob(self, data: bytes) -> str:
        """See store.base.Journal.put_blob."""
        # A reply in flight may still be stored by an owner that was fenced out: blobs harm nobody.
        if not self._open and not self._emergency.path:
            raise self._failed("The journal is closed.")
        return self._patience.write(lambda link: blobs.put(link, self._own_run, data))

    def get_blob(self, blob: str) -> bytes:
        """See store.base.Journal.get_blob."""
        return self._patience.read(lambda link: blobs.get(link, self._own_run, blob))

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """See store.base.Journal.write_head."""
        if not self._open or self._lease.lost or "/" in self.run_id:
            return
        self.flush()
        people = [_time(document.get(name)) if name in _TIMES else _word(document.get(name)) for name in _PEOPLE]
        with contextlib.suppress(PipelineError), self._database.write(sync=durable) as link:
            link.run(_HEAD + _STILL, head_bytes(document), *people, self._lease.journal, self._lease.epoch)

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """See store.base.Journal.leave_behind."""
        # Without the lock: whoever waits for the database has it.
        waiting = [line + b"\n" for line in list(self._waiting)]
        self._emergency.add(b"".join(dict.fromkeys([*waiting, *lines])))
        return self._emergency.path

    def close(self) -> None:
        """See store.base.Journal.close."""
        if not self._open:
            self._emergency.close()
            return
        self.flush()
        if self._lease.epoch > 1 and not self._lease.lost:
            # Only who was fenced out leaves something, and there was nobody before the first.
            with contextlib.suppress(PipelineError):
                late.take_in(self._database, self)
        self._shut()
        self._emergency.close()

    def drop(self) -> None:
        """In a forked child: the parent owns the run, so nothing here writes any more."""
        self._open = False
        self._lock = threading.RLock()
        self._emergency.close()

    @property
    def _own_run(self) -> str:
        """The run that values are kept with, also those of its parts."""
        return self.run_id.partition("/")[0]

    def _write_waiting(self, sync: bool) -> None:
        if self._waiting:
            self._insist(list(enumerate(self._waiting, self._written[0] + 1)), sync)
        self._written = (self.last_seq, self.size)
        self._waiting.clear()
        self._database.waiting.discard(self)

    def _insist(self, rows: Sequence[tuple[int, bytes]], sync: bool) -> None:
        """Write, again where the connection was cut: what was committed all the same is found and not written twice."""
        try:
            mine = self._patience.ask(lambda: self._write(rows, sync) or self._stands(rows))
        except StoreError as error:
            self._give_up(rows, error)
        if not mine:
            self._lease.lost = True
            with contextlib.suppress(PipelineError), self._database.read() as link:
                self._gone = not link.row("SELECT epoch FROM leases WHERE journal = ?", self._lease.journal)
            # These are the ones that wait.
            self._refuse([])

    def _write(self, rows: Sequence[tuple[int, bytes]], sync: bool) -> bool:
        """Append; False: the lease has another epoch, or the journal another end, than this owner knows."""
        journal, database = self._lease.journal, self._database
        mine = (journal, self._lease.epoch, journal, self._written[0])
        posted = [line for _, line in rows if _has_rows(line)]
        if not posted and not database.lite:
            numbers, lines = map(list, zip(*rows, strict=True))
            with database.statement() as link:
                return link.run(_SYNCED if sync else _LOOSE, *mine, numbers, lines) == len(rows)
        with database.write(sync=sync, fresh=False) as link:
            if not link.row(_MINE + link.for_update(), *mine):
                return False
            insert_records(link, journal, rows)
            _post(link, journal, self.run_id, posted)
        return True

    def _stands(self, rows: Sequence[tuple[int, bytes]]) -> bool:
        """Whether these very lines are there, and this is the owner still: an answer was lost, not the append."""
        journal = self._lease.journal
        with self._database.read() as link:
            if not link.row(_MINE, journal, self._lease.epoch, journal, rows[-1][0]):
                return False
        return list(lines_of(self._database, journal, rows[0][0] - 1)) == [line for _, line in rows]

    def _unseen(self, first_seq: int, lines: Sequence[bytes]) -> Sequence[bytes]:
        if first_seq > self.last_seq + 1:
            raise StoreError(f"Record {first_seq} cannot follow record {self.last_seq}.", seq=first_seq)
        self.flush()
        known = self.last_seq + 1 - first_seq
        stored = {line_seq(line): line for line in lines_of(self._database, self._lease.journal, first_seq - 1)}
        for seq, line in enumerate(lines[:known], first_seq):
            if seq not in stored or line_body(stored[seq]) != line_body(line):
                raise StoreError(f"Record {seq} holds another fact.", seq=seq)
        return lines[known:]

    def _refuse(self, lines: Sequence[bytes]) -> NoReturn:
        """Nothing is appended any more; what was paid for goes where the run finds it."""
        if not self._lease.lost:
            if self._emergency.path:
                self._emergency.add(b"".join(lines))
            raise self._failed("The journal is closed.")
        lines = [*(line + b"\n" for line in self._waiting), *lines]
        self._forget()
        if self._open:
            kept = lines if self._gone else late.keep(self._database, self.run_id, self._lease.epoch, lines)
            self._emergency.add(b"".join(kept))
        raise self._failed("")

    def _give_up(self, rows: Sequence[tuple[int, bytes]], error: PipelineError) -> NoReturn:
        """Nobody knows whether the database has it, so this owner adds nothing more."""
        self._emergency.add(b"".join(line + b"\n" for _, line in rows))
        self._shut()
        failed = self._failed(error.message)
        if error.data.get("gone"):
            # Nothing that is typed brings the run back.
            failed.hint, failed.data["gone"] = error.hint, error.data["gone"]
        raise failed from error

    def _forget(self) -> None:
        self.last_seq, self.size = self._written
        self._waiting.clear()
        self._database.waiting.discard(self)

    def _shut(self) -> None:
        self._open = False
        self._forget()
        self._lease.release()
        self._database.held.end()

    def _failed(self, what: str) -> WriteFailed:
        return refused(
            self.run_id, what, lost=self._lease.lost, gone=self._gone, kept=self._emergency.path, awaited="database"
        )


def new_journal(link: Link, journal: int, run: str, first: bytes) -> tuple[int, int]:
    """Enter the first lines of a new journal, under the numbers they have; (last seq, size)."""
    lines = first.splitlines()
    insert_records(link, journal, [(line_seq(line), line) for line in lines])
    _post(link, journal, run, lines)
    return line_seq(lines[-1]), sum(len(line) + 1 for line in lines)


def _has_rows(line: bytes) -> bool:
    """Whether something of a line stands in other tables too."""
    return charges.has_charge(line) or layers.has_document(line)


def _post(link: Link, journal: int, run: str, lines: Sequence[bytes]) -> None:
    charges.post(link, journal, run, lines)
    layers.post(link, journal, lines)


def _word(value: Any) -> str | None:
    """A value of the head as people query it."""
    return None if value is None else str(value).replace("\0", "").encode(errors="replace").decode()


def _time(value: Any) -> str | None:
    """A moment that every database takes for one; None for what an imported document has in its place."""
    try:
        return iso(parse_iso(value))
    except (TypeError, ValueError, OverflowError):
        return None
