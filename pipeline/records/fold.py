"""The fold: records in, RunState out. What each kind of record means stands here and in the two files it calls.

No I/O, clock or randomness; one thread owns a Builder; applying costs O(size of the record).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from pipeline.records import positions, snapshots
from pipeline.records.codec import Record, understood
from pipeline.records.kinds import (
    CODE,
    KINDS,
    BatchAbandoned,
    BatchCancelled,
    BatchIntended,
    BatchSubmitted,
    CallEnded,
    CallStarted,
    ChargeSettled,
    DayReserved,
    Decision,
    DecisionAsked,
    Gap,
    Invalidated,
    MemoryApplied,
    MemoryRead,
    RunEnded,
    RunResumed,
    RunStarted,
    Snapshot,
    StepCompleted,
    StepFailed,
    StepStarted,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskTaken,
    UnknownFact,
)
from pipeline.records.money import CLOSING, VOID, Spending
from pipeline.records.reviews import Review
from pipeline.records.run import (
    WHOLE,
    Answered,
    BatchRun,
    OpenQuestion,
    Remark,
    RunState,
    Spend,
    Submitted,
    TaskRun,
    TaskTable,
    Token,
    first_heard,
    slot_of,
)
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS
from pipeline.records.tasks import NOTHING_READ

#: A task value whose JSON text is at most this long (bytes) stays in memory; longer ones are read back.
KEEP_BYTES = 1024

#: Why a single task is void: a person wants it made again.
REDO = "redo"


class Builder:
    """A fold in progress: `apply` records in order of seq; `state` is live."""

    def __init__(self, run_id: str) -> None:
        self.state = RunState(run_id=run_id)
        self._spending = Spending(self.state)
        #: After a gap, until the next owner: what the lost lines said of the position is not known.
        self._adrift = False
        #: What a kind of record means stands in the method of its name.
        self._actions: dict[type, Callable[[Record, Any], None]] = {
            cls: action for word, cls in KINDS.items() if (action := getattr(self, f"_{word}", None))
        }

    def apply(self, record: Record) -> None:
        """Take one record in. Kinds without a meaning for the state only move seq and time."""
        action = self._actions.get(type(record.fact))
        if action is not None:
            action(record, record.fact)
        state = self.state
        state.seq = record.seq
        state.updated_at = record.at

    def freeze(self) -> RunState:
        """Return a copy that later records do not change."""
        state = copy.copy(self.state)
        for name in _COPIED:
            setattr(state, name, getattr(state, name).copy())
        # What is open is written down further where it stands.
        state.steps.update({path: copy.copy(state.steps[path]) for path in state.open_paths})
        state.tasks = {path: copy.copy(tasks) for path, tasks in state.tasks.items()}
        state.memo = {slot: {ask: list(tries) for ask, tries in asks.items()} for slot, asks in state.memo.items()}
        state.recalled = {slot: dict(asks) for slot, asks in state.recalled.items()}
        state.spend = {key: spend.copy() for key, spend in state.spend.items()}
        return state

    def _placed(self, record: Record) -> bool:
        # A late record of an older owner, or one behind a gap, says nothing of the position.
        return record.owner >= self.state.owner and not self._adrift

    def _fits(self, record: Record, fact: Any) -> bool:
        state = self.state
        return record.owner >= state.owner and not self._adrift and (not state.gaps or positions.fits(state, fact))

    # The run

    def _run_started(self, record: Record, fact: RunStarted) -> None:
        state = self.state
        state.pipeline, state.params, state.product = fact.pipeline, fact.params, fact.product
        state.identity, state.execution, state.pins = dict(fact.identity), dict(fact.execution), dict(fact.pins)
        state.claim, state.parent, state.host = fact.claim, fact.parent, fact.host
        state.status, state.detail = IN_PROGRESS, "running"
        state.started_at = record.at
        state.owner = record.seq
        state.waiting[positions.START] = Token("", "", record.seq)

    def _run_resumed(self, record: Record, fact: RunResumed) -> None:
        state = self.state
        positions.count_deaths(state, died=state.detail == "running")
        state.owner = record.seq
        state.flying, state.flying_unbounded = Decimal(0), 0
        state.execution = {**state.execution, **fact.execution}
        state.identity = {**state.identity, **(fact.identity or {})}
        state.pins = {**state.pins, **(fact.pins or {})}
        state.params = {**(fact.params or {}), **state.params}
        state.host = fact.host
        state.product = fact.product or state.product
        state.status, state.detail = IN_PROGRESS, "running"
        state.resumes += 1
        self._adrift = False

    def _run_ended(self, record: Record, fact: RunEnded) -> None:
        if not self._placed(record):
            return
        state = self.state
        state.status, state.detail = fact.status, fact.detail
        state.command = fact.command or state.command
        if not (state.total.high or state.total.unbounded):
            # Who leaves in order has settled its own, and before it those of owners that died. What a call that is
            # out, or a charge that is not exact, comes to is settled once it is known.
            state.slices.clear()
        if fact.error is not None or fact.status == COMPLETED:
            state.error = fact.error

    def _gap(self, record: Record, fact: Gap) -> None:
        self.state.gaps.append({"first": fact.first, "last": fact.last, "bytes": fact.bytes, "kept": fact.kept,
                                "reason": fact.reason})  # fmt: skip
        self._adrift = True
        self._spending.lose(record.seq, record.at, fact)

    def _unknown(self, record: Record, fact: UnknownFact) -> None:
        if not understood(fact):
            self._gap(record, Gap(record.seq, record.seq, reason=f"a {fact.name} that is inconsistent"))

    def _snapshot(self, record: Record, fact: Snapshot) -> None:
        if self._placed(record):
            snapshots.take(self.state, record.seq, fact)

    # Steps

    def _step_started(self, record: Record, fact: StepStarted) -> None:
        if self._fits(record, fact):
            positions.start_step(self.state, record.seq, record.at, fact)

    def _step_completed(self, record: Record, fact: StepCompleted) -> None:
        if self._fits(record, fact):
            positions.complete_step(self.state, record.seq, record.at, fact)
            self._reject(slot_of(self.state, fact.path, None, fact.attempt), fact.rejected)
            self._forget(fact.path, None, fact.attempt)
            if fact.writes:
                self.state.unapplied[fact.path] = fact.writes

    def _memory_read(self, record: Record, fact: MemoryRead) -> None:
        slot = slot_of(self.state, fact.path, fact.task, fact.attempt)
        self.state.recalled.setdefault(slot, {})[fact.query, fact.n] = fact.traces

    def _memory_applied(self, record: Record, fact: MemoryApplied) -> None:
        self.state.unapplied.pop(fact.path, None)

    def _step_failed(self, record: Record, fact: StepFailed) -> None:
        if self._fits(record, fact):
            positions.fail_step(self.state, record.seq, record.at, fact)
            self._failed(fact, None)

    def _invalidated(self, record: Record, fact: Invalidated) -> None:
        if not self._placed(record):
            return
        state = self.state
        tasks = [(path, task) for path, task in fact.tasks]
        for step in positions.void_steps(state, fact):
            self._close_attempt(step.path, None, step.attempt, VOID)
            # What read all that led to its step cannot stand where some of that is made again.
            known = state.tasks.get(step.path, {})
            tasks += [(step.path, task) for task, run in known.items() if not WHOLE.isdisjoint(run.reads)]
        for path, task in tasks:
            run = state.tasks.get(path, {}).pop(task, None)
            if fact.reason == REDO:
                ended = run is not None and run.status == COMPLETED
                state.remarks[path, task] = Remark(
                    fact.note, run.value if run and ended else None, run.seq if run and ended else 0
                )
            self._close_attempt(path, task, run.attempt if run else state.attempts.get((path, task), 1), VOID)

    def _decision_asked(self, record: Record, fact: DecisionAsked) -> None:
        if self._placed(record) and fact.path in self.state.open_paths:
            asked = OpenQuestion(fact.question, fact.choices, fact.shown, record.seq, record.at)
            self.state.questions[fact.path] = asked

    def _decision(self, record: Record, fact: Decision) -> None:
        state = self.state
        if fact.task:
            made = Review(fact.question, fact.choice, fact.edit, fact.note, fact.by, record.at, record.seq)
            state.reviews[fact.path, fact.task] = (*state.reviews.get((fact.path, fact.task), ()), made)
            _, _, there = fact.origin.rpartition(":")
            state.reviewed = max(state.reviewed, int(there) if there.isdecimal() else 0)
            return
        state.decisions[fact.path, fact.question] = Answered(fact.choice, fact.note, fact.by, record.at)
        asked = state.questions.get(fact.path)
        if asked is not None and asked.question == fact.question:
            del state.questions[fact.path]

    def cause(self, path: str, task: str | None, attempt: int) -> str:
        """Return why what a closed attempt had used is wasted (money.CAUSES)."""
        return self._spending.cause((path, task, attempt))

    @property
    def rejected(self) -> frozenset[int]:
        """Return the calls whose reply the code of a finished task did not accept."""
        return frozenset(self._spending.rejected)

    def _failed(self, fact: StepFailed | TaskFailed, task: str | None) -> None:
        """Close the attempt, or leave what it heard to the next one."""
        if fact.cause in CLOSING:
            self._close_attempt(fact.path, task, fact.attempt, CLOSING[fact.cause](fact.error))
        elif fact.cause == CODE:
            self._leave_open(fact.path, task, fact.attempt)

    def _leave_open(self, path: str, task: str | None, attempt: int) -> None:
        """Let the next attempt hear the replies of this one; errors of the provider do not count against it."""
        state = self.state
        slot = slot_of(state, path, task, attempt)
        state.attempts[path, task] = max(state.attempts.get((path, task), 1), attempt + 1)
        state.heard_from[path, task] = slot[2]
        for ask, tries in list(state.memo.get(slot, {}).items()):
            state.memo[slot][ask] = [call for call in tries if call.error is None]

    def _forget(self, path: str, task: str | None, attempt: int) -> None:
        """Drop the replies of an attempt that has ended: they are no longer needed."""
        slot = slot_of(self.state, path, task, attempt)
        if self.state.memo:
            self.state.memo.pop(slot, None)
        if self.state.recalled:
            self.state.recalled.pop(slot, None)

    def _close_attempt(self, path: str, task: str | None, attempt: int, cause: str) -> None:
        """Start the next attempt with an empty memo; what this one used is wasted."""
        state = self.state
        current = state.attempts.get((path, task), 1)
        state.attempts[path, task] = max(current, attempt + 1)
        self._forget(path, task, attempt)
        self._spending.waste(slot_of(state, path, task, attempt), cause, attempt)
        state.heard_from.pop((path, task), None)
        if attempt > current:
            # The end of an earlier attempt was lost in a gap; it is closed all the same.
            self._spending.waste_before((path, task, attempt))

    # Tasks

    def _task_started(self, record: Record, fact: TaskStarted) -> None:
        self.state.active[fact.path] = record.seq
        self.state.unknown_tasks.add((fact.path, fact.task))

    def _task_submitted(self, record: Record, fact: TaskSubmitted) -> None:
        known = self.state.submitted.get((fact.path, fact.task))
        part = fact.part or f"task-{record.seq}"
        submitted = Submitted(part, fact.base, fact.attempt, None if fact.usd is None else Decimal(fact.usd))
        if known is not None and known.part == part:
            submitted = submitted._replace(copied=known.copied)
        self.state.submitted[fact.path, fact.task] = submitted

    def _task_taken(self, record: Record, fact: TaskTaken) -> None:
        """Take a new owner of a part; calls that an earlier one left open are no longer in flight."""
        state = self.state
        state.owner, state.flying, state.flying_unbounded = record.seq, Decimal(0), 0

    def _task_completed(self, record: Record, fact: TaskCompleted) -> None:
        state, path, task = self.state, fact.path, fact.task
        tasks = state.tasks.get(path)
        if not isinstance(tasks, TaskTable):
            tasks = state.tasks[path] = TaskTable(tasks)
        value = fact.value if len(fact.value) <= KEEP_BYTES else None
        tasks.complete(
            task, fact.item, fact.hash, fact.reads, record.seq, value, fact.attempt, fact.version, fact.code
        )  # fmt: skip
        state.active[path] = record.seq
        if state.unknown_tasks:
            state.unknown_tasks.discard((path, task))
        if state.submitted:
            state.submitted.pop((path, task), None)
        if state.remarks:
            state.remarks.pop((path, task), None)
        if fact.rejected:
            self._reject(slot_of(state, path, task, fact.attempt), fact.rejected)
        if state.memo or state.recalled:
            self._forget(path, task, fact.attempt)

    def _reject(self, slot: tuple[str, str | None, int], rejected: Iterable[Sequence[str]]) -> None:
        """Take the replies that a body did not accept for wasted."""
        asks = self.state.memo.get(slot, {})
        tries = (asks.get((key, int(n)), ()) for key, n in rejected if n.isdecimal())
        self._spending.reject(slot, [call.seq for each in tries for call in each if call.usable])

    def _task_failed(self, record: Record, fact: TaskFailed) -> None:
        state = self.state
        state.unknown_tasks.discard((fact.path, fact.task))
        state.submitted.pop((fact.path, fact.task), None)
        self._failed(fact, fact.task)
        state.tasks.setdefault(fact.path, TaskTable())[fact.task] = TaskRun(
            fact.item,
            "",
            NOTHING_READ,
            record.seq,
            None,
            fact.attempt,
            status=FAILED,
            error=fact.error,
            cause=fact.cause,
        )
        state.active[fact.path] = record.seq

    # Paid calls

    def _call_started(self, record: Record, fact: CallStarted) -> None:
        call = self._spending.start(record.seq, record.at, record.owner, fact)
        state = self.state
        if fact.origin:
            self._copy_call(record.seq, fact)
        slot = slot_of(state, fact.path, fact.task, fact.attempt)
        if first_heard(state, fact.path, fact.task) <= fact.attempt:
            state.memo.setdefault(slot, {}).setdefault((fact.key, fact.n), []).append(call)
        state.active[fact.path] = record.seq

    def _copy_call(self, seq: int, fact: CallStarted) -> None:
        """Record a call of a part here too from now on."""
        part, _, there = fact.origin.rpartition(":")
        for key, known in self.state.submitted.items():
            if known.part == part and there.isdecimal():
                self.state.submitted[key] = known._replace(copied={**known.copied, int(there): seq})
                return

    def _call_ended(self, record: Record, fact: CallEnded) -> None:
        pair = self._spending.end(record.seq, record.at, fact)
        if pair is None:
            return
        before, after = pair
        self.state.active[after.path] = record.seq
        asks = self.state.memo.get(slot_of(self.state, after.path, after.task, after.attempt), {})
        tries = asks.get((after.key, after.n), [])
        if tries:
            asks[after.key, after.n] = [after if call is before else call for call in tries]

    def _charge_settled(self, record: Record, fact: ChargeSettled) -> None:
        self._spending.settle(fact)

    def _day_reserved(self, record: Record, fact: DayReserved) -> None:
        self.state.slices[fact.slice] = (fact.day, record.owner)

    def _batch_intended(self, record: Record, fact: BatchIntended) -> None:
        calls = {str(row.get("id")): int(row.get("call") or 0) for row in fact.calls}
        self.state.batches[fact.nonce] = BatchRun(
            fact.nonce, calls, fact.count, record.at, provider_at=fact.provider_at
        )

    def _batch_submitted(self, record: Record, fact: BatchSubmitted) -> None:
        self._change_batch(fact.nonce, batch=fact.batch, expires_at=fact.expires_at, created_at=fact.created_at)

    def _batch_cancelled(self, record: Record, fact: BatchCancelled) -> None:
        self._change_batch(fact.nonce, cancelled_at=record.at)

    def _batch_abandoned(self, record: Record, fact: BatchAbandoned) -> None:
        self._change_batch(fact.nonce, abandoned_at=record.at)

    def _change_batch(self, nonce: str, **changes: Any) -> None:
        known = self.state.batches.get(nonce)
        if known is not None:
            self.state.batches[nonce] = known._replace(**changes)


#: Containers of RunState whose elements are never changed in place.
_COPIED = (
    "identity", "execution", "pins", "waiting", "steps", "visits", "context", "attempts", "heard_from", "open_calls",
    "checkpoints", "gaps", "open_paths", "failed_paths", "returning", "active", "total",
    "unknown_tasks", "submitted", "questions", "decisions", "reviews", "batches", "slices", "remarks", "unapplied",
    "former", "worked", "answered_by",
)  # fmt: skip


def fold(run_id: str, records: Iterable[Record]) -> RunState:
    """Return the state that records (in order of seq) lead to."""
    builder = Builder(run_id)
    apply = builder.apply
    for record in records:
        apply(record)
    return builder.state


def spent(state: RunState) -> Spend:
    """Return all charges so far in one sum; imported totals are not in it."""
    return state.total.copy()
