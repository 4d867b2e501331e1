"""From a checkpoint to a run that can be resumed: which run, which DAG and settings, and what is repeated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import host
from pipeline.engine.takeover import record_repairs
from pipeline.errors import Pause, RunNotFound, SettingsConflict
from pipeline.formats.casys.checkpoints import LayerCheckpoint, check, checkpoints_in, find, pinned, read, run_of
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.plan import PIPELINE, SOURCE, START, dag_of, done_tasks, gate_of, graph_of, visit_of
from pipeline.formats.packer import packed_value
from pipeline.formats.shelf import Document, document_of, is_checkpoint_id, position_document, records_of, visit_row
from pipeline.graph.model import Graph
from pipeline.records.charge import dollars
from pipeline.records.fold import fold
from pipeline.records.kinds import RunResumed, RunStarted, Snapshot
from pipeline.records.run import RunState, Spend
from pipeline.records.values import canonical
from pipeline.store.base import Store
from pipeline.store.reader import folded, load, records


@dataclass(frozen=True, slots=True)
class Resumable:
    """A run that can be resumed."""

    run_id: str
    #: As the run is pinned to them.
    graph: Graph
    config: Mapping[str, Any]
    #: Leading layers done by the newest checkpoint, and its id; None: there is none yet.
    saved: int
    checkpoint: str | None
    #: Tasks that were done after the requested checkpoint, with their visits: they are repeated.
    again: Mapping[str, str] = field(default_factory=dict)


def resumable(store: Store, clock: Clock, wanted: str, gates: Sequence[str]) -> Resumable:
    """Find the run of a checkpoint id, run id or workflow_id, and bring it to its position.

    Of an executed run nothing that was recorded after its newest checkpoint is lost. A state saved by hand becomes
    the run's position.

    Args:
        gates: Kinds of gates for a run that has only been saved to.

    Raises:
        RunNotFound, CheckpointCorrupt, SchemaTooNew, RunLocked.
    """
    named = find(store, wanted) if is_checkpoint_id(wanted.strip().lower()) else None
    run_id = named.run_id if named is not None else run_of(store, wanted)
    if run_id is None:
        raise RunNotFound(f"There is no checkpoint and no run {wanted!r}.", checkpoint=wanted)
    found, pins = _look_through(store, run_id)
    newest = next(iter(checkpoints_in(found)), None)
    base = named or newest
    if base is None or newest is None:
        return Resumable(run_id, *pinned(store, run_id, pins), 0, None)
    if "state" in base.content:
        return _from_state(store, clock, base, gates, is_newest=base.seq == newest.seq)
    check(store, base)
    graph, config = pinned(store, run_id, pins)
    again: dict[str, str] = {}
    if newest.seq > base.seq:
        dag, seq = dag_of(graph), base.seq
        then = fold(run_id, takewhile(lambda record: record.seq <= seq, records(store, run_id)))
        again = _since(load(store, run_id), set(done_tasks(then, dag)), dag)
        base = base if again else newest
    content = base.content
    return Resumable(run_id, graph, config, int(content["layer_index"]), str(content["id"]), again)


def _look_through(store: Store, run_id: str) -> tuple[list[Document], dict[str, str]]:
    """Return the documents of a run, and what it is pinned to: name → blob."""
    found: list[Document] = []
    pins: dict[str, str] = {}
    for record in records_of(store, run_id, "document_kept", "run_started", "run_resumed"):
        if isinstance(record.fact, RunStarted | RunResumed):
            pins.update(record.fact.pins or {})
        elif (document := document_of(run_id, record, SOURCE)) is not None:
            found.append(document)
    return found, pins


def _from_state(store: Store, clock: Clock, document: Document, gates: Sequence[str], *, is_newest: bool) -> Resumable:
    """Make a state that was saved by hand the position of its run, unless the run has moved on from it already."""
    checkpoint = read(store, document)
    moved = take_position(store, clock, checkpoint, graph_of(checkpoint.dag, gates))
    again = {} if moved is None or is_newest else _since(moved, checkpoint.state.results(), checkpoint.dag)
    graph, config = pinned(store, document.run_id, _look_through(store, document.run_id)[1])
    return Resumable(document.run_id, graph, config or checkpoint.config, checkpoint.layers_done, checkpoint.id, again)


def _since(state: RunState, then: Collection[str], dag: Dag) -> dict[str, str]:
    """Return the tasks that are done now and were not then, with their visits."""
    found = ((name, visit_of(state, name)) for name in done_tasks(state, dag) if name not in then)
    return {name: step.path for name, step in found if step is not None}


def take_position(store: Store, clock: Clock, checkpoint: LayerCheckpoint, graph: Graph) -> RunState | None:
    """Record a state that was saved by hand as the position of its run; return None.

    Where the run has moved on since the state was saved, nothing is recorded, and the run's state is returned.
    Raises as Store.open and Journal.append.
    """
    head = store.written_head(checkpoint.run_id)
    journal = store.open(checkpoint.run_id)
    try:
        builder, missing = folded(store, checkpoint.run_id, head)
        state = builder.state
        if checkpoint.seq < max((step.ended_seq for step in state.steps.values()), default=0):
            return builder.freeze()
        recorder = Recorder(journal, builder, clock, owner=state.owner, nodes=(), warn=lambda _: None)
        record_repairs(journal, recorder, missing)
        pins = {"graph": recorder.put_blob(canonical(graph.to_json(), "graph"))}
        document = _position(checkpoint, graph, recorder, clock)
        recorder.owner = recorder.append(RunResumed({}, host=host(), pins=pins), sync=False)
        recorder.append(Snapshot(document, source="fork"))
    except Pause as pause:
        raise pause.cause from None
    finally:
        journal.close()
    return None


def _position(checkpoint: LayerCheckpoint, graph: Graph, recorder: Recorder, clock: Clock) -> dict[str, Any]:
    """Return the position: tasks of the state are done; a gate is done if tasks behind it have begun."""
    state, dag, put = checkpoint.state, checkpoint.dag, recorder.put_blob
    results, entries = state.results(), {task["taskId"]: task for task in state.tasks}
    deepest = max((dag.layer_of[name] for name in results if name in dag.tasks), default=-1)
    gates = [name for name in graph.nodes if (gate := gate_of(name)) and gate[1] < deepest]
    done = dict.fromkeys([START, *(name for name in dag.in_order if name in results), *gates])
    start = {"given": True, "messages": state.messages, "tasks": state.tasks, "decisions": state.decisions}
    rows = []
    for name in done:
        entry = entries.get(name, {})
        at, duration = entry.get("timestamp"), entry.get("duration")
        seconds = duration / 1000 if isinstance(duration, int | float) and not isinstance(duration, bool) else 0.0
        outputs = start if name == START else {"result": results.get(name), "given": True}
        context = state.context if name == START else {}
        rows.append(visit_row(
            graph, f"{name}#1", outputs=packed_value(outputs, name, put),
            context={key: packed_value(value, key, put) for key, value in context.items()}, artifacts={},
            at=at if isinstance(at, str) else checkpoint.timestamp, seconds=seconds,
            checkpoint=clock.new_id(), consumed=[[edge.id, f"{edge.source}#1"] for edge in graph.incoming(name)],
            edges=[edge.id for edge in graph.outgoing(name)],
        ))  # fmt: skip
    waiting = [(edge.id, f"{edge.source}#1") for edge in graph.edges if edge.source in done and edge.target not in done]
    return position_document(PIPELINE, rows, waiting)


def cost_of(state: RunState, tasks: Iterable[str]) -> Spend:
    """Return what tasks have cost so far."""
    names, total = set(tasks), Spend()
    for key, spend in state.spend.items():
        if key.step.partition("#")[0] in names:
            total.add(spend)
    return total


def is_free(spend: Spend) -> bool:
    """Return whether work is known to have cost nothing."""
    return not (spend.usd or spend.low or spend.high or spend.unpriced or spend.unbounded)


def repeats_refused(state: RunState, tasks: Sequence[str], why: str) -> SettingsConflict:
    """Return the error that tells which finished tasks would be repeated, and what they cost."""
    spend = cost_of(state, tasks)
    low, high = spend.usd + spend.low, spend.usd + spend.high
    cost = dollars(low) if low == high else f"{dollars(low)} to {dollars(high)}"
    unpriced = f" and {spend.unpriced} unpriced calls" if spend.unpriced else ""
    return SettingsConflict(
        f"{why} These finished tasks would be repeated: {', '.join(tasks)}. They cost {cost}{unpriced} before.",
        code="repeats_finished_tasks",
        hint="Resume without the change, or with accept_changes=True.",
        tasks=list(tasks),
        usd=str(spend.usd),
    )
