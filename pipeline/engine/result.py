"""How a go at a run ended, for whoever started it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import ConfigError, ExecutorLost, PipelineError, StoreError
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
        """0 where all that was asked for is done."""
        if self.status == "completed" or self.detail == "stopped_as_asked":
            return 0
        if self.detail == "interrupted" and not isinstance(self.error, (ConfigError, StoreError, ExecutorLost)):
            return 130
        return self.error.exit_code if self.error is not None else 1
