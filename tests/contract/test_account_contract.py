"""What every account promises; the same tests over a file and memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.cost.report import of_removed
from pipeline.errors import StoreError
from pipeline.store.account import FileAccount
from pipeline.store.base import Account
from pipeline.store.memory import MemoryAccount
from pipeline.store.objects.backend import open_objects
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import open_sql
from tests.contract.harm import bucket_of
from tests.journals import AT, StillClock

DAY = date(2026, 1, 9)
LIMIT = Decimal(10)
ME = "host:1:2"


@pytest.fixture(params=["files", "memory", "objects", "sqlite", "postgresql"])
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Account:
    clock = StillClock()
    makers: dict[str, Callable[[], Account]] = {
        "files": lambda: FileAccount(tmp_path / "runs", clock),
        "memory": lambda: MemoryAccount(clock),
        "objects": lambda: RunStore(open_objects(request.getfixturevalue("objects")), clock).account(),
        "sqlite": lambda: open_sql(f"sqlite:{tmp_path}/runs.db", clock).account(),
        "postgresql": lambda: open_sql(request.getfixturevalue("postgresql"), clock).account(),
    }
    return makers[request.param]()


def test_new_account_is_empty(account: Account) -> None:
    assert account.total(DAY) == 0
    assert account.kept() == {}
    assert list(account.flaws()) == []


def test_reservations_are_granted_up_to_the_limit_and_no_further(account: Account) -> None:
    assert account.reserve(ME, Decimal("9.99"), AT, LIMIT)
    assert account.reserve(ME, Decimal("0.02"), AT, LIMIT) is None
    assert account.reserve(ME, Decimal("0.01"), AT, LIMIT)
    assert account.total(DAY) == 10
    assert account.reserve(ME, Decimal("0.000001"), AT, LIMIT) is None


def test_open_slice_counts_in_full_whoever_owns_it(account: Account) -> None:
    account.reserve("a host that is gone:1:2", Decimal(4), AT, LIMIT)
    assert account.total(DAY) == 4


def test_settled_slice_counts_what_it_cost(account: Account) -> None:
    name = account.reserve(ME, Decimal(4), AT, LIMIT)
    assert name
    account.settle(name, Decimal("1.25"))
    account.settle(name, Decimal("1.25"))
    assert account.total(DAY) == Decimal("1.25")


def test_bill_above_its_reservation_counts_as_it_is(account: Account) -> None:
    name = account.reserve(ME, Decimal(4), AT, LIMIT)
    assert name
    account.settle(name, Decimal(12))
    assert account.total(DAY) == 12
    assert account.reserve(ME, Decimal(0), AT, LIMIT) is None


def test_a_slice_nobody_reserved_cannot_be_settled(account: Account) -> None:
    with pytest.raises(StoreError):
        account.settle("no such slice", Decimal(1))


@pytest.mark.parametrize("usd", ["-1", "NaN", "Infinity"])
def test_amounts_that_are_no_money_are_refused(account: Account, usd: str) -> None:
    with pytest.raises(StoreError):
        account.reserve(ME, Decimal(usd), AT, LIMIT)
    assert account.total(DAY) == 0


def test_days_are_utc_and_apart(account: Account) -> None:
    late = datetime(2026, 1, 9, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    account.reserve(ME, Decimal(7), late, LIMIT)
    assert account.total(DAY) == 0
    assert account.total(date(2026, 1, 10)) == 7
    assert account.reserve(ME, Decimal(7), AT, LIMIT)


def test_amounts_are_exact(account: Account) -> None:
    for _ in range(3):
        account.reserve(ME, Decimal("0.1"), AT, LIMIT)
    assert account.total(DAY) == Decimal("0.3")


def test_sums_of_deleted_runs_are_kept_once(account: Account) -> None:
    for usd in ("1", "1", "2"):
        account.keep("20260109_143022", {"usd": usd})
    assert account.kept() == {"20260109_143022": {"usd": "2"}}


def test_threads_that_reserve_at_once_never_pass_the_limit(account: Account) -> None:
    with ThreadPoolExecutor(8) as pool:
        slices = list(pool.map(lambda _: account.reserve(ME, Decimal("0.7"), AT, LIMIT), range(40)))
    assert sum(one is not None for one in slices) == 14
    assert len({one for one in slices if one}) == 14
    assert account.total(DAY) == Decimal("9.8")


@pytest.mark.parametrize("usd", ["abc", "NaN", "-1", "", "1e400", "1e99999999999999999999"])
def test_damaged_amount_of_a_database_is_named(tmp_path: Path, usd: str) -> None:
    store = open_sql(f"sqlite:{tmp_path}/runs.db", StillClock())
    account = store.account()
    name = account.reserve(ME, Decimal(1), AT, LIMIT)
    store.backend.put_if("account/2026-01-09", json.dumps({name: [ME, usd]}).encode(), None)
    for look in (lambda: account.total(DAY), lambda: account.reserve(ME, Decimal(1), AT, LIMIT)):
        with pytest.raises(StoreError) as caught:
            look()
        assert caught.value.code == "account_damaged"
        assert "copy of the store" in caught.value.hint
    # Whatever day it is of.
    (flaw,) = account.flaws()
    assert "account of 2026-01-09 is damaged" in flaw


@pytest.mark.parametrize("junk", ["junk", "5", "[]", '{"usd": "abc"}', '{"spend": [{"usd": "NaN"}]}'])
def test_damaged_sums_of_a_deleted_run_are_named(tmp_path: Path, junk: str, objects: str) -> None:
    clock = StillClock()
    sql, bucket = open_sql(f"sqlite:{tmp_path}/runs.db", clock), RunStore(open_objects(objects), clock)
    accounts: list[Account] = [sql.account(), bucket.account()]
    for account in accounts:
        account.keep("20260109_143022", {"usd": "1"})
    for under in ("kept", "kept-again"):
        sql.backend.put_if(f"{under}/20260109_143022", junk.encode(), None)
        bucket_of(bucket).put(f"{under}/20260109_143022", junk.encode())
    for account in accounts:
        with pytest.raises(StoreError, match="sums of the deleted run 20260109_143022") as caught:
            account.kept()
        assert "back from a copy" in caught.value.hint
        (flaw,) = account.flaws()
        assert "sums of the deleted run 20260109_143022" in flaw


def test_damaged_day_of_a_bucket_is_named(objects: str) -> None:
    bucket = RunStore(open_objects(objects), StillClock())
    account = bucket.account()
    assert account.reserve(ME, Decimal(1), AT, LIMIT)
    assert list(account.flaws()) == []
    bucket_of(bucket).put("account/2020-01-01", b"junk")
    (flaw,) = account.flaws()
    assert "The account of 2020-01-01 is damaged." in flaw


@pytest.mark.parametrize("where", ["objects", "sqlite", "postgresql"])
@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_sums_of_a_deleted_run_that_are_lost_are_known_once_more(
    request: pytest.FixtureRequest, tmp_path: Path, where: str, how: str
) -> None:
    run, spend = "20260109_143022", [{"day": "2026-01-09", "model": "m", "calls": 2, "usd": "0.36", "outcome": "used"}]
    store: RunStore
    if where == "objects":
        store = RunStore(open_objects(request.getfixturevalue("objects")), StillClock())
        store.account().keep(run, {"spend": spend})
        if how == "removed":
            bucket_of(store).delete([f"kept/{run}"])
        else:
            bucket_of(store).put(f"kept/{run}", b"")
    else:
        url = f"sqlite:{tmp_path}/runs.db" if where == "sqlite" else request.getfixturevalue("postgresql")
        store = open_sql(url, StillClock())
        store.account().keep(run, {"spend": spend})
        if how == "removed":
            store.backend.delete(f"kept/{run}")
        else:
            store.backend.put_if(f"kept/{run}", b"", None)
    (posting,) = of_removed(run, store.account().kept()[run])
    assert (posting.spend.usd, posting.spend.calls, posting.day) == (Decimal("0.36"), 2, "2026-01-09")
    assert list(store.account().flaws())
