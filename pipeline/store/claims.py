"""Which run holds a claim: the newest unfinished one of the same course and kind of author, if it is still warm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pipeline.clock import parse_iso
from pipeline.errors import RunExists
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Claim, Head

#: A run untouched for longer holds its claim no more.
WARM = timedelta(days=7)

Heads = Callable[[Callable[[Mapping[str, Any]], bool]], Iterator[Head]]


def refuse_if_held(heads: Heads, claim: Claim, at: datetime) -> None:
    """Look for the holder of a claim.

    Raises:
        RunExists: There is one; data["run"].
    """
    wanted = claim.to_json()

    def holds(document: Mapping[str, Any]) -> bool:
        return document.get("claim") == wanted and document.get("status") != COMPLETED and _warm(document, at)

    for head in heads(holds):
        if not head.corrupt:
            raise RunExists(
                f"Run {head.run_id} of this course is not finished.",
                hint=f"Resume it, or use --force for a new run: --resume {head.run_id}",
                run=head.run_id,
            )


def _warm(document: Mapping[str, Any], at: datetime) -> bool:
    try:
        return parse_iso(document["updated_at"]) >= at - WARM
    except (KeyError, TypeError, ValueError):
        return False
