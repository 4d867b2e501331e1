"""A state that was saved by hand as the position of a run: its tasks done, what they lead to waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clock import Clock
from pipeline.formats.casys.finding import PIPELINE
from pipeline.formats.casys.plan import START, gate_of
from pipeline.formats.casys.reading import LayerCheckpoint
from pipeline.formats.casys.state import SUCCESS
from pipeline.graph.model import Graph
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import INLINE_LIMIT, canonical, digest, encode_value
from pipeline.store.base import Store

#: A value as a record holds it: itself, or a reference.
Stored = Callable[[Any], Any]


def keep_values(store: Store, checkpoint: LayerCheckpoint, graph: Graph) -> Stored:
    """Put the graph and all long values of a state into its run; what stands for each value in a record.

    Raises:
        RunLocked, WriteFailed: As Store.open and Journal.put_blob.
    """
    values = [_start_outputs(checkpoint), *checkpoint.state.context.values(), *_task_outputs(checkpoint).values()]
    long = [encode_value(value) for value in values if _is_long(value)]
    journal = store.open(checkpoint.run_id)
    try:
        journal.put_blob(canonical(graph.to_json(), "dag"))
        for text in long:
            journal.put_blob(text)
    finally:
        journal.close()
    return _stored


def _stored(value: Any) -> Any:
    if not _is_long(value):
        return value
    text = encode_value(value)
    return {"$blob": digest(text), "bytes": len(text)}


def _is_long(value: Any) -> bool:
    """Whether a value stands out of line: it is long, or looks like a reference."""
    return (isinstance(value, Mapping) and "$blob" in value) or len(encode_value(value)) > INLINE_LIMIT


def position(checkpoint: LayerCheckpoint, graph: Graph, stored: Stored, clock: Clock) -> dict[str, Any]:
    """The document that a snapshot of the run's position holds; see records.forks."""
    done = _done(checkpoint, graph)
    tasks = _task_outputs(checkpoint)
    times = {task["taskId"]: task for task in checkpoint.state.tasks}
    rows = []
    for name in done:
        outputs = _start_outputs(checkpoint) if name == START else tasks.get(name, {"given": True})
        context = checkpoint.state.context if name == START else {}
        rows.append(_row(graph, name, stored(outputs), {key: stored(value) for key, value in context.items()},
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


def _start_outputs(checkpoint: LayerCheckpoint) -> dict[str, Any]:
    state = checkpoint.state
    return {"given": True, "messages": state.messages, "tasks": state.tasks, "decisions": state.decisions}


def _task_outputs(checkpoint: LayerCheckpoint) -> dict[str, dict[str, Any]]:
    results = checkpoint.state.results()
    return {name: {"result": results[name], "given": True} for name in checkpoint.dag.in_order if name in results}


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
