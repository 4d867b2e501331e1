"""Checkpoints of layered runs as rows that people query: entered from the records themselves, in their transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pipeline.clock import iso, parse_iso
from pipeline.records.codec import decode_line
from pipeline.records.kinds import DocumentKept
from pipeline.records.lines import LineDamaged
from pipeline.store.sql.link import Link

_MARK = b'"kind":"document_kept"'
_SOURCE = "casys"
_MOST = 2**31 - 1
_ENTER = (
    "INSERT INTO workflow_checkpoints (id, workflow_id, timestamp, layer_index, state, dag_structure, execution_config,"
    " journal, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)


def has_document(line: bytes) -> bool:
    """Whether a line may hold a checkpoint."""
    return _MARK in line


def post(link: Link, journal: int, lines: Iterable[bytes]) -> None:
    """Enter the checkpoints among these records, and take pruned ones out. What makes no sense is left out."""
    for line in lines:
        if not has_document(line):
            continue
        try:
            record = decode_line(line)
            fact = record.fact
            document = json.loads(fact.content) if isinstance(fact, DocumentKept) and fact.source == _SOURCE else None
            row = _row(document) if isinstance(document, dict) and document.get("type") == "checkpoint" else None
        except (LineDamaged, ValueError, TypeError, KeyError, RecursionError):
            continue
        if row:
            link.run(_ENTER, *row, journal, record.seq)
        elif isinstance(document, dict) and document.get("type") == "pruned" and type(document.get("upto")) is int:
            link.run("DELETE FROM workflow_checkpoints WHERE journal = ? AND seq <= ?", journal, document["upto"])


def _row(document: dict[str, Any]) -> tuple[Any, ...]:
    """The columns of seeds/003.

    Raises:
        ValueError, TypeError, KeyError: It is none.
    """
    index = document["layer_index"]
    if type(index) is not int or not 0 <= index <= _MOST:
        raise ValueError(index)
    names = (_clean(str(document["id"])), _clean(str(document["workflow_id"])))
    moment = iso(parse_iso(document["timestamp"]))
    parts = (document["state"], document["dag"], document["config"])
    return *names, moment, index, *(json.dumps(_clean(part), allow_nan=False) for part in parts)


def _clean(value: Any) -> Any:
    """The value without what JSONB cannot hold: zero characters and halves of pairs."""
    if isinstance(value, str):
        return value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {_clean(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value
