"""Values that finished work refers to and that the store has lost: which work has to be made again for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import CheckpointCorrupt
from pipeline.records.kinds import Invalidated
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store

_HASH = re.compile("[0-9a-f]{64}")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class MissingValues:
    """Finished work whose values the store has lost."""

    #: path of a step → what is lost of it.
    steps: dict[str, str] = field(default_factory=dict)
    #: (path of the step, task).
    tasks: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.steps or self.tasks)

    def said(self) -> str:
        """Return a sentence for people: what is lost, and what is made again."""
        what = [f"{what} of {bare(path)}" for path, what in self.steps.items()]
        what += [f"the value of {task}" for _, task in self.tasks]
        more = f" and {len(what) - _MOST_NAMED} more" if len(what) > _MOST_NAMED else ""
        listed = f"{', '.join(what[:_MOST_NAMED])}{more}"
        return f"The store has lost {listed}: making it again, and what reads it if it comes out different."

    def facts(self) -> list[Invalidated]:
        """Return the record that voids this work, if there is any."""
        paths = dict.fromkeys([*self.steps, *(path for path, _ in self.tasks)])
        tasks = [list(each) for each in self.tasks]
        return [Invalidated("missing", list(paths), tasks, "the store has lost its values")] if paths else []

    def forget(self, state: RunState) -> MissingValues:
        """Take this work out of a state that is only looked at; return itself."""
        for path in self.steps:
            state.steps.pop(path, None)
        for path, task in self.tasks:
            state.tasks.get(path, {}).pop(task, None)
        return self


def find(store: Store, state: RunState) -> MissingValues:
    """Return the completed steps and tasks of a run that refer to values the store does not have.

    Values that are there are not read, except those that an error of the run names: they may be damaged.

    Raises:
        StoreError: The store cannot be read.
    """
    wanted = {blob for _, blob in _of_steps(state)} | {blob for _, blob in _of_tasks(state)}
    if not wanted:
        return MissingValues()
    gone = wanted.difference(store.blobs(state.run_id))
    gone.update(blob for blob in wanted & set(_blamed(state)) if not _is_there(store, state.run_id, blob))
    steps: dict[str, str] = {}
    for (path, what), blob in _of_steps(state) if gone else ():
        if blob in gone:
            steps.setdefault(path, what)
    return MissingValues(steps, [task for task, blob in _of_tasks(state) if blob in gone])


def _of_steps(state: RunState) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((path, what it is), hash) of each value of a completed step."""
    for run in state.steps.values():
        if run.status == COMPLETED:
            yield from (((run.path, f"the {name}"), blob) for name, blob in run.artifacts.items())
            if isinstance(blob := run.outputs.get("$blob"), str):
                yield (run.path, "the outputs"), blob


def _of_tasks(state: RunState) -> Iterator[tuple[tuple[str, str], str]]:
    for path, tasks in state.tasks.items():
        for name, run in tasks.items():
            if run.status == COMPLETED and run.value and run.value.startswith(b'{"$blob"'):
                yield (path, name), str(json.loads(run.value)["$blob"])


def _blamed(state: RunState) -> Iterator[str]:
    """Yield the hashes that errors of the run name."""
    errors: Iterable[Any] = (
        state.error,
        *(run.error for run in state.steps.values()),
        *(run.error for tasks in state.tasks.values() for run in tasks.values()),
    )
    for error in errors:
        if error:
            yield from _HASH.findall(str(error.get("message", "")))


def _is_there(store: Store, run: str, blob: str) -> bool:
    try:
        store.get_blob(run, blob)
    except CheckpointCorrupt:
        return False
    return True
