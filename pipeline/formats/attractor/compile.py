"""From a DOT graph to a pipeline of the engine: its graph, the step of each node, and its router."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol

from pipeline.dot.model import DotGraph, DotNode
from pipeline.dot.stylesheet import apply
from pipeline.engine.setup import Definition
from pipeline.engine.step import StepContext, StepSpec
from pipeline.errors import GraphError
from pipeline.formats.attractor.handlers.fidelity import default_mode
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.plan import Plan, comparable, with_known_types
from pipeline.formats.attractor.router import AttractorRouter
from pipeline.formats.attractor.steps import around
from pipeline.graph.liveness import reachable
from pipeline.graph.model import Graph
from pipeline.graph.validate import validate


class Handlers(Protocol):
    """What works the nodes."""

    def types(self) -> frozenset[str]:
        """The types that something is registered for."""

    def own_types(self) -> frozenset[str]:
        """The types that a handler of the user's own works."""

    def step(self, graph: DotGraph, node: DotNode) -> StepSpec:
        """The step of a node."""


def compile_graph(
    ast: DotGraph,
    entry_node_id: str | None = None,
    *,
    handlers: Handlers | Mapping[str, Callable[[StepContext], Any]],
    name: str | None = None,
) -> Definition:
    """The pipeline that a DOT graph says.

    Args:
        entry_node_id: Where a run begins instead of at the start node; what cannot be reached from there is left out.
        handlers: By type of node.
        name: The pipeline's name; None: the graph's.

    Raises:
        GraphError: It cannot be run as it stands, or has no such node.
    """
    known = registry(handlers) if isinstance(handlers, Mapping) else handlers
    dot = apply(with_known_types(ast, known.types()))
    start = dot.start if entry_node_id is None else check_entry(dot, entry_node_id)
    types = {node: dot.kind(node) for node in dot.nodes}
    specs = {node.id: known.step(dot, node) for node in dot.nodes.values()}
    effects = {node: (spec.effect, spec.repeatable) for node, spec in specs.items()}
    plan = Plan.of(dot, types, effects, start)
    if entry_node_id is not None:
        plan = replace(plan, graph=_ahead(plan.graph))
    validate(plan.graph)
    steps = {node: around(plan, dot.nodes[node], specs[node], first=node == start) for node in plan.graph.nodes}
    return Definition(
        name or dot.name, plan.graph, steps, router=AttractorRouter(plan),
        comparable=partial(comparable, own=known.own_types(), fidelity=default_mode(dot)),
    )  # fmt: skip


def registry(handlers: Mapping[str, Callable[[StepContext], Any]]) -> Registry:
    """A registry of these functions alone."""
    made = Registry()
    for type, handler in handlers.items():
        made.register(type, handler)
    return made


def check_entry(dot: DotGraph, node: str) -> str:
    """The node, if the graph has it.

    Raises:
        GraphError: It does not; names those with the most similar names.
    """
    if node in dot.nodes:
        return node
    near = get_close_matches(node, dot.nodes, 3, 0.5) or list(dot.nodes)[:10]
    raise GraphError(f"The graph has no node {node!r}.", hint=f"Nearest: {', '.join(near)}.", node=node)


def _ahead(graph: Graph) -> Graph:
    """What can be reached from the start."""
    alive = reachable(graph, [graph.start])
    nodes = [node for node in graph.nodes.values() if node.id in alive]
    edges = [edge for edge in graph.edges if edge.source in alive]
    return Graph.of(nodes, edges, graph.start)
