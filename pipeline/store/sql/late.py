"""Where a database keeps what an owner that was fenced out had already paid for."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import PipelineError
from pipeline.records.codec import decode_line
from pipeline.records.lines import encode_line, line_body
from pipeline.store.base import Journal
from pipeline.store.late import append_missing, is_late, late_name, worth_keeping
from pipeline.store.sql import lease
from pipeline.store.sql.database import Database
from pipeline.store.sql.rows import end_of, insert_journal, lines_of


def keep(database: Database, run: str, epoch: int, given: Sequence[bytes]) -> list[bytes]:
    """Keep those lines that must not be lost, durable on return; those that could not be kept."""
    kept = worth_keeping(given)
    if not kept:
        return []
    name = late_name(run, epoch)
    try:
        with database.write() as link:
            found = link.row("SELECT journal FROM journals WHERE run = ?", name)
            journal = found[0] if found else insert_journal(link, name, "")
            if not found:
                lease.free(link, journal)
            link.row("SELECT epoch FROM leases WHERE journal = ?" + link.for_update(), journal)
            for seq, line in enumerate(kept, end_of(link, journal)[0] + 1):
                record = decode_line(line)
                again = encode_line(seq, record.at, record.owner, line_body(line))
                link.run("INSERT INTO records VALUES (?, ?, ?)", journal, seq, again.rstrip(b"\n"))
    except PipelineError:
        return kept
    return []


def take_in(database: Database, journal: Journal) -> None:
    """Append what late sub-journals of this one hold and it does not, then remove them.

    Raises:
        WriteFailed: What was not taken in is still there.
    """
    run = journal.run_id
    with database.read() as link:
        rows = link.rows("SELECT journal, run FROM journals WHERE run_id = ? AND path <> ''", run.partition("/")[0])
    for number, name in rows:
        if is_late(run, name):
            append_missing(journal, lines_of(database, number), lines_of(database, own_number(database, run)))
            with database.write() as link:
                for table in ("records", "leases", "journals"):
                    link.run(f"DELETE FROM {table} WHERE journal = ?", number)


def own_number(database: Database, run: str) -> int:
    """The number of a run's journal, which is there."""
    with database.read() as link:
        return int(link.row("SELECT journal FROM journals WHERE run = ?", run)[0])
