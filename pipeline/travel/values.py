"""What is recorded of a run, read whole: outputs, artifacts, context values and what items made. Never writes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from pipeline.errors import CheckpointCorrupt
from pipeline.records.codec import decode_line
from pipeline.records.kinds import TaskCompleted
from pipeline.records.run import RunState, TaskRun, bare
from pipeline.records.values import is_reference
from pipeline.store.base import Store


class Reader:
    """Reads the values of one run back; each blob is looked up when it is asked for."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id

    def whole(self, value: Any) -> Any:
        """The value itself, read back if it is a reference.

        Raises:
            CheckpointCorrupt: The blob is missing or damaged.
        """
        return self.blob(value["$blob"]) if is_reference(value) else value

    def blob(self, name: str) -> Any:
        """The JSON value stored under a hash."""
        return json.loads(self._store.get_blob(self._run, name))

    def task_text(self, path: str, key: str, task: TaskRun) -> bytes:
        """JSON text of what a task made, or of a reference to it, as recorded.

        Raises:
            CheckpointCorrupt: Its record is not there any more.
        """
        if task.value is not None:
            return task.value
        line = next(iter(self._store.read(self._run, after=task.seq - 1)), None)
        fact = None if line is None else decode_line(line).fact
        if not isinstance(fact, TaskCompleted):
            raise CheckpointCorrupt(f"Run {self._run}: the value of {bare(path)}/{key} cannot be read back.")
        return fact.value

    def task(self, path: str, key: str, task: TaskRun) -> Any:
        """What a task made."""
        return self.whole(json.loads(self.task_text(path, key, task)))


def usd_by_step(state: RunState) -> dict[str, Decimal]:
    """Exact spend by step, as people name it; imported totals are not in it."""
    sums: dict[str, Decimal] = {}
    for key, spend in state.spend.items():
        sums[key.step] = sums.get(key.step, Decimal(0)) + spend.usd
    return sums
