"""What is written of a thread: the first lines of its run, what is added to it, and its head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, NamedTuple

from pipeline.clock import iso
from pipeline.engine.setup import host
from pipeline.formats.langgraph.finding import PIPELINE, SOURCE, claim_of
from pipeline.formats.langgraph.known import Known
from pipeline.formats.langgraph.thread import Key, Thread
from pipeline.records.codec import encode_fact
from pipeline.records.documents import head_document
from pipeline.records.kinds import DocumentKept, Fact, Gap, RunEnded, RunStarted
from pipeline.records.lines import encode_line
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import encode_value
from pipeline.store.base import Journal, Store


class Addition(NamedTuple):
    """What is to be recorded of a thread."""

    documents: Sequence[Mapping[str, Any]]
    #: What stands out of line, by hash.
    blobs: Mapping[str, bytes]


def first_lines(thread_id: str, generation: int, addition: Addition, now: datetime) -> list[bytes]:
    """The lines of a run that holds a thread from its first moment on."""
    claim = claim_of(thread_id, generation).to_json()
    # Completed: there is nothing for us to go on with, so no clean-up waits for it, and none takes it.
    facts = [RunStarted(PIPELINE, {"subject": thread_id}, {}, {}, claim=claim, host=host()),
             RunEnded(COMPLETED), *_facts(addition)]  # fmt: skip
    return [encode_line(seq, iso(now), 1, encode_fact(fact)) for seq, fact in enumerate(facts, 1)]


def copied(store: Store, thread: Thread, keys: AbstractSet[Key]) -> Addition:
    """These checkpoints of a thread, with all that stands out of line.

    Raises:
        CheckpointCorrupt: Some of that is missing or damaged.
    """
    blobs = {blob: store.get_blob(thread.run_id, blob) for blob in sorted(thread.blobs(keys))}
    return Addition(list(thread.documents(keys)), blobs)


def record(journal: Journal, known: Known, addition: Addition, at: str) -> None:
    """Add to a thread whose journal is owned and known to its end; durable on return.

    Raises:
        WriteFailed: The store refused.
    """
    for blob, data in addition.blobs.items():
        if blob not in known.sound:
            journal.put_blob(data)
            known.sound.add(blob)
    _append(journal, known, _facts(addition), at)


def record_repairs(journal: Journal, known: Known, at: str) -> None:
    """Say in the journal what opening it had to leave out; raises as `record`."""
    lost = [Gap(*repair) for repair in journal.repairs if not getattr(repair, "recorded", False)]
    if lost:
        _append(journal, known, lost, at)


def write_head(journal: Journal, known: Known) -> None:
    """checkpoint.json of a thread's run: how many checkpoints it holds."""
    document = head_document(known.builder.state, journal.size, ())
    # A view, made afresh from the records where a power cut takes it: nobody waits for it.
    journal.write_head({**document, "checkpoints": len(known.thread.checkpoints)}, durable=False)


def _append(journal: Journal, known: Known, facts: Sequence[Fact], at: str) -> None:
    first, owner = journal.last_seq + 1, known.builder.state.owner
    lines = [encode_line(seq, at, owner, encode_fact(fact)) for seq, fact in enumerate(facts, first)]
    journal.append(first, lines)
    known.take(lines)
    write_head(journal, known)


def _facts(addition: Addition) -> list[Fact]:
    return [DocumentKept(encode_value(document), SOURCE) for document in addition.documents]
