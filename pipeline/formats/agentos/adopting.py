"""A saved document taken over as a run of ours, which its pipeline goes on with."""

from __future__ import annotations

from pipeline.clock import Clock, iso
from pipeline.engine import preflight
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.setup import host
from pipeline.errors import ConfigError, SettingsConflict
from pipeline.formats.agentos.boundaries import pinned_graph
from pipeline.formats.agentos.documents import GraphCheckpoint
from pipeline.formats.agentos.position import Position, params_of
from pipeline.graph.model import Graph
from pipeline.records.codec import Record, encode_fact
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.kinds import Fact, RunEnded, RunStarted, Snapshot
from pipeline.records.lines import encode_line
from pipeline.records.statuses import IN_PROGRESS
from pipeline.records.values import canonical, digest
from pipeline.store.base import Store
from pipeline.store.reading import load


def adopt(store: Store, clock: Clock, source: GraphCheckpoint, graph: Graph) -> str:
    """Make a run that stands where a document does; its id. It is whole with its creation.

    Args:
        graph: Of the pipeline that is to go on with it.

    Raises:
        GraphError, ConfigError: It cannot be a position; see `Position`.
        SecretRefused: Its input holds what looks like a secret.
    """
    params = params_of(source)
    preflight.check_params(params)
    place = Position(source, graph, clock)
    snapshot = Snapshot(place.document(), "fork")
    pinned = canonical(graph.to_json(), "graph")
    blobs, pins = [*place.blobs.values(), pinned], {"graph": digest(pinned)}
    begun = RunStarted(
        source.graph_id, params, {}, {}, pins, parent={"run": source.run_id, "checkpoint": source.id}, host=host()
    )
    now, facts = clock.now(), list[Fact]((begun, snapshot))
    lines = [encode_line(seq, iso(now), 1, encode_fact(fact)) for seq, fact in enumerate(facts, 1)]
    run_id, journal = store.create(b"".join(lines), blobs, at=now)
    try:
        left = RunEnded(IN_PROGRESS, "stopped_as_asked", command=f"./pipeline.sh run FILE.py:NAME --resume {run_id}")
        facts.append(left)
        journal.append(3, [encode_line(3, iso(now), 1, encode_fact(left))])
        state = fold(run_id, (Record(seq, iso(now), 1, fact) for seq, fact in enumerate(facts, 1)))
        journal.write_head(head_document(state, journal.size, list(graph.nodes)), True)
    finally:
        journal.close()
    return run_id


def graph_of(store: Store, graph_id: str, pipeline: Pipeline | None) -> Graph:
    """The graph of a pipeline: as given, else that of its newest run in the store.

    Raises:
        SettingsConflict: Another pipeline was given.
        ConfigError: None was given, and the store has no run of it.
    """
    if pipeline is not None and pipeline.name != graph_id:
        raise SettingsConflict(f"The checkpoint is of the graph {graph_id!r}, and the pipeline is {pipeline.name!r}.")
    if pipeline is not None:
        return pipeline.definition.graph
    for head in store.heads(lambda document: document.get("pipeline") == graph_id):
        graph = None if head.corrupt else pinned_graph(store, load(store, head.run_id))
        if graph is not None:
            return graph
    raise ConfigError(f"The store has no run of {graph_id!r}, so its graph is not known.", hint="Give its Pipeline.")
