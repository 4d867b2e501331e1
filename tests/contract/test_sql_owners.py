"""Who may write to a run in a database: leases, takeover, what a fenced-out owner had paid for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import RunExists, RunLocked, RunNotFound, WriteFailed
from pipeline.records.charge import Charge
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallEnded, CallStarted, StepStarted, TaskCompleted
from pipeline.store.backend import Fenced
from pipeline.store.base import Journal
from pipeline.store.runs import RunStore
from tests.contract import harm
from tests.journals import AT, CLAIM, StillClock, line, small_run, started

CALL = line(2, CallStarted("sow#1", "key", "a model", "blob", worst="2"))
PAID = line(3, CallEnded(2, b'{"text": "paid"}', Charge("exact", Decimal("1.25"), Decimal("1.25")).to_json()))


def zombie(store: RunStore) -> tuple[str, Journal]:
    """A run whose owner has begun a call and is not heard of any more."""
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [CALL])
    harm.elsewhere(store, 31)
    return run, journal


def test_owner_elsewhere_is_believed_for_two_beats_by_the_databases_clock(sql: RunStore, clock: StillClock) -> None:
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


def test_owner_elsewhere_last_heard_of_in_the_future_is_none(sql: RunStore) -> None:
    run, _journal = sql.create(started(), [], at=AT)
    # The database's clock was a day ahead, and is right now.
    harm.elsewhere(sql, -86_400)
    assert not next(sql.heads()).owned
    sql.open(run).close()


def test_owner_that_wakes_after_a_takeover_writes_nothing(sql: RunStore) -> None:
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


def test_reply_of_a_fenced_out_owner_is_taken_in_by_the_next_and_charged_once(sql: RunStore) -> None:
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


def test_reply_of_a_fenced_out_owner_that_the_run_has_already_is_charged_once(sql: RunStore) -> None:
    run, journal = sql.create(started(), [], at=AT)
    journal.append(2, [CALL, PAID])
    journal.close()
    sql.backend.put_if(f"runs/{run}/late/000000001-000001", PAID, "")
    sql.open(run).close()
    assert len(list(sql.read(run))) == 3
    assert harm.left(sql, run) == 0


@pytest.mark.parametrize("noticed", ["by an append", "at a tick", "at the end"])
def test_finished_task_that_waited_for_a_sync_is_kept_where_the_lease_is_lost(sql: RunStore, noticed: str) -> None:
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


def test_heartbeat_keeps_a_lease_and_tells_who_lost_it(sql: RunStore) -> None:
    run, old = zombie(sql)
    assert harm.beat(old)
    with pytest.raises(RunLocked):
        sql.open(run)
    harm.elsewhere(sql, 31)
    sql.open(run)
    assert not harm.beat(old)


def test_of_two_who_open_at_once_one_owns(sql: RunStore) -> None:
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
    sql: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm.quick(monkeypatch)
    run, journal = sql.create(started(), [], at=AT)
    with harm.away(monkeypatch):
        journal.close()
    for _ in range(3000):
        if harm.holder(sql, run) == "":
            return
        SystemClock().wait(threading.Event(), 0.02)
    raise AssertionError(f"{run} is still owned")


@pytest.mark.parametrize("verb", ["append", "append unsynced", "head", "rewrite", "renew"])
def test_whatever_a_replaced_owner_writes_changes_nothing(sql: RunStore, verb: str) -> None:
    run, journal = sql.create(started(), [], at=AT)
    journal.write_head({"run_id": run, "status": "in_progress", "seq": 1}, True)
    journal.close()
    old = sql.backend.own(run, AT)
    assert old is not None
    harm.elsewhere(sql, 31)
    new = sql.backend.own(run, AT)
    assert new is not None
    assert new.epoch == old.epoch + 1
    before = [harm.rows(sql, f"SELECT * FROM {table}") for table in ("journals", "records", "objects")]
    late = line(2, StepStarted("seed#1"))
    acts: dict[str, Callable[[], None]] = {
        "append": lambda: old.append(2, [late], True),
        "append unsynced": lambda: old.append(2, [late, late], False),
        "head": lambda: old.head(b"completed", True),
        "rewrite": lambda: old.rewrite([late]),
        "renew": old.renew,
    }
    with pytest.raises(Fenced):
        acts[verb]()
    old.release()
    assert [harm.rows(sql, f"SELECT * FROM {table}") for table in ("journals", "records", "objects")] == before
    new.append(2, [line(2, StepStarted("sow#1"))], True)
    new.release()
    assert len(list(sql.read(run))) == 2


def test_maker_whose_claim_was_taken_over_takes_its_run_back(sql: RunStore) -> None:
    class Slow(list[bytes]):
        """Values that are stored only after another process has had the claim."""

        def __iter__(self) -> Iterator[bytes]:
            if not begun:
                begun.append(True)
                harm.elsewhere(sql, 31)
                with harm.another(sql, StillClock()) as other:
                    other.create(started(CLAIM), [], at=AT, claim=CLAIM)[1].close()
            return super().__iter__()

    begun: list[bool] = []
    with pytest.raises(RunExists):
        sql.create(started(CLAIM), Slow([b"value"]), at=AT, claim=CLAIM)
    assert begun
    assert [head.run_id for head in sql.heads()] == ["20260109_143022_02"]


def test_run_removed_while_it_is_opened_is_not_found(sql: RunStore) -> None:
    store = sql

    def open_it(run: str) -> str:
        try:
            store.open(run).close()
        except RunNotFound:
            return "not found"
        except RunLocked:
            # Whoever removes it owns it for that.
            return "locked"
        return "opened"

    def delete_it(run: str) -> str:
        try:
            store.delete(run)
        except RunLocked:
            return "locked"
        return "deleted"

    seen = set()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(40):
            run, journal = store.create(started(), [], at=AT)
            journal.close()
            opened, deleted = pool.submit(open_it, run), pool.submit(delete_it, run)
            seen.add((opened.result(), deleted.result()))
    assert seen <= {("not found", "deleted"), ("opened", "locked"), ("opened", "deleted"), ("locked", "deleted")}


def test_run_that_is_removed_under_its_owner_takes_nothing_more(sql: RunStore) -> None:
    store = sql
    run, journal = store.create(started(), [], at=AT)
    harm.remove(store, run)
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, small_run()[1:2])
    assert caught.value.data["gone"]
    assert run in Path(caught.value.data["emergency"]).read_text()
    journal.write_head({"status": "failed"}, durable=True)
    journal.close()
    assert not list(store.heads())
    assert not harm.rows(store, "SELECT journal FROM records")
