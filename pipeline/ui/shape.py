"""A run's pipeline as it is drawn: a chain of a few steps, a layered graph, or a list; with how each node stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.app.run_graph import drawn_graph
from pipeline.app.run_items import BATCH, PERSON, REUSED, RUNNING, open_word
from pipeline.app.run_status import UNKNOWN, StepView
from pipeline.app.words import one_line
from pipeline.dot.drawing import in_order
from pipeline.dot.model import DotGraph
from pipeline.errors import CheckpointCorrupt
from pipeline.records.run import Spend
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING, SKIPPED
from pipeline.store.base import Store
from pipeline.ui.shapes import shape_of
from pipeline.ui.watch import RunNow

#: Steps of a chain, nodes of a drawing at most; more are listed.
MOST_CHAIN, MOST_DRAWN = 7, 80
#: A layer and a row of the drawing; characters of a label.
_LAYER, _ROW, _LABEL = 144, 60, 19


def shape_of_run(store: Store, now: RunNow, steps: Sequence[StepView]) -> dict[str, Any]:
    """Return the pipeline: {"kind": "chain", "graph" or "list", "nodes", …}.

    Args:
        steps: As `run_status.steps_of` gives them.
    """
    try:
        graph = drawn_graph(store, now.state)
    except CheckpointCorrupt:
        # Imported, or damaged: what is known of its steps.
        nodes = [_node(now, step.step, step.step, [step]) for step in steps]
        return {"kind": "chain" if len(nodes) <= MOST_CHAIN else "list", "nodes": nodes}
    names = in_order(graph)
    by_node: dict[str, list[StepView]] = {}
    for step in steps:
        if step.path:
            by_node.setdefault(now.state.steps[step.path].node, []).append(step)
    nodes = [_node(now, name, graph.nodes[name].label, by_node.get(name, [])) for name in names]
    if len(names) <= MOST_CHAIN and _is_chain(graph, names):
        return {"kind": "chain", "nodes": nodes}
    if len(names) > MOST_DRAWN:
        return {"kind": "list", "nodes": nodes}
    return {"kind": "graph", **_drawn(graph, names, nodes)}


def step_word(now: RunNow, step: StepView) -> str:
    """Return how a visit stands, as pages say it."""
    state = now.state
    if step.shown == UNKNOWN:
        return "outcome unknown"
    if step.status == IN_PROGRESS:
        if step.path in state.questions:
            return PERSON
        word = open_word(state, owned=now.owned)
        waits = word == RUNNING and any(call.path == step.path and call.batch for call in state.open_calls.values())
        return BATCH if waits else word
    if step.status == PENDING and state.status == COMPLETED:
        return SKIPPED
    if step.status == COMPLETED and step.error:
        return FAILED
    return REUSED if step.inherited else step.status


def _node(now: RunNow, name: str, label: str, visits: Sequence[StepView]) -> dict[str, Any]:
    """Return a node: its last visit, and what all of them took."""
    last = visits[-1] if visits else StepView(name)
    spend = Spend()
    for visit in visits:
        if visit.spend is not None:
            spend.add(visit.spend)
    word = step_word(now, last)
    symbol, css = shape_of(word)
    usd = spend.usd + spend.low or None
    return {
        "id": name, "label": one_line(label, 60), "short": one_line(label, _LABEL), "word": word, "symbol": symbol,
        "css": css, "visits": len(visits), "attempt": last.attempt, "made": last.items_completed,
        "seconds": None if last.status == IN_PROGRESS else sum(each.duration_seconds or 0 for each in visits) or None,
        "usd": float(usd) if usd else last.reported_usd, "unpriced": spend.unpriced,
        "error": one_line((last.error or {}).get("message", ""), 200) if last.status != COMPLETED else "",
    }  # fmt: skip


def _is_chain(graph: DotGraph, names: Sequence[str]) -> bool:
    """Return whether each node leads to the next one and nowhere else."""
    following = [[edge.target for edge in graph.outgoing(name)] for name in names]
    return following == [*([name] for name in names[1:]), []]


def _drawn(graph: DotGraph, names: Sequence[str], nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return nodes and edges with their places: layers from left to right, each below the middle of what led to it."""
    number = {name: index for index, name in enumerate(names)}
    layer: dict[str, int] = {}
    before: Mapping[str, list[str]] = {
        name: [edge.source for edge in graph.incoming(name) if number[edge.source] < number[name]] for name in names
    }
    for name in names:
        layer[name] = max((layer[source] + 1 for source in before[name]), default=0)
    row: dict[str, float] = {}
    for depth in range(max(layer.values(), default=0) + 1):
        middle = {name: _mean([row[source] for source in before[name]]) for name in names if layer[name] == depth}
        free = -1.0
        for name in sorted(middle, key=lambda each: (middle[each], number[each])):
            row[name] = free = max(middle[name], free + 1)
    least = min(row.values(), default=0)
    for node in nodes:
        node["x"], node["y"] = layer[node["id"]] * _LAYER + 16, round((row[node["id"]] - least) * _ROW) + 24
    place = {node["id"]: (node["x"], node["y"]) for node in nodes}
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in graph.edges:
        if edge.source in place and edge.target in place:
            labels.setdefault((edge.source, edge.target), []).append(edge.label or edge.condition)
    edges = [
        {"d": _curve(place[source], place[target]), "label": one_line(", ".join(filter(None, said)), 60),
         "back": number[target] <= number[source]}
        for (source, target), said in labels.items()
    ]  # fmt: skip
    width, height = (max((node[axis] for node in nodes), default=0) for axis in ("x", "y"))
    return {"nodes": nodes, "edges": edges, "width": width + _LAYER, "height": height + _ROW}


def _mean(rows: Sequence[float]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return a line from the right of one node to the left of another; one that leads back runs below."""
    (x, y), (u, v) = (start[0] + 9, start[1]), (end[0] - 9, end[1])
    if u > x:
        bend = (u - x) // 2
        return f"M{x} {y}C{x + bend} {y} {u - bend} {v} {u} {v}"
    low = max(y, v) + _ROW // 2
    return f"M{x} {y}C{x + 40} {low} {u - 40} {low} {u} {v}"
