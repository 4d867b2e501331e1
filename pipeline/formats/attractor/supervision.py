"""How a supervisor and its child pipeline lead to each other: what a router asks before (and after) all else. Pure."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.dot import kinds
from pipeline.dot.conditions import compile_condition
from pipeline.dot.model import DotGraph, DotNode
from pipeline.engine.routing import Route, Settled
from pipeline.formats.attractor.children import CHILD_EXIT, CHILD_OF, VIRTUAL

#: Context keys that tell how a child stands, and how it came out.
STATUS, OUTCOME = "stack.child.status", "stack.child.outcome"
RUNNING, COMPLETED, STOPPED, EXHAUSTED, FAILED = "running", "completed", "stopped", "max_cycles", "failed"
_MOST_CYCLES = 1000


def supervised(settled: Settled, graph: DotGraph, lookup: Callable[[str], str]) -> Route | None:
    """Where a visit leads for its supervisor's sake, or a supervisor's for its child's; None: where it likes.

    To be asked of every visit that has not failed, before its own edges; of a child's exit once its goal gates are
    satisfied.

    Args:
        lookup: The text of a condition's key, as edges' conditions see it.
    """
    node = graph.nodes.get(settled.node.id)
    if node is None:
        return None
    if graph.kind(node) == kinds.LOOP:
        starts = settled.changes.get(STATUS) == RUNNING
        return Route(_to_child(graph, node), reason="child") if starts else None
    supervisor = graph.nodes.get(node.text(CHILD_OF))
    if supervisor is None or _in_branch(settled, supervisor):
        return None
    if graph.kind(node) == CHILD_EXIT:
        return _back(settled, supervisor, COMPLETED, "child")
    if _stops(settled, supervisor, lookup):
        return _back(settled, supervisor, STOPPED, "stop_condition")
    if _cycles(settled, graph, supervisor) >= (supervisor.number("manager.max_cycles") or _MOST_CYCLES):
        return _back(settled, supervisor, EXHAUSTED, "max_cycles")
    return None


def failed_child(settled: Settled, graph: DotGraph) -> Route | None:
    """Where a failure leads that nothing in its pipeline accepts: to the supervisor; None: it has none."""
    node = graph.nodes.get(settled.node.id)
    supervisor = graph.nodes.get(node.text(CHILD_OF)) if node is not None else None
    if supervisor is None or _in_branch(settled, supervisor):
        return None
    return _back(settled, supervisor, FAILED, "child_failed")


def _back(settled: Settled, supervisor: DotNode, status: str, reason: str) -> Route:
    edge = f"{settled.node.id}->{supervisor.id}"
    return Route([edge], context={STATUS: status, OUTCOME: settled.outcome}, reason=reason)


def _to_child(graph: DotGraph, supervisor: DotNode) -> list[str]:
    return [edge.id for edge in graph.outgoing(supervisor.id) if edge.attributes.get(VIRTUAL)
            and graph.nodes[edge.target].text(CHILD_OF) == supervisor.id]  # fmt: skip


def _in_branch(settled: Settled, supervisor: DotNode) -> bool:
    """Whether the visit lies in a fan-out of the child itself: then its fan-in comes first."""
    return str(settled.node.attributes.get("fan") or "").startswith(f"{supervisor.id}.")


def _stops(settled: Settled, supervisor: DotNode, lookup: Callable[[str], str]) -> bool:
    said = supervisor.text("manager.stop_condition").strip()
    if not said:
        return False
    now = {STATUS: RUNNING, OUTCOME: settled.outcome}
    return compile_condition(said).holds(lambda key: now.get(key.removeprefix("context.")) or lookup(key))


def begun(settled: Settled, graph: DotGraph) -> int:
    """The record (seq) that started the child in which a visit lies; 0: it lies in none."""
    node = graph.nodes.get(settled.node.id)
    supervisor = graph.nodes.get(node.text(CHILD_OF)) if node is not None else None
    if supervisor is None:
        return 0
    start = set(_to_child(graph, supervisor))
    starts = (run.ended_seq for run in reversed(settled.state.steps.values())
              if run.node == supervisor.id and start.intersection(run.edges))  # fmt: skip
    return next(starts, 0)


def _cycles(settled: Settled, graph: DotGraph, supervisor: DotNode) -> int:
    """How many visits the child has made since it was started, this one included."""
    since, prefix, count = begun(settled, graph), f"{supervisor.id}.", 0
    for run in reversed(settled.state.steps.values()):
        if run.started_seq < since:
            break
        count += run.node.startswith(prefix)
    return count
