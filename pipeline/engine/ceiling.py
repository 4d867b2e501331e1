"""The spending ceiling that all threads of a run share: who is admitted, and what a person can do at its limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Any, NoReturn, Protocol

from pipeline.cost.admission import Verdict, admit
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import Recorder
from pipeline.engine.stop import Stop
from pipeline.engine.store_limits import StoreLimits, Ticket, call_words
from pipeline.errors import BudgetExceeded
from pipeline.records.charge import Charge, dollars, in_full

_TICK_SECONDS = 0.25
#: What to do where charges that are not exactly known fill a ceiling: they need not count at their worst for good.
_SETTLE = (
    "Find what was billed (`./pipeline.sh cost --reconcile`) and close those charges with it (`./pipeline.sh settle`), "
    "or resume with a higher --max-cost-usd."
)
#: The part of a limit at which it is near.
_NEAR = Decimal("0.8")


class Prices(Protocol):
    """Price calls: what the engine must know of cost.prices.PriceBook."""

    def charge(
        self, usage: Any, *, model: str, at: Any, tier: str | None = None, answered: str = "", provider: str = ""
    ) -> Charge: ...
    def partial(
        self, usage: Any, *, model: str, at: Any, worst: Decimal | None, answered: str = "", provider: str = ""
    ) -> Charge: ...
    def worst(
        self,
        size_bytes: int,
        max_tokens: int,
        *,
        model: str,
        at: Any,
        batch: bool = False,
        instead: Iterable[str] = (),
        added: int = 0,
        marked: int | None = None,
        provider: str = "",
    ) -> Decimal | None: ...


def more_room(error: BaseException | None) -> str:
    """Return the option that lets a resume pass this ceiling: twice as much, with room for two calls.

    A run keeps its ceiling. Where the amount spent is not known, no ceiling helps and none is named: "".
    """
    data = error.data if isinstance(error, BudgetExceeded) else {}
    try:
        limit, spent, worst = (Decimal(str(data[name])) for name in ("limit", "spent", "worst"))
    except (KeyError, InvalidOperation):
        return ""
    room = max(2 * limit, spent + 2 * worst)
    return f" --max-cost-usd {room.quantize(Decimal('0.01'), ROUND_UP)}"


@dataclass(frozen=True, slots=True)
class Room:
    """Room that a call was admitted to; given back once its end is recorded."""

    worst: Decimal | None
    #: Its part of the store's limits, where they are kept.
    ticket: Ticket | None = None


class Ceiling:
    """The run's spending ceiling and the store's limits: exact spend, open intervals at their worst, and what is out.

    A call is out from its admission until after its end is recorded, so what is settled (by the fold) and what is out
    (by this count) together are never too little.
    """

    def __init__(
        self,
        limit: Decimal | None,
        recorder: Recorder,
        stop: Stop,
        emit: Emitter,
        store_limits: StoreLimits | None = None,
    ) -> None:
        self.limit = limit
        self._store_limits = store_limits
        self._recorder = recorder
        self._stop = stop
        self._emit = emit
        self._lock = threading.Lock()
        #: Worst cases of the calls that are out.
        self._out = Decimal(0)
        self._warned: set[str] = set()

    def enter(self, worst: Decimal | None, record: Callable[[], int]) -> tuple[int, Room]:
        """Admit a call and record its start; return the seq of that record, and the room it takes.

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
        self, worst: Decimal | None, record: Callable[[], int], *, of_store: bool = True
    ) -> tuple[int, Room] | None:
        """Enter without waiting or stopping: None where there is no room for the call now.

        Args:
            of_store: It also takes room of the store's limits; False where the worker that calls takes that.

        Raises:
            Pause: The run is stopping.
        """
        self._stop.check()
        _, room = self._admit(worst, of_store=of_store)
        return None if room is None else (self._record(room, record), room)

    def hold(self, usd: Decimal | None) -> Room | None:
        """Reserve what an earlier owner granted (USD; None: without a limit); return None where there is no room."""
        with self._lock:
            if admit(self.limit, self._settled(), self._out, usd) != "go":
                return None
            self._out += usd or Decimal(0)
        return Room(usd)

    def leave(self, room: Room, cost: Decimal | None) -> None:
        """Give room back once the end of a call is recorded; it cost at most this (None: unknown, so its worst)."""
        with self._lock:
            self._out -= room.worst or Decimal(0)
        if room.ticket is not None and self._store_limits is not None:
            self._store_limits.give_back(room.ticket, room.ticket.worst if cost is None else cost)

    def close(self) -> None:
        """Give back what of the store's limits was reserved and not used."""
        if self._store_limits is not None:
            self._store_limits.leave()

    def refuse(self, worst: Decimal | None) -> NoReturn:
        """Stop the run because not even this call fits.

        Raises:
            Pause: Always.
        """
        with self._lock:
            settled = self._settled()
            fits = admit(self.limit, settled, self._out, worst) == "go"
        full = self._store_limits.refusal(worst) if fits and self._store_limits is not None else None
        self._stop.pause("paused_budget", full or self._refusal(settled, worst))

    def _admit(self, worst: Decimal | None, *, of_store: bool = True) -> tuple[Verdict, Room | None]:
        amount = worst or Decimal(0)
        with self._lock:
            settled = self._settled()
            verdict = admit(self.limit, settled, self._out, worst)
            if verdict != "go":
                return verdict, None
            ticket = None
            if (store := self._store_limits) is not None and of_store:
                ticket = None if worst is None else store.take(worst)
                if ticket is None and (worst is not None or store.day_limit is not None or store.limits()):
                    return ("wait" if store.out and worst is not None else "stop"), None
            self._out += amount
        self._warn(settled)
        return "go", Room(worst, ticket)

    def _record(self, room: Room, record: Callable[[], int]) -> int:
        try:
            return record()
        except BaseException:
            self.leave(room, Decimal(0))
            raise

    def _settled(self) -> Decimal | None:
        """Return what is spent at worst without this owner's calls in flight; None: unknown."""
        with self._recorder.reading() as state:
            total = state.total
            reported = Decimal(str(state.reported.get("cost_usd") or 0))
            if total.unpriced or total.unbounded - state.lost.unbounded > state.flying_unbounded:
                return None
            return total.usd + total.high + reported - state.flying

    def _warn(self, settled: Decimal | None) -> None:
        """Report once that a limit is near."""
        near = self.limit and settled is not None and settled + self._out >= _NEAR * self.limit
        if self.limit and near and "run" not in self._warned:
            self._warned.add("run")
            self._emit.note(f"80 % of the ceiling of {in_full(self.limit)} is spent or in flight.")
        for key, words in self._store_limits.near(_NEAR, self._warned) if self._store_limits else ():
            self._warned.add(key)
            self._emit.note(f"80 % of {words} is spent or reserved.")

    def _way_on(self, settled: Decimal | None, worst: Decimal | None, unsure: Decimal) -> str:
        """Return what lets a run continue that its ceiling has stopped."""
        if worst is None:
            return "Resume with --max-cost-usd none, or give the missing prices with --prices FILE."
        if settled is not None:
            return _SETTLE if unsure else "Resume with a higher --max-cost-usd."
        run = self._recorder.state.run_id
        return (f"`./pipeline.sh cost {run}` lists the calls whose cost is not known; `./pipeline.sh settle {run} "
                "--all USD` enters what they were billed together, or resume with --max-cost-usd none.")  # fmt: skip

    def _refusal(self, settled: Decimal | None, worst: Decimal | None) -> BudgetExceeded:
        known = "an unknown amount spent" if settled is None else f"at most {dollars(settled, 4)} spent"
        with self._recorder.reading() as state:
            # What may have been billed beyond what is known, of calls that are not in flight.
            unsure = state.total.high - state.total.low - state.flying
        if settled is not None and unsure:
            known += f", {dollars(unsure, 4)} of it only possibly,"
        limit = "none" if self.limit is None else in_full(self.limit)
        return BudgetExceeded(
            f"The next call {call_words(worst)}; with {known} that could pass the ceiling of {limit}.",
            hint=self._way_on(settled, worst, unsure), limit=str(self.limit), spent=str(settled), worst=str(worst),
            possibly=str(unsure),
        )  # fmt: skip
