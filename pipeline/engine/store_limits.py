"""Limits over all processes of a store, of a day and by label: worst cases come out of slices reserved on its account.

A slice is larger than one call, so that not every call locks the account. What a slice did not use is given back
when it is closed. Runs without a limit reserve as well, so that the limit of another counts what they spend. A
process that dies leaves its slices open: they count in full until its run, one that needs the room, or a look at the
limits settles them. Each slice names its run and the owner in it: one that died before it noted a slice made no call.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from pipeline.clock import Clock
from pipeline.cost.admission import MOST_USD
from pipeline.cost.ledger import rows
from pipeline.errors import BudgetExceeded, CheckpointCorrupt, Pause, RunNotFound, SchemaTooNew, StoreError, WriteFailed
from pipeline.records.budgets import Limit, LimitStanding, window_of
from pipeline.records.charge import dollars, in_full
from pipeline.records.codec import Record
from pipeline.records.kinds import CallStarted, DayReserved
from pipeline.records.run import RunState
from pipeline.store.base import Account, Head, Store
from pipeline.store.reader import load, records

#: A slice is so much of the least limit, but no more than this many dollars, unless one call needs more.
_PART = Decimal("0.05")
_MOST_USD = Decimal(1)
#: Seconds between two looks for slices of the dead.
_LOOK_SECONDS = 60.0


@dataclass(slots=True)
class _Slice:
    """A reservation and what it is used for."""

    id: str
    day: str
    size: Decimal
    #: Worst cases of calls that are out, and what ended calls cost.
    used: Decimal = Decimal(0)
    out: int = 0
    current: bool = True

    @property
    def free(self) -> Decimal:
        return self.size - self.used


@dataclass(frozen=True, slots=True)
class Ticket:
    """Room for one call."""

    slice: _Slice
    worst: Decimal


@dataclass(slots=True)
class StoreLimits:
    """One run's part in the limits of its store: room for its calls, in slices."""

    account: Account
    #: Of a day over all runs, as this one was given it (--daily-budget-usd). None: it reserves room all the same, and
    #: only limits that were set on the account refuse it.
    day_limit: Decimal | None
    clock: Clock
    #: This process and the run (owner_words).
    owner: str
    #: Called with each slice (id, day, amount) before it is used.
    note: Callable[[str, str, Decimal], object] = lambda name, day, usd: None
    #: What the run is labelled with.
    labels: str = ""
    #: ` --store URL`, for commands that are shown; "" for the default store.
    words: str = ""
    #: Settles what dead processes left open on a day and later.
    free: Callable[[str], None] = lambda day: None
    #: What the runs of the store spent on a day, for an account that has no entry of it.
    seen: Callable[[str], Decimal] = lambda day: Decimal(0)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _slices: list[_Slice] = field(default_factory=list)
    #: Days of which the account was compared with the runs, and when it was looked for slices of the dead.
    _compared: set[str] = field(default_factory=set)
    _looked: float | None = None
    #: The limits of the account that the last slice was reserved under.
    _under: Sequence[Limit] = ()
    #: How the limits that fit the run stood when the last slice was reserved.
    _standings: Sequence[LimitStanding] = ()

    def take(self, worst: Decimal) -> Ticket | None:
        """Return room for a call of today; None: a limit leaves none.

        Raises:
            Pause: The account cannot be written, or is damaged.
        """
        with self._lock:
            now = self.clock.now()
            day = _day(now)
            # Room that was reserved under other limits may be more than those of now leave.
            current = (each for each in self._slices if each.current and each.day == day and each.free >= worst)
            place = next(current, None)
            if place is None or self.limits() != self._under:
                place = self._reserve(now, worst)
            if place is None:
                return None
            place.used += worst
            place.out += 1
            return Ticket(place, worst)

    def give_back(self, ticket: Ticket, cost: Decimal) -> None:
        """Take in that the call has ended and cost at most so much."""
        with self._lock:
            ticket.slice.used += cost - ticket.worst
            ticket.slice.out -= 1
            self._close_idle()

    def leave(self) -> None:
        """Close all slices with what they were used for; calls still out count at their worst."""
        with self._lock:
            for each in self._slices:
                self._settle(each)
            self._slices.clear()

    def spent(self) -> Decimal:
        """Return what is settled and reserved today, over all processes."""
        return self.account.total(self.clock.now().astimezone(UTC).date())

    def limits(self) -> list[Limit]:
        """Return the limits on the account that fit the run.

        Raises:
            Pause: The account cannot be read.
        """
        try:
            return [each for each in self.account.limits() if each.fits(self.labels)]
        except StoreError as error:
            raise Pause("interrupted", error) from None

    def near(self, part: Decimal, told: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the limits of which so much is spent or reserved, but for those told of: a key of each, and its words.

        Those of the account as they stood when room was last reserved.
        """
        if self.day_limit and "day" not in told and self.spent() >= part * self.day_limit:
            yield "day", f"the day's limit of {in_full(self.day_limit)}"
        for each in self._standings:
            if each.limit.words not in told and each.tally.total >= part * each.limit.usd:
                yield each.limit.words, f"the limit of {each.limit.words}"

    def refusal(self, worst: Decimal | None) -> BudgetExceeded | None:
        """Return the error of a call that was given no room: it names the limit with least left; None: there is none.

        Raises:
            Pause: The account cannot be read.
        """
        try:
            return self._refusal(worst)
        except StoreError as error:
            raise Pause("interrupted", error) from None

    def _refusal(self, worst: Decimal | None) -> BudgetExceeded | None:
        spent = self.spent()
        if self.day_limit is not None and (worst is None or spent + worst > self.day_limit):
            return BudgetExceeded(
                f"The next call {call_words(worst)}; with {dollars(spent, 4)} spent or reserved today by the runs of "
                f"this store, that could pass the day's limit of {in_full(self.day_limit)}.",
                code="day_limit_reached", hint="Resume after midnight UTC, or with a higher --daily-budget-usd.",
            )  # fmt: skip
        standings = self.account.standings(self.clock.now(), self.labels)
        # Others may have given room back since.
        return _limit_reached(min(standings, key=lambda each: each.left), worst, self.words) if standings else None

    @property
    def out(self) -> int:
        """Return how many calls of this run are out."""
        with self._lock:
            return sum(each.out for each in self._slices)

    def _reserve(self, now: datetime, worst: Decimal) -> _Slice | None:
        for each in self._slices:
            if each.current:
                # What is left of it is too little for this call: others may have it.
                each.current = False
                self._settle(each)
        self._close_idle()
        self._compare(now)
        if (place := self._try(now, worst)) is not None:
            return place
        if self._looked is None or self.clock.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = self.clock.monotonic()
            self.free(min([_day(now), *(window_of(each.per, _day(now)).first for each in self.limits())]))
            return self._try(now, worst)
        return None

    def _compare(self, now: datetime) -> None:
        """Enter what runs spent today in an account that has no entry of today: it was lost."""
        day = _day(now)
        if self.day_limit is None or day in self._compared:
            return
        self._compared.add(day)
        try:
            if not self.spent() and (usd := self.seen(day)):
                name = self.account.reserve(self.owner, usd, now, None)
                self.account.settle(str(name), usd)
        except StoreError as error:
            raise Pause("interrupted", error) from None

    def _try(self, now: datetime, worst: Decimal) -> _Slice | None:
        # As much again as is out now, so that many calls at once are not as many slices.
        more = max(worst, _MOST_USD, sum((each.used for each in self._slices), Decimal(0)))
        self._under = self.limits()
        kept = [*(each.usd for each in self._under), *([] if self.day_limit is None else [self.day_limit])]
        if kept:
            more = max(worst, min(min(kept) * _PART, _MOST_USD))
        limit = MOST_USD if self.day_limit is None else self.day_limit
        # Some room for more calls, then just this one's.
        for size in (more, worst):
            try:
                name = self.account.reserve(self.owner, size, now, limit, self.labels)
            except WriteFailed as error:
                if kept:
                    raise Pause("interrupted", error) from None
                # A run without a limit is not stopped by one.
                name = ""
            except StoreError as error:
                # It is damaged: what is spent is unknown, and what is spent now would not be seen.
                raise Pause("interrupted", error) from None
            if name is not None:
                place = _Slice(name, _day(now), size)
                self._slices.append(place)
                if name:
                    self.note(name, place.day, size)
                # For notes only: the room is there.
                with contextlib.suppress(StoreError):
                    self._standings = self.account.standings(now, self.labels) if kept and name else ()
                return place
        return None

    def _close_idle(self) -> None:
        """Give back what slices that are full and have no call out did not use."""
        for each in [each for each in self._slices if not each.current and not each.out]:
            if self._settle(each):
                self._slices.remove(each)

    def _settle(self, each: _Slice) -> bool:
        """Return whether a slice could be closed; one that cannot counts in full, which errs on the safe side."""
        try:
            if each.id:
                self.account.settle(each.id, each.used)
        except StoreError:
            return False
        return True


def call_words(worst: Decimal | None) -> str:
    """Return what a call may cost, for people; None: it has no price."""
    return "has no known price" if worst is None else f"may cost up to {dollars(worst, 4)}"


def _limit_reached(full: LimitStanding, worst: Decimal | None, words: str) -> BudgetExceeded:
    """Return the error of a call that one of the account's limits has no room for."""
    limit, left = full.limit, max(full.left, Decimal(0))
    again = f"wait until {full.window.next} UTC, or " if full.window.next else ""
    way = f"{again}raise it: `./pipeline.sh budget set {limit.options} --usd USD{words}`, then resume"
    if worst is None:
        way = "give its prices with --prices FILE"
    return BudgetExceeded(
        f"The next call {call_words(worst)}; {dollars(full.tally.total, 4)} of the limit of {limit.words} is spent or "
        f"reserved by the runs of this store, {dollars(left, 4)} is left.",
        code="limit_reached",
        hint=f"To go on, {way}. `./pipeline.sh budget list{words}` shows what counts.",
        labels=limit.labels, per=limit.per, usd=str(limit.usd), left=str(left), until=full.window.next,
    )  # fmt: skip


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


#: (UTC day, owner): what one owner spent on one day.
_Share = tuple[str, int]
#: Slice → whose spend it holds; None: nobody's.
Slices = Mapping[str, _Share | None]


def owner_words(process: str, run: str, seq: int) -> str:
    """Return how a slice names its owner on the account.

    Args:
        process: "host:pid:start".
        seq: The owner's mark in the records of the run.
    """
    return f"{process} {seq} {run}"


def _owners(open_: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
    """Yield (slice, run, owner's mark) of open slices; those of earlier versions do not say it."""
    for name, owner in open_.items():
        _, seq, run = [*owner.split(" ", 2), "", ""][:3]
        if seq.isdecimal() and run:
            yield name, run, int(seq)


def left_open(
    store: Store, account: Account | None, run: str, state: RunState, open_: Mapping[str, str] | None = None
) -> Slices:
    """Return the slices that owners of a run (or sub-journal) may have left open, all of them gone.

    Those that it notes, and those that the account says are its own: of these, what no owner had noted before it died
    holds no call.

    Args:
        open_: As Account.open_slices, looked up before the state; None: it is looked up.
    """
    found: dict[str, _Share | None] = dict(state.slices)
    if account is None or not state.owner:
        return found
    # Where the account cannot be read they stay open, which errs on the safe side.
    with contextlib.suppress(StoreError):
        known = account.open_slices(state.started_at[:10]) if open_ is None else open_
        its = {name for name, its_run, mark in _owners(known) if its_run == run and mark <= state.owner} - found.keys()
        if its:
            noted = {
                each.fact.slice: (each.fact.day, each.owner)
                for each in records(store, run) if isinstance(each.fact, DayReserved)
            }  # fmt: skip
            owners = {noted[name][1] for name in its & noted.keys()}
            found |= {name: share for name, share in noted.items() if share[1] in owners}
            found |= dict.fromkeys(its - noted.keys())
    return found


def settle_slices(store: Store, account: Account | None, run: str, slices: Slices) -> None:
    """Settle the slices of owners of a run that are certainly dead; what cannot be read still counts in full.

    May be repeated once more is known: what was open then, and counted at its worst, may have ended.
    """
    if account is None or not slices:
        return
    # A slice that stays open errs on the safe side.
    with contextlib.suppress(StoreError):
        settle_amounts(account, slice_amounts(store, run, slices))


def settle_amounts(account: Account, amounts: Iterable[tuple[str, Decimal]]) -> None:
    """Settle slices, but for those of another store's account, with which a run came by a copy.

    Raises:
        StoreError: As Account.settle.
    """
    for name, usd in amounts:
        try:
            account.settle(name, usd)
        except StoreError as error:
            if error.code != "unknown_reservation":
                raise


def slice_amounts(store: Store, run: str, slices: Slices) -> list[tuple[str, Decimal]]:
    """Return by the records of a run what its slices are settled with; one whose cost is not known is left out."""
    return list(_amounts(slices, _costs(records(store, run)))) if slices else []


def settle_dead(store: Store, account: Account, day: str) -> None:
    """Settle the slices of all runs without a living owner that were touched on a day or later ("": ever).

    Raises:
        StoreError: The account or the store cannot be read.
    """
    open_ = account.open_slices(day)
    runs = {run for _, run, _ in _owners(open_)}
    for head in store.heads(lambda document: _may_be_dead(document, day) or document.get("run_id") in runs):
        if head.owned or head.corrupt or not (head.gone or head.run_id in runs):
            continue
        try:
            state = load(store, head.run_id)
            # A new owner may have come between: then its calls were not all read.
            left = left_open(store, account, head.run_id, state, open_)
            if left and _untouched(store, head, state.seq):
                settle_slices(store, account, head.run_id, left)
        except (CheckpointCorrupt, RunNotFound, SchemaTooNew):
            continue


def spent_on(store: Store, day: str) -> Decimal:
    """Return what the runs of a store spent on a day at most, as their heads say."""
    total = Decimal(0)
    for head in store.heads(lambda document: str(document.get("updated_at") or "")[:10] >= day):
        for row in head.document.get("spend") or ():
            if row.get("day") == day:
                usd, low, high = (Decimal(str(row.get(name) or 0)) for name in ("usd", "low", "high"))
                total += usd + max(low, high)
    return total


def _may_be_dead(document: Mapping[str, object], day: str) -> bool:
    return document.get("status") == "in_progress" and str(document.get("updated_at") or "")[:10] >= day


def _untouched(store: Store, head: Head, seq: int) -> bool:
    """Return whether the run still has no owner, and has not grown since it was read."""
    now = next((other for other in store.heads() if other.run_id == head.run_id), None)
    return now is not None and not now.owned and load(store, head.run_id).seq == seq


def _costs(run: Iterable[Record]) -> dict[_Share, Decimal | None]:
    """Return what the calls of each owner cost at most, by the day they left; None: unknown."""
    owners: dict[int, int] = {}

    def noted() -> Iterator[Record]:
        for record in run:
            if isinstance(record.fact, CallStarted):
                # What was copied from a part came out of a slice of its worker.
                owners[record.seq] = 0 if record.fact.origin else record.owner
            yield record

    costs: dict[_Share, Decimal | None] = {}
    for row in rows(noted()):
        share = (row.day, owners.get(row.seq, 0))
        before = costs.get(share, Decimal(0))
        costs[share] = None if before is None or row.high is None else before + row.high
    return costs


def _amounts(slices: Slices, costs: Mapping[_Share, Decimal | None]) -> Iterator[tuple[str, Decimal]]:
    """Return what each slice is settled with: the first of an owner's day takes all of it, the others nothing.

    Room is taken just before a call is recorded: what has no slice of its day came, at midnight, out of one before.
    """
    spent: dict[_Share, Decimal | None] = {}
    for (day, owner), cost in costs.items():
        its = [each for each in slices.values() if each is not None and each[1] == owner]
        # Or, where the clock was set back in between, out of one after.
        share = max((each for each in its if each[0] <= day), default=min(its, default=(day, owner)))
        before = spent.get(share, Decimal(0))
        spent[share] = None if before is None or cost is None else before + cost
    done: set[_Share] = set()
    for name, held in slices.items():
        cost = Decimal(0) if held is None else spent.get(held, Decimal(0))
        if cost is not None:
            yield name, Decimal(0) if held in done else cost
        if held is not None:
            done.add(held)
