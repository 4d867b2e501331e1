"""Which run holds a thread, and which threads there are. Never writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.errors import RunNotFound
from pipeline.records.kinds import RunStarted
from pipeline.store.base import Claim, Store
from pipeline.store.names import newest_first
from pipeline.store.reading import records

#: The pipeline of the runs that hold threads, and the source of their documents.
PIPELINE = SOURCE = "langgraph"
#: The setting of a run that took the place of another, under which it names that.
REPLACES = "replaces"


def claim_of(thread_id: str) -> Claim:
    """What the run of a thread says that it is of; the id is text, never part of a path."""
    return Claim(PIPELINE, thread_id, "", "thread")


def run_of(store: Store, thread_id: str) -> str | None:
    """The run that holds a thread; None: there is none."""
    return chosen(store, runs_of(store, thread_id))


def runs_of(store: Store, thread_id: str) -> list[str]:
    """All runs of a thread, newest first: more than one only where a process died in the middle of a change."""
    claim = claim_of(thread_id).to_json()
    heads = store.heads(lambda document: document.get("claim") == claim)
    # A run that cannot be read at all passes every question. A fork inherits the claim, but no checkpoints.
    found = [head for head in heads if head.document.get("claim") == claim]
    return [head.run_id for head in found if not head.document.get("parent")]


def chosen(store: Store, runs: Sequence[str]) -> str | None:
    """The run that counts: the oldest of those that no other took the place of."""
    if len(runs) < 2:
        return runs[0] if runs else None
    gone = {_replaced(store, run) for run in runs}
    return newest_first([run for run in runs if run not in gone] or list(runs))[-1]


def threads(store: Store) -> Iterator[str]:
    """The ids of all threads, the newest first."""
    seen = set()
    for head in store.heads(lambda document: document.get("pipeline") == PIPELINE):
        thread_id = _thread_id(head.document)
        if thread_id is not None and thread_id not in seen:
            seen.add(thread_id)
            yield thread_id


def _thread_id(document: Mapping[str, Any]) -> str | None:
    claim = document.get("claim")
    whole = document.get("pipeline") == PIPELINE and isinstance(claim, Sequence) and len(claim) > 1
    return str(claim[1]) if whole and claim is not None else None


def _replaced(store: Store, run: str) -> str:
    """The run whose place a run took; "": none."""
    try:
        first = next(records(store, run)).fact
    except (RunNotFound, StopIteration):
        return ""
    return str(first.identity.get(REPLACES, "")) if isinstance(first, RunStarted) else ""
