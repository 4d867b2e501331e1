"""Rules about the shape of a graph: where it starts and ends, what leads where, what goes round."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from pipeline.dot import kinds
from pipeline.dot.diagnostics import ERROR, INFO, WARNING, Diagnostic, Rule, at_edge, at_node
from pipeline.dot.model import DotEdge, DotGraph
from pipeline.dot.paths import reached, skeleton, unavoidable, ways
from pipeline.graph.liveness import components


def start_node(graph: DotGraph) -> Iterator[Diagnostic]:
    """There is exactly one start."""
    starts = [node for node in graph.nodes.values() if graph.kind(node) == kinds.START]
    if not starts:
        yield Diagnostic("start_node", ERROR, "The graph has no start node.", fix="Add: start [shape=Mdiamond]")
    for node in starts[1:]:
        message = f"Node {node.id!r} is a second start node; the first is {starts[0].id!r}."
        yield at_node("start_node", ERROR, node, message, "Keep one node with shape=Mdiamond.")


def terminal_node(graph: DotGraph) -> Iterator[Diagnostic]:
    """There is at least one exit."""
    if not graph.exits:
        yield Diagnostic("terminal_node", ERROR, "The graph has no exit node.", fix="Add: exit [shape=Msquare]")


def single_exit(graph: DotGraph) -> Iterator[Diagnostic]:
    """There is one exit, as the specification has it; of several, which public graphs have, each ends the run."""
    for name in graph.exits[1:]:
        message = (
            f"Node {name!r} is a further exit; the specification has exactly one. Here a run ends at each of them."
        )
        fix = f"Nothing need be done; to run it elsewhere, let it lead to {graph.exits[0]!r}."
        yield at_node("single_exit", WARNING, graph.nodes[name], message, fix)


def edge_target_exists(graph: DotGraph) -> Iterator[Diagnostic]:
    """Both ends of every edge are declared; a slip of the pen would be one more paid node."""
    known = [name for name, node in graph.nodes.items() if node.declared]
    if len(known) == len(graph.nodes):
        return
    for edge in graph.edges:
        for end, name in (("target", edge.target), ("source", edge.source)):
            node = graph.nodes.get(name)
            if node is None or not node.declared:
                near = get_close_matches(name, known, 1)
                fix = f"Did you mean {near[0]!r}? Else declare it: " if near else "Declare it: "
                message = f"The {end} {name!r} of edge {edge.id!r} is not declared (it does not exist)."
                yield at_edge("edge_target_exists", ERROR, edge, message, f'{fix}{name} [label="…"]')


def start_no_incoming(graph: DotGraph) -> Iterator[Diagnostic]:
    """Nothing leads to a start."""
    for edge in graph.edges:
        if graph.kind(edge.target) == kinds.START:
            message = f"Edge {edge.id!r} leads to the start node."
            yield at_edge("start_no_incoming", ERROR, edge, message, "Let it lead to the node after the start.")


def exit_no_outgoing(graph: DotGraph) -> Iterator[Diagnostic]:
    """Nothing leads on from an exit."""
    for edge in graph.edges:
        if graph.kind(edge.source) == kinds.EXIT:
            message = f"Edge {edge.id!r} leads on from the exit node {edge.source!r}."
            yield at_edge("exit_no_outgoing", ERROR, edge, message, "Remove it, or give the node another shape.")


def reachability(graph: DotGraph) -> Iterator[Diagnostic]:
    """Every node can be reached from the start, along edges or by a retry target."""
    if not graph.start:
        return
    alive = reached([graph.start], ways(graph, jumps=True))
    for node in graph.nodes.values():
        if node.id not in alive and graph.kind(node) != kinds.START:
            message = f"Node {node.id!r} is unreachable from {graph.start!r}."
            yield at_node("reachability", ERROR, node, message, "Add an edge that leads to it, or remove the node.")


def exit_reachable(graph: DotGraph) -> Iterator[Diagnostic]:
    """From every node a run can end: at an exit, or where nothing leads on."""
    if not graph.start or not graph.exits:
        return
    back = ways(graph, jumps=True, backwards=True)
    ends = [name for name in graph.nodes if not graph.outgoing(name)]
    leaving = reached([*graph.exits, *ends], back)
    fix = "Add an edge that leads to an exit."
    for node in graph.nodes.values():
        if node.id not in leaving:
            yield at_node("exit_reachable", ERROR, node, f"No way leads from node {node.id!r} to an exit.", fix)
    if graph.start in leaving and graph.start not in reached(graph.exits, back):
        message = f"No way leads from {graph.start!r} to an exit."
        yield at_node("exit_reachable", ERROR, graph.nodes[graph.start], message, fix)


def dead_end(graph: DotGraph) -> Iterator[Diagnostic]:
    """Only exits lead nowhere."""
    for node in graph.nodes.values():
        if node.declared and not graph.outgoing(node.id) and graph.kind(node) != kinds.EXIT:
            message = f"Nothing leads on from node {node.id!r}; it is no exit."
            yield at_node("dead_end", WARNING, node, message, f"Add an edge, like {node.id} -> EXIT.")


def gate_bypassable(graph: DotGraph) -> Iterator[Diagnostic]:
    """No way leads round a goal gate: one that is not visited is not checked."""
    gates = [node for node in graph.nodes.values() if node.flag("goal_gate")]
    if not gates or not graph.start or not graph.exits:
        return
    passed = unavoidable(graph, graph.start, graph.exits)
    if not passed or all(node.id in passed for node in gates):
        return
    # All branches of a fan-out run, so a gate in one of them is passed although others lead round it.
    for fan in graph.nodes.values():
        if graph.kind(fan) == kinds.PARALLEL:
            for edge in graph.outgoing(fan.id):
                passed |= unavoidable(graph, edge.target, graph.exits)
    for node in gates:
        if node.id not in passed:
            message = f"A way leads to an exit round the goal gate {node.id!r}, which then is not checked."
            yield at_node("gate_bypassable", WARNING, node, message, "Let every way to an exit go through the gate.")


def unbounded_cycle(graph: DotGraph) -> Iterator[Diagnostic]:
    """What goes round is decided or counted."""
    if graph.number("max_node_visits"):
        return
    for group in components(skeleton(graph)):
        inside = set(group)
        nodes = [graph.nodes[name] for name in graph.nodes if name in inside]
        if any(node.number("max_visits") for node in nodes):
            continue
        leaving = [edge for node in nodes for edge in graph.outgoing(node.id) if edge.target not in inside]
        names = ", ".join(node.id for node in nodes[:6]) + (", …" if len(nodes) > 6 else "")
        fix = f"Set max_visits on one of them, like {nodes[0].id} [max_visits=5]."
        if any(_decides(graph, edge) for edge in leaving):
            message = f"The cycle {names} may go round without limit."
            yield at_node("unbounded_cycle", INFO, nodes[0], message, fix)
        elif leaving:
            message = f"Nothing decides when the cycle {names} is left: the same edges are taken each time."
            yield at_node("unbounded_cycle", WARNING, nodes[0], message, f"Give its edges conditions. {fix}")


def _decides(graph: DotGraph, edge: DotEdge) -> bool:
    """Whether something the run finds out can make it leave by this edge."""
    beside = graph.outgoing(edge.source)
    return len(beside) == 1 or any(other.condition or other.label for other in beside)


def fan_out_and_in(graph: DotGraph) -> Iterator[Diagnostic]:
    """A fan-out has branches, a fan-in has something to gather."""
    fans = [node for node in graph.nodes.values() if graph.kind(node) == kinds.PARALLEL]
    for node in fans:
        if len(graph.outgoing(node.id)) == 1:
            message = f"The fan-out {node.id!r} has one branch only."
            yield at_node("fan_out", INFO, node, message, "Add the other branches, or leave it out.")
    joins = [node for node in graph.nodes.values() if graph.kind(node) == kinds.FAN_IN]
    if not joins:
        return
    fed = reached([node.id for node in fans], ways(graph))
    for node in joins:
        if node.id not in fed:
            message = f"No fan-out (shape=component) leads to the fan-in {node.id!r}."
            yield at_node("fan_in", WARNING, node, message, "Start the branches at a node with shape=component.")


def unique_names(graph: DotGraph) -> Iterator[Diagnostic]:
    """A node is declared once."""
    for node in graph.nodes.values():
        if node.repeated:
            lines = ", ".join(map(str, node.repeated))
            message = f"Node {node.id!r} is declared again on line {lines}; the later attributes count."
            yield at_node("unique_names", WARNING, node, message, "Join the statements, or rename one node.")


WAYS: tuple[Rule, ...] = (
    start_node,
    terminal_node,
    single_exit,
    edge_target_exists,
    start_no_incoming,
    exit_no_outgoing,
    reachability,
    exit_reachable,
    dead_end,
    gate_bypassable,
    unbounded_cycle,
    fan_out_and_in,
    unique_names,
)
