"""Items of a map on an executor: they give, tell and record what threads of this process would.

An executor may lose answers, its workers may die or come late: nothing is paid again. What cannot be done elsewhere is
refused, or done here.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel, Event, Outcome, Pipeline, RunResult, StepContext, open_store, step, typed
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.engine.remote.messages import Notices
from pipeline.engine.remote.parcels import own_url, plain_url, reference, resolve
from pipeline.engine.remote.worker import run_task
from pipeline.errors import ConfigError, SpendLimit, StepFailed, StoreError
from pipeline.records.budgets import Limit
from pipeline.records.kinds import CallStarted, TaskCompleted, TaskSubmitted
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.parts import part_records
from pipeline.store.reader import all_records, load, records
from tests.unit.engine.executing import (
    ASKED,
    BEFORE,
    TROUBLE,
    Counting,
    Idle,
    Losing,
    Town,
    Watching,
    course,
    dying,
    read_much,
    resume,
    run,
    use_service,
    write,
    write_for,
    write_of,
    write_or_reject,
    write_then_look,
    write_three,
)
from tests.unit.engine.executing import _forget as _forget
from tests.unit.engine.executing import shared as shared
from tests.unit.engine.executing import store as store
from tests.unit.engine.executing import workers as workers
from tests.unit.engine.saying import MODEL, facts, notes


def again(*more: str) -> list[str]:
    """What was asked, were each asked once, and these once more."""
    return sorted([*set(ASKED), *more])


def test_executor_gives_tells_and_records_what_threads_do(shared: Store, workers: Executor, tmp_path: Path) -> None:
    told: list[Event] = []
    there = run(course(), shared, workers, listener=told.append)
    here = run(course(), other := FileStore(tmp_path / "here", SystemClock()), None)
    assert there.status == "completed"
    assert (there.outputs, there.spent, len(ASKED)) == (here.outputs, here.spent, 16)
    mine, theirs = (
        sorted((row.place, row.n, row.k, row.state, row.low, row.outcome) for row in rows(records(where, one.run_id)))
        for where, one in ((shared, there), (other, here))
    )
    assert (mine, len(mine)) == (theirs, 8)
    kinds = [event.type for event in told]
    assert kinds.count("call_started") == kinds.count("call_ended") == 8
    assert sorted(event.data["key"] for event in told if event.type == "task_completed") == ["0", "1", "2", "3"]


def test_executor_hands_out_items_that_are_dataclasses_as_such(store: FileStore, workers: Executor) -> None:
    towns = [Town("Oban", [1]), Town("Nairn")]
    made = step("made")(lambda ctx: {"all": ctx.map("town", towns, write_of, key=lambda town: town.name)})
    done = Pipeline("towns", [made]).run(store=store, model=Counting(), executor=(watching := Watching()))
    assert done.error is None
    assert [typed(each, Town) for each in done.outputs["made"]["all"]] == [Town("Oban", [1, 6]), Town("Nairn", [7])]
    assert towns == [Town("Oban", [1]), Town("Nairn")]
    handed = len(watching.specs)

    class Here(Town):
        """A class that no worker can import."""

    told: list[Event] = []
    local = step("made")(lambda ctx: {"all": ctx.map("town", [Here("Ayr")], write_of, key=lambda town: town.name)})
    done = Pipeline("here", [local]).run(store=store, model=Counting(), executor=watching, listener=told.append)
    assert (done.error, len(watching.specs), len(notes(told))) == (None, handed, 1)


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
        ctx.save("notes", ["a", "b"])
        return Outcome({"count": 2}, context={"mood": "calm"})

    made = step("made")(lambda ctx: {"all": list(ctx.map("made", range(2), read_much, key=str))})
    done = Pipeline("reads", [plan, made]).run({}, store=store, pins={"style": "plain"}, executor=workers)
    assert done.outputs["made"]["all"] == [[2, ["a", "b"], "plain", "calm", "made", item] for item in range(2)]
    reads = facts(store, done.run_id, TaskCompleted)[0].reads
    assert set(reads) == {"outputs.plan.count", "artifact.notes", "pin.style", "context.mood"}


def test_executor_runs_what_a_task_maps_itself_in_its_part(store: FileStore, workers: Executor) -> None:
    done = run(course(write_three, 2), store, workers)
    assert len(done.outputs["made"]["all"][1]) == 4
    names = {fact.task for fact in facts(store, done.run_id, TaskCompleted)}
    assert {"made/0/inner/2", "made/1/last", "made/0", "made/1"} <= names


def test_executor_hands_back_long_values_of_functions_that_were_given_some_before(
    shared: Store, workers: Executor
) -> None:
    done = run(course(partial(write_for, {"name": "them"}), 2), shared, workers)
    assert done.outputs["made"]["all"] == [f"<{item} for them>" * 500 for item in range(2)]
    assert len(facts(shared, done.run_id, TaskSubmitted)) == 2


def test_executor_reports_or_skips_what_failed_by_its_content(store: FileStore, workers: Executor) -> None:
    told: list[Event] = []
    done = run(course(write_or_reject, 3), store, workers, listener=told.append)
    assert isinstance(done.error, StepFailed)
    assert [event.data["key"] for event in told if event.type == "task_failed"] == ["1"]
    assert len(ASKED) == 3
    # Its attempt is closed: only it is asked anew.
    assert isinstance(resume(course(write_or_reject, 3), store, done, workers).error, StepFailed)
    assert sorted(ASKED) == again("draft 1")
    skipped = run(course(write_or_reject, 3, skip_failed=True), store, workers)
    assert skipped.outputs["made"]["all"][1]["message"] == "not good enough"


def test_executor_warms_with_one_task_and_has_no_more_out_than_calls_may_be_in_flight(store: FileStore) -> None:
    first_answered = threading.Event()

    def look(text: str) -> None:
        if text == "second 0":
            first_answered.set()
        elif not text.startswith("first 0"):
            assert first_answered.is_set(), text

    BEFORE.append(look)
    with Watching(8) as executor:
        assert run(course(count=7, warm=True), store, executor, {"concurrency": 2}).status == "completed"
    assert executor.most <= 2


# Accidents


def test_executor_that_loses_an_answer_stops_the_run_and_a_resume_pays_nothing_again(shared: Store) -> None:
    with Losing(lambda task: task == "made/2") as executor:
        first = run(course(), shared, executor, {"concurrency": 1})
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "interrupted", 9)
    assert first.error is not None
    assert first.error.data["task"] == "made/2"
    assert "second 2" in ASKED
    with ThreadPoolExecutor(1) as one:
        second = resume(course(), shared, first, one)
    assert (second.status, second.spent.calls, sorted(ASKED)) == ("completed", 8, again())


@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_executor_resume_goes_on_where_a_worker_died(shared: Store, calls: int, elsewhere: bool) -> None:
    """The coordinator is gone after a worker has paid for so many calls of task 0, and has died too."""
    BEFORE.append(dying(calls))
    with Losing() as executor:
        first = run(course(count=2), shared, executor, {"concurrency": 1})
    BEFORE.clear()
    assert (first.detail, len(ASKED)) == ("interrupted", calls)
    with ThreadPoolExecutor(2) as two:
        second = resume(course(count=2), shared, first, two if elsewhere else None)
    assert second.status == "completed"
    assert len(set(ASKED)) == len(ASKED) == 4
    # The call that was in flight is in the ledger, beside the four.
    assert second.spent.calls == (4 if calls == 2 else 5)


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("limited", [True, False])
def test_executor_holds_calls_to_the_labels_of_the_resume_and_frees_what_the_dead_reserved(
    shared: Store, limited: bool, elsewhere: bool
) -> None:
    """The task was handed out under other labels; its worker died over its second call."""
    if limited:
        shared.account().set_limit(Limit("", "total", Decimal(5)))
    BEFORE.append(dying(1))
    with Losing() as executor:
        first = run(course(count=1), shared, executor, {"labels": "team=maths"})
    BEFORE.clear()
    with ThreadPoolExecutor(1) as one:
        there = one if elsewhere else None
        done = resume(course(count=1), shared, first, there, options={"labels": "team=physics"})
    assert done.status == "completed"
    (tallies,) = shared.account().days().values()
    total = state_spend(shared, done.run_id)
    assert {labels: tally.total for labels, tally in tallies.items()} == total
    assert total.keys() == {"team=maths", "team=physics"}


def state_spend(store: Store, run_id: str) -> dict[str, Decimal]:
    """Return what the calls of a run cost at worst, by the labels they were made under."""
    found: dict[str, Decimal] = {}
    for row in rows(all_records(store, run_id)):
        assert row.high is not None
        found[row.labels] = found.get(row.labels, Decimal(0)) + row.high
    return found


@pytest.mark.parametrize("kept", [1, 2, 3, 4, 5, 6])
def test_parts_are_read_with_the_run_and_taken_in_once(store: FileStore, workers: Executor, kept: int) -> None:
    """Whatever of a part was copied before the journal was cut off, from the task's submission on."""
    done = run(course(count=1), store, workers)
    path = store.root / done.run_id / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    begin = next(index for index, line in enumerate(lines) if b'"task_submitted"' in line)
    path.write_bytes(b"".join(lines[: begin + kept]))
    (store.root / done.run_id / "checkpoint.json").unlink()
    ASKED.clear()
    state = load(store, done.run_id)
    assert state.total.usd == done.spent.usd
    assert state.tasks["made#1"]["made/0"].status == "completed"
    assert len(rows(all_records(store, done.run_id))) == 2
    if kept == 1:
        head = next(iter(store.heads())).document
        # Nobody says how much at most, so nobody knows.
        assert (head["tasks_out"], head["unbounded_calls"]) == (1, 1)
    elsewhere = resume(course(count=1), store, done, workers if kept % 2 else None)
    assert (elsewhere.status, ASKED, elsewhere.outputs) == ("completed", [], done.outputs)
    assert elsewhere.spent == done.spent
    assert len(rows(records(store, done.run_id))) == 2


def test_worker_that_comes_late_finds_the_end_and_one_beside_another_waits_for_it(shared: Store) -> None:
    let_go, both, answers, threads = threading.Event(), threading.Event(), list[Any](), list[threading.Thread]()
    with Watching() as executor:

        def look(text: str) -> None:
            if text.startswith("first") and not both.is_set():
                both.set()
                threads.append(threading.Thread(target=lambda: answers.append(run_task(executor.specs[0]))))
                threads[0].start()
                assert not let_go.wait(0.2)

        BEFORE.append(look)
        assert run(course(count=1), shared, executor).status == "completed"
        threads[0].join(120)
    assert run_task(executor.specs[0]) == {"how": "ended"}
    assert (answers, len(ASKED)) == ([{"how": "ended"}], 2)


def test_worker_begins_nothing_in_a_part_that_was_taken_over(store: FileStore) -> None:
    with Watching() as executor, Losing(begun=False) as losing:
        first = run(course(count=1), store, losing)
        seq = next(each.seq for each in records(store, first.run_id) if isinstance(each.fact, TaskSubmitted))
        assert resume(course(count=1), store, first, None).status == "completed"
        run(course(count=1), store, executor)
    ASKED.clear()
    stale = {**executor.specs[0], "run": first.run_id, "part": f"task-{seq}", "base": 2, "owner": 99}
    assert (run_task(stale), ASKED) == ({"how": "closed"}, [])


def test_executor_hands_a_task_whose_part_was_closed_out_anew(store: FileStore, workers: Executor) -> None:
    with Losing(lambda task: task == "made/1", begun=False) as losing:
        first = run(course(count=3), store, losing, {"concurrency": 1})
    TROUBLE.update({f"first {item} for us": [SpendLimit("no money")] for item in range(3)})
    second = resume(course(count=3), store, first, None)
    assert second.detail == "paused_spend_limit"
    TROUBLE.clear()
    third = resume(course(count=3), store, second, workers)
    assert [row["attempt"] for row in third.outputs["made"]["all"]] == [1, 1, 1]


@pytest.mark.parametrize("idle", [False, True])
def test_executor_pauses_the_run_where_a_worker_does_and_waits_for_none_that_has_not_begun(
    shared: Store, workers: Executor, idle: bool
) -> None:
    TROUBLE["second 0"] = [SpendLimit("no money")]
    with Idle(1) as executor:
        first = run(course(), shared, executor if idle else workers, {"concurrency": 3})
    assert (first.status, first.detail, type(first.error)) == ("in_progress", "paused_spend_limit", SpendLimit)
    assert resume(course(), shared, first, workers).status == "completed"
    assert sorted(ASKED) == again("second 0")


@pytest.mark.parametrize("where", ["task", "here", "coordinator"])
def test_store_that_does_not_answer_pauses_the_run_and_nothing_is_paid_again(
    shared: Store, workers: Executor, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def silent(self: Notices) -> Any:
        raise StoreError("The server does not answer.")

    executor = None if where == "here" else workers
    with monkeypatch.context() as patch:
        if where == "coordinator":
            patch.setattr(Notices, "news", silent)
        else:
            TROUBLE["second 1"] = [StoreError("The server does not answer.")]
        first = run(course(), shared, executor, {"concurrency": 1})
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "interrupted", 3)
    assert resume(course(), shared, first, executor).status == "completed"
    assert sorted(ASKED) == again(*([] if where == "coordinator" else ["second 1"]))


@pytest.mark.parametrize("elsewhere", [True, False])
def test_error_of_the_users_code_in_a_task_leaves_its_replies_wherever_it_goes_on(
    shared: Store, workers: Executor, tmp_path: Path, elsewhere: bool
) -> None:
    pipeline, missing = course(write_then_look, 2), tmp_path / "missing"
    first = pipeline.run({"who": str(missing)}, store=shared, model=Counting(), executor=workers)
    assert first.status == "failed"
    second = resume(pipeline, shared, first, workers if elsewhere else None)
    assert (second.status, len(ASKED)) == ("failed", 4)
    missing.write_text("there")
    assert resume(pipeline, shared, second, None if elsewhere else workers).outputs == {"made": {"all": [7, 7]}}
    assert len(ASKED) == 4


# What is refused


class Elsewhere(Executor):
    """Nobody knows where its workers are."""


class Batching(Counting):
    batches = object()


def test_what_workers_cannot_share_is_refused(store: FileStore, workers: Executor) -> None:
    class Local(Counting):
        pass

    memory, single = MemoryStore(SystemClock()), open_store("postgresql://postgres@127.0.0.1:1/postgres?single=1")
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("store_not_shared", lambda: run(course(), memory, workers)),
        ("store_not_shared", lambda: run(course(), single, workers)),
        ("store_not_shared", lambda: run(course(), store, Elsewhere())),
        ("batch_with_executor", lambda: course().run(
            {"who": "us"}, store=store, model=Batching(), executor=workers, options={"batch": True})),
        ("tools_not_picklable", lambda: course().run({}, store=store, model=Local(), executor=processes)),
    ]  # fmt: skip
    with ProcessPoolExecutor(1) as processes:
        for code, refused in cases:
            with pytest.raises(ConfigError) as caught:
                refused()
            assert caught.value.code == code
    assert not list(store.heads())


def test_function_without_a_name_is_run_here_and_that_is_said(store: FileStore, workers: Executor) -> None:
    def inner(ctx: StepContext, item: int) -> str:
        return f"{item} here"

    told: list[Event] = []
    done: RunResult = run(course(inner, 2), store, workers, listener=told.append)
    assert done.outputs["made"]["all"] == ["0 here", "1 here"]
    assert (len(notes(told)), facts(store, done.run_id, TaskSubmitted)) == (1, [])


def test_password_of_a_store_and_key_of_a_model_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "postgresql://me:secret@db:5432/runs?sslmode=require"
    sent = plain_url(given)
    assert own_url(sent) == sent == "postgresql://me@db:5432/runs?sslmode=require"
    monkeypatch.setenv("PIPELINE_STORE", given)
    assert own_url(sent) == given
    monkeypatch.setenv("PIPELINE_STORE", "postgresql://me:secret@other/runs")
    assert own_url(sent) == sent
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    parcel = pickle.dumps(AnthropicModel(MODEL, base_url="http://127.0.0.1:1"))
    assert b"sk-ant" not in parcel
    assert pickle.loads(parcel).model_id == MODEL
    with pytest.raises(ConfigError, match="key of its own"):
        pickle.dumps(AnthropicModel(MODEL, api_key="sk-ant-secret"))


def test_service_that_cannot_be_sent_says_so_where_it_is_used(store: FileStore, workers: Executor) -> None:
    done = run(course(use_service, 1), store, workers, services={"lock": threading.Lock()})
    assert isinstance(done.error, StepFailed)
    assert "'lock' cannot be sent to a worker" in done.error.message


def test_references_name_functions_of_modules_and_of_files(tmp_path: Path) -> None:
    assert [resolve(reference(each, "map")) for each in (open_store, write)] == [open_store, write]
    file = tmp_path / "own_steps.py"
    file.write_text("def twice(x):\n    return 2 * x\n")
    assert resolve({"module": "__main__", "name": "twice", "file": str(file)})(4) == 8
    with pytest.raises(ConfigError) as caught:
        resolve({"module": "no_such_module_anywhere", "name": "x", "file": ""})
    assert caught.value.code == "function_not_importable"
