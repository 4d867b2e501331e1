"""Points of a run: the ends of its steps read back, which of them a text means, and the run as it was then.

Order is seq, never the clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from typing import Any, NamedTuple

from pipeline.engine.contexts import Contexts, Reducer
from pipeline.errors import RunNotFound
from pipeline.graph.model import Graph
from pipeline.records.codec import Record
from pipeline.records.fold import Builder, fold
from pipeline.records.kinds import Invalidated, RunStarted, Snapshot, StepCompleted, StepFailed
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.reader import records


@dataclass(frozen=True, slots=True)
class Boundary:
    """One step's end, and the run as it stood then."""

    seq: int
    #: Checkpoint id; "" where an imported document had none.
    id: str
    #: node#visit frames.
    path: str
    at: str
    #: completed or failed.
    status: str
    outcome: str
    edges: Sequence[str]
    #: Why these edges; "" where the outcome's label says it.
    reason: str
    attempt: int
    #: It failed and was tried again by itself.
    retry: bool
    error: Mapping[str, Any] | None
    #: Active seconds over all attempts so far.
    seconds: float
    #: Spend so far, exact; and what calls without an exact bill may have added (None: no upper bound).
    usd: Decimal
    possibly: Decimal | None
    #: Calls so far whose price is not known.
    unpriced: int = 0
    #: It came with a fork or an import: an earlier run made it.
    inherited: bool = False
    #: Context key → (value seen, value set); as recorded, so a long one is {"$blob", "bytes"}. A key that was
    #: not set before has Ellipsis in its first place.
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return one of the objects of `history --json`, but for the changes."""
        return {
            "seq": self.seq,
            "id": self.id,
            "step": bare(self.path),
            "path": self.path,
            "at": self.at,
            "cost_usd": self.usd,
            "possibly_usd": self.possibly,
            "status": self.status,
            "outcome": self.outcome,
            "edges": list(self.edges),
            "reason": self.reason,
            "attempt": self.attempt,
            "retry": self.retry,
            "error": self.error,
            "duration_seconds": self.seconds,
            "inherited": self.inherited,
        }

    @property
    def ending(self) -> str:
        """Return how the step ended, in words: its outcome where that says more, the attempt from the second on."""
        words = "completed" if self.status == COMPLETED else "failed"
        if self.outcome not in ("", "success", words):
            words = f"{words}, {self.outcome}"
        if self.attempt > 1:
            words += f" (attempt {self.attempt})"
        return f"{words}, inherited" if self.inherited else words

    def route(self, graph: Graph | None) -> str:
        """Return where it led, and why if there is more to say than the outcome; "-": nowhere."""
        if self.retry:
            return "retried automatically"
        names = []
        for edge in self.edges:
            found = graph.edge(edge) if graph is not None else None
            names.append(found.target if found else edge.partition("->")[2].partition("#")[0] or edge)
        return (", ".join(names) or "-") + (f" ({self.reason.replace('_', ' ')})" if self.reason else "")


def boundaries(run_id: str, records: Iterable[Record], graph: Graph | None = None) -> Iterator[Boundary]:
    """Return every boundary in order; context changes are worked out where the graph is given."""
    builder = Builder(run_id)
    state = builder.state
    contexts = Contexts(graph, state, Unknown()) if graph is not None else None
    told: set[tuple[str, str | None]] = set()
    for record in records:
        builder.apply(record)
        fact = record.fact
        if isinstance(fact, Snapshot):
            # Documents saved one after the other hold the earlier steps again.
            new = [step for step in state.steps.values() if (step.path, step.completed_at) not in told]
            told.update((step.path, step.completed_at) for step in new)
            yield from (_boundary(state, step, record, inherited=fact.source != "api") for step in new)
        elif isinstance(fact, (StepCompleted, StepFailed)) and ended(state, record):
            step = state.steps[fact.path]
            retry = isinstance(fact, StepFailed) and fact.retry
            yield _boundary(state, step, record, retry=retry, changes=_changes(contexts, step))


def ended(state: RunState, record: Record) -> bool:
    """Return whether the record just applied ended a visit (one of an older owner, or behind a gap, does not)."""
    return bool(state.checkpoints) and state.checkpoints[-1].seq == record.seq


class Unknown(dict[str, Reducer]):
    """Reducers of a pipeline whose code is not at hand: what two branches set is shown as both."""

    def get(self, key: str, default: Any = None) -> Callable[[Any, Any], Any]:
        """Return a reducer that keeps both values."""
        return lambda first, second: [first, second]


def _boundary(
    state: RunState,
    step: StepRun,
    record: Record,
    *,
    inherited: bool = False,
    retry: bool = False,
    changes: Mapping[str, tuple[Any, Any]] | None = None,
) -> Boundary:
    total = state.total
    return Boundary(
        record.seq, step.checkpoint, step.path, (step.completed_at if inherited else None) or record.at, step.status,
        step.outcome, tuple(step.edges), step.reason, step.attempt, retry, step.error, step.seconds, total.usd,
        None if total.unbounded else total.high, total.unpriced, inherited, changes or {},
    )  # fmt: skip


def _changes(contexts: Contexts | None, step: StepRun) -> dict[str, tuple[Any, Any]]:
    """Return what a visit set to something else than it saw, beside that."""
    if contexts is None or not step.context:
        return {}
    seen = contexts.seen(step.consumed, step.node)
    changed = ((key, seen.get(key, ...), value) for key, value in step.context.items())
    return {key: (before, value) for key, before, value in changed if before is ... or before != value}


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
    """Return the points of a run.

    Raises:
        RunNotFound, SchemaTooNew: As store.reader.records.
    """
    return points_in(run_id, list(records(store, run_id)))


def points_in(run_id: str, found: Sequence[Record]) -> Points:
    """Return the points of a run of these records."""
    start = max((record.seq for record in takewhile(_opens, found)), default=0)
    return Points(run_id, start, found[-1].seq if found else 0, list(boundaries(run_id, found)))


def _opens(record: Record) -> bool:
    """Return whether a record belongs to what a run begins with."""
    fact = record.fact
    return isinstance(fact, RunStarted | Invalidated) or (isinstance(fact, Snapshot) and fact.source != "api")


def resolve_point(known: Points, text: str | int) -> int:
    """Return the seq that a point means: a seq, `start`, `end`, STEP or STEP#VISIT (its last end), a checkpoint id.

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
            code="point_not_found",
            point=text,
        )
    return found.seq


def state_at(store: Store, run_id: str, seq: int) -> RunState:
    """Return the run as it was once the record `seq` was durable."""
    return state_in(run_id, records(store, run_id), seq)


def state_in(run_id: str, found: Iterable[Record], seq: int) -> RunState:
    """Return what `state_at` does, of records that were read."""
    return fold(run_id, takewhile(lambda record: record.seq <= seq, found))


def _of_step(known: Points, text: str) -> Boundary | None:
    """Return the latest end of the step or visit meant: one that completed, else one whose failure led on, else any."""
    named = [mark for mark in known.boundaries if text in _names(mark.path)]
    good = [mark for mark in named if mark.status == COMPLETED] or [mark for mark in named if mark.edges] or named
    return good[-1] if good else None


def _names(path: str) -> set[str]:
    """Return what a visit may be called: its path, that path without first visits, its last frame, its node."""
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
            code="point_not_found",
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
            hint=f"Name its step ({step}), or the number of a record; `./pipeline.sh log` has them.",
            code="point_not_found", point=text,
        )  # fmt: skip
    there = ", ".join([f"{START} ({known.start})", *own, f"{END} ({known.end})"])
    return RunNotFound(
        f"Run {known.run_id} has no point {text!r}.",
        hint=f"Points: {there}; or the number of any record from {known.start} to {known.end}.",
        code="point_not_found",
        point=text,
    )
