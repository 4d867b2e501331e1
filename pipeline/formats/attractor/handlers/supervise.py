"""The node that supervises a child pipeline: it starts the child, and ends as the child has ended.

Its first visit leads to the child's start; the visit after the child's end has the child's outcome and leads on.
"""

from __future__ import annotations

from pipeline.formats.attractor.children import CHILD_OF
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from pipeline.formats.attractor.supervision import COMPLETED, EXHAUSTED, OUTCOME, RUNNING, STATUS, STOPPED

#: Running a child again that failed is for a retry target to decide; looking at its end again changes nothing.
_DETERMINISTIC = "deterministic"


def supervise(visit: Visit) -> NodeOutcome:
    """Start the child; or say how it ended."""
    ctx, node = visit.ctx, visit.node
    if not _has_child(visit):
        return NodeOutcome(notes="Its child is not started here (stack.child_autostart=false).")
    if not _child_ended(visit):
        return NodeOutcome(context_updates={STATUS: RUNNING, OUTCOME: ""})
    status, outcome = str(ctx.context.get(STATUS) or ""), str(ctx.context.get(OUTCOME) or "")
    told = {STATUS: status, OUTCOME: outcome}
    outputs = {"child_status": status, "child_outcome": outcome}
    if status == COMPLETED:
        return NodeOutcome(context_updates=told, notes="The child pipeline completed.", outputs=outputs)
    if status == STOPPED:
        stop = node.text("manager.stop_condition")
        return NodeOutcome(context_updates=told, notes=f"The child was stopped: {stop}.", outputs=outputs)
    if status == EXHAUSTED:
        most = node.number("manager.max_cycles") or 1000
        reason = f"The child pipeline had not ended after {most} visits (manager.max_cycles)."
        return failure(reason, _DETERMINISTIC, context_updates=told, outputs=outputs)
    return failure(_why(visit), _DETERMINISTIC, context_updates=told, outputs=outputs)


def _has_child(visit: Visit) -> bool:
    return any(node.text(CHILD_OF) == visit.node.id for node in visit.graph.nodes.values())


def _child_ended(visit: Visit) -> bool:
    sources = (path.rpartition("/")[2].rpartition("#")[0] for _, path in visit.ctx.consumed)
    nodes = (visit.graph.nodes.get(name) for name in sources)
    return any(node is not None and node.text(CHILD_OF) == visit.node.id for node in nodes)


def _why(visit: Visit) -> str:
    """What the child's last visit failed with."""
    for arrival in visit.ctx.arrivals:
        if arrival.error is not None:
            where = arrival.node.removeprefix(f"{visit.node.id}.")
            return f"The child pipeline failed at {where}: {arrival.error.get('message', 'failed')}"
    return "The child pipeline failed."
