"""A DOT graph made ready to decide by: effective attributes, types of nodes, conditions, and the engine's graph.

Ways that no edge draws (retry targets, goal gates' way back, failures of branches) are declared as virtual edges, so
that what can still be reached is known to the engine, and a jump is recorded by its edge's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.attributes import EDGE, NODE, Use, decides
from pipeline.dot.conditions import compile_condition, readable
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.values import plain
from pipeline.engine.changes import LEADS
from pipeline.formats.attractor.children import CHILD_OF, GOAL, THREAD, VIRTUAL, without_recalls
from pipeline.formats.attractor.regions import Regions
from pipeline.graph.model import ALL, ANY, Edge, Graph, Node

#: Branches of a fan-out that run at once if it does not say how many.
_MAX_PARALLEL = 4
#: Attributes that mean something to the engine; a file's own of these names are left out.
_ENGINES = ("fan", "fans", "scope", "max_parallel", "type", "implicit")
_EDGE_ENGINES = ("restart", "keep", VIRTUAL, "gate")
#: Of a node that is worked otherwise than its prompt says.
_UNASKED = frozenset({kinds.START, kinds.EXIT, kinds.CONDITIONAL, kinds.PARALLEL, kinds.TOOL, kinds.LOOP})
#: Types of nodes at which a pipeline ends, its own or a child's.
EXITS = frozenset({kinds.EXIT, kinds.CHILD_EXIT})
#: Values of an edge's attribute "virtual".
RETRY, GATE, BRANCH = "retry_target", "goal_gate", "branch"


def targets(graph: DotGraph, node: DotNode) -> list[str]:
    """Return where a failure of a node, or its unsatisfied gate, may go back to: its own targets, then the graph's."""
    named = [node.text(name).strip() for name in kinds.RETRY_TARGETS]
    if not node.text(CHILD_OF):
        # A child's failure is its supervisor's to judge; what its own graph says is on its nodes.
        named += [graph.text(name).strip() for name in (*kinds.RETRY_TARGETS, "fallback")]
    return [name for name in dict.fromkeys(named) if name in graph.nodes]


def retry_id(source: str, target: str) -> str:
    """Return the edge by which a failure goes back."""
    return f"{source}->{target}#retry"


def gate_id(leave: str, target: str, gate: str) -> str:
    """Return the edge by which the exit sends a run back for a gate."""
    return f"{leave}->{target}#gate:{gate}"


def branch_id(source: str, gather: str) -> str:
    """Return the edge by which a branch's failure reaches the node that gathers it."""
    return f"{source}->{gather}#branch"


@dataclass(frozen=True)
class Plan:
    """What is decided by. Edges of `graph` that are drawn have the ids of the DOT edges."""

    dot: DotGraph
    #: Node → type of its handler.
    types: Mapping[str, str]
    regions: Regions
    graph: Graph

    @classmethod
    def of(cls, dot: DotGraph, types: Mapping[str, str], effects: Mapping[str, tuple[str, bool]]) -> Plan:
        """Return the plan of a graph whose attributes are effective.

        Args:
            types: Node → type of its handler.
            effects: Node → effect of its handler, and whether it may be repeated.

        Raises:
            GraphError: A condition cannot be read.
        """
        plan = cls(dot, types, Regions(without_recalls(dot), types), Graph.of([], [], ""))
        nodes = [plan._node(node, *effects[node.id]) for node in dot.nodes.values()]
        for edge in dot.edges:
            compile_condition(edge.condition)
        return replace(plan, graph=Graph.of(nodes, [*plan._drawn(), *plan._jumps()], dot.start))

    def outgoing(self, node: str) -> Sequence[DotEdge]:
        """Return the edges that a visit's end may choose among: not those between a supervisor and its child."""
        edges = self.dot.outgoing(node)
        return [edge for edge in edges if VIRTUAL not in edge.attributes] if self._has_children else edges

    @cached_property
    def _has_children(self) -> bool:
        return any(CHILD_OF in node.attributes for node in self.dot.nodes.values())

    def gates_for(self, leave: str) -> list[str]:
        """Return the goal gates that an exit asks for: those of its own pipeline, be it a child."""
        nodes = self.dot.nodes
        return [gate for gate in self.gates if nodes[gate].text(CHILD_OF) == nodes[leave].text(CHILD_OF)]

    @cached_property
    def gates(self) -> tuple[str, ...]:
        """Return the goal gates, in order of declaration."""
        return tuple(node.id for node in self.dot.nodes.values() if node.flag("goal_gate"))

    @cached_property
    def restarts(self) -> frozenset[str]:
        """Return ids of the edges that begin the run anew."""
        return frozenset(edge.id for edge in self.dot.edges if edge.flag("loop_restart"))

    def does_work(self, node: str) -> bool:
        """Return whether a node does work, so that `last_stage` names it."""
        return self.types[node] not in kinds.IDLE

    def is_implicit(self, node: str) -> bool:
        """Return whether branches are gathered at a node that is not drawn as a fan-in."""
        return bool(self.regions.scope(node)) and self.types[node] != kinds.FAN_IN

    def _drawn(self) -> Iterator[Edge]:
        dot = self.dot
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

    def _jumps(self) -> Iterator[Edge]:
        """Yield the virtual edges, in order of declaration of their sources."""
        for node in self.dot.nodes.values():
            if self.types[node.id] in EXITS:
                for gate in self.gates_for(node.id):
                    for target in targets(self.dot, self.dot.nodes[gate]):
                        attributes = {VIRTUAL: GATE, "gate": gate}
                        yield Edge(node.id, target, None, gate_id(node.id, target, gate), attributes)
                continue
            for target in targets(self.dot, node):
                if self.regions.one_branch(node.id, target):
                    yield Edge(node.id, target, None, retry_id(node.id, target), {VIRTUAL: RETRY})
            if gather := self.regions.gather_of(node.id):
                yield Edge(node.id, gather, None, branch_id(node.id, gather), {VIRTUAL: BRANCH})

    def _node(self, node: DotNode, effect: str, repeatable: bool) -> Node:
        regions, said = self.regions, node.attributes.items()
        attributes: dict[str, Any] = {name: plain(value) for name, value in said if name not in _ENGINES}
        type = attributes["type"] = self.types[node.id]
        if type not in _UNASKED:
            attributes["prompt"] = node.prompt
        if around := regions.around[node.id]:
            attributes["fan"] = around[0]
            if len(around) > 1:
                attributes["fans"] = list(around)
        if scope := regions.scope(node.id):
            attributes["scope"] = scope[0] if len(scope) == 1 else list(scope)
            if type != kinds.FAN_IN:
                attributes["implicit"] = True
        if node.id in regions.fans:
            attributes["max_parallel"] = max(node.number("max_parallel") or _MAX_PARALLEL, 1)
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
    if type == kinds.FAN_IN:
        # It asks a model only if its prompt is more than what is put in for one that is not set.
        if str(said.get("prompt", "")) in (str(said.get("label") or node.id), str(said.get("goal", ""))):
            work.pop("prompt", None)
        work = work if "prompt" in work else {}
    ours = {name: said[name] for name in (*_ENGINES, CHILD_OF, GOAL, THREAD) if name in said}
    found = {**work, **ours}
    if leads := decides(NODE, said, Use.ROUTE, type, all_read=type in own):
        found[LEADS] = leads
    return found


def _deciding_edge(edge: Edge, graph: Graph, own: frozenset[str]) -> dict[str, Any]:
    found = decides(EDGE, edge.attributes, Use.ROUTE)
    if (text := str(found.get("condition", ""))) and (condition := readable(text)):
        found["condition"] = repr(condition.part)
    if (label := edge.attributes.get("label")) and _label_decides(edge, graph, own):
        found["label"] = label
    return {**found, **{name: edge.attributes[name] for name in _EDGE_ENGINES if name in edge.attributes}}


def _label_decides(edge: Edge, graph: Graph, own: frozenset[str]) -> bool:
    """Return whether an edge's label is a choice: of a person, of a diamond without conditions, among several edges."""
    type = graph.nodes[edge.source].attributes.get("type") if edge.source in graph.nodes else None
    if type == kinds.HUMAN or type in own:
        return True
    drawn = [other for other in graph.outgoing(edge.source) if VIRTUAL not in other.attributes]
    unconditional = [other for other in drawn if not str(other.attributes.get("condition") or "").strip()]
    if type == kinds.CONDITIONAL and len(unconditional) == len(drawn):
        return True
    return type != kinds.PARALLEL and edge in unconditional and len(unconditional) > 1
