"""Items of a map on an executor: what they give, tell and record is what threads of this process would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline import Event, Pipeline, StepContext, step
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.errors import (
    StepFailed,
)
from pipeline.records.kinds import CallStarted, TaskCompleted
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.parts import part_records
from pipeline.store.reader import records
from tests.unit.engine.executing import (
    ASKED,
    BEFORE,
    all_facts,
    course,
    read_much,
    resume,
    run,
    write_long,
    write_or_reject,
    write_three,
)
from tests.unit.engine.executing import _forget as _forget
from tests.unit.engine.executing import shared as shared
from tests.unit.engine.executing import store as store
from tests.unit.engine.executing import workers as workers


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
