"""Layered runs for tests: DAGs in few words, tools that note what they ran, executors over one store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import ControlledExecutor, LayerCheckpoints, TaskResult, WorkflowState
from pipeline.clock import Clock, SystemClock
from pipeline.formats.casys.checkpoints import LayerCheckpoint
from pipeline.formats.casys.executor import LayeredResult
from pipeline.formats.casys.tools import TaskCall
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from tests.faulty_disk import FaultyDisk

Made = dict[str, Any]


def dag(*edges: str, tool: str = "work", **tasks: Mapping[str, Any]) -> Made:
    """The DAG of lines "task: what it needs"; `tasks` gives more of a task's names."""
    rows = []
    for line in edges:
        name, _, needs = line.partition(":")
        rows.append({"id": name, "tool": tool, "arguments": {"name": name}, "depends_on": needs.split()}
                    | dict(tasks.get(name, {})))  # fmt: skip
    return {"tasks": rows}


def chain(length: int) -> Made:
    """t1 → t2 → …, one task a layer."""
    return dag(*(f"t{n}: t{n - 1}" if n > 1 else "t1:" for n in range(1, length + 1)))


#: Two roots, a middle, an end: three layers.
THREE = dag("a:", "b:", "c: a b", "d: c")


class Layered:
    """One store; executors over it; which tasks ran, and what was told."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self.store = store
        self.clock = clock or SystemClock()
        self.ran: list[str] = []
        #: Tasks that fail, with their message.
        self.bad: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        self.checkpoints = LayerCheckpoints(store, clock=self.clock)
        self._lock = threading.Lock()
        #: Called in each task, before it ends.
        self.meanwhile: Callable[[TaskCall], Any] = lambda call: None

    def work(self, call: TaskCall) -> Any:
        """The tool: notes its task, and gives a result made of what it got."""
        with self._lock:
            self.ran.append(call.id)
        self.meanwhile(call)
        if call.id in self.bad:
            raise ValueError(self.bad[call.id])
        made = {"of": call.get("name"), "from": sorted(call.inputs)}
        return TaskResult(made, messages=[f"{call.id} says"], context={call.id: len(call.inputs), "last": call.id})

    def executor(self, plan: Any = None, **more: Any) -> ControlledExecutor:
        wanted: dict[str, Any] = {"store": self.store, "clock": self.clock, "on_event": self.events.append, **more}
        return ControlledExecutor(plan, {"work": self.work}, **wanted)

    def execute(self, plan: Any, context: Mapping[str, Any] | None = None, **more: Any) -> LayeredResult:
        self.forget()
        return self.executor(plan, **more).execute(context)

    def resume(self, checkpoint: str, plan: Any = None, **more: Any) -> LayeredResult:
        """Another executor, as another process would make it."""
        self.forget()
        wish = {name: more.pop(name) for name in ("accept_changes", "retry_unknown") if name in more}
        return self.executor(plan, **more).resume_from_checkpoint(checkpoint, **wish)

    def forget(self) -> None:
        self.ran, self.events = [], []

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def latest(self, run: str) -> LayerCheckpoint:
        """The newest checkpoint of a run that has one."""
        found = self.checkpoints.latest(run)
        assert found is not None
        return found

    def saved(self) -> list[str]:
        """Ids of the checkpoints told of, oldest first."""
        return [event["checkpoint_id"] for event in self.told("checkpoint_saved")]


class Killed(BaseException):
    """Nobody catches it: the run is left as a kill leaves it."""


def facts(result: LayeredResult) -> Made:
    """A run's state without what differs from one time to another."""
    state = result.state.to_json()
    del state["workflow_id"], state["checkpoint_id"]
    for task in state["tasks"]:
        del task["timestamp"], task["duration"]
    for decision in state["decisions"]:
        del decision["timestamp"]
    return state


def ids(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [task["taskId"] for task in tasks]


def once(ran: Sequence[str]) -> bool:
    return max(Counter(ran).values(), default=1) == 1


def state(workflow_id: str = "wf", **more: Any) -> WorkflowState:
    return WorkflowState(workflow_id, **more)


def done(*names: str) -> list[dict[str, Any]]:
    return [{"taskId": name, "result": name, "timestamp": "2026-01-09T14:30:22Z", "duration": 1} for name in names]


def failing(tmp_path: Path) -> tuple[Layered, FaultyDisk]:
    """Runs on a disk that refuses as told."""
    disk = FaultyDisk()
    return Layered(FileStore(tmp_path / "runs", SystemClock(), disk=disk)), disk
