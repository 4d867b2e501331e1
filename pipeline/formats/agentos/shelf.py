"""The documents that are kept: records in runs of the store, one run for each runId, found through an index of them.

The index holds what a listing says, never the documents; it reads only what is new, so other processes are seen.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.clock import Clock, iso
from pipeline.engine.amendment import amend
from pipeline.engine.setup import host
from pipeline.errors import CheckpointCorrupt, RunNotFound, SecretRefused
from pipeline.formats.agentos.documents import GraphCheckpoint
from pipeline.formats.agentos.packing import Packer, unpacked_text
from pipeline.formats.agentos.rows import Place, Row, order_at, row_of
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.kinds import DocumentKept, RunEnded, RunStarted
from pipeline.records.lines import encode_line, line_seq
from pipeline.records.redaction import holds_key
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import encode_value
from pipeline.store.base import Claim, Store
from pipeline.store.names import newest_first

#: The pipeline of the runs that hold documents, and the source of those.
PIPELINE, SOURCE = "graph_checkpoints", "agentos"
CHECKPOINT, DELETED = "checkpoint", "deleted"
_KIND = b'"kind":"document_kept"'
#: The kind stands behind the envelope, within so many bytes.
_ENVELOPE = 140
_log = logging.getLogger("pipeline")


class _Entry(NamedTuple):
    """What one record says of an id."""

    id: str
    place: Place
    #: None: the checkpoint was deleted.
    row: Row | None


@dataclass
class _Holder:
    """A run that holds documents, as far as it was read."""

    #: Whose checkpoints it holds.
    graph_run: str
    seq: int = 0
    #: Order of the newest entry: none after it is older, whatever the clock of its process said.
    order: int = 0
    entries: list[_Entry] = field(default_factory=list)


class Shelf:
    """The kept documents of a store; not for several threads at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        #: By the ids of our runs.
        self._holders: dict[str, _Holder] = {}
        self._newest: dict[str, _Entry] = {}
        #: The highest order that was seen.
        self._order = 0

    def look(self) -> Mapping[str, Row | None]:
        """What is kept now: id → its row, or None where it was deleted."""
        there = set()
        for head in self._store.heads(_holds):
            # What cannot be read at all is no holder that we know of.
            if head.document:
                there.add(head.run_id)
                self._read(head.run_id, head.document)
        if gone := set(self._holders) - there:
            for run_id in gone:
                del self._holders[run_id]
            self._index()
        return {name: entry.row for name, entry in self._newest.items()}

    def get(self, name: str) -> GraphCheckpoint | None:
        """The document of an id that the last look saw; None: it was deleted since.

        Raises:
            CheckpointCorrupt: It is missing or damaged.
        """
        entry = self._newest[name]
        return None if entry.row is None else self._document(entry.place)

    def save(self, checkpoint: GraphCheckpoint) -> None:
        """Keep a document, durable on return; it takes the place of one of the same id.

        Raises:
            CheckpointCorrupt, InvalidValue, SecretRefused: It cannot be kept.
            RunLocked: Another process is saving to the same run.
            WriteFailed: The disk refused.
        """
        document = GraphCheckpoint.from_json(checkpoint.to_json()).to_json()
        if holds_key(document):
            raise SecretRefused(f"Checkpoint {document['id']} holds what looks like a secret; none are stored.")
        self.look()
        packer = Packer()
        packed = packer.pack(document)
        row = row_of(document)
        self._keep(checkpoint.run_id, {"type": CHECKPOINT, **row.to_json(), "document": packed}, packer)

    def delete(self, name: str, graph_run: str) -> None:
        """Take a checkpoint of a runId off the list; its records stay. Raises as `save`."""
        self._keep(graph_run, {"type": DELETED, "id": name}, Packer())

    def _keep(self, graph_run: str, document: Mapping[str, Any], packer: Packer) -> None:
        self._order = max(self._order + 1, order_at(self._clock.now()))
        text = encode_value({**document, "order": self._order})
        held = [name for name, each in self._holders.items() if each.graph_run == graph_run]
        run_id = newest_first(held)[-1] if held else self._make(graph_run)
        fact = DocumentKept(text, SOURCE)
        amend(self._store, run_id, self._clock, lambda state: [fact], blobs=list(packer.blobs.values()))

    def _make(self, graph_run: str) -> str:
        """A run to hold the checkpoints of a runId; it is nothing to be gone on with."""
        claim = Claim(PIPELINE, graph_run, "", SOURCE).to_json()
        started = RunStarted(PIPELINE, {"runId": graph_run}, {}, {}, claim=claim, host=host())
        now = self._clock.now()
        # Complete: there is nothing to go on with; and the newest of its claim, so that no clean-up takes it.
        facts = [started, RunEnded(COMPLETED)]
        lines = [encode_line(seq, iso(now), 1, encode_fact(fact)) for seq, fact in enumerate(facts, 1)]
        run_id, journal = self._store.create(b"".join(lines), (), at=now)
        journal.close()
        made = [head.run_id for head in self._store.heads(lambda document: document.get("claim") == claim)]
        if made[-1] == run_id:
            return run_id
        # Another process was faster: the oldest one holds them all.
        self._store.delete(run_id)
        return made[-1]

    def _read(self, run_id: str, document: Mapping[str, Any]) -> None:
        holder = self._holders.get(run_id)
        if holder is None or document["seq"] < holder.seq:
            holder = self._holders[run_id] = _Holder(str(document["claim"][1]))
            self._index()
        if document["seq"] == holder.seq:
            return
        for line in self._store.read(run_id, after=holder.seq):
            seq = line_seq(line)
            if seq > holder.seq + 1:
                _log.warning(
                    "Records %s to %s of run %s are damaged: a checkpoint of %s that they held is not listed.",
                    holder.seq + 1, seq - 1, run_id, holder.graph_run,
                )  # fmt: skip
            holder.seq = seq
            entry = _entry(run_id, line, holder.order) if _KIND in line[:_ENVELOPE] else None
            if entry is not None:
                holder.entries.append(entry)
                holder.order = entry.place.order
                self._order = max(self._order, entry.place.order)
                self._take(entry)

    def _index(self) -> None:
        self._newest.clear()
        for holder in self._holders.values():
            for entry in holder.entries:
                self._take(entry)

    def _take(self, entry: _Entry) -> None:
        known = self._newest.get(entry.id)
        if known is None or entry.place > known.place:
            self._newest[entry.id] = entry

    def _document(self, place: Place) -> GraphCheckpoint:
        line = next(iter(self._store.read(place.run_id, after=place.seq - 1)), b"")
        content = _content(line) if line and line_seq(line) == place.seq else None
        if content is None:
            raise CheckpointCorrupt(f"Record {place.seq} of run {place.run_id} is damaged.", run=place.run_id)
        stored = unpacked_text(content, lambda blob: self._store.get_blob(place.run_id, blob))
        return GraphCheckpoint.from_json(stored["document"])


def _holds(document: Mapping[str, Any]) -> bool:
    claim = document.get("claim")
    return document.get("pipeline") == PIPELINE and isinstance(claim, Sequence) and len(claim) > 1 and "seq" in document


def _content(line: bytes) -> bytes | None:
    fact = decode_line(line, whole=not line.endswith(b"\n")).fact
    return fact.content if isinstance(fact, DocumentKept) and fact.source == SOURCE else None


def _entry(run_id: str, line: bytes, least: int) -> _Entry | None:
    """What a record says; None where it is no document of ours."""
    content = _content(line)
    said = None if content is None else json.loads(content)
    if not isinstance(said, dict) or said.get("type") not in (CHECKPOINT, DELETED):
        return None
    place = Place(max(least, int(said["order"])), run_id, line_seq(line))
    return _Entry(str(said["id"]), place, Row.from_json(said, place) if said["type"] == CHECKPOINT else None)


def exists(store: Store, run_id: str) -> bool:
    """Whether the store has a run of exactly this id."""
    try:
        store.read(run_id)
    except RunNotFound:
        return False
    return True
