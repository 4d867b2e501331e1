"""What a graph must be before it may run; each fault names the node or edge."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.errors import GraphError
from pipeline.graph.liveness import components, reachable
from pipeline.graph.model import ALL, ANY, Graph, Node

#: What paths and edge ids are made of.
_MARKS = ("#", "/", "->")


def validate(graph: Graph) -> None:
    """Refuse a graph that cannot be run.

    Raises:
        GraphError: The first fault in the message, all of them in data["faults"].
    """
    faults = list(_faults(graph))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise GraphError(faults[0] + more, code="invalid_graph", faults=faults)


def _faults(graph: Graph) -> Iterator[str]:
    if not graph.nodes:
        yield "The graph has no nodes."
        return
    yield from _node_faults(graph)
    yield from _edge_faults(graph)
    if graph.start not in graph.nodes:
        yield f"The start node {graph.start!r} does not exist." if graph.start else "The graph has no start node."
        return
    alive = reachable(graph, [graph.start])
    for name in graph.nodes:
        if name not in alive:
            yield f"Node {name!r} cannot be reached from {graph.start!r}."
    for group in components(graph):
        if all(_waits(graph.nodes[name]) for name in group):
            names = ", ".join(repr(name) for name in sorted(group))
            yield f"The cycle of {names} has only joins that wait for all edges; one of its nodes must join any."


def _waits(node: Node) -> bool:
    """Return whether it waits for all its edges; one that gathers a fan-out waits for its branches only."""
    return node.join == ALL and not node.attributes.get("scope")


def _node_faults(graph: Graph) -> Iterator[str]:
    for key, node in graph.nodes.items():
        if key != node.id:
            yield f"Node {node.id!r} is listed under the name {key!r}."
        if not node.id or any(mark in node.id for mark in _MARKS):
            yield f"Node {node.id!r}: an id is not empty and holds no '#', '/' or '->'."
        if node.join not in (ANY, ALL):
            yield f"Node {node.id!r}: join {node.join!r} is neither 'any' nor 'all'."


def _edge_faults(graph: Graph) -> Iterator[str]:
    seen: set[str] = set()
    for edge in graph.edges:
        if edge.id in seen:
            yield f"Duplicate edge {edge.id!r}."
        seen.add(edge.id)
        for end, name in (("source", edge.source), ("target", edge.target)):
            if name not in graph.nodes:
                yield f"Edge {edge.id!r}: its {end} {name!r} does not exist."
