"""A state that was saved by hand as the position of a run: its tasks done, what they lead to waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import host
from pipeline.engine.takeover import record_repairs
from pipeline.errors import Pause
from pipeline.formats.casys.finding import PIPELINE
from pipeline.formats.casys.packing import Put, packed_value
from pipeline.formats.casys.plan import START, gate_of
from pipeline.formats.casys.reading import LayerCheckpoint
from pipeline.formats.casys.state import SUCCESS
from pipeline.graph.model import Graph
from pipeline.records.kinds import RunResumed, Snapshot
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import canonical
from pipeline.store.base import Store
from pipeline.store.reading import folded


def take_position(store: Store, clock: Clock, checkpoint: LayerCheckpoint, graph: Graph) -> RunState | None:
    """Record a state that was saved by hand as the position of its run; None where that is done.

    Returns:
        The run as it stands, where it has gone on since the state was saved; then nothing is recorded.

    Raises:
        RunLocked, CheckpointCorrupt, WriteFailed: As Store.open and Journal.append.
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
        document = position(checkpoint, graph, recorder.put_blob, clock)
        recorder.owner = recorder.append(RunResumed({}, host=host(), pins=pins), sync=False)
        recorder.append(Snapshot(document, source="fork"))
    except Pause as pause:
        raise pause.cause from None
    finally:
        journal.close()
    return None


def position(checkpoint: LayerCheckpoint, graph: Graph, put: Put, clock: Clock) -> dict[str, Any]:
    """The document that a snapshot of the run's position holds; see records.forks."""
    done = _done(checkpoint, graph)
    state = checkpoint.state
    start = {"given": True, "messages": state.messages, "tasks": state.tasks, "decisions": state.decisions}
    context = {key: packed_value(value, key, put) for key, value in state.context.items()}
    results, times = state.results(), {task["taskId"]: task for task in state.tasks}
    rows = []
    for name in done:
        outputs = start if name == START else {"result": results.get(name), "given": True}
        rows.append(_row(graph, name, packed_value(outputs, name, put), context if name == START else {},
                         times.get(name, {}), checkpoint.timestamp, clock.new_id()))  # fmt: skip
    waiting = [[edge.id, f"{edge.source}#1"] for edge in graph.edges if edge.source in done and edge.target not in done]
    inherited = {"steps": rows, "waiting": waiting, "returning": [], "visits": dict.fromkeys(done, 1), "tasks": [],
                 "attempts": [], "replies": [], "decisions": []}  # fmt: skip
    return {"pipeline": PIPELINE, "status": "in_progress", "completed_steps": [], "inherited": inherited}


def _done(checkpoint: LayerCheckpoint, graph: Graph) -> dict[str, None]:
    """Nodes that are done, sources first; a gate is if the tasks behind it have begun."""
    dag, finished = checkpoint.dag, checkpoint.state.results()
    deepest = max((dag.layer_of[name] for name in finished if name in dag.tasks), default=-1)
    gates = [name for name in graph.nodes if (gate := gate_of(name)) and gate[1] < deepest]
    return dict.fromkeys([START, *(name for name in dag.in_order if name in finished), *gates])


def _row(
    graph: Graph, name: str, outputs: Any, context: Mapping[str, Any], task: Mapping[str, Any], at: str, mark: str
) -> dict[str, Any]:
    when = task.get("timestamp")
    when = when if isinstance(when, str) else at
    return {
        "path": f"{name}#1", "status": COMPLETED, "attempt": 1, "version": graph.nodes[name].version,
        "started_at": when, "completed_at": when, "seconds": _seconds(task), "outputs": outputs, "artifacts": {},
        "context": dict(context), "reads": {}, "outcome": SUCCESS, "reason": "", "error": None, "checkpoint": mark,
        "edges": [edge.id for edge in graph.outgoing(name)],
        "consumed": [[edge.id, f"{edge.source}#1"] for edge in graph.incoming(name)] or [["", ""]],
    }  # fmt: skip


def _seconds(task: Mapping[str, Any]) -> float:
    """Milliseconds of a task's entry as seconds."""
    duration = task.get("duration")
    return duration / 1000 if isinstance(duration, int | float) and not isinstance(duration, bool) else 0.0
