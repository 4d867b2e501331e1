"""Spans from a run's records: run → step → item → attempt → call. Pure.

A span's id comes from the run and from the record that began it, so the same records give the same spans. Each process
that worked on a run has a run span of its own: what it left is over then, and a resume changes none of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.clock import parse_iso
from pipeline.cost.ledger import LedgerRow, rows
from pipeline.records.codec import Record
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    RunEnded,
    RunResumed,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
)
from pipeline.records.run import bare
from pipeline.records.statuses import FAILED
from pipeline.traces.call import Told, call_values, nothing_told
from pipeline.traces.names import ATTEMPT, CALL, CHAT, ITEM, RUN, RUN_OPERATION, STEP, Value, named

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: What ended work that has no recorded end: its process was gone.
INTERRUPTED = "interrupted"
#: The row of the ledger of a call's records: its start (None: that was lost) and its end (None: there is none yet).
RowOf = Callable[[Record | None, Record | None], LedgerRow]


@dataclass(frozen=True, slots=True)
class Span:
    """One span, finished."""

    #: 32 and 16 hex digits; parent "": it has none.
    trace: str
    id: str
    parent: str
    #: run, step, item, attempt or call.
    kind: str
    name: str
    #: Nanoseconds since 1970.
    start: int
    end: int
    attributes: Mapping[str, Value]
    #: Class of the error it ended with; "": none.
    error: str = ""
    #: What a call cost and took, for metrics; None: it is no call.
    row: LedgerRow | None = None


@dataclass(slots=True)
class _Open:
    """A span that is not finished."""

    kind: str
    id: str
    parent: str
    name: str
    began: str
    last: str
    values: dict[str, Value | None] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A call without an end."""

    start: Record
    fact: CallStarted
    id: str
    parent: str
    #: When the process left that sent it; [""]: it has not. Shared by all calls of a process.
    left: list[str]


def row_now(start: Record | None, end: Record | None) -> LedgerRow:
    """Return the row of a call as its own records tell it: whether its work is void later is not in them."""
    return rows(record for record in (start, end) if record is not None)[0]


class Tree:
    """Grows with a run's records, in order; one thread applies them."""

    def __init__(self, run: str, row_of: RowOf = row_now, told: Told = nothing_told) -> None:
        """Begin.

        Args:
            told: What a call's own texts tell beside its row.
        """
        self._run = run
        self._row_of = row_of
        self._told = told
        self._trace = self._pipeline = ""
        #: The run span, and the id that stays when it is finished: what comes late hangs under it.
        self._owner: _Open | None = None
        self._root = ""
        self._first = ""
        self._left = [""]
        self._steps: dict[str, _Open] = {}
        #: When and with which record the latest attempt of a visit began.
        self._tries: dict[str, tuple[str, str]] = {}
        self._items: dict[str, dict[str, _Open]] = {}
        self._attempts: dict[tuple[str, str | None], _Open] = {}
        self._calls: dict[int, _Sent] = {}
        self._ended: set[int] = set()
        self._last = ""

    def apply(self, record: Record) -> list[Span]:
        """Return the spans that a record finishes."""
        if not self._trace:
            self._trace = _trace_of(self._run, record)
        take = _TAKES.get(type(record.fact))
        made = list(take(self, record, record.fact)) if take is not None else []
        self._last = max(self._last, record.at)
        return made

    def close(self) -> list[Span]:
        """Return what is unfinished, as far as the records go; its process is gone."""
        made = list(self._leave(self._last, INTERRUPTED))
        return made + [self._call(None, sent, None, at=sent.left[0]) for sent in self._calls.values()]

    # --- the run ------------------------------------------------------------------------------------

    def _begin(self, record: Record, fact: Any) -> Iterator[Span]:
        yield from self._leave(self._last, INTERRUPTED)
        if isinstance(fact, RunStarted):
            self._pipeline = fact.pipeline
        opened = self._open(RUN, str(record.seq), self._first, f"{RUN_OPERATION} {self._pipeline}".strip(), record.at)
        opened.values |= {"operation": RUN_OPERATION, "workflow": self._pipeline or None,
                          "resumed": isinstance(fact, RunResumed)}  # fmt: skip
        self._owner, self._root, self._left = opened, opened.id, [""]
        self._first = self._first or opened.id

    def _end_run(self, record: Record, fact: RunEnded) -> Iterator[Span]:
        if self._owner is not None:
            self._owner.values["run_status"] = fact.detail or fact.status
            failed = fact.status == FAILED
            self._owner.error = _error_of(fact.error) or FAILED if failed else ""
        yield from self._leave(record.at, "")

    def _leave(self, at: str, why: str) -> Iterator[Span]:
        """Finish all that the present process has open.

        Args:
            why: What ended it; "": the process told its end.
        """
        owner, self._owner = self._owner, None
        self._left[0] = at
        for path in list(self._steps):
            yield from self._end_step(path, at, why)
        if owner is not None:
            if why:
                owner.values["run_status"] = owner.error = why
            yield self._finished(owner, at)

    # --- steps --------------------------------------------------------------------------------------

    def _start_step(self, record: Record, fact: StepStarted) -> Iterator[Span]:
        key = str(record.seq)
        step = self._step(fact.path, key, record.at)
        step.values["attempt"] = fact.attempt
        self._tries[fact.path] = key, record.at
        return iter(())

    def _complete_step(self, record: Record, fact: StepCompleted) -> Iterator[Span]:
        self._step(fact.path, str(record.seq), record.at).values["outcome"] = fact.outcome
        return self._end_step(fact.path, record.at, "")

    def _fail_step(self, record: Record, fact: StepFailed) -> Iterator[Span]:
        error = _error_of(fact.error) or FAILED
        step = self._step(fact.path, str(record.seq), record.at)
        step.values["outcome"] = fact.outcome
        self._attempt(record, fact.path, None, fact.attempt)
        if fact.retry:
            return self._end_attempt(fact.path, None, record.at, error)
        return self._end_step(fact.path, record.at, error)

    def _step(self, path: str, key: str, at: str) -> _Open:
        """Return the span of a visit, begun where it is not open."""
        if path not in self._steps:
            node, _, visit = path.rpartition("/")[2].partition("#")
            around = next((self._steps[each].id for each in _above(path) if each in self._steps), self._root)
            step = self._open(STEP, key, around, f"{STEP} {node}", at)
            step.values |= {"step": bare(path), "visit": int(visit) if visit.isdigit() else None}
            self._steps[path] = step
            self._tries.setdefault(path, (key, at))
        return self._steps[path]

    def _end_step(self, path: str, at: str, error: str) -> Iterator[Span]:
        for task, item in list(self._items.pop(path, {}).items()):
            # It failed for good, or its process left it.
            cut = INTERRUPTED if error == INTERRUPTED else ""
            yield from self._end_attempt(path, task, item.last, cut)
            item.error = item.error or cut
            yield self._finished(item, item.last)
        yield from self._end_attempt(path, None, at, error)
        step = self._steps.pop(path, None)
        self._tries.pop(path, None)
        if step is not None:
            step.error = error
            yield self._finished(step, at)

    # --- items and attempts -------------------------------------------------------------------------

    def _start_task(self, record: Record, fact: Any) -> Iterator[Span]:
        self._attempt(record, fact.path, fact.task, fact.attempt)
        return iter(())

    def _complete_task(self, record: Record, fact: TaskCompleted) -> Iterator[Span]:
        self._attempt(record, fact.path, fact.task, fact.attempt)
        return self._end_item(fact.path, fact.task, record.at, "")

    def _fail_task(self, record: Record, fact: TaskFailed) -> Iterator[Span]:
        # It may be tried again: the item ends with its step.
        error = _error_of(fact.error) or FAILED
        self._attempt(record, fact.path, fact.task, fact.attempt)
        self._item(fact.path, fact.task, record).error = error
        return self._end_attempt(fact.path, fact.task, record.at, error)

    def _item(self, path: str, task: str, record: Record) -> _Open:
        """Return the span of a task, begun where it is not open."""
        items = self._items.setdefault(path, {})
        if task not in items:
            key = _key(record)
            within = next((items[each].id for each in _above(task) if each in items), "")
            node = path.rpartition("/")[2].partition("#")[0]
            item = self._open(ITEM, key, within or self._step(path, key, record.at).id, f"{ITEM} {node}", record.at)
            item.values |= {"step": bare(path), "item": task.removeprefix(f"{node}/")}
            items[task] = item
        items[task].last = max(items[task].last, record.at)
        return items[task]

    def _attempt(self, record: Record, path: str, task: str | None, number: int) -> _Open:
        """Return the span of an attempt of a task, or of the step itself; begun where it is not open."""
        place = path, task
        known = self._attempts.get(place)
        if known is None or known.values["attempt"] != number:
            if task is None:
                around = self._step(path, _key(record), record.at)
                key, began = self._tries[path]
            else:
                around, key, began = self._item(path, task, record), _key(record), record.at
            known = self._open(ATTEMPT, key, around.id, f"{ATTEMPT} {around.name.partition(' ')[2]}", began)
            known.values |= {each: around.values.get(each) for each in ("step", "item")} | {"attempt": number}
            self._attempts[place] = known
        known.last = max(known.last, record.at)
        return known

    def _end_attempt(self, path: str, task: str | None, at: str, error: str) -> Iterator[Span]:
        known = self._attempts.pop((path, task), None)
        if known is not None:
            known.error = error
            yield self._finished(known, at)

    def _end_item(self, path: str, task: str, at: str, error: str) -> Iterator[Span]:
        yield from self._end_attempt(path, task, at, error)
        item = self._items[path].pop(task)
        item.error = error
        yield self._finished(item, at)

    # --- calls --------------------------------------------------------------------------------------

    def _start_call(self, record: Record, fact: CallStarted) -> Iterator[Span]:
        parent = self._attempt(record, fact.path, fact.task, fact.attempt)
        self._calls[record.seq] = _Sent(record, fact, self._id(CALL, _key(record)), parent.id, self._left)
        return iter(())

    def _end_call(self, record: Record, fact: CallEnded) -> Iterator[Span]:
        sent = self._calls.pop(fact.call, None)
        if sent is None and fact.call in self._ended:
            return
        self._ended.add(fact.call)
        if sent is not None:
            place = sent.fact.path, sent.fact.task
            for open_one in (self._attempts.get(place), self._items.get(place[0], {}).get(place[1] or "")):
                if open_one is not None:
                    open_one.last = max(open_one.last, record.at)
        yield self._call(fact, sent, record, at=record.at)

    def _call(self, fact: CallEnded | None, sent: _Sent | None, end: Record | None, *, at: str) -> Span:
        start = None if sent is None else sent.start
        row = self._row_of(start, end)
        values = call_values(row, None if sent is None else sent.fact, self._told(start, fact))
        error = row.error or ("" if end is not None and not row.cause else row.cause or INTERRUPTED)
        key = str(fact.call) if sent is None and fact is not None else ""
        opened = _Open(
            CALL, self._id(CALL, key) if sent is None else sent.id, self._root if sent is None else sent.parent,
            f"{CHAT} {values['asked_model'] or ''}".strip(), at if start is None else start.at, at, values, error,
        )  # fmt: skip
        return self._finished(opened, at, row)

    # --- all ----------------------------------------------------------------------------------------

    def _id(self, kind: str, key: str) -> str:
        return hashlib.sha256(f"{self._trace}\0{kind}\0{key}".encode()).hexdigest()[:16]

    def _open(self, kind: str, key: str, parent: str, name: str, at: str) -> _Open:
        return _Open(kind, self._id(kind, key), parent, name, at, at)

    def _finished(self, what: _Open, at: str, row: LedgerRow | None = None) -> Span:
        values = what.values | {"kind": what.kind, "run": self._run, "error": what.error or None}
        start = _nanoseconds(what.began)
        return Span(
            self._trace, what.id, what.parent, what.kind, what.name, start, max(start, _nanoseconds(at)),
            named(values), what.error, row,
        )  # fmt: skip


_TAKES: Mapping[type, Callable[[Tree, Record, Any], Iterator[Span]]] = {
    RunStarted: Tree._begin,
    RunResumed: Tree._begin,
    RunEnded: Tree._end_run,
    StepStarted: Tree._start_step,
    StepCompleted: Tree._complete_step,
    StepFailed: Tree._fail_step,
    TaskStarted: Tree._start_task,
    TaskSubmitted: Tree._start_task,
    TaskCompleted: Tree._complete_task,
    TaskFailed: Tree._fail_task,
    CallStarted: Tree._start_call,
    CallEnded: Tree._end_call,
}


def _trace_of(run: str, first: Record) -> str:
    """Return the id of a run's trace: runs of two stores may have the same name, but did not begin as one."""
    begun = f"{first.at}\0{sorted(first.fact.host.items())}" if isinstance(first.fact, RunStarted) else ""
    return hashlib.sha256(f"{run}\0{begun}".encode()).hexdigest()[:32]


def _key(record: Record) -> str:
    """Return what names a record for good: what was copied from a part keeps its place there."""
    return str(getattr(record.fact, "origin", "") or record.seq)


def _above(name: str) -> Iterator[str]:
    """Yield what a name lies in, the nearest first: "a/b/c" → "a/b", "a"."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _error_of(error: Mapping[str, Any] | None) -> str:
    return str((error or {}).get("type") or "")


def _nanoseconds(at: str) -> int:
    return (parse_iso(at) - _EPOCH) // _MICROSECOND * 1000
