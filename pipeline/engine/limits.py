"""Limits that all threads of a run share: calls in flight, one cool-down, the spending ceiling."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import NoReturn

from pipeline.clock import Clock, iso
from pipeline.cost.budget import Verdict, admit
from pipeline.engine.daily import Daily, Ticket
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import Recorder
from pipeline.engine.stop import Stop
from pipeline.errors import BudgetExceeded, Pause
from pipeline.records.charge import dollars, in_full

_TICK_SECONDS = 0.25
#: The way on where charges that are not exactly known fill a ceiling: they need not stand at their worst for good.
_SETTLE = (
    "Find what was billed (`cost --reconcile`) and close those charges with it (`settle`), "
    "or resume with a higher --max-cost-usd."
)
#: The part of a limit at which it is near.
_NEAR = Decimal("0.8")


def more_room(error: BaseException | None) -> str:
    """The option without which a resume would stop at this ceiling again: twice as much, with room for two calls.

    A run keeps its ceiling. Where the amount spent is not known, no ceiling helps and none is named: "".
    """
    data = error.data if isinstance(error, BudgetExceeded) else {}
    try:
        limit, spent, worst = (Decimal(str(data[name])) for name in ("limit", "spent", "worst"))
    except (KeyError, InvalidOperation):
        return ""
    room = max(2 * limit, spent + 2 * worst)
    return f" --max-cost-usd {room.quantize(Decimal('0.01'), ROUND_UP)}"


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


@dataclass(frozen=True, slots=True)
class Room:
    """Room that a call was admitted to; given back once its end is recorded."""

    worst: Decimal | None
    #: Its part of the day's limit, where there is one.
    ticket: Ticket | None = None


class Ceiling:
    """The run's spending ceiling and the day's: exact spend, open intervals at their worst, and what is out.

    A call is out from its admission until after its end is recorded, so what is settled (by the fold) and what is out
    (by this count) together are never too little.
    """

    def __init__(
        self, limit: Decimal | None, recorder: Recorder, stop: Stop, clock: Clock, emit: Emitter,
        daily: Daily | None = None,
    ) -> None:  # fmt: skip
        self.limit = limit
        self.daily = daily
        self._recorder = recorder
        self._stop = stop
        self._clock = clock
        self._emit = emit
        self._lock = threading.Lock()
        #: Worst cases of the calls that are out.
        self._out = Decimal(0)
        self._warned: set[str] = set()

    def enter(self, worst: Decimal | None, record: Callable[[], int]) -> tuple[int, Room]:
        """Admit a call and record its start; the seq of that record, and the room it takes.

        Waits where only calls in flight block it. `worst` None: it has no price.

        Raises:
            Pause: The worst case would pass a limit, or the run is stopping.
        """
        while True:
            self._stop.check()
            verdict, room = self._admit(worst)
            if room is not None:
                return self._record(room, record), room
            if verdict == "stop":
                self.refuse(worst)
            self._stop.rest(_TICK_SECONDS)

    def enter_if_room(
        self, worst: Decimal | None, record: Callable[[], int], *, day: bool = True
    ) -> tuple[int, Room] | None:
        """As `enter`, without waiting or stopping: None where there is no room for the call now.

        Args:
            day: It also takes room of the day's limit; not where whoever calls takes that.

        Raises:
            Pause: The run is stopping.
        """
        self._stop.check()
        _, room = self._admit(worst, day=day)
        return None if room is None else (self._record(room, record), room)

    def hold(self, usd: Decimal | None) -> Room | None:
        """Reserve what an earlier owner granted (USD; None: without a limit); None where there is no room for it."""
        with self._lock:
            if admit(self.limit, self._settled(), self._out, usd) != "go":
                return None
            self._out += usd or Decimal(0)
        return Room(usd)

    def leave(self, room: Room, cost: Decimal | None) -> None:
        """The end of a call is recorded; it cost at most so much (None: nobody knows: its worst case)."""
        self._give_back(room, room.worst if cost is None else cost)

    def refuse(self, worst: Decimal | None) -> NoReturn:
        """Stop the run because not even this call fits.

        Raises:
            Pause: Always.
        """
        with self._lock:
            settled = self._settled()
            fits = admit(self.limit, settled, self._out, worst) == "go"
        day = self.daily is not None and self.daily.limit is not None
        error = self._day_is_over(worst) if fits and day else self._refusal(settled, worst)
        self._stop.request("paused_budget", error)
        raise Pause("paused_budget", error)

    def _admit(self, worst: Decimal | None, *, day: bool = True) -> tuple[Verdict, Room | None]:
        amount = worst or Decimal(0)
        with self._lock:
            settled = self._settled()
            verdict = admit(self.limit, settled, self._out, worst)
            if verdict != "go":
                return verdict, None
            ticket = None
            if self.daily is not None and day and (worst is not None or self.daily.limit is not None):
                ticket = None if worst is None else self.daily.take(worst)
                if ticket is None:
                    return ("wait" if self.daily.out and worst is not None else "stop"), None
            self._out += amount
        self._warn(settled)
        return "go", Room(worst, ticket)

    def _record(self, room: Room, record: Callable[[], int]) -> int:
        try:
            return record()
        except BaseException:
            self._give_back(room, Decimal(0))
            raise

    def _give_back(self, room: Room, cost: Decimal | None) -> None:
        with self._lock:
            self._out -= room.worst or Decimal(0)
        if room.ticket is not None and self.daily is not None:
            self.daily.give_back(room.ticket, room.ticket.worst if cost is None else cost)

    def _settled(self) -> Decimal | None:
        """Spent at worst without this owner's calls in flight; None: nobody knows."""
        with self._recorder.reading() as state:
            total = state.total
            reported = Decimal(str(state.reported.get("cost_usd") or 0))
            if total.unpriced or total.unbounded - state.lost.unbounded > state.flying_unbounded:
                return None
            return total.usd + total.high + reported - state.flying

    def _possibly(self) -> Decimal:
        """Dollars that may have been billed beyond what is known, of calls that are not in flight."""
        with self._recorder.reading() as state:
            return state.total.high - state.total.low - state.flying

    def _warn(self, settled: Decimal | None) -> None:
        """Say once that a limit is near."""
        if self.limit and settled is not None and settled + self._out >= _NEAR * self.limit:
            self._say("run", f"80 % of the ceiling of {in_full(self.limit)} is spent or out.")
        limit = self.daily.limit if self.daily is not None else None
        if self.daily is not None and limit and "day" not in self._warned and self.daily.spent() >= _NEAR * limit:
            self._say("day", f"80 % of the day's limit of {in_full(limit)} is spent or reserved.")

    def _say(self, which: str, text: str) -> None:
        if which not in self._warned:
            self._warned.add(which)
            self._emit("note", text=text)

    def _way_on(self, settled: Decimal | None, worst: Decimal | None, unsure: Decimal) -> str:
        """Return what lets a run go on that its ceiling has stopped."""
        if worst is None:
            return "Resume with --max-cost-usd none, or give the missing prices with --prices FILE."
        if settled is not None:
            return _SETTLE if unsure else "Resume with a higher --max-cost-usd."
        run = self._recorder.state.run_id
        return (f"`cost {run}` lists the calls whose cost is not known; `settle {run} --all USD` enters what they "
                "were billed together, or resume with --max-cost-usd none.")  # fmt: skip

    def _day_is_over(self, worst: Decimal | None) -> BudgetExceeded:
        assert self.daily is not None
        spent = self.daily.spent()
        assert self.daily.limit is not None
        next_call = "has no known price" if worst is None else f"may cost up to {dollars(worst, 4)}"
        return BudgetExceeded(
            f"The next call {next_call}; with {dollars(spent, 4)} spent or reserved today by the runs of this "
            f"store, that could pass the day's limit of {in_full(self.daily.limit)}.",
            hint="Resume after midnight UTC, or with a higher --daily-budget-usd.",
            daily=str(self.daily.limit),
        )

    def _refusal(self, settled: Decimal | None, worst: Decimal | None) -> BudgetExceeded:
        known = "an unknown amount spent" if settled is None else f"at most {dollars(settled, 4)} spent"
        unsure = self._possibly()
        if settled is not None and unsure:
            known += f", {dollars(unsure, 4)} of it only possibly,"
        next_call = "has no known price" if worst is None else f"may cost up to {dollars(worst, 4)}"
        limit = "none" if self.limit is None else in_full(self.limit)
        return BudgetExceeded(
            f"The next call {next_call}; with {known} that could pass the ceiling of {limit}.",
            hint=self._way_on(settled, worst, unsure),
            limit=str(self.limit),
            spent=str(settled),
            worst=str(worst),
            possibly=str(unsure),
        )  # fmt: skip
