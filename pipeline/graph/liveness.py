"""What can still be reached from where, and which nodes lie on cycles."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.graph.model import Graph


def reachable(graph: Graph, origins: Iterable[str], without: str = "") -> set[str]:
    """Return the origins and all nodes they lead to, over paths that do not touch `without`."""
    found = {name for name in origins if name != without}
    ahead = list(found)
    while ahead:
        for edge in graph.outgoing(ahead.pop()):
            if edge.target not in found and edge.target != without:
                found.add(edge.target)
                ahead.append(edge.target)
    return found


def components(graph: Graph) -> list[list[str]]:
    """Return the cycles: strongly connected groups of nodes, and single nodes with an edge to themselves."""
    order = _finished(graph)
    group: set[str] = set()
    found: list[list[str]] = []
    for root in reversed(order):
        if root in group:
            continue
        members, ahead = [root], [root]
        group.add(root)
        while ahead:
            for edge in graph.incoming(ahead.pop()):
                if edge.source in graph.nodes and edge.source not in group:
                    group.add(edge.source)
                    members.append(edge.source)
                    ahead.append(edge.source)
        if len(members) > 1 or any(edge.target == root for edge in graph.outgoing(root)):
            found.append(members)
    return found


def _finished(graph: Graph) -> list[str]:
    """Return nodes in the order in which a depth-first walk leaves them; without recursion, graphs may be deep."""
    seen: set[str] = set()
    order: list[str] = []
    for root in graph.nodes:
        if root in seen:
            continue
        seen.add(root)
        walk = [(root, iter(graph.outgoing(root)))]
        while walk:
            name, edges = walk[-1]
            for edge in edges:
                if edge.target in graph.nodes and edge.target not in seen:
                    seen.add(edge.target)
                    walk.append((edge.target, iter(graph.outgoing(edge.target))))
                    break
            else:
                order.append(name)
                walk.pop()
    return order
