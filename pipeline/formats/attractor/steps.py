"""What is done around a handler: missing verdicts, joins that no fan-in draws, what a run knows at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotNode
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.formats.attractor.handlers.fan import RESULTS, branches_of, joined
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.kept import graph_context
from pipeline.formats.attractor.outcome import FAIL, SUCCESS, failure, to_engine
from pipeline.formats.attractor.plan import Plan

_AUTO = "auto-status: handler completed without writing status"


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
        if self.plan.is_implicit(self.node.id) and any(arrival.branch for arrival in ctx.arrivals):
            visit = Visit(ctx, self.node, self.plan.dot)
            branches = branches_of(visit)
            more[RESULTS] = [branch.to_json() for branch in branches]
            together = joined(visit, branches)
            # Too few of them came to something: the node is not worked, and a diamond is told what they came to.
            if together.status == FAIL:
                return _with(to_engine(replace(together, failure_class="deterministic")), more)
            if self.plan.types[self.node.id] == kinds.CONDITIONAL:
                return _with(to_engine(together), more)
        return _with(self._verdict(self.spec.run(ctx)), more)

    def _verdict(self, made: Any) -> Any:
        """An outcome that was left open: a goal gate fails then, anything else has succeeded."""
        if not isinstance(made, Outcome) or made.label.strip() or made.error is not None:
            return made
        if self.node.flag("goal_gate"):
            said = failure("A goal gate that gives no verdict has not been passed.", "deterministic")
            return replace(to_engine(said), outputs=made.outputs, context=made.context)
        notes = {"notes": _AUTO} if self.node.flag("auto_status") else {}
        return replace(made, label=SUCCESS, outputs={**notes, **made.outputs})


def around(plan: Plan, node: DotNode, spec: StepSpec, *, first: bool) -> StepSpec:
    """The step of a node; the first one tells the context what is known of the graph, and the run's parameters."""
    base = graph_context(plan.dot) if first else {}
    needed = base or plan.is_implicit(node.id) or node.flag("goal_gate") or node.flag("auto_status")
    return replace(spec, run=partial(_Around.run, _Around(plan, node, spec, base))) if needed else spec


def _with(made: Any, more: Mapping[str, Any]) -> Any:
    """What a handler made, with context keys added below its own."""
    if not more:
        return made
    if isinstance(made, Outcome):
        return replace(made, context={**more, **made.context})
    return Outcome({} if made is None else made, context=more)
