"""From a DOT graph to a pipeline of the engine: its graph, the step of each node, and its router."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph, DotNode
from pipeline.dot.stylesheet import apply
from pipeline.engine.setup import Definition
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.errors import GraphError
from pipeline.formats.attractor.handlers.fan import RESULTS, branches_of, joined
from pipeline.formats.attractor.handlers.prompt import default_mode
from pipeline.formats.attractor.handlers.registry import Registry, Visit
from pipeline.formats.attractor.outcome import FAIL, SUCCESS, failure, to_engine
from pipeline.formats.attractor.plan import Plan, comparable
from pipeline.formats.attractor.router import AttractorRouter, graph_context
from pipeline.graph.validation import validate

_AUTO = "auto-status: handler completed without writing status"


def compile_graph(dot: DotGraph, handlers: Registry) -> Definition:
    """Return the pipeline that a DOT graph says.

    Raises:
        GraphError: It cannot be run as it is.
    """
    dot = apply(_with_known_types(dot, handlers.types()))
    specs = {node.id: handlers.step(dot, node) for node in dot.nodes.values()}
    effects = {node: (spec.effect, spec.repeatable) for node, spec in specs.items()}
    plan = Plan.of(dot, {node: dot.kind(node) for node in dot.nodes}, effects)
    validate(plan.graph)
    steps = {node: _around(plan, dot.nodes[node], specs[node], first=node == dot.start) for node in plan.graph.nodes}
    return Definition(
        dot.name or "graph", plan.graph, steps, router=AttractorRouter(plan),
        comparable=partial(comparable, own=handlers.own_types(), fidelity=default_mode(dot)),
    )  # fmt: skip


def check_entry(dot: DotGraph, node: str) -> str:
    """Return the node, if the graph has it.

    Raises:
        GraphError: It does not; names those with the most similar names.
    """
    if node in dot.nodes:
        return node
    near = get_close_matches(node, dot.nodes, 3, 0.5) or list(dot.nodes)[:10]
    message = f"The graph has no node {node!r}."
    raise GraphError(message, code="unknown_node", hint=f"Nearest: {', '.join(near)}.", node=node)


def _with_known_types(dot: DotGraph, known: frozenset[str]) -> DotGraph:
    """Return the graph without types that nothing is registered for: their shape says what those nodes are."""
    unknown = [node for node in dot.nodes.values() if node.text("type").strip() and dot.kind(node) not in known]
    nodes = dict(dot.nodes)
    for node in unknown:
        attributes = {key: value for key, value in node.attributes.items() if key != "type"}
        nodes[node.id] = replace(node, attributes=attributes)
    return replace(dot, nodes=nodes) if unknown else dot


@dataclass(frozen=True, slots=True)
class _Around:
    """One node's handler, and what its place in the graph asks for."""

    plan: Plan
    node: DotNode
    spec: StepSpec
    #: What the context holds from here on; {}: nothing is added.
    base: Mapping[str, Any]

    def run(self, ctx: StepContext) -> Any:
        more = {**{name: ctx.params[name] for name in ctx.params}, **self.base} if self.base else {}
        made = self._joined(ctx, more) or self._judged(self.spec.run(ctx))
        if not more:
            return made
        # Context keys are added below those that the handler set.
        if isinstance(made, Outcome):
            return replace(made, context={**more, **made.context})
        return Outcome({} if made is None else made, context=more)

    def _joined(self, ctx: StepContext, more: dict[str, Any]) -> Outcome | None:
        """Return the end of a node at which branches meet undrawn, if it is not worked: too few of them succeeded.

        A diamond is told what they came to.
        """
        if not self.plan.is_implicit(self.node.id) or not any(arrival.branch for arrival in ctx.place.arrivals):
            return None
        visit = Visit(ctx, self.node, self.plan.dot)
        branches = branches_of(visit)
        more[RESULTS] = [branch.to_json() for branch in branches]
        together = joined(visit, branches)
        if together.status == FAIL:
            return to_engine(replace(together, failure_class="deterministic"))
        return to_engine(together) if self.plan.types[self.node.id] == kinds.CONDITIONAL else None

    def _judged(self, made: Any) -> Any:
        """Return an outcome that was left open as a success; a goal gate fails then."""
        if not isinstance(made, Outcome) or made.label.strip() or made.error is not None:
            return made
        if self.node.flag("goal_gate"):
            said = failure("A goal gate that gives no verdict has not been passed.", "deterministic")
            return replace(to_engine(said), outputs=made.outputs, context=made.context)
        notes = {"notes": _AUTO} if self.node.flag("auto_status") else {}
        return replace(made, label=SUCCESS, outputs={**notes, **made.outputs})


def _around(plan: Plan, node: DotNode, spec: StepSpec, *, first: bool) -> StepSpec:
    """Return the step of a node; the first one tells the context what is known of the graph, and the parameters."""
    base = graph_context(plan.dot) if first else {}
    needed = base or plan.is_implicit(node.id) or node.flag("goal_gate") or node.flag("auto_status")
    return replace(spec, run=partial(_Around.run, _Around(plan, node, spec, base))) if needed else spec
