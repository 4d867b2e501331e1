"""A checkpoint document as the position of a run: what it says was visited is done, what it leads to is pending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.errors import ConfigError, GraphError
from pipeline.formats.agentos.documents import ARTIFACTS, INPUT, SCRATCH, GraphCheckpoint
from pipeline.graph.model import ANY, Edge, Graph
from pipeline.graph.routing import choose
from pipeline.records.forks import INHERITED
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.records.values import INLINE_LIMIT, canonical, digest, encode_value, is_reference, reference

_SUCCESS = "success"
_START = ("", "")
#: node and visit.
_Visit = tuple[str, int]


def params_of(checkpoint: GraphCheckpoint) -> dict[str, Any]:
    """The input as parameters of a run."""
    return _named(checkpoint.state.get(INPUT), INPUT)


class Position:
    """Where a run begins that goes on from a document."""

    def __init__(self, checkpoint: GraphCheckpoint, graph: Graph, clock: Clock) -> None:
        """Work it out.

        Args:
            graph: The graph of the pipeline.

        Raises:
            GraphError: The document names nodes or edges that the graph lacks.
            ConfigError: Nothing was visited that could carry its scratch.
        """
        self._checkpoint = checkpoint
        self._graph = graph
        self._clock = clock
        #: Values that stand out of line: hash → bytes.
        self.blobs: dict[str, bytes] = {}
        count: dict[str, int] = {}
        self._visits: list[_Visit] = []
        for node in checkpoint.visited_nodes:
            count[node] = count.get(node, 0) + 1
            self._visits.append((node, count[node]))
        self._newest = count
        self._check()
        self._pending = self._tokens()

    def document(self) -> dict[str, Any]:
        """The document of the snapshot that the run begins with; see records.forks."""
        inherited = {
            "steps": [self._row(index) for index in range(len(self._visits))],
            "waiting": [list(token) for token in self._pending] if self._visits else [list(_START)],
            "returning": [], "visits": dict(self._newest), "tasks": [], "attempts": [], "replies": [],
            "decisions": [], "unapplied": self._writes(),
        }  # fmt: skip
        return {"pipeline": self._checkpoint.graph_id, "status": IN_PROGRESS, INHERITED: inherited}

    def _check(self) -> None:
        made, graph = self._checkpoint, self._graph
        lost = [name for name in self._newest if name not in graph.nodes]
        lost += [name for name in made.pending_edges if graph.edge(name) is None]
        if lost:
            raise GraphError(
                f"Checkpoint {made.id} is of another graph: the pipeline {made.graph_id!r} has no {', '.join(lost)}."
            )
        if made.state.get(SCRATCH) and not self._visits:
            raise ConfigError(
                f"Checkpoint {made.id} has a scratch, but no visited node that could have set it.",
                hint="Give its values as input.",
            )

    def _tokens(self) -> list[tuple[str, str]]:
        """(edge, path that chose it): the edges it names, and those to nodes that it says are neither over nor skipped.

        A document that names no edges and no skipped nodes leads to whatever was not visited.
        """
        made, graph = self._checkpoint, self._graph
        edges = list(made.pending_edges)
        if not edges or made.skipped_nodes is not None:
            over = {*self._newest, *(made.skipped_nodes or ())}
            ways = [edge for node in self._newest for edge in choose(graph, node, _SUCCESS)]
            edges += [edge.id for edge in ways if edge.target not in over]
        return [(edge, self._source(edge)) for edge in dict.fromkeys(edges)]

    def _source(self, name: str) -> str:
        edge = self._graph.edge(name)
        if edge is None or edge.source not in self._newest:
            raise GraphError(f"Checkpoint {self._checkpoint.id}: the pending edge {name} comes from no visited node.")
        return _path((edge.source, self._newest[edge.source]))

    def _row(self, index: int) -> dict[str, Any]:
        made, (node, visit), now = self._checkpoint, self._visits[index], iso(self._clock.now())
        path = _path((node, visit))
        result = made.node_results.get(node, {}) if visit == self._newest[node] else {}
        before, after = self._links(index)
        # All visits descend from the first one, so that each sees what it sets.
        scratch = _named(made.state.get(SCRATCH), SCRATCH) if index == 0 else {}
        artifacts = _named(made.state.get(ARTIFACTS), ARTIFACTS) if index == len(self._visits) - 1 else {}
        return {
            "path": path, "status": COMPLETED, "attempt": 1,
            "version": self._graph.nodes[node].version,
            "started_at": now, "completed_at": now, "seconds": result.get("durationMs", 0) / 1000,
            "outputs": self._fit(_named(result.get("output"), "output")),
            "artifacts": {name: self._put(canonical(value, name)) for name, value in artifacts.items()},
            "context": {key: self._fit(value) for key, value in scratch.items()},
            "reads": {}, "outcome": _SUCCESS, "reason": "", "error": None, "checkpoint": self._clock.new_id(),
            "consumed": before or [list(_START)],
            "edges": list(dict.fromkeys([*after, *(edge for edge, source in self._pending if source == path)])),
        }  # fmt: skip

    def _links(self, index: int) -> tuple[list[list[str]], list[str]]:
        """The tokens that a visit consumed, and the edges it chose, as far as the order of the visits tells."""
        node, graph, visits = self._visits[index][0], self._graph, self._visits
        earlier = {name: place for place, (name, _) in enumerate(visits[:index])}
        later = {name for name, _ in visits[index + 1 :]}
        came: list[Edge] = sorted(
            (edge for edge in graph.incoming(node) if edge.source in earlier), key=lambda edge: earlier[edge.source]
        )
        if graph.nodes[node].join == ANY:
            came = came[-1:]
        consumed = [[edge.id, _path(visits[earlier[edge.source]])] for edge in came]
        return consumed, [edge.id for edge in graph.outgoing(node) if edge.target in later]

    def _writes(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Writes that were staged and not committed: applied before anything runs, under keys of the document."""
        memory, name = self._checkpoint.memory_snapshot or {}, self._checkpoint.id
        staged = [{**row, "key": f"{name}/{n}"} for n, row in enumerate(memory.get("pendingWrites") or (), 1)]
        return {_path(self._visits[-1]): staged} if staged and self._visits else {}

    def _fit(self, value: Any) -> Any:
        """The value, or what stands for it where it is long, as in any record."""
        text = encode_value(value)
        if len(text) <= INLINE_LIMIT and not is_reference(value):
            return value
        return reference(self._put(text), len(text))

    def _put(self, data: bytes) -> str:
        name = digest(data)
        self.blobs[name] = data
        return name


def _path(visit: _Visit) -> str:
    return f"{visit[0]}#{visit[1]}"


def _named(value: Any, name: str) -> dict[str, Any]:
    """Values by name; what is no object stands under a name of its own."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {name: value}
