"""The words for how a run or a step stands, as records and documents spell them."""

from __future__ import annotations

PENDING, IN_PROGRESS, COMPLETED, FAILED = "pending", "in_progress", "completed", "failed"
#: Of a step only: the run is over and no visit reached it.
SKIPPED = "skipped"
#: What in_progress may mean (status_detail).
DETAILS = (
    "running",
    "interrupted",
    "paused_budget",
    "paused_rate_limit",
    "paused_spend_limit",
    "waiting_for_human",
    "waiting_for_batch",
    "stopped_as_asked",
)
