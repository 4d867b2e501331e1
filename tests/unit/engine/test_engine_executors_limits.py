"""Ceiling, day and cool-downs hold over all workers of an executor."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline import open_account
from pipeline.clock import SystemClock
from pipeline.engine.remote import worker
from pipeline.engine.remote.messages import Notices
from pipeline.engine.store_limits import StoreLimits
from pipeline.errors import BudgetExceeded, ModelUnavailable
from pipeline.records.budgets import Limit
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.parts import part_records
from pipeline.testing import FakeClock
from tests.unit.engine.executing import (
    AFTER,
    ASKED,
    BEFORE,
    LIMITS,
    TROUBLE,
    WORST,
    Dead,
    Losing,
    Reviving,
    course,
    dying,
    resume,
    run,
    write_less,
)
from tests.unit.engine.executing import _forget as _forget
from tests.unit.engine.executing import shared as shared
from tests.unit.engine.executing import store as store
from tests.unit.engine.executing import workers as workers

#: What an answer costs.
COST = Decimal("0.00102")


def test_ceiling_holds_over_all_workers_and_a_higher_one_goes_on_without_paying_again(
    shared: Store, workers: Executor
) -> None:
    limit = WORST * 3
    done = run(course(count=30), shared, workers, {"max_cost_usd": str(limit)})
    assert isinstance(done.error, BudgetExceeded)
    assert (done.detail, done.error.data["limit"]) == ("paused_budget", str(limit))
    assert 0 < done.spent.usd + done.spent.high <= limit
    # Nothing in flight stood in the way of the last call: it would not have fitted alone.
    assert done.spent.usd + WORST > limit
    assert len(ASKED) == done.spent.calls
    assert resume(course(count=30), shared, done, workers, options={"max_cost_usd": "1"}).status == "completed"
    assert len(set(ASKED)) == len(ASKED) == 60


def test_ceiling_is_kept_at_worst_case_at_every_moment(store: FileStore, workers: Executor) -> None:
    limit, lock, both = WORST * 3, threading.Lock(), threading.Barrier(2)
    out, ended, peaks = [0], [0], []

    def begin(text: str) -> None:
        with lock:
            out[0] += 1
            peaks.append((out[0], out[0] * WORST + ended[0] * COST))
            number = len(peaks)
        if number <= 2:
            both.wait(120)

    def end(text: str) -> None:
        with lock:
            out[0] -= 1
            ended[0] += 1

    BEFORE.append(begin)
    AFTER.append(end)
    assert run(course(count=20), store, workers, {"max_cost_usd": str(limit)}).detail == "paused_budget"
    # The questions are of about one length, so their worst cases are, to a token or ten.
    assert max(usd for _, usd in peaks) <= limit + Decimal("0.0001")
    assert max(calls for calls, _ in peaks) >= 2


def test_ceiling_counts_what_workers_had_in_flight_when_they_died(shared: Store) -> None:
    limit = WORST * 12
    options = {"max_cost_usd": str(limit), "concurrency": 2}

    def die_once(text: str) -> None:
        if ASKED.count(text) == 1:
            raise Dead

    BEFORE.append(die_once)
    with Reviving(2) as executor:
        done = run(course(count=30), shared, executor, options)
        done = resume(course(count=30), shared, done, executor, options=options)
    assert done.detail == "paused_budget"
    # Whoever died over a call may have been billed its worst case; the others cost what they did.
    answered = len(ASKED) - len(set(ASKED))
    assert answered
    billed = len(set(ASKED)) * WORST + answered * COST
    assert billed <= done.spent.usd + done.spent.high + Decimal("0.001") <= limit + Decimal("0.001")


@pytest.mark.parametrize("before", [None, "5"])
def test_ceiling_that_is_lowered_holds_for_what_an_earlier_owner_granted(shared: Store, before: str | None) -> None:
    BEFORE.append(dying(2))
    with Losing(lambda task: task == "made/1") as executor:
        first = run(course(write_less, 2), shared, executor, {"max_cost_usd": before, "concurrency": 1})
    BEFORE.clear()
    # One task was granted what another needed, and its worker died over its first call: no room for a second.
    limit = first.spent.usd + first.spent.high + WORST * Decimal("0.9")
    with ThreadPoolExecutor(2) as two:
        second = resume(course(write_less, 2), shared, first, two, options={"max_cost_usd": str(limit)})
    assert (second.detail, ASKED) == ("paused_budget", ["first 0", "second 0"])
    assert second.spent.usd + second.spent.high <= limit


def test_day_is_one_for_all_workers(shared: Store, workers: Executor) -> None:
    account, limit = open_account(shared.url), WORST * 3
    done = run(course(count=30), shared, workers, {"daily_budget_usd": str(limit)}, account=account)
    assert done.error is not None
    assert (done.detail, done.error.code) == ("paused_budget", "day_limit_reached")
    assert done.spent.usd + done.spent.high <= limit
    assert account.total(SystemClock().now().date()) <= limit


def test_limit_of_a_label_is_one_for_all_workers(shared: Store, workers: Executor) -> None:
    account, limit = open_account(shared.url), WORST * 3
    account.set_limit(Limit("team=maths", "month", limit))
    done = run(course(count=30), shared, workers, {"labels": "team=maths"})
    assert done.error is not None
    assert (done.detail, done.error.code) == ("paused_budget", "limit_reached")
    (one,) = account.standings(SystemClock().now())
    assert done.spent.usd + done.spent.high <= one.tally.total <= limit


def test_day_gets_back_what_a_worker_that_died_had_reserved(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    account, options = open_account(store.url), {"daily_budget_usd": "5", "concurrency": 1}
    today = SystemClock().now().date()
    with monkeypatch.context() as death, Losing() as executor:
        death.setattr(StoreLimits, "leave", lambda self: None)
        BEFORE.append(dying(1))
        first = run(course(count=1), store, executor, options, account=account)
    BEFORE.clear()
    assert account.total(today) > first.spent.high
    with ThreadPoolExecutor(1) as one:
        second = resume(course(count=1), store, first, one, options=options, account=account)
    assert second.status == "completed"
    assert account.total(today) == second.spent.usd + second.spent.high


def test_cool_down_is_told_to_all(shared: Store, workers: Executor) -> None:
    TROUBLE["first 0 for us"] = [ModelUnavailable("busy", status=429, retry_after=0.3)]
    done = run(course(count=2), shared, workers)
    assert (done.status, len(ASKED)) == ("completed", 5)
    news = [record.fact for record in part_records(shared, done.run_id, "notices")]
    assert [fact.reason for fact in news if hasattr(fact, "reason")] == ["429"]


def test_limits_that_one_task_was_told_hold_for_the_next_but_not_in_a_run_of_the_same_name_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, at, begun = FakeClock(), FakeClock(), list[float]()
    monkeypatch.setattr(worker, "_CLOCK", clock)
    LIMITS.update({"requests": 1, "requests_left": 0})
    BEFORE.append(lambda text: begun.append(clock.monotonic()))
    with ThreadPoolExecutor(1) as executor:
        stores = [FileStore(tmp_path / name, at) for name in ("a", "b")]
        one, other = (run(course(count=2), store, executor, {"concurrency": 1}, clock=at) for store in stores)
    assert one.run_id == other.run_id
    # One call a minute, also the first of the second task; and no wait between the two runs.
    assert [after - before >= 60 for before, after in pairwise(begun)] == [True] * 3 + [False] + [True] * 3


def test_notices_say_how_long_to_wait_and_whose_workers_stop(store: FileStore, workers: Executor) -> None:
    done, clock = run(course(count=1), store, workers), SystemClock()
    teller, hearer, other = (Notices(store, done.run_id, owner, clock) for owner in (1, 1, 7))
    teller.tell(seconds=600.0, reason="529")
    teller.tell(stop=True)
    seconds, reason, stop = hearer.news()
    assert 0 < seconds <= 600
    assert (reason, stop) == ("529", True)
    assert other.news()[2] is False
