"""Spans of work on a step's visit or an item, read back from the records: why each began, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from pipeline.records.run import WHOLE, RunState, StepRun, TaskRun, slot_of
from pipeline.records.statuses import COMPLETED, FAILED

#: Why a span began. Void work is made again for the reason that its record gives (changed, from, missing, …).
NEW, RESUMED, RETRIED, INHERITED, STANDS = "new", "resumed", "retried", "inherited", "stands"


@dataclass(slots=True)
class WorkSpan:
    """Work on a visit or item from its beginning, or a takeover, to its end, or to where it was cut off."""

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


class _Void(NamedTuple):
    reason: str
    note: str
    #: The visit or item as it was.
    former: StepRun | TaskRun
    followed: Sequence[str] = ()


class RunTimeline:
    """Walks the records once and keeps the spans of work at the paths asked for."""

    def __init__(self, run_id: str, paths: Iterable[str], task: str | None = None) -> None:
        self._builder = Builder(run_id)
        self.state = self._builder.state
        self._paths = frozenset(paths)
        self._task = task
        self._void: dict[str, _Void] = {}
        #: How the present owner left, and how the one before it had ("": it died).
        self._leaving = self._left = ""
        self.found: list[WorkSpan] = []

    def walk(self, records: Iterable[Record]) -> RunTimeline:
        for record in records:
            fact = record.fact
            before = self._voidable() if isinstance(fact, Invalidated) else {}
            self._builder.apply(record)
            if isinstance(fact, RunEnded):
                self._leaving = fact.detail or fact.status
            elif isinstance(fact, RunResumed):
                self._left, self._leaving = self._leaving, ""
            elif isinstance(fact, Invalidated):
                self._note_void(fact, before)
            elif isinstance(fact, Snapshot):
                self._inherit(record)
            elif getattr(fact, "path", None) in self._paths:
                (self._step if self._task is None else self._item)(record)
        return self

    def _runs(self, path: str) -> Mapping[str, StepRun | TaskRun]:
        """Return what there is at a path, by what it is called: the visit, or its items."""
        return self.state.steps if self._task is None else self.state.tasks.get(path, {})

    def _voidable(self) -> Mapping[str, StepRun | TaskRun]:
        found = ((path, self._runs(path).get(self._task or path)) for path in self._paths)
        return {path: run for path, run in found if run is not None}

    def _note_void(self, fact: Invalidated, before: Mapping[str, StepRun | TaskRun]) -> None:
        for path, former in before.items():
            if (self._task or path) in self._runs(path):
                continue
            last = self._last(path)
            if self._task is not None and path in self.state.open_paths and last is not None and last.kind == STANDS:
                # The step that runs has looked at the item, and it cannot be reused.
                self.found.remove(last)
            direct = self._task is not None or path in fact.paths
            self._void[path] = _Void(fact.reason, fact.note, former, () if direct else tuple(fact.paths))

    def _inherit(self, record: Record) -> None:
        for path in self._paths:
            run = self._runs(path).get(self._task or path)
            if isinstance(run, TaskRun):
                self._add(path, run.attempt, record, INHERITED, ended=run.status, ended_seq=record.seq)
            elif run is not None and run.ended_seq:
                span = self._add(path, run.attempt, record, INHERITED, ended=run.status, ended_seq=record.seq)
                span.at = run.started_at or record.at

    def _step(self, record: Record) -> None:
        fact = record.fact
        if isinstance(fact, StepStarted):
            span = self._begin(fact.path, fact.attempt, record)
            span.consumed = fact.consumed
            span.reused = _replies(self.state, fact.path)
        elif isinstance(fact, StepCompleted | StepFailed):
            self._end_step(record, fact)
        elif isinstance(fact, CallStarted | TaskCompleted) and self.found:
            span = self._last(fact.path) or self.found[-1]
            if isinstance(fact, CallStarted):
                span.asked.append(record.seq)
            else:
                span.made += 1

    def _end_step(self, record: Record, fact: StepCompleted | StepFailed) -> None:
        marks = self.state.checkpoints
        if not self.found or not marks or marks[-1].seq != record.seq:
            return
        span = self._last(fact.path) or self.found[-1]
        step = self.state.steps[fact.path]
        span.ended, span.ended_seq, span.error = step.status, record.seq, step.error
        if fact.reason == UNCHANGED and span.seq < record.seq:
            span.kind = STANDS
        tasks = self.state.tasks.get(fact.path, {}).values()
        span.kept = sum(task.status == COMPLETED and task.seq < span.seq for task in tasks)
        self._compare(span, step)

    def _item(self, record: Record) -> None:
        fact = record.fact
        if isinstance(fact, StepStarted):
            # An item that is there already is not made again, unless it turns out to be void.
            task = self.state.tasks.get(fact.path, {}).get(self._task or "")
            if task is not None and task.status == COMPLETED:
                self._add(fact.path, task.attempt, record, STANDS, ended=COMPLETED, ended_seq=task.seq)
        elif getattr(fact, "task", None) != self._task:
            return
        elif isinstance(fact, CallStarted | TaskStarted):
            span = self._item_span(record, fact.path, fact.attempt)
            if isinstance(fact, CallStarted):
                span.asked.append(record.seq)
        elif isinstance(fact, TaskCompleted | TaskFailed):
            span = self._item_span(record, fact.path, fact.attempt)
            span.ended, span.ended_seq = COMPLETED if isinstance(fact, TaskCompleted) else FAILED, record.seq
            span.error = fact.error if isinstance(fact, TaskFailed) else None
            self._compare(span, self.state.tasks[fact.path][fact.task])

    def _item_span(self, record: Record, path: str, attempt: int) -> WorkSpan:
        """Return the span of a record: the last one, if the same owner still works at the same attempt."""
        last = self._last(path)
        if last is not None and not last.ended and last.attempt == attempt and last.seq > self.state.owner:
            return last
        span = self._begin(path, attempt, record)
        span.reused = [seq for seq in _replies(self.state, path, self._task, attempt) if seq < record.seq]
        return span

    def _begin(self, path: str, attempt: int, record: Record) -> WorkSpan:
        """Add a span, and say why it began."""
        void = self._void.get(path)
        last = next((span for span in reversed(self.found) if span.path == path and span.kind != STANDS), None)
        if void is not None:
            return self._add(path, attempt, record, void.reason, cause=void.note, followed=void.followed)
        if last is None:
            return self._add(path, attempt, record, NEW)
        if not last.ended:
            return self._add(path, attempt, record, RESUMED, cause=self._left)
        return self._add(path, attempt, record, RETRIED, cause=str((last.error or {}).get("message", "")))

    def _add(self, path: str, attempt: int, record: Record, kind: str, **more: Any) -> WorkSpan:
        self.found.append(WorkSpan(path, self._task, attempt, record.seq, record.at, kind, **more))
        return self.found[-1]

    def _compare(self, span: WorkSpan, now: StepRun | TaskRun) -> None:
        """Note how what it was made from differs, once it has come out again."""
        void = self._void.pop(span.path, None)
        if void is None or now.status != COMPLETED:
            return
        before, after = ({**each.reads, "version": str(each.version)} for each in (void.former, now))
        pairs = {name: (before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))}
        span.changed = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def _last(self, path: str) -> WorkSpan | None:
        return next((span for span in reversed(self.found) if span.path == path), None)


def _replies(state: RunState, path: str, task: str | None = None, attempt: int | None = None) -> list[int]:
    """Return recorded replies that answer work on a visit (or one of its items) when its body runs again."""
    slots = [
        slot
        for slot in state.memo
        if slot[0] == path and (attempt is None or slot == slot_of(state, path, task, attempt))
    ]
    asks = (state.memo[slot] for slot in slots)
    return [call.seq for ask in asks for tries in ask.values() for call in tries if call.usable]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one step (all its visits, or one) or one item ran as it did."""

    run_id: str
    #: Visits asked about, and the item's key.
    paths: Sequence[str]
    task: str | None
    goes: Sequence[WorkSpan]
    #: What the last visit, or the item, had read: name → short hash.
    reads: Mapping[str, str]
    #: Visits that read something of it, with the names they read it by.
    dependents: Mapping[str, Sequence[str]]
    #: The run it was forked from: {"run", "seq"}; None: it is no fork.
    parent: Mapping[str, object] | None


def explain(run_id: str, records: Sequence[Record], paths: Sequence[str], task: str | None = None) -> Explanation:
    """Return why visits, or one item of them, ran as they did."""
    timeline = RunTimeline(run_id, paths, task).walk(records)
    state = timeline.state
    found = [state.steps[path] for path in paths if path in state.steps]
    reads: Mapping[str, str] = found[-1].reads if found else {}
    if task is not None:
        made = [state.tasks[path][task] for path in paths if task in state.tasks.get(path, {})]
        reads = made[-1].reads if made else {}
    return Explanation(run_id, paths, task, timeline.found, reads, _dependents(state, found, task), state.parent)


def _dependents(state: RunState, steps: Sequence[StepRun], task: str | None) -> dict[str, Sequence[str]]:
    if task is not None:
        return {step.path: ["its items"] for step in steps}
    own = {step.path for step in steps}
    found: dict[str, Sequence[str]] = {}
    for step in state.steps.values():
        names = [name for name in step.reads if any(_gave(one, name, step) for one in steps)]
        if not WHOLE.isdisjoint(step.reads) and any(source in own for _, source in step.consumed):
            names += sorted(WHOLE.intersection(step.reads))
        if names and step.path not in own:
            found[step.path] = names
    return found


def _gave(step: StepRun, name: str, reader: StepRun) -> bool:
    """Return whether a read of this name can have been of what the step made."""
    if reader.ended_seq < step.ended_seq or reader is step:
        return False
    kind, _, rest = name.partition(".")
    if kind == "outputs":
        return rest.startswith(f"{step.node}.")
    if kind == "artifact":
        return step.artifacts.get(rest, "")[:16] == reader.reads[name]
    return kind == "context" and rest in step.context
