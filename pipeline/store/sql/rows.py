"""Rows of journals and of their records, as bytes: found, read in pages, inserted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.clock import SystemClock
from pipeline.records.lines import is_whole
from pipeline.store.sql.database import Database
from pipeline.store.sql.link import Link
from pipeline.store.sql.patience import Patience

#: Records that are fetched at once.
_PAGE = 500
_NEXT = "SELECT seq, line FROM records WHERE journal = ? AND seq > ? ORDER BY seq LIMIT ?"
#: What a column of numbers can hold.
FIRST, LAST = -(2**63), 2**63 - 1
#: Ids of runs begin with their moment: YYYYMMDD_HHMMSS.
STEM = 15


def find(link: Link, run: str) -> int | None:
    """The number of a run's or sub-journal's journal; None if there is none."""
    row = link.row("SELECT journal FROM journals WHERE run = ?", run)
    return row[0] if row else None


def insert_journal(link: Link, run: str, claim: str) -> int:
    """A row for a new journal; its number."""
    run_id, _, path = run.partition("/")
    sql = "INSERT INTO journals (run, run_id, path, stem, width, claim) VALUES (?, ?, ?, ?, ?, ?) RETURNING journal"
    return int(link.row(sql, run, run_id, path, run_id[:STEM], len(run_id), claim)[0])


def end_of(link: Link, journal: int, upto: int = LAST) -> tuple[int, int]:
    """The last seq of a journal, and its size as a file; or of its records up to a seq."""
    sql = "SELECT COALESCE(MAX(seq), 0), COALESCE(SUM(LENGTH(line) + 1), 0) FROM records WHERE journal = ? AND seq <= ?"
    last_seq, size = link.row(sql, journal, upto)
    return int(last_seq), int(size)


def insert_records(link: Link, journal: int, rows: Sequence[tuple[int, bytes]]) -> None:
    """Records under their numbers; each line without its newline."""
    sql = "INSERT INTO records (journal, seq, line) VALUES (?, ?, ?)"
    if len(rows) == 1:
        link.run(sql, journal, *rows[0])
    else:
        link.run_many(sql, [(journal, seq, line) for seq, line in rows])


def pages(link: Link, journal: int) -> Iterator[list[bytes]]:
    """All lines of a journal, damaged or not, so many at a time; for those who have a transaction already."""
    after = 0
    while rows := link.rows(_NEXT, journal, after, _PAGE):
        yield [as_bytes(line) for _, line in rows]
        after = rows[-1][0]


def raw_lines(database: Database, journal: int, after: int = 0) -> Iterator[tuple[int, bytes]]:
    """All (seq, line) with seq > after, damaged or not."""
    # Real seconds: the server takes them too.
    ask = Patience(database, SystemClock())
    while True:
        rows = ask.read(lambda link, after=after: link.rows(_NEXT, journal, after, _PAGE))  # type: ignore[misc]
        for seq, line in rows:
            yield seq, as_bytes(line)
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def lines_of(database: Database, journal: int, after: int = 0) -> Iterator[bytes]:
    """The whole lines with seq > after; damaged ones are left out."""
    for seq, line in raw_lines(database, journal, after):
        if is_sound(seq, line):
            yield line


def is_sound(seq: int, line: bytes) -> bool:
    """Whether a row holds the whole line that belongs under its number."""
    return line.startswith(b'{"seq":%d,' % seq) and is_whole(line)


def as_bytes(value: Any) -> bytes:
    """What a column of bytes holds: in SQLite it may be anything, if somebody has put it there."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")
