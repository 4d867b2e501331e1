"""Runs as rows of a database: create, open, read, list, delete. The rules stand in the files it calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import CheckpointCorrupt, PipelineError, RunNotFound, StoreError
from pipeline.records.codec import decode_line
from pipeline.records.kinds import RunStarted
from pipeline.records.lines import LineDamaged
from pipeline.store.base import Claim, Head
from pipeline.store.head import scan_int, sealed, whole_head
from pipeline.store.heads import refuse_if_held
from pipeline.store.lock import locked
from pipeline.store.names import minted, split
from pipeline.store.recovery import took_in
from pipeline.store.repair import lost_since
from pipeline.store.sql import blobs as values
from pipeline.store.sql import late, lease, schema
from pipeline.store.sql.account import SqlAccount
from pipeline.store.sql.address import parse_address
from pipeline.store.sql.database import CREATING, Database, database
from pipeline.store.sql.flaws import enter_told, flaws, remove_strays, strays
from pipeline.store.sql.heads import Heads, claim_text
from pipeline.store.sql.journal import SqlJournal, new_journal
from pipeline.store.sql.link import Link
from pipeline.store.sql.orphans import enter_again, orphans
from pipeline.store.sql.patience import Patience
from pipeline.store.sql.repair import Doctor
from pipeline.store.sql.rows import STEM, as_bytes, find, insert_journal, is_sound, lines_of
from pipeline.store.view import first_problem


class SqlStore:
    """A database of runs; see store.base.Store."""

    def __init__(self, opened: Database, clock: Clock) -> None:
        self.url = opened.address.url
        self.database = opened
        self._clock = clock
        self._patience = Patience(opened, clock)
        self._heads = Heads(opened)
        self._doctor = Doctor(opened)
        self._checked = False

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, SqlJournal]:
        """See store.base.Store.create."""
        self.ready(True)
        with self.database.write(lock=CREATING) as link:
            if claim is not None:
                refuse_if_held(lambda match: self._heads.all(match, claim_text(claim)), claim, at)
            stem = next(minted(at))[:STEM]
            taken = {run for (run,) in link.rows("SELECT run_id FROM journals WHERE stem = ? AND path = ''", stem)}
            run = next(name for name in minted(at) if name not in taken)
            made = self._make(link, run, first, blobs, at)
        return run, self._begun(run, *made)

    def create_named(self, run: str, first: bytes, blobs: Iterable[bytes] = (), *, at: datetime) -> SqlJournal:
        """See store.base.Movable.create_named."""
        if split(run)[1]:
            raise StoreError(f"A run named {run} cannot be made: it is the name of a sub-journal.", run=run)
        self.ready(True)
        with self.database.write(lock=CREATING) as link:
            if find(link, run) is not None:
                raise StoreError(f"A run named {run} cannot be made: the name is taken.", run=run)
            # Of a run that was deleted and comes back; its records enter them again.
            link.run("DELETE FROM charges WHERE run_id = ?", run)
            made = self._make(link, run, first, blobs, at)
        return self._begun(run, *made)

    def open(self, run: str) -> SqlJournal:
        """See store.base.Store.open."""
        main = self._find(split(run)[0])
        known = 0 if "/" in run else self._known(run, main)
        holder = lease.holder_text(self._clock.now(), self._clock.new_id())

        def take(link: Link) -> tuple[int, int]:
            journal = main if "/" not in run else self._part(link, run)
            lease.make_missing(link, split(run)[0])
            return journal, lease.take(self.database, link, journal, run, holder)

        journal, epoch = self._patience.write(take)
        held = lease.Lease(self.database, journal, epoch)
        try:
            end, said = self._doctor.set_right(run, held)
            said = [*said, *lost_since(end.last_seq, known, "its head")]
            opened = self._journal(run, held, *end, said)
            if opened.last_seq and epoch > 1:
                late.take_in(self.database, opened)
        except BaseException:
            held.release()
            raise
        return took_in(self, opened, self.database.address.url)

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        """See store.base.Store.read."""
        split(run)
        return lines_of(self.database, self._find(run), after)

    def get_blob(self, run: str, blob: str) -> bytes:
        """See store.base.Store.get_blob."""
        run_id = split(run)[0]
        if self.ready(False):
            try:
                return self._patience.read(lambda link: values.get(link, run_id, blob))
            except CheckpointCorrupt:
                self._find(run_id)
                raise
        raise self._missing(run)

    def written_head(self, run: str) -> Mapping[str, Any]:
        """See store.base.Store.written_head."""
        journal = self._find(run)
        row = self._patience.read(lambda link: link.row("SELECT head FROM journals WHERE journal = ?", journal))
        raw: bytes = as_bytes(row[0] or b"") if row else b""
        return whole_head(raw)

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        if self.ready(False):
            yield from self._heads.all(match)

    def delete(self, run: str) -> None:
        """See store.base.Store.delete. What its calls cost stays in the table `charges`."""
        run_id, path = split(run)
        self._find(run)
        with self.database.write() as link:
            lease.make_missing(link, run_id)
            rows = [row for row in self._leases(link, run_id) if not path or row[1] == run]
            for number, _, *held in rows:
                if lease.is_held(self.database, number, *held):
                    raise locked(run, lease.parse(held[1]))
            for number, *_ in rows:
                for table in ("workflow_checkpoints", "records", "leases", "journals"):
                    link.run(f"DELETE FROM {table} WHERE journal = ?", number)
            if not path:
                link.run("DELETE FROM blobs WHERE run_id = ?", run_id)

    def sweep(self, before: datetime) -> list[str]:
        """See store.base.Store.sweep; however new, none of it is being built: that is done in a transaction."""
        if not self.leftovers():
            return []
        with self.database.write(lock=CREATING) as link:
            return remove_strays(link)

    def parts(self, run: str) -> list[str]:
        """See store.base.Movable.parts."""
        self._find(run)
        with self.database.read() as link:
            sql = "SELECT path FROM journals WHERE run_id = ? AND path <> '' ORDER BY path"
            return [path for (path,) in link.rows(sql, split(run)[0])]

    def blobs(self, run: str) -> list[str]:
        """See store.base.Movable.blobs."""
        self._find(run)
        with self.database.read() as link:
            sql = "SELECT hash FROM blobs WHERE run_id = ? ORDER BY hash"
            return [blob for (blob,) in link.rows(sql, split(run)[0])]

    def flaws(self, run: str) -> Iterator[str]:
        """See store.base.Movable.flaws."""
        return flaws(self.database, self._find(run))

    def leftovers(self) -> list[str]:
        """See store.base.Movable.leftovers; a transaction leaves none, so somebody else has removed their journals."""
        if not self.ready(False):
            return []
        with self.database.read() as link:
            return strays(link)

    def orphans(self) -> dict[str, str]:
        """Runs and sub-journals that have records and no row that names them: name → a sentence, and what to do."""
        if not self.ready(False):
            return {}
        with self.database.read() as link:
            return {orphan.name: orphan.said() for orphan in orphans(link)}

    def unlisted(self) -> list[str]:
        """See store.base.Movable.unlisted; what is there is listed."""
        return []

    def is_there(self) -> bool:
        """See store.base.Movable.is_there: whether there are its tables."""
        return self.ready(False)

    def account(self) -> SqlAccount:
        """The account of the same database."""
        return SqlAccount(self.database, self._clock, self.ready)

    def upgrade(self) -> tuple[str, str]:
        """Bring the tables up to date, also what they tell of runs and calls; their versions before and after.

        Before "": there were none.

        Raises:
            SchemaTooNew: They are newer than this program.
            WriteFailed: The database refused; nothing was changed.
        """
        versions = schema.upgrade(self.database)
        enter_again(self.database)
        enter_told(self.database)
        return versions

    def ready(self, create: bool) -> bool:
        """Whether the tables are there, in the version that this program knows; made first if `create`.

        Raises:
            SchemaTooNew, StoreError: They have another version.
        """
        self.database.flush()
        if self._checked:
            return True
        if not create and not self.database.exists:
            return False
        with self.database.read() as link:
            found = schema.version(link)
        if not found:
            if not create:
                return False
            schema.upgrade(self.database)
        else:
            schema.check(self.database, found)
        self._checked = True
        return True

    def _make(
        self, link: Link, run: str, first: bytes, blobs: Iterable[bytes], at: datetime
    ) -> tuple[int, int, int, int]:
        """Enter a run and own it: (journal, epoch, last seq, size)."""
        journal = insert_journal(link, run, _claim(first))
        for data in blobs:
            values.put(link, run, data)
        last_seq, size = new_journal(link, journal, run, first)
        return journal, lease.begin(self.database, link, journal, at), last_seq, size

    def _known(self, run: str, journal: int) -> int:
        """The last record that the head of a run knows, which may be resumed.

        Raises:
            CheckpointCorrupt, SchemaTooNew: It cannot be resumed.
        """
        sql = (
            "SELECT j.head, r.line FROM journals j LEFT JOIN records r ON r.journal = j.journal AND r.seq = 1"
            " WHERE j.journal = ?"
        )
        row = self._patience.read(lambda link: link.row(sql, journal))
        if row is None:
            raise self._missing(run)
        head, first = (as_bytes(value or b"") for value in row)
        if problem := first_problem(first if is_sound(1, first) else None):
            problem.args = (f"Run {run} cannot be opened. {problem.message}",)
            raise problem
        return scan_int(head, "seq") if sealed(head) else 0

    def _part(self, link: Link, run: str) -> int:
        """The number of a sub-journal, which begins with its first owner."""
        journal = find(link, run)
        if journal is None:
            journal = insert_journal(link, run, "")
            lease.free(link, journal)
        return journal

    def _begun(self, run: str, journal: int, epoch: int, last_seq: int, size: int) -> SqlJournal:
        return self._journal(run, lease.Lease(self.database, journal, epoch), last_seq, size)

    def _journal(
        self, run: str, held: lease.Lease, last_seq: int, size: int, repairs: Sequence[Sequence[Any]] = ()
    ) -> SqlJournal:
        return SqlJournal(self.database, run, held, self._clock, last_seq=last_seq, size=size, repairs=repairs)

    def _leases(self, link: Link, run_id: str) -> Sequence[Any]:
        sql = (
            f"SELECT j.journal, j.run, l.epoch, l.holder, l.beat_at, {self.database.now}"
            " FROM journals j JOIN leases l ON l.journal = j.journal WHERE j.run_id = ?"
        )
        return link.rows(sql + link.for_update(), run_id)

    def _find(self, run: str) -> int:
        split(run)
        if self.ready(False):
            journal = self._patience.read(lambda link: find(link, run))
            if journal is not None:
                return journal
        raise self._missing(run)

    def _missing(self, run: str) -> PipelineError:
        return RunNotFound(f"There is no run {run}.", hint="`list` shows the runs there are.", run=run)


def _claim(first: bytes) -> str:
    """What a run with these first lines claims; "" for nothing."""
    try:
        fact = decode_line(first.splitlines()[0]).fact
    except (LineDamaged, IndexError):
        return ""
    return json.dumps(list(fact.claim)) if isinstance(fact, RunStarted) and fact.claim else ""


def open_sql(url: str, clock: Clock) -> SqlStore:
    """The store at `sqlite:FILE` or `postgresql://…`; the database is asked when it is first used.

    Raises:
        ConfigError: The URL names no database.
    """
    return SqlStore(database(parse_address(url)), clock)
