"""Where a run that another system began is resumed: a Checkpoint as the state document a new run of ours begins from.

The rule: the edge that was chosen; else what the router chooses from the stored outcome; a node that had not
completed runs (again), and so does one whose failure nothing accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.engine.routing import Router, Settled, by_label
from pipeline.errors import GraphError
from pipeline.formats.attractor.documents import Checkpoint
from pipeline.formats.attractor.outcome import FAIL, SKIPPED, SUCCESS
from pipeline.graph.model import Graph
from pipeline.records.fold import Builder
from pipeline.records.kinds import Snapshot
from pipeline.records.run import RunState, StepRun
from pipeline.records.snapshots import take

#: (edge id, path of the visit that chose it).
Token = tuple[str, str]


def entry_at(node: str, graph: Graph, *, pipeline: str = "", base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the document that begins a run at a node, as if all before it had been done.

    Raises:
        GraphError: The graph has no such node.
    """
    return entry_document(Checkpoint({}, node), graph, pipeline=pipeline, base=base, rerun_current=True)


def entry_document(
    checkpoint: Checkpoint,
    graph: Graph,
    router: Router | None = None,
    *,
    pipeline: str = "",
    base: Mapping[str, Any] | None = None,
    rerun_current: bool = False,
) -> dict[str, Any]:
    """Return the document to start a run from; see Engine.start(imported=…).

    Args:
        pipeline: The graph's name.
        base: Context keys that hold if the checkpoint says nothing of them (those of the graph itself).
        rerun_current: Run the current node (again) whether it completed or not.

    Raises:
        GraphError: The checkpoint names nodes that the graph does not have.
    """
    visits = checkpoint.visits()
    named = dict.fromkeys([checkpoint.current_node_id, checkpoint.next_node_id, *(node for node, _ in visits)])
    unknown = [name for name in named if name and name not in graph.nodes]
    if unknown:
        raise GraphError(
            f"The checkpoint is of another graph: it names {', '.join(unknown[:5])}, which this one does not have.",
            code="unknown_node", hint="Give the graph it was made with.", nodes=unknown,
        )  # fmt: skip
    context = {**(base or {}), **checkpoint.context}
    if not visits and (checkpoint.current_node_id not in ("", graph.start) or context):
        # What is known is known from the start node on, which itself has not been recorded.
        visits = [(graph.start, SKIPPED)]
    counts: dict[str, int] = {}
    steps: list[dict[str, Any]] = []
    for node, outcome in visits:
        counts[node] = counts.get(node, 0) + 1
        steps.append({"step": node, "path": f"{node}#{counts[node]}", "status": "completed", "outcome": outcome})
    if steps:
        # What the visits set is recorded with the last.
        steps[-1]["context"] = context
    document: dict[str, Any] = {
        "pipeline": pipeline or checkpoint.pipeline_name,
        "status": "in_progress",
        "completed_steps": steps,
        "attractor": {**checkpoint.to_json(), "context": {}},
    }
    builder = Builder("")
    take(builder.state, 1, Snapshot(document))
    position = _position(checkpoint, builder.state, graph, router or by_label, rerun_current)
    document["position"] = [list(token) for token in position]
    # Retries used count on for the visit that comes.
    document["attempts"] = {
        f"{node}#{counts.get(node, 0) + 1}": used + 1 for node, used in checkpoint.node_retries.items() if used
    }
    return document


def _position(checkpoint: Checkpoint, state: RunState, graph: Graph, router: Router, rerun: bool) -> list[Token]:
    last = list(state.steps.values())[-1] if state.steps else None
    current = checkpoint.current_node_id
    if last is None:
        return [("", "")]
    if not current and not checkpoint.next_node_id:
        return _led_on(last, graph, router, state)
    if rerun or not (checkpoint.completed or checkpoint.next_node_id):
        return [("", "")] if current == graph.start and last.node != graph.start else [_edge(last, current, graph)]
    source = next((step for step in reversed(state.steps.values()) if step.node == current), last)
    if checkpoint.next_node_id:
        return [_edge(source, checkpoint.next_node_id, graph)]
    return _led_on(source, graph, router, state)


def _led_on(step: StepRun, graph: Graph, router: Router, state: RunState) -> list[Token]:
    """Return what the router makes of a visit's stored outcome."""
    failed = step.outcome == FAIL
    error = {"type": "StepFailed", "message": "It had failed."} if failed else None
    said = {key: state.context[key] for key in ("preferred_label", "suggested_next_ids") if state.context.get(key)}
    outcome = SUCCESS if step.outcome == SKIPPED else step.outcome
    route = router(Settled(
        graph, graph.nodes[step.node], step.path, step.visit, 1, outcome, failed, error, said, state.context, {},
        step.consumed, state,
    ))  # fmt: skip
    if route.edges:
        return [(edge, step.path) for edge in route.edges]
    if route.retry_seconds is None and not (failed if route.failed is None else route.failed):
        return []
    return [_edge(step, step.node, graph)]


def _edge(source: StepRun, target: str, graph: Graph) -> Token:
    """Return the edge between the two; if there is none, one that only this run knows."""
    known = (edge.id for edge in graph.outgoing(source.node) if edge.target == target)
    return next(known, f"{source.node}->{target}"), source.path
