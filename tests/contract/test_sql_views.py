"""What people query in a database says what the commands say: costs by day, who owns a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.cost.report import NOWHERE, of_removed, of_sums, report
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled
from pipeline.store.base import Account, Movable, Store
from pipeline.store.copies import copy, copy_account
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryAccount
from pipeline.store.reader import kept_spend
from pipeline.store.retention import cleanup
from pipeline.store.url import open_account
from tests.contract import harm
from tests.faulty_disk import LazyDisk
from tests.journals import AT, StillClock, ended, line, small_run, started
from tests.stores import write

Sums = dict[tuple[str | None, str], tuple[int, Decimal, Decimal, int, int]]


@pytest.fixture
def other(tmp_path: Path, clock: StillClock) -> FileStore:
    return FileStore(tmp_path / "other", clock, disk=LazyDisk())


def account_of(store: Store) -> Account:
    return open_account(store.url, StillClock())


def calls() -> list[bytes]:
    """A completed run whose calls are exact, between two bounds, unpriced, open, and of two models."""
    charges = [
        Charge("exact", Decimal("0.1"), Decimal("0.1")),
        Charge("interval", Decimal("0.2"), Decimal("0.3")),
        Charge("interval", Decimal("0.2"), None),
        Charge("unpriced"),
    ]
    lines = [started()]
    for number, charge in enumerate(charges):
        model = "a" if number % 2 else "b"
        lines.append(line(2 * number + 2, CallStarted("sow#1", "key", model, "blob", worst="0.5")))
        lines.append(line(2 * number + 3, CallEnded(2 * number + 2, None, charge.to_json())))
    return [*lines, line(10, CallStarted("sow#1", "key", "a", "blob", worst="0.5")), ended(11)]


def view(store: Movable) -> Sums:
    rows = harm.rows(store, "SELECT day, model, calls, low_usd, high_usd, open_calls, unpriced_calls FROM costs_by_day")
    return {
        (None if day is None else str(day), model): (number, Decimal(low), Decimal(high or 0), opened, unpriced)
        for day, model, number, low, high, opened, unpriced in rows
    }


def told(store: Store, account: Account) -> dict[str, tuple[int, Decimal, Decimal]]:
    """What `cost --by day` says."""
    postings = [post for head in store.heads() for post in of_sums(head.document["spend"], NOWHERE)]
    for run, sums in kept_spend(store, account).items():
        postings += of_removed(run, sums)
    lines = report(postings, "day").lines
    return {each.key: (each.calls, each.usd + each.low, each.usd + each.high) for each in lines}


def by_day(store: Movable) -> dict[str, tuple[int, Decimal, Decimal]]:
    days: dict[str, tuple[int, Decimal, Decimal]] = {}
    for (day, _), (number, low, high, _, _) in view(store).items():
        before = days.get(day or "(unknown)", (0, Decimal(0), Decimal(0)))
        days[day or "(unknown)"] = (before[0] + number, before[1] + low, before[2] + high)
    return days


def test_costs_by_day_are_those_of_cost_also_of_runs_that_were_removed_elsewhere(
    sql: Movable, other: FileStore, clock: StillClock
) -> None:
    account = MemoryAccount(clock)
    for days in (3, 2, 1, 0):
        write(other, [*small_run(), ended(8)] if days % 2 else calls(), days=days)
    gone = cleanup(other, account, max_age_days=30, max_runs=0, now=AT)
    assert len(gone) == 3
    copy_account(account, account_of(sql), clock, {})
    assert [row.problem for row in copy(other, sql, clock)] == [""]
    assert by_day(sql) == told(sql, account_of(sql)) == told(other, account)
    assert [number for number, *_ in by_day(sql).values()] == [12]
    assert sum(opened for *_, opened, _ in view(sql).values()) == 2
    assert sum(unpriced for *_, unpriced in view(sql).values()) == 4


def test_costs_by_day_stay_when_runs_are_removed_and_count_once_when_they_come_back(
    sql: Movable, other: FileStore, clock: StillClock
) -> None:
    for days in (1, 0):
        write(other, calls(), days=days)
    list(copy(other, sql, clock))
    before = view(sql)
    assert len(cleanup(sql, account_of(sql), max_age_days=30, max_runs=0, now=AT)) == 1
    assert view(sql) == before
    assert by_day(sql) == told(sql, account_of(sql))
    list(copy(other, sql, clock))
    assert view(sql) == before


def test_charge_stands_on_the_day_its_call_left(sql: Movable) -> None:
    midnight = datetime(2026, 1, 10, tzinfo=UTC)
    cost = Charge("exact", Decimal("0.1"), Decimal("0.1")).to_json()
    lines = [
        started(),
        line(2, CallStarted("sow#1", "key", "m", "blob", worst="0.5"), at=midnight - timedelta(seconds=1)),
    ]
    write(sql, [*lines, line(3, CallEnded(2, None, cost), at=midnight + timedelta(seconds=1))])
    assert list(by_day(sql)) == list(told(sql, account_of(sql))) == ["2026-01-09"]


def test_sums_of_older_removals_count_in_costs_by_day(sql: Movable) -> None:
    sums = {"days": {"2026-01-02": {"usd": "1.5", "low": "0", "high": "0.5", "calls": 3}}, "usd": "1.5"}
    write(sql, calls())
    account_of(sql).keep("older", sums)
    account_of(sql).keep("oldest", {"usd": "2"})
    account_of(sql).keep("senseless", {"spend": [{"day": "2026-99-99", "calls": 1, "usd": "x"}]})
    now = view(sql)
    assert now["2026-01-02", ""] == (3, Decimal("1.5"), Decimal(2), 0, 0)
    assert now[None, ""] == (0, Decimal(2), Decimal(2), 0, 0)


def test_run_is_owned_in_the_view_while_its_owner_is_heard_of(sql: Movable) -> None:
    _, journal = sql.create(started(), [], at=AT)
    owned = "SELECT owned FROM runs"
    assert harm.rows(sql, owned) == [(1,)]
    harm.elsewhere(sql, 31)
    assert harm.rows(sql, owned) == [(0,)]
    journal.close()
    assert harm.rows(sql, owned) == [(0,)]


def test_run_is_shown_with_times_and_amounts_or_with_none(sql: Movable) -> None:
    run, journal = sql.create(started(), [], at=AT)
    found = "SELECT started_at, updated_at, total_cost_usd FROM runs"
    known = {"run_id": run, "seq": 1, "started_at": "2026-01-09T14:30:22.000Z", "total_cost_usd": 0.0}
    journal.write_head({**known, "updated_at": "2026-02-31T25:00:00.000Z"}, True)
    ((at, never, usd),) = harm.rows(sql, found)
    assert never is None
    assert (at if harm.is_file(sql) else at.astimezone(UTC)) == (known["started_at"] if harm.is_file(sql) else AT)
    assert str(usd) == "0.000000"
    journal.write_head({**known, "total_cost_usd": "much"}, True)
    journal.close()
    assert str(harm.rows(sql, found)[0][2]) in ("None", "0.000000")


def test_call_that_was_settled_keeps_what_was_settled(sql: Movable) -> None:
    tenth = Charge("exact", Decimal("0.1"), Decimal("0.1")).to_json()
    begun = [line(seq, CallStarted("sow#1", "key", "m", "blob", worst="0.5")) for seq in (2, 3)]
    late = [line(4, ChargeSettled(2, "0.3")), line(5, CallEnded(2, None, tenth))]
    twice = [line(6, CallEnded(3, None, tenth)), line(7, ChargeSettled(3, "0.4"))]
    run = write(sql, [started(), *begun, *late, *twice])
    assert by_day(sql) == told(sql, account_of(sql)) == {"2026-01-09": (2, Decimal("0.4"), Decimal("0.4"))}
    assert list(sql.flaws(run)) == []


def test_correction_of_what_was_settled_counts_the_last_one_of_several(sql: Movable) -> None:
    lines = [line(2, CallStarted("sow#1", "key", "m", "blob", worst="0.5")), line(3, ChargeSettled(2, "0.1"))]
    for seq, usd in enumerate(("0.3", "0.2"), 4):
        lines.append(line(seq, ChargeSettled(2, usd, corrects=True)))
    write(sql, [started(), *lines, line(6, ChargeSettled(2, "0.4"))])
    assert by_day(sql) == told(sql, account_of(sql)) == {"2026-01-09": (1, Decimal("0.2"), Decimal("0.2"))}
