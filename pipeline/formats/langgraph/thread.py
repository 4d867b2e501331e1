"""A thread as its records tell it: checkpoints and the writes that wait on them. No I/O."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.formats.packer import Gathered

CHECKPOINT, WRITES, MOVED = "checkpoint", "writes", "moved"
#: Values of more bytes than this are stored out of line.
INLINE_BYTES = 2048
#: A value as LangGraph's serializers give it: the name of its encoding, and its bytes.
Typed = tuple[str, bytes]


class Stored(NamedTuple):
    """A serialized value: its bytes, or the hash that they are stored under."""

    #: The name of its encoding, as the serializer gave it.
    encoding: str
    #: The bytes; b"" where `blob` names them.
    data: bytes = b""
    #: The hash; "": the bytes are here.
    blob: str = ""

    @classmethod
    def of(cls, typed: Typed, blobs: Gathered) -> Stored:
        """Return a value as a record holds it; `blobs` takes a long one."""
        encoding, data = typed
        return cls(encoding, bytes(data)) if len(data) <= INLINE_BYTES else cls(encoding, blob=blobs.put(bytes(data)))

    def typed(self, get: Callable[[str], bytes]) -> Typed:
        return self.encoding, get(self.blob) if self.blob else self.data

    def to_json(self) -> list[str]:
        return [self.encoding, base64.b64encode(self.data).decode("ascii"), *([self.blob] if self.blob else ())]

    @classmethod
    def from_json(cls, row: Any) -> Stored:
        """Return the value of a record.

        Raises:
            ValueError, TypeError: It makes no sense.
        """
        encoding, data, *blob = row
        return cls(str(encoding), base64.b64decode(data, validate=True), *map(str, blob))


class Key(NamedTuple):
    """Which checkpoint of a thread."""

    #: "" is the graph itself; its subgraphs have names of their own.
    namespace: str
    id: str


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """One checkpoint."""

    key: Key
    #: The id of the checkpoint before it; None: there is none.
    parent: str | None
    #: All but the values of its channels.
    checkpoint: Stored
    metadata: Stored
    #: Channel → (version, value), of those that have a value.
    values: Mapping[str, tuple[Any, Stored]]

    def document(self) -> dict[str, Any]:
        return {
            "type": CHECKPOINT,
            "namespace": self.key.namespace,
            "id": self.key.id,
            "parent": self.parent,
            "checkpoint": self.checkpoint.to_json(),
            "metadata": self.metadata.to_json(),
            "values": {name: [version, *value.to_json()] for name, (version, value) in self.values.items()},
        }


class Write(NamedTuple):
    """What a task wrote to a channel after a checkpoint."""

    task: str
    #: The task's place in its step.
    path: str
    #: Its place among the task's writes; below 0: one that replaces what was there.
    place: int
    channel: str
    value: Stored


def writes_document(key: Key, task: str, path: str, writes: Collection[Write]) -> dict[str, Any]:
    """Return the writes of one task, as they are recorded."""
    rows = [[write.place, write.channel, *write.value.to_json()] for write in writes]
    return {"type": WRITES, "namespace": key.namespace, "id": key.id, "task": task, "path": path, "writes": rows}


@dataclass
class Thread:
    """What is known of a thread."""

    run_id: str
    checkpoints: dict[Key, KeptCheckpoint] = field(default_factory=dict)
    writes: dict[Key, dict[tuple[str, int], Write]] = field(default_factory=dict)
    #: (namespace, channel, version) → its value: an unchanged one is not stored again.
    known: dict[tuple[str, str, Any], Stored] = field(default_factory=dict)
    #: Its last owner was about to write what is left of it into another run.
    moved: bool = False

    def take(self, document: Mapping[str, Any]) -> None:
        """Add a record; one of an unknown kind is passed over.

        Raises:
            ValueError, TypeError, KeyError: It makes no sense.
        """
        kind = document["type"]
        self.moved = kind == MOVED
        if kind == CHECKPOINT:
            key = Key(document["namespace"], document["id"])
            values = {name: (version, Stored.from_json(row)) for name, (version, *row) in document["values"].items()}
            checkpoint, metadata = Stored.from_json(document["checkpoint"]), Stored.from_json(document["metadata"])
            self.checkpoints[key] = KeptCheckpoint(key, document["parent"], checkpoint, metadata, values)
            for name, (version, value) in values.items():
                self.known[key.namespace, name, version] = value
        elif kind == WRITES:
            there = self.writes.setdefault(Key(document["namespace"], document["id"]), {})
            task, path = document["task"], document["path"]
            for index, channel, *row in document["writes"]:
                if index < 0 or (task, index) not in there:
                    there[task, index] = Write(task, path, index, channel, Stored.from_json(row))

    def newest_first(self, namespace: str | None = None) -> list[KeptCheckpoint]:
        """Return the checkpoints (of a namespace), the greatest id first: LangGraph's ids grow with time."""
        found = [kept for key, kept in self.checkpoints.items() if namespace in (None, key.namespace)]
        return sorted(found, key=lambda kept: kept.key.id, reverse=True)

    def find(self, key: Key) -> KeptCheckpoint | None:
        """Return a checkpoint; one without an id is the newest of its namespace."""
        if key.id:
            return self.checkpoints.get(key)
        found = (kept for each, kept in self.checkpoints.items() if each.namespace == key.namespace)
        return max(found, key=lambda kept: kept.key.id, default=None)

    def writes_of(self, key: Key) -> list[Write]:
        """Return the writes that wait on a checkpoint, in the order in which a graph applies them."""
        return sorted(self.writes.get(key, {}).values(), key=lambda write: (write.path, write.task, write.place))

    def newest(self, deltas: Callable[[KeptCheckpoint], Collection[str]]) -> set[Key]:
        """Return the newest checkpoint of each namespace, and those before it that it cannot be put together without.

        Args:
            deltas: The channels of a checkpoint that are stored as what was written since an earlier one. Such a
                channel is its last whole value and all that was written after it, so the way back to that value stays.
        """
        stay: set[Key] = set()
        for namespace in {key.namespace for key in self.checkpoints}:
            kept = self.find(Key(namespace, ""))
            missing = set(deltas(kept)) - kept.values.keys() if kept is not None else set()
            while kept is not None:
                stay.add(kept.key)
                missing -= kept.values.keys()
                parent = Key(namespace, kept.parent or "")
                kept = self.checkpoints.get(parent) if missing and parent not in stay else None
        return stay

    def documents(self, keys: AbstractSet[Key]) -> Iterator[dict[str, Any]]:
        """Yield records that tell of these checkpoints what is known, in the order in which they came."""
        for key, kept in self.checkpoints.items():
            if key in keys:
                yield kept.document()
        for key in (key for key in self.writes if key in keys):
            by_task: dict[tuple[str, str], list[Write]] = {}
            for write in self.writes[key].values():
                by_task.setdefault((write.task, write.path), []).append(write)
            for (task, path), own in by_task.items():
                yield writes_document(key, task, path, own)

    def blobs(self, keys: AbstractSet[Key]) -> set[str]:
        """Return the hashes of what is stored out of line, of these checkpoints."""
        stored = [write.value for key in keys & self.writes.keys() for write in self.writes[key].values()]
        for kept in (self.checkpoints[key] for key in keys & self.checkpoints.keys()):
            stored += [kept.checkpoint, kept.metadata, *(value for _, value in kept.values.values())]
        return {value.blob for value in stored if value.blob}
