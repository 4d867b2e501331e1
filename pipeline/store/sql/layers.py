"""Checkpoints of layered runs as rows that people query: entered from the records themselves, in their transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipeline.clock import iso, parse_iso
from pipeline.records.codec import decode_line
from pipeline.records.kinds import DocumentKept
from pipeline.records.lines import LineDamaged
from pipeline.store.sql.link import Link

_MARK = b'"kind":"document_kept"'
_SOURCE = "casys"
_MOST = 2**31 - 1
#: The columns of seeds/003: id, workflow_id, timestamp, layer_index, and JSON of state, DAG and settings.
Row = tuple[str, str, str, int, str, str, str]
#: The oldest of the newest so many.
_OLDEST = "SELECT seq FROM workflow_checkpoints WHERE journal = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
_ENTER = (
    "INSERT INTO workflow_checkpoints (id, workflow_id, timestamp, layer_index, state, dag_structure, execution_config,"
    " journal, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)


def has_document(line: bytes) -> bool:
    """Whether a line may hold a checkpoint."""
    return _MARK in line


def post(link: Link, journal: int, lines: Iterable[bytes]) -> None:
    """Enter the checkpoints among these records, and take pruned ones out. What makes no sense is left out."""
    for seq, row, upto, keep in _changes(lines):
        if row:
            link.run(_ENTER, *row, journal, seq)
        if keep and (oldest := link.row(_OLDEST, journal, keep - 1)):
            upto = oldest[0] - 1
        if upto:
            link.run("DELETE FROM workflow_checkpoints WHERE journal = ? AND seq <= ?", journal, upto)


def again(link: Link, journal: int, lines: Iterable[bytes], seqs: Iterable[int]) -> None:
    """Enter the checkpoints of these records as if they had never been; `lines`: all of the journal."""
    for seq in seqs:
        link.run("DELETE FROM workflow_checkpoints WHERE journal = ? AND seq = ?", journal, seq)
    post(link, journal, lines)


def told(lines: Iterable[bytes]) -> dict[int, Row]:
    """The rows of a whole journal by the seq of their record, as `post` leaves them."""
    rows: dict[int, Row] = {}
    for seq, row, upto, keep in _changes(lines):
        if row and all(row[0] != other[0] for other in rows.values()):
            rows[seq] = row
        if keep and len(rows) > keep:
            upto = sorted(rows)[-keep] - 1
        rows = {number: each for number, each in rows.items() if number > upto}
    return rows


def wrong(link: Link, journal: int, lines: Iterable[bytes], known: Callable[[int], bool]) -> dict[int, str]:
    """Where the table and the records of a whole journal say something else, by seq.

    Args:
        known: Whether the journal knows what its record of a seq was: a row whose record was lost may stand.
    """
    sql = (
        "SELECT seq, id, workflow_id, layer_index, state, dag_structure, execution_config FROM workflow_checkpoints"
        " WHERE journal = ? ORDER BY seq"
    )
    there = {int(seq): _comparable(*row) for seq, *row in link.rows(sql, journal)}
    found: dict[int, str] = {}
    wanted = told(lines)
    for seq, (name, whose, _, *rest) in wanted.items():
        if seq not in there:
            found[seq] = f"Checkpoint {name} is missing from the table workflow_checkpoints."
        elif not _same(there[seq], _comparable(name, whose, *rest)):
            found[seq] = f"Checkpoint {name} is another in the table workflow_checkpoints than in record {seq}."
    for seq in filter(known, there.keys() - wanted.keys()):
        found[seq] = f"Checkpoint {there[seq][0]} of the table workflow_checkpoints is in no record, or was pruned."
    return found


def _changes(lines: Iterable[bytes]) -> Iterator[tuple[int, Row | None, int, int]]:
    """(seq, row to enter, up to which seq rows go, how many of the newest stay: 0 all) of each of our records."""
    for line in lines:
        if not has_document(line):
            continue
        try:
            record = decode_line(line)
            fact = record.fact
            document = json.loads(fact.content) if isinstance(fact, DocumentKept) and fact.source == _SOURCE else None
            if not isinstance(document, dict):
                continue
            row = _row(document) if document.get("type") == "checkpoint" else None
        except (LineDamaged, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        if row:
            yield record.seq, row, 0, _count(document.get("keep"))
        elif document.get("type") == "pruned":
            yield record.seq, None, _count(document.get("upto")), 0


def _count(value: Any) -> int:
    return value if type(value) is int and 0 < value <= _MOST else 0


def _row(document: dict[str, Any]) -> Row:
    """The columns of seeds/003.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: It is none.
    """
    index = document["layer_index"]
    if type(index) is not int or not 0 <= index <= _MOST:
        raise ValueError(index)
    names = (_clean(str(document["id"])), _clean(str(document["workflow_id"])))
    moment = iso(parse_iso(document["timestamp"]))
    # A checkpoint of a run that goes on by its records alone shows them apart.
    shown = document.get("shown", document)
    state, dag, config = (json.dumps(_clean(shown[name]), allow_nan=False) for name in ("state", "dag", "config"))
    return *names, moment, index, state, dag, config


def _comparable(name: Any, whose: Any, index: Any, *parts: Any) -> list[Any]:
    """A row as it can be compared: without its time, and JSON as values, whatever somebody has put there."""
    return [name, whose, index, *map(_value, parts)]


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal for a database that writes 1e300 with all its digits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and type(other) is int:
        return one == float(other)
    if isinstance(other, float) and type(one) is int:
        return float(one) == other
    return type(one) is type(other) and bool(one == other)


def _value(part: Any) -> Any:
    if not isinstance(part, str | bytes):
        return part
    try:
        return json.loads(part)
    except ValueError:
        return part


def _clean(value: Any) -> Any:
    """The value without what JSONB cannot hold: zero characters and halves of pairs."""
    if isinstance(value, str):
        return value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {_clean(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value
