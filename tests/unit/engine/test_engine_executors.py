"""Items of a map on an executor: recorded in parts, taken in once, never paid again, under one ceiling.

The workers are threads here, so that a test can see and stop them; other processes: tests/acceptance/test_executors.py.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline import Event, Message, Pipeline, Reply, Request, StepContext, TaskFailure, open_account, open_store, step
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.cost.prices import PriceBook
from pipeline.engine.daily import Daily
from pipeline.engine.remote.fleet import own_url, plain_url
from pipeline.engine.remote.notices import Notices
from pipeline.engine.remote.references import reference, resolve
from pipeline.engine.remote.worker import run_task
from pipeline.engine.result import RunResult
from pipeline.errors import (
    BudgetExceeded,
    ConfigError,
    ExecutorLost,
    ModelUnavailable,
    SpendLimit,
    StepFailed,
    TaskRejected,
)
from pipeline.llm.base import ModelInfo
from pipeline.records.kinds import CallStarted, TaskCompleted, TaskSubmitted
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.parts import part_records
from pipeline.store.reading import all_records, load, records

MODEL = "claude-sonnet-5-5"
PRICES = PriceBook()

#: What the model was asked, in order; what it does instead of answering; how many at once.
ASKED: list[str] = []
TROUBLE: dict[str, list[BaseException]] = {}
#: Called with the question before it is answered, and after.
BEFORE: list[Callable[[str], None]] = []
AFTER: list[Callable[[str], None]] = []


class Counting:
    """A model that knows what it was asked, whichever copy of it was."""

    def check(self) -> ModelInfo:
        return ModelInfo(MODEL, paid=True)

    def complete(self, request: Request) -> Reply:
        text = request.messages[-1].text
        ASKED.append(text)
        for look in BEFORE:
            look(text)
        if TROUBLE.get(text):
            raise TROUBLE[text].pop(0)
        for look in AFTER:
            look(text)
        return Reply(f"<{text}>", "end_turn", usage={"input_tokens": 10, "output_tokens": 100}, model=MODEL)

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def _forget() -> None:
    ASKED.clear()
    TROUBLE.clear()
    BEFORE.clear()
    AFTER.clear()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store", SystemClock())


@pytest.fixture(params=["files", "sqlite"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that the workers open for themselves."""
    where = f"files:{tmp_path / 'runs'}" if request.param == "files" else f"sqlite:{tmp_path / 'runs.db'}"
    return open_store(where)


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


class Losing(ThreadPoolExecutor):
    """Loses the answers to some of what it was given, after the work was done; or does not begin it."""

    def __init__(self, lost: Callable[[str], bool], *, begun: bool = True) -> None:
        super().__init__(1)
        self._lost = lost
        self._begun = begun

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        lost = self._lost(args[0]["task"])

        def work() -> Any:
            answer = fn(*args, **kwargs) if self._begun or not lost else None
            if lost:
                raise ConnectionResetError("the worker is gone")
            return answer

        return super().submit(work)


def ask(text: str, tokens: int = 100) -> Request:
    return Request(MODEL, [Message("user", text)], max_tokens=tokens)


def write(ctx: StepContext, item: int) -> dict[str, Any]:
    first = ctx.ask(ask(f"first {item} for {ctx.params['who']}")).text
    return {"first": first, "second": ctx.ask(ask(f"second {item}")).text, "attempt": ctx.attempt}


def write_for(whom: dict[str, str], ctx: StepContext, item: int) -> str:
    return ctx.ask(ask(f"{item} for {whom['name']}")).text


def write_long(ctx: StepContext, item: int) -> str:
    return ctx.ask(ask(f"long {item}")).text * 500


def write_three(ctx: StepContext, item: int) -> list[str]:
    return [*ctx.map("inner", range(3), ask_inner, key=str), ctx.task("last", ask_inner, 9)]


def ask_inner(ctx: StepContext, item: int) -> str:
    return ctx.ask(ask(f"inner {ctx.path} {item}")).text


def write_or_reject(ctx: StepContext, item: int) -> str:
    text = ctx.ask(ask(f"draft {item}")).text
    if item == 1:
        raise TaskRejected("not good enough")
    return text


def read_much(ctx: StepContext, item: int) -> list[Any]:
    return [ctx.outputs["plan"]["count"], ctx.load("notes"), ctx.pin("style"), ctx.context["mood"], ctx.node.id, item]


def use_service(ctx: StepContext, item: int) -> str:
    return str(ctx.services["lock"])


def course(body: Callable[..., Any] = write, count: int = 4, **more: Any) -> Pipeline:
    @step()
    def made(ctx: StepContext) -> dict[str, Any]:
        found = ctx.map("made", range(count), body, key=str, **more)
        return {"all": [row.error if isinstance(row, TaskFailure) else row for row in found]}

    return Pipeline("course", [made])


def run(
    pipeline: Pipeline, store: Store, executor: Executor | None, options: dict[str, Any] | None = None, **more: Any
) -> RunResult:
    return pipeline.run({"who": "us"}, store=store, model=Counting(), executor=executor, options=options, **more)


def resume(pipeline: Pipeline, store: Store, first: RunResult, executor: Executor | None, **more: Any) -> RunResult:
    return pipeline.resume(first.run_id, store=store, model=Counting(), executor=executor, **more)


def all_facts(store: Store, run_id: str, kind: type) -> list[Any]:
    return [record.fact for record in records(store, run_id) if isinstance(record.fact, kind)]


def worst(text: str) -> Decimal:
    request = ask(text)
    found = PRICES.worst(request.size(), request.max_tokens, model=MODEL, at=SystemClock().now())
    assert found is not None
    return found


# --- the same work --------------------------------------------------------------------------------


def test_executor_gives_what_threads_give(shared: Store, workers: Executor, tmp_path: Path) -> None:
    there = run(course(), shared, workers)
    here = run(course(), FileStore(tmp_path / "here", SystemClock()), None)
    assert there.status == COMPLETED
    assert there.outputs == here.outputs
    assert there.spent == here.spent
    assert len(ASKED) == 16


def test_executor_leaves_a_ledger_as_of_the_runs_own_calls(shared: Store, workers: Executor, tmp_path: Path) -> None:
    there = run(course(), shared, workers)
    here = run(course(), other := FileStore(tmp_path / "here", SystemClock()), None)
    mine, theirs = (
        sorted((row.place, row.n, row.k, row.state, row.low, row.outcome) for row in rows(records(where, one.run_id)))
        for where, one in ((shared, there), (other, here))
    )
    assert mine == theirs
    assert len(mine) == 8


def test_executor_copies_calls_with_the_time_they_were_made_at(store: FileStore, workers: Executor) -> None:
    done = run(course(count=1), store, workers)
    copied = [record for record in records(store, done.run_id) if isinstance(record.fact, CallStarted)]
    assert len(copied) == 2
    for record in copied:
        assert isinstance(record.fact, CallStarted)
        part, _, seq = record.fact.origin.partition(":")
        first = next(each for each in part_records(store, done.run_id, part) if each.seq == int(seq))
        assert first.at == record.at


def test_executor_gives_bodies_what_the_run_knows(store: FileStore, workers: Executor) -> None:
    @step()
    def plan(ctx: StepContext) -> Any:
        from pipeline import Outcome

        ctx.save("notes", ["a", "b"])
        return Outcome({"count": 2}, context={"mood": "calm"})

    @step()
    def made(ctx: StepContext) -> dict[str, Any]:
        return {"all": list(ctx.map("made", range(2), read_much, key=str))}

    done = Pipeline("reads", [plan, made]).run({}, store=store, pins={"style": "plain"}, executor=workers)
    assert done.outputs["made"]["all"] == [[2, ["a", "b"], "plain", "calm", "made", item] for item in range(2)]
    reads = all_facts(store, done.run_id, TaskCompleted)[0].reads
    assert set(reads) == {"outputs.plan.count", "artifact.notes", "pin.style", "context.mood"}


def test_executor_runs_what_a_task_maps_itself_in_its_part(store: FileStore, workers: Executor) -> None:
    done = run(course(write_three, 2), store, workers)
    assert (done.status, done.error) == (COMPLETED, None)
    assert len(done.outputs["made"]["all"][1]) == 4
    names = {fact.task for fact in all_facts(store, done.run_id, TaskCompleted)}
    assert {"made/0/inner/2", "made/1/last", "made/0", "made/1"} <= names


def test_executor_hands_back_long_values(shared: Store, workers: Executor) -> None:
    done = run(course(write_long, 2), shared, workers)
    assert done.outputs["made"]["all"] == [f"<long {item}>" * 500 for item in range(2)]


def test_executor_tells_the_same_events(store: FileStore, workers: Executor) -> None:
    told: list[Event] = []
    done = run(course(count=3), store, workers, listener=told.append)
    kinds = [event.type for event in told]
    assert done.status == COMPLETED
    assert kinds.count("call_started") == kinds.count("call_ended") == 6
    assert sorted(event.data["key"] for event in told if event.type == "task_completed") == ["0", "1", "2"]
    assert {event.data["task"] for event in told if event.type == "call_ended"} == {"made/0", "made/1", "made/2"}


def test_executor_reports_what_failed_by_its_content(store: FileStore, workers: Executor) -> None:
    told: list[Event] = []
    done = run(course(write_or_reject, 3), store, workers, listener=told.append)
    assert isinstance(done.error, StepFailed)
    assert "not good enough" in done.error.message
    assert [event.data["key"] for event in told if event.type == "task_failed"] == ["1"]
    assert len(ASKED) == 3
    again = resume(course(write_or_reject, 3), store, done, workers)
    # Its attempt is closed: only it is asked anew.
    assert isinstance(again.error, StepFailed)
    assert sorted(ASKED) == ["draft 0", "draft 1", "draft 1", "draft 2"]


def test_executor_skips_what_failed(store: FileStore, workers: Executor) -> None:
    done = run(course(write_or_reject, 3, skip_failed=True), store, workers)
    assert done.status == COMPLETED
    assert done.outputs["made"]["all"][1]["message"] == "not good enough"


def test_executor_warms_with_one_task(store: FileStore, workers: Executor) -> None:
    first_answered = threading.Event()

    def look(text: str) -> None:
        if text == "second 0":
            first_answered.set()
        elif not text.startswith("first 0"):
            assert first_answered.is_set(), text

    BEFORE.append(look)
    assert run(course(count=4, warm=True), store, workers).status == COMPLETED


def test_executor_never_has_more_tasks_out_than_calls_may_be_in_flight(store: FileStore, workers: Executor) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    class Watching(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])

            def ended(_: Any) -> None:
                with lock:
                    now[0] -= 1

            future = super().submit(fn, *args, **kwargs)
            future.add_done_callback(ended)
            return future

    with Watching(8) as executor:
        assert run(course(count=7), store, executor, {"concurrency": 2}).status == COMPLETED
    assert most[0] <= 2


# --- accidents ------------------------------------------------------------------------------------


def test_executor_that_loses_an_answer_stops_the_run_and_a_resume_pays_nothing_again(shared: Store) -> None:
    with Losing(lambda task: task == "made/2") as executor:
        first = run(course(), shared, executor, {"concurrency": 1})
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "interrupted", 9)
    assert isinstance(first.error, ExecutorLost)
    assert "made/2" in first.error.message
    paid = list(ASKED)
    assert "second 2" in paid
    with ThreadPoolExecutor(1) as executor:
        second = resume(course(), shared, first, executor)
    assert second.status == COMPLETED
    assert sorted(ASKED) == sorted(set(ASKED))
    assert second.spent.calls == 8


class Dead(BaseException):
    """The worker is no more."""


def dying(calls: int) -> Callable[[str], None]:
    """Dies over the call after so many."""

    def look(text: str) -> None:
        if len(ASKED) > calls:
            ASKED.pop()
            raise Dead

    return look


def cut_off(store: Store, *, calls: int) -> RunResult:
    """A run whose coordinator is gone after a worker has paid for so many calls of task 0, and has died too."""

    BEFORE.append(dying(calls))
    with Losing(lambda task: True) as executor:
        first = run(course(count=2), store, executor, {"concurrency": 1})
    BEFORE.clear()
    assert first.detail == "interrupted"
    return first


@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_executor_resume_goes_on_where_a_worker_died(shared: Store, calls: int, elsewhere: bool) -> None:
    first = cut_off(shared, calls=calls)
    assert len(ASKED) == calls
    with ThreadPoolExecutor(2) as executor:
        second = resume(course(count=2), shared, first, executor if elsewhere else None)
    assert second.status == COMPLETED
    assert len(set(ASKED)) == len(ASKED) == 4
    # The call that was in flight is in the ledger, beside the four.
    assert second.spent.calls == (4 if calls == 2 else 5)


def before_taken_in(store: FileStore, run_id: str) -> None:
    """Make the journal as it was before anything of a part was copied."""
    path = store.root / run_id / "journal.jsonl"
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        if b'"task_submitted"' in line:
            break
    path.write_bytes(b"".join(kept))
    (store.root / run_id / "checkpoint.json").unlink()


def test_parts_are_read_with_the_run_while_they_are_not_taken_in(store: FileStore, workers: Executor) -> None:
    done = run(course(count=1), store, workers)
    before_taken_in(store, done.run_id)
    assert not list(rows(records(store, done.run_id)))
    state = load(store, done.run_id)
    assert state.total.usd == done.spent.usd
    assert state.tasks["made#1"]["made/0"].status == COMPLETED
    assert len(rows(all_records(store, done.run_id))) == 2
    head = next(iter(store.heads()))
    assert head.document["tasks_out"] == 1
    # Nobody says how much at most, so nobody knows.
    assert head.document["unbounded_calls"] == 1


def test_parts_are_taken_in_before_anything_is_done(store: FileStore, workers: Executor) -> None:
    done = run(course(count=1), store, workers)
    before_taken_in(store, done.run_id)
    ASKED.clear()
    again = resume(course(count=1), store, done, workers)
    assert (again.status, ASKED) == (COMPLETED, [])
    assert again.outputs == done.outputs
    assert again.spent == done.spent


@pytest.mark.parametrize("kept", [2, 3, 4, 5, 6])
def test_parts_taken_in_halfway_count_once(store: FileStore, workers: Executor, kept: int) -> None:
    done = run(course(count=1), store, workers)
    path = store.root / done.run_id / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    begin = next(index for index, line in enumerate(lines) if b'"task_submitted"' in line)
    path.write_bytes(b"".join(lines[: begin + kept - 1]))
    (store.root / done.run_id / "checkpoint.json").unlink()
    ASKED.clear()
    assert load(store, done.run_id).total.usd == done.spent.usd
    again = resume(course(count=1), store, done, None)
    assert (again.status, ASKED) == (COMPLETED, [])
    assert again.spent == done.spent
    assert len(rows(records(store, done.run_id))) == 2


class Watch(ThreadPoolExecutor):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(2)
        self.specs: list[dict[str, Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.specs.append(args[0])
        return super().submit(fn, *args, **kwargs)


def test_worker_that_comes_late_finds_the_end(shared: Store) -> None:
    with Watch() as executor:
        run(course(count=1), shared, executor)
    ASKED.clear()
    assert run_task(executor.specs[0]) == {"how": "ended"}
    assert ASKED == []


def test_worker_waits_for_another_on_the_same_task(shared: Store) -> None:
    let_go, both = threading.Event(), threading.Event()
    answers: list[Any] = []
    with Watch() as executor:

        def look(text: str) -> None:
            if text.startswith("first") and not both.is_set():
                both.set()
                late = threading.Thread(target=lambda: answers.append(run_task(executor.specs[0])))
                late.start()
                threads.append(late)
                assert not let_go.wait(0.2)

        threads: list[threading.Thread] = []
        BEFORE.append(look)
        done = run(course(count=1), shared, executor)
        for thread in threads:
            thread.join(10)
    assert answers == [{"how": "ended"}]
    assert done.status == COMPLETED
    assert len(ASKED) == 2


def test_worker_begins_nothing_in_a_part_that_was_taken_over(store: FileStore) -> None:
    with Watch() as executor, Losing(lambda task: True, begun=False) as losing:
        first = run(course(count=1), store, losing)
        submitted = all_facts(store, first.run_id, TaskSubmitted)[0]
        assert submitted.part == ""
        second = resume(course(count=1), store, first, None)
        assert second.status == COMPLETED
        run(course(count=1), store, executor)
        stale = {
            **executor.specs[0],
            "run": first.run_id,
            "part": f"task-{seq_of(store, first.run_id)}",
            "base": 2,
            "owner": 99,
        }
    ASKED.clear()
    assert run_task(stale) == {"how": "closed"}
    assert ASKED == []


def seq_of(store: Store, run_id: str) -> int:
    return next(record.seq for record in records(store, run_id) if isinstance(record.fact, TaskSubmitted))


def test_executor_hands_a_task_whose_part_was_closed_out_anew(store: FileStore) -> None:
    with Losing(lambda task: task == "made/1", begun=False) as losing:
        first = run(course(count=3), store, losing, {"concurrency": 1})
    TROUBLE.update({f"first {item} for us": [SpendLimit("no money")] for item in range(3)})
    second = resume(course(count=3), store, first, None)
    assert second.detail == "paused_spend_limit"
    BEFORE.clear()
    TROUBLE.clear()
    with ThreadPoolExecutor(2) as executor:
        third = resume(course(count=3), store, second, executor)
    assert third.status == COMPLETED
    assert [row["attempt"] for row in third.outputs["made"]["all"]] == [1, 1, 1]


def test_executor_pauses_the_run_where_a_worker_pauses(store: FileStore, workers: Executor) -> None:
    TROUBLE["second 1"] = [SpendLimit("no money")]
    first = run(course(), store, workers)
    assert (first.status, first.detail) == ("in_progress", "paused_spend_limit")
    assert isinstance(first.error, SpendLimit)
    second = resume(course(), store, first, workers)
    assert second.status == COMPLETED
    assert sorted(ASKED) == sorted([*set(ASKED), "second 1"])


# --- limits ---------------------------------------------------------------------------------------


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


# --- refusals -------------------------------------------------------------------------------------


def test_memory_store_is_refused(workers: Executor) -> None:
    with pytest.raises(ConfigError, match="memory: store"):
        run(course(), MemoryStore(SystemClock()), workers)


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
    assert "its items are done here" in notes[0]
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
