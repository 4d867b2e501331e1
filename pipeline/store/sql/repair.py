"""What opening a journal of a database finds damaged, and how its owner sets it right. Nothing is thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.errors import StoreError
from pipeline.store.head import scan_int, sealed
from pipeline.store.repair import RecordedRepair, Repair, explained, gap_line
from pipeline.store.sql import blobs
from pipeline.store.sql.database import Database
from pipeline.store.sql.lease import Lease
from pipeline.store.sql.link import Link
from pipeline.store.sql.rows import FIRST, as_bytes, end_of, insert_records, is_sound, raw_lines

Row = tuple[int, bytes]

_TORN = "the last write was not finished, or was damaged"
_MIDDLE = "records in the middle were damaged"


class End(NamedTuple):
    """Where a journal ends."""

    last_seq: int
    size: int


class Hole(NamedTuple):
    """What is missing in front of a whole line."""

    #: Missing seqs, inclusive; last < first where no record is.
    first: int
    last: int
    #: Damaged rows in its place.
    bad: list[Row]
    #: A whole line beside it, which says when and of whom.
    beside: bytes


@dataclass
class Survey:
    """What the rows of a journal hold."""

    last_seq: int
    size: int
    holes: list[Hole] = field(default_factory=list)
    #: Damaged rows behind the last whole line.
    torn: list[Row] = field(default_factory=list)


class Doctor:
    """Looks through journals of a database when they are opened, and mends them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: How far this process has found a journal sound: who opens it for each append does not read it each time.
        #: Only bytes that somebody changes behind our back while we run are missed so; readers leave them out.
        self._sound: dict[int, End] = {}

    def set_right(self, run: str, lease: Lease) -> tuple[End, Sequence[Repair]]:
        """Mend a journal that is owned: where it ends, and what was lost.

        Raises:
            StoreError, WriteFailed: It could not be; nothing was changed.
        """
        journal, said = lease.journal, list[Repair]()
        found = survey(self._database, journal, self._known(journal))
        end = End(found.last_seq, found.size)
        if found.holes or found.torn:
            with self._database.write() as link:
                _make_sure(link, run, lease)
                said = mend(link, run, journal, found)
                end = End(found.last_seq, end_of(link, journal)[1])
        self._sound[journal] = end
        return end, said

    def _known(self, journal: int) -> End:
        known = self._sound.pop(journal, End(0, 0))
        if known.last_seq:
            with self._database.read() as link:
                if end_of(link, journal, known.last_seq) == known:
                    return known
        return End(0, 0)


def survey(database: Database, journal: int, known: End) -> Survey:
    """Read a journal from where it is known to be sound; verifies every line."""
    found = Survey(*known)
    before, bad = b"", list[Row]()
    for row in raw_lines(database, journal, known.last_seq or FIRST):
        if not is_sound(*row):
            bad.append(row)
            continue
        seq, line = row
        if bad or (seq != found.last_seq + 1 and not explained(before, seq)):
            found.holes.append(Hole(found.last_seq + 1, seq - 1, bad, before or line))
            bad = []
        found.last_seq, before = seq, line
        found.size += len(line) + 1
    found.torn = bad
    return found


def mend(link: Link, run: str, journal: int, found: Survey) -> list[Repair]:
    """Make the journal whole again; says what was lost."""
    said: list[Repair] = []
    for hole in found.holes:
        size, kept = _set_aside(link, run, journal, hole.bad)
        row = RecordedRepair(hole.first, hole.last, size, kept, _MIDDLE)
        if hole.first <= hole.last:
            insert_records(link, journal, [(hole.first, gap_line(hole.beside, row).rstrip(b"\n"))])
        said.append(row)
    if found.torn:
        size, kept = _set_aside(link, run, journal, found.torn)
        first = found.last_seq + 1
        said.append(Repair(first, max(first, found.torn[-1][0]), size, kept, _TORN))
    if found.holes:
        _drop_head(link, journal, found.last_seq)
    return said


def _drop_head(link: Link, journal: int, last_seq: int) -> None:
    """Have the head made afresh: it tells of records that are gone. One that knows even later ones says so itself."""
    head = as_bytes(link.row("SELECT head FROM journals WHERE journal = ?", journal)[0] or b"")
    if sealed(head) and scan_int(head, "seq") <= last_seq:
        link.run("UPDATE journals SET head = NULL WHERE journal = ?", journal)


def _set_aside(link: Link, run: str, journal: int, rows: Sequence[Row]) -> tuple[int, str]:
    """Move rows out of the journal: how many bytes, and the name of the value that keeps them."""
    data = b"\n".join(line for _, line in rows)
    kept = f"blobs/{blobs.put(link, run.partition('/')[0], data)}" if data else ""
    for seq, _ in rows:
        link.run("DELETE FROM records WHERE journal = ? AND seq = ?", journal, seq)
    return sum(len(line) for _, line in rows), kept


def _make_sure(link: Link, run: str, lease: Lease) -> None:
    row = link.row("SELECT epoch FROM leases WHERE journal = ?" + link.for_update(), lease.journal)
    if tuple(row or ()) != (lease.epoch,):
        raise StoreError(f"Run {run} was taken over by another process.", hint="Try again.", run=run)
