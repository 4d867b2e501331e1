"""What the records of a run say that a replay needs: the visits that ended, what answered them, the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.records.codec import Record
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    Fact,
    Invalidated,
    MemoryRead,
    RunStarted,
    Snapshot,
    StepFailed,
    replace,
)
from pipeline.records.run import CallRun, RunState, StepRun
from pipeline.records.snapshots import INHERITED, call_row, decision_rows, inherited_document, references
from pipeline.records.statuses import FAILED, IN_PROGRESS
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.travel.points import points_in, resolve_point, state_in
from pipeline.travel.values import BlobCollector, Reader


class RecordedMemory:
    """What a memory answered, query by query in the order of the records; more than that it does not know."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._answers: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
        for record in records:
            if isinstance(record.fact, MemoryRead):
                self._answers.setdefault(record.fact.query, []).append(record.fact.traces)

    def read(self, query: str) -> list[tuple[str, str, float]]:
        """Return the next recorded answer to a query; the last one again where there are no more."""
        left = self._answers.get(query) or [()]
        traces = left.pop(0) if len(left) > 1 else left[0]
        return [(str(row["id"]), str(row["content"]), float(row["strength"])) for row in traces]

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        """Remember nothing."""


class RecordedCall(NamedTuple):
    """A recorded call: what kind, and the blob of its request."""

    label: str
    request: str


@dataclass(slots=True)
class Recording:
    """A run up to a point, as it is to be replayed."""

    store: Store
    seq: int
    #: The run before its first work, and at the point.
    base: RunState
    final: RunState
    #: Visits that ended and stand, in order of their ends; inherited and imported ones are not among them.
    visits: dict[str, StepRun] = field(default_factory=dict)
    #: Visits that a provider let fail, not their content.
    faults: set[str] = field(default_factory=set)
    #: Tries of the attempts that stand.
    tries: list[CallRun] = field(default_factory=list)
    #: Calls by visit and task, in order.
    asked: dict[tuple[str, str | None], list[RecordedCall]] = field(default_factory=dict)
    #: What the user's memory had answered.
    recalled: RecordedMemory = field(default_factory=lambda: RecordedMemory(()))

    @classmethod
    def of(cls, store: Store, run_id: str, to: str | int = "end") -> Recording:
        """Return the recording of a run up to a point.

        Raises:
            RunNotFound: No such run or point.
        """
        found = list(records(store, run_id))
        known = points_in(run_id, found)
        seq = resolve_point(known, to)
        start = min(known.start, seq)
        upto = [record for record in found if record.seq <= seq]
        recording = cls(store, seq, state_in(run_id, found, start), state_in(run_id, upto, seq))
        recording.recalled = RecordedMemory(upto)
        recording._note_visits(start)
        recording._walk(upto)
        return recording

    @property
    def reader(self) -> Reader:
        return Reader(self.store, self.final.run_id)

    def _note_visits(self, start: int) -> None:
        ended = [step for step in self.final.steps.values() if step.ended_seq > start]
        self.visits = {step.path: step for step in sorted(ended, key=lambda step: step.ended_seq)}

    def _walk(self, found: Iterable[Record]) -> None:
        started: dict[int, CallStarted] = {}
        for record in found:
            fact = record.fact
            if isinstance(fact, StepFailed) and fact.path in self.visits:
                self._note_failure(record.seq, fact)
            elif isinstance(fact, CallStarted) and self._stands(fact):
                started[record.seq] = fact
                self.asked.setdefault((fact.path, fact.task), []).append(RecordedCall(fact.label, fact.request))
            elif isinstance(fact, CallEnded) and fact.call in started:
                call, last = started[fact.call], self._last(started[fact.call])
                # What an earlier attempt was left without does not count against the one that heard its replies.
                if fact.error is None or call.attempt == last:
                    self.tries.append(_try(call, fact, record.seq, last))

    def _note_failure(self, seq: int, fact: StepFailed) -> None:
        (self.faults.add if fact.cause == "provider" else self.faults.discard)(fact.path)
        if fact.retry and self.visits[fact.path].ended_seq == seq:
            # It is between two attempts: the visit has not ended.
            del self.visits[fact.path]

    def _stands(self, call: CallStarted) -> bool:
        """Return whether a call is of the attempt that its visit or item ended with, or heard by it."""
        last = self._last(call)
        return last != 0 and self.final.heard_from.get((call.path, call.task), last) <= call.attempt <= last

    def _last(self, call: CallStarted) -> int:
        """Return the attempt that the call's visit or item ended with; 0: it has not ended."""
        visit = self.visits.get(call.path)
        if visit is None or call.task is None:
            return 0 if visit is None else visit.attempt
        task = self.final.tasks.get(call.path, {}).get(call.task)
        return 0 if task is None else task.attempt

    # The beginning of its replay

    def beginning(self, graph: str) -> tuple[list[Fact], list[bytes]]:
        """Return the records that a replay begins with, and the blobs they need.

        Args:
            graph: Hash of the graph it runs.
        """
        keeper = BlobCollector(self.store, self.final.run_id)
        inherited = inherited_document(self.base, keeper.task, keeper.reply)
        gone = [row["path"] for row in inherited["steps"] if self._made_again(row["path"])]
        inherited["tasks"] = [row for row in inherited["tasks"] if self._inherited_task(row)] + self._failed_tasks()
        inherited["attempts"] += self._attempts()
        inherited["replies"] += [call_row(call, keeper.reply(call)) for call in self.tries]
        inherited["decisions"] = decision_rows(self.final)
        pins = {**self.final.pins, "graph": graph}
        document = {"pipeline": self.final.pipeline, "status": IN_PROGRESS, INHERITED: inherited}
        facts: list[Fact] = [
            RunStarted(self.final.pipeline, self.base.params, self.final.identity, {}, pins),
            Snapshot(document, "fork"),
        ]
        if gone:
            facts.append(Invalidated("redo", paths=gone))
        names = [*(blob for name, blob in pins.items() if name != "graph"), *references(inherited)]
        return facts, keeper.blobs(names)

    def _made_again(self, path: str) -> bool:
        """Return whether an inherited visit does not stand any more at the point."""
        return path not in self.final.steps or path in self.visits

    def _inherited_task(self, row: Any) -> bool:
        task = self.final.tasks.get(row["path"], {}).get(row["task"])
        return task is not None and task.seq == self.final.inherited

    def _failed_tasks(self) -> list[dict[str, Any]]:
        """Return items that a provider let fail and that were left out: nothing recorded can make them."""
        return [
            {
                "path": path, "task": key, "item": task.item, "hash": task.hash, "reads": dict(task.reads),
                "attempt": task.attempt, "version": task.version, "status": FAILED, "error": dict(task.error or {}),
                "cause": task.cause, "value": None,
            }
            for path in self.visits
            for key, task in self.final.tasks.get(path, {}).items()
            if task.status == FAILED and task.cause == "provider"
        ]  # fmt: skip

    def _attempts(self) -> list[list[Any]]:
        """Return the attempt that each visit and item ended with: under the same one it is replayed."""
        rows: list[list[Any]] = [[path, None, visit.attempt] for path, visit in self.visits.items()]
        for path in self.visits:
            rows += [[path, key, task.attempt] for key, task in self.final.tasks.get(path, {}).items()]
        return [row for row in rows if row[2] > 1]


def _try(started: CallStarted, ended: CallEnded, seq: int, attempt: int) -> CallRun:
    call = CallRun(seq, started.k, started.model, started.label, None, "", started.path, started.task,
                   attempt, started.key, started.n)  # fmt: skip
    return replace(call, ended=True, usable=ended.usable, reply=ended.reply, error=ended.error,
                   stop_reason=ended.stop_reason, ended_seq=seq)  # fmt: skip
