"""A DAG as a graph of the one loop: each task a node that waits for all it depends on; gates behind layers if wanted.

Layers are no barrier: without gates a task runs as soon as what it needs is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipeline.engine.contexts import Reducer
from pipeline.engine.routing import Route, Settled
from pipeline.formats.casys.dag import GATE_MARK, Dag, DagTask
from pipeline.formats.casys.state import FAILED_SAFE
from pipeline.graph.model import ALL, Edge, Graph, Node
from pipeline.records.run import RunState, StepRun

START = f"{GATE_MARK}start"
AGENT, HUMAN = "agent", "human"
#: Tasks that run at once, where a run does not say otherwise.
MAX_PARALLEL = 32


def gate_id(kind: str, layer: int) -> str:
    """The node of the gate behind a layer (counted from 0)."""
    return f"{GATE_MARK}{kind}-{layer}"


def gate_of(node: str) -> tuple[str, int] | None:
    """Kind and layer of a gate's node; None: it is none."""
    kind, dash, layer = node.removeprefix(GATE_MARK).rpartition("-")
    return (kind, int(layer)) if node.startswith(GATE_MARK) and dash else None


def graph_of(dag: Dag, gates: Sequence[str] = (), max_parallel: int = MAX_PARALLEL) -> Graph:
    """The graph of a DAG.

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
    # In whatever order it names them, a task waits for the same.
    document = task.to_json() | {"depends_on": sorted(task.depends_on)}
    attributes = {"fan": START, "task": document}
    return Node(task.id, ALL, task.version, task.effect, task.repeatable, attributes)


def _edges(dag: Dag, gates: Sequence[str]) -> Iterator[Edge]:
    """In the order of layers and declaration: where two tasks set one key of the context, the later one counts."""
    place = {name: index for index, name in enumerate(dag.in_order)}
    for name in dag.in_order:
        task = dag.tasks[name]
        before = sorted(task.depends_on, key=place.__getitem__)
        yield from (Edge(source, name) for source in before or [START])
        layer = dag.layer_of[name]
        if gates and layer:
            yield Edge(gate_id(gates[-1], layer - 1), name)
    for layer, names in enumerate(dag.layers if gates else ()):
        yield from (Edge(name, gate_id(gates[0], layer)) for name in names)
        yield from (Edge(gate_id(one, layer), gate_id(two, layer)) for one, two in pairwise(gates))


def dag_of(graph: Graph) -> Dag:
    """The DAG that a run's graph was made from, without code."""
    return Dag.known([node.attributes["task"] for node in graph.nodes.values() if "task" in node.attributes])


def gates_of(graph: Graph) -> list[str]:
    """Kinds of gates that a run's graph has."""
    return list(dict.fromkeys(node.attributes["gate"] for node in graph.nodes.values() if "gate" in node.attributes))


def parallel_of(graph: Graph) -> int:
    """How many tasks of a run's graph run at once."""
    return int(graph.nodes[graph.start].attributes.get("max_parallel", MAX_PARALLEL))


def visit_of(state: RunState, node: str) -> StepRun | None:
    """The one visit of a node; None: it has not begun, or is void."""
    for number in range(state.visits.get(node, 0), 0, -1):
        step = state.steps.get(f"{node}#{number}")
        if step is not None:
            return step
    return None


def route(settled: Settled) -> Route:
    """All edges, but to what has begun already: a node is visited once. A failure leads nowhere, unless it is safe."""
    reason = ""
    task = settled.node.attributes.get("task", {})
    if settled.failed:
        if not task.get("safe_to_fail"):
            return Route()
        reason = str((settled.error or {}).get("message", "failed"))
    edges = [
        edge.id for edge in settled.graph.outgoing(settled.node.id) if visit_of(settled.state, edge.target) is None
    ]
    return Route(edges, FAILED_SAFE, failed=False, reason=reason) if settled.failed else Route(edges)


class LastWins(Mapping[str, Reducer]):
    """Reducers for whatever key: of two tasks that set one, the later in order of layers and declaration counts."""

    def __getitem__(self, key: str) -> Callable[[Any, Any], Any]:
        return _second

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _second(first: Any, second: Any) -> Any:
    return second
