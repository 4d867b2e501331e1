"""execution.log.json, version 1, as run_dot writes it: a view of a run's records, for tools that read that file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.dot.model import DotGraph
from pipeline.formats.attractor.ending import value_text
from pipeline.formats.attractor.head import ended_visits, following, outcome_of, passed_visits
from pipeline.formats.attractor.outcome import SUCCESS
from pipeline.records.run import RunState, StepRun
from pipeline.records.statuses import COMPLETED, FAILED

_STATUS = {COMPLETED: "success", FAILED: "error"}


def execution_log(graph: DotGraph, state: RunState) -> dict[str, Any]:
    """The document; contexts are as they were after each step in order of ends, their values as text."""
    over = state.status in _STATUS
    passed = passed_visits(ended_visits(state))
    context: dict[str, str] = {}
    steps = []
    for number, step in enumerate(passed, 1):
        before = dict(context)
        context.update({key: value_text(value) for key, value in step.context.items()})
        steps.append(_step(number, step, graph, before, dict(context), passed[:number]))
    if steps and not over:
        steps[-1]["next_node_id"] = next(iter(following(state)), None)
    return {
        "version": 1,
        "goal": graph.goal,
        "started_at": state.started_at,
        "finished_at": state.updated_at if state.status == COMPLETED else None,
        "final_status": _STATUS.get(state.status, "in_progress"),
        "completed_nodes": [step.node for step in passed],
        "steps": steps,
    }


def _step(
    number: int,
    step: StepRun,
    graph: DotGraph,
    before: Mapping[str, str],
    after: Mapping[str, str],
    done: list[StepRun],
) -> dict[str, Any]:
    outcome = outcome_of(step)
    targets = [edge.partition("->")[2].partition("#")[0] for edge in step.edges]
    return {
        "step": number,
        "node_id": step.node,
        "handler_type": graph.kind(step.node) if step.node in graph.nodes else "",
        "context_before": before,
        "outcome": {
            "status": "Success" if outcome["status"] == SUCCESS else outcome["status"],
            "notes": outcome["notes"] or outcome["failure_reason"] or None,
        },
        "context_after": after,
        "next_node_id": targets[0] if targets else None,
        "completed_nodes_after": [each.node for each in done],
    }
