"""A DAG as a graph of the one loop: each task a node that waits for all it depends on; gates behind layers if wanted.

Layers are no barrier: without gates a task runs as soon as what it needs is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipeline.engine.contexts import Reducer
from pipeline.engine.routing import Route, Settled
from pipeline.formats.casys.dag import FAILED_SAFE, GATE_MARK, Dag, DagTask
from pipeline.graph.model import ALL, Edge, Graph, Node
from pipeline.records.run import RunState, StepRun
from pipeline.records.statuses import COMPLETED

#: The pipeline of layered runs, and the source of their documents.
PIPELINE, SOURCE = "layers", "casys"
START = f"{GATE_MARK}start"
AGENT, HUMAN = "agent", "human"
#: Tasks that run at once, by default.
MAX_PARALLEL = 32


def gate_id(kind: str, layer: int) -> str:
    """Return the node of the gate behind a layer (counted from 0)."""
    return f"{GATE_MARK}{kind}-{layer}"


def gate_of(node: str) -> tuple[str, int] | None:
    """Return kind and layer of a gate's node; None for another node."""
    kind, dash, layer = node.removeprefix(GATE_MARK).rpartition("-")
    return (kind, int(layer)) if node.startswith(GATE_MARK) and dash else None


def node_of(path: str) -> str:
    """Return the node of a visit's path."""
    return path.rpartition("#")[0]


def graph_of(dag: Dag, gates: Sequence[str] = (), max_parallel: int = MAX_PARALLEL) -> Graph:
    """Return the graph of a DAG.

    Args:
        gates: Kinds of gates behind each layer, in the order in which they are asked.
        max_parallel: Tasks that run at once.
    """
    nodes = [Node(START, attributes={"max_parallel": max_parallel})]
    nodes += [_node(task) for task in dag.tasks.values()]
    nodes += [
        Node(gate_id(kind, layer), ALL, effect="human", attributes={"gate": kind})
        for layer in range(len(dag.layers))
        for kind in gates
    ]
    return Graph.of(nodes, _edges(dag, gates), START)


def _node(task: DagTask) -> Node:
    # The order in which a task names what it waits for changes nothing.
    document = task.to_json() | {"depends_on": sorted(task.depends_on)}
    return Node(task.id, ALL, task.version, task.effect, task.repeatable, {"fan": START, "task": document})


def _edges(dag: Dag, gates: Sequence[str]) -> Iterator[Edge]:
    """Yield edges by layer and declaration: of two tasks that set one context key the later one counts."""
    place = {name: index for index, name in enumerate(dag.in_order)}
    for name in dag.in_order:
        before = sorted(dag.tasks[name].depends_on, key=place.__getitem__)
        yield from (Edge(source, name) for source in before or [START])
        layer = dag.layer_of[name]
        if gates and layer:
            yield Edge(gate_id(gates[-1], layer - 1), name)
    for layer, names in enumerate(dag.layers if gates else ()):
        yield from (Edge(name, gate_id(gates[0], layer)) for name in names)
        yield from (Edge(gate_id(one, layer), gate_id(two, layer)) for one, two in pairwise(gates))


def dag_of(graph: Graph) -> Dag:
    """Return the DAG that a run's graph was made from, without code."""
    return Dag.known([node.attributes["task"] for node in graph.nodes.values() if "task" in node.attributes])


def gates_of(graph: Graph) -> list[str]:
    """Return the kinds of gates that a run's graph has."""
    return list(dict.fromkeys(node.attributes["gate"] for node in graph.nodes.values() if "gate" in node.attributes))


def parallel_of(graph: Graph) -> int:
    """Return how many tasks of a run's graph run at once."""
    return int(graph.nodes[graph.start].attributes.get("max_parallel", MAX_PARALLEL))


def visit_of(state: RunState, node: str) -> StepRun | None:
    """Return the one visit of a node; None if it has not begun, or is void."""
    for number in range(state.visits.get(node, 0), 0, -1):
        step = state.steps.get(f"{node}#{number}")
        if step is not None:
            return step
    return None


def done_tasks(state: RunState, dag: Dag) -> list[str]:
    """Return the ids of the completed tasks, in order of layers and declaration."""
    found = ((name, visit_of(state, name)) for name in dag.in_order)
    return [name for name, step in found if step is not None and step.status == COMPLETED]


def route(settled: Settled) -> Route:
    """Return all edges except those to visited nodes; a failure leads nowhere, unless it is safe."""
    failed = settled.failed
    if failed and not settled.node.attributes.get("task", {}).get("safe_to_fail"):
        return Route()
    edges = [
        edge.id for edge in settled.graph.outgoing(settled.node.id) if visit_of(settled.state, edge.target) is None
    ]
    if not failed:
        return Route(edges)
    reason = str((settled.error or {}).get("message", "failed"))
    return Route(edges, FAILED_SAFE, failed=False, reason=reason)


class LastWins(Mapping[str, Reducer]):
    """Reducers for any key: of two tasks that set it, the later in order of layers and declaration counts."""

    def __getitem__(self, key: str) -> Callable[[Any, Any], Any]:
        return lambda first, second: second

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
