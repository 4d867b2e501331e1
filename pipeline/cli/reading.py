"""One run read back for showing, also one that is only a checkpoint.json so far."""

from __future__ import annotations

from pipeline.clock import SystemClock
from pipeline.errors import RunNotFound
from pipeline.records.codec import decode_line
from pipeline.records.fold import fold
from pipeline.records.run import RunState
from pipeline.store.base import Head, Store
from pipeline.store.imports import import_lines
from pipeline.store.reading import load, summary


def head_of(store: Store, run: str) -> Head:
    """The head of a run, by its exact id.

    Raises:
        RunNotFound: No such run.
    """
    for head in store.heads(lambda document: document.get("run_id", run) == run):
        if head.run_id == run:
            return head
    raise RunNotFound(f"There is no run {run!r}.", hint="./pipeline.sh list shows the runs there are.")


def state_of(store: Store, head: Head, *, tasks: bool = True) -> RunState:
    """What is known of a run; nothing is written, an import that resuming would make is only imagined.

    Args:
        tasks: With every finished task; else only how many there are.
    """
    if head.document.get("imported"):
        lines = import_lines(head.document, SystemClock().now())
        return fold(head.run_id, map(decode_line, lines))
    return load(store, head.run_id) if tasks else summary(store, head.run_id)
