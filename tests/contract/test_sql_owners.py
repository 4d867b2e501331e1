"""Who may write to a run in a database: leases, takeover, what a fenced-out owner had paid for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import RunLocked, WriteFailed
from pipeline.records.charge import Charge
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallEnded, CallStarted, StepStarted, TaskCompleted
from pipeline.store.base import Journal, Movable
from tests.contract import harm
from tests.journals import AT, StillClock, line, started

CALL = line(2, CallStarted("sow#1", "key", "a model", "blob", worst="2"))
PAID = line(3, CallEnded(2, b'{"text": "paid"}', Charge("exact", Decimal("1.25"), Decimal("1.25")).to_json()))


@pytest.fixture(params=["sqlite", "postgresql"])
def sql(request: pytest.FixtureRequest, make_store: Callable[[str], Movable]) -> Movable:
    return make_store(request.param)


def zombie(store: Movable) -> tuple[str, Journal]:
    """A run whose owner has begun a call and is not heard of any more."""
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [CALL])
    harm.elsewhere(store, 31)
    return run, journal


def test_owner_elsewhere_is_believed_for_two_beats_by_the_databases_clock(sql: Movable, clock: StillClock) -> None:
    run, _journal = sql.create(started(), [], at=AT)
    harm.elsewhere(sql, 29)
    clock.at += timedelta(days=300)
    with pytest.raises(RunLocked, match="process 7 on elsewhere since then"):
        sql.open(run)
    with pytest.raises(RunLocked):
        sql.delete(run)
    assert next(sql.heads()).owned
    harm.elsewhere(sql, 31)
    clock.at -= timedelta(days=900)
    assert not next(sql.heads()).owned
    sql.open(run).close()


def test_owner_elsewhere_last_heard_of_in_the_future_is_none(sql: Movable) -> None:
    run, _journal = sql.create(started(), [], at=AT)
    # The database's clock was a day ahead, and is right now.
    harm.elsewhere(sql, -86_400)
    assert not next(sql.heads()).owned
    sql.open(run).close()


def test_owner_that_wakes_after_a_takeover_writes_nothing(sql: Movable) -> None:
    run, old = zombie(sql)
    new = sql.open(run)
    with pytest.raises(WriteFailed, match="taken over") as caught:
        old.append(3, [line(3, StepStarted("seed#1"))])
    assert caught.value.data["fatal"]
    old.write_head({"status": "failed", "journal_bytes": new.size}, True)
    new.append(3, [line(3, StepStarted("sow#1"))])
    old.close()
    assert next(sql.heads()).owned
    assert [decode_line(one).fact for one in sql.read(run)][2] == StepStarted("sow#1")
    assert next(sql.heads()).document["status"] == "in_progress"


def test_reply_of_a_fenced_out_owner_is_taken_in_by_the_next_and_charged_once(sql: Movable) -> None:
    run, old = zombie(sql)
    new = sql.open(run)
    with pytest.raises(WriteFailed):
        old.append(3, [PAID])
    assert harm.left(sql, run) == 1
    new.append(3, [line(3, StepStarted("sow#1"), owner=3)])
    new.close()
    facts = [decode_line(one) for one in sql.read(run)]
    assert sum(isinstance(record.fact, CallEnded) for record in facts) == 1
    assert harm.left(sql, run) == 0
    rows = harm.rows(sql, "SELECT state, low, high FROM charges")
    assert [(state, Decimal(low), Decimal(high)) for state, low, high in rows] == [
        ("exact", Decimal("1.25"), Decimal("1.25"))
    ]


@pytest.mark.parametrize("noticed", ["by an append", "at a tick", "at the end"])
def test_finished_task_that_waited_for_a_sync_is_kept_where_the_lease_is_lost(sql: Movable, noticed: str) -> None:
    run, old = zombie(sql)
    # Nothing is written behind this test's back.
    harm.silence(old)
    done = TaskCompleted("sow#1", "lesson-1", b'"made"', item="x")
    old.append(3, [line(3, done)], sync=False)
    with harm.another(sql) as other:
        new = other.open(run)
        assert not harm.beat(old)
        if noticed == "by an append":
            with pytest.raises(WriteFailed, match="taken over"):
                old.append(4, [line(4, StepStarted("seed#1")), PAID])
        elif noticed == "at a tick":
            harm.tick(old)
        else:
            old.close()
        assert harm.left(other, run) == 1
        new.append(3, [line(3, StepStarted("sow#1"), owner=3)])
        new.close()
        facts = [decode_line(one).fact for one in other.read(run)]
        assert facts.count(done) == 1
        assert sum(isinstance(fact, CallEnded) for fact in facts) == (noticed == "by an append")
        old.close()
        assert harm.left(other, run) == 0


def test_heartbeat_keeps_a_lease_and_tells_who_lost_it(sql: Movable) -> None:
    run, old = zombie(sql)
    assert harm.beat(old)
    with pytest.raises(RunLocked):
        sql.open(run)
    harm.elsewhere(sql, 31)
    sql.open(run)
    assert not harm.beat(old)


def test_of_two_who_open_at_once_one_owns(sql: Movable) -> None:
    run, journal = sql.create(started(), [], at=AT)
    journal.close()

    def attempt(_: int) -> Journal | None:
        try:
            return sql.open(run)
        except RunLocked:
            return None

    with ThreadPoolExecutor(2) as pool:
        for _ in range(200):
            owners = [one for one in pool.map(attempt, range(2)) if one]
            # The second may have come after the first had its lease, never while.
            assert len(owners) == 1
            owners[0].close()


def test_owner_that_leaves_while_the_database_is_away_says_so_later(
    sql: Movable, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm.quick(monkeypatch)
    run, journal = sql.create(started(), [], at=AT)
    with harm.away(monkeypatch):
        journal.close()
    for _ in range(500):
        if harm.holder(sql, run) == "":
            return
        SystemClock().wait(threading.Event(), 0.02)
    raise AssertionError(f"{run} is still owned")
