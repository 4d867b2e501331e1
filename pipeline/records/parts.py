"""Parts of a run in its fold: tasks that are with an executor, and which of their calls were copied here.

Called by the fold only.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from pipeline.records.kinds import CallStarted, TaskSubmitted

#: The part in which all who work on a run leave word for each other.
NOTICES = "notices"
_NONE: Mapping[int, int] = MappingProxyType({})


class Submitted(NamedTuple):
    """A task that is with an executor: its end, and its newest calls, stand in a part of the run."""

    #: The part's name.
    part: str
    #: The worker knows the run as it was at this seq.
    base: int
    attempt: int
    #: What its calls may cost at worst, all of them together (USD); None: no ceiling.
    usd: Decimal | None
    #: Calls of the part that were copied: seq there → seq here.
    copied: Mapping[int, int] = _NONE


#: By (path, task).
Table = dict[tuple[str, str], Submitted]


def submit(table: Table, seq: int, fact: TaskSubmitted) -> None:
    """A task is handed out; again under the same part where it had been before."""
    known = table.get((fact.path, fact.task))
    part = fact.part or f"task-{seq}"
    copied = known.copied if known is not None and known.part == part else _NONE
    usd = None if fact.usd is None else Decimal(fact.usd)
    table[fact.path, fact.task] = Submitted(part, fact.base, fact.attempt, usd, copied)


def copy_call(table: Table, seq: int, fact: CallStarted) -> None:
    """A call of a part stands here too from now on."""
    part, _, there = fact.origin.rpartition(":")
    for key, known in table.items():
        if known.part == part and there.isdecimal():
            table[key] = known._replace(copied={**known.copied, int(there): seq})
            return
