"""Which edge a visit's end takes: conditions, preferred label, suggested nodes, weight, name. Pure.

An edge whose condition does not hold is never taken; a failure takes no plain edge, unless a diamond behind it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipeline.dot import kinds
from pipeline.dot.labels import normal_label
from pipeline.dot.model import DotEdge
from pipeline.formats.attractor.outcome import RETRY, normalise
from pipeline.formats.attractor.plan import Plan
from pipeline.formats.attractor.visit_end import VisitEnd, is_transient

#: Says why an edge may not be taken any more; "": it may.
Closed = Callable[[DotEdge], str]
_FAILING_LABELS = frozenset({"fail", "failed", "failure", "error"})


class EdgeChoice(NamedTuple):
    """What was chosen."""

    #: None: no edge takes this end.
    edge: DotEdge | None
    #: Why this one: condition, preferred_label, suggested, label, weight, id, only, failure.
    reason: str = ""
    #: Why the edge that would take it may not be taken any more.
    closed: str = ""


def choose(plan: Plan, node: str, end: VisitEnd, closed: Closed) -> EdgeChoice:
    """Return the edge for an end that is no failure."""
    edges = plan.outgoing(node)
    plain = [edge for edge in edges if not edge.condition]
    wanted, suggested = normal_label(end.preferred_label), end.suggested_next_ids
    preferred = [edge for edge in plain if wanted and normal_label(edge.label or edge.target) == wanted]
    by_suggestion = [edge for name in suggested for edge in plain if edge.target == name]
    by_label: list[DotEdge] = []
    if plan.types[node] == kinds.CONDITIONAL and not any(edge.condition or edge.weight for edge in edges):
        by_label = [edge for edge in edges if normalise(normal_label(edge.label)) == end.outcome]
    best = _best([edge for edge in edges if edge.condition and holds(plan, edge, end)])
    for found, reason in (
        ([best] if best else [], "condition"), (preferred, "preferred_label"), (by_suggestion, "suggested"),
        (by_label, "label"),
    ):  # fmt: skip
        if found:
            why = closed(found[0])
            return EdgeChoice(None, "", why) if why else EdgeChoice(found[0], reason)
    # If only weight and name speak for an edge, the next one does as well once it may not be taken.
    best = _best([edge for edge in plain if not closed(edge)])
    if best is None:
        return EdgeChoice(None, "", closed(plain[0]) if plain else "")
    even = all(edge.weight == best.weight for edge in plain)
    return EdgeChoice(best, "only" if len(plain) == 1 else "id" if even else "weight")


def choose_for_failure(plan: Plan, node: str, end: VisitEnd, closed: Closed) -> EdgeChoice:
    """Return the edge that accepts a failure."""
    accepting = [edge for edge in plan.outgoing(node) if accepts(plan, edge, end)]
    open_ = [edge for edge in accepting if not closed(edge)]
    best = _best([edge for edge in open_ if edge.condition]) or _best(open_)
    if best is None:
        return EdgeChoice(None, "", closed(accepting[0]) if accepting else "")
    return EdgeChoice(best, "condition" if best.condition else "failure")


def accepts(plan: Plan, edge: DotEdge, end: VisitEnd) -> bool:
    """Return whether an edge takes a failure: its condition holds, or a diamond that it leads to has an edge for it."""
    todo, seen = [edge], set[str]()
    while todo:
        at = todo.pop()
        if at.flag("loop_restart") and not is_transient(end.kind):
            continue
        if at.condition:
            if holds(plan, at, end):
                return True
            continue
        if plan.dot.nodes[at.source].flag("continue_on_fail"):
            return True
        if plan.types[at.source] == kinds.CONDITIONAL:
            # A diamond's plain edge is meant for failures beside conditions, or if its label says so.
            beside = any(other.condition for other in plan.outgoing(at.source))
            if beside or normal_label(at.label) in _FAILING_LABELS:
                return True
        if at.target not in seen and plan.types.get(at.target) == kinds.CONDITIONAL:
            seen.add(at.target)
            todo.extend(plan.outgoing(at.target))
    return False


def asks_for_retry(plan: Plan, node: str) -> bool:
    """Return whether an edge names the outcome retry: then it is a word like any other, and no attempt is repeated."""
    ahead = [node]
    for name in ahead:
        for edge in plan.outgoing(name):
            if edge.condition and any(
                clause.about_outcome and not negated and clause.operator in ("=", "IN")
                and RETRY in map(normalise, clause.literals)
                for clause, negated in plan.condition(edge).clauses()
            ):  # fmt: skip
                return True
            # A diamond's edges count for what leads to it.
            diamond = not edge.condition and plan.types.get(edge.target) == kinds.CONDITIONAL
            if diamond and edge.target not in ahead:
                ahead.append(edge.target)
    return False


def holds(plan: Plan, edge: DotEdge, end: VisitEnd) -> bool:
    """Return whether an edge's condition holds."""
    return plan.condition(edge).holds(end.lookup)


def _best(edges: Sequence[DotEdge]) -> DotEdge | None:
    return min(edges, key=lambda edge: (-edge.weight, edge.target), default=None)
