"""How a status is shown: a shape of the sprite, a word, and a class whose colour only repeats them."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING, SKIPPED

GONE = "process is gone"
#: Word → (symbol of the sprite, class). Any other word is pending.
SHAPES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys((COMPLETED, "approved", "agrees"), ("s-done", "st-done")),
    **dict.fromkeys(("reused", "edited", "read from cache"), ("s-reused", "st-done")),
    "running": ("s-run", "st-run"),
    **dict.fromkeys((PENDING, "to review"), ("s-pending", "st-idle")),
    "waits for a person": ("s-wait", "st-wait"),
    **dict.fromkeys(("finding", "severe"), ("s-wait", "st-fail")),
    "waits for a batch": ("s-batch", "st-wait"),
    **dict.fromkeys((FAILED, "conflict", "cannot be read"), ("s-failed", "st-fail")),
    **dict.fromkeys((GONE, "connection lost"), ("s-gone", "st-fail")),
    **dict.fromkeys(("interrupted", "cut off", "stopped as asked"), ("s-paused", "st-idle")),
    **dict.fromkeys(
        ("stopped at the ceiling", "paused by a rate limit", "stopped by the account's limit"), ("s-paused", "st-fail")
    ),
    SKIPPED: ("s-skipped", "st-idle"),
}
#: status_detail → word.
_DETAILS: Mapping[str, str] = {
    "running": "running",
    "interrupted": "interrupted",
    "paused_budget": "stopped at the ceiling",
    "paused_rate_limit": "paused by a rate limit",
    "paused_spend_limit": "stopped by the account's limit",
    "waiting_for_human": "waits for a person",
    "waiting_for_batch": "waits for a batch",
    "stopped_as_asked": "stopped as asked",
}


def shape_of(word: str) -> tuple[str, str]:
    """Return the symbol and the class of a status word."""
    return SHAPES.get(word, ("s-pending", "st-idle"))


def run_word(status: str, detail: str | None, *, gone: bool = False) -> str:
    """Return how a run stands in the words of the pages.

    Args:
        gone: It counts as running, and no living process owns it.
    """
    if status == "corrupt":
        return "cannot be read"
    if status != IN_PROGRESS:
        return status
    return GONE if gone else _DETAILS.get(detail or "", "running" if detail is None else detail)
