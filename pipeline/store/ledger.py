"""What all runs of a store spend: an object a day, exchanged whole, and what deleted runs cost, an object each."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.errors import StoreError, WriteFailed
from pipeline.records.budgets import Limit, LimitStanding, SpendTally, Tallies, ordered, standing, window_of
from pipeline.records.charge import amount
from pipeline.records.structure import REMOVED, problem
from pipeline.store.backend import Backend
from pipeline.store.names import is_id, split

#: Slice → [owner, amount] and, where the run has any, its labels; the amount is what was reserved until it is settled,
#: and then there is no owner.
Slices = dict[str, list[str]]
Change = Callable[[Slices], Slices | None]
_TRIES = 200
#: Seconds between tries: so many more at each, up to the most.
_SHORTEST, _LONGEST = 0.002, 0.3
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KEPT, _AGAIN = "kept", "kept-again"
#: The limits of windows and labels.
_LIMITS = "limits/all"
#: What reading sums may raise where they make no sense.
SENSELESS = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


class BackendAccount:
    """The account of a backend; see store.base.Account."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal | None, labels: str = "") -> str | None:
        """See store.base.Account.reserve.

        What a day has is exchanged whole, so two processes never share room of it. Windows of several days are looked
        through before and after: of two that reserve at once on different days each sees the other, or is seen.
        """
        check_amount(usd)
        day = utc_day(at)
        name = f"{day}.{self._clock.new_id()}"
        entry = [owner, str(usd), labels] if labels else [owner, str(usd)]
        if limit is None:
            self._change(day, lambda slices: {**slices, name: entry})
            return name
        for number in range(_TRIES):
            found = [each for each in self.limits() if each.fits(labels)]
            elsewhere = self._tallies(found, day, but=day) if found else {}
            if not self._change(day, partial(_added, name, entry, limit, found, elsewhere)):
                return None
            if all(each.left >= 0 for each in self.standings(at, labels)):
                return name
            self.settle(name, Decimal(0))
            pause(number)
        raise _busy()

    def set_limit(self, limit: Limit) -> None:
        self._exchange(_LIMITS, lambda data: _limits_data({**_limits(data), limit.key: limit}))

    def remove_limit(self, labels: str, per: str) -> bool:

        def remove(data: bytes) -> bytes | None:
            known = _limits(data)
            return _limits_data(known) if known.pop((labels, per), None) else None

        return self._exchange(_LIMITS, remove)

    def limits(self) -> Sequence[Limit]:
        found = self._backend.get(_LIMITS)
        return ordered(_limits(found[0]).values()) if found else []

    def standings(self, at: datetime, labels: str | None = None) -> Sequence[LimitStanding]:
        day = utc_day(at)
        found = [each for each in self.limits() if labels is None or each.fits(labels)]
        tallies = self._tallies(found, day) if found else {}
        return [standing(each, day, tallies) for each in found]

    def _tallies(self, limits: Sequence[Limit], day: str, but: str = "") -> dict[str, Mapping[str, SpendTally]]:
        """Return what the days of the windows of limits have, one left out."""
        windows = [window_of(each.per, day) for each in limits]
        if all(window.last for window in windows):
            days = sorted({each for window in windows for each in window.days()})
        else:
            days = self._known_days()
        return self._read([each for each in days if each != but])

    def _known_days(self) -> list[str]:
        names = (key.partition("/")[2] for key in self._backend.list("account/"))
        return [name for name in names if _DAY.fullmatch(name)]

    def _read(self, days: Sequence[str]) -> dict[str, Mapping[str, SpendTally]]:
        rows = zip(days, self._all([f"account/{each}" for each in days]), strict=True)
        return {each: _tally(self._slices(each, row[0])) for each, row in rows if row is not None}

    def settle(self, slice_id: str, usd: Decimal) -> None:
        check_amount(usd)

        def close(slices: Slices) -> Slices:
            if slice_id not in slices:
                raise unknown_slice(slice_id)
            return {**slices, slice_id: ["", str(usd), *slices[slice_id][2:]]}

        self._change(self._day_of(slice_id), close)

    def open_slices(self, since: str = "") -> Mapping[str, str]:
        days = [each for each in self._known_days() if each >= since]
        rows = zip(days, self._all([f"account/{each}" for each in days]), strict=True)
        known = (self._slices(each, row[0]) for each, row in rows if row is not None)
        return {name: owner for slices in known for name, (owner, *_) in slices.items() if owner}

    def total(self, day: date) -> Decimal:
        found = self._backend.get(f"account/{day.isoformat()}")
        return _sum(self._slices(day.isoformat(), found[0])) if found else Decimal(0)

    def days(self) -> Tallies:
        return self._read(self._known_days())

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        """See store.base.Account.keep. Twice, since it is known nowhere else."""
        for under in (_KEPT, _AGAIN):
            self._backend.put_if(f"{under}/{split(run)[0]}", json.dumps(dict(sums)).encode(), None)

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        found, problems = self._sums(_KEPT)
        if problems or set(self._deleted(_AGAIN)) - found.keys():
            found = {**self._sums(_AGAIN)[0], **found}
        for run, wrong in problems.items():
            if run not in found:
                raise wrong
        return found

    def lost(self) -> str:
        return ""

    def flaws(self) -> Iterator[str]:
        """See store.base.Account.flaws: each day, and each deleted run."""
        for key in self._backend.list("account/"):
            day, found = key.partition("/")[2], self._backend.get(key)
            try:
                if found is not None and _DAY.fullmatch(day):
                    self._slices(day, found[0])
            except StoreError as error:
                yield f"{error.message} {error.hint}"
        try:
            self.limits()
        except StoreError as error:
            yield f"{error.message} {error.hint}"
        first, problems = self._sums(_KEPT)
        second, _ = self._sums(_AGAIN)
        yield from (f"{wrong.message} {wrong.hint}" for wrong in problems.values())
        for run in sorted(second.keys() - first.keys() - problems.keys()):
            yield (
                f"The sums of the deleted run {run} (object {_KEPT}/{run}) are gone. They are counted as "
                f"{_AGAIN}/{run} has them; copy that object back."
            )

    def _deleted(self, under: str) -> list[str]:
        """Return the deleted runs whose sums are there."""
        return [name for key in self._backend.list(f"{under}/") if is_id(name := key.partition("/")[2])]

    def _sums(self, under: str) -> tuple[dict[str, Mapping[str, Any]], dict[str, StoreError]]:
        """Return the sums that are there by run, and what is wrong with others."""
        found, problems = dict[str, Mapping[str, Any]](), dict[str, StoreError]()
        names = self._deleted(under)
        for name, row in zip(names, self._all([f"{under}/{name}" for name in names]), strict=True):
            hint = (
                f"Bring the object {under}/{name} back from a copy of the store; or delete it, and what that run cost "
                "is counted no more."
            )
            try:
                if row is not None:
                    found[name] = sums_of(row[0], f"The sums of the deleted run {name} (object {under}/{name})", hint)
            except StoreError as wrong:
                problems[name] = wrong
        return found, problems

    def _all(self, keys: Sequence[str]) -> Sequence[tuple[bytes, str] | None]:
        """Return objects in order, several at a time where the backend answers over a network."""
        if self._backend.at_once < 2:
            return list(map(self._backend.get, keys))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._backend.at_once) as pool:
            return list(pool.map(self._backend.get, keys))

    def _change(self, day: str, change: Change) -> bool:
        """Change a day's slices, again and again until no other change came between; False: there is nothing to change.

        Raises:
            WriteFailed: The backend refuses, or others never let us.
        """

        def changed(data: bytes) -> bytes | None:
            slices = change(self._slices(day, data) if data else {})
            return None if slices is None else json.dumps(slices, separators=(",", ":")).encode()

        return self._exchange(f"account/{day}", changed)

    def _exchange(self, key: str, change: Callable[[bytes], bytes | None]) -> bool:
        """Change an object (b"": it is not there yet) as `_change` does."""
        for number in range(_TRIES):
            try:
                found = self._backend.get(key)
            except StoreError as error:
                raise WriteFailed(error.message, hint=error.hint, code="account_refused", fatal=False) from None
            data = change(found[0] if found else b"")
            if data is None:
                return False
            try:
                if self._backend.put_if(key, data, found[1] if found else "") is not None:
                    return True
            except OSError as error:
                text = f"The account cannot be changed ({key}): {error.strerror}."
                raise WriteFailed(text, code="account_refused", fatal=False) from error
            pause(number)
        raise _busy()

    def _day_of(self, slice_id: str) -> str:
        """Return the day of a slice; earlier versions named some without it."""
        day, dot, _ = slice_id.partition(".")
        if dot and _DAY.fullmatch(day):
            return day
        for key in reversed(list(self._backend.list("account/"))):
            day, found = key.partition("/")[2], self._backend.get(key)
            if found is not None and slice_id in self._slices(day, found[0]):
                return day
        raise unknown_slice(slice_id)

    def _slices(self, day: str, data: bytes) -> Slices:
        hint = f"Bring the object account/{day} back from a copy of the store, or an older version of it."
        what = f"The account of {day}"
        try:
            slices = {str(name): _entry(*entry) for name, entry in json.loads(data).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise StoreError(f"{what} is damaged.", hint=hint, code="account_damaged") from error
        for _, usd, *_ in slices.values():
            amount_of(usd, what, hint)
        return slices


def pause(number: int) -> None:
    """Wait for a moment that is longer at each try, and not the same for all who try."""
    SystemClock().wait(threading.Event(), random.uniform(0, min(_SHORTEST * (number + 1), _LONGEST)))


def utc_day(moment: datetime) -> str:
    """Return the day that a limit is of."""
    return moment.astimezone(UTC).date().isoformat()


def check_amount(usd: Decimal) -> None:
    """Refuse what is no money.

    Raises:
        StoreError: The amount is negative or no number.
    """
    if not usd.is_finite() or usd < 0:
        raise StoreError(f"{usd} cannot be reserved.", code="invalid_amount")


def unknown_slice(name: str) -> StoreError:
    """Return the error of a slice that was not reserved."""
    return StoreError(f"There is no reservation {name}.", code="unknown_reservation")


def amount_of(text: Any, what: str, hint: str) -> Decimal:
    """Return an amount as it is kept, in USD.

    Args:
        what: What is damaged if it is none, and how it comes back.

    Raises:
        StoreError: It is no amount.
    """
    try:
        return amount(text)
    except ValueError:
        why = f"{what} is damaged: {str(text)[:40]!r} is not an amount of dollars."
        raise StoreError(why, hint=hint, code="account_damaged") from None


def sums_of(text: Any, what: str, hint: str) -> Mapping[str, Any]:
    """Return what is kept of a deleted run.

    Raises:
        StoreError: It is damaged; `what` and `hint` as for an amount.
    """
    try:
        sums = json.loads(text)
    except SENSELESS:
        sums = None
    if problem(sums, REMOVED):
        raise StoreError(f"{what} are damaged.", hint=hint, code="account_damaged")
    return dict(sums)


def _sum(slices: Slices) -> Decimal:
    return sum((Decimal(usd) for _, usd, *_ in slices.values()), Decimal(0))


def _entry(owner: Any, usd: Any, labels: Any = None) -> list[str]:
    """Return a slice as it is stored.

    Raises:
        TypeError: It has more or fewer parts (by the call itself).
    """
    return [str(owner), str(usd)] if labels is None else [str(owner), str(usd), str(labels)]


def _added(
    name: str, entry: list[str], limit: Decimal, limits: Sequence[Limit], elsewhere: Tallies, slices: Slices
) -> Slices | None:
    """Return a day's slices with one more; None: the day's limit, or one of the others, has no room for it.

    Args:
        elsewhere: What other days of the limits' windows have.
    """
    usd, day = Decimal(entry[1]), name.partition(".")[0]
    known = {**elsewhere, day: _tally(slices)}
    if _sum(slices) + usd > limit or any(standing(each, day, known).left < usd for each in limits):
        return None
    return {**slices, name: entry}


def _tally(slices: Slices) -> dict[str, SpendTally]:
    """Return what slices come to, by labels."""
    found: dict[str, SpendTally] = {}
    for owner, usd, *labels in slices.values():
        found.setdefault("".join(labels), SpendTally()).add(Decimal(usd), settled=not owner)
    return found


def _limits(data: bytes) -> dict[tuple[str, str], Limit]:
    """Return the limits that are stored.

    Raises:
        StoreError: They are damaged.
    """
    try:
        found = [Limit.from_json(each) for each in json.loads(data)] if data else []
    except SENSELESS:
        hint = f"Bring the object {_LIMITS} back from a copy of the store; or delete it, and set the limits again."
        raise StoreError("The limits of the store are damaged.", hint=hint, code="account_damaged") from None
    return {each.key: each for each in found}


def _limits_data(limits: Mapping[tuple[str, str], Limit]) -> bytes:
    return json.dumps([each.to_json() for each in limits.values()], separators=(",", ":")).encode()


def _busy() -> WriteFailed:
    text = "The account cannot be changed: other processes keep changing it."
    return WriteFailed(text, code="account_busy", fatal=False)
