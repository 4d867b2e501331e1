"""The graph that a run is pinned to, and how far the run came at each of its nodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipeline.app.words import money_between, with_unpriced
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.parser import parse as parse_text
from pipeline.errors import CheckpointCorrupt
from pipeline.records.run import RunState, Spend
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.store.base import Store


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
    spent: dict[str, Spend] = {}
    for key, amount in state.spend.items():
        node = key.step.rpartition("/")[2].partition("#")[0]
        spent.setdefault(node, Spend()).add(amount)
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
