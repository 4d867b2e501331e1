"""Items of a map on an executor that loses answers, whose workers die or come late: nothing is paid again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.cost.ledger import rows
from pipeline.engine.remote.messages import Notices
from pipeline.engine.remote.worker import run_task
from pipeline.engine.result import RunResult
from pipeline.errors import (
    ExecutorLost,
    SpendLimit,
    StoreError,
)
from pipeline.records.kinds import TaskSubmitted
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.reader import all_records, load, records
from tests.unit.engine.executing import (
    ASKED,
    BEFORE,
    TROUBLE,
    Counting,
    Idle,
    Losing,
    all_facts,
    course,
    dying,
    resume,
    run,
    write_then_look,
)
from tests.unit.engine.executing import _forget as _forget
from tests.unit.engine.executing import shared as shared
from tests.unit.engine.executing import store as store
from tests.unit.engine.executing import workers as workers


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


def test_run_that_stops_does_not_wait_for_tasks_that_no_worker_has_begun(shared: Store, workers: Executor) -> None:
    TROUBLE["second 0"] = [SpendLimit("no money")]
    with Idle(1) as executor:
        first = run(course(), shared, executor, {"concurrency": 3})
    assert (first.status, first.detail) == ("in_progress", "paused_spend_limit")
    second = resume(course(), shared, first, workers)
    assert second.status == COMPLETED
    assert sorted(ASKED) == sorted([*set(ASKED), "second 0"])


@pytest.mark.parametrize("elsewhere", [True, False])
def test_store_that_does_not_answer_in_a_task_pauses_the_run_and_nothing_is_paid_again(
    shared: Store, workers: Executor, elsewhere: bool
) -> None:
    TROUBLE["second 1"] = [StoreError("The server does not answer.")]
    executor = workers if elsewhere else None
    first = run(course(), shared, executor, {"concurrency": 1})
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "interrupted", 3)
    second = resume(course(), shared, first, executor)
    assert second.status == COMPLETED
    assert sorted(ASKED) == sorted([*set(ASKED), "second 1"])


def test_store_that_cannot_be_read_while_tasks_are_out_pauses_the_run(
    shared: Store, workers: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: Notices) -> tuple[float, str, bool]:
        raise StoreError("The server does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(Notices, "news", silent)
        first = run(course(), shared, workers)
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "interrupted", 3)
    second = resume(course(), shared, first, workers)
    assert second.status == COMPLETED
    assert sorted(ASKED) == sorted(set(ASKED))


@pytest.mark.parametrize("elsewhere", [True, False])
def test_error_of_the_users_code_in_a_task_leaves_its_replies_wherever_it_goes_on(
    shared: Store, workers: Executor, tmp_path: Path, elsewhere: bool
) -> None:
    pipeline, missing = course(write_then_look, 2), tmp_path / "missing"
    first = pipeline.run({"who": str(missing)}, store=shared, model=Counting(), executor=workers)
    assert first.status == "failed"
    again = resume(pipeline, shared, first, workers if elsewhere else None)
    assert (again.status, len(ASKED)) == ("failed", 4)
    missing.write_text("there")
    assert resume(pipeline, shared, again, None if elsewhere else workers).outputs == {"made": {"all": [7, 7]}}
    assert len(ASKED) == 4
