"""What a saved document becomes: a fork of it, or a run of ours that its pipeline resumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.engine import preflight
from pipeline.engine.amendment import begin_run, pinned_graph
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.setup import host
from pipeline.errors import ConfigError, GraphError, SettingsConflict
from pipeline.formats.agentos.documents import ARTIFACTS, INPUT, PARTITIONS, SCRATCH, GraphCheckpoint
from pipeline.formats.packer import Gathered, packed_value
from pipeline.formats.shelf import FIRST, checkpoint_id, position_document, visit_row
from pipeline.graph.model import ANY, Graph, choose
from pipeline.records.kinds import RunEnded, RunStarted, Snapshot
from pipeline.records.statuses import IN_PROGRESS
from pipeline.records.values import canonical, digest
from pipeline.store.base import Store
from pipeline.store.reader import load

#: Partition of a document → what a fork of a run of ours calls it.
_OWN = {INPUT: "params", SCRATCH: "context"}


def check_patch(patch: Mapping[str, Any]) -> None:
    """Refuse a patch that names no partition with a ConfigError."""
    for name in patch:
        if name not in PARTITIONS:
            raise ConfigError(f"A patch of {name!r}: it changes {', '.join(PARTITIONS)}.", code="invalid_patch")


def forked(source: GraphCheckpoint, patch: Mapping[str, Any], clock: Clock) -> GraphCheckpoint:
    """Return a document's fork: another run, id and time, its parent, and the state as patched, key by key."""
    document = source.to_json()
    state = document["state"]
    for name, change in patch.items():
        before = state.get(name)
        both = isinstance(before, Mapping) and isinstance(change, Mapping)
        state[name] = {**before, **change} if both else change
    document |= {
        "id": checkpoint_id(clock.new_id()),
        "runId": checkpoint_id(clock.new_id()),
        "timestamp": round(clock.now().timestamp() * 1000),
        "parent": {"runId": source.run_id, "id": source.id},
    }
    return GraphCheckpoint.from_json(document)


def own_changes(patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch as the values that a fork of a run of ours is given.

    Raises:
        ConfigError: It changes what only the run's own records say, or is no object.
    """
    given: dict[str, Any] = {}
    for name, change in patch.items():
        if not change:
            continue
        if name not in _OWN:
            raise ConfigError(
                f"{name} of a run of ours is what its records say; a fork changes {' and '.join(_OWN)}.",
                code="invalid_patch", hint="Change what the step that made it has read.",
            )  # fmt: skip
        if not isinstance(change, Mapping):
            raise ConfigError(f"A patch of {name} is an object of keys and values.", code="invalid_patch")
        given.update({f"{_OWN[name]}.{key}": value for key, value in change.items()})
    return given


def graph_of(store: Store, graph_id: str, pipeline: Pipeline | None) -> Graph:
    """Return the graph of a pipeline: as given, else that of its newest run in the store.

    Raises:
        SettingsConflict: Another pipeline was given.
        ConfigError: None was given, and the store has no run of it.
    """
    if pipeline is not None:
        if pipeline.name != graph_id:
            raise SettingsConflict(
                f"The checkpoint is of the graph {graph_id!r}, the pipeline is {pipeline.name!r}.", code="other_graph"
            )
        return pipeline.definition.graph
    for head in store.heads(lambda document: document.get("pipeline") == graph_id):
        graph = None if head.corrupt else pinned_graph(store, load(store, head.run_id))
        if graph is not None:
            return graph
    raise ConfigError(
        f"The store has no run of {graph_id!r}, so its graph is not known.",
        code="unknown_graph",
        hint="Give its Pipeline.",
    )


def adopt(store: Store, clock: Clock, source: GraphCheckpoint, graph: Graph) -> str:
    """Make a run that begins at a document, atomically, and return its id.

    Args:
        graph: Of the pipeline that is to resume it.

    Raises:
        GraphError: The document names nodes or edges that the graph lacks.
        ConfigError: It has a scratch, and nothing was visited that could carry it.
        SecretRefused: Its input holds what looks like a secret.
    """
    params = _named(source.state.get(INPUT), INPUT)
    preflight.check_params(params)
    blobs, pinned = Gathered(), canonical(graph.to_json(), "graph")
    snapshot = Snapshot(_position(source, graph, clock, blobs), "fork")
    pins, parent = {"graph": digest(pinned)}, {"run": source.run_id, "checkpoint": source.id}
    started = RunStarted(source.graph_id, params, {}, {}, pins, parent=parent, host=host())

    def left(run_id: str) -> RunEnded:
        command = f"./pipeline.sh run FILE.py:NAME --resume {run_id}"
        return RunEnded(IN_PROGRESS, "stopped_as_asked", command=command)

    return begin_run(store, clock, [started, snapshot], [*blobs.values(), pinned], left)


def _position(made: GraphCheckpoint, graph: Graph, clock: Clock, blobs: Gathered) -> dict[str, Any]:
    """Return the position: what was visited is done, what it leads to is pending."""
    newest: dict[str, int] = {}
    visits: list[str] = []
    for node in made.visited_nodes:
        newest[node] = newest.get(node, 0) + 1
        visits.append(f"{node}#{newest[node]}")
    _check_graph(made, graph)
    pending = _pending(made, graph, newest)
    links = _links(made.visited_nodes, visits, graph)
    scratch, artifacts = (_named(made.state.get(name), name) for name in (SCRATCH, ARTIFACTS))
    rows, at = [], iso(clock.now())
    for index, (node, path) in enumerate(zip(made.visited_nodes, visits, strict=True)):
        consumed, chosen = links[index]
        result = made.node_results.get(node, {}) if path == f"{node}#{newest[node]}" else {}
        # All visits descend from the first one, so that each sees the scratch; the last one has saved the artifacts.
        values = scratch if index == 0 else {}
        saved = artifacts if index == len(visits) - 1 else {}
        rows.append(visit_row(
            graph, path, outputs=packed_value(_named(result.get("output"), "output"), "output", blobs.put),
            context={key: packed_value(value, key, blobs.put) for key, value in values.items()},
            artifacts={name: blobs.put(canonical(value, name)) for name, value in saved.items()}, at=at,
            seconds=result.get("durationMs", 0) / 1000, checkpoint=clock.new_id(), consumed=consumed,
            edges=list(dict.fromkeys([*chosen, *(edge for edge, source in pending if source == path)])),
        ))  # fmt: skip
    staged = (made.memory_snapshot or {}).get("pendingWrites") or ()
    # Applied before anything runs, under keys of the document, so once.
    writes = [{**row, "key": f"{made.id}/{number}"} for number, row in enumerate(staged, 1)]
    unapplied = {visits[-1]: writes} if writes and visits else {}
    return position_document(made.graph_id, rows, pending if visits else [FIRST], unapplied)


def _check_graph(made: GraphCheckpoint, graph: Graph) -> None:
    lost = [name for name in dict.fromkeys(made.visited_nodes) if name not in graph.nodes]
    lost += [name for name in made.pending_edges if graph.edge(name) is None]
    if lost:
        raise GraphError(
            f"Checkpoint {made.id} is of another graph: the pipeline {made.graph_id!r} has no {', '.join(lost)}.",
            code="other_graph",
        )
    if made.state.get(SCRATCH) and not made.visited_nodes:
        raise ConfigError(
            f"Checkpoint {made.id} has a scratch, but no visited node that could have set it.",
            code="scratch_without_visits", hint="Give its values as input.",
        )  # fmt: skip


def _pending(made: GraphCheckpoint, graph: Graph, newest: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return (edge, path that chose it): the named edges, and those to nodes that are neither over nor skipped.

    A document that names no edges and no skipped nodes leads to whatever was not visited.
    """
    edges = list(made.pending_edges)
    if not edges or made.skipped_nodes is not None:
        over = {*newest, *(made.skipped_nodes or ())}
        ways = [edge for node in newest for edge in choose(graph, node, "success")]
        edges += [edge.id for edge in ways if edge.target not in over]
    found = []
    for name in dict.fromkeys(edges):
        edge = graph.edge(name)
        if edge is None or edge.source not in newest:
            raise GraphError(
                f"Checkpoint {made.id}: the pending edge {name} comes from no visited node.",
                code="pending_edge_without_visit",
            )
        found.append((name, f"{edge.source}#{newest[edge.source]}"))
    return found


def _links(nodes: list[str], visits: list[str], graph: Graph) -> list[tuple[list[list[str]], list[str]]]:
    """Return for each visit the tokens it consumed and the edges it chose, as far as the order of the visits tells."""
    found = []
    earlier: dict[str, int] = {}
    for index, node in enumerate(nodes):
        came = sorted(
            (edge for edge in graph.incoming(node) if edge.source in earlier), key=lambda edge: earlier[edge.source]
        )
        came = came[-1:] if graph.nodes[node].join == ANY else came
        later = set(nodes[index + 1 :])
        consumed = [[edge.id, visits[earlier[edge.source]]] for edge in came]
        found.append((consumed, [edge.id for edge in graph.outgoing(node) if edge.target in later]))
        earlier[node] = index
    return found


def _named(value: Any, name: str) -> dict[str, Any]:
    """Return values by name; what is no object gets the name of its own."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {name: value}
