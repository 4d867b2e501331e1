"""Word that all who work on a run leave for each other: when calls may leave again, and that nothing more is begun.

It stands in a part of the run of its own, whose owner changes with whoever has something to say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from pipeline.clock import Clock, iso, parse_iso
from pipeline.engine.events import Emitter
from pipeline.engine.limits import CoolDown
from pipeline.engine.stop import Stop
from pipeline.errors import PipelineError, RunLocked, StoreError
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import FleetTold
from pipeline.records.lines import encode_line
from pipeline.records.parts import NOTICES
from pipeline.store.base import Journal, Store
from pipeline.store.parts import part_records

#: Between two looks, and how long somebody else may be speaking.
LOOK_SECONDS = 0.25
_TRIES, _TRY_SECONDS = 40, 0.05


class Notices:
    """The notices of one run, as one process reads and writes them."""

    def __init__(self, store: Store, run: str, owner: int, clock: Clock) -> None:
        """Nothing is read yet.

        Args:
            owner: Owner mark of the coordinator whose word counts.
        """
        self._store = store
        self._run = run
        self._owner = owner
        self._clock = clock
        self._lock = threading.Lock()
        self._read = 0
        self._looked = float("-inf")

    def tell(self, *, seconds: float = 0.0, reason: str = "", stop: bool = False) -> None:
        """Leave word; that nobody could be told is no fault of the work."""
        until = iso(self._clock.now() + timedelta(seconds=seconds)) if seconds > 0 else ""
        fact = FleetTold(until, reason, self._owner if stop else 0)
        with suppress(StoreError):
            journal = self._speak()
            try:
                seq = journal.last_seq + 1
                journal.append(seq, [encode_line(seq, self._clock.stamp(), seq, encode_fact(fact))])
            finally:
                journal.close()

    def _speak(self) -> Journal:
        """Own the notices for a moment, after whoever speaks now."""
        for _ in range(_TRIES):
            try:
                return self._store.open(f"{self._run}/{NOTICES}")
            except RunLocked:
                self._clock.wait(threading.Event(), _TRY_SECONDS)
        return self._store.open(f"{self._run}/{NOTICES}")

    def news(self) -> tuple[float, str, bool]:
        """What was said since the last look: seconds to wait from now (0: none), why, and whether to begin no more."""
        with self._lock:
            now = self._clock.monotonic()
            if now - self._looked < LOOK_SECONDS:
                return 0.0, "", False
            self._looked = now
            seconds, reason, stop = 0.0, "", False
            for record in part_records(self._store, self._run, NOTICES, self._read):
                self._read = record.seq
                fact = record.fact
                if not isinstance(fact, FleetTold):
                    continue
                stop = stop or bool(self._owner and fact.stop == self._owner)
                left = _left(self._clock, fact.until)
                if left > seconds:
                    seconds, reason = left, fact.reason
            return seconds, reason, stop


def _left(clock: Clock, until: str) -> float:
    try:
        return (parse_iso(until) - clock.now()).total_seconds() if until else 0.0
    except ValueError:
        return 0.0


class HeardStop(Stop):
    """A stop that also hears the notices: whoever is about to begin something, or waits, looks at them first."""

    def __init__(self, clock: Clock, notices: Notices) -> None:
        super().__init__(clock)
        self.notices = notices
        self._cool: Callable[[float, str], None] | None = None
        #: Until when no call may leave, and why: also what is heard before there are calls.
        self._until, self._reason = 0.0, ""

    def pass_to(self, cool: Callable[[float, str], None]) -> None:
        """Have `cool(seconds, reason)` told how long no call may leave: from what was heard already on."""
        self._cool = cool
        self._pass_on()

    def check(self) -> None:
        """See Stop.check."""
        self._hear()
        super().check()

    def rest(self, seconds: float) -> None:
        """See Stop.rest; in pieces, so that a word is heard meanwhile."""
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0 and not self.asked:
            self._hear()
            super().rest(min(left, LOOK_SECONDS))
        self.check()

    def _hear(self) -> None:
        if self.asked:
            return
        seconds, reason, stop = self.notices.news()
        if stop:
            self.request("interrupted", PipelineError("The run is stopping."))
        elif (until := self._clock.monotonic() + seconds) > self._until and seconds > 0:
            self._until, self._reason = until, reason
            self._pass_on()

    def _pass_on(self) -> None:
        if self._cool is not None and (left := self._until - self._clock.monotonic()) > 0:
            self._cool(left, self._reason)


class SharedCoolDown(CoolDown):
    """A cool-down that holds for all who work on a run."""

    def __init__(self, clock: Clock, stop: Stop, emit: Emitter, notices: Notices) -> None:
        super().__init__(clock, stop, emit)
        self._notices = notices

    def extend(self, seconds: float, reason: str) -> None:
        """See CoolDown.extend; the others are told."""
        before = self._until
        super().extend(seconds, reason)
        if self._until > before:
            self._notices.tell(seconds=seconds, reason=reason)

    def hear(self, seconds: float, reason: str) -> None:
        """Somebody else was told to wait."""
        super().extend(seconds, reason)
