"""What a run's page tells of the way a run went, gathered while its records are folded: newest events, money, items."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

from pipeline.clock import parse_iso
from pipeline.records.charge import EXACT, Charge, amount, bound
from pipeline.records.codec import Record
from pipeline.records.documents import known_usd
from pipeline.records.fold import Builder
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    ChargeSettled,
    Decision,
    Gap,
    RunEnded,
    RunResumed,
    Snapshot,
    TaskCompleted,
    TaskFailed,
)
from pipeline.records.money import counted
from pipeline.records.run import RunState, Spend, order_key
from pipeline.store.base import Store
from pipeline.store.reader import all_records

#: Events that are shown; points of the money line (thinned to half beyond); ends of items that a rate is taken from.
MOST_EVENTS, MOST_POINTS, MOST_ENDS = 50, 150, 40
_ZERO = Decimal(0)
_NONE: Mapping[int, Spend] = MappingProxyType({})
#: After these what was spent is another.
_PAID = (CallEnded, ChargeSettled, Gap, Snapshot)


class ItemCalls(NamedTuple):
    """What the calls of one item come to."""

    #: When the first call was sent, and when the item, or else its last call, ended (ISO 8601; "": not yet).
    began: str
    ended: str = ""
    #: The attempt that `began` is of.
    attempt: int = 1
    #: Each call: seq of its start and of its end (0: none).
    calls: tuple[tuple[int, int], ...] = ()
    #: USD of its calls that are known exactly; and what each other call counts as, by seq.
    usd: Decimal = _ZERO
    inexact: Mapping[int, Spend] = _NONE


class Order:
    """The items of one visit in their order, kept so that a million of them are not sorted at each look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._maps: dict[str, int] = {}
        self._rows: dict[str, Any] = {}
        self._names: list[str] = []

    def names(self, found: Collection[str]) -> list[str]:
        """Return the names in their order; they are those of the last look, and others since."""
        with self._lock:
            new = [name for name in found if name not in self._rows]
            if len(found) != len(self._rows) + len(new):
                self._rows, new = {}, list(found)
            if new:
                self._rows.update((name, order_key(name, self._maps)) for name in new)
                # Nearly sorted as a rule, so this is quick.
                self._names = sorted(
                    [*self._names, *new] if len(new) < len(self._rows) else new, key=self._rows.__getitem__
                )
            return self._names


class Trail:
    """One thread applies records; `freeze` gives readers theirs."""

    def __init__(self) -> None:
        #: The newest records, oldest first.
        self.events: deque[Record] = deque(maxlen=MOST_EVENTS)
        #: (active seconds, USD spent) wherever it changed.
        self.points: list[tuple[float, Decimal]] = []
        #: Active seconds at which a new owner went on, and when (ISO 8601).
        self.pauses: list[tuple[float, str]] = []
        #: Open calls: seq → active seconds at which each was sent.
        self.sent: dict[int, float] = {}
        #: Calls and their ends by (path, task); values are replaced, never changed.
        self.items: dict[tuple[str, str | None], ItemCalls] = {}
        #: seq of what settled a call, by the call; lists only grow.
        self.settled: dict[int, list[int]] = {}
        #: (path, when) of the last items that ended under this owner.
        self.ends: deque[tuple[str, str]] = deque(maxlen=MOST_ENDS)
        #: The order of items by visit, shared by all copies; and what readers of one copy work out once.
        self.orders: defaultdict[str, Order] = defaultdict(Order)
        self.views: dict[Any, Any] = {}
        #: When the last record was written, and when the owner began that wrote it, with the seconds active by then.
        self.last = ""
        self._since, self._before = "", 0.0
        #: Where the calls belong that are open, or were not exact when they ended; and what those were settled at.
        self._calls: dict[int, tuple[str, str | None]] = {}
        self._paid: dict[int, Decimal] = {}

    @classmethod
    def of(cls, store: Store, run: str) -> Trail:
        """Return the trail of a run whose records are not in a row: all are read."""
        made, builder = cls(), Builder(run)
        for record in all_records(store, run):
            builder.apply(record)
            made.apply(record, builder.state)
        return made

    def active(self, at: str) -> float:
        """Return the seconds that owners had worked at a moment of the last one: what lies between two is left out."""
        if not self._since:
            return self._before
        return self._before + max((parse_iso(at) - parse_iso(self._since)).total_seconds(), 0.0)

    def apply(self, record: Record, state: RunState) -> None:
        """Take in a record that `state` was just folded with."""
        self.events.append(record)
        fact = record.fact
        if not self.last or isinstance(fact, RunResumed):
            self._own(record.at)
        if self._since and not isinstance(fact, Decision):
            # What people decide, and what is recorded of a run without an owner, is no work of it.
            self.last = record.at
        if isinstance(fact, RunEnded):
            self._before, self._since = self.active(record.at), ""
        if isinstance(fact, (TaskCompleted, TaskFailed)):
            self.ends.append((fact.path, record.at))
            if self.items and (known := self.items.get((fact.path, fact.task))) is not None:
                self.items[fact.path, fact.task] = known._replace(ended=record.at)
        elif isinstance(fact, CallStarted):
            self._begin(record, fact)
        elif isinstance(fact, _PAID):
            if isinstance(fact, CallEnded):
                self._end(record, fact)
            elif isinstance(fact, ChargeSettled):
                self._settle(record, fact)
            self._pay(record.at, known_usd(state))

    def _own(self, at: str) -> None:
        """Begin with a new owner: the time before does not count."""
        if self.last:
            self._before = self.active(self.last)
            self.pauses.append((self._before, at))
        self._since = at
        self.ends.clear()

    def freeze(self) -> Trail:
        """Return a copy that later records do not change; only what is known of single items may grow."""
        made = copy.copy(self)
        made.events, made.ends, made.views = self.events.copy(), self.ends.copy(), {}
        made.points, made.pauses, made.sent = [*self.points], [*self.pauses], {**self.sent}
        return made

    def _pay(self, at: str, spent: Decimal) -> None:
        if self.points and self.points[-1][1] == spent:
            return
        self.points.append((self.active(at), spent))
        if len(self.points) > 2 * MOST_POINTS:
            self.points[1:-1] = self.points[2:-1:2]

    def _begin(self, record: Record, fact: CallStarted) -> None:
        place = (fact.path, fact.task)
        known = self.items.get(place) or ItemCalls(record.at)
        if fact.attempt > known.attempt or known.began < self._since:
            known = known._replace(began=record.at, attempt=fact.attempt)
        worst = bound(fact.worst)
        spend = Spend(calls=1, high=worst or _ZERO, unbounded=int(worst is None))
        self.items[place] = known._replace(
            calls=(*known.calls, (record.seq, 0)), ended="", inexact={**known.inexact, record.seq: spend}
        )
        self.sent[record.seq] = self.active(record.at)
        self._calls[record.seq] = place

    def _end(self, record: Record, fact: CallEnded) -> None:
        self.sent.pop(fact.call, None)
        place = self._calls.get(fact.call)
        if place is None:
            return
        known, charge = self.items[place], Charge.from_json(fact.charge)
        calls = tuple((seq, record.seq if seq == fact.call else end) for seq, end in known.calls)
        self.items[place] = known = known._replace(calls=calls, ended=record.at)
        # What a person settled stands, however late an end comes.
        if fact.call not in self._paid:
            exact = charge.state == EXACT
            if exact:
                del self._calls[fact.call]
            self.items[place] = _counted(known, fact.call, charge.low if exact else counted(charge))

    def _settle(self, record: Record, fact: ChargeSettled) -> None:
        self.settled.setdefault(fact.call, []).append(record.seq)
        place, before = self._calls.get(fact.call), self._paid.get(fact.call)
        if place is not None and (before is None or fact.corrects):
            self._paid[fact.call] = usd = amount(fact.usd)
            self.items[place] = _counted(self.items[place], fact.call, usd - (before or _ZERO))


def _counted(known: ItemCalls, call: int, paid: Decimal | Spend) -> ItemCalls:
    """Return an item whose call turned out to cost this: exactly (USD), or not."""
    rest = {seq: spend for seq, spend in known.inexact.items() if seq != call}
    if isinstance(paid, Spend):
        return known._replace(inexact={**rest, call: paid})
    return known._replace(usd=known.usd + paid, inexact=rest or _NONE)
