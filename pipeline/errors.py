"""The error tree: each class is one thing a user can meet, with its exit code and the way on.

PipelineError (Exception)
├── ConfigError 2: CatalogueError, BankError, SettingsConflict, DecidedMeanwhile, CredentialMissing, InvalidValue,
│                  MissingValue, SecretRefused, PackageMissing
├── GraphError 2
├── StoreError 3: RunNotFound, RunExists, RunLocked, CheckpointCorrupt, SchemaTooNew, WriteFailed
├── ModelError 4: ModelUnavailable, ModelRejected, ModelRefused, ModelTruncated, SpendLimit
├── BudgetExceeded 5
├── StepFailed 6: TaskRejected, NeedsConfirmation
├── PublishError 7: PublishedFilesEdited
├── WaitingForHuman 8
├── ExecutorLost 9
└── WaitingForBatch 75: BatchLost
Pause (BaseException): carries one of the above through user code; never swallowed by `except Exception`
└── Suspended: an ask that waits for a batch
RunInterrupted (BaseException) 130
"""

from __future__ import annotations

import re
from typing import Any, ClassVar


class PipelineError(Exception):
    """The pipeline could not continue.

    Args:
        code: Stable name of this kind of error, for programs; default: the class's name, as in run_not_found.
        command: What to type next, as it stands; it is the hint, too, where none is given.
    """

    exit_code: ClassVar[int] = 1
    #: True where the same request may succeed later, unchanged.
    retryable: ClassVar[bool] = False
    #: Stable name of this kind of error; a class's own name in snake case where a raise gives no finer one.
    code: str = "pipeline_error"

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<=.)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str = "", *, code: str = "", hint: str = "", command: str = "", **data: Any) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        if code:
            self.code = code
        #: What to type or do next; one line, may be empty.
        self.hint = hint or command
        self.command = command
        #: What the message was made from, for callers that decide by it.
        self.data = data

    @property
    def message(self) -> str:
        return str(self.args[0])


class ConfigError(PipelineError):
    """An option, variable or file does not say what is needed."""

    exit_code = 2


class CatalogueError(ConfigError):
    """The course catalogue does not hold this, or a catalogue file is wrong."""


class BankError(ConfigError):
    """The question bank does not hold this, or a file of it is wrong."""


class SettingsConflict(ConfigError):
    """A setting contradicts what this run is pinned to."""


class CredentialMissing(ConfigError):
    """A Claude model was asked for, but no credential is set."""


class DecidedMeanwhile(ConfigError):
    """This was decided or made again since it was looked at."""


class InvalidValue(ConfigError):
    """A value cannot be recorded as JSON."""


class MissingValue(ConfigError, KeyError):
    """A step reads a parameter, setting, context key or output that there is not."""

    def __str__(self) -> str:
        return self.message


class SecretRefused(ConfigError):
    """A parameter named like a secret is never stored."""


class PackageMissing(ConfigError):
    """A part of the program needs packages that are not installed."""


class GraphError(PipelineError):
    """The graph is not valid."""

    exit_code = 2


class StoreError(PipelineError):
    """The run store could not do what was asked."""

    exit_code = 3


class RunNotFound(StoreError):
    """There is no such run."""


class RunExists(StoreError):
    """An unfinished run of the same course exists."""


class RunLocked(StoreError):
    """Another living process owns this run."""


class CheckpointCorrupt(StoreError):
    """The run's records cannot be read."""


class SchemaTooNew(StoreError):
    """The run, or the tables of a database, were written by a newer version of this program."""


class WriteFailed(StoreError):
    """The disk refused a write, so nothing more was started."""


class ModelError(PipelineError):
    """The model did not give a usable answer.

    `reply` is the partial Reply, where one was seen (its usage counts); `billed` says
    whether the provider charges for this try: "no", "unknown" or "partial".
    """

    exit_code = 4

    def __init__(
        self, message: str = "", *, code: str = "", hint: str = "", billed: str = "no", reply: Any = None, **data: Any
    ) -> None:
        super().__init__(message, code=code, hint=hint, **data)
        self.billed = billed
        self.reply = reply


class ModelUnavailable(ModelError):
    """The provider is overloaded, limits the rate or cannot be reached.

    `data["retry_after"]` (seconds) where the provider named a wait.
    """

    retryable = True


class ModelRejected(ModelError):
    """The provider rejected the request."""


class ModelRefused(ModelError):
    """The model declined to answer."""


class ModelTruncated(ModelError):
    """The answer was cut off at the token limit."""


class SpendLimit(ModelError):
    """The provider account's spending limit or billing stops further calls."""


class BudgetExceeded(PipelineError):
    """The next call could pass the spending ceiling, so it was not made."""

    exit_code = 5


class StepFailed(PipelineError):
    """A step failed."""

    exit_code = 6


class TaskRejected(StepFailed):
    """A task's result did not pass its checks."""


class NeedsConfirmation(StepFailed):
    """This needs confirmation, and there was no terminal to ask on."""


class PublishError(PipelineError):
    """The results could not be published."""

    exit_code = 7


class PublishedFilesEdited(PublishError):
    """Published files were edited by hand since the last publish."""


class WaitingForHuman(PipelineError):
    """The run waits for a person's decision."""

    exit_code = 8


class ExecutorLost(PipelineError):
    """The executor that ran the tasks is gone."""

    exit_code = 9
    retryable = True


class WaitingForBatch(PipelineError):
    """The run waits for a batch at the provider."""

    exit_code = 75


class BatchLost(WaitingForBatch):
    """The provider does not show a batch, or not all of its answers."""


class Pause(BaseException):
    """Stop the run so that it can be resumed; not a failure, so no step, join or retry may swallow it.

    `detail` is the run's status_detail (paused_budget, …); `cause` is the error shown.
    """

    def __init__(self, detail: str, cause: PipelineError) -> None:
        super().__init__(cause.message)
        self.detail = detail
        self.cause = cause


class Suspended(Pause):
    """An ask that waits for a batch: its body is run again once the batch has been answered."""


class RunInterrupted(BaseException):
    """Interrupted."""

    exit_code: ClassVar[int] = 130
    code = "run_interrupted"

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or "Interrupted.")
        self.hint = hint

    @property
    def message(self) -> str:
        return str(self.args[0])
