"""What a task's tool gets (TaskCall) and may give (TaskResult), and the step that calls it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pipeline.clock import Clock
from pipeline.engine.sources import fresh
from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import ConfigError, StepFailed
from pipeline.formats.casys.dag import DagTask
from pipeline.llm.base import Reply, Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a tool gives where it has more to say than its result."""

    #: JSON.
    result: Any
    #: Appended to the state's messages.
    messages: Sequence[Any] = ()
    #: Keys of the state's context that it sets.
    context: Mapping[str, Any] = field(default_factory=dict)


class TaskCall(Mapping[str, Any]):
    """One call of a tool: a mapping of its arguments, and what else it may need."""

    def __init__(self, task: DagTask, ctx: StepContext, config: Mapping[str, Any]) -> None:
        self.id = task.id
        self.tool = task.tool
        self.arguments: Mapping[str, Any] = fresh(dict(task.arguments))
        #: The run's settings (timeout, …) and other names of the task's document.
        self.config = config
        self.extra: Mapping[str, Any] = fresh(dict(task.extra))
        #: The step's own context: durable tasks, artifacts, notes.
        self.ctx = ctx
        self._depends_on = task.depends_on

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arguments)

    def __len__(self) -> int:
        return len(self.arguments)

    @property
    def inputs(self) -> dict[str, Any]:
        """Return the results of the tasks it depends on, by id; null of one that was safe to fail and failed."""
        return {name: self.ctx.outputs[name].get("result") for name in self._depends_on}

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the run's context, with what the tasks before this one set."""
        return self.ctx.context

    @property
    def services(self) -> Mapping[str, Any]:
        """Return what the executor was lent; never stored."""
        return self.ctx.services

    def ask(self, request: Request) -> Reply:
        """Return the model's reply: recorded before it is seen, free when the task runs again."""
        return self.ctx.ask(request)


#: A tool: gets the call, gives a JSON value or a TaskResult.
Tool = Callable[[TaskCall], Any]


def step_of(task: DagTask, tool: Tool | None, config: Mapping[str, Any], clock: Clock) -> Callable[[StepContext], Any]:
    """Return the step that calls the task's tool, for as long as the run's settings allow."""

    def body(ctx: StepContext) -> Outcome:
        if tool is None:
            raise ConfigError(
                f"Task {task.id} needs the tool {task.tool!r}, which the executor was not given.", code="missing_tool"
            )
        seconds, call = config.get("timeout"), TaskCall(task, ctx, config)
        try:
            found = within(seconds, clock, lambda: tool(call))
        except TookTooLong:
            raise StepFailed(f"It took longer than its timeout of {seconds:g} s.", code="task_timeout",
                             timeout=seconds) from None  # fmt: skip
        if not isinstance(found, TaskResult):
            return Outcome({"result": found})
        outputs = {"result": found.result}
        return Outcome(
            {**outputs, "messages": list(found.messages)} if found.messages else outputs, context=found.context
        )

    return body


class TookTooLong(Exception):
    """Code of the user's did not end in time."""


def within(seconds: float | None, clock: Clock, work: Callable[[], T]) -> T:
    """Return what the work gives in time; work that takes longer is abandoned.

    Args:
        seconds: None: no limit, and the work runs in the caller's thread.

    Raises:
        TookTooLong: It took longer. What the work raised passes through.
    """
    if seconds is None:
        return work()
    ended = threading.Event()
    given: list[T] = []
    raised: list[BaseException] = []

    def target() -> None:
        try:
            given.append(work())
        except BaseException as error:
            raised.append(error)
        finally:
            ended.set()

    threading.Thread(target=target, name="timed work", daemon=True).start()
    if not clock.wait(ended, seconds):
        raise TookTooLong
    if raised:
        raise raised[0]
    return given[0]
