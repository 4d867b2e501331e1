"""What of a database is damaged, row by row; and what belongs to no run. Only `remove_strays` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.records.codec import decode_line
from pipeline.records.kinds import Gap
from pipeline.records.lines import LineDamaged
from pipeline.store.head import sealed
from pipeline.store.sql.charges import Cost, told
from pipeline.store.sql.database import Database, Link
from pipeline.store.sql.rows import FIRST, as_bytes, is_sound, raw_lines

#: Tables whose rows belong to a journal that must be there; charges outlive theirs.
_OF_JOURNALS = ("leases", "records", "workflow_checkpoints")
#: Each value of a column once, by its index: there are a thousand records to a journal.
_EACH = (
    "WITH RECURSIVE each(name) AS (SELECT MIN({column}) FROM {table} UNION ALL"
    " SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > each.name) FROM each WHERE each.name IS NOT NULL)"
    " SELECT name FROM each WHERE name IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM journals WHERE journals.{column} = each.name)"
)


def flaws(database: Database, journal: int) -> Iterator[str]:
    """What is wrong with the rows of one journal, a sentence each."""
    lines, bad = list[bytes](), False
    for seq, line in raw_lines(database, journal, FIRST):
        if is_sound(seq, line):
            lines.append(line)
            continue
        bad = True
        moved = is_sound(_number(line), line)
        why = f"holds record {_number(line)}" if moved else f"is damaged ({len(line)} bytes)"
        yield f"Record {seq} {why}."
    with database.read() as link:
        sql = "SELECT j.head, l.epoch FROM journals j LEFT JOIN leases l ON l.journal = j.journal WHERE j.journal = ?"
        head, epoch = link.row(sql, journal)
        rows = link.rows("SELECT call, state, low, high FROM charges WHERE journal = ? ORDER BY call", journal)
    if head is not None and not sealed(as_bytes(head)):
        yield "Its head is damaged; it is made afresh from the records."
    if epoch is None:
        yield "Its lease is missing; the next resume makes one."
    yield from _charges(rows, told(lines), lines, bad)


def _number(line: bytes) -> int:
    """The number that a line gives itself; 0 where it gives none."""
    digits = line[7 : line.find(b",", 7)] if line.startswith(b'{"seq":') else b""
    return int(digits) if digits.isdigit() and len(digits) < 20 else 0


def _charges(rows: Sequence[Any], wanted: Mapping[int, Cost], lines: Sequence[bytes], bad: bool) -> Iterator[str]:
    """Where the table `charges` and the records of a journal say something else."""
    there = {int(call): _cost(*row) for call, *row in rows}
    gaps = {_number(line) for line in lines if b'"kind":"gap"' in line and _is_gap(line)}
    seqs = {_number(line) for line in lines} - gaps
    # A call whose record was lost was paid for all the same: the table still knows it.
    holed = bad or bool(gaps) or len(seqs) < max(seqs, default=0)
    for call, cost in wanted.items():
        if call not in there:
            yield f"Call {call} is missing from the table charges; its record says {_said(cost)}."
        elif there[call] != cost and not (holed and cost[0] == "open"):
            yield f"Call {call} is {_said(there[call])} in the table charges; its records say {_said(cost)}."
    for call in there.keys() - wanted.keys():
        if call in seqs or not holed:
            yield f"Call {call} of the table charges is in no record ({_said(there[call])})."


def _is_gap(line: bytes) -> bool:
    try:
        return isinstance(decode_line(line).fact, Gap)
    except LineDamaged:
        return False


def _cost(state: str, low: Any, high: Any) -> Cost:
    """A row, whatever somebody has put there."""
    try:
        return str(state), Decimal(str(low)), None if high is None else Decimal(str(high))
    except InvalidOperation:
        return str(state), Decimal("NaN"), None


def _said(cost: Cost) -> str:
    state, low, high = cost
    if low.is_nan():
        return "no number"
    most = "no known limit" if high is None else f"${high:f}"
    return f"{state}, ${low:f}" if low == high else f"{state}, ${low:f} to {most}"


def strays(link: Link) -> list[str]:
    """What has rows and no journal: "journal 7", or the run that values belong to."""
    numbers = {row[0] for table in _OF_JOURNALS for row in link.rows(_EACH.format(table=table, column="journal"))}
    runs = [str(run) for (run,) in link.rows(_EACH.format(table="blobs", column="run_id"))]
    return [*(f"journal {number}" for number in sorted(numbers)), *runs]


def remove_strays(link: Link) -> list[str]:
    """Remove them; their names."""
    names = strays(link)
    if names:
        for table in _OF_JOURNALS:
            link.run(f"DELETE FROM {table} WHERE journal NOT IN (SELECT journal FROM journals)")
        link.run("DELETE FROM blobs WHERE run_id NOT IN (SELECT run_id FROM journals)")
    return names
