"""The kinds of records of tasks that are with an executor, and of its workers' word to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from pipeline.records.fact import Fact
from pipeline.records.frozen import frozen


@frozen
class TaskSubmitted(Fact):
    """A task is handed to an executor: from here on a part of the run, a journal of its own, says how it goes."""

    kind: ClassVar[str] = "task_submitted"
    path: str
    task: str
    #: The part's name in the run; "": task-SEQ of this record.
    part: str = ""
    #: The worker knows the run as it was at this seq.
    base: int = 0
    attempt: int = 1
    #: What its calls may cost at worst, all its submissions together (USD, decimal text); None: no ceiling.
    usd: str | None = None


@frozen
class TaskTaken(Fact):
    """A worker took the task that a part is of; its seq is the owner mark of what follows in the part."""

    kind: ClassVar[str] = "task_taken"
    path: str
    task: str
    attempt: int = 1
    #: {"host", "pid"}.
    host: Mapping[str, Any] = field(default_factory=dict)


@frozen
class FleetTold(Fact):
    """What all who work on a run must know before their next call; stands in the part `notices`."""

    kind: ClassVar[str] = "fleet_told"
    #: No call leaves before this moment (ISO-8601 UTC); "": nothing is said of that.
    until: str = ""
    reason: str = ""
    #: Owner mark of the coordinator whose workers are to begin nothing more; 0: nobody's.
    stop: int = 0
