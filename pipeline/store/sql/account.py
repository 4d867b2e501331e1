"""What all runs of a database spend: reservations of the daily limit, and the sums of runs that were deleted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import StoreError
from pipeline.store.account import amount_of, reserved, sums_of, utc_day
from pipeline.store.sql import kept
from pipeline.store.sql.database import SPENDING, Database
from pipeline.store.sql.link import Link
from pipeline.store.sql.patience import Patience


class SqlAccount:
    """The account beside the runs; see store.base.Account. Each change is made under one lock."""

    def __init__(self, database: Database, clock: Clock, ready: Callable[[bool], bool]) -> None:
        self._database = database
        self._patience = Patience(database, clock)
        self._clock = clock
        self._ready = ready

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
        """See store.base.Account.reserve."""
        name, day = self._clock.new_id(), utc_day(at)
        fact = reserved(name, owner, day, usd)
        self._ready(True)

        def enter(link: Link) -> str | None:
            slices = _slices(link, day)
            if name in slices:
                # Only the answer to the try before was lost.
                return name
            if sum(slices.values(), usd) > limit:
                return None
            sql = "INSERT INTO slices (slice, day, owner, usd, settled) VALUES (?, ?, ?, ?, 0)"
            link.run(sql, name, day, owner, fact["usd"])
            return name

        return self._patience.write(enter, lock=SPENDING)

    def settle(self, slice_id: str, usd: Decimal) -> None:
        """See store.base.Account.settle."""
        self._ready(True)
        sql = "UPDATE slices SET usd = ?, settled = 1 WHERE slice = ?"
        if self._patience.write(lambda link: link.run(sql, str(usd), slice_id)) != 1:
            raise StoreError(f"There is no reservation {slice_id}.")

    def total(self, day: date) -> Decimal:
        """See store.base.Account.total."""
        if not self._ready(False):
            return Decimal(0)
        return sum(self._patience.read(lambda link: _slices(link, day.isoformat())).values(), Decimal(0))

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        """See store.base.Account.keep."""
        self._ready(True)
        sql = "INSERT INTO kept (run_id, sums) VALUES (?, ?) ON CONFLICT (run_id) DO UPDATE SET sums = excluded.sums"

        def enter(link: Link) -> None:
            link.run(sql, run, json.dumps(dict(sums)))
            kept.enter(link, run, sums)

        self._patience.write(enter)

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """See store.base.Account.kept."""
        if not self._ready(False):
            return {}
        rows = self._patience.read(lambda link: link.rows("SELECT run_id, sums FROM kept"))
        again = self._patience.read(kept.sums)
        found: dict[str, Mapping[str, Any]] = dict(again)
        for run, sums in rows:
            try:
                found[run] = _sums(run, sums)
            except StoreError:
                if run not in again:
                    raise
        return found

    def lost(self) -> str:
        """See store.base.Account.lost."""
        return ""

    def flaws(self) -> Iterator[str]:
        """See store.base.Account.flaws: each reservation, and what each deleted run had cost."""
        if not self._ready(False):
            return
        with self._database.read() as link:
            slices = link.rows("SELECT slice, usd, day FROM slices ORDER BY day, slice")
            sums = link.rows("SELECT run_id, sums FROM kept ORDER BY run_id")
            wrong = kept.wrong(link)
        looks: list[Callable[[], object]] = [
            *(partial(_amount, *row) for row in slices),
            *(partial(_sums, *row) for row in sums),
        ]
        for look in looks:
            try:
                look()
            except StoreError as error:
                yield f"{error.message} {error.hint}"
        yield from (f"{text} `store upgrade` puts it right." for text in wrong.values())


def _slices(link: Link, day: str) -> dict[str, Decimal]:
    """The reservations of a day: added up here, exactly, which not every database can."""
    rows = link.rows("SELECT slice, usd FROM slices WHERE day = ?", day)
    return {name: _amount(name, usd, day) for name, usd in rows}


def _amount(name: str, usd: Any, day: str) -> Decimal:
    hint = (
        "Bring the row back from a copy of the database, or set its usd to what that day's calls cost at most "
        "(`cost` shows it)."
    )
    return amount_of(usd, f"The reservation {name} of {day} (table slices)", hint)


def _sums(run: str, sums: Any) -> Mapping[str, Any]:
    hint = "Bring the row back from a copy of the database; or delete it, and what that run cost is counted no more."
    return sums_of(sums, f"The sums of the deleted run {run} (table kept)", hint)
