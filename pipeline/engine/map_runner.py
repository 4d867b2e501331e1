"""Where maps are done; tasks that were done in parts of the run are copied into the run's own journal.

Readers of the run then need not know of parts. Calls are copied as they are found, a task's end last; what was copied
before an accident is not copied again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.engine.calls import tell_ended
from pipeline.engine.setup import ActiveRun
from pipeline.engine.stop import Stop
from pipeline.errors import RunLocked
from pipeline.records.charge import Charge
from pipeline.records.codec import encode_fact
from pipeline.records.fold import Builder
from pipeline.records.kinds import CallEnded, CallStarted, Fact, RunEnded
from pipeline.records.lines import encode_line
from pipeline.records.run import CallRun
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Journal, Store
from pipeline.store.parts import Copying, is_void, part_records

if TYPE_CHECKING:
    from pipeline.engine.sources import Scope
    from pipeline.engine.tasks import Work

#: Between two looks whether a part's owner has left it.
_TICK_SECONDS = 0.25
#: (step path, task).
Key = tuple[str, str]


def own_part(store: Store, part: str, stop: Stop) -> Journal:
    """Own a part, once its present owner has left it.

    Raises:
        Pause: The run is stopping.
    """
    while True:
        stop.check()
        try:
            return store.open(part)
        except RunLocked:
            stop.rest(_TICK_SECONDS)


def spent_in_part(store: Store, run: str, part: str) -> Decimal:
    """Return what a part's calls may have cost at worst (USD); what has no bound is left out."""
    builder = Builder(run)
    for record in part_records(store, run, part):
        builder.apply(record)
    return builder.state.total.usd + builder.state.total.high


class MapRunner:
    """Has the items of maps done here, unless a subclass takes them to an executor.

    First it takes in what earlier owners of the run had handed out.
    """

    def __init__(self, running: ActiveRun) -> None:
        self.running = running
        self._recorder = running.recorder
        self._run = running.recorder.state.run_id

    def begin(self) -> None:
        """Read what the parts of the run hold, and keep room for what may still be spent in them.

        A part that was granted more than this owner's ceiling has room for is closed; its task is handed out again.

        Raises:
            Pause: The disk refused, or the run is stopping.
        """
        caller, submitted = self.running.caller, self._recorder.state.submitted
        # Read before the calls are: what is spent in between is covered by the room.
        left = {
            key: None if part.usd is None
            else max(part.usd - spent_in_part(self.running.store, self._run, part.part), Decimal(0))
            for key, part in submitted.items()
        }  # fmt: skip
        for key in left:
            self.take_in(key)
        for key in list(submitted):
            if key[0] not in self._recorder.state.open_paths:
                self._close(key)
            elif caller is not None:
                room = caller.ledger.ceiling.hold(left[key])
                if room is None:
                    self._close(key)
                else:
                    self.running.held[key] = room

    def takes(self, parent: Scope, work: Work) -> bool:
        """Return whether it does these items elsewhere."""
        return False

    def do(self, parent: Scope, seen: Mapping[str, Any], work: Work, todo: Sequence[int]) -> None:
        """Return when the items that it takes have ended and are durable.

        Raises:
            Pause: The run is stopping; what was finished is recorded.
        """
        raise NotImplementedError

    def settle(self, path: str, names: Sequence[str], *, elsewhere: bool) -> None:
        """Take in what an earlier owner handed out of a map's tasks, before they are done.

        Args:
            elsewhere: They are handed out again; a worker continues in the same part, so it stays open.

        Raises:
            Pause: The disk refused, or the run is stopping.
        """
        if not self._recorder.state.submitted:
            return
        for name in names:
            key = (path, name)
            with self._recorder.reading() as state:
                known = key in state.submitted
                void = known and is_void(state, key)
            if known and (void or not elsewhere):
                self._close(key)
                room = self.running.held.pop(key, None)
                if room is not None and self.running.caller is not None:
                    self.running.caller.ledger.ceiling.leave(room, Decimal(0))

    def take_in(self, key: Key, after: int = 0, then: Callable[[], None] | None = None) -> int:
        """Copy what a submitted task's part holds behind seq `after`; return the last seq there.

        Args:
            then: Called once the task's end is durable here.

        Raises:
            Pause: The disk refused.
        """
        recorder = self._recorder
        with recorder.reading() as state:
            submitted, void = state.submitted[key], is_void(state, key)

        def is_open(seq: int) -> bool:
            with recorder.reading() as state:
                return seq in state.open_calls

        copying = Copying(submitted, is_open, void=void)
        for record in part_records(self.running.store, self._run, submitted.part, after):
            after = record.seq
            fact = copying.fact(record)
            if fact is None:
                continue
            own_end = (getattr(fact, "path", ""), getattr(fact, "task", "")) == key
            own_end = own_end and not isinstance(fact, CallStarted)
            with recorder.reading() as state:
                call = state.open_calls.get(fact.call) if isinstance(fact, CallEnded) else None
            seq = recorder.append(fact, sync=False, then=then if own_end else None, at=record.at)
            copying.note(record, seq)
            # It is durable already, in the part.
            self._tell(fact, seq, call)
        return after

    def _close(self, key: Key) -> None:
        """Own a part, once its owner has left, so that no more is begun in it; take in what it holds."""
        running, part = self.running, self._recorder.state.submitted[key].part
        journal = own_part(running.store, f"{self._run}/{part}", running.stop)
        try:
            seq, last = journal.last_seq + 1, None
            for record in part_records(running.store, self._run, part):
                last = record.fact
            if not isinstance(last, RunEnded):
                fact = RunEnded(COMPLETED, None)
                journal.append(seq, [encode_line(seq, running.clock.stamp(), seq, encode_fact(fact))])
        finally:
            journal.close()
        self.take_in(key)

    def _tell(self, fact: Fact, seq: int, call: CallRun | None) -> None:
        if isinstance(fact, CallStarted):
            self.running.emit("call_started", path=fact.path, task=fact.task, label=fact.label, call=seq)
        elif isinstance(fact, CallEnded) and call is not None:
            tell_ended(self.running.emit, call, fact.call, Charge.from_json(fact.charge), fact.error)
