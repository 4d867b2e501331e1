"""GraphCheckpoint: the document of a graph run at a node's boundary, with the names and units it is printed with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import CheckpointCorrupt
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
_SHOWN = 40


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
    #: {"input", "scratch", "artifacts", "diagnostics"}: what the run was given, its context, what it saved, its sums.
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
    #: Keys that the document does not know, kept as they came.
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getattr__(self, name: str) -> Any:
        if name in NAMES:
            return getattr(self, NAMES[name])
        raise AttributeError(f"A checkpoint has no {name!r}.")

    def to_json(self) -> dict[str, Any]:
        """The document; a copy.

        Raises:
            InvalidValue: It holds what is no JSON; names where.
        """
        out = {printed: getattr(self, name) for printed, name in NAMES.items()}
        for name in _OPTIONAL:
            if out[name] is None:
                del out[name]
        # Last what we do not know: it must not replace what we do.
        document = {**out, **{key: value for key, value in self.extra.items() if key not in out}}
        copied: dict[str, Any] = decode_value(encode_value(document, "checkpoint"))
        return copied

    @classmethod
    def from_json(cls, data: Any) -> GraphCheckpoint:
        """The checkpoint of a document; a copy.

        Raises:
            CheckpointCorrupt: A key is missing or holds what it cannot; names it (data["key"]).
            InvalidValue: It holds what is no JSON.
        """
        _document(data, "")
        copied = decode_value(encode_value(dict(data), "checkpoint"))
        # An optional key that says null says it again when it is written.
        known = {name for name in NAMES if name in copied and not (name in _OPTIONAL and copied[name] is None)}
        extra = {key: value for key, value in copied.items() if key not in known}
        return cls(**{NAMES[name]: copied[name] for name in NAMES if name in known}, extra=extra)


#: Looks at the value under a key; raises CheckpointCorrupt where it cannot be that.
_Shape = Callable[[Any, str], None]


def _wrong(key: str, value: Any, wanted: str) -> CheckpointCorrupt:
    try:
        shown = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        shown = f"a {type(value).__name__}"
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
    return CheckpointCorrupt(
        f"This is no checkpoint of a graph run: {key or 'the document'} is {shown}, not {wanted}.", key=key
    )


def _text(value: Any, key: str) -> None:
    if not isinstance(value, str):
        raise _wrong(key, value, "text")


def _name(value: Any, key: str) -> None:
    if not isinstance(value, str) or not value:
        raise _wrong(key, value, "a name")


def _effect(value: Any, key: str) -> None:
    if value not in EFFECTS:
        raise _wrong(key, value, f"one of {', '.join(EFFECTS)}")


def _number(value: Any, key: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(key, value, "a number")


def _amount(value: Any, key: str) -> None:
    _number(value, key)
    if value < 0:
        raise _wrong(key, value, "a number from 0 up")


def _object(needed: Mapping[str, _Shape], optional: Mapping[str, _Shape] | None = None) -> _Shape:
    """An object with these keys; the optional ones may be missing, or null."""
    shapes = {**needed, **(optional or {})}

    def look(value: Any, key: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(key, value, "an object")
        for name, shape in shapes.items():
            place = f"{key}.{name}" if key else name
            if name in needed and name not in value:
                raise CheckpointCorrupt(f"This is no checkpoint of a graph run: {place} is missing.", key=place)
            if name in needed or value.get(name) is not None:
                shape(value[name], place)

    return look


def _list(shape: _Shape) -> _Shape:
    def look(value: Any, key: str) -> None:
        if not isinstance(value, list | tuple):
            raise _wrong(key, value, "a list")
        for index, item in enumerate(value):
            shape(item, f"{key}[{index}]")

    return look


def _table(shape: _Shape) -> _Shape:
    def look(value: Any, key: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(key, value, "an object")
        for name, item in value.items():
            shape(item, f"{key}.{name}")

    return look


_MEMORY = _object({
    "reads": _list(_object({"traceId": _text, "content": _text, "strength": _number})),
    "pendingWrites": _list(_object({"type": _text, "content": _text, "scope": _text})),
})  # fmt: skip
#: Parts whose type is not known (input, scratch, artifacts, output) are missing from a document's JSON where they
#: were undefined, so nothing is asked of them.
_document = _object(
    {
        "id": _name, "graphId": _name, "runId": _name, "nodeId": _text, "timestamp": _amount,
        "state": _object({}, {DIAGNOSTICS: _object({})}),
        "nodeResults": _table(_object({"effectClass": _effect, "durationMs": _amount})),
        "visitedNodes": _list(_name), "pendingEdges": _list(_name),
    },
    {"skippedNodes": _list(_name), "memorySnapshot": _MEMORY},
)  # fmt: skip
