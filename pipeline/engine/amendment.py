"""Facts added to a run from outside (an answer, a settled charge, a step declared done), and runs begun with such."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.engine import people
from pipeline.engine.contexts import Contexts
from pipeline.engine.recorder import HeadView, Recorder
from pipeline.engine.routing import Settled, by_label
from pipeline.engine.setup import Definition
from pipeline.engine.takeover import record_repairs
from pipeline.errors import CheckpointCorrupt, ConfigError, GraphError, Pause
from pipeline.graph.model import Graph
from pipeline.records.codec import Record, lines_of
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder, fold
from pipeline.records.kinds import Fact, Gap, RunEnded, StepCompleted
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.values import decode_value, encode_value
from pipeline.store.base import Journal, Store
from pipeline.store.reader import folded


def begin_run(
    store: Store, clock: Clock, facts: Sequence[Fact], blobs: Sequence[bytes], left: Callable[[str], RunEnded]
) -> str:
    """Make a run of work done elsewhere, record how the run of that id is `left`, and return the id."""
    now = clock.now()
    run_id, journal = store.create(b"".join(lines_of(facts, iso(now))), blobs, at=now)
    with closing(journal):
        facts = [*facts, left(run_id)]
        journal.append(len(facts), lines_of(facts[-1:], iso(now), len(facts)))
        state = fold(run_id, (Record(seq, iso(now), 1, fact) for seq, fact in enumerate(facts, 1)))
        graph = pinned_graph(store, state)
        journal.write_head(head_document(state, journal.size, list(graph.nodes) if graph else []), True)
    return run_id


def amend(
    store: Store,
    run_id: str,
    clock: Clock,
    decide: Callable[[RunState], Sequence[Fact]],
    view: HeadView | None = None,
) -> RunState:
    """Append what `decide` makes of the run as it is now, durable on return; return the state after it.

    What `decide` raises passes through, and nothing is recorded then.

    Raises:
        RunNotFound, RunLocked, CheckpointCorrupt, SchemaTooNew: As Store.open.
        WriteFailed: The disk refused.
    """

    def record(recorder: Recorder) -> None:
        if facts:
            # One write: a decision on many calls is recorded whole or not at all.
            recorder.append(facts[0], follow=facts[1:])

    facts: Sequence[Fact] = ()
    head = store.written_head(run_id)
    with closing(store.open(run_id)) as journal:
        builder, missing = folded(store, run_id, head)
        facts = decide(builder.state)
        _write(store, journal, builder, missing, clock, view, record)
        return builder.freeze()


def take_in(store: Store, run_id: str, clock: Clock) -> None:
    """Record what people decided about a run's tasks and what its journal does not hold yet.

    Raises:
        StoreError: As `amend`.
    """
    head = store.written_head(run_id)
    with closing(store.open(run_id)) as journal:
        builder, missing = folded(store, run_id, head)
        _write(store, journal, builder, missing, clock, None, lambda recorder: people.take_in(recorder, store))


def _write(
    store: Store,
    journal: Journal,
    builder: Builder,
    missing: Gap | None,
    clock: Clock,
    view: HeadView | None,
    record: Callable[[Recorder], None],
) -> None:
    """Let something be recorded in a run that is owned for a moment, durable on return."""
    state = builder.state
    graph = pinned_graph(store, state)
    nodes = list(graph.nodes if graph else dict.fromkeys(step.node for step in state.steps.values()))
    recorder = Recorder(journal, builder, clock, owner=state.owner, nodes=nodes, warn=lambda _: None, view=view)
    try:
        record_repairs(journal, recorder, missing)
        record(recorder)
        recorder.leave()
    except Pause as pause:
        raise pause.cause from None


def pinned_graph(store: Store, state: RunState) -> Graph | None:
    """Return the graph that a run is pinned to; None where it has none (imports), or it cannot be read."""
    try:
        return Graph.from_json(json.loads(store.get_blob(state.run_id, state.pins["graph"])))
    except (CheckpointCorrupt, ValueError, KeyError, TypeError):
        return None


def declared_done(
    definition: Definition, state: RunState, name: str, outputs: Mapping[str, Any], clock: Clock
) -> StepCompleted:
    """Return the completion of a visit that was started and has no end.

    Args:
        name: Its step as people name it, or its path.
        outputs: What a person states that it has made; JSON.

    Raises:
        ConfigError: No such visit is without an end; names those that are.
    """
    run = _open(state, name)
    node = definition.graph.nodes.get(run.node)
    if node is None:
        raise GraphError(f"The pipeline no longer has a step {run.node!r}.", code="unknown_step")
    made = decode_value(encode_value(dict(outputs), f"{run.node} outputs"))
    contexts = Contexts(definition.graph, state, definition.reducers)
    route = (definition.router or by_label)(Settled(
        definition.graph, node, run.path, run.visit, run.attempt, "success", False, None, {},
        contexts.seen(run.consumed, run.node), {}, run.consumed, state,
    ))  # fmt: skip
    return StepCompleted(
        run.path, made, clock.new_id(), route.edges, route.outcome or "success", dict(route.context),
        attempt=run.attempt, reason="declared done",
    )  # fmt: skip


def _open(state: RunState, name: str) -> StepRun:
    found = [path for path in state.open_paths if name in (path, bare(path), path.rpartition("#")[0])]
    if len(found) != 1:
        there = ", ".join(bare(path) for path in state.open_paths) or "none"
        what = "is interrupted more than once" if found else "is not an interrupted step"
        text = f"{name} {what} in run {state.run_id}."
        raise ConfigError(text, code="no_open_step", hint=f"Interrupted steps: {there}.")
    return state.steps[found[0]]
