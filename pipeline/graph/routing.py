"""Which edges an outcome takes."""

from __future__ import annotations

from pipeline.graph.model import Edge, Graph

#: Outcome labels that say failure: only an edge that names failure accepts them.
FAILURES = frozenset({"fail", "failed", "failure"})


def choose(graph: Graph, node_id: str, outcome: str) -> list[Edge]:
    """Return the edges out of a node for an outcome label, in order of declaration; may be none.

    Edges that name the outcome win over those that name none. A failure takes only edges
    that name one.
    """
    edges = graph.outgoing(node_id)
    if outcome in FAILURES:
        return [edge for edge in edges if edge.when in FAILURES]
    if len(edges) == 1:
        return [*edges] if edges[0].when in (None, outcome) else []
    named = [edge for edge in edges if edge.when == outcome]
    return named or [edge for edge in edges if edge.when is None]
