"""Documents of other systems kept as records of runs (found by their bytes, read on, added), and runs begun at one.

Knows no format.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pipeline.errors import RunNotFound, StoreError
from pipeline.graph.model import Graph
from pipeline.records.codec import Record, decode_line, lines_of
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder
from pipeline.records.kinds import DocumentKept, Fact, Gap
from pipeline.records.lines import line_seq
from pipeline.records.positions import split
from pipeline.records.snapshots import INHERITED
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.records.values import digest, encode_value
from pipeline.store.base import Journal, Store
from pipeline.store.view import fold_beside, records_in

#: The kind of a record is within this many bytes from its start, behind the envelope.
ENVELOPE_BYTES = 140
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_log = logging.getLogger("pipeline")


class Document(NamedTuple):
    """A document in a run."""

    run_id: str
    seq: int
    #: Its JSON text.
    text: bytes

    @property
    def content(self) -> Mapping[str, Any]:
        """Return the document, decoded at each use; {} where it is not an object."""
        found = json.loads(self.text)
        return found if isinstance(found, dict) else {}


def records_of(store: Store, run_id: str, *kinds: str, after: int = 0, holding: bytes = b"") -> Iterator[Record]:
    """Yield the records of these kinds whose line holds a text; only they are decoded. RunNotFound: no such run."""
    mark = re.compile(b'"kind":"(?:%s)"' % "|".join(kinds).encode("ascii"))
    for line in store.read(run_id, after):
        if mark.search(line, 0, ENVELOPE_BYTES) and holding in line:
            yield decode_line(line, whole=not line.endswith(b"\n"))


def documents(store: Store, run_id: str, source: str, *, after: int = 0, holding: bytes = b"") -> Iterator[Document]:
    """Yield the documents of a source in a run, oldest first; raises as `records_of`."""
    for record in records_of(store, run_id, "document_kept", after=after, holding=holding):
        if (found := document_of(run_id, record, source)) is not None:
            yield found


def document_of(run_id: str, record: Record, source: str) -> Document | None:
    """Return the document that a record keeps; None if it keeps none of the source."""
    fact = record.fact
    if not isinstance(fact, DocumentKept) or fact.source != source:
        return None
    return Document(run_id, record.seq, fact.content)


def exists(store: Store, run_id: str) -> bool:
    """Return whether the store has a run of exactly this id that can be read."""
    try:
        store.read(run_id)
    except (RunNotFound, StoreError):
        return False
    return True


def run_mark(run_id: str) -> str:
    """Return the eight digits that the ids of a run's checkpoints begin with."""
    return digest(run_id.encode("utf-8"))[:8]


def checkpoint_id(drawn: str, run_id: str = "") -> str:
    """Return the id made of a text, in the form of a UUID of version 4; it begins with the mark of the run, if any."""
    made = (run_mark(run_id) if run_id else "") + digest(drawn.encode())
    variant = "89ab"[int(made[16], 16) % 4]
    return f"{made[:8]}-{made[8:12]}-4{made[13:16]}-{variant}{made[17:20]}-{made[20:32]}"


def is_checkpoint_id(text: str) -> bool:
    """Return whether a text has the form of such an id."""
    return _ID.fullmatch(text) is not None


class Holder:
    """A run that holds documents, as far as this process has read it."""

    def __init__(self, run_id: str, source: str) -> None:
        self.run_id = run_id
        self._source = source
        self.reset()

    def reset(self) -> None:
        """Begin with nothing read."""
        self.builder = Builder(self.run_id)
        #: The first line, which tells what the run is; the last line that was read, and its number.
        self.first = self._line = b""
        self.seq = 0
        #: Blobs that this process has written to the run.
        self._sound: set[str] = set()
        #: What the head knew to be spent and the records do not tell.
        self._missing: Gap | None = None

    def take(self, document: Document) -> None:
        """Take in a document that was read; KeyError, TypeError, ValueError and AttributeError are logged."""

    def own(self, store: Store, at: str) -> Journal:
        """Own the run, read it to its end and record what opening it had to leave out; raises as Store.open."""
        journal = store.open(self.run_id)
        try:
            if journal.repairs or (self.seq != journal.last_seq and not (self.seq and self.read_on(store))):
                self.reset()
                self.read_on(store, store.written_head(self.run_id))
            self.mend(journal, at)
        except BaseException:
            journal.close()
            raise
        return journal

    def read_on(self, store: Store, head: Mapping[str, Any] | None = None) -> bool:
        """Read the records that came since; return False if another run has this name by now.

        Args:
            head: The head as it was written before, to see whether records are missing at the end.
        """
        lines = store.read(self.run_id, after=max(self.seq - 1, 0))
        seen = next(lines, b"").rstrip(b"\n") if self.seq else b""
        if seen != self._line:
            return False
        self.read(lines, head, seen)
        return True

    def read(self, lines: Iterable[bytes], head: Mapping[str, Any] | None = None, seen: bytes = b"") -> None:
        """Read lines that follow.

        Args:
            seen: The known line before them, if it is at hand: what is missing behind it shows.
        """
        before = self.seq
        noted = chain([seen], self._noted(lines)) if seen else self._noted(lines)
        records = (each for each in records_in(noted, before - bool(seen)) if each.seq > before)
        if not before:
            self.builder, self._missing = fold_beside(self.run_id, map(self._taken, records), head or {})
            return
        for record in records:
            self.builder.apply(self._taken(record))

    def _noted(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            self._line = line.rstrip(b"\n")
            self.seq = line_seq(self._line)
            self.first = self.first or self._line
            yield self._line

    def _taken(self, record: Record) -> Record:
        fact = record.fact
        if isinstance(fact, Gap):
            _log.warning(
                "Records %s to %s of run %s are damaged: the checkpoints that they held are not found.",
                fact.first,
                fact.last,
                self.run_id,
            )
        elif (found := document_of(self.run_id, record, self._source)) is not None:
            try:
                self.take(found)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                _log.warning(
                    "Record %s of run %s is invalid (%s); what it held is not found.", record.seq, self.run_id, error
                )
        return record

    def mend(self, journal: Journal, at: str) -> None:
        """Record what opening the journal had to leave out."""
        lost = [Gap(*repair) for repair in journal.repairs if not getattr(repair, "recorded", False)]
        if self._missing is not None:
            lost.append(self._missing)
            self._missing = None
        if lost:
            self._append(journal, lost, at)

    def add(
        self, journal: Journal, contents: Iterable[Mapping[str, Any] | bytes], blobs: Mapping[str, bytes], at: str
    ) -> int:
        """Add documents to a run that is owned and read to its end, durable on return; return the last one's number.

        Args:
            contents: Documents, or their JSON texts.
            blobs: What is stored beside them, by hash; what this process has stored in the run already costs nothing.

        Raises:
            WriteFailed: The store refused.
        """
        for blob in blobs.keys() - self._sound:
            journal.put_blob(blobs[blob])
            self._sound.add(blob)
        texts = (each if isinstance(each, bytes) else encode_value(each) for each in contents)
        self._append(journal, [DocumentKept(text, self._source) for text in texts], at)
        return self.seq

    def _append(self, journal: Journal, facts: Iterable[Fact], at: str) -> None:
        lines = lines_of(facts, at, journal.last_seq + 1, self.builder.state.owner)
        journal.append(journal.last_seq + 1, lines)
        self.read(lines)
        self.write_head(journal)

    def write_head(self, journal: Journal) -> None:
        """Write the view of the run that listings read; made afresh from the records if a power cut takes it."""
        journal.write_head({**head_document(self.builder.state, journal.size, ()), **self.extras()}, durable=False)

    def extras(self) -> Mapping[str, Any]:
        """Return what the head holds beside the usual."""
        return {}


# --- the position of a run that begins at a document; see records.snapshots ---

#: The edge and source of the first visit of a run.
FIRST = ("", "")


def visit_row(
    graph: Graph,
    path: str,
    *,
    outputs: Any,
    context: Mapping[str, Any],
    artifacts: Mapping[str, str],
    at: str,
    seconds: float,
    checkpoint: str,
    consumed: Sequence[Sequence[str]],
    edges: Sequence[str],
) -> dict[str, Any]:
    """Return a completed visit; values are JSON or references, artifacts are blobs."""
    return {
        "path": path, "status": COMPLETED, "attempt": 1, "version": graph.nodes[split(path)[0]].version,
        "started_at": at, "completed_at": at, "seconds": seconds, "outputs": outputs, "artifacts": dict(artifacts),
        "context": dict(context), "reads": {}, "outcome": "success", "reason": "", "error": None,
        "checkpoint": checkpoint, "edges": list(edges), "consumed": list(consumed) or [list(FIRST)],
    }  # fmt: skip


def position_document(
    pipeline: str,
    visits: Sequence[Mapping[str, Any]],
    waiting: Iterable[Sequence[str]],
    unapplied: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Return the document of the snapshot that such a run begins with.

    Args:
        visits: Rows in order of their ends.
        waiting: (edge, path that chose it) of what comes next.
        unapplied: Staged writes to the user's memory, by path.
    """
    newest = dict(split(str(row["path"])) for row in visits)
    inherited = {
        "steps": list(visits), "waiting": [list(token) for token in waiting], "returning": [], "visits": newest,
        "tasks": [], "attempts": [], "replies": [], "decisions": [], "unapplied": dict(unapplied or {}),
    }  # fmt: skip
    return {"pipeline": pipeline, "status": IN_PROGRESS, "completed_steps": [], INHERITED: inherited}
