"""Journals that have records and have lost their row in the table `journals`: named, kept, and entered again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pipeline.clock import parse_iso
from pipeline.records.codec import Record, decode_line
from pipeline.records.kinds import CallStarted, RunStarted
from pipeline.records.lines import LineDamaged, line_seq
from pipeline.store.names import minted
from pipeline.store.sql.database import CREATING, Database
from pipeline.store.sql.link import Link
from pipeline.store.sql.rows import STEM, find, is_sound, pages

#: Each value of a column once, by its index, that no row of `journals` has: a journal has a thousand records.
EACH = (
    "WITH RECURSIVE each(name) AS (SELECT MIN({column}) FROM {table} UNION ALL"
    " SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > each.name) FROM each WHERE each.name IS NOT NULL)"
    " SELECT name FROM each WHERE name IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM journals WHERE journals.{column} = each.name)"
)
#: Ids of one second that are tried.
_MOST_IDS = 100


@dataclass(frozen=True, slots=True)
class Orphan:
    """Records of a run or sub-journal, with paid calls or a first record, that no row names."""

    journal: int
    #: Whose they are; "" if nothing tells.
    run: str
    #: As the table `journals` has it.
    claim: str

    @property
    def name(self) -> str:
        """For people."""
        return self.run or f"journal {self.journal}"

    def said(self) -> str:
        """A sentence, and what to do."""
        what = f"Its row in the table journals is gone (journal {self.journal}); its records are there."
        way = "`store upgrade` enters it again." if self.run else "Bring the row back from a copy of the database."
        return f"{what} {way}"


def orphans(link: Link) -> list[Orphan]:
    """All of a database, in order of their numbers."""
    numbers = sorted(int(number) for (number,) in link.rows(EACH.format(table="records", column="journal")))
    telling = {number: told for number in numbers if (told := next(_telling(link, number), None)) is not None}
    # What charges say is certain; the others get what is left.
    names = {number: run for number in telling if (run := _charged(link, number))}
    for number, told in telling.items():
        if number not in names:
            names[number] = _guessed(link, told, set(names.values()))
    return [Orphan(number, names[number], _claim(told)) for number, told in telling.items()]


def enter_again(database: Database) -> None:
    """Give the journals whose run is known their row again; their heads are made afresh."""
    with database.read() as link:
        if not orphans(link):
            return
    sql = "INSERT INTO journals (journal, run, run_id, path, stem, width, claim) VALUES (?, ?, ?, ?, ?, ?, ?)"
    with database.write(lock=CREATING) as link:
        for orphan in orphans(link):
            if orphan.run:
                run_id, _, path = orphan.run.partition("/")
                link.run(sql, orphan.journal, orphan.run, run_id, path, run_id[:STEM], len(run_id), orphan.claim)


def _telling(link: Link, journal: int) -> Iterator[Record]:
    """The records that begin a run or say that money was spent."""
    for page in pages(link, journal):
        for line in page:
            if b'"kind":"run_started"' in line or b'"kind":"call_started"' in line:
                try:
                    record = decode_line(line)
                    sound = is_sound(line_seq(line), line)
                except (LineDamaged, ValueError):
                    continue
                if sound and isinstance(record.fact, (RunStarted, CallStarted)):
                    yield record


def _charged(link: Link, journal: int) -> str:
    """Whose journal it is, as its charges say."""
    row = link.row("SELECT run FROM charges WHERE journal = ?", journal)
    return str(row[0]) if row and find(link, str(row[0])) is None else ""


def _guessed(link: Link, told: Record, taken: set[str]) -> str:
    """Whose journal it is, by the moment and the values of its first record."""
    if not isinstance(told.fact, RunStarted) or told.seq != 1:
        return ""
    ids = list(islice(minted(parse_iso(told.at)), _MOST_IDS))
    pins = set((told.fact.pins or {}).values())
    owning = [name for name in ids if pins and pins <= _values(link, name)]
    return next((name for name in owning or ids if name not in taken and find(link, name) is None), "")


def _claim(told: Record) -> str:
    claim = told.fact.claim if isinstance(told.fact, RunStarted) else None
    return json.dumps(list(claim)) if claim else ""


def _values(link: Link, run_id: str) -> set[str]:
    return {str(blob) for (blob,) in link.rows("SELECT hash FROM blobs WHERE run_id = ?", run_id)}
