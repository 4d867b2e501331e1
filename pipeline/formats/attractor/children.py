"""Child pipelines, worked into their parent's graph: one journal, one ledger and one budget carry both.

A node CHILD of the pipeline that node N supervises becomes N.CHILD. N starts it over an edge to its start; its exits,
and any of its nodes when the child fails or is called off, lead back to N, which is then visited again and goes on by
its own edges. These edges have the attribute `virtual`; only what stands in `supervision` takes them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pipeline.dot import kinds, stylesheet
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.parser import parse, read_text
from pipeline.dot.rules import check_or_raise
from pipeline.dot.values import Value
from pipeline.errors import GraphError

#: Gives the graph of a child by its name: a path below the parent's folder, or an absolute one.
Load = Callable[[str], DotGraph]

#: Types of a child's first and last node: they begin and end no run.
CHILD_START, CHILD_EXIT = "stack.child_start", "stack.child_exit"
#: Attributes of a child's node: its supervisor, its own pipeline's goal and thread.
CHILD_OF, GOAL, THREAD = "stack.child_of", "stack.goal", "stack.thread_id"
#: Attribute of edges that a router does not choose by label, condition or weight; and its values here: the way a child
#: begins and ends, and the way back from all its other nodes, which no path that people draw goes.
VIRTUAL, CHILD, RECALL = "virtual", "child", "recall"

#: How the text of a graph begins, comments in front.
_GRAPH = re.compile(r"(?s)(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/|#[^\n]*)*(?:strict|graph|digraph)\b")
_FILE, _SOURCE, _AUTOSTART = "stack.child_dotfile", "stack.child_dot_source", "stack.child_autostart"
#: Children may stand this deep in each other.
_DEEPEST = 20
_ENDS = {kinds.START: CHILD_START, kinds.EXIT: CHILD_EXIT}
_TARGETS = ("retry_target", "fallback_retry_target")
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


def inline_children(graph: DotGraph, load: Load) -> DotGraph:
    """The graph with the pipelines of its supervising nodes worked in; itself where there are none.

    Raises:
        GraphError: A child is missing, wrong, lies outside the parent's folder, or contains its parent.
    """
    return _inlined(graph, load, _Place())


def without_recalls(graph: DotGraph) -> DotGraph:
    """The graph without the ways by which a child is called off: for whoever asks what lies between two nodes."""
    edges = tuple(edge for edge in graph.edges if edge.attributes.get(VIRTUAL) != RECALL)
    return graph if len(edges) == len(graph.edges) else replace(graph, edges=edges)


def from_folder(folder: Path) -> Load:
    """Children as files below a folder (that of the parent's file).

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
            # What stands in a file of another kind, whatever a graph names, is not repeated.
            raise GraphError(f"The child pipeline {name!r} is no DOT file.", file=str(path)) from None

    return load


def from_texts(texts: Mapping[str, str]) -> Load:
    """Children as a run is pinned to them: name → DOT text."""

    def load(name: str) -> DotGraph:
        if name not in texts:
            raise GraphError(f"The run holds no child pipeline {name!r}.")
        return parse(texts[name], name)

    return load


def child_texts(graph: DotGraph, load: Load) -> dict[str, str]:
    """The text of every child that a graph needs, by name; what a run is to be pinned to.

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


class _Place:
    """Where a graph stands: its folder, the folder it may not leave, and the files it is in."""

    def __init__(self, folder: str = "", root: str = "", chain: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.root = root
        self.chain = chain

    def below(self, name: str) -> _Place:
        """The place of a child file.

        Raises:
            GraphError: It lies outside, or is one of those that contain it.
        """
        if posixpath.isabs(name) and self.chain:
            raise _outside(name)
        path = posixpath.normpath(posixpath.join(self.folder, name))
        root = posixpath.dirname(path) if posixpath.isabs(path) and not self.root else self.root
        if not posixpath.isabs(path) and (path == ".." or path.startswith("../")):
            raise _outside(name)
        if root and os.path.commonpath([root, path]) != root:
            raise _outside(name)
        if path in self.chain:
            raise GraphError(f"The child pipeline {name!r} contains itself: {' -> '.join((*self.chain, path))}.")
        if len(self.chain) >= _DEEPEST:
            raise GraphError(f"Child pipelines stand more than {_DEEPEST} deep in each other.")
        return _Place(posixpath.dirname(path), root, (*self.chain, path))

    @property
    def name(self) -> str:
        return self.chain[-1]


def _outside(name: str) -> GraphError:
    return GraphError(
        f"The child pipeline {name!r} lies outside the folder of its parent.",
        hint="Move it beside the parent; or let the parent's own file name it by its absolute path.",
    )


def _inlined(graph: DotGraph, load: Load, place: _Place) -> DotGraph:
    graph = _unmarked(graph)
    supervisors = [node for node in graph.nodes.values() if graph.kind(node) == kinds.LOOP]
    supervisors = [node for node in supervisors if node.flag(_AUTOSTART) is not False]
    if not supervisors:
        return graph
    nodes, edges = dict(graph.nodes), list(graph.edges)
    for supervisor in supervisors:
        child = _child(graph, supervisor, load, place)
        for node in child.nodes.values():
            named = _named(node, child, supervisor)
            if named.id in nodes:
                raise GraphError(f"Node {named.id!r} stands twice: in the graph, and as a node of a child.")
            nodes[named.id] = named
        edges += [_moved(edge, supervisor) for edge in child.edges]
        edges += _ways(child, supervisor)
    return replace(graph, nodes=nodes, edges=tuple(edges))


def _unmarked(graph: DotGraph) -> DotGraph:
    """The graph without attributes of a file's own that stand for ours here."""
    marked = (CHILD_OF, GOAL, THREAD)
    nodes, edges = graph.nodes, graph.edges
    if any(name in node.attributes for node in nodes.values() for name in marked):
        nodes = {name: replace(node, attributes=_without(node.attributes, marked)) for name, node in nodes.items()}
    if any(VIRTUAL in edge.attributes for edge in edges):
        edges = tuple(replace(edge, attributes=_without(edge.attributes, (VIRTUAL,))) for edge in edges)
    return graph if nodes is graph.nodes and edges is graph.edges else replace(graph, nodes=nodes, edges=edges)


def _without(attributes: Mapping[str, Value], names: tuple[str, ...]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if name not in names}


def _child(graph: DotGraph, supervisor: DotNode, load: Load, place: _Place) -> DotGraph:
    """The child of a node, with its own children worked in."""
    name = supervisor.text(_FILE).strip() or graph.text(_FILE).strip()
    source = supervisor.text(_SOURCE)
    if source.strip():
        inner, child = place, parse(source, f"{supervisor.id}: {_SOURCE}")
    elif name:
        inner = place.below(name)
        child = load(inner.name)
    else:
        raise GraphError(
            f"Node {supervisor.id!r} supervises a child pipeline, but names none.",
            hint=f'Write {_FILE}="child.dot" in it.', node=supervisor.id,
        )  # fmt: skip
    check_or_raise(child)
    return _inlined(stylesheet.apply(child), load, inner)


def _named(node: DotNode, child: DotGraph, supervisor: DotNode) -> DotNode:
    """A child's node as it stands in the parent's graph."""
    prefix = f"{supervisor.id}."
    attributes: dict[str, Value] = dict(node.attributes)
    if CHILD_OF not in attributes:
        attributes.update(_defaults(node, child))
        kind = child.kind(node)
        attributes.update({"type": _ENDS.get(kind, kind), "label": node.label, CHILD_OF: supervisor.id})
    else:
        attributes[CHILD_OF] = prefix + node.text(CHILD_OF)
    for name in (*_TARGETS, "thread_id", THREAD):
        if said := str(attributes.get(name) or ""):
            attributes[name] = prefix + said
    groups = tuple(prefix + group for group in node.groups)
    return replace(node, id=prefix + node.id, attributes=attributes, groups=groups)


def _defaults(node: DotNode, child: DotGraph) -> Iterator[tuple[str, Value]]:
    """What the child's graph says of its nodes, where a node does not say it itself."""
    said: dict[str, Value] = {}
    for name, own in _DEFAULTS:
        if name in child.attributes and own not in node.attributes:
            said.setdefault(own, child.attributes[name])
    targets = [child.text(name) for name in _TARGETS if child.text(name)]
    free = [name for name in _TARGETS if not node.text(name)]
    if not node.text(_TARGETS[0]) and node.text(_TARGETS[1]):
        # A node's own fallback comes before its graph's targets.
        free = []
    said.update(zip(free, targets, strict=False))
    yield from said.items()


def _moved(edge: DotEdge, supervisor: DotNode) -> DotEdge:
    prefix = f"{supervisor.id}."
    source, target = prefix + edge.source, prefix + edge.target
    number = edge.id.partition("#")[2]
    attributes = dict(edge.attributes)
    if thread := edge.text("thread_id"):
        attributes["thread_id"] = prefix + thread
    name = f"{source}->{target}" + (f"#{number}" if number else "")
    return replace(edge, source=source, target=target, id=name, attributes=attributes)


def _ways(child: DotGraph, supervisor: DotNode) -> Iterator[DotEdge]:
    """The edges between a supervisor and its child's nodes."""
    prefix = f"{supervisor.id}."
    yield _way(supervisor.id, prefix + child.start, CHILD)
    for node in child.nodes.values():
        if not node.attributes.get(CHILD_OF):
            yield _way(prefix + node.id, supervisor.id, CHILD if child.kind(node) == kinds.EXIT else RECALL)


def _way(source: str, target: str, kind: str) -> DotEdge:
    return DotEdge(source, target, {VIRTUAL: kind}, f"{source}->{target}")
