"""What all runs of a bucket spend: an object a day, changed only where nobody else did; an object a deleted run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import StoreError, WriteFailed
from pipeline.store.account import amount_of, reserved, sums_of, utc_day
from pipeline.store.names import is_id, split
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket, Found
from pipeline.store.objects.claiming import pause

Slices = dict[str, list[str]]
Change = Callable[[Slices], Slices | None]
_TRIES = 200
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ObjectAccount:
    """An account in a bucket; see store.base.Account."""

    def __init__(self, bucket: Bucket, clock: Clock, prove: Callable[[], None]) -> None:
        self._bucket = bucket
        self._clock = clock
        self._prove = prove

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
        """See store.base.Account.reserve."""
        day = utc_day(at)
        name = f"{day}.{self._clock.new_id()}"
        fact = reserved(name, owner, day, usd)

        def add(slices: Slices) -> Slices | None:
            if _sum(slices) + usd > limit:
                return None
            return {**slices, name: [owner, fact["usd"]]}

        return name if self._change(day, add) else None

    def settle(self, slice_id: str, usd: Decimal) -> None:
        """See store.base.Account.settle."""
        reserved(slice_id, "", "", usd)

        def close(slices: Slices) -> Slices:
            if slice_id not in slices:
                raise StoreError(f"There is no reservation {slice_id}.")
            return {**slices, slice_id: [slices[slice_id][0], str(usd)]}

        day, dot, _ = slice_id.partition(".")
        if not dot:
            raise StoreError(f"There is no reservation {slice_id}.")
        self._change(day, close)

    def total(self, day: date) -> Decimal:
        """See store.base.Account.total."""
        found = self._bucket.get(f"{keys.ACCOUNT}/{day.isoformat()}")
        return _sum(_parse(day.isoformat(), found.data)) if found else Decimal(0)

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        """See store.base.Account.keep."""
        for under in (keys.KEPT, keys.KEPT_AGAIN):
            self._bucket.put(f"{under}/{split(run)[0]}", json.dumps(dict(sums)).encode())

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """See store.base.Account.kept."""
        found, problems = self._sums(keys.KEPT)
        missing = set(self._deleted(keys.KEPT_AGAIN)) - found.keys()
        if missing or problems:
            again, _ = self._sums(keys.KEPT_AGAIN)
            found = {**again, **found}
        for run, problem in problems.items():
            if run not in found:
                raise problem
        return found

    def _sums(self, under: str) -> tuple[dict[str, Mapping[str, Any]], dict[str, StoreError]]:
        """The sums that lie there by run, and what is wrong with others."""
        names = self._deleted(under)
        found, problems = dict[str, Mapping[str, Any]](), dict[str, StoreError]()
        rows = self._bucket.get_all([f"{under}/{name}" for name in names])
        for name, row in zip(names, rows, strict=True):
            try:
                if row is not None:
                    found[name] = _kept(f"{under}/{name}", row.data)
            except StoreError as problem:
                problems[name] = problem
        return found, problems

    def lost(self) -> str:
        """See store.base.Account.lost."""
        return ""

    def flaws(self) -> Iterator[str]:
        """See store.base.Account.flaws: each day, and each deleted run."""
        days = [entry.key for entry in self._bucket.all_under(keys.ACCOUNT, keys.first(keys.ACCOUNT))]
        days = [key for key in days if _DAY.fullmatch(key.removeprefix(f"{keys.ACCOUNT}/"))]
        for key, found in zip(days, self._bucket.get_all(days), strict=True):
            try:
                _parse(key.rpartition("/")[2], found.data if found else b"{}")
            except StoreError as error:
                yield f"{error.message} {error.hint}"
        first, problems = self._sums(keys.KEPT)
        second, _ = self._sums(keys.KEPT_AGAIN)
        yield from (f"{problem.message} {problem.hint}" for problem in problems.values())
        for run in sorted(second.keys() - first.keys() - problems.keys()):
            yield (
                f"The sums of the deleted run {run} (object {keys.KEPT}/{run}) are gone. They are counted as "
                f"{keys.KEPT_AGAIN}/{run} has them; copy that object back."
            )

    def _deleted(self, under: str) -> list[str]:
        """The deleted runs whose sums lie there."""
        there = self._bucket.all_under(under, keys.first(under))
        names = (entry.key.removeprefix(f"{under}/") for entry in there)
        return [name for name in names if is_id(name)]

    def _change(self, day: str, change: Change) -> bool:
        """Change a day's slices, again and again until nobody came between; False: there is nothing to change.

        Raises:
            WriteFailed: The server does not answer, or others never let us.
        """
        self._prove()
        key = f"{keys.ACCOUNT}/{day}"
        for number in range(_TRIES):
            found = self._look(key)
            slices = change(_parse(day, found.data) if found else {})
            if slices is None:
                return False
            data = json.dumps(slices, separators=(",", ":")).encode()
            etag = self._bucket.put_over(key, data, found.etag) if found else self._bucket.put_new(key, data)
            if etag is not None:
                return True
            pause(number)
        raise WriteFailed("The account cannot be changed: others change it all the time.", fatal=False)

    def _look(self, key: str) -> Found | None:
        try:
            return self._bucket.get(key)
        except StoreError as error:
            raise WriteFailed(error.message, hint=error.hint, fatal=False) from None


def _parse(day: str, data: bytes) -> Slices:
    hint = f"Bring the object {keys.ACCOUNT}/{day} back from a copy of the bucket, or an older version of it."
    what = f"The account of {day}"
    try:
        slices = {str(name): [str(owner), str(usd)] for name, (owner, usd) in json.loads(data).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"{what} is damaged.", hint=hint) from error
    for _, usd in slices.values():
        amount_of(usd, what, hint)
    return slices


def _kept(key: str, data: bytes) -> Mapping[str, Any]:
    hint = (
        f"Bring the object {key} back from a copy of the bucket; or delete it, and what that run cost is counted no "
        "more."
    )
    return sums_of(data, f"The sums of the deleted run {key.rpartition('/')[2]} (object {key})", hint)


def _sum(slices: Slices) -> Decimal:
    return sum((Decimal(usd) for _, usd in slices.values()), Decimal(0))
