"""The handlers that every graph has; and those of them that do no work: ends, diamonds, supervisors of children."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pipeline.dot import kinds
from pipeline.formats.attractor import children
from pipeline.formats.attractor.children import CHILD_OF, MAX_CYCLES, OUTCOME, STATUS
from pipeline.formats.attractor.handlers.codergen import codergen
from pipeline.formats.attractor.handlers.fan import fan_in, parallel
from pipeline.formats.attractor.handlers.human import ask_person
from pipeline.formats.attractor.handlers.registry import Handler, Registry, Visit
from pipeline.formats.attractor.handlers.tool import tool
from pipeline.formats.attractor.outcome import FAIL, NodeOutcome, failure


def standard_registry() -> Registry:
    """Return the handlers that every graph has, to add one's own to."""
    made = Registry(
        Handler(kind.type, _RUN[kind.type][0], kind.purpose, kind.shape, _RUN[kind.type][1], own=False)
        for kind in kinds.KINDS
    )
    made.add(Handler(kinds.CHILD_START, end, "Where a child pipeline begins.", "", "pure", own=False))
    made.add(Handler(kinds.CHILD_EXIT, end, "Where a child pipeline ends.", "", "pure", own=False))
    return made


def end(visit: Visit) -> NodeOutcome:
    """Return success: starts and exits do nothing; whether a run may leave by its exit the router decides."""
    return NodeOutcome()


def conditional(visit: Visit) -> NodeOutcome:
    """Return the outcome, preferred label and failure of the visit that led here, so that a diamond's edges can tell.

    The specification lets it succeed, after which a condition such as outcome!=success could never hold behind it.
    """
    ctx, arrivals = visit.ctx, visit.ctx.place.arrivals
    if not arrivals:
        return NodeOutcome()
    last = arrivals[-1]
    label, error = str(ctx.context.get("preferred_label") or ""), last.error or {}
    if not last.failed:
        return NodeOutcome(last.outcome, label)
    return NodeOutcome(
        FAIL, label, failure_reason=str(error.get("message") or ctx.context.get("failure_reason") or ""),
        failure_class=str(error.get("class") or ctx.context.get("failure_class") or ""),
    )  # fmt: skip


def supervise(visit: Visit) -> NodeOutcome:
    """Start the child pipeline; or end as it has ended.

    The first visit leads to the child's start; the visit after the child's end has its outcome and leads on.
    """
    ctx, node, nodes = visit.ctx, visit.node, visit.graph.nodes
    if not any(each.text(CHILD_OF) == node.id for each in nodes.values()):
        return NodeOutcome(notes="Its child is not started here (stack.child_autostart=false).")
    before = (nodes.get(path.rpartition("/")[2].rpartition("#")[0]) for _, path in ctx.place.consumed)
    if not any(each is not None and each.text(CHILD_OF) == node.id for each in before):
        return NodeOutcome(context_updates={STATUS: children.RUNNING, OUTCOME: ""})
    status, outcome = str(ctx.context.get(STATUS) or ""), str(ctx.context.get(OUTCOME) or "")
    made = NodeOutcome(
        context_updates={STATUS: status, OUTCOME: outcome}, outputs={"child_status": status, "child_outcome": outcome}
    )
    if status == children.COMPLETED:
        return replace(made, notes="The child pipeline completed.")
    if status == children.STOPPED:
        return replace(made, notes=f"The child was stopped: {node.text('manager.stop_condition')}.")
    reason = "The child pipeline failed."
    failed = next((arrival for arrival in ctx.place.arrivals if arrival.error is not None), None)
    if status == children.EXHAUSTED:
        most = node.number("manager.max_cycles") or MAX_CYCLES
        reason = f"The child pipeline had not ended after {most} visits (manager.max_cycles)."
    elif failed is not None:
        where = failed.node.removeprefix(f"{node.id}.")
        reason = f"The child pipeline failed at {where}: {(failed.error or {}).get('message', 'failed')}"
    # Running a failed child again is for a retry target to decide; looking at its end again changes nothing.
    return failure(reason, "deterministic", context_updates=made.context_updates, outputs=made.outputs)


_RUN: Mapping[str, tuple[Callable[[Visit], NodeOutcome], str]] = {
    kinds.START: (end, "pure"),
    kinds.EXIT: (end, "pure"),
    kinds.CODERGEN: (codergen, "read"),
    kinds.CONDITIONAL: (conditional, "pure"),
    kinds.HUMAN: (ask_person, "human"),
    kinds.TOOL: (tool, "external"),
    kinds.PARALLEL: (parallel, "pure"),
    kinds.FAN_IN: (fan_in, "read"),
    kinds.LOOP: (supervise, "pure"),
}
