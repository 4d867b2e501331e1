"""Rules about the shape of a graph: where it starts and ends, what leads where, what goes round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias

from pipeline.dot import kinds
from pipeline.dot.attributes import DEFAULT_VISITS
from pipeline.dot.diagnostics import ERROR, INFO, WARNING, Diagnostic, Rule, finding
from pipeline.dot.model import DotGraph
from pipeline.graph.liveness import components
from pipeline.graph.model import Edge, Graph, Node

#: Node → the nodes it leads to.
Ways: TypeAlias = Mapping[str, Sequence[str]]


def ways(graph: DotGraph, *, jumps: bool = False, backwards: bool = False) -> Ways:
    """Return where each node leads, or (backwards) which nodes lead to it; with `jumps` by retry targets too."""
    pairs = [(edge.source, edge.target) for edge in graph.edges]
    if jumps:
        for name in kinds.RETRY_TARGETS:
            pairs += [(node.id, node.text(name)) for node in graph.nodes.values()]
            pairs += [(graph.start, graph.text(name))] if graph.start else []
        pairs = [(source, target) for source, target in pairs if target in graph.nodes]
    found: dict[str, list[str]] = {}
    for source, target in pairs:
        first, second = (target, source) if backwards else (source, target)
        found.setdefault(first, []).append(second)
    return found


def reached(origins: Iterable[str], leading: Ways, *without: str) -> set[str]:
    """Return the origins and all nodes they lead to, over paths that do not touch `without`."""
    found = set(origins).difference(without)
    ahead = list(found)
    while ahead:
        for name in leading.get(ahead.pop(), ()):
            if name not in found and name not in without:
                found.add(name)
                ahead.append(name)
    return found


def _unavoidable(graph: DotGraph, origin: str, exits: Sequence[str]) -> set[str]:
    """Return the nodes that every way from the origin to an exit goes through; none if there is no way."""
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
    queue = [origin]
    for name in queue:
        if name in exits:
            way = [name]
            while before[way[-1]]:
                way.append(before[way[-1]])
            return way[::-1]
        for edge in graph.outgoing(name):
            if edge.target not in before:
                before[edge.target] = name
                queue.append(edge.target)
    return []


def start_node(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find a start that is missing or one too many."""
    starts = [node for node in graph.nodes.values() if graph.kind(node) == kinds.START]
    if not starts:
        yield finding("start_node", ERROR, graph, "The graph has no start node.", "Add: start [shape=Mdiamond]")
    for node in starts[1:]:
        message = f"Node {node.id!r} is a second start node; the first is {starts[0].id!r}."
        yield finding("start_node", ERROR, node, message, "Keep one node with shape=Mdiamond.")


def terminal_node(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find a missing exit, and warn of a second: the specification has one, public graphs several."""
    if not graph.exits:
        yield finding("terminal_node", ERROR, graph, "The graph has no exit node.", "Add: exit [shape=Msquare]")
    for name in graph.exits[1:]:
        message = f"Node {name!r} is a further exit; the specification has exactly one. A run ends at each of them."
        fix = f"Nothing need be done; to run it elsewhere, let it lead to {graph.exits[0]!r}."
        yield finding("single_exit", WARNING, graph.nodes[name], message, fix)


def edge_ends(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find edges to undeclared nodes (a typing error would be one more paid node), into starts, out of exits."""
    known = [name for name, node in graph.nodes.items() if node.declared]
    starts = {name for name in graph.nodes if graph.kind(name) == kinds.START}
    exits = set(graph.exits)
    for edge in graph.edges:
        for end, name in (("target", edge.target), ("source", edge.source)):
            node = graph.nodes.get(name)
            if node is None or not node.declared:
                near = get_close_matches(name, known, 1)
                fix = f"Did you mean {near[0]!r}? Else declare it: " if near else "Declare it: "
                message = f"The {end} {name!r} of edge {edge.id!r} is not declared (it does not exist)."
                yield finding("edge_target_exists", ERROR, edge, message, f'{fix}{name} [label="…"]')
        if edge.target in starts:
            message = f"Edge {edge.id!r} leads to the start node."
            yield finding("start_no_incoming", ERROR, edge, message, "Let it lead to the node after the start.")
        if edge.source in exits:
            message = f"Edge {edge.id!r} leads on from the exit node {edge.source!r}."
            yield finding("exit_no_outgoing", ERROR, edge, message, "Remove it, or give the node another shape.")


def reachability(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find nodes that cannot be reached from the start, along edges or by a retry target."""
    alive = reached([graph.start], ways(graph, jumps=True)) if graph.start else graph.nodes
    for node in graph.nodes.values():
        if node.id not in alive and graph.kind(node) != kinds.START:
            message = f"Node {node.id!r} is unreachable from {graph.start!r}."
            yield finding("reachability", ERROR, node, message, "Add an edge that leads to it, or remove the node.")


def exit_reachable(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find nodes from which no run can end, at an exit or where nothing follows."""
    if not graph.start or not graph.exits:
        return
    back = ways(graph, jumps=True, backwards=True)
    leaving = reached([*graph.exits, *(name for name in graph.nodes if not graph.outgoing(name))], back)
    fix = "Add an edge that leads to an exit."
    for node in graph.nodes.values():
        if node.id not in leaving:
            yield finding("exit_reachable", ERROR, node, f"No path leads from node {node.id!r} to an exit.", fix)
    if graph.start in leaving and graph.start not in reached(graph.exits, back):
        message = f"No path leads from {graph.start!r} to an exit."
        yield finding("exit_reachable", ERROR, graph.nodes[graph.start], message, fix)


def dead_end(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find nodes other than exits that lead nowhere."""
    for node in graph.nodes.values():
        if node.declared and not graph.outgoing(node.id) and graph.kind(node) != kinds.EXIT:
            message = f"Nothing leads on from node {node.id!r}; it is not an exit."
            yield finding("dead_end", WARNING, node, message, f"Add an edge, like {node.id} -> EXIT.")


def gate_bypassable(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find goal gates that a path can avoid: one that is not visited is not checked."""
    gates = [node for node in graph.nodes.values() if node.flag("goal_gate")]
    if not gates or not graph.start or not graph.exits:
        return
    passed = _unavoidable(graph, graph.start, graph.exits)
    if not passed or all(node.id in passed for node in gates):
        return
    # All branches of a fan-out run, so a gate in one of them is passed although others lead round it.
    for edge in graph.edges:
        if graph.kind(edge.source) == kinds.PARALLEL:
            passed |= _unavoidable(graph, edge.target, graph.exits)
    for node in gates:
        if node.id not in passed:
            message = f"A path leads to an exit around the goal gate {node.id!r}, which is then not checked."
            yield finding("gate_bypassable", WARNING, node, message, "Let every path to an exit go through the gate.")


def unbounded_cycle(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find loops that neither decide nor count."""
    if graph.number("max_node_visits"):
        return
    edges = [Edge(edge.source, edge.target, None, edge.id) for edge in graph.edges]
    for group in components(Graph.of(map(Node, graph.nodes), edges, graph.start)):
        inside = set(group)
        nodes = [graph.nodes[name] for name in graph.nodes if name in inside]
        if any(node.number("max_visits") for node in nodes):
            continue
        leaving = [edge for node in nodes for edge in graph.outgoing(node.id) if edge.target not in inside]
        names = ", ".join(node.id for node in nodes[:6]) + (", …" if len(nodes) > 6 else "")
        fix = f"Set max_visits on one of them, like {nodes[0].id} [max_visits=5]."
        # Something the run finds out can make it leave by an edge that is alone, or beside a choice.
        beside = [graph.outgoing(edge.source) for edge in leaving]
        if any(len(edges) == 1 or any(edge.condition or edge.label for edge in edges) for edges in beside):
            message = f"The cycle {names} has no limit of its own; it ends after {DEFAULT_VISITS} visits of a node."
            yield finding("unbounded_cycle", INFO, nodes[0], message, fix)
        elif leaving:
            message = f"Nothing decides when the cycle {names} is left: the same edges are taken each time."
            yield finding("unbounded_cycle", WARNING, nodes[0], message, f"Give its edges conditions. {fix}")


def fan_out_and_in(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find fan-outs without branches and fan-ins with nothing to gather."""
    fans = [node for node in graph.nodes.values() if graph.kind(node) == kinds.PARALLEL]
    fed = reached([node.id for node in fans], ways(graph))
    for node in fans:
        if len(graph.outgoing(node.id)) == 1:
            message = f"The fan-out {node.id!r} has one branch only."
            yield finding("fan_out", INFO, node, message, "Add the other branches, or leave it out.")
    for node in graph.nodes.values():
        if graph.kind(node) == kinds.FAN_IN and node.id not in fed:
            message = f"No fan-out (shape=component) leads to the fan-in {node.id!r}."
            yield finding("fan_in", WARNING, node, message, "Start the branches at a node with shape=component.")


def unique_names(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find nodes that are declared more than once."""
    for node in graph.nodes.values():
        if node.repeated:
            lines = ", ".join(map(str, node.repeated))
            message = f"Node {node.id!r} is declared again on line {lines}; the later attributes count."
            yield finding("unique_names", WARNING, node, message, "Join the statements, or rename one node.")


RULES: tuple[Rule, ...] = (
    start_node, terminal_node, edge_ends, reachability, exit_reachable, dead_end, gate_bypassable, unbounded_cycle,
    fan_out_and_in, unique_names,
)  # fmt: skip
