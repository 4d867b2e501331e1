"""Values that finished work refers to and that the store has lost: which work has to be made again for them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from pipeline.records.kinds import Invalidated
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.reader import is_sound

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
        return f"The store has lost {listed}: running that work again, and its dependents if the result differs."

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
    of_steps, of_tasks, blamed = _referred(state)
    wanted = {blob for *_, blob in (*of_steps, *of_tasks)}
    if not wanted:
        return MissingValues()
    gone = wanted.difference(store.blobs(state.run_id))
    gone.update(blob for blob in wanted & blamed if not is_sound(store, state.run_id, blob))
    steps: dict[str, str] = {}
    for path, what, blob in of_steps:
        if blob in gone:
            steps.setdefault(path, what)
    return MissingValues(steps, [(path, task) for path, task, blob in of_tasks if blob in gone])


def _referred(state: RunState) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]], set[str]]:
    """Return (path, what it is, hash) of values of steps, (path, task, hash) of tasks', and hashes that errors name."""
    of_steps: list[tuple[str, str, str]] = []
    of_tasks: list[tuple[str, str, str]] = []
    errors = [state.error]
    for step in state.steps.values():
        errors.append(step.error)
        if step.status == COMPLETED:
            of_steps += [(step.path, f"the {name}", blob) for name, blob in step.artifacts.items()]
            if isinstance(blob := step.outputs.get("$blob"), str):
                of_steps.append((step.path, "the outputs", blob))
    # There may be a million tasks: each is looked at once.
    for path, tasks in state.tasks.items():
        for name, task in tasks.items():
            if task.error:
                errors.append(task.error)
            elif task.status == COMPLETED and task.value and task.value.startswith(b'{"$blob"'):
                of_tasks.append((path, name, str(json.loads(task.value)["$blob"])))
    blamed = {name for error in errors if error for name in _HASH.findall(str(error.get("message", "")))}
    return of_steps, of_tasks, blamed
