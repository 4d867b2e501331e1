"""A DOT graph made ready to decide by: effective attributes, types of nodes, conditions, and the engine's graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.conditions import Condition, compile_condition
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.values import plain
from pipeline.formats.attractor.children import CHILD_OF, VIRTUAL, without_recalls
from pipeline.formats.attractor.jumps import gates, virtual_edges
from pipeline.formats.attractor.regions import Regions
from pipeline.graph.model import ALL, ANY, Edge, Graph, Node

#: Branches of a fan-out that run at once where it does not say how many.
MAX_PARALLEL = 4
#: Attributes that mean something to the engine; a file's own of these names are left out.
_ENGINES = ("fan", "fans", "scope", "max_parallel", "type", "implicit")
#: Of a node that is worked otherwise than its prompt says.
_UNASKED = frozenset({kinds.START, kinds.EXIT, kinds.CONDITIONAL, kinds.PARALLEL, kinds.TOOL, kinds.LOOP})


@dataclass(frozen=True)
class Plan:
    """What is decided by. Edges of `graph` that are drawn have the ids of the DOT edges."""

    dot: DotGraph
    #: Node → type of its handler.
    types: Mapping[str, str]
    regions: Regions
    graph: Graph

    @classmethod
    def of(cls, dot: DotGraph, types: Mapping[str, str], effects: Mapping[str, tuple[str, bool]], start: str) -> Plan:
        """The plan of a graph whose attributes are effective.

        Args:
            effects: Node → effect of its handler, and whether it may be repeated.
            start: Where a run begins.

        Raises:
            GraphError: A condition says nothing.
        """
        regions = Regions(without_recalls(dot), types)
        edges = [*_drawn(dot), *virtual_edges(dot, types, regions)]
        nodes = [_node(dot, node, types, regions, *effects[node.id]) for node in dot.nodes.values()]
        plan = cls(dot, types, regions, Graph.of(nodes, edges, start))
        for edge in dot.edges:
            plan.condition(edge)
        return plan

    def condition(self, edge: DotEdge) -> Condition:
        """What an edge asks."""
        return compile_condition(edge.condition)

    def outgoing(self, node: str) -> Sequence[DotEdge]:
        """The edges that a visit's end may choose among: those between a supervisor and its child are not."""
        edges = self.dot.outgoing(node)
        return [edge for edge in edges if VIRTUAL not in edge.attributes] if self._has_children else edges

    @cached_property
    def _has_children(self) -> bool:
        return any(CHILD_OF in node.attributes for node in self.dot.nodes.values())

    def gates_for(self, leave: str) -> list[str]:
        """The goal gates that an exit asks for: those of its own pipeline, be it a child."""
        nodes = self.dot.nodes
        return [gate for gate in self.gates if nodes[gate].text(CHILD_OF) == nodes[leave].text(CHILD_OF)]

    @cached_property
    def gates(self) -> tuple[str, ...]:
        """Goal gates, in order of declaration."""
        return tuple(gates(self.dot))

    @cached_property
    def restarts(self) -> frozenset[str]:
        """Ids of the edges that begin the run anew."""
        return frozenset(edge.id for edge in self.dot.edges if edge.flag("loop_restart"))

    def is_implicit(self, node: str) -> bool:
        """Whether branches are gathered at a node that is not drawn as a fan-in."""
        return bool(self.regions.scope(node)) and self.types[node] != kinds.FAN_IN


def _drawn(dot: DotGraph) -> Iterator[Edge]:
    kept = [name.strip() for name in dot.text("loop_restart_persist_keys").split(",") if name.strip()]
    for edge in dot.edges:
        attributes: dict[str, Any] = {name: plain(value) for name, value in edge.attributes.items()}
        attributes.pop("restart", None)
        if not dot.nodes[edge.source].text(CHILD_OF) and not dot.nodes[edge.target].text(CHILD_OF):
            attributes.pop(VIRTUAL, None)
        attributes.pop("keep", None)
        if edge.flag("loop_restart"):
            attributes["restart"] = True
            if kept:
                attributes["keep"] = kept
        yield Edge(edge.source, edge.target, None, edge.id, attributes)


def _node(
    dot: DotGraph, node: DotNode, types: Mapping[str, str], regions: Regions, effect: str, repeatable: bool
) -> Node:
    attributes: dict[str, Any] = {name: plain(value) for name, value in node.attributes.items() if name not in _ENGINES}
    type = attributes["type"] = types[node.id]
    if type not in _UNASKED:
        attributes["prompt"] = node.prompt
    if around := regions.around[node.id]:
        attributes["fan"] = around[0]
        if len(around) > 1:
            attributes["fans"] = list(around)
    scope = regions.scope(node.id)
    if scope:
        attributes["scope"] = scope[0] if len(scope) == 1 else list(scope)
        if type != kinds.FAN_IN:
            attributes["implicit"] = True
    if node.id in regions.fans:
        attributes["max_parallel"] = max(node.number("max_parallel") or MAX_PARALLEL, 1)
    return Node(node.id, ALL if scope else ANY, 1, effect, repeatable, attributes)


def with_known_types(dot: DotGraph, known: frozenset[str]) -> DotGraph:
    """The graph without types that nothing is registered for: their shape says what those nodes are."""
    strange = {node.id for node in dot.nodes.values() if node.text("type").strip() and dot.kind(node) not in known}
    if not strange:
        return dot
    nodes = {
        name: replace(node, attributes={key: value for key, value in node.attributes.items() if key != "type"})
        if name in strange else node
        for name, node in dot.nodes.items()
    }  # fmt: skip
    return replace(dot, nodes=nodes)
