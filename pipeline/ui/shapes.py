"""How a status is shown: a shape of the sprite, a word, and a class whose colour only repeats them."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.app.run_list import GONE
from pipeline.records.statuses import COMPLETED, FAILED, PENDING, SKIPPED

#: Word → (symbol of the sprite, class). Any other word is pending.
SHAPES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys((COMPLETED, "approved", "agrees"), ("s-done", "st-done")),
    **dict.fromkeys(("reused", "edited", "read from cache"), ("s-reused", "st-done")),
    "running": ("s-run", "st-run"),
    **dict.fromkeys((PENDING, "to review"), ("s-pending", "st-idle")),
    "waits for a person": ("s-wait", "st-wait"),
    **dict.fromkeys(("finding", "severe", "outcome unknown"), ("s-wait", "st-fail")),
    "waits for a batch": ("s-batch", "st-wait"),
    **dict.fromkeys((FAILED, "conflict", "cannot be read"), ("s-failed", "st-fail")),
    **dict.fromkeys((GONE, "connection lost"), ("s-gone", "st-fail")),
    **dict.fromkeys(("interrupted", "cut off", "stopped as asked"), ("s-paused", "st-idle")),
    **dict.fromkeys(
        ("stopped at the ceiling", "paused by a rate limit", "stopped by the account's limit"), ("s-paused", "st-fail")
    ),
    SKIPPED: ("s-skipped", "st-idle"),
}


def shape_of(word: str) -> tuple[str, str]:
    """Return the symbol and the class of a status word."""
    return SHAPES.get(word, ("s-pending", "st-idle"))
