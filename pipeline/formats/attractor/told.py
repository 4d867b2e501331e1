"""Records as the dotted events of the Attractor family (events.jsonl): one record may be several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph
from pipeline.formats.attractor.documents import outcome_word
from pipeline.records.codec import Record
from pipeline.records.kinds import (
    Decision,
    DecisionAsked,
    Invalidated,
    RunEnded,
    RunResumed,
    RunStarted,
    Snapshot,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from pipeline.records.positions import split
from pipeline.records.run import bare
from pipeline.records.statuses import COMPLETED, FAILED

#: (type, node id, data).
Told = tuple[str, str, dict[str, Any]]


def events_of(record: Record, run_id: str, graph: DotGraph, file: str) -> Iterator[dict[str, Any]]:
    """The events that a record is: {type, run_id, timestamp, node_id, data, seq}.

    Args:
        file: The checkpoint's file in the run's folder, where the record is a boundary.
    """
    maker = _MAKERS.get(type(record.fact))
    for kind, node, data in maker(record.fact, graph, file) if maker else ():
        yield {
            "type": kind, "run_id": run_id, "timestamp": record.at, "node_id": node or None, "data": data,
            "seq": record.seq,
        }  # fmt: skip


def _started(fact: RunStarted, graph: DotGraph, _: str) -> Iterator[Told]:
    yield "pipeline.started", "", {"pipeline": graph.name, "goal": graph.goal, "params": dict(fact.params)}


def _snapshot(fact: Snapshot, graph: DotGraph, _: str) -> Iterator[Told]:
    yield "checkpoint.loaded", "", {"source": fact.source, "completed": len(fact.document.get("completed_steps") or ())}


def _resumed(fact: RunResumed, graph: DotGraph, _: str) -> Iterator[Told]:
    yield "pipeline.resumed", "", {"graph_changed": "dot" in (fact.pins or {})}


def _ended(fact: RunEnded, graph: DotGraph, _: str) -> Iterator[Told]:
    kind = {COMPLETED: "pipeline.completed", FAILED: "pipeline.failed"}.get(fact.status, "pipeline.paused")
    yield kind, "", {"status": fact.status, "status_detail": fact.detail, "error": fact.error}


def _step_started(fact: StepStarted, graph: DotGraph, _: str) -> Iterator[Told]:
    node, visit = split(fact.path)
    yield "node.started", node, {"visit": visit, "attempt": fact.attempt}


def _step_completed(fact: StepCompleted, graph: DotGraph, file: str) -> Iterator[Told]:
    node, visit = split(fact.path)
    outcome = outcome_word(fact.outcome)
    yield "node.completed", node, {"visit": visit, "outcome": outcome, "duration_seconds": fact.seconds}
    if graph.kind(node) == kinds.FAN_IN:
        yield "parallel.join", node, {"outcome": outcome}
    yield from _led_on(fact, node, outcome, graph)
    yield "checkpoint.saved", node, {"checkpoint_id": fact.checkpoint, "file": file}


def _step_failed(fact: StepFailed, graph: DotGraph, file: str) -> Iterator[Told]:
    node, visit = split(fact.path)
    kind = "node.retrying" if fact.retry else "node.failed"
    outcome = outcome_word(fact.outcome)
    yield kind, node, {"visit": visit, "attempt": fact.attempt, "outcome": outcome, "error": dict(fact.error)}
    yield from _led_on(fact, node, outcome, graph)
    yield "checkpoint.saved", node, {"checkpoint_id": fact.checkpoint, "file": file}


def _led_on(fact: StepCompleted | StepFailed, node: str, outcome: str, graph: DotGraph) -> Iterator[Told]:
    targets = [edge.partition("->")[2].partition("#")[0] for edge in fact.edges]
    if graph.kind(node) == kinds.PARALLEL:
        yield "parallel.fork", node, {"branches": targets}
    for edge, target in zip(fact.edges, targets, strict=True):
        yield "edge.selected", node, {"edge": edge, "from": node, "to": target, "reason": fact.reason or "outcome"}
        if target in graph.nodes and graph.kind(target) == kinds.FAN_IN:
            yield "parallel.branch_completed", node, {"outcome": outcome, "fan_in": target}


def _asked(fact: DecisionAsked, graph: DotGraph, _: str) -> Iterator[Told]:
    yield "human.waiting", split(fact.path)[0], {"choices": list(fact.choices), "shown": dict(fact.shown)}


def _decided(fact: Decision, graph: DotGraph, _: str) -> Iterator[Told]:
    yield "human.responded", split(fact.path)[0], {"choice": fact.choice, "by": fact.by, "note": fact.note}


def _invalidated(fact: Invalidated, graph: DotGraph, _: str) -> Iterator[Told]:
    yield "node.invalidated", "", {"reason": fact.reason, "visits": [bare(path) for path in fact.paths]}


_MAKERS: Mapping[type, Callable[[Any, DotGraph, str], Iterator[Told]]] = {
    RunStarted: _started,
    Snapshot: _snapshot,
    RunResumed: _resumed,
    RunEnded: _ended,
    StepStarted: _step_started,
    StepCompleted: _step_completed,
    StepFailed: _step_failed,
    DecisionAsked: _asked,
    Decision: _decided,
    Invalidated: _invalidated,
}
