"""Takes what parts of a run hold into its own journal; the run's readers then need not know that there were parts.

Calls are copied as they are found, a task's end last; what was copied before an accident is not copied again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from pipeline.engine.running import Running
from pipeline.errors import RunLocked
from pipeline.records.charge import Charge
from pipeline.records.codec import encode_fact
from pipeline.records.fold import Builder
from pipeline.records.kinds import CallEnded, CallStarted, Fact, RunEnded
from pipeline.records.lines import encode_line
from pipeline.records.parts import Submitted
from pipeline.records.run import CallRun
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.parts import Copying, is_void, part_records

#: Between two looks whether a part's owner has left it.
_TICK_SECONDS = 0.25
#: (step path, task).
Key = tuple[str, str]


def take_in(running: Running, key: Key, after: int = 0, told: Callable[[], None] | None = None) -> int:
    """Copy what a submitted task's part holds behind seq `after`; the last seq there.

    Args:
        told: Called once the task's end is durable here.

    Raises:
        Pause: The disk refused.
    """
    recorder = running.recorder
    with recorder.reading() as state:
        submitted, void = state.submitted[key], is_void(state, key)

    def is_open(seq: int) -> bool:
        with recorder.reading() as state:
            return seq in state.open_calls

    copying = Copying(submitted, is_open, void=void)
    for record in part_records(_store(running), recorder.state.run_id, submitted.part, after):
        after = record.seq
        fact = copying.fact(record)
        if fact is None:
            continue
        own_end = (getattr(fact, "path", ""), getattr(fact, "task", "")) == key and not isinstance(fact, CallStarted)
        call = _call(running, fact)
        seq = recorder.append(fact, sync=False, then=told if own_end else None, at=record.at)
        copying.stands(record, seq)
        # It is durable already, in the part.
        _tell(running, fact, seq, call)
    return after


def spent_in_part(store: Store, run: str, part: str) -> Decimal:
    """What a part's calls may have cost at worst (USD); what has no bound is left out."""
    builder = Builder(run)
    for record in part_records(store, run, part):
        builder.apply(record)
    return builder.state.total.usd + builder.state.total.high


def begin(running: Running) -> None:
    """A new owner first reads what the parts of the run hold, and keeps room for what may still be spent in them.

    A part that was granted more than this owner's ceiling has room for is closed; its task is handed out again.

    Raises:
        Pause: The disk refused, or the run is stopping.
    """
    recorder = running.recorder
    # Read before the calls are: what is spent in between is covered by the room.
    left = {key: _left(running, submitted) for key, submitted in recorder.state.submitted.items()}
    for key in left:
        take_in(running, key)
    for key in list(recorder.state.submitted):
        if key[0] not in recorder.state.open_paths:
            _close(running, key)
        elif running.caller is not None:
            room = running.caller.entries.ceiling.hold(left[key])
            if room is None:
                _close(running, key)
            else:
                running.held[key] = room


def _left(running: Running, submitted: Submitted) -> Decimal | None:
    """What may still be spent in a part under the grant of the owner that handed it out; None: it named no limit."""
    if submitted.usd is None:
        return None
    return max(
        submitted.usd - spent_in_part(_store(running), running.recorder.state.run_id, submitted.part), Decimal(0)
    )


def settle_parts(running: Running, path: str, names: Sequence[str], *, elsewhere: bool) -> None:
    """Before the tasks of a map are done: what was handed out by an earlier owner is taken in.

    Args:
        elsewhere: They are handed out again; a worker goes on in the same part, so it stays open.

    Raises:
        Pause: The disk refused, or the run is stopping.
    """
    for name in names:
        key = (path, name)
        with running.recorder.reading() as state:
            known = key in state.submitted
            void = known and is_void(state, key)
        if known and (void or not elsewhere):
            _close(running, key)
            give_back(running, key)


def give_back(running: Running, key: Key) -> None:
    """Nothing more is spent in the part that an earlier owner handed out."""
    room = running.held.pop(key, None)
    if room is not None and running.caller is not None:
        running.caller.entries.ceiling.leave(room, Decimal(0))


def _close(running: Running, key: Key) -> None:
    """Own a part, once whoever owns it has left, so that nobody begins anything in it again; take in what it holds."""
    store, run, part = _store(running), running.recorder.state.run_id, running.recorder.state.submitted[key].part
    while True:
        running.stop.check()
        try:
            journal = store.open(f"{run}/{part}")
            break
        except RunLocked:
            running.stop.rest(_TICK_SECONDS)
    try:
        seq, last = journal.last_seq + 1, None
        for record in part_records(store, run, part):
            last = record.fact
        if not isinstance(last, RunEnded):
            fact = RunEnded(COMPLETED, None)
            journal.append(seq, [encode_line(seq, running.clock.stamp(), seq, encode_fact(fact))])
    finally:
        journal.close()
    take_in(running, key)


def _store(running: Running) -> Store:
    assert running.store is not None
    return running.store


def _call(running: Running, fact: Fact) -> CallRun | None:
    """The call that a fact ends."""
    if not isinstance(fact, CallEnded):
        return None
    with running.recorder.reading() as state:
        return state.open_calls.get(fact.call)


def _tell(running: Running, fact: Fact, seq: int, call: CallRun | None) -> None:
    if isinstance(fact, CallStarted):
        running.emit("call_started", path=fact.path, task=fact.task, label=fact.label, call=seq)
    elif isinstance(fact, CallEnded) and call is not None:
        charge = Charge.from_json(fact.charge)
        running.emit(
            "call_ended", path=call.path, task=call.task, label=call.label, call=fact.call, usd=str(charge.low),
            usd_high=None if charge.high is None else str(charge.high), state=charge.state,
            tokens=dict(charge.tokens), error=fact.error and fact.error.get("message"),
        )  # fmt: skip
