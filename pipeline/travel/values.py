"""Recorded values of a run: read whole, and as another run refers to them (long ones by blobs)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pipeline.engine.sources import fact_at
from pipeline.errors import CheckpointCorrupt
from pipeline.records.fold import KEEP_BYTES
from pipeline.records.kinds import TaskCompleted
from pipeline.records.run import CallRun, RunState, TaskRun, bare, spend_by
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import INLINE_LIMIT, decode_value, digest, encode_value, is_reference, reference
from pipeline.store.base import Store


class Reader:
    """Reads the values of one run back; each blob is looked up when it is asked for."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id

    def whole(self, value: Any) -> Any:
        """Return the value itself, read back if it is a reference.

        Raises:
            CheckpointCorrupt: The blob is missing or damaged.
        """
        return self.blob(value["$blob"]) if is_reference(value) else value

    def blob(self, name: str) -> Any:
        """Return the JSON value stored under a hash."""
        return json.loads(self._store.get_blob(self._run, name))

    def task_text(self, path: str, key: str, task: TaskRun) -> bytes:
        """Return JSON text of what a task made, or of a reference to it, as recorded.

        Raises:
            CheckpointCorrupt: Its record is not there any more.
        """
        if task.value is not None:
            return task.value
        fact = fact_at(self._store, self._run, task.seq)
        if not isinstance(fact, TaskCompleted):
            raise CheckpointCorrupt(
                f"Run {self._run}: the value of {bare(path)}/{key} cannot be read back.", code="value_lost"
            )
        return fact.value

    def task(self, path: str, key: str, task: TaskRun) -> Any:
        return self.whole(json.loads(self.task_text(path, key, task)))


def usd_by_step(state: RunState) -> dict[str, Decimal]:
    """Return exact spend by step, as people name it; imported totals are not in it."""
    return {step: spend.usd for step, spend in spend_by(state, lambda key: key.step).items()}


class BlobCollector:
    """Gathers the blobs that another run needs."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.reader = Reader(store, run_id)
        self._store = store
        self._run = run_id
        #: Values that stood in records and become blobs: hash → bytes.
        self._made: dict[str, bytes] = {}

    def task(self, path: str, key: str, task: TaskRun) -> Any:
        """Return what stands for a task's value; None where it has none."""
        return None if task.status != COMPLETED else self._kept(self.reader.task_text(path, key, task))

    def reply(self, call: CallRun) -> Any:
        """Return what stands for a reply; None where nothing usable came."""
        return None if call.reply is None else self._kept(call.reply)

    def whole(self, value: Any) -> Any:
        """Return a value that stands for itself or for a blob, of the source or made here."""
        made = self._made.get(value["$blob"]) if is_reference(value) else None
        return self.reader.whole(value) if made is None else decode_value(made)

    def fit(self, value: Any) -> Any:
        """Return what stands for a value in a step's record."""
        text = encode_value(value)
        short = len(text) <= INLINE_LIMIT and not is_reference(value)
        return decode_value(text) if short else self._blob(text)

    def blobs(self, names: Iterable[str]) -> list[bytes]:
        """Return the blobs of these hashes and those that were made; each is verified.

        Raises:
            CheckpointCorrupt: One is missing or damaged.
        """
        own = dict.fromkeys(name for name in names if name not in self._made)
        return [*self._made.values(), *(self._store.get_blob(self._run, name) for name in own)]

    def _kept(self, text: bytes) -> Any:
        return decode_value(text) if len(text) <= KEEP_BYTES else self._blob(text)

    def _blob(self, text: bytes) -> dict[str, Any]:
        name = digest(text)
        self._made[name] = text
        return reference(name, len(text))
