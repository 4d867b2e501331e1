"""The plain command given again: which run it means. Pure; architecture: one unfinished run a course."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pipeline.clock import parse_iso
from pipeline.providers import ANTHROPIC
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Claim, Head

#: An unfinished run untouched for longer is left alone.
STALE_AFTER = timedelta(days=7)

#: Identity settings that make two courses the same.
SAME = ("author", "model", "provider", "effort", "lessons", "blind_solve", "catalogue", "bank", "prompts")


@dataclass(frozen=True, slots=True)
class Choice:
    """What the plain command does, and why."""

    kind: Literal["new", "continuing", "completed"]
    #: The run meant; "" for a new one.
    run: str = ""
    reason: str = ""


def choose_run(heads: Iterable[Head], claim: Claim, identity: Mapping[str, Any], now: datetime) -> Choice:
    """Return the newest unfinished run of the claim, else a completed one made from the same, else a new one."""
    held = claim.to_json()
    done: str | None = None
    why = "no unfinished run of this course"
    for head in heads:
        document = head.document
        if head.corrupt or list(document.get("claim") or ()) != held:
            continue
        if document.get("status") != COMPLETED:
            if not _fresh(document, now):
                why = f"{head.run_id} is unfinished, but untouched for more than {STALE_AFTER.days} days"
                continue
            return Choice("continuing", head.run_id, "unfinished run of this course")
        if done is None and _same(document, identity):
            done = head.run_id
    if done is not None:
        return Choice("completed", done, "made from the same inputs")
    return Choice("new", reason=why)


def _fresh(document: Mapping[str, Any], now: datetime) -> bool:
    try:
        return now - parse_iso(str(document.get("updated_at"))) <= STALE_AFTER
    except ValueError:
        return False


def _same(document: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    known = dict(document.get("identity") or {})
    if known.get("author") == "model":
        known.setdefault("provider", ANTHROPIC)
    return all(known.get(name) == identity.get(name) for name in SAME)


def conflicts(pinned: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return settings the user gave that differ from the pinned ones: name → (pinned, given)."""
    return {
        name: (pinned.get(name), value) for name, value in given.items() if name in pinned and pinned[name] != value
    }
