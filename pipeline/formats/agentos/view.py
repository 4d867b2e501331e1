"""A run of ours at a boundary as the document of a graph run: worked out from its records at each use."""

from __future__ import annotations

import functools
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.clock import parse_iso
from pipeline.engine.amendment import pinned_graph
from pipeline.formats.agentos.boundaries import ERROR, INTERRUPT, NodeBoundary
from pipeline.formats.agentos.documents import CheckpointRow, GraphCheckpoint, state_size
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


def views(store: Store, wanted: Sequence[NodeBoundary], found: Iterable[Record]) -> Iterator[tuple[NodeBoundary, View]]:
    """Yield each boundary of a run with the run as it stood there, valid until the next one is asked for.

    Args:
        wanted: Oldest first; the run is read once for all of them.
        found: The records of the run, from the first.
    """
    ahead = deque(wanted)
    if not ahead:
        return
    run_id = ahead[0].place.run_id
    builder, memory, values = Builder(run_id), _MemoryUse(), _RecordedValues(store, run_id)
    for record in found:
        while ahead and record.seq > ahead[0].upto:
            yield ahead.popleft(), View(values, builder.state, memory)
        if not ahead:
            return
        builder.apply(record)
        memory.apply(record)
    for boundary in ahead:
        yield boundary, View(values, builder.state, memory)


class _RecordedValues:
    """What a run's records refer to, read once."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id
        self._blobs: dict[str, Any] = {}
        self._graphs: dict[str, Graph | None] = {}

    def whole(self, value: Any) -> Any:
        """Return the value itself, read back where it is in a blob."""
        if is_reference(value):
            return self.blob(value["$blob"])
        return dict(value) if isinstance(value, Mapping) else value

    def blob(self, name: str) -> Any:
        if name not in self._blobs:
            self._blobs[name] = json.loads(self._store.get_blob(self._run, name))
        return self._blobs[name]

    def graph(self, state: RunState) -> Graph | None:
        """Return the graph that the run is pinned to; None if it has none, or it cannot be read."""
        pin = state.pins.get("graph", "")
        if pin not in self._graphs:
            self._graphs[pin] = pinned_graph(self._store, state)
        return self._graphs[pin]


class _MemoryUse:
    """What a run read from the user's memory, and how much it wrote to it."""

    def __init__(self) -> None:
        #: {"traceId", "content", "strength"}: each once.
        self.reads: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.asked = 0
        self.written = 0

    def apply(self, record: Record) -> None:
        fact = record.fact
        if isinstance(fact, StepCompleted):
            self.written += len(fact.writes)
        elif isinstance(fact, MemoryRead):
            self.asked += 1
            for row in fact.traces:
                trace = {"traceId": row["id"], "content": row["content"], "strength": row["strength"]}
                self.reads.setdefault(tuple(trace.values()), trace)


class View:
    """One state of a run, as a document or as a row."""

    def __init__(self, values: _RecordedValues, state: RunState, memory: _MemoryUse) -> None:
        self._values = values
        self._state = state
        self._memory = memory
        self._graph = values.graph(state)
        #: Visits that ended and stand, in order of their ends; a failure that led on is one.
        done = [step for step in state.steps.values() if step.status == COMPLETED or (step.ended_seq and step.edges)]
        self._done = sorted(done, key=lambda step: step.ended_seq)

    def document(self, boundary: NodeBoundary) -> GraphCheckpoint:
        """Return the document; CheckpointCorrupt where a recorded value is missing or damaged."""
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

    def row(self, boundary: NodeBoundary) -> CheckpointRow:
        """Return what a listing shows of it; raises as `document`."""
        state = self._state
        return CheckpointRow(
            boundary.id, state.run_id, state.pipeline, boundary.node, _milliseconds(boundary.at),
            state_size(self._partitions()), bool(self._memory.reads or state.unapplied), boundary.place,
        )  # fmt: skip

    def _pending(self, kind: str) -> list[str]:
        """Return the edges chosen whose targets have not begun; visits that were cut off, or failed, begin again."""
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
        state = self._state
        tokens: dict[str, int] = {}
        for key, spend in state.spend.items():
            node = split(key.step if "#" in key.step.rpartition("/")[2] else f"{key.step}#1")[0]
            tokens[node] = tokens.get(node, 0) + token_total(spend)
        return {
            "totalTokensUsed": token_total(state.total) + int(state.reported.get("total_tokens") or 0),
            "totalCostUSD": usd(state.total.usd) + float(state.reported.get("cost_usd") or 0),
            "possiblyMoreUSD": usd(state.total.high),
            "totalDurationMs": sum(_duration(step) for step in state.steps.values()),
            "nodeTimings": {
                step.node: {
                    "startMs": _milliseconds(step.started_at),
                    "endMs": _milliseconds(step.completed_at or step.started_at),
                    "tokensUsed": tokens.get(step.node, 0),
                }
                for step in self._done
            },
            "discoveryResults": {},
            "guardrailResults": {},
            "checkpointsSaved": len(state.checkpoints),
            "memoryReads": self._memory.asked,
            "memoryWrites": self._memory.written,
        }

    def _result(self, step: StepRun) -> dict[str, Any]:
        node = self._graph.nodes.get(step.node) if self._graph is not None else None
        asked = any(path == step.path for path, _ in self._state.decisions)
        return {
            "effectClass": "human" if asked else node.effect if node is not None else "external",
            "output": self._values.whole(step.outputs),
            "durationMs": _duration(step),
        }

    def _snapshot(self) -> dict[str, Any] | None:
        writes = [row for rows in self._state.unapplied.values() for row in rows]
        if not writes and not self._memory.reads:
            return None
        pending = [{name: row[name] for name in ("type", "content", "scope")} for row in writes]
        return {"reads": list(self._memory.reads.values()), "pendingWrites": pending}


def _duration(step: StepRun) -> int:
    """Return the milliseconds of all attempts of a visit."""
    return round(step.seconds * 1000)


@functools.lru_cache(maxsize=4096)
def _milliseconds(at: str) -> int:
    """Return Unix epoch milliseconds; 0 where an imported document gives no time."""
    try:
        return round(parse_iso(at).timestamp() * 1000)
    except ValueError:
        return 0
