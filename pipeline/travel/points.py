"""Points of a run: which record a text means, and the run as it was then. Order is seq, never the clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from pipeline.errors import RunNotFound
from pipeline.records.codec import Record
from pipeline.records.fold import fold
from pipeline.records.kinds import Invalidated, RunStarted, Snapshot
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.reading import records
from pipeline.travel.boundaries import Boundary, boundaries

START, END = "start", "end"
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")
_HEX = re.compile(r"[0-9a-f-]{4,36}")
#: How many points an error names.
_SHOWN = 12


class Points(NamedTuple):
    """All points of a run."""

    run_id: str
    #: seq of the last record before its first work, and of the last one of all.
    start: int
    end: int
    boundaries: Sequence[Boundary]


def points(store: Store, run_id: str) -> Points:
    """The points of a run.

    Raises:
        RunNotFound, SchemaTooNew: As store.reading.records.
    """
    return points_in(run_id, list(records(store, run_id)))


def points_in(run_id: str, found: Sequence[Record]) -> Points:
    """The points of a run of these records."""
    start = max((record.seq for record in takewhile(_opens, found)), default=0)
    return Points(run_id, start, found[-1].seq if found else 0, list(boundaries(run_id, found)))


def _opens(record: Record) -> bool:
    """Whether a record belongs to what a run begins with."""
    fact = record.fact
    return isinstance(fact, RunStarted | Invalidated) or (isinstance(fact, Snapshot) and fact.source != "api")


def resolve_point(known: Points, text: str | int) -> int:
    """The seq that a point means: a seq, `start`, `end`, STEP or STEP#VISIT (its latest end), or a checkpoint id.

    A step wins over a checkpoint id that begins alike; `start` and `end` over steps of that name, which
    `start#1` means.

    Raises:
        RunNotFound: The run has no such point, or several; names what there is.
    """
    text = str(text).strip()
    if text in (START, END):
        return known.start if text == START else known.end
    if _NUMBER.fullmatch(text) and known.start <= int(text) <= known.end:
        return int(text)
    found = _of_step(known, text) or _of_checkpoint(known, text)
    if found is None:
        raise _unknown(known, text)
    if found.inherited:
        raise RunNotFound(
            f"Run {known.run_id} inherited {bare(found.path)}; its own points begin at seq {known.start}.",
            hint="Name the run it was forked from; `./pipeline.sh status` says which.",
            point=text,
        )
    return found.seq


def state_at(store: Store, run_id: str, seq: int) -> RunState:
    """The run as it was once the record `seq` was durable."""
    return state_in(run_id, records(store, run_id), seq)


def state_in(run_id: str, found: Iterable[Record], seq: int) -> RunState:
    """As `state_at`, of records that were read."""
    return fold(run_id, takewhile(lambda record: record.seq <= seq, found))


def _of_step(known: Points, text: str) -> Boundary | None:
    """The latest end of the step or visit meant: one that completed, else one whose failure led on, else any."""
    named = [mark for mark in known.boundaries if text in _names(mark.path)]
    good = [mark for mark in named if mark.status == COMPLETED] or [mark for mark in named if mark.edges] or named
    return good[-1] if good else None


def _names(path: str) -> set[str]:
    """What a visit may be called: its path, that path without first visits, its last frame, its node."""
    frame = path.rpartition("/")[2]
    return {path, bare(path), frame, frame.partition("#")[0]}


def _of_checkpoint(known: Points, text: str) -> Boundary | None:
    text = text.lower()
    if not _HEX.fullmatch(text):
        return None
    begun = text.replace("-", "")
    found = {mark.id: mark for mark in known.boundaries if mark.id and mark.id.replace("-", "").startswith(begun)}
    if len(found) > 1:
        raise RunNotFound(
            f"{text!r} may mean the checkpoints {', '.join(list(found)[:_SHOWN])}.",
            hint="Type more of the id.",
            point=text,
        )
    return next(iter(found.values()), None)


def _unknown(known: Points, text: str) -> RunNotFound:
    own = [f"{bare(mark.path)} ({mark.seq})" for mark in known.boundaries if not mark.inherited]
    if len(own) > _SHOWN:
        own = [*own[: _SHOWN // 2], "…", *own[-_SHOWN // 2 :]]
    step = text.rpartition("/")[0]
    if step and any(step in _names(mark.path) for mark in known.boundaries):
        return RunNotFound(
            f"{text!r} is an item; points are the ends of steps.",
            hint=f"Name its step ({step}), or the number of a record; `./pipeline.sh log` has them.", point=text,
        )  # fmt: skip
    there = ", ".join([f"{START} ({known.start})", *own, f"{END} ({known.end})"])
    return RunNotFound(
        f"Run {known.run_id} has no point {text!r}.",
        hint=f"There are {there}; or the number of any record from {known.start} to {known.end}.",
        point=text,
    )
