"""A run's pipeline as it is drawn: a chain of a few steps, a layered graph, or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.app.run_graph import nodes_of
from pipeline.app.run_status import StepView
from pipeline.app.words import one_line
from pipeline.dot.model import DotGraph
from pipeline.records.run import RunState
from pipeline.store.base import Store

#: Steps of a chain, nodes of a drawing at most; more are listed.
MOST_CHAIN, MOST_DRAWN = 7, 80
#: A layer and a row of the drawing, for labels of run_graph.SHORT characters.
_LAYER, _ROW = 144, 60


def shape_of_run(store: Store, state: RunState, steps: Sequence[StepView], *, owned: bool) -> dict[str, Any]:
    """Return the pipeline: {"kind": "chain", "graph" or "list", "nodes", …}; see `run_graph.nodes_of`."""
    graph, nodes = nodes_of(store, state, steps, owned=owned)
    names = [node["id"] for node in nodes]
    if len(names) <= MOST_CHAIN and (graph is None or _is_chain(graph, names)):
        return {"kind": "chain", "nodes": nodes}
    if graph is None or len(names) > MOST_DRAWN:
        return {"kind": "list", "nodes": nodes}
    return {"kind": "graph", **_drawn(graph, names, nodes)}


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
