"""Which edge a visit's end takes: conditions, preferred label, suggested nodes, weight, name. Pure.

An edge whose condition does not hold is never taken; a failure takes no plain edge, unless a diamond behind it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipeline.dot import kinds
from pipeline.dot.labels import normal_label
from pipeline.dot.model import DotEdge
from pipeline.formats.attractor.ending import Ending
from pipeline.formats.attractor.outcome import RETRY, normalise
from pipeline.formats.attractor.plan import Plan
from pipeline.formats.attractor.retry import is_transient

#: Says why an edge may not be taken any more; "": it may.
Closed = Callable[[DotEdge], str]
_FAILING_LABELS = frozenset({"fail", "failed", "failure", "error"})


class Choice(NamedTuple):
    """What was chosen."""

    #: None: no edge takes this end.
    edge: DotEdge | None
    #: Why this one: condition, preferred_label, suggested, label, weight, id, only, failure.
    reason: str
    #: Why the edge that would take it may not be taken any more.
    closed: str = ""


def choose(plan: Plan, node: str, ending: Ending, closed: Closed) -> Choice:
    """The edge for an end that is no failure."""
    edges = plan.outgoing(node)
    if found := _best([edge for edge in edges if edge.condition and holds(plan, edge, ending)]):
        return _unless(found, "condition", closed)
    plain = [edge for edge in edges if not edge.condition]
    for edge, reason in ((_preferred(plain, ending), "preferred_label"), (_suggested(plain, ending), "suggested")):
        if edge is not None:
            return _unless(edge, reason, closed)
    if plan.types[node] == kinds.CONDITIONAL and (edge := _labelled(edges, ending)):
        return _unless(edge, "label", closed)
    # Where nothing but weight and name speaks for an edge, the next one does as well once it may not be taken.
    open_ = [edge for edge in plain if not closed(edge)]
    if best := _best(open_):
        return Choice(best, _why(plain, best))
    return Choice(None, "", closed(plain[0]) if plain else "")


def choose_for_failure(plan: Plan, node: str, ending: Ending, closed: Closed) -> Choice:
    """The edge that accepts a failure."""
    accepting = [edge for edge in plan.outgoing(node) if accepts(plan, edge, ending)]
    open_ = [edge for edge in accepting if not closed(edge)]
    best = _best([edge for edge in open_ if edge.condition]) or _best(open_)
    if best is None:
        return Choice(None, "", closed(accepting[0]) if accepting else "")
    return Choice(best, "condition" if best.condition else "failure")


def accepts(plan: Plan, edge: DotEdge, ending: Ending) -> bool:
    """Whether an edge takes a failure: its condition holds, or it leads to a diamond that has an edge for it."""
    todo, seen = [edge], set[str]()
    while todo:
        at = todo.pop()
        if at.flag("loop_restart") and not is_transient(ending.kind):
            continue
        if at.condition:
            if holds(plan, at, ending):
                return True
            continue
        if _takes_failures(plan, at):
            return True
        if at.target not in seen and plan.types.get(at.target) == kinds.CONDITIONAL:
            seen.add(at.target)
            todo.extend(plan.outgoing(at.target))
    return False


def _takes_failures(plan: Plan, edge: DotEdge) -> bool:
    """Whether a plain edge does all the same."""
    if plan.dot.nodes[edge.source].flag("continue_on_fail"):
        return True
    return plan.types[edge.source] == kinds.CONDITIONAL and _decides(plan.outgoing(edge.source), edge)


def _decides(edges: Sequence[DotEdge], edge: DotEdge) -> bool:
    """Whether a diamond's plain edge is meant for failures: it is the one beside conditions, or its label says so."""
    return any(other.condition for other in edges) or normal_label(edge.label) in _FAILING_LABELS


def asks_for_retry(plan: Plan, node: str) -> bool:
    """Whether an edge names the outcome retry: then it is a word like any other, and no attempt is repeated."""
    todo, seen = [node], {node}
    while todo:
        for edge in plan.outgoing(todo.pop()):
            if edge.condition and _names_retry(plan, edge):
                return True
            # A diamond's edges count for what leads to it.
            diamond = not edge.condition and plan.types.get(edge.target) == kinds.CONDITIONAL
            if diamond and edge.target not in seen:
                seen.add(edge.target)
                todo.append(edge.target)
    return False


def _names_retry(plan: Plan, edge: DotEdge) -> bool:
    return any(
        clause.about_outcome
        and not negated
        and clause.operator in ("=", "IN")
        and RETRY in map(normalise, clause.literals)
        for clause, negated in plan.condition(edge).clauses()
    )


def holds(plan: Plan, edge: DotEdge, ending: Ending) -> bool:
    """Whether an edge's condition holds."""
    return plan.condition(edge).holds(ending.lookup)


def _unless(edge: DotEdge, reason: str, closed: Closed) -> Choice:
    why = closed(edge)
    return Choice(None, "", why) if why else Choice(edge, reason)


def _best(edges: Sequence[DotEdge]) -> DotEdge | None:
    return min(edges, key=lambda edge: (-edge.weight, edge.target), default=None)


def _preferred(edges: Sequence[DotEdge], ending: Ending) -> DotEdge | None:
    wanted = normal_label(ending.preferred_label)
    if not wanted:
        return None
    return next((edge for edge in edges if normal_label(edge.label or edge.target) == wanted), None)


def _suggested(edges: Sequence[DotEdge], ending: Ending) -> DotEdge | None:
    found = (edge for name in ending.suggested_next_ids for edge in edges if edge.target == name)
    return next(found, None)


def _labelled(edges: Sequence[DotEdge], ending: Ending) -> DotEdge | None:
    """Of a diamond that has neither conditions nor weights: the edge whose label is the outcome."""
    if any(edge.condition or edge.weight for edge in edges):
        return None
    return next((edge for edge in edges if normalise(normal_label(edge.label)) == ending.outcome), None)


def _why(edges: Sequence[DotEdge], best: DotEdge) -> str:
    if len(edges) == 1:
        return "only"
    return "id" if all(edge.weight == best.weight for edge in edges) else "weight"
