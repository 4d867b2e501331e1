"""The graph that a run is pinned to, and how far the run came at each of its nodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.app.run_status import UNKNOWN, StepView
from pipeline.app.run_trail import BATCH, PERSON, REUSED, RUNNING, open_word
from pipeline.app.words import money_between, one_line, with_unpriced
from pipeline.dot.drawing import in_order
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.parser import parse as parse_text
from pipeline.errors import CheckpointCorrupt
from pipeline.records.run import RunState, Spend, spend_by
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING, SKIPPED
from pipeline.store.base import Store

#: Characters of a label that is drawn.
SHORT = 19


def drawn_graph(store: Store, state: RunState) -> DotGraph:
    """Return the graph a run is pinned to: its DOT text, or that of a pipeline in Python.

    Raises:
        CheckpointCorrupt: It cannot be read.
    """
    try:
        if "dot" in state.pins:
            return parse_text(json.loads(store.get_blob(state.run_id, state.pins["dot"])), state.run_id)
        if "graph" in state.pins:
            return _plain_graph(state.pipeline, json.loads(store.get_blob(state.run_id, state.pins["graph"])))
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointCorrupt(f"Run {state.run_id}: its graph cannot be read: {error}.") from error
    raise CheckpointCorrupt(
        f"Run {state.run_id} has no graph.", code="no_graph", hint="It was imported from a document."
    )


def _plain_graph(name: str, pinned: Mapping[str, Any]) -> DotGraph:
    nodes = {row["id"]: DotNode(row["id"], {"type": "step"}) for row in pinned["nodes"]}
    edges = [DotEdge(row["source"], row["target"], {"label": row["when"]} if row.get("when") else {}, row["id"])
             for row in pinned["edges"]]  # fmt: skip
    return DotGraph(name, {}, nodes, tuple(edges))


def drawn_marks(state: RunState) -> dict[str, tuple[str, str]]:
    """Return by node its last visit's status, how often it was visited, and what all visits cost."""
    spent = spend_by(state, lambda key: key.step.rpartition("/")[2].partition("#")[0])
    visits = Counter(step.node for step in state.steps.values())
    marks = {}
    for step in state.steps.values():
        status = "running" if step.status == IN_PROGRESS else step.status
        if step.path in state.questions:
            status = "waiting"
        elif step.status == COMPLETED and step.error:
            status = "failed"
        if visits[step.node] > 1:
            status += f", {visits[step.node]} visits"
        spend, usd = spent.get(step.node), ""
        if spend is not None and spend.calls:
            high = None if spend.unbounded else spend.usd + spend.high
            usd = with_unpriced(money_between(spend.usd + spend.low, high), spend.unpriced)
        marks[step.node] = (status, usd)
    return marks


def nodes_of(
    store: Store, state: RunState, steps: Sequence[StepView], *, owned: bool
) -> tuple[DotGraph | None, list[dict[str, Any]]]:
    """Return the graph of a run, and how each of its nodes stands, in the order in which a run meets them.

    Args:
        steps: As `run_status.steps_of` gives them; they are the nodes where no graph can be read.
    """
    try:
        graph = drawn_graph(store, state)
    except CheckpointCorrupt:
        # Imported, or damaged: what is known of its steps.
        return None, [_node(state, step.step, step.step, [step], owned=owned) for step in steps]
    by_node: dict[str, list[StepView]] = {}
    for step in steps:
        if step.path:
            by_node.setdefault(state.steps[step.path].node, []).append(step)
    nodes = [
        _node(state, name, graph.nodes[name].label, by_node.get(name, []), owned=owned) for name in in_order(graph)
    ]
    return graph, nodes


def step_word(state: RunState, step: StepView, *, owned: bool) -> str:
    """Return how a visit stands, as pages say it."""
    if step.shown == UNKNOWN:
        return "outcome unknown"
    if step.status == IN_PROGRESS:
        if step.path in state.questions or (not owned and state.detail == "waiting_for_human"):
            return PERSON
        word = open_word(state, owned=owned)
        waits = word == RUNNING and any(call.path == step.path and call.batch for call in state.open_calls.values())
        return BATCH if waits else word
    if step.status == PENDING and state.status == COMPLETED:
        return SKIPPED
    if step.status == COMPLETED and step.error:
        return FAILED
    return REUSED if step.inherited else step.status


def _node(state: RunState, name: str, label: str, visits: Sequence[StepView], *, owned: bool) -> dict[str, Any]:
    """Return a node: its last visit, and what all of them took."""
    last = visits[-1] if visits else StepView(name)
    spend = Spend()
    for visit in visits:
        if visit.spend is not None:
            spend.add(visit.spend)
    usd = spend.usd + spend.low or None
    return {
        "id": name, "label": one_line(label, 60), "short": one_line(label, SHORT),
        "word": step_word(state, last, owned=owned), "visits": len(visits), "attempt": last.attempt,
        "made": last.items_completed,
        "seconds": None if last.status == IN_PROGRESS else sum(each.duration_seconds or 0 for each in visits) or None,
        "usd": float(usd) if usd else last.reported_usd, "unpriced": spend.unpriced,
        "error": one_line((last.error or {}).get("message", ""), 200) if last.status != COMPLETED else "",
    }  # fmt: skip
