"""WorkflowState: what a layered run says of itself, with the reducers that alone may change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.errors import InvalidValue
from pipeline.records.values import decode_value, encode_value

SUCCESS, ERROR, FAILED_SAFE = "success", "error", "failed_safe"
#: A task's status that says it stands: its dependents may use it and no resume makes it again.
DONE = frozenset({SUCCESS, FAILED_SAFE, "completed"})
_LISTS = ("messages", "tasks", "decisions")


@dataclass
class WorkflowState:
    """Messages, task results, decisions and context of one layered run. JSON values only."""

    #: Never changes.
    workflow_id: str
    messages: list[Any] = field(default_factory=list)
    #: {"taskId", "result", "timestamp", "duration" (milliseconds), "status", …}, one for each task that ended.
    tasks: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    #: The newest checkpoint it was saved as; None: none.
    checkpoint_id: str | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "workflow_id" and vars(self).get(name, value) != value:
            raise InvalidValue(f"A state of {self.workflow_id!r} cannot become one of {value!r}.")
        super().__setattr__(name, value)

    def updated(
        self,
        *,
        messages: Iterable[Any] = (),
        tasks: Iterable[Mapping[str, Any]] = (),
        decisions: Iterable[Any] = (),
        context: Mapping[str, Any] | None = None,
        workflow_id: str | None = None,
    ) -> WorkflowState:
        """The state after an update: lists grow at their end, context keys are replaced one by one.

        Raises:
            InvalidValue: It would belong to another workflow_id, or is no state.
        """
        if workflow_id not in (None, self.workflow_id):
            raise InvalidValue(f"A state of {self.workflow_id!r} cannot become one of {workflow_id!r}.")
        made = WorkflowState(
            self.workflow_id,
            [*self.messages, *messages],
            [*self.tasks, *map(dict, tasks)],
            [*self.decisions, *decisions],
            {**self.context, **(context or {})},
            self.checkpoint_id,
        )
        made.check()
        return made

    def check(self) -> None:
        """Refuse what is no state.

        Raises:
            InvalidValue: Names the field.
        """
        if problem := state_problem({item.name: getattr(self, item.name) for item in fields(self)}):
            raise InvalidValue(f"This is no state: {problem}.")

    def results(self) -> dict[str, Any]:
        """What stands of each task, by id: the newest result of those that succeeded or were safe to fail."""
        return {task["taskId"]: task.get("result") for task in self.tasks if task.get("status", SUCCESS) in DONE}

    def to_json(self) -> dict[str, Any]:
        """The state under the names of its document; a copy."""
        document = {item.name: getattr(self, item.name) for item in fields(self)}
        copied: dict[str, Any] = decode_value(encode_value(document, "state"))
        return copied

    @classmethod
    def from_json(cls, data: Any) -> WorkflowState:
        """The state of a document.

        Raises:
            InvalidValue: A field is missing or of a wrong type; names it.
        """
        if problem := state_problem(data):
            raise InvalidValue(f"This is no state: {problem}.")
        return cls(
            str(data["workflow_id"]), list(data["messages"]), [dict(task) for task in data["tasks"]],
            list(data["decisions"]), dict(data["context"]), data.get("checkpoint_id"),
        )  # fmt: skip


def state_problem(data: Any) -> str:
    """Why a document is no state; "" if it is one."""
    if not isinstance(data, Mapping):
        return "it is no object"
    problem = _shape_problem(data)
    for index, task in enumerate(() if problem else data["tasks"]):
        if problem := _task_problem(task, index):
            break
    return problem


def _shape_problem(data: Mapping[str, Any]) -> str:
    for name in ("workflow_id", *_LISTS, "context"):
        if name not in data:
            return f"{name} is missing"
    if not isinstance(data["workflow_id"], str) or not data["workflow_id"]:
        return "workflow_id is empty or no text"
    for name in _LISTS:
        if not isinstance(data[name], list):
            return f"{name} is no list"
    if not isinstance(data["context"], Mapping):
        return "context is no object"
    return "" if isinstance(data.get("checkpoint_id"), str | None) else "checkpoint_id is no text"


def _task_problem(task: Any, index: int) -> str:
    if not isinstance(task, dict):
        return f"tasks[{index}] is no object"
    if not isinstance(task.get("taskId"), str) or not task["taskId"]:
        return f"tasks[{index}].taskId is empty or no text"
    if not isinstance(task.get("status", SUCCESS), str):
        return f"tasks[{index}].status is no text"
    if "result" not in task and task.get("status", SUCCESS) in DONE:
        return f"tasks[{index}].result is missing"
    return ""


def confirmed(task: Mapping[str, Any]) -> bool:
    """Whether a task's entry belongs in a checkpoint: it has ended, and is no guess of what may come."""
    speculative = task.get("speculative") is True and task.get("confirmed") is not True
    return not speculative and task.get("status", SUCCESS) in DONE | {ERROR}
