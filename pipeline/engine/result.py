"""Result of one start or resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import ConfigError, ExecutorLost, PipelineError, RunInterrupted, StoreError
from pipeline.records.run import Spend


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as its owner left it."""

    run_id: str
    #: completed, failed or in_progress (with a detail).
    status: str
    detail: str | None = None
    #: Why it is not completed; None if it is.
    error: PipelineError | None = None
    #: Outputs of the completed steps, by step (newest visit).
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Over all owners of the run.
    spent: Spend = field(default_factory=Spend)
    #: What this owner spent, and how long it was active (seconds).
    spent_now: Spend = field(default_factory=Spend)
    seconds: float = 0.0
    #: False where nothing had to be done.
    worked: bool = True

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.status, self.detail, self.error)


def exit_code_of(status: str, detail: str | None, error: PipelineError | None) -> int:
    """Return the exit code of a run that ended so: 0 where all that was requested is done, 130 after an interrupt."""
    if status == "completed" or detail == "stopped_as_asked":
        return 0
    if detail == "interrupted" and not isinstance(error, (ConfigError, StoreError, ExecutorLost)):
        return RunInterrupted.exit_code
    return error.exit_code if error is not None else 1
