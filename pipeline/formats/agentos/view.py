"""A run of ours at a boundary as the document of a graph run: worked out from its records each time it is asked for."""

from __future__ import annotations

import functools
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.clock import parse_iso
from pipeline.formats.agentos.boundaries import ERROR, INTERRUPT, Boundary, pinned_graph
from pipeline.formats.agentos.documents import GraphCheckpoint
from pipeline.formats.agentos.rows import Row, state_size
from pipeline.graph.model import Graph
from pipeline.graph.readiness import skipped
from pipeline.records.codec import Record
from pipeline.records.documents import token_total, usd
from pipeline.records.fold import Builder
from pipeline.records.kinds import MemoryRead, StepCompleted
from pipeline.records.positions import split
from pipeline.records.run import RunState, StepRun
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import is_reference
from pipeline.store.base import Store

HUMAN, EXTERNAL = "human", "external"


def views(store: Store, wanted: Sequence[Boundary], found: Iterable[Record]) -> Iterator[GraphCheckpoint]:
    """A run as it stood at some of its boundaries, which are given oldest first; read once for all of them.

    Args:
        found: The records of the run, from the first.

    Raises:
        CheckpointCorrupt: A recorded value is missing or damaged.
    """
    for boundary, view in _at(store, wanted, found):
        yield view.document(boundary)


def view_rows(store: Store, wanted: Sequence[Boundary], found: Iterable[Record]) -> Iterator[Row]:
    """What a listing says of boundaries; as `views`."""
    for boundary, view in _at(store, wanted, found):
        yield view.row(boundary)


def _at(store: Store, wanted: Sequence[Boundary], found: Iterable[Record]) -> Iterator[tuple[Boundary, _View]]:
    """Each boundary with the run as it stands there; only until the next one is asked for."""
    left = deque(wanted)
    if not left:
        return
    builder, memory, values = Builder(left[0].place.run_id), _Memory(), _Values(store, left[0].place.run_id)
    for record in found:
        while left and record.seq > left[0].upto:
            yield left[0], _View(values, builder.state, memory)
            left.popleft()
        if not left:
            return
        builder.apply(record)
        memory.apply(record)
    for boundary in left:
        yield boundary, _View(values, builder.state, memory)


class _Values:
    """What a run's records refer to, read once."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id
        self._blobs: dict[str, Any] = {}
        self._graphs: dict[str, Graph | None] = {}

    def whole(self, value: Any) -> Any:
        """The value itself, read back where it stands in a blob."""
        if is_reference(value):
            return self.blob(value["$blob"])
        return dict(value) if isinstance(value, Mapping) else value

    def blob(self, name: str) -> Any:
        """A JSON value by its hash."""
        if name not in self._blobs:
            self._blobs[name] = json.loads(self._store.get_blob(self._run, name))
        return self._blobs[name]

    def graph(self, state: RunState) -> Graph | None:
        """The graph that the run is pinned to; None: it has none, or it cannot be read."""
        pin = state.pins.get("graph", "")
        if pin not in self._graphs:
            self._graphs[pin] = pinned_graph(self._store, state)
        return self._graphs[pin]


class _Memory:
    """What a run read from the user's memory, and how much it wrote to it."""

    def __init__(self) -> None:
        #: {"traceId", "content", "strength"}: each once.
        self.reads: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.asked = 0
        self.written = 0

    def apply(self, record: Record) -> None:
        """Take one record in."""
        fact = record.fact
        if isinstance(fact, StepCompleted):
            self.written += len(fact.writes)
        elif isinstance(fact, MemoryRead):
            self.asked += 1
            for row in fact.traces:
                trace = {"traceId": row["id"], "content": row["content"], "strength": row["strength"]}
                self.reads.setdefault(tuple(trace.values()), trace)


class _View:
    """One state being put down as a document."""

    def __init__(self, values: _Values, state: RunState, memory: _Memory) -> None:
        self._values = values
        self._state = state
        self._memory = memory
        self._graph = values.graph(state)
        #: Visits that ended and stand, in order of their ends; a failure that led on is one.
        done = [step for step in state.steps.values() if step.status == COMPLETED or (step.ended_seq and step.edges)]
        self._done = sorted(done, key=lambda step: step.ended_seq)

    def document(self, boundary: Boundary) -> GraphCheckpoint:
        """The document."""
        state = self._state
        made = GraphCheckpoint(
            id=boundary.id,
            graph_id=state.pipeline,
            run_id=state.run_id,
            node_id=boundary.node,
            timestamp=_milliseconds(boundary.at),
            state=self._partitions(),
            node_results={step.node: self._result(step) for step in self._done if step.status == COMPLETED},
            visited_nodes=[step.node for step in self._done],
            skipped_nodes=skipped(self._graph, state) if self._graph is not None else None,
            pending_edges=self._pending(boundary.kind),
            memory_snapshot=self._snapshot(),
        )
        if state.parent is not None:
            made.extra["parent"] = {"runId": state.parent.get("run"), "seq": state.parent.get("seq")}
        return GraphCheckpoint.from_json(made.to_json())

    def row(self, boundary: Boundary) -> Row:
        """What a listing says of it."""
        state = self._state
        return Row(
            boundary.id, state.run_id, state.pipeline, boundary.node, _milliseconds(boundary.at),
            state_size(self._partitions()), bool(self._memory.reads or state.unapplied), boundary.place,
        )  # fmt: skip

    def _pending(self, kind: str) -> list[str]:
        """Edges chosen whose targets have not begun; those that were cut off, or failed, begin again."""
        state = self._state
        again = {ERROR: list(state.failed_paths), INTERRUPT: [*state.failed_paths, *state.open_paths]}.get(kind, ())
        edges = [edge for path in again for edge, _ in state.steps[path].consumed]
        return list(dict.fromkeys(edge for edge in (*edges, *(token.edge for token in state.tokens)) if edge))

    def _partitions(self) -> dict[str, Any]:
        artifacts: dict[str, Any] = {}
        for step in self._done:
            artifacts.update({name: self._values.blob(blob) for name, blob in step.artifacts.items()})
        return {
            "input": dict(self._state.params),
            "scratch": {key: self._values.whole(value) for key, value in self._state.context.items()},
            "artifacts": artifacts,
            "diagnostics": self._diagnostics(),
        }

    def _diagnostics(self) -> dict[str, Any]:
        state, tokens = self._state, self._tokens()
        reported = int(state.reported.get("total_tokens") or 0), float(state.reported.get("cost_usd") or 0)
        timings: dict[str, Any] = {}
        for step in self._done:
            timings[step.node] = {
                "startMs": _milliseconds(step.started_at),
                "endMs": _milliseconds(step.completed_at or step.started_at),
                "tokensUsed": tokens.get(step.node, 0),
            }
        return {
            "totalTokensUsed": token_total(state.total) + reported[0],
            "totalCostUSD": usd(state.total.usd) + reported[1],
            "possiblyMoreUSD": usd(state.total.high),
            "totalDurationMs": sum(_duration(step) for step in state.steps.values()),
            "nodeTimings": timings,
            "discoveryResults": {},
            "guardrailResults": {},
            "checkpointsSaved": len(state.checkpoints),
            "memoryReads": self._memory.asked,
            "memoryWrites": self._memory.written,
        }

    def _tokens(self) -> Mapping[str, int]:
        """Tokens of all visits and attempts, by node."""
        sums: dict[str, int] = {}
        for key, spend in self._state.spend.items():
            node = split(key.step if "#" in key.step.rpartition("/")[2] else f"{key.step}#1")[0]
            sums[node] = sums.get(node, 0) + token_total(spend)
        return sums

    def _result(self, step: StepRun) -> dict[str, Any]:
        return {
            "effectClass": self._effect(step),
            "output": self._values.whole(step.outputs),
            "durationMs": _duration(step),
        }

    def _effect(self, step: StepRun) -> str:
        """The class that the node declares; human where it asked a person."""
        if any(path == step.path for path, _ in self._state.decisions):
            return HUMAN
        node = self._graph.nodes.get(step.node) if self._graph is not None else None
        return node.effect if node is not None else EXTERNAL

    def _snapshot(self) -> dict[str, Any] | None:
        pending = [
            {"type": row["type"], "content": row["content"], "scope": row["scope"]}
            for writes in self._state.unapplied.values()
            for row in writes
        ]
        if not pending and not self._memory.reads:
            return None
        return {"reads": list(self._memory.reads.values()), "pendingWrites": pending}


def _duration(step: StepRun) -> int:
    """Milliseconds over all attempts of a visit."""
    return round(step.seconds * 1000)


@functools.lru_cache(maxsize=4096)
def _milliseconds(at: str) -> int:
    """Unix epoch milliseconds; 0 where an imported document says no time."""
    try:
        return round(parse_iso(at).timestamp() * 1000)
    except ValueError:
        return 0
