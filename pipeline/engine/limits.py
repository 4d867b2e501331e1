"""Limits that all threads of a run share: calls in flight, one cool-down, the spending ceiling."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import NoReturn

from pipeline.clock import Clock, iso
from pipeline.cost.budget import admit
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import Recorder
from pipeline.engine.stop import Stop
from pipeline.errors import BudgetExceeded, Pause
from pipeline.records.fold import spent

_TICK_SECONDS = 0.25


class CoolDown:
    """After a 429 or 529 every worker waits until the same moment."""

    def __init__(self, clock: Clock, stop: Stop, emit: Emitter) -> None:
        self._clock = clock
        self._stop = stop
        self._emit = emit
        self._lock = threading.Lock()
        self._until = 0.0

    def extend(self, seconds: float, reason: str) -> None:
        """Nobody calls for this long."""
        with self._lock:
            until = self._clock.monotonic() + seconds
            if until <= self._until:
                return
            self._until = until
        self.announce(seconds, reason)

    def announce(self, seconds: float, reason: str) -> None:
        """Say that a call, or all of them, will be tried again only after this long."""
        self._emit("waiting", reason=reason, until=iso(self._clock.now() + timedelta(seconds=seconds)), seconds=seconds)

    def wait(self) -> None:
        """Return when calls may go out.

        Raises:
            Pause: The run is stopping.
        """
        self._stop.check()
        while (left := self._until - self._clock.monotonic()) > 0:
            self._stop.rest(left)


class Ceiling:
    """The run's spending ceiling: exact spend, open intervals at their worst, and what is about to leave."""

    def __init__(self, limit: Decimal | None, recorder: Recorder, stop: Stop, clock: Clock) -> None:
        self.limit = limit
        self._recorder = recorder
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        #: Admitted, and not yet among the recorded calls.
        self._leaving = Decimal(0)

    def enter(self, worst: Decimal | None, record: Callable[[], int]) -> int:
        """Admit a call and record its start; the seq of that record.

        Waits where only calls in flight block it. `worst` None: it has no price.

        Raises:
            Pause: The worst case would pass the ceiling, or the run is stopping.
        """
        while True:
            self._stop.check()
            with self._lock:
                settled, flying = self._spent()
                decision = admit(self.limit, settled, flying + self._leaving, worst)
                if decision == "go":
                    self._leaving += worst or Decimal(0)
                    break
            if decision == "stop":
                self.refuse(worst)
            self._stop.rest(_TICK_SECONDS)
        try:
            return record()
        finally:
            with self._lock:
                self._leaving -= worst or Decimal(0)

    def enter_if_room(self, worst: Decimal | None, record: Callable[[], int]) -> int | None:
        """As `enter`, without waiting or stopping: None where there is no room for the call now.

        Raises:
            Pause: The run is stopping.
        """
        self._stop.check()
        with self._lock:
            settled, flying = self._spent()
            if admit(self.limit, settled, flying + self._leaving, worst) != "go":
                return None
            return record()

    def refuse(self, worst: Decimal | None) -> NoReturn:
        """Stop the run because not even this call fits.

        Raises:
            Pause: Always.
        """
        settled, _ = self._spent()
        error = self._refusal(settled, worst)
        self._stop.request("paused_budget", error)
        raise Pause("paused_budget", error)

    def _spent(self) -> tuple[Decimal | None, Decimal]:
        """Spent at worst without this owner's calls in flight (None: nobody knows), and their worst cases."""
        with self._recorder.reading() as state:
            total = spent(state)
            owner = state.owner
            flying = [call.worst for call in state.open_calls.values() if call.seq > owner]
            reported = Decimal(str(state.reported.get("cost_usd") or 0))
        worst = sum((amount for amount in flying if amount is not None), Decimal(0))
        if total.unpriced or total.unbounded > flying.count(None):
            return None, worst
        return total.usd + total.high + reported - worst, worst

    def _refusal(self, settled: Decimal | None, worst: Decimal | None) -> BudgetExceeded:
        known = "an unknown amount" if settled is None else f"${settled:.4f} (at most)"
        next_call = "has no known price" if worst is None else f"may cost up to ${worst:.4f}"
        priced = settled is not None and worst is not None
        return BudgetExceeded(
            f"The next call {next_call}; with {known} spent that could pass the ceiling of ${self.limit:.2f}.",
            hint="Resume with a higher --max-cost-usd." if priced
            else "Resume with --max-cost-usd none, or give the missing prices with --prices FILE.",
            limit=str(self.limit),
            spent=str(settled),
            worst=str(worst),
        )  # fmt: skip
