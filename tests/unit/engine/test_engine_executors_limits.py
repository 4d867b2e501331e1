"""Ceiling, day and cool-downs hold over all workers; what cannot be done elsewhere is refused, or done here."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline import Event, StepContext, open_account, open_store
from pipeline.clock import SystemClock
from pipeline.engine.daily import Daily
from pipeline.engine.remote import worker
from pipeline.engine.remote.messages import Notices
from pipeline.engine.remote.parcels import own_url, plain_url, reference, resolve
from pipeline.errors import (
    BudgetExceeded,
    ConfigError,
    ModelUnavailable,
    StepFailed,
)
from pipeline.records.kinds import TaskSubmitted
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.parts import part_records
from pipeline.testing import FakeClock
from tests.unit.engine.executing import (
    AFTER,
    ASKED,
    BEFORE,
    LIMITS,
    MODEL,
    TROUBLE,
    Counting,
    Dead,
    Losing,
    Reviving,
    all_facts,
    course,
    dying,
    resume,
    run,
    use_service,
    worst,
    write,
    write_for,
    write_less,
    write_long,
)
from tests.unit.engine.executing import _forget as _forget
from tests.unit.engine.executing import shared as shared
from tests.unit.engine.executing import store as store
from tests.unit.engine.executing import workers as workers


def test_ceiling_holds_over_all_workers(shared: Store, workers: Executor) -> None:
    limit = worst("second 0") * 3
    done = run(course(count=30), shared, workers, {"max_cost_usd": str(limit)})
    assert done.detail == "paused_budget"
    assert isinstance(done.error, BudgetExceeded)
    assert done.error.data["limit"] == str(limit)
    assert 0 < done.spent.usd + done.spent.high <= limit
    # Nothing in flight stood in the way of the last call: it would not have fitted alone.
    assert done.spent.usd + worst("second 0") > limit
    assert len(set(ASKED)) == len(ASKED) == done.spent.calls


def test_ceiling_is_kept_at_worst_case_at_every_moment(store: FileStore, workers: Executor) -> None:
    limit, lock, both = worst("second 0") * 3, threading.Lock(), threading.Barrier(2)
    out, ended, peaks = [0], [0], []

    def begin(text: str) -> None:
        with lock:
            out[0] += 1
            peaks.append((out[0], out[0] * worst("second 0") + ended[0] * Decimal("0.00102")))
            number = len(peaks)
        if number <= 2:
            both.wait(20)

    def end(text: str) -> None:
        with lock:
            out[0] -= 1
            ended[0] += 1

    BEFORE.append(begin)
    AFTER.append(end)
    done = run(course(count=20), store, workers, {"max_cost_usd": str(limit)})
    assert done.detail == "paused_budget"
    # The questions are of about one length, so their worst cases are, to a token or ten.
    assert max(usd for _, usd in peaks) <= limit + Decimal("0.0001")
    assert max(calls for calls, _ in peaks) >= 2


def test_ceiling_raised_lets_the_run_go_on_without_paying_again(shared: Store, workers: Executor) -> None:
    first = run(course(count=6), shared, workers, {"max_cost_usd": str(worst("second 0") * Decimal("1.5"))})
    assert first.detail == "paused_budget"
    second = resume(course(count=6), shared, first, workers, options={"max_cost_usd": "1"})
    assert second.status == COMPLETED
    assert len(set(ASKED)) == len(ASKED) == 12


def test_ceiling_counts_what_workers_had_in_flight_when_they_died(shared: Store) -> None:
    limit = worst("second 0") * 12
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
    billed = len(set(ASKED)) * worst("second 0") + answered * Decimal("0.00102")
    assert billed <= done.spent.usd + done.spent.high + Decimal("0.001") <= limit + Decimal("0.001")


@pytest.mark.parametrize("before", [None, "5"])
def test_ceiling_that_is_lowered_holds_for_what_an_earlier_owner_granted(shared: Store, before: str | None) -> None:
    BEFORE.append(dying(2))
    with Losing(lambda task: task == "made/1") as executor:
        first = run(course(write_less, 2), shared, executor, {"max_cost_usd": before, "concurrency": 1})
    BEFORE.clear()
    # One task was granted what another needed, and its worker died over its first call: no room for a second.
    limit = first.spent.usd + first.spent.high + worst("second 0") * Decimal("0.9")
    with ThreadPoolExecutor(2) as executor:
        second = resume(course(write_less, 2), shared, first, executor, options={"max_cost_usd": str(limit)})
    assert (second.detail, ASKED) == ("paused_budget", ["first 0", "second 0"])
    assert second.spent.usd + second.spent.high <= limit


def test_day_is_one_for_all_workers(shared: Store, workers: Executor) -> None:
    account = open_account(shared.url)
    limit = worst("second 0") * 3
    done = run(course(count=30), shared, workers, {"daily_budget_usd": str(limit)}, account=account)
    assert done.detail == "paused_budget"
    assert isinstance(done.error, BudgetExceeded)
    assert "day" in done.error.message
    assert done.spent.usd + done.spent.high <= limit
    assert account.total(SystemClock().now().date()) <= limit


def test_day_gets_back_what_a_worker_that_died_had_reserved(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    account, options = open_account(store.url), {"daily_budget_usd": "5", "concurrency": 1}
    today = SystemClock().now().date()
    with monkeypatch.context() as death, Losing(lambda task: True) as executor:
        death.setattr(Daily, "leave", lambda self: None)
        BEFORE.append(dying(1))
        first = run(course(count=1), store, executor, options, account=account)
    BEFORE.clear()
    assert account.total(today) > first.spent.high
    with ThreadPoolExecutor(1) as executor:
        second = resume(course(count=1), store, first, executor, options=options, account=account)
    assert second.status == COMPLETED
    assert account.total(today) == second.spent.usd + second.spent.high


def test_cool_down_is_told_to_all(shared: Store, workers: Executor) -> None:
    told: list[Event] = []
    TROUBLE["first 0 for us"] = [ModelUnavailable("busy", status=429, retry_after=0.3)]
    done = run(course(count=2), shared, workers, listener=told.append)
    assert done.status == COMPLETED
    news = [record.fact for record in part_records(shared, done.run_id, "notices")]
    assert [fact.reason for fact in news if hasattr(fact, "reason")] == ["429"]
    assert len(ASKED) == 5


def test_limits_that_one_task_was_told_hold_for_the_next(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(worker, "_CLOCK", clock)
    LIMITS.update({"requests": 1, "requests_left": 0})
    left: list[float] = []
    BEFORE.append(lambda text: left.append(clock.monotonic()))
    with ThreadPoolExecutor(1) as executor:
        done = run(course(count=2), store, executor, {"concurrency": 1})
    assert done.status == COMPLETED
    # One call a minute, also the first of the second task.
    assert all(after - before >= 60 for before, after in pairwise(left[-4:]))


def test_limits_of_one_run_do_not_hold_for_one_of_the_same_name_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr(worker, "_CLOCK", clock)
    LIMITS.update({"requests": 1, "requests_left": 0})
    begun: list[float] = []
    BEFORE.append(lambda text: begun.append(clock.monotonic()))
    at = FakeClock()
    with ThreadPoolExecutor(1) as executor:
        stores = [FileStore(tmp_path / name, at) for name in ("a", "b")]
        one, other = (run(course(count=1), store, executor, {"concurrency": 1}, clock=at) for store in stores)
    assert one.run_id == other.run_id
    # One call a minute within each, and no wait between the two.
    assert len(begun) == 4
    assert begun[2] - begun[1] < 60


def test_notices_say_how_long_to_wait_and_whose_workers_stop(store: FileStore, workers: Executor) -> None:
    done = run(course(count=1), store, workers)
    clock = SystemClock()
    teller, hearer, other = (Notices(store, done.run_id, owner, clock) for owner in (1, 1, 7))
    teller.tell(seconds=60.0, reason="529")
    teller.tell(stop=True)
    seconds, reason, stop = hearer.news()
    assert 50 < seconds <= 60
    assert (reason, stop) == ("529", True)
    assert other.news()[2] is False


# Refusals


def test_memory_store_is_refused(workers: Executor) -> None:
    with pytest.raises(ConfigError, match="memory: store"):
        run(course(), MemoryStore(SystemClock()), workers)


def test_store_that_serves_one_process_is_refused(workers: Executor) -> None:
    store = open_store("postgresql://postgres@127.0.0.1:1/postgres?single=1")
    with pytest.raises(ConfigError, match="single=1"):
        run(course(), store, workers)


class Elsewhere(Executor):
    """Nobody knows where its workers are."""


def test_file_store_with_workers_elsewhere_is_refused_with_the_reason(store: FileStore) -> None:
    with pytest.raises(ConfigError, match="locks are the kernel's") as caught:
        run(course(), store, Elsewhere())
    assert "postgresql" in caught.value.hint
    assert not list(store.heads())


def test_batches_with_an_executor_are_refused(store: FileStore, workers: Executor) -> None:
    class Batching(Counting):
        batches = object()

    with pytest.raises(ConfigError, match="--batch"):
        course().run({"who": "us"}, store=store, model=Batching(), executor=workers, options={"batch": True})


def test_function_without_a_name_is_run_here_and_that_is_said(store: FileStore, workers: Executor) -> None:
    def inner(ctx: StepContext, item: int) -> str:
        return write_long(ctx, item)[:8]

    told: list[Event] = []
    done = run(course(inner, 2), store, workers, listener=told.append)
    assert done.outputs["made"]["all"] == ["<long 0>", "<long 1>"]
    notes = [event.data["text"] for event in told if event.type == "note"]
    assert len(notes) == 1
    assert "its items run in this process" in notes[0]
    assert not all_facts(store, done.run_id, TaskSubmitted)


def test_function_may_be_given_values_before_the_rest(store: FileStore, workers: Executor) -> None:
    done = run(course(partial(write_for, {"name": "them"}), 2), store, workers)
    assert done.outputs["made"]["all"] == ["<0 for them>", "<1 for them>"]
    assert len(all_facts(store, done.run_id, TaskSubmitted)) == 2


def test_password_of_a_store_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "postgresql://me:secret@db:5432/runs?sslmode=require"
    sent = plain_url(given)
    assert sent == "postgresql://me@db:5432/runs?sslmode=require"
    assert own_url(sent) == sent
    monkeypatch.setenv("PIPELINE_STORE", given)
    assert own_url(sent) == given
    monkeypatch.setenv("PIPELINE_STORE", "postgresql://me:secret@other/runs")
    assert own_url(sent) == sent


def test_service_that_cannot_be_sent_says_so_where_it_is_used(store: FileStore, workers: Executor) -> None:
    done = run(course(use_service, 1), store, workers, services={"lock": threading.Lock()})
    assert isinstance(done.error, StepFailed)
    assert "'lock' cannot be sent to a worker" in done.error.message


def test_model_that_cannot_be_sent_is_refused(store: FileStore) -> None:
    class Local(Counting):
        pass

    with ProcessPoolExecutor(1) as executor, pytest.raises(ConfigError, match="cannot be sent"):
        course().run({"who": "us"}, store=store, model=Local(), executor=executor)


def test_model_is_sent_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline import AnthropicModel

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    parcel = pickle.dumps(AnthropicModel(MODEL, base_url="http://127.0.0.1:1"))
    assert b"sk-ant" not in parcel
    assert pickle.loads(parcel).model_id == MODEL
    with pytest.raises(ConfigError, match="key of its own"):
        pickle.dumps(AnthropicModel(MODEL, api_key="sk-ant-secret"))


def test_references_name_functions_of_modules_and_of_files(tmp_path: Path) -> None:
    assert resolve(reference(open_store, "map")) is open_store
    assert resolve(reference(write, "map")) is write
    file = tmp_path / "own_steps.py"
    file.write_text("def twice(x):\n    return 2 * x\n")
    assert resolve({"module": "__main__", "name": "twice", "file": str(file)})(4) == 8
    with pytest.raises(ConfigError, match="cannot import"):
        resolve({"module": "no_such_module_anywhere", "name": "x", "file": ""})
