"""What may run: nodes, edges and the graph of them, as frozen values ↔ JSON; and which edges an outcome takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar, dataclass_transform

from pipeline.errors import GraphError

ANY, ALL = "any", "all"
#: Outcome labels that say failure: only an edge that names failure accepts them.
FAILURES = frozenset({"fail", "failed", "failure"})
T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Return a frozen dataclass, as the type checker sees to; nothing watches over it at run time.

    One that is watched takes four times as long to make, and a run makes thousands.
    """
    return dataclass(slots=True)(cls)


@frozen
class Node:
    """A place in the graph where a step runs."""

    #: Unique; no "#", "/" or "->", which paths and edge ids are made of.
    id: str
    #: When it fires. any: each token is one visit; all: once every incoming edge is chosen or dead.
    join: str = ANY
    #: The step's version; raised by its author when the work changes.
    version: int = 1
    #: What it does to the world: read, write, external.
    effect: str = "read"
    #: It may run again where its end is unknown.
    repeatable: bool = True
    #: What else the node's kind needs; JSON. fan: the fan-out it lies in; max_parallel: how many visits of
    #: its branches run at once; scope: the fan-out whose branches it gathers, seeing the context from before them.
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "join": self.join,
            "version": self.version,
            "effect": self.effect,
            "repeatable": self.repeatable,
            "attributes": dict(self.attributes),
        }


@frozen
class Edge:
    """A way from one node to another."""

    source: str
    target: str
    #: Outcome label that takes it; None: any outcome that no other edge names.
    when: str | None = None
    #: "a->b"; parallel ones "a->b#2", "a->b#3".
    id: str = ""
    #: What else a router needs; JSON. restart: the target sees only the context keys `graph.…`, and those in keep.
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        plain = {"source": self.source, "target": self.target, "when": self.when, "id": self.id}
        return {**plain, "attributes": dict(self.attributes)} if self.attributes else plain


@dataclass(frozen=True)
class Graph:
    """Nodes and edges in order of declaration, and where a run starts."""

    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    start: str

    @classmethod
    def of(cls, nodes: Iterable[Node], edges: Iterable[Edge], start: str) -> Graph:
        """Return a graph whose edges get their ids where they have none.

        Raises:
            GraphError: Two nodes have one id.
        """
        table: dict[str, Node] = {}
        for node in nodes:
            if node.id in table:
                raise GraphError(f"Duplicate node {node.id!r}.", code="duplicate_node", node=node.id)
            table[node.id] = node
        return cls(table, tuple(_named(list(edges))), start)

    def outgoing(self, node: str) -> Sequence[Edge]:
        """Return edges from the node, in order of declaration."""
        return self._outgoing.get(node, ())

    def incoming(self, node: str) -> Sequence[Edge]:
        """Return edges to the node, in order of declaration."""
        return self._incoming.get(node, ())

    def leads(self, node: str, target: str) -> bool:
        """Return whether there is a way along edges from a node to another, or back to itself."""
        seen, ahead = {node}, [node]
        while ahead:
            for edge in self.outgoing(ahead.pop()):
                if edge.target == target:
                    return True
                if edge.target not in seen:
                    seen.add(edge.target)
                    ahead.append(edge.target)
        return False

    def edge(self, edge_id: str) -> Edge | None:
        """Return the edge of that id; None: the graph has none."""
        return self._by_id.get(edge_id)

    @cached_property
    def _outgoing(self) -> dict[str, list[Edge]]:
        table: dict[str, list[Edge]] = {}
        for edge in self.edges:
            table.setdefault(edge.source, []).append(edge)
        return table

    @cached_property
    def _incoming(self) -> dict[str, list[Edge]]:
        table: dict[str, list[Edge]] = {}
        for edge in self.edges:
            table.setdefault(edge.target, []).append(edge)
        return table

    @cached_property
    def _by_id(self) -> dict[str, Edge]:
        return {edge.id: edge for edge in self.edges}

    def to_json(self) -> dict[str, Any]:
        """Return it as a run pins it."""
        return {
            "start": self.start,
            "nodes": [node.to_json() for node in self.nodes.values()],
            "edges": [edge.to_json() for edge in self.edges],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Graph:
        """Return the graph that `to_json` wrote; unknown keys are ignored."""
        nodes = [Node(**_known(row, _NODE)) for row in data["nodes"]]
        edges = [Edge(**_known(row, _EDGE)) for row in data["edges"]]
        return cls.of(nodes, edges, data["start"])


_NODE = frozenset(each.name for each in fields(Node))
_EDGE = frozenset(each.name for each in fields(Edge))


def _known(row: Mapping[str, Any], names: frozenset[str]) -> Mapping[str, Any]:
    # Nearly every row says nothing else.
    return row if row.keys() <= names else {key: value for key, value in row.items() if key in names}


def _named(edges: Sequence[Edge]) -> Iterable[Edge]:
    return edges if all(edge.id for edge in edges) else _numbered(edges)


def _numbered(edges: Sequence[Edge]) -> Iterable[Edge]:
    count: dict[str, int] = {}
    for edge in edges:
        name = f"{edge.source}->{edge.target}"
        count[name] = count.get(name, 0) + 1
        if edge.id:
            yield edge
        else:
            suffix = "" if count[name] == 1 else f"#{count[name]}"
            yield Edge(edge.source, edge.target, edge.when, name + suffix, edge.attributes)


def chain(ids: Sequence[str | Node]) -> Graph:
    """Return the linear graph: each node leads to the next."""
    nodes = [entry if isinstance(entry, Node) else Node(entry) for entry in ids]
    edges = [Edge(before.id, after.id) for before, after in pairwise(nodes)]
    return Graph.of(nodes, edges, nodes[0].id if nodes else "")


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
