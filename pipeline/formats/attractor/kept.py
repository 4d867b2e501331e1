"""Context keys that every visit leaves behind, in the names of both dialects; only those that change are set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.dot.model import DotGraph
from pipeline.dot.values import plain
from pipeline.engine.routing import Settled
from pipeline.formats.attractor.ending import Ending
from pipeline.formats.attractor.outcome import SATISFYING, SKIPPED
from pipeline.formats.attractor.plan import Plan

GRAPH = "graph."


def graph_context(graph: DotGraph) -> dict[str, Any]:
    """What a run knows of its graph from the beginning: `graph.NAME` for each attribute, and the pipeline's name."""
    known: dict[str, Any] = {f"{GRAPH}{name}": plain(value) for name, value in graph.attributes.items()}
    known.setdefault(f"{GRAPH}goal", graph.goal)
    return {**known, "_pipeline_name": graph.name}


def left_behind(plan: Plan, settled: Settled, ending: Ending) -> dict[str, Any]:
    """Keys that the end of a visit sets; what the handler set itself stands.

    A skipped node is not recorded in them.
    """
    node, seen = settled.node.id, settled.seen
    if ending.outcome == SKIPPED:
        return {}
    found: dict[str, Any] = {
        **ending.own(),
        **({"last_stage": node} if plan.does_work(node) else {}),
        "current_node": node,
        "_current_node": node,
        "_previous_node": str(seen.get("current_node") or ""),
    }
    retries = settled.attempt - 1
    counter = f"internal.retry_count.{node}"
    if retries or counter in seen:
        found[counter] = retries if ending.failed else 0
        found["_retry_count"] = found[counter]
    if node in plan.gates:
        word = "satisfied" if ending.outcome in SATISFYING else "unsatisfied"
        found["_goal_gates"] = {**_mapping(seen.get("_goal_gates")), node: word}
    return {key: value for key, value in found.items() if key not in settled.changes and value != seen.get(key, "")}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
