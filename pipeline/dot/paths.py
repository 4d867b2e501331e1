"""Where a run of a graph may go: along edges and by the jumps that its retry targets declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pipeline.dot.model import DotGraph
from pipeline.graph.model import Edge, Graph, Node

#: Node → the nodes it leads to.
Ways: TypeAlias = Mapping[str, Sequence[str]]

RETRY_TARGETS = ("retry_target", "fallback_retry_target")


def skeleton(graph: DotGraph) -> Graph:
    """The bare graph, for what is known of graphs in general."""
    edges = [Edge(edge.source, edge.target, None, edge.id) for edge in graph.edges]
    return Graph.of(map(Node, graph.nodes), edges, graph.start)


def ways(graph: DotGraph, *, jumps: bool = False, backwards: bool = False) -> Ways:
    """Where each node leads; also by the jumps of retry targets, or where it is led to from, where asked."""
    pairs = [(edge.source, edge.target) for edge in graph.edges]
    if jumps:
        pairs += _jumps(graph)
    found: dict[str, list[str]] = {}
    for source, target in pairs:
        if backwards:
            found.setdefault(target, []).append(source)
        else:
            found.setdefault(source, []).append(target)
    return found


def reached(origins: Iterable[str], leading: Ways, without: str = "") -> set[str]:
    """The origins and all nodes they lead to, over paths that do not touch `without`."""
    found = set(origins) - {without}
    ahead = list(found)
    while ahead:
        for name in leading.get(ahead.pop(), ()):
            if name not in found and name != without:
                found.add(name)
                ahead.append(name)
    return found


def _jumps(graph: DotGraph) -> Iterator[tuple[str, str]]:
    for node in graph.nodes.values():
        for name in RETRY_TARGETS:
            target = node.text(name)
            if target and target in graph.nodes:
                yield node.id, target
    for name in RETRY_TARGETS:
        target = graph.text(name)
        if target and target in graph.nodes and graph.start:
            yield graph.start, target


def unavoidable(graph: DotGraph, origin: str, exits: Sequence[str]) -> set[str]:
    """The nodes that every way from the origin to an exit goes through; empty if there is no way."""
    way = _shortest(graph, origin, exits)
    place = {name: number for number, name in enumerate(way)}
    ends = set(exits)
    found: set[str] = set()
    seen: set[str] = set()
    furthest = 0
    for number, name in enumerate(way):
        if furthest == number:
            found.add(name)
        ahead = [name]
        while ahead:
            here = ahead.pop()
            if here in ends:
                furthest = len(way)
            for edge in graph.outgoing(here):
                if edge.target in place:
                    furthest = max(furthest, place[edge.target])
                elif edge.target not in seen:
                    seen.add(edge.target)
                    ahead.append(edge.target)
    return found


def _shortest(graph: DotGraph, origin: str, exits: Sequence[str]) -> list[str]:
    before: dict[str, str] = {origin: ""}
    layer: Mapping[str, None] = {origin: None}
    while layer:
        for name in layer:
            if name in exits:
                way = [name]
                while before[way[-1]]:
                    way.append(before[way[-1]])
                return way[::-1]
        ahead: dict[str, None] = {}
        for name in layer:
            for edge in graph.outgoing(name):
                if edge.target not in before:
                    before[edge.target] = name
                    ahead[edge.target] = None
        layer = ahead
    return []
