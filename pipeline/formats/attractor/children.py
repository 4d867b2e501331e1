"""Child pipelines, worked into their parent's graph: one journal, one ledger and one budget carry both.

A node CHILD of the pipeline that node N supervises becomes N.CHILD. N starts it over an edge to its start; its exits,
and any of its nodes when the child fails or is called off, lead back to N, which is then visited again and goes on by
its own edges. These edges have the attribute `virtual`; only the second half of this module takes them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pipeline.dot import kinds, stylesheet
from pipeline.dot.conditions import compile_condition
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.parser import parse, read_text
from pipeline.dot.rules import check_or_raise
from pipeline.dot.values import Value
from pipeline.engine.routing import Route, Settled
from pipeline.errors import GraphError

#: Gives the graph of a child by its name: a path below the parent's folder, or an absolute one.
Load = Callable[[str], DotGraph]

#: Attributes of a child's node: its supervisor, its own pipeline's goal and thread.
CHILD_OF, GOAL, THREAD = "stack.child_of", "stack.goal", "stack.thread_id"
#: Attribute of edges that a router does not choose by label, condition or weight; and its values here: the way a child
#: begins and ends, and the way back from all its other nodes, which no path that people draw goes.
VIRTUAL, CHILD, RECALL = "virtual", "child", "recall"
#: Context keys that tell how a child stands, and how it came out; the values of the first.
STATUS, OUTCOME = "stack.child.status", "stack.child.outcome"
RUNNING, COMPLETED, STOPPED, EXHAUSTED, FAILED = "running", "completed", "stopped", "max_cycles", "failed"
#: Visits that a child may make, if its supervisor does not say (manager.max_cycles).
MAX_CYCLES = 1000

#: How the text of a graph begins, comments in front.
_GRAPH = re.compile(r"(?s)(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/|#[^\n]*)*(?:strict|graph|digraph)\b")
_FILE, _SOURCE, _AUTOSTART = "stack.child_dotfile", "stack.child_dot_source", "stack.child_autostart"
#: How deep child pipelines may be nested.
_DEEPEST = 20
_ENDS = {kinds.START: kinds.CHILD_START, kinds.EXIT: kinds.CHILD_EXIT}
#: Attributes of a child's graph that hold for its nodes → what says it on a node; the first that is set counts.
_DEFAULTS: tuple[tuple[str, str], ...] = (
    ("default_max_retries", "max_retries"),
    ("default_max_retry", "max_retries"),
    ("retry_policy", "retry_policy"),
    ("retry_backoff", "retry_backoff"),
    ("retry_jitter", "retry_jitter"),
    ("max_node_visits", "max_visits"),
    ("max_tokens", "max_tokens"),
    ("default_fidelity", "fidelity"),
    ("context_fidelity_default", "fidelity"),
    ("goal", GOAL),
    ("default_thread_id", THREAD),
    ("context_thread_default", THREAD),
    ("thread_id", THREAD),
)


def without_recalls(graph: DotGraph) -> DotGraph:
    """Return the graph without the ways by which a child is called off: no drawn path goes them."""
    edges = tuple(edge for edge in graph.edges if edge.attributes.get(VIRTUAL) != RECALL)
    return graph if len(edges) == len(graph.edges) else replace(graph, edges=edges)


def from_folder(folder: Path) -> Load:
    """Return a reader of children as files below a folder (that of the parent's file).

    Absolute names are read as they are: only the parent's own file may say them.
    """

    def load(name: str) -> DotGraph:
        path = folder / name
        if not posixpath.isabs(name) and not path.resolve().is_relative_to(folder.resolve()):
            raise _outside(name)
        text = read_text(path)
        try:
            return parse(text, str(path))
        except GraphError:
            if _GRAPH.match(text):
                raise
            # The text of a file of another kind, whatever a graph names, is not repeated.
            message = f"The child pipeline {name!r} is not a DOT file."
            raise GraphError(message, code="child_unreadable", file=str(path)) from None

    return load


def from_texts(texts: Mapping[str, str]) -> Load:
    """Return a reader of children that a run is pinned to: name → DOT text."""

    def load(name: str) -> DotGraph:
        if name not in texts:
            raise GraphError(f"The run holds no child pipeline {name!r}.", code="child_missing")
        return parse(texts[name], name)

    return load


def child_texts(graph: DotGraph, load: Load) -> dict[str, str]:
    """Return the text of every child that a graph needs, by name: what a run is to be pinned to.

    Raises:
        GraphError: As `inline_children`.
    """
    texts: dict[str, str] = {}

    def noting(name: str) -> DotGraph:
        found = load(name)
        texts[name] = found.source
        return found

    inline_children(graph, noting)
    return texts


def inline_children(graph: DotGraph, load: Load) -> DotGraph:
    """Return the graph with the pipelines of its supervising nodes worked in; itself if there are none.

    Raises:
        GraphError: A child is missing, wrong, lies outside the parent's folder, or contains its parent.
    """
    return _inlined(graph, load, _Place())


class _Place(NamedTuple):
    """Where a graph lies: its folder, the folder it may not leave, and the files it is in."""

    folder: str = ""
    root: str = ""
    chain: tuple[str, ...] = ()

    def below(self, name: str) -> _Place:
        """Return the place of a child file.

        Raises:
            GraphError: It lies outside, or is one of those that contain it.
        """
        path = posixpath.normpath(posixpath.join(self.folder, name))
        absolute = posixpath.isabs(path)
        root = posixpath.dirname(path) if absolute and not self.root else self.root
        leaves = not absolute and (path == ".." or path.startswith("../"))
        if leaves or (posixpath.isabs(name) and self.chain) or (root and os.path.commonpath([root, path]) != root):
            raise _outside(name)
        if path in self.chain:
            message = f"The child pipeline {name!r} contains itself: {' -> '.join((*self.chain, path))}."
            raise GraphError(message, code="child_cycle")
        if len(self.chain) >= _DEEPEST:
            raise GraphError(f"Child pipelines are nested more than {_DEEPEST} deep.", code="child_too_deep")
        return _Place(posixpath.dirname(path), root, (*self.chain, path))


def _outside(name: str) -> GraphError:
    return GraphError(
        f"The child pipeline {name!r} lies outside the folder of its parent.", code="child_outside",
        hint="Move it beside the parent; or let the parent's own file name it by its absolute path.",
    )  # fmt: skip


def _inlined(graph: DotGraph, load: Load, place: _Place) -> DotGraph:
    graph = _unmarked(graph)
    supervisors = [node for node in graph.nodes.values() if graph.kind(node) == kinds.LOOP]
    supervisors = [node for node in supervisors if node.flag(_AUTOSTART) is not False]
    if not supervisors:
        return graph
    nodes, edges = dict(graph.nodes), list(graph.edges)
    for supervisor in supervisors:
        child, prefix = _child(graph, supervisor, load, place), f"{supervisor.id}."
        edges += [_moved(edge, prefix) for edge in child.edges]
        edges.append(_way(supervisor.id, prefix + child.start, CHILD))
        for node in child.nodes.values():
            named = _named(node, child, supervisor)
            if named.id in nodes:
                message = f"Duplicate node {named.id!r}: of the graph, and of a child."
                raise GraphError(message, code="duplicate_node")
            nodes[named.id] = named
            if not node.attributes.get(CHILD_OF):
                ends = child.kind(node) == kinds.EXIT
                edges.append(_way(named.id, supervisor.id, CHILD if ends else RECALL))
    return replace(graph, nodes=nodes, edges=tuple(edges))


def _unmarked(graph: DotGraph) -> DotGraph:
    """Return the graph without a file's own attributes that have the names of ours here."""
    ours = (CHILD_OF, GOAL, THREAD)
    nodes, edges = graph.nodes, graph.edges
    if any(name in node.attributes for node in nodes.values() for name in ours):
        nodes = {name: replace(node, attributes=_without(node.attributes, ours)) for name, node in nodes.items()}
    if any(VIRTUAL in edge.attributes for edge in edges):
        edges = tuple(replace(edge, attributes=_without(edge.attributes, (VIRTUAL,))) for edge in edges)
    return graph if nodes is graph.nodes and edges is graph.edges else replace(graph, nodes=nodes, edges=edges)


def _without(attributes: Mapping[str, Value], names: tuple[str, ...]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if name not in names}


def _child(graph: DotGraph, supervisor: DotNode, load: Load, place: _Place) -> DotGraph:
    """Return the child of a node, with its own children worked in."""
    name = supervisor.text(_FILE).strip() or graph.text(_FILE).strip()
    source = supervisor.text(_SOURCE)
    if source.strip():
        child = parse(source, f"{supervisor.id}: {_SOURCE}")
    elif name:
        place = place.below(name)
        child = load(place.chain[-1])
    else:
        raise GraphError(
            f"Node {supervisor.id!r} supervises a child pipeline, but names none.", code="child_missing",
            hint=f'Write {_FILE}="child.dot" in it.', node=supervisor.id,
        )  # fmt: skip
    check_or_raise(child)
    return _inlined(stylesheet.apply(child), load, place)


def _named(node: DotNode, child: DotGraph, supervisor: DotNode) -> DotNode:
    """Return a child's node as it is in the parent's graph."""
    prefix = f"{supervisor.id}."
    attributes: dict[str, Value] = dict(node.attributes)
    if CHILD_OF not in attributes:
        attributes.update(_defaults(node, child))
        kind = child.kind(node)
        attributes.update({"type": _ENDS.get(kind, kind), "label": node.label, CHILD_OF: supervisor.id})
    else:
        attributes[CHILD_OF] = prefix + node.text(CHILD_OF)
    for name in (*kinds.RETRY_TARGETS, "thread_id", THREAD):
        if said := str(attributes.get(name) or ""):
            attributes[name] = prefix + said
    groups = tuple(prefix + group for group in node.groups)
    return replace(node, id=prefix + node.id, attributes=attributes, groups=groups)


def _defaults(node: DotNode, child: DotGraph) -> dict[str, Value]:
    """Return what the child's graph says of its nodes, if a node does not say it itself."""
    said: dict[str, Value] = {}
    for name, own in _DEFAULTS:
        if name in child.attributes and own not in node.attributes:
            said.setdefault(own, child.attributes[name])
    first, fallback = kinds.RETRY_TARGETS
    if node.text(first) or not node.text(fallback):
        # Otherwise a node's own fallback comes before its graph's targets.
        targets = [child.text(name) for name in kinds.RETRY_TARGETS if child.text(name)]
        said.update(zip([name for name in kinds.RETRY_TARGETS if not node.text(name)], targets, strict=False))
    return said


def _moved(edge: DotEdge, prefix: str) -> DotEdge:
    source, target = prefix + edge.source, prefix + edge.target
    _, mark, number = edge.id.partition("#")
    attributes = dict(edge.attributes)
    if thread := edge.text("thread_id"):
        attributes["thread_id"] = prefix + thread
    return replace(edge, source=source, target=target, id=f"{source}->{target}{mark}{number}", attributes=attributes)


def _way(source: str, target: str, kind: str) -> DotEdge:
    """Return an edge between a supervisor and a node of its child."""
    return DotEdge(source, target, {VIRTUAL: kind}, f"{source}->{target}")


# How a router takes these edges


def supervised(settled: Settled, graph: DotGraph, lookup: Callable[[str], str]) -> Route | None:
    """Return where a visit leads for its supervisor's sake, or a supervisor's for its child's; None: where it likes.

    To be asked of every visit that has not failed, before its own edges; of a child's exit once its goal gates are
    satisfied.

    Args:
        lookup: The text of a condition's key, as edges' conditions see it.
    """
    node = graph.nodes.get(settled.node.id)
    if node is not None and graph.kind(node) == kinds.LOOP:
        starts = settled.changes.get(STATUS) == RUNNING
        return Route(_to_child(graph, node), reason="child") if starts else None
    supervisor = _supervisor(settled, graph)
    if node is None or supervisor is None:
        return None
    if graph.kind(node) == kinds.CHILD_EXIT:
        return _back(settled, supervisor, COMPLETED, "child")
    if stop := supervisor.text("manager.stop_condition").strip():
        now = {STATUS: RUNNING, OUTCOME: settled.outcome}
        if compile_condition(stop).holds(lambda key: now.get(key.removeprefix("context.")) or lookup(key)):
            return _back(settled, supervisor, STOPPED, "stop_condition")
    if _cycles(settled, graph, supervisor) >= (supervisor.number("manager.max_cycles") or MAX_CYCLES):
        return _back(settled, supervisor, EXHAUSTED, "max_cycles")
    return None


def failed_child(settled: Settled, graph: DotGraph) -> Route | None:
    """Return where a failure leads that nothing in its pipeline accepts: to the supervisor; None if it has none."""
    supervisor = _supervisor(settled, graph)
    return None if supervisor is None else _back(settled, supervisor, FAILED, "child_failed")


def _supervisor(settled: Settled, graph: DotGraph, *, in_branch: bool = False) -> DotNode | None:
    """Return the node that supervises a visit; inside a fan-out of the child its fan-in comes first."""
    node = graph.nodes.get(settled.node.id)
    found = graph.nodes.get(node.text(CHILD_OF)) if node is not None else None
    inside = found is not None and str(settled.node.attributes.get("fan") or "").startswith(f"{found.id}.")
    return None if inside and not in_branch else found


def _back(settled: Settled, supervisor: DotNode, status: str, reason: str) -> Route:
    edge = f"{settled.node.id}->{supervisor.id}"
    return Route([edge], context={STATUS: status, OUTCOME: settled.outcome}, reason=reason)


def _to_child(graph: DotGraph, supervisor: DotNode) -> list[str]:
    return [edge.id for edge in graph.outgoing(supervisor.id) if edge.attributes.get(VIRTUAL)
            and graph.nodes[edge.target].text(CHILD_OF) == supervisor.id]  # fmt: skip


def begun(settled: Settled, graph: DotGraph) -> int:
    """Return the record (seq) that started the child in which a visit lies; 0 if it lies in none."""
    supervisor = _supervisor(settled, graph, in_branch=True)
    if supervisor is None:
        return 0
    start = set(_to_child(graph, supervisor))
    starts = (run.ended_seq for run in reversed(settled.state.steps.values())
              if run.node == supervisor.id and start.intersection(run.edges))  # fmt: skip
    return next(starts, 0)


def _cycles(settled: Settled, graph: DotGraph, supervisor: DotNode) -> int:
    """Return how many visits the child has made since it was started, this one included."""
    since, prefix, count = begun(settled, graph), f"{supervisor.id}.", 0
    for run in reversed(settled.state.steps.values()):
        if run.started_seq < since:
            break
        count += run.node.startswith(prefix)
    return count
