"""Limits of windows and labels on an account: the same tests over a file, memory, objects and databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import StoreError
from pipeline.records.budgets import Limit, labels_text
from pipeline.records.lines import encode_line
from pipeline.store.account import FileAccount
from pipeline.store.base import Account
from pipeline.store.copies import copy_account
from pipeline.store.ledger import BackendAccount
from pipeline.store.memory import MemoryAccount, MemoryBackend
from pipeline.store.objects.backend import open_objects
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import open_sql
from tests.contract.test_account_contract import LIMIT, ME
from tests.contract.test_account_contract import account as account
from tests.journals import StillClock

MATHS, PHYSICS = "team=maths", "team=physics"
#: A Thursday; the day after the next the week goes on, and the month ends in between.
AT = datetime(2026, 4, 30, 12, tzinfo=UTC)
NO_DAY = Decimal(10) ** 12


def limit(labels: str, per: str, usd: str) -> Limit:
    return Limit(labels, per, Decimal(usd))


def take(account: Account, usd: str, labels: str = "", days: int = 0) -> str | None:
    return account.reserve(ME, Decimal(usd), AT + timedelta(days=days), NO_DAY, labels)


def left(account: Account, days: int = 0) -> list[Decimal]:
    return [each.left for each in account.standings(AT + timedelta(days=days))]


def test_limits_are_set_changed_listed_and_removed(account: Account) -> None:
    assert list(account.limits()) == []
    assert list(account.standings(AT)) == []
    for labels, per, usd in ((MATHS, "month", "5"), ("", "week", "9"), (MATHS, "day", "1"), (MATHS, "month", "7")):
        account.set_limit(limit(labels, per, usd))
    assert list(account.limits()) == [limit("", "week", "9"), limit(MATHS, "day", "1"), limit(MATHS, "month", "7")]
    assert account.remove_limit(MATHS, "day")
    assert not account.remove_limit(MATHS, "day")
    assert [each.key for each in account.limits()] == [("", "week"), (MATHS, "month")]


@pytest.mark.parametrize(
    ("per", "inside", "outside"), [("day", 0, 1), ("week", 3, 4), ("month", -29, 1), ("total", 400, None)]
)
def test_a_limit_holds_over_its_window_and_no_longer(
    account: Account, per: str, inside: int, outside: int | None
) -> None:
    account.set_limit(limit("", per, "1"))
    assert take(account, "0.6")
    assert take(account, "0.5", days=inside) is None
    assert take(account, "0.4", days=inside)
    assert left(account) == [0]
    if outside is not None:
        assert take(account, "0.5", days=outside)


def test_a_limit_counts_only_what_bears_its_labels_and_what_was_spent_before_it_was_set(account: Account) -> None:
    assert take(account, "0.6", MATHS)
    assert take(account, "0.6", PHYSICS)
    account.set_limit(limit(MATHS, "month", "1"))
    account.set_limit(limit(labels_text([MATHS, "level=higher"]), "month", "0.1"))
    assert take(account, "0.5", MATHS) is None
    assert take(account, "0.5", PHYSICS)
    assert take(account, "0.5")
    assert take(account, "0.2", labels_text(["level=higher", MATHS])) is None
    assert take(account, "0.4", MATHS)
    standings = account.standings(AT, MATHS)
    assert [(each.limit.labels, each.tally.reserved) for each in standings] == [(MATHS, Decimal(1))]


def test_what_is_settled_is_spent_also_late_and_above_its_reservation(account: Account) -> None:
    account.set_limit(limit(MATHS, "month", "1"))
    name = take(account, "0.9", MATHS, days=-20)
    assert name
    account.settle(name, Decimal("0.2"))
    (one,) = account.standings(AT)
    assert (one.tally.spent, one.tally.reserved, one.left) == (Decimal("0.2"), Decimal(0), Decimal("0.8"))
    assert take(account, "0.5", MATHS)
    account.settle(name, Decimal("0.7"))
    assert left(account) == [Decimal("-0.2")]
    assert take(account, "0", MATHS) is None


def test_open_slices_say_for_whom_they_are_reserved_until_they_are_settled(account: Account) -> None:
    before, now = take(account, "0.5", days=-1), take(account, "0.5", MATHS)
    assert account.open_slices() == {before: ME, now: ME}
    assert account.open_slices(AT.date().isoformat()) == {now: ME}
    account.settle(str(before), Decimal(0))
    assert account.open_slices() == {now: ME}


def test_a_day_s_limit_and_one_of_a_window_hold_together(account: Account) -> None:
    account.set_limit(limit("", "month", "100"))
    assert account.reserve(ME, Decimal(10), AT, LIMIT)
    assert account.reserve(ME, Decimal(1), AT, LIMIT) is None
    assert account.reserve(ME, Decimal(10), AT - timedelta(days=1), LIMIT)
    # What was spent already is counted whatever it passes.
    assert account.reserve(ME, Decimal(500), AT, None)
    assert left(account) == [-420]


def test_threads_on_several_days_never_pass_a_limit(account: Account) -> None:
    account.set_limit(limit(MATHS, "month", "5"))
    with ThreadPoolExecutor(6) as pool:
        slices = list(pool.map(lambda number: take(account, "0.7", MATHS, days=-(number % 3)), range(24)))
    # Who meets another on another day may both give way; nobody passes.
    assert 0 < sum(one is not None for one in slices) <= 7
    (one,) = account.standings(AT)
    assert one.tally.total == Decimal("0.7") * sum(name is not None for name in slices)
    while take(account, "0.7", MATHS):
        pass
    assert left(account) == [Decimal("0.1")]


class _Meeting(MemoryBackend):
    """A backend in which something happens just before a day is written."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] = lambda: None

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        if key.startswith("account/"):
            meet, self.before = self.before, lambda: None
            meet()
        return super().put_if(key, data, etag)


@pytest.mark.parametrize("days", [0, -1])
def test_who_reserves_on_another_day_at_the_same_moment_is_seen(days: int) -> None:
    backend = _Meeting()
    one, other = (BackendAccount(backend, StillClock()) for _ in range(2))
    one.set_limit(limit("", "month", "1"))
    granted: list[str | None] = []
    backend.before = lambda: granted.append(take(other, "0.6", days=days))
    granted.append(take(one, "0.6"))
    assert sum(name is not None for name in granted) == 1
    assert left(one) == [Decimal("0.4")]


def test_a_limit_set_at_the_same_moment_holds() -> None:
    backend = _Meeting()
    account = BackendAccount(backend, StillClock())
    backend.before = lambda: account.set_limit(limit("", "day", "0.5"))
    assert take(account, "0.6") is None
    assert left(account) == [Decimal("0.5")]


@pytest.mark.parametrize("where", ["files", "objects", "sqlite"])
def test_damaged_limits_are_named_and_stop(tmp_path: Path, objects: str, where: str) -> None:
    clock, junk = StillClock(), {"labels": "team", "per": "year", "usd": "-1"}
    account: Account
    if where == "files":
        line = encode_line(1, "2026-01-09T00:00:00Z", 0, json.dumps({"kind": "limit_set", **junk}).encode())
        for name in ("account.jsonl", ".account.jsonl"):
            (tmp_path / name).write_bytes(line)
        account = FileAccount(tmp_path, clock)
    else:
        sqlite = f"sqlite:{tmp_path}/runs.db"
        store = RunStore(open_objects(objects), clock) if where == "objects" else open_sql(sqlite, clock)
        account = store.account()
        store.backend.put_if("limits/all", json.dumps([junk]).encode(), None)
    with pytest.raises(StoreError) as caught:
        take(account, "0.1")
    assert caught.value.code == "account_damaged"
    assert list(account.flaws())


def test_accounts_of_earlier_versions_count() -> None:
    """Slices without labels, and settled ones that name their owner still."""
    account = MemoryAccount(StillClock(), backend := MemoryBackend())
    backend.put_if("account/2026-04-30", json.dumps({"a": ["h:1:x", "0.25"], "b": ["h:1:x", "0.5"]}).encode(), None)
    account.set_limit(limit("", "month", "1"))
    assert take(account, "0.5") is None
    assert take(account, "0.25")
    account.settle("b", Decimal("0.1"))
    assert left(account) == [Decimal("0.4")]


def test_copy_brings_limits_and_what_counts_towards_them_once(account: Account) -> None:
    source = MemoryAccount(clock := StillClock())
    source.set_limit(limit(MATHS, "month", "1"))
    source.set_limit(limit("", "week", "5"))
    account.set_limit(limit("", "week", "7"))
    earlier = AT.replace(year=2025)
    name = source.reserve(ME, Decimal("0.5"), earlier, NO_DAY, MATHS)
    assert name
    for spent in ("0.5", "0.5", "0.75"):
        source.settle(name, Decimal(spent))
        copy_account(source, account, clock, {})
    assert [(each.limit, each.tally.spent) for each in account.standings(earlier)] == [
        (limit("", "week", "7"), Decimal("0.75")), (limit(MATHS, "month", "1"), Decimal("0.75"))
    ]  # fmt: skip


def test_copy_counts_what_was_spent_today_with_its_labels(account: Account) -> None:
    """What was counted without them left a limit of their label room that it did not have."""
    source = MemoryAccount(clock := StillClock())
    account.set_limit(limit(MATHS, "day", "1"))
    name = source.reserve(ME, Decimal("0.75"), now := clock.now(), NO_DAY, MATHS)
    assert name
    source.settle(name, Decimal("0.75"))
    spend = [{"day": now.date().isoformat(), "labels": MATHS, "usd": "0.25", "high": "0", "calls": 1}]
    source.keep("gone", {"spend": spend})
    for _ in range(2):
        # A run that comes brings part of it itself.
        copy_account(source, account, clock, {MATHS: Decimal("0.375")})
        assert [each.tally.spent for each in account.standings(now)] == [Decimal("0.375")]
    assert account.total(now.date()) == Decimal("0.375")
