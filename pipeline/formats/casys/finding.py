"""Where the checkpoints of layered runs stand: records found by their bytes, without reading the runs as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pipeline.errors import CheckpointCorrupt, RunNotFound, StoreError
from pipeline.formats.casys.ids import is_checkpoint_id, run_mark
from pipeline.formats.casys.views import CLAIM_KIND
from pipeline.records.codec import decode_line
from pipeline.records.kinds import DocumentKept, RunResumed, RunStarted
from pipeline.records.lines import line_seq
from pipeline.store.base import Claim, Head, Store
from pipeline.store.names import is_id

#: The pipeline of runs whose checkpoints are saved by hand, and the source of our documents.
PIPELINE, SOURCE = "layers", "casys"
CHECKPOINT, PRUNED = "checkpoint", "pruned"
_KIND, _STARTED, _RESUMED = (b'"kind":"%s"' % kind for kind in (b"document_kept", b"run_started", b"run_resumed"))
#: The kind stands behind the envelope, within so many bytes.
_ENVELOPE = 140


class Mark(NamedTuple):
    """One document of ours in a run."""

    run_id: str
    seq: int
    #: JSON text of the document.
    text: bytes

    @property
    def document(self) -> Mapping[str, Any]:
        """The document, read anew each time; {} where it is none."""
        found = json.loads(self.text)
        return found if isinstance(found, dict) else {}

    @property
    def id(self) -> str:
        """The checkpoint's id."""
        return str(self.document.get("id"))


class Survey(NamedTuple):
    """What a few records of a run say, without the fold of all."""

    #: Our documents, oldest first.
    marks: list[Mark]
    #: What the run is pinned to now: name → blob hash.
    pins: Mapping[str, str]


def survey(store: Store, run_id: str) -> Survey:
    """Look through a run once.

    Raises:
        RunNotFound: No such run.
    """
    found: list[Mark] = []
    pins: dict[str, str] = {}
    for line in store.read(run_id):
        envelope = line[:_ENVELOPE]
        if _KIND in envelope:
            found.extend(_mark(run_id, line))
        elif _STARTED in envelope or _RESUMED in envelope:
            fact = decode_line(line, whole=not line.endswith(b"\n")).fact
            if isinstance(fact, RunStarted | RunResumed):
                pins.update(fact.pins or {})
    return Survey(found, pins)


def marks(store: Store, run_id: str) -> list[Mark]:
    """Our documents in a run, oldest first; raises as `survey`."""
    return survey(store, run_id).marks


def _mark(run_id: str, line: bytes) -> Iterator[Mark]:
    record = decode_line(line, whole=not line.endswith(b"\n"))
    if isinstance(record.fact, DocumentKept) and record.fact.source == SOURCE:
        yield Mark(run_id, record.seq, record.fact.content)


def listed(found: list[Mark]) -> list[Mark]:
    """The checkpoints of a run that are on its list, newest first: seq decides, never the clock."""
    pruned = max((int(mark.document.get("upto", 0)) for mark in found if _is(mark, PRUNED)), default=0)
    kept = [mark for mark in checkpoints_in(found) if mark.seq > pruned]
    keep = kept[0].document.get("keep") if kept else None
    return kept[:keep] if isinstance(keep, int) else kept


def checkpoints_in(found: list[Mark]) -> list[Mark]:
    """All checkpoints of a run, newest first; those that left the list too."""
    return [mark for mark in found if _is(mark, CHECKPOINT)][::-1]


def _is(mark: Mark, kind: str) -> bool:
    return mark.text.startswith(b'{"type":"%s"' % kind.encode("ascii"))


def find(store: Store, checkpoint: str) -> Mark:
    """The record of a checkpoint, in whichever run it stands.

    Raises:
        RunNotFound: No run has it.
        CheckpointCorrupt: Its run (data["run"]) is damaged where it must have stood.
    """
    wanted = checkpoint.strip().lower()
    if not is_checkpoint_id(wanted):
        raise _unknown(checkpoint)
    needle = b'"id":"%s"' % wanted.encode("ascii")
    own: list[Head] = []
    others: list[Head] = []
    for head in store.heads():
        (own if wanted.startswith(run_mark(head.run_id)) else others).append(head)
    for head in [*own, *others]:
        for line in store.read(head.run_id):
            if _KIND in line[:_ENVELOPE] and needle in line:
                for mark in _mark(head.run_id, line):
                    if mark.id == wanted:
                        return mark
    for head in own:
        if damage := _damage(store, head):
            raise CheckpointCorrupt(f"Checkpoint {wanted} cannot be read: {damage}.", run=head.run_id)
    raise _unknown(checkpoint)


def _unknown(checkpoint: str) -> RunNotFound:
    return RunNotFound(f"There is no checkpoint {checkpoint!r}.", checkpoint=checkpoint)


def _damage(store: Store, head: Head) -> str:
    """What is missing from a run; "" if nothing is."""
    last = 0
    for line in store.read(head.run_id):
        seq = line_seq(line)
        if seq != last + 1:
            return _lost(head.run_id, last + 1, seq - 1)
        last = seq
    known = head.document.get("seq")
    if isinstance(known, int) and known > last:
        return _lost(head.run_id, last + 1, known)
    return head.corrupt or str(head.document.get("lost") or "").rstrip(".")


def _lost(run_id: str, first: int, last: int) -> str:
    what = f"record {first}" if first == last else f"records {first} to {last}"
    return f"{what} of run {run_id} {'is' if first == last else 'are'} damaged or gone"


def claim_of(workflow_id: str) -> Claim:
    """What the run that holds the checkpoints of a workflow_id claims."""
    return Claim(PIPELINE, workflow_id, "", CLAIM_KIND)


def run_of(store: Store, workflow_id: str) -> str | None:
    """The run of a workflow_id: the run of that name, else the newest whose checkpoints were saved under it."""
    if is_id(workflow_id) and _exists(store, workflow_id):
        return workflow_id
    claim = claim_of(workflow_id).to_json()
    found = next(store.heads(lambda document: document.get("claim") == claim), None)
    return None if found is None else found.run_id


def _exists(store: Store, run_id: str) -> bool:
    try:
        store.read(run_id)
    except (RunNotFound, StoreError):
        return False
    return True
