"""A person's word that a step whose end is unknown is done: recorded as its completion, its way on chosen as always."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.contexts import Contexts
from pipeline.engine.routing import Settled, by_label
from pipeline.engine.setup import Definition
from pipeline.errors import ConfigError, GraphError
from pipeline.records.kinds import StepCompleted
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.values import decode_value, encode_value

REASON = "declared done"


def declared_done(
    definition: Definition, state: RunState, name: str, outputs: Mapping[str, Any], clock: Clock
) -> StepCompleted:
    """The completion of a visit that was started and has no end.

    Args:
        name: Its step as people name it, or its path.
        outputs: What it is said to have made; JSON.

    Raises:
        ConfigError: No such visit is without an end; names those that are.
    """
    run = _open(state, name)
    node = definition.graph.nodes.get(run.node)
    if node is None:
        raise GraphError(f"The pipeline has no step {run.node!r} any more.")
    made = decode_value(encode_value(dict(outputs), f"{run.node} outputs"))
    contexts = Contexts(definition.graph, state, definition.reducers)
    route = (definition.router or by_label)(Settled(
        definition.graph, node, run.path, run.visit, run.attempt, "success", False, None, {},
        contexts.seen(run.consumed, run.node), {}, run.consumed, state,
    ))  # fmt: skip
    return StepCompleted(
        run.path, made, clock.new_id(), route.edges, route.outcome or "success", dict(route.context),
        attempt=run.attempt, reason=REASON,
    )  # fmt: skip


def _open(state: RunState, name: str) -> StepRun:
    found = [path for path in state.open_paths if name in (path, bare(path), path.rpartition("#")[0])]
    if len(found) != 1:
        there = ", ".join(bare(path) for path in state.open_paths) or "none"
        what = "is without an end more than once" if found else "is not without an end"
        raise ConfigError(f"{name} {what} in run {state.run_id}.", hint=f"Steps without an end: {there}.")
    return state.steps[found[0]]
