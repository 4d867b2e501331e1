"""A saved document taken over as a run of ours, which its pipeline goes on with."""

from __future__ import annotations

from pipeline.clock import Clock, iso
from pipeline.engine import preflight
from pipeline.engine.setup import host
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


def adopt(store: Store, clock: Clock, source: GraphCheckpoint) -> str:
    """Make a run that stands where a document does; its id. It is whole with its creation.

    Raises:
        GraphError, ConfigError: It cannot be a position; see `Position`.
        SecretRefused: Its input holds what looks like a secret.
    """
    params = params_of(source)
    preflight.check_params(params)
    graph = known_graph(store, source.graph_id)
    place = Position(source, graph, clock)
    snapshot = Snapshot(place.document(), "fork")
    blobs, pins = list(place.blobs.values()), {}
    if graph is not None:
        text = canonical(graph.to_json(), "graph")
        pins["graph"] = digest(text)
        blobs.append(text)
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
        nodes = list(graph.nodes) if graph is not None else list(dict.fromkeys(source.visited_nodes))
        journal.write_head(head_document(state, journal.size, nodes), True)
    finally:
        journal.close()
    return run_id


def known_graph(store: Store, graph_id: str) -> Graph | None:
    """The graph of the newest run of a pipeline in the store; None: there is none."""
    for head in store.heads(lambda document: document.get("pipeline") == graph_id):
        if not head.corrupt:
            return pinned_graph(store, load(store, head.run_id))
    return None
