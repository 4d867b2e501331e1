"""A DOT graph made ready to decide by: effective attributes, types of nodes, conditions, and the engine's graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.attributes import EDGE, NODE, Use, decides
from pipeline.dot.conditions import Condition, compile_condition
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.values import plain
from pipeline.engine.changes import LEADS
from pipeline.errors import GraphError
from pipeline.formats.attractor.children import CHILD_OF, GOAL, THREAD, VIRTUAL, without_recalls
from pipeline.formats.attractor.jumps import gates, virtual_edges
from pipeline.formats.attractor.regions import Regions
from pipeline.graph.model import ALL, ANY, Edge, Graph, Node

#: Branches of a fan-out that run at once where it does not say how many.
MAX_PARALLEL = 4
#: Attributes that mean something to the engine; a file's own of these names are left out.
_ENGINES = ("fan", "fans", "scope", "max_parallel", "type", "implicit")
_EDGE_ENGINES = ("restart", "keep", VIRTUAL, "gate")
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

    def does_work(self, node: str) -> bool:
        """Whether a node does work, so that `last_stage` names it: starts, exits, diamonds and fan-outs do not."""
        return self.types[node] not in kinds.IDLE

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


def comparable(graph: Graph, own: frozenset[str] = frozenset(), fidelity: str = "") -> Graph:
    """Return a compiled graph with only those attributes that decide something, each in one spelling.

    Args:
        own: Types that a handler of the user's own works: it may read whatever its nodes say.
        fidelity: What holds for nodes that name none.
    """
    nodes = [replace(node, attributes=_deciding(node, own, fidelity)) for node in graph.nodes.values()]
    edges = [replace(edge, attributes=_deciding_edge(edge, graph, own)) for edge in graph.edges]
    return Graph.of(nodes, edges, graph.start)


def _deciding(node: Node, own: frozenset[str], fidelity: str) -> dict[str, Any]:
    said, type = node.attributes, str(node.attributes.get("type"))
    work = decides(NODE, said, Use.WORK, type, all_read=type in own, fidelity=fidelity)
    if type == kinds.HUMAN and "question" in work and type not in own:
        work["prompt"] = work.pop("question")
    if type == kinds.FAN_IN and not _is_prompted(node):
        work.pop("prompt", None)
    if type == kinds.FAN_IN and "prompt" not in work:
        # It asks no model.
        work = {}
    ours = {name: said[name] for name in (*_ENGINES, CHILD_OF, GOAL, THREAD) if name in said}
    found = {**work, **ours}
    if leads := decides(NODE, said, Use.ROUTE, type, all_read=type in own):
        found[LEADS] = leads
    return found


def _is_prompted(node: Node) -> bool:
    """Whether a fan-in lets the model choose: its prompt is more than what stands for one that is not set."""
    said = node.attributes
    return str(said.get("prompt", "")) not in (str(said.get("label") or node.id), str(said.get("goal", "")))


def _deciding_edge(edge: Edge, graph: Graph, own: frozenset[str]) -> dict[str, Any]:
    found = decides(EDGE, edge.attributes, Use.ROUTE)
    if condition := str(found.get("condition", "")):
        with suppress(GraphError):
            found["condition"] = repr(compile_condition(condition).part)
    if (label := edge.attributes.get("label")) and _label_decides(edge, graph, own):
        found["label"] = label
    return {**found, **{name: edge.attributes[name] for name in _EDGE_ENGINES if name in edge.attributes}}


def _label_decides(edge: Edge, graph: Graph, own: frozenset[str]) -> bool:
    """Whether an edge's label is a choice: of a person, of a diamond without conditions, or among several edges."""
    type = graph.nodes[edge.source].attributes.get("type") if edge.source in graph.nodes else None
    if type == kinds.HUMAN or type in own:
        return True
    drawn = [other for other in graph.outgoing(edge.source) if VIRTUAL not in other.attributes]
    plain = [other for other in drawn if not str(other.attributes.get("condition") or "").strip()]
    if type == kinds.CONDITIONAL and len(plain) == len(drawn):
        return True
    return type != kinds.PARALLEL and edge in plain and len(plain) > 1


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
