"""The saved documents: records in runs of the store, one run for each runId, found through an index of them.

The index holds what a listing shows, never the documents; it reads only what is new, so other processes are seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.clock import Clock
from pipeline.engine.setup import host
from pipeline.errors import CheckpointCorrupt, SecretRefused
from pipeline.formats.agentos.documents import CheckpointRow, GraphCheckpoint, RecordPlace, order_at
from pipeline.formats.packer import Gathered, packed, unpacked_document
from pipeline.formats.shelf import Document, Holder, documents
from pipeline.records.codec import lines_of
from pipeline.records.kinds import RunEnded, RunStarted
from pipeline.records.redaction import holds_key
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Claim, Store
from pipeline.store.names import newest_first

#: The pipeline of the runs that hold documents, and the source of those.
PIPELINE, SOURCE = "graph_checkpoints", "agentos"
CHECKPOINT, DELETED = "checkpoint", "deleted"


class _ArchiveEntry(NamedTuple):
    """What one record says of an id."""

    id: str
    place: RecordPlace
    #: None: the checkpoint was deleted.
    row: CheckpointRow | None


class _Folder(Holder):
    """A run that holds the documents of a runId."""

    def __init__(self, run_id: str, graph_run: str) -> None:
        super().__init__(run_id, SOURCE)
        self.graph_run = graph_run

    def reset(self) -> None:
        super().reset()
        self.entries: list[_ArchiveEntry] = []

    def take(self, document: Document) -> None:
        said = document.content
        if said.get("type") in (CHECKPOINT, DELETED):
            # No entry is older than the one before it, whatever the clock of its process said.
            least = self.entries[-1].place.order if self.entries else 0
            place = RecordPlace(max(least, int(said["order"])), self.run_id, document.seq)
            row = CheckpointRow.from_json(said, place) if said["type"] == CHECKPOINT else None
            self.entries.append(_ArchiveEntry(str(said["id"]), place, row))


class Archive:
    """The saved documents of a store; not for several threads at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        #: By the ids of our runs.
        self._folders: dict[str, _Folder] = {}
        #: The highest order that was seen.
        self._order = 0

    def look(self) -> Mapping[str, CheckpointRow | None]:
        """Return what is kept now: id → its row, or None where it was deleted."""
        there = set()
        for head in self._store.heads(_holds):
            # What cannot be read at all is no known folder.
            if head.document:
                there.add(head.run_id)
                self._read(head.run_id, head.document)
        self._folders = {run_id: folder for run_id, folder in self._folders.items() if run_id in there}
        newest: dict[str, _ArchiveEntry] = {}
        for entry in (entry for folder in self._folders.values() for entry in folder.entries):
            known = newest.get(entry.id)
            if known is None or entry.place > known.place:
                newest[entry.id] = entry
            self._order = max(self._order, entry.place.order)
        return {name: entry.row for name, entry in newest.items()}

    def _read(self, run_id: str, document: Mapping[str, Any]) -> None:
        folder = self._folders.get(run_id)
        if folder is None:
            folder = self._folders[run_id] = _Folder(run_id, str(document["claim"][1]))
            folder.read_on(self._store, self._store.written_head(run_id))
        elif document["seq"] < folder.seq or (document["seq"] > folder.seq and not folder.read_on(self._store)):
            folder.reset()
            folder.read_on(self._store)

    def get(self, row: CheckpointRow) -> GraphCheckpoint:
        """Return the document of a row; CheckpointCorrupt where it is missing or damaged."""
        place = row.place
        assert place is not None
        found = next(documents(self._store, place.run_id, SOURCE, after=place.seq - 1), None)
        if found is None or found.seq != place.seq:
            raise CheckpointCorrupt(f"Record {place.seq} of run {place.run_id} is damaged.", run=place.run_id)
        stored = unpacked_document(found.text, lambda blob: self._store.get_blob(place.run_id, blob))
        return GraphCheckpoint.from_json(stored["document"])

    def save(self, checkpoint: GraphCheckpoint) -> None:
        """Keep a document, durable on return; it replaces one of the same id.

        Raises:
            CheckpointCorrupt, InvalidValue, SecretRefused: It cannot be kept.
            RunLocked: Another process is saving to the same run.
            WriteFailed: The disk refused.
        """
        document = checkpoint.to_json()
        GraphCheckpoint.from_json(document)
        if holds_key(document):
            raise SecretRefused(f"Checkpoint {document['id']} holds what looks like a secret; none are stored.")
        self.look()
        blobs = Gathered()
        content = {"type": CHECKPOINT, **CheckpointRow.of(document).to_json(), "document": packed(document, blobs)}
        self._keep(checkpoint.run_id, content, blobs)

    def delete(self, name: str, graph_run: str) -> None:
        """Take a checkpoint of a runId off the list; its records stay. Raises as `save`."""
        self._keep(graph_run, {"type": DELETED, "id": name}, {})

    def _keep(self, graph_run: str, content: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        self._order = max(self._order + 1, order_at(self._clock.now()))
        held = [folder.run_id for folder in self._folders.values() if folder.graph_run == graph_run]
        run_id = newest_first(held)[-1] if held else self._begin(graph_run)
        folder = self._folders.get(run_id) or _Folder(run_id, graph_run)
        journal = folder.own(self._store, self._clock.stamp())
        try:
            folder.add(journal, [{**content, "order": self._order}], blobs, self._clock.stamp())
        finally:
            journal.close()
        self._folders[run_id] = folder

    def _begin(self, graph_run: str) -> str:
        """Make a run for the documents of a runId; return it, or that of a process that was faster."""
        claim = Claim(PIPELINE, graph_run, "", SOURCE).to_json()
        started = RunStarted(PIPELINE, {"runId": graph_run}, {}, {}, claim=claim, host=host())
        now = self._clock.now()
        # Completed: there is nothing to resume; and the newest of its claim, so that no clean-up takes it.
        lines = lines_of([started, RunEnded(COMPLETED)], self._clock.stamp())
        run_id, journal = self._store.create(b"".join(lines), (), at=now)
        journal.close()
        oldest = [head.run_id for head in self._store.heads(lambda document: document.get("claim") == claim)][-1]
        if oldest != run_id:
            self._store.delete(run_id)
        return oldest


def _holds(document: Mapping[str, Any]) -> bool:
    claim = document.get("claim")
    return document.get("pipeline") == PIPELINE and isinstance(claim, Sequence) and len(claim) > 1 and "seq" in document
