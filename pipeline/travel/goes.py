"""Each go at a step's visit or at an item, read back from the records: why it began, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.engine.sources import UNCHANGED
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.kinds import (
    CallStarted,
    Invalidated,
    RunEnded,
    RunResumed,
    Snapshot,
    StepCompleted,
    StepFailed,
    StepStarted,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
)
from pipeline.records.run import RunState, StepRun, TaskRun, slot_of
from pipeline.records.statuses import COMPLETED

#: Why a go began. Void work is made again for the reason that its record gives (changed, from, missing, …).
NEW, RESUMED, RETRIED, INHERITED, STANDS = "new", "resumed", "retried", "inherited", "stands"


@dataclass(slots=True)
class Go:
    """One go: from where work on it began (or it was taken over) to its end or to where it was cut off."""

    path: str
    #: Key of the item; None: the visit itself.
    task: str | None
    attempt: int
    #: seq and time of its first record.
    seq: int
    at: str
    #: new, resumed, retried, inherited, stands, or the reason for which it was void.
    kind: str
    #: What that came from: the error before, the note of the record that made it void, how the run had been left.
    cause: str = ""
    #: Edges that the visit consumed: [edge id, path that chose it].
    consumed: Sequence[Sequence[str]] = ()
    #: It was void because it followed one of these.
    followed: Sequence[str] = ()
    #: completed, failed; "" where it was cut off.
    ended: str = ""
    ended_seq: int = 0
    error: Mapping[str, Any] | None = None
    #: Calls asked in it (seq of their starts), and recorded ones that answered it for free.
    asked: list[int] = field(default_factory=list)
    reused: list[int] = field(default_factory=list)
    #: Items made in it, and items that were there already.
    made: int = 0
    kept: int = 0
    #: What differs of what it read, to the time before it was void: name → (before, now).
    changed: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(slots=True)
class _Void:
    reason: str
    note: str
    #: The visit or item as it stood.
    former: StepRun | TaskRun
    followed: Sequence[str] = ()


class Goes:
    """Walks the records once and keeps the goes at the paths asked for."""

    def __init__(self, run_id: str, paths: Iterable[str], task: str | None = None) -> None:
        self._builder = Builder(run_id)
        self._paths = frozenset(paths)
        self._task = task
        self._void: dict[str, _Void] = {}
        #: How the present owner left, and how the one before it had ("": it died).
        self._leaving = self._left = ""
        self.found: list[Go] = []

    @property
    def state(self) -> RunState:
        """The run after the records that were walked."""
        return self._builder.state

    def walk(self, records: Iterable[Record]) -> Goes:
        """Take all records in; self."""
        for record in records:
            before = self._standing(record)
            self._builder.apply(record)
            self._note_owner(record)
            self._note_void(record, before)
            if self._task is None:
                self._step(record)
            else:
                self._item(record)
        return self

    # What lies between goes

    def _note_owner(self, record: Record) -> None:
        if isinstance(record.fact, RunEnded):
            self._leaving = record.fact.detail or record.fact.status
        elif isinstance(record.fact, RunResumed):
            self._left, self._leaving = self._leaving, ""

    def _standing(self, record: Record) -> Mapping[str, StepRun | TaskRun]:
        """What a record that voids may void."""
        if not isinstance(record.fact, Invalidated):
            return {}
        state, task = self.state, self._task
        if task is None:
            return {path: state.steps[path] for path in self._paths if path in state.steps}
        found = ((path, state.tasks.get(path, {}).get(task)) for path in self._paths)
        return {path: run for path, run in found if run is not None}

    def _note_void(self, record: Record, before: Mapping[str, StepRun | TaskRun]) -> None:
        fact = record.fact
        if not isinstance(fact, Invalidated):
            return
        for path, former in before.items():
            there = self.state.steps if self._task is None else self.state.tasks.get(path, {})
            if (path if self._task is None else self._task) in there:
                continue
            if self._task is not None and path in self.state.open_paths:
                self._forget_standing(path)
            direct = self._task is not None or path in fact.paths
            self._void[path] = _Void(fact.reason, fact.note, former, () if direct else tuple(fact.paths))

    def _forget_standing(self, path: str) -> None:
        """The step that runs has looked at the item, and it does not stand."""
        last = next((go for go in reversed(self.found) if go.path == path), None)
        if last is not None and last.kind == STANDS:
            self.found.remove(last)

    # Visits

    def _step(self, record: Record) -> None:
        fact = record.fact
        if isinstance(fact, Snapshot):
            self._inherit(record)
        elif getattr(fact, "path", None) not in self._paths:
            return
        elif isinstance(fact, StepStarted):
            self._begin_step(record, fact)
        elif isinstance(fact, StepCompleted | StepFailed):
            self._end_step(record, fact)
        elif self.found and isinstance(fact, CallStarted):
            self._last(fact.path).asked.append(record.seq)
        elif self.found and isinstance(fact, TaskCompleted):
            self._last(fact.path).made += 1

    def _inherit(self, record: Record) -> None:
        for path in self._paths:
            step = self.state.steps.get(path)
            if step is not None and step.ended_seq:
                self.found.append(Go(path, None, step.attempt, record.seq, step.started_at or record.at, INHERITED,
                                     ended=step.status, ended_seq=record.seq))  # fmt: skip

    def _begin_step(self, record: Record, fact: StepStarted) -> None:
        kind, cause, followed = self._why(fact.path)
        go = Go(fact.path, None, fact.attempt, record.seq, record.at, kind, cause, fact.consumed, followed)
        go.reused = _replies(self.state, fact.path)
        self.found.append(go)

    def _end_step(self, record: Record, fact: StepCompleted | StepFailed) -> None:
        marks = self.state.checkpoints
        if not self.found or not marks or marks[-1].seq != record.seq:
            return
        go = self._last(fact.path)
        step = self.state.steps[fact.path]
        go.ended, go.ended_seq, go.error = step.status, record.seq, step.error
        if fact.reason == UNCHANGED and go.seq < record.seq:
            go.kind = STANDS
        tasks = self.state.tasks.get(fact.path, {}).values()
        go.kept = sum(task.status == COMPLETED and task.seq < go.seq for task in tasks)
        self._compare(go, step)

    # Items

    def _item(self, record: Record) -> None:
        fact = record.fact
        if isinstance(fact, Snapshot):
            self._inherit_item(record)
        elif getattr(fact, "path", None) not in self._paths:
            return
        elif isinstance(fact, StepStarted):
            self._keep_item(record, fact.path)
        elif getattr(fact, "task", None) != self._task:
            return
        elif isinstance(fact, CallStarted | TaskStarted):
            go = self._item_go(record, fact.path, fact.attempt)
            if isinstance(fact, CallStarted):
                go.asked.append(record.seq)
        elif isinstance(fact, TaskCompleted | TaskFailed):
            go = self._item_go(record, fact.path, fact.attempt)
            go.ended, go.ended_seq = ("completed" if isinstance(fact, TaskCompleted) else "failed"), record.seq
            go.error = fact.error if isinstance(fact, TaskFailed) else None
            self._compare(go, self.state.tasks[fact.path][fact.task])

    def _inherit_item(self, record: Record) -> None:
        for path in self._paths:
            task = self.state.tasks.get(path, {}).get(self._task or "")
            if task is not None:
                self.found.append(Go(path, self._task, task.attempt, record.seq, record.at, INHERITED,
                                     ended=task.status, ended_seq=record.seq))  # fmt: skip

    def _keep_item(self, record: Record, path: str) -> None:
        """The step begins again: an item that is there already is not made again, unless it does not stand."""
        task = self.state.tasks.get(path, {}).get(self._task or "")
        if task is not None and task.status == COMPLETED:
            self.found.append(Go(path, self._task, task.attempt, record.seq, record.at, STANDS,
                                 ended=COMPLETED, ended_seq=task.seq))  # fmt: skip

    def _item_go(self, record: Record, path: str, attempt: int) -> Go:
        """The go a record of the item belongs to: the last one, if the same owner still works at the same attempt."""
        last = next((go for go in reversed(self.found) if go.path == path), None)
        if last is not None and not last.ended and last.attempt == attempt and last.seq > self.state.owner:
            return last
        kind, cause, followed = self._why(path)
        go = Go(path, self._task, attempt, record.seq, record.at, kind, cause, followed=followed)
        go.reused = [seq for seq in _replies(self.state, path, self._task, attempt) if seq < record.seq]
        self.found.append(go)
        return go

    # Both

    def _why(self, path: str) -> tuple[str, str, Sequence[str]]:
        """Why a go begins: the kind, its cause, and what it followed."""
        void = self._void.get(path)
        if void is not None:
            return void.reason, void.note, void.followed
        last = next((go for go in reversed(self.found) if go.path == path and go.kind != STANDS), None)
        if last is None:
            return NEW, "", ()
        if not last.ended:
            return RESUMED, self._left, ()
        return RETRIED, str((last.error or {}).get("message", "")), ()

    def _compare(self, go: Go, now: StepRun | TaskRun) -> None:
        """Note what differs of what it was made from, once it has come out again."""
        void = self._void.pop(go.path, None)
        if void is None or now.status != COMPLETED:
            return
        before, after = ({**each.reads, "version": str(each.version)} for each in (void.former, now))
        pairs = {name: (before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))}
        go.changed = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def _last(self, path: str) -> Go:
        return next((go for go in reversed(self.found) if go.path == path), self.found[-1])


def _replies(state: RunState, path: str, task: str | None = None, attempt: int | None = None) -> list[int]:
    """Recorded replies that answer work on a visit (or one of its items) when its body runs again."""

    def slots() -> Iterator[tuple[str, str | None, int]]:
        for slot in state.memo:
            if slot[0] == path and (attempt is None or slot == slot_of(state, path, task, attempt)):
                yield slot

    asks = (state.memo[slot] for slot in slots())
    return [call.seq for ask in asks for tries in ask.values() for call in tries if call.usable]
