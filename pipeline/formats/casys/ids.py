"""Checkpoint ids: in form UUIDs of version 4; the first eight digits are a mark of their run, by which it is found."""

from __future__ import annotations

import re

from pipeline.clock import Clock
from pipeline.records.values import digest

_FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def checkpoint_id(run_id: str, clock: Clock) -> str:
    """A fresh id for a checkpoint of the run."""
    drawn = digest(clock.new_id().encode("ascii"))
    variant = "89ab"[int(drawn[7], 16) % 4]
    return f"{run_mark(run_id)}-{drawn[:4]}-4{drawn[4:7]}-{variant}{drawn[8:11]}-{drawn[11:23]}"


def run_mark(run_id: str) -> str:
    """What the ids of a run's checkpoints begin with."""
    return digest(run_id.encode("utf-8"))[:8]


def is_checkpoint_id(text: str) -> bool:
    """Whether a text has the form of an id."""
    return _FORM.fullmatch(text) is not None
