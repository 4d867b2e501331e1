"""Ways that no edge draws: retry targets, goal gates' way back, failures of branches. Declared as virtual edges.

So that what can still be reached is known to the engine, and a jump is recorded by its edge's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline.dot import kinds
from pipeline.dot.kinds import RETRY_TARGETS
from pipeline.dot.model import DotGraph, DotNode
from pipeline.formats.attractor.children import CHILD_EXIT, CHILD_OF
from pipeline.formats.attractor.regions import Regions
from pipeline.graph.model import Edge

#: Types of nodes at which a pipeline ends, its own or a child's.
EXITS = frozenset({kinds.EXIT, CHILD_EXIT})
#: Values of an edge's attribute "virtual".
RETRY, GATE, BRANCH = "retry_target", "goal_gate", "branch"
#: Other names of a graph's retry targets, in order.
_GRAPH_TARGETS = (*RETRY_TARGETS, "fallback")


def targets(graph: DotGraph, node: DotNode) -> list[str]:
    """Where a failure of a node, or its unsatisfied gate, may go back to: its own targets, then the graph's."""
    named = [node.text(name).strip() for name in RETRY_TARGETS]
    if not node.text(CHILD_OF):
        # A child's failure is its supervisor's to judge; what its own graph says stands in its nodes.
        named += [graph.text(name).strip() for name in _GRAPH_TARGETS]
    return [name for name in dict.fromkeys(named) if name in graph.nodes]


def gates(graph: DotGraph) -> list[str]:
    """Goal gates, in order of declaration."""
    return [node.id for node in graph.nodes.values() if node.flag("goal_gate")]


def retry_id(source: str, target: str) -> str:
    """The edge by which a failure goes back."""
    return f"{source}->{target}#retry"


def gate_id(leave: str, target: str, gate: str) -> str:
    """The edge by which the exit sends a run back for a gate."""
    return f"{leave}->{target}#gate:{gate}"


def branch_id(source: str, gather: str) -> str:
    """The edge by which a branch's failure reaches the node that gathers it."""
    return f"{source}->{gather}#branch"


def virtual_edges(graph: DotGraph, types: Mapping[str, str], regions: Regions) -> Iterator[Edge]:
    """All of them, in order of declaration of their sources."""
    for node in graph.nodes.values():
        if types[node.id] in EXITS:
            yield from _gate_edges(graph, node.id)
            continue
        for target in targets(graph, node):
            if regions.one_branch(node.id, target):
                yield Edge(node.id, target, None, retry_id(node.id, target), {"virtual": RETRY})
        if gather := regions.gather_of(node.id):
            yield Edge(node.id, gather, None, branch_id(node.id, gather), {"virtual": BRANCH})


def _gate_edges(graph: DotGraph, leave: str) -> Iterator[Edge]:
    own = graph.nodes[leave].text(CHILD_OF)
    for gate in gates(graph):
        if graph.nodes[gate].text(CHILD_OF) != own:
            continue
        for target in targets(graph, graph.nodes[gate]):
            yield Edge(leave, target, None, gate_id(leave, target, gate), {"virtual": GATE, "gate": gate})
