"""GraphCheckpoint: the document of a graph run at a node's boundary, with its printed names and units; and its row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from pipeline.errors import CheckpointCorrupt
from pipeline.records.structure import Check, fields, items, mapping, name, number, table, text
from pipeline.records.values import decode_value, encode_value

INPUT, SCRATCH, ARTIFACTS, DIAGNOSTICS = PARTITIONS = ("input", "scratch", "artifacts", "diagnostics")
EFFECTS = ("pure", "read", "write", "external", "human")
#: Printed name → attribute, in the order in which they are printed.
NAMES: Mapping[str, str] = {
    "id": "id", "graphId": "graph_id", "runId": "run_id", "nodeId": "node_id", "timestamp": "timestamp",
    "state": "state", "memorySnapshot": "memory_snapshot", "nodeResults": "node_results",
    "visitedNodes": "visited_nodes", "skippedNodes": "skipped_nodes", "pendingEdges": "pending_edges",
}  # fmt: skip
_OPTIONAL = ("memorySnapshot", "skippedNodes")


@dataclass
class GraphCheckpoint:
    """A graph run as it stood at the boundary of a node. JSON values only.

    The printed names (graphId, nodeResults, …) can be read as attributes, too.
    """

    #: In form a UUID of version 4, where we made it.
    id: str
    #: Stable name of the graph.
    graph_id: str
    run_id: str
    #: The node at whose boundary it was taken.
    node_id: str
    #: Unix epoch milliseconds. Never an order.
    timestamp: float
    #: {"input", "scratch", "artifacts", "diagnostics"}: the run's parameters, its context, what it saved, its sums.
    state: dict[str, Any]
    #: Node → {"effectClass", "output", "durationMs"}: the newest visit of each that had completed.
    node_results: dict[str, Any] = field(default_factory=dict)
    #: Nodes in order of their ends, once for each visit.
    visited_nodes: list[str] = field(default_factory=list)
    #: Ids of edges that were chosen and whose target had not started.
    pending_edges: list[str] = field(default_factory=list)
    #: Nodes that no visit reached and none can reach any more; None: the document does not say.
    skipped_nodes: list[str] | None = None
    #: {"reads": [{traceId, content, strength}], "pendingWrites": [{type, content, scope}]}; None: there is none.
    memory_snapshot: dict[str, Any] | None = None
    #: Other keys of the document, kept as they came.
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getattr__(self, name: str) -> Any:
        if name in NAMES:
            return getattr(self, NAMES[name])
        raise AttributeError(f"A checkpoint has no {name!r}.")

    def to_json(self) -> dict[str, Any]:
        """Return the document; a copy.

        Raises:
            InvalidValue: It holds what is no JSON; names where.
        """
        out = {printed: getattr(self, name) for printed, name in NAMES.items()}
        out = {key: value for key, value in out.items() if value is not None or key not in _OPTIONAL}
        # Other keys come last and must not replace the known ones.
        document = {**out, **{key: value for key, value in self.extra.items() if key not in out}}
        copied: dict[str, Any] = decode_value(encode_value(document, "checkpoint"))
        return copied

    @classmethod
    def from_json(cls, data: Any) -> GraphCheckpoint:
        """Return the checkpoint of a document; a copy.

        Raises:
            CheckpointCorrupt: A key is missing or has a value that it cannot have; names it (data["key"]).
            InvalidValue: It holds what is no JSON.
        """
        copied = decode_value(encode_value(data, "checkpoint"))
        if problem := _document(copied):
            key = problem.rpartition(" is ")[0].removeprefix(".")
            said = problem.removeprefix(".") if key else f"the document{problem}"
            raise CheckpointCorrupt(f"Not a checkpoint of a graph run: {said}.", code="invalid_document", key=key)
        # An optional key that says null says it again when it is written.
        known = {name for name in NAMES if name in copied and not (name in _OPTIONAL and copied[name] is None)}
        extra = {key: value for key, value in copied.items() if key not in known}
        return cls(**{NAMES[name]: copied[name] for name in NAMES if name in known}, extra=extra)


def _nullable(check: Check) -> Check:
    return lambda value: "" if value is None else check(value)


def _effect(value: Any) -> str:
    return "" if value in EFFECTS else f" is none of {', '.join(EFFECTS)}"


def _strength(value: Any) -> str:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return "" if fits else " is not a number"


_MEMORY = fields(
    ("reads", "pendingWrites"),
    reads=items(fields(("traceId", "content", "strength"), traceId=text, content=text, strength=_strength)),
    pendingWrites=items(fields(("type", "content", "scope"), type=text, content=text, scope=text)),
)
#: Parts of any type (input, scratch, artifacts, output) are missing from a document's JSON where they were undefined.
_document = fields(
    tuple(key for key in NAMES if key not in _OPTIONAL),
    id=name, graphId=name, runId=name, nodeId=text, timestamp=number,
    state=fields((), diagnostics=_nullable(mapping)),
    nodeResults=table(fields(("effectClass", "durationMs"), effectClass=_effect, durationMs=number)),
    visitedNodes=items(name), pendingEdges=items(name),
    skippedNodes=_nullable(items(name)), memorySnapshot=_nullable(_MEMORY),
)  # fmt: skip


class RecordPlace(NamedTuple):
    """Where a checkpoint is recorded; the greater one is newer, whatever its timestamp."""

    #: Grows within a run whatever the clock does; over runs it follows the clock.
    order: int
    run_id: str
    seq: int


class CheckpointRow(NamedTuple):
    """The metadata of one checkpoint, as a listing shows it."""

    id: str
    runId: str
    graphId: str
    nodeId: str
    #: Unix epoch milliseconds.
    timestamp: float
    #: Bytes of the JSON text of `state` in UTF-8.
    stateSize: int
    hasMemorySnapshot: bool
    #: None: of a document that is not recorded yet.
    place: RecordPlace | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row, under its printed names."""
        return {name: value for name, value in self._asdict().items() if name != "place"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], place: RecordPlace) -> CheckpointRow:
        return cls(**{name: data[name] for name in cls._fields if name != "place"}, place=place)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> CheckpointRow:
        return cls(
            document["id"], document["runId"], document["graphId"], document["nodeId"], document["timestamp"],
            state_size(document["state"]), document.get("memorySnapshot") is not None,
        )  # fmt: skip


def state_size(state: Any) -> int:
    """Return how many bytes the state takes as JSON in UTF-8."""
    return len(json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def order_at(moment: datetime) -> int:
    """Return the order of what happens at a moment where nothing came before."""
    return int(moment.timestamp() * 1000) * 1000
