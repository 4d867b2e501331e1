"""What a DOT file says: nodes, edges and attributes as frozen values, in order of declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.values import Attributed, Value, plain


@dataclass(frozen=True, slots=True)
class DotNode(Attributed):
    """One node."""

    id: str
    #: Explicit ones and the defaults in force where it was declared.
    attributes: Mapping[str, Value] = field(default_factory=dict)
    #: Its own classes (attribute `class`), then those of its subgraphs.
    classes: tuple[str, ...] = ()
    #: Where it is first mentioned; from 1.
    line: int = 0
    #: Classes made from the labels of its subgraphs, innermost first.
    groups: tuple[str, ...] = ()
    #: False if only edges name it.
    declared: bool = True
    #: Lines of further statements about it.
    repeated: tuple[int, ...] = ()
    #: Attributes set by its own statements, not by defaults.
    own: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """Return what people read; its id if none is set."""
        return self.text("label") or self.id

    @property
    def shape(self) -> str:
        """Return its shape; box if none is set."""
        return self.text("shape") or "box"

    @property
    def prompt(self) -> str:
        """Return what its model is asked: `prompt`, else `llm_prompt`, else `goal`, else the label."""
        return self._first(kinds.PROMPTS) or self.label

    @property
    def command(self) -> str:
        """Return a tool's shell command; "" if it has none."""
        return self._first(kinds.COMMANDS)

    def _first(self, names: Sequence[str]) -> str:
        return next((text for name in names if (text := self.text(name)).strip()), "")

    def to_json(self) -> dict[str, Any]:
        """Return {id, label, shape, classes, line, attributes}."""
        return {
            "id": self.id,
            "label": self.label,
            "shape": self.shape,
            "classes": list(self.classes),
            "line": self.line,
            "attributes": _plain(self.attributes),
        }


@dataclass(frozen=True, slots=True)
class DotEdge(Attributed):
    """One edge; of several between two nodes each is its own."""

    source: str
    target: str
    #: Explicit ones and the defaults in force where it was written.
    attributes: Mapping[str, Value] = field(default_factory=dict)
    #: "a->b"; further ones between the same two "a->b#2", "a->b#3".
    id: str = ""
    #: Where it is written; from 1.
    line: int = 0

    @property
    def label(self) -> str:
        return self.text("label")

    @property
    def condition(self) -> str:
        """Return the condition as written, trimmed; "" if it may always be taken."""
        return self.text("condition").strip()

    @property
    def weight(self) -> float:
        """Return the weight: of several edges that may be taken the heaviest is; 0 if none is set."""
        return self.decimal("weight") or 0.0

    def to_json(self) -> dict[str, Any]:
        """Return {from, to, id, label, condition, line, attributes}."""
        return {
            "from": self.source,
            "to": self.target,
            "id": self.id,
            "label": self.label or None,
            "condition": self.condition or None,
            "line": self.line,
            "attributes": _plain(self.attributes),
        }


def target_of(edge_id: str) -> str:
    """Return the node that an edge of that id leads to."""
    return edge_id.partition("->")[2].partition("#")[0]


@dataclass(frozen=True)
class DotGraph(Attributed):
    """One pipeline as its file says it."""

    name: str
    #: Of the graph itself: `graph [...]` and `key=value`.
    attributes: Mapping[str, Value]
    nodes: Mapping[str, DotNode]
    #: In order of declaration; an end may be a node that nothing declares.
    edges: tuple[DotEdge, ...]
    #: The text it was parsed from.
    source: str = ""

    def outgoing(self, node: str) -> Sequence[DotEdge]:
        """Return the edges from the node, in order of declaration."""
        return self._outgoing.get(node, ())

    def incoming(self, node: str) -> Sequence[DotEdge]:
        """Return the edges to the node, in order of declaration."""
        return self._incoming.get(node, ())

    def edge(self, edge_id: str) -> DotEdge | None:
        return self._by_id.get(edge_id)

    @property
    def goal(self) -> str:
        return self.text("goal")

    @property
    def start(self) -> str:
        """Return the id of the (first) start node; "" if there is none."""
        return next((name for name, kind in self._kinds.items() if kind == kinds.START), "")

    @property
    def exits(self) -> tuple[str, ...]:
        """Return ids of the exit nodes."""
        return tuple(name for name, kind in self._kinds.items() if kind == kinds.EXIT)

    def kind(self, node: DotNode | str) -> str:
        """Return a node's type: its own, else what its shape (or a command) means, else codergen."""
        name = node if isinstance(node, str) else node.id
        return self._kinds.get(name, kinds.CODERGEN)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        found = {node.id: self._own_kind(node) for node in self.nodes.values()}
        for kind, ids in ((kinds.START, kinds.START_IDS), (kinds.EXIT, kinds.EXIT_IDS)):
            if kind not in found.values():
                named = [name for name in ids if found.get(name) == kinds.CODERGEN]
                found.update(dict.fromkeys(named, kind))
        return found

    def _own_kind(self, node: DotNode) -> str:
        if said := node.text("type").strip():
            return kinds.TYPE_ALIASES.get(said, said)
        if not node.text("shape") and node.command and not node.first(*kinds.PROMPTS):
            return kinds.TOOL
        if self.text("dialect") != "split":
            return kinds.SHAPES.get(node.shape, kinds.CODERGEN)
        if node.shape == "ellipse":
            return kinds.EXIT if self.incoming(node.id) else kinds.START
        return kinds.SPLIT_SHAPES.get(node.shape, kinds.CODERGEN)

    @cached_property
    def _outgoing(self) -> dict[str, list[DotEdge]]:
        return self._grouped(lambda edge: edge.source)

    @cached_property
    def _incoming(self) -> dict[str, list[DotEdge]]:
        return self._grouped(lambda edge: edge.target)

    def _grouped(self, end: Callable[[DotEdge], str]) -> dict[str, list[DotEdge]]:
        table: dict[str, list[DotEdge]] = {}
        for edge in self.edges:
            table.setdefault(end(edge), []).append(edge)
        return table

    @cached_property
    def _by_id(self) -> dict[str, DotEdge]:
        return {edge.id: edge for edge in self.edges}

    def to_json(self) -> dict[str, Any]:
        """Return {name, attributes, nodes: [{id, type, …}], edges: [{from, to, …}]}."""
        return {
            "name": self.name,
            "attributes": _plain(self.attributes),
            "nodes": [{**node.to_json(), "type": self.kind(node)} for node in self.nodes.values()],
            "edges": [edge.to_json() for edge in self.edges],
        }


def _plain(attributes: Mapping[str, Value]) -> dict[str, Any]:
    return {name: plain(value) for name, value in attributes.items()}
