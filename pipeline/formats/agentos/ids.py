"""Ids in the form of UUIDs of version 4: of our own checkpoints always the same, of forked documents fresh."""

from __future__ import annotations

import re

from pipeline.clock import Clock
from pipeline.records.values import digest

_FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def view_id(run_id: str, mark: str) -> str:
    """The id of a boundary of a run of ours; its first eight digits are the run's.

    Args:
        mark: What the boundary is known by in its run.
    """
    drawn = digest(f"{run_id}/{mark}".encode())
    return _shaped(run_mark(run_id) + drawn)


def fresh_id(clock: Clock) -> str:
    """An id that was never used."""
    return _shaped(digest(clock.new_id().encode("ascii")))


def run_mark(run_id: str) -> str:
    """What the ids of a run's boundaries begin with."""
    return digest(run_id.encode("utf-8"))[:8]


def is_view_id(text: str) -> bool:
    """Whether a text has the form of an id of ours."""
    return _FORM.fullmatch(text) is not None


def _shaped(drawn: str) -> str:
    variant = "89ab"[int(drawn[16], 16) % 4]
    return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-{variant}{drawn[17:20]}-{drawn[20:32]}"
