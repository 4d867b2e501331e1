"""Add facts to a run from outside: an answer, a settled charge, a step that a person declares done."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pipeline.clock import Clock
from pipeline.engine.head import HeadView
from pipeline.engine.recorder import Recorder
from pipeline.engine.takeover import record_repairs
from pipeline.errors import Pause
from pipeline.records.kinds import Fact
from pipeline.records.run import RunState
from pipeline.store.base import Journal, Store
from pipeline.store.reading import folded


def amend(
    store: Store,
    run_id: str,
    clock: Clock,
    decide: Callable[[RunState], Sequence[Fact]],
    view: HeadView | None = None,
    blobs: Sequence[bytes] = (),
) -> RunState:
    """Append what `decide` makes of the run as it stands; durable on return. The state after it.

    What `decide` raises passes through, and nothing is recorded then. `blobs` are stored before the facts.

    Raises:
        RunNotFound, RunLocked, CheckpointCorrupt, SchemaTooNew: As Store.open.
        WriteFailed: The disk refused.
    """
    head = store.written_head(run_id)
    journal = store.open(run_id)
    try:
        builder, missing = folded(store, run_id, head)
        state = builder.state
        facts = decide(state)
        recorder = Recorder(
            journal,
            builder,
            clock,
            owner=state.owner,
            nodes=pinned_nodes(journal, state),
            warn=lambda _: None,
            view=view,
        )
        try:
            record_repairs(journal, recorder, missing)
            for data in blobs:
                recorder.put_blob(data)
            if facts:
                # One write: a decision on many calls stands whole or not at all.
                recorder.append(facts[0], follow=facts[1:])
            recorder.leave()
        except Pause as pause:
            raise pause.cause from None
        return builder.freeze()
    finally:
        journal.close()


def pinned_nodes(journal: Journal, state: RunState) -> list[str]:
    """The ids of the run's nodes, as its pinned graph names them; those it visited where it has none."""
    if "graph" not in state.pins:
        return list(dict.fromkeys(step.node for step in state.steps.values()))
    return [str(node["id"]) for node in json.loads(journal.get_blob(state.pins["graph"]))["nodes"]]
