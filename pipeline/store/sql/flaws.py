"""What of a database is damaged, row by row; and what belongs to no run. Who only looks writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.records.codec import decode_line
from pipeline.records.kinds import Gap
from pipeline.records.lines import LineDamaged
from pipeline.store.head import sealed
from pipeline.store.sql import kept, layers
from pipeline.store.sql.charges import Cost, again, told
from pipeline.store.sql.database import Database
from pipeline.store.sql.lease import is_epoch
from pipeline.store.sql.link import Link
from pipeline.store.sql.orphans import EACH, orphans
from pipeline.store.sql.rows import FIRST, as_bytes, is_sound, raw_lines

#: Tables whose rows belong to a journal that must be there; charges outlive theirs.
_OF_JOURNALS = ("leases", "records", "workflow_checkpoints")


def flaws(database: Database, journal: int) -> Iterator[str]:
    """What is wrong with the rows of one journal, a sentence each."""
    found = _Rows(database, journal)
    for seq, line in found.bad:
        moved = is_sound(_number(line), line)
        why = f"holds record {_number(line)}" if moved else f"is damaged ({len(line)} bytes)"
        yield f"Record {seq} {why}."
    with database.read() as link:
        sql = "SELECT j.head, l.epoch FROM journals j LEFT JOIN leases l ON l.journal = j.journal WHERE j.journal = ?"
        head, epoch = link.row(sql, journal)
    if head is not None and not sealed(as_bytes(head)):
        yield "Its head is damaged; it is made afresh from the records."
    if epoch is not None and not is_epoch(epoch):
        yield f"Its lease is damaged: its epoch is {str(epoch)[:40]!r}."
    if epoch is None:
        yield "Its lease is missing; the next resume makes one."
    wrong = (*found.charges().values(), *found.checkpoints().values())
    yield from (f"{text} `store upgrade` puts it right." for text in wrong)


def enter_told(database: Database) -> None:
    """Have the tables for people say of every call and checkpoint what its records say, and of deleted runs too."""
    with database.write() as link:
        kept.enter_again(link)
    with database.read() as link:
        journals = link.rows("SELECT journal, run FROM journals ORDER BY journal")
    for journal, run in journals:
        found = _Rows(database, journal)
        calls, checkpoints = found.charges(), found.checkpoints()
        if calls or checkpoints:
            with database.write() as link:
                again(link, journal, run, found.lines, calls)
                layers.again(link, journal, found.lines, checkpoints)


class _Rows:
    """The records of a journal, and the rows that were entered from them."""

    def __init__(self, database: Database, journal: int) -> None:
        self._database, self._journal = database, journal
        self.lines: list[bytes] = []
        self.bad: list[tuple[int, bytes]] = []
        for seq, line in raw_lines(database, journal, FIRST):
            if is_sound(seq, line):
                self.lines.append(line)
            else:
                self.bad.append((seq, line))
        with database.read() as link:
            rows = link.rows("SELECT call, state, low, high FROM charges WHERE journal = ? ORDER BY call", journal)
        self._charges = {int(call): _cost(*row) for call, *row in rows}
        gaps = {_number(line) for line in self.lines if b'"kind":"gap"' in line and _is_gap(line)}
        self._seqs = {_number(line) for line in self.lines} - gaps
        self._holed = bool(self.bad or gaps) or len(self._seqs) < max(self._seqs, default=0)

    def charges(self) -> dict[int, str]:
        """Where the table `charges` and the records say something else, by call."""
        there, wanted, wrong = self._charges, told(self.lines), dict[int, str]()
        for call, cost in wanted.items():
            if call not in there:
                wrong[call] = f"Call {call} is missing from the table charges; its record says {_said(cost)}."
            elif there[call] != cost and not (self._holed and cost[0] == "open"):
                now = _said(there[call])
                wrong[call] = f"Call {call} is {now} in the table charges; its records say {_said(cost)}."
        # A call whose record was lost was paid for all the same: the table still knows it.
        for call in filter(self._knows, there.keys() - wanted.keys()):
            wrong[call] = f"Call {call} of the table charges is in no record ({_said(there[call])})."
        return wrong

    def checkpoints(self) -> dict[int, str]:
        """Where the table `workflow_checkpoints` and the records say something else, by seq."""
        with self._database.read() as link:
            return layers.wrong(link, self._journal, self.lines, self._knows)

    def _knows(self, seq: int) -> bool:
        """Whether a record of this seq is there, or none was ever lost."""
        return seq in self._seqs or not self._holed


def _number(line: bytes) -> int:
    """The number that a line gives itself; 0 where it gives none."""
    digits = line[7 : line.find(b",", 7)] if line.startswith(b'{"seq":') else b""
    return int(digits) if digits.isdigit() and len(digits) < 20 else 0


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
    """What has rows and no journal: "journal 7", or the run that values belong to. Orphans are none: they are paid."""
    numbers, runs = _strays(link)
    return [*(f"journal {number}" for number in sorted({number for _, number in numbers})), *runs]


def remove_strays(link: Link) -> list[str]:
    """Remove them; their names."""
    names = strays(link)
    numbers, runs = _strays(link) if names else ([], [])
    for table, number in numbers:
        link.run(f"DELETE FROM {table} WHERE journal = ?", number)
    for run in runs:
        link.run("DELETE FROM blobs WHERE run_id = ?", run)
    return names


def _strays(link: Link) -> tuple[list[tuple[str, int]], list[str]]:
    """(table, number) of rows of no journal, and runs of values of none."""
    kept = orphans(link)
    safe = {orphan.journal for orphan in kept}
    pairs = ((table, row[0]) for table in _OF_JOURNALS for row in link.rows(EACH.format(table=table, column="journal")))
    runs = [str(run) for (run,) in link.rows(EACH.format(table="blobs", column="run_id"))]
    # As long as it is not known whose records they are, any values may be theirs.
    owners = {orphan.run.partition("/")[0] for orphan in kept}
    return [pair for pair in pairs if pair[1] not in safe], [
        run for run in runs if "" not in owners and run not in owners
    ]
