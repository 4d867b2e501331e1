"""What stands in the folder that a run published to: its own course, another run's, or nothing any more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.publish.base import Publisher

#: Files that were changed by hand and are named.
_NAMED = 5


def replaced(publisher: Publisher, run: str, outputs: Mapping[str, Any]) -> str:
    """What a run that has just published put out of its place; asked before its own receipt is written."""
    there = publisher.standing(str(outputs["path"]))
    if there is None or there.run in ("", run) or there.run_hash == outputs.get("content_hash"):
        return ""
    kept = "; that version is kept in .versions until the next one" if there.kept else ""
    return f"It replaces what run {there.run} had published there{kept}."


def left_out(outputs: Mapping[str, Any], command: str) -> str:
    """What a completed course does without, and how that is tried again; "" if nothing.

    Args:
        outputs: Of the lessons step.
        command: What resumes the run.
    """
    failed = int(outputs.get("failed") or 0)
    if not failed:
        return ""
    which = "1 lesson failed and is" if failed == 1 else f"{failed} lessons failed and are"
    return f"{which} left out; {command} --retry-failed tries again."


def stands(publisher: Publisher, outputs: Mapping[str, Any], folder: Path, again: str) -> tuple[bool, str]:
    """Whether a completed run's course is what is published now, and what is to be said of that.

    Args:
        outputs: Of the run's publish step.
        again: The command that publishes it again.
    """
    there = publisher.standing(str(outputs.get("path")))
    if there is None:
        return False, f"{folder} is not there any more; {again} publishes it again."
    named = ", ".join(there.edited[:_NAMED]) + (", …" if len(there.edited) > _NAMED else "")
    edited = f"Changed by hand since: {named}." if named else ""
    if there.content_hash and there.content_hash != outputs.get("content_hash"):
        other = f"run {there.run}" if there.run and there.run_hash == there.content_hash else "another run"
        return False, f"{folder} holds what {other} published since; {again} publishes this one again."
    return True, edited
