"""A thread as its records say it: checkpoints and the writes that wait on them. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.formats.langgraph.stored import Stored, stored_values

CHECKPOINT, WRITES, MOVED = "checkpoint", "writes", "moved"


class Key(NamedTuple):
    """Which checkpoint of a thread."""

    #: "" is the graph itself; its subgraphs have names of their own.
    namespace: str
    id: str


@dataclass(frozen=True, slots=True)
class Kept:
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
        """As it is recorded."""
        return {
            "type": CHECKPOINT,
            "namespace": self.key.namespace,
            "id": self.key.id,
            "parent": self.parent,
            "checkpoint": self.checkpoint.to_json(),
            "metadata": self.metadata.to_json(),
            "values": stored_values(self.values),
        }


class Write(NamedTuple):
    """What a task wrote to a channel after a checkpoint."""

    task: str
    #: Where the task stands in its step.
    path: str
    #: Its place among the task's writes; below 0: one that replaces what was there.
    place: int
    channel: str
    value: Stored


def writes_document(key: Key, task: str, path: str, writes: Collection[Write]) -> dict[str, Any]:
    """The writes of one task, as they are recorded."""
    rows = [[write.place, write.channel, *write.value.to_json()] for write in writes]
    return {"type": WRITES, "namespace": key.namespace, "id": key.id, "task": task, "path": path, "writes": rows}


@dataclass
class Thread:
    """What is known of a thread."""

    run_id: str
    checkpoints: dict[Key, Kept] = field(default_factory=dict)
    writes: dict[Key, dict[tuple[str, int], Write]] = field(default_factory=dict)
    #: (namespace, channel, version) → its value: an unchanged one is not stored again.
    known: dict[tuple[str, str, Any], Stored] = field(default_factory=dict)
    #: Its last owner was about to write what is left of it into another run.
    moved: bool = False

    def take(self, document: Mapping[str, Any]) -> None:
        """Add what a record says; one of a kind that came later is passed over.

        Raises:
            ValueError, TypeError, KeyError: It makes no sense.
        """
        kind = document["type"]
        self.moved = kind == MOVED
        if kind == CHECKPOINT:
            self._take_checkpoint(document)
        elif kind == WRITES:
            self._take_writes(document)

    def _take_checkpoint(self, document: Mapping[str, Any]) -> None:
        key = Key(document["namespace"], document["id"])
        values = {name: (version, Stored.from_json(row)) for name, (version, *row) in document["values"].items()}
        checkpoint, metadata = Stored.from_json(document["checkpoint"]), Stored.from_json(document["metadata"])
        self.checkpoints[key] = Kept(key, document["parent"], checkpoint, metadata, values)
        for name, (version, value) in values.items():
            self.known[key.namespace, name, version] = value

    def _take_writes(self, document: Mapping[str, Any]) -> None:
        there = self.writes.setdefault(Key(document["namespace"], document["id"]), {})
        task, path = document["task"], document["path"]
        for index, channel, *row in document["writes"]:
            if index < 0 or (task, index) not in there:
                there[task, index] = Write(task, path, index, channel, Stored.from_json(row))

    def newest_first(self, namespace: str | None = None) -> list[Kept]:
        """The checkpoints (of a namespace), the greatest id first: LangGraph's ids grow with time."""
        found = [kept for key, kept in self.checkpoints.items() if namespace in (None, key.namespace)]
        return sorted(found, key=lambda kept: kept.key.id, reverse=True)

    def latest(self, namespace: str) -> Kept | None:
        """The newest checkpoint of a namespace."""
        found = (kept for key, kept in self.checkpoints.items() if key.namespace == namespace)
        return max(found, key=lambda kept: kept.key.id, default=None)

    def writes_of(self, key: Key) -> list[Write]:
        """The writes that wait on a checkpoint, in the order in which a graph applies them."""
        return sorted(self.writes.get(key, {}).values(), key=lambda write: (write.path, write.task, write.place))

    def documents(self, keys: AbstractSet[Key]) -> Iterator[dict[str, Any]]:
        """Records that say of these checkpoints what is known, in the order in which they came."""
        for key, kept in self.checkpoints.items():
            if key in keys:
                yield kept.document()
        for key, writes in self.writes.items():
            if key in keys:
                for task, path in dict.fromkeys((write.task, write.path) for write in writes.values()):
                    own = [write for write in writes.values() if (write.task, write.path) == (task, path)]
                    yield writes_document(key, task, path, own)

    def blobs(self, keys: AbstractSet[Key]) -> set[str]:
        """The hashes of what stands out of line, of these checkpoints."""
        stored = [value for key in keys & self.writes.keys() for value in (w.value for w in self.writes[key].values())]
        for kept in (self.checkpoints[key] for key in keys & self.checkpoints.keys()):
            stored += [kept.checkpoint, kept.metadata, *(value for _, value in kept.values.values())]
        return {value.blob for value in stored if value.blob}
