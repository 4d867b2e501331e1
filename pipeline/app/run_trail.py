"""The way a run goes, gathered while its records are folded: newest events, items and calls, money and pace."""

from __future__ import annotations

import copy
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

from pipeline.app.words import count
from pipeline.clock import parse_iso
from pipeline.records.charge import EXACT, Charge, amount, bound, dollars
from pipeline.records.codec import Record
from pipeline.records.documents import cost_of, known_usd, reported_usd
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
from pipeline.records.run import RunState, Spend, bare, order_key
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING
from pipeline.records.tasks import TaskRun, TaskTable
from pipeline.store.base import Store
from pipeline.store.reader import COURSES, LESSONS, all_records

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


# --- items ---------------------------------------------------------------------------------------


#: The items of one page.
PAGE = 100
RUNNING, CUT_OFF, REUSED, INTERRUPTED, BEGUN = "running", "cut off", "reused", "interrupted", "begun"
PERSON, BATCH = "waits for a person", "waits for a batch"
#: A lesson that the offline author has no topic for: its task is completed, and there is no lesson.
UNWRITTEN = "not written"
#: As counts and bars show them.
ORDER = (COMPLETED, REUSED, UNWRITTEN, FAILED, RUNNING, BATCH, CUT_OFF, INTERRUPTED, BEGUN, PENDING)


@dataclass(frozen=True)
class Items:
    """The items of one visit, in their order."""

    path: str
    names: Sequence[str]
    #: The state of each.
    words: Sequence[str]
    #: So many of the last are not to be made by this start: it makes a sample.
    beyond: int = 0

    @property
    def left(self) -> int:
        """Return how many are still to be made."""
        return sum(word in (PENDING, RUNNING) for word in self.words) - self.beyond

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Return how many are in each state, in the order of the bar."""
        found = Counter(self.words)
        return [(word, found[word]) for word in ORDER if found[word]]


def visits(state: RunState) -> list[str]:
    """Return the visits that have items, in order of their start."""
    begun = {path for path, _ in _begun(state)}
    return [path for path in state.steps if state.tasks.get(path) or path in begun]


def items_of(state: RunState, trail: Trail, path: str, *, owned: bool) -> Items:
    """Return how the items of a visit stand, from the fold alone.

    Args:
        owned: A living process owns the run.
    """
    table = state.tasks.get(path, {})
    ended = table.incomplete() if isinstance(table, TaskTable) else table
    others: dict[str, str] = {name: FAILED for name, task in ended.items() if task.status == FAILED}
    if state.inherited:
        others |= {name: REUSED for name, task in table.items() if task.seq <= state.inherited and name not in others}
    sent = {(call.path, call.task) for call in state.open_calls.values() if call.batch}
    word = open_word(state, owned=owned)
    for place, task in _begun(state):
        if place == path and (task not in table or task in ended):
            others[task] = BATCH if (place, task) in sent and word == RUNNING else word
    total, wanted = _lessons(state) if path == LESSONS else (0, 0)
    for name in (f"lessons/{number}" for number in range(1, total + 1)):
        if name not in table:
            others.setdefault(name, PENDING)
        elif name not in ended and _is_empty(table[name]):
            others[name] = UNWRITTEN
    names = trail.orders[path].names([*table, *(name for name in others if name not in table)])
    words = [others.get(name, COMPLETED) for name in names] if others else [COMPLETED] * len(names)
    return Items(path, names, words, total - wanted)


def _is_empty(task: TaskRun) -> bool:
    """Return whether a lesson's task made none; what says so is short, so the fold has it."""
    return task.value is not None and b'"lesson":null' in task.value


def open_word(state: RunState, *, owned: bool) -> str:
    """Return how work stands that has begun and not ended: it runs only while a living process owns the run."""
    if owned:
        return RUNNING
    if state.status == IN_PROGRESS and state.detail in ("running", "interrupted"):
        return CUT_OFF if state.detail == "running" else INTERRUPTED
    return BEGUN


def _begun(state: RunState) -> Iterable[tuple[str, str]]:
    """Return (path, task) of items that have begun and have no end."""
    heard = {(path, task) for path, task, _ in state.memo if task is not None}
    return heard | state.unknown_tasks | state.submitted.keys()


def _lessons(state: RunState) -> tuple[int, int]:
    """Return how many lessons a course is to have, and how many of them this start makes."""
    sow = state.steps.get("sow#1")
    if state.pipeline != COURSES or sow is None:
        return 0, 0
    total = int(sow.outputs.get("lesson_count") or 0)
    return total, min(int(state.execution.get("sample") or total), total)


def page(items: Items, word: str, start: int) -> tuple[list[int], int]:
    """Return the places (from 0) of a page of items, and the number (from 1) that the next one begins with; 0: none.

    Args:
        word: Only items in this state; "": all.
        start: The number of the first item.
    """
    places = range(max(start - 1, 0), len(items.names))
    found: list[int] = []
    for place in places:
        if not word or items.words[place] == word:
            if len(found) == PAGE:
                return found, place + 1
            found.append(place)
    return found, 0


# --- money and pace ------------------------------------------------------------------------------


#: Fewer ends of items tell no rate.
_LEAST_ENDS = 3


@dataclass(frozen=True)
class Money:
    """Hold the spend of a run and its bounds; USD."""

    spent: Decimal
    #: What may be billed beyond it; None: no upper bound is known.
    possibly: Decimal | None
    expected: Decimal | None
    #: What it comes to at this rate, and the active seconds it then has taken; None: it does not run, or nothing tells.
    at_rate: tuple[Decimal, float] | None
    ceiling: Decimal | None
    #: Calls so far, and those of unknown price among them.
    calls: int = 0
    unpriced: int = 0
    #: Of `spent`, what an imported document reported.
    imported: Decimal = _ZERO

    @property
    def most(self) -> Decimal:
        """Return the most that may have been spent, as far as that is known."""
        return self.spent + (self.possibly or _ZERO)


def seconds_left(trail: Trail, items: Items | None) -> float | None:
    """Return the active seconds that what is left of the items takes at this rate; None: nothing tells."""
    ends = [parse_iso(at).timestamp() for path, at in trail.ends if items is not None and path == items.path]
    left = items.left if items is not None else 0
    if not left or len(ends) < _LEAST_ENDS or ends[-1] <= ends[0]:
        return None
    return (ends[-1] - ends[0]) / (len(ends) - 1) * left


def money_of(
    state: RunState, trail: Trail, items: Items | None, expected: Decimal | None, active: float | None
) -> Money:
    """Return what is known of a run's money.

    Args:
        expected: What all of it was expected to cost.
        active: Seconds that its owners have worked up to now, while it runs; None: it does not.
    """
    cost, ceiling = cost_of(state), state.execution.get("max_cost_usd")
    spent = cost.known
    left, at_rate = seconds_left(trail, items), None
    if items is not None and left is not None and active is not None and spent:
        step = bare(items.path)
        paid = sum((spend.usd + spend.low for key, spend in state.spend.items() if key.step == step), _ZERO)
        made = sum(word in (COMPLETED, FAILED) for word in items.words)
        at_rate = (spent + (paid / made * items.left if made else _ZERO), active + left)
    return Money(
        spent, cost.possibly, expected, at_rate, None if ceiling is None else Decimal(str(ceiling)),
        state.total.calls, cost.unpriced, reported_usd(state),
    )  # fmt: skip


def _calls(money: Money) -> Iterator[str]:
    """Yield what is said beside the sum: of how many calls it is."""
    if money.calls or not money.imported:
        yield count(money.calls, "call")
    if money.unpriced:
        yield f"{money.unpriced:,} of unknown price"
    if money.imported:
        yield f"{dollars(money.imported)} imported"


def figures(money: Money) -> list[dict[str, Any]]:
    """Return the legend: key of its line, word, amount, and what is to be said beside it."""
    more = "no upper bound known" if money.possibly is None else f"to {dollars(money.most)}" if money.possibly else ""
    rows = [
        ("spent", "Spent", money.spent, ", ".join(_calls(money))),
        ("possibly", "Possibly more", money.possibly, more),
        ("expected", "Expected", money.expected, "the whole course" if money.expected else ""),
        ("rate", "At this rate", money.at_rate[0] if money.at_rate else None, ""),
        ("ceiling", "Ceiling", money.ceiling, ""),
    ]
    return [
        {"key": key, "word": word, "usd": None if usd is None else float(usd), "note": note}
        for key, word, usd, note in rows
        if usd or note or key == "spent"
    ]
