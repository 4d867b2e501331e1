"""The wall clock may step back at any moment: order is by seq, durations are active time, the newest run is found."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.clock import parse_iso
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.errors import ModelUnavailable
from pipeline.llm.script import ScriptedModel
from pipeline.records.documents import head_document
from pipeline.records.kinds import StepCompleted
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.reader import load, records, resolve
from pipeline.testing import FakeClock, MemoryStore
from tests.faulty_disk import LazyDisk
from tests.unit.engine.saying import ask


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Store:
    return FileStore(tmp_path, clock, disk=LazyDisk()) if request.param == "files" else MemoryStore(clock)


def stepping_back(clock: FakeClock) -> Pipeline:
    def slow(ctx: StepContext) -> dict[str, int]:
        clock.advance(5)
        clock.step(-3600)
        return {"n": len(ctx.outputs)}

    return Pipeline("back", [step(name)(slow) for name in ("a", "b", "c")])


def test_clock_that_steps_back_between_records_changes_neither_order_nor_durations(
    store: Store, clock: FakeClock
) -> None:
    result = stepping_back(clock).run(store=store, clock=clock)
    assert (result.status, result.seconds) == ("completed", 15.0)
    assert [output["n"] for output in result.outputs.values()] == [0, 1, 2]
    told = list(records(store, result.run_id))
    assert [record.seq for record in told] == sorted(record.seq for record in told)
    assert parse_iso(told[0].at) > parse_iso(told[-1].at)
    assert [record.fact.seconds for record in told if isinstance(record.fact, StepCompleted)] == [5.0] * 3
    document = head_document(load(store, result.run_id), 0, ["a", "b", "c"])
    assert document["status"] == "completed"
    assert all(row["duration_seconds"] == 5.0 for row in document["completed_steps"])


def test_run_stopped_before_the_clock_stepped_back_goes_on(store: Store, clock: FakeClock) -> None:
    pipeline = stepping_back(clock)
    run = pipeline.run(store=store, clock=clock, options={"until": "a"}).run_id
    clock.step(-86_400)
    result = pipeline.resume(run, store=store, clock=clock)
    assert result.status == "completed"
    assert result.seconds >= 0


def test_run_made_after_the_clock_stepped_back_has_a_name_of_its_own_and_latest_is_by_name(
    store: Store, clock: FakeClock
) -> None:
    pipeline = Pipeline("short", [step("a")(lambda ctx: {})])
    first = pipeline.run(store=store, clock=clock).run_id
    clock.advance(60)
    second = pipeline.run(store=store, clock=clock).run_id
    clock.at -= timedelta(seconds=60)
    third = pipeline.run(store=store, clock=clock).run_id
    assert len({first, second, third}) == 3
    assert third == f"{first}_02"
    assert resolve(store, "latest") == second
    assert [head.run_id for head in store.heads()] == [second, third, first]


def test_wait_that_the_provider_asks_for_is_active_time_and_needs_no_real_time(store: Store, clock: FakeClock) -> None:
    model = ScriptedModel([ModelUnavailable("slow down", status=429, retry_after=40.0), "fine"])
    pipeline = Pipeline("slow", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})])
    result = pipeline.run(store=store, model=model, clock=clock)
    assert result.outputs["go"] == {"v": "fine"}
    assert (sum(clock.waits), result.seconds) == (40.0, 40.0)
