"""What a go at a layered run came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import PipelineError
from pipeline.formats.casys.state import WorkflowState
from pipeline.records.run import Spend

ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class LayeredResult:
    """A layered run as its owner left it."""

    workflow_id: str
    run_id: str
    #: completed, failed, aborted (by a person or agent, or for want of an answer) or in_progress (paused).
    status: str
    #: Why it is in_progress: waiting_for_human, paused_budget, interrupted, …; else None.
    detail: str | None
    #: Why it is not completed; None if it is.
    error: PipelineError | None
    state: WorkflowState
    #: Results of the tasks that stand, by id; null of one that was safe to fail.
    results: Mapping[str, Any]
    #: Messages of the tasks that failed, by id; tasks that could not run because of them.
    failed: Mapping[str, str]
    blocked: Sequence[str]
    #: How many leading layers are done, of how many.
    layer_index: int
    layers: int
    #: What people should know of this go.
    warnings: Sequence[str] = ()
    #: The disk refused records: the run can be gone on with only from this record on. None: all is saved.
    not_resumable_past: int | None = None
    spent: Spend = field(default_factory=Spend)
    seconds: float = 0.0
    exit_code: int = 0

    @property
    def checkpoint_id(self) -> str | None:
        """The newest checkpoint; None: none was saved."""
        return self.state.checkpoint_id
