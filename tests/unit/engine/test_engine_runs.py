"""Whole runs of chains: what is made, kept and repeated, what is on disk before what, and how a run is left."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline import Event, Pipeline, Reply, Request, ScriptedModel, StepContext, TaskFailure, step
from pipeline.clock import SystemClock, parse_iso
from pipeline.engine import loop
from pipeline.engine.amendment import amend, declared_done
from pipeline.errors import (
    ConfigError,
    ModelUnavailable,
    PipelineError,
    RunLocked,
    SettingsConflict,
    StoreError,
    TaskRejected,
)
from pipeline.records.documents import head_document
from pipeline.records.kinds import Gap, StepCompleted, StepFailed, TaskCompleted
from pipeline.store.base import Store
from pipeline.store.disk import Disk
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records, resolve
from pipeline.testing import FakeClock
from tests.faulty_disk import LazyDisk
from tests.unit.engine.saying import ask, engine, facts, notes

Body = Callable[[StepContext], Any]


def chain(names: str, body: Body = lambda ctx: {}) -> Pipeline:
    return Pipeline("chain", [step(name)(body) for name in names])


def mapping(body: Callable[[StepContext, Any], Any], items: Any, **more: Any) -> Pipeline:
    """One step that maps items."""
    key = more.pop("key", str)
    return Pipeline("map", [step("go")(lambda ctx: {"all": list(ctx.map("item", items, body, key=key, **more))})])


def test_run_chain_gives_outputs_completes_records_what_was_read_and_is_left_free(store: MemoryStore) -> None:
    def first(ctx: StepContext) -> Mapping[str, Any]:
        return {"n": ctx.params["n"] + 1}

    def second(ctx: StepContext) -> Mapping[str, Any]:
        return {"n": ctx.outputs["first"]["n"] * 10}

    pipeline = Pipeline("sums", [first, second])
    result = pipeline.run({"n": 1, "m": 2}, store=store)
    assert (result.status, result.error) == ("completed", None)
    assert result.outputs == {"first": {"n": 2}, "second": {"n": 20}}
    reads = [list(done.reads) for done in facts(store, result.run_id, StepCompleted)]
    assert reads == [["params.n"], ["outputs.first.n"]]
    for _ in range(2):
        again = pipeline.resume(result.run_id, store=store)
        assert (again.status, again.worked, again.outputs) == ("completed", False, result.outputs)
    assert [head.owned for head in store.heads()] == [False]


@pytest.mark.parametrize("value", [float("nan"), b"x", {(1, 2): 3}, {"a": object()}])
def test_step_output_that_is_no_json_fails_naming_the_key(store: MemoryStore, value: Any) -> None:
    result = Pipeline("bad", [step("make")(lambda ctx: {"value": value})]).run(store=store)
    assert result.status == "failed"
    assert "make outputs.value" in str(result.error)


def test_resume_after_failure_repeats_only_what_failed(store: MemoryStore) -> None:
    ran, broken = list[str](), [True]

    def body(ctx: StepContext) -> Mapping[str, Any]:
        ran.append(ctx.path)
        if ctx.path == "b#1" and (broken.pop() if broken else False):
            raise RuntimeError("no luck")
        return {}

    result = chain("ab", body).run(store=store)
    assert result.status == "failed"
    assert chain("ab", body).resume(result.run_id, store=store).status == "completed"
    assert ran == ["a#1", "b#1", "b#1"]
    assert load(store, result.run_id).steps["b#1"].attempt == 2


def test_error_of_a_failed_step_is_gone_once_it_has_succeeded(store: MemoryStore) -> None:
    broken = [True]

    def body(ctx: StepContext) -> dict[str, int]:
        if broken.pop() if broken else False:
            raise RuntimeError("no luck")
        return {"n": 1}

    run = chain("a", body).run(store=store).run_id
    assert "no luck" in str(load(store, run).error)
    chain("a", body).resume(run, store=store)
    assert load(store, run).error is None
    assert any("no luck" in str(fact.error) for fact in facts(store, run, StepFailed)), "kept in the records"


def test_map_gives_values_in_item_order_and_reuses_them(store: MemoryStore) -> None:
    ran, fail = list[int](), {3}

    def square(ctx: StepContext, item: int) -> int:
        ran.append(item)
        if item in fail:
            raise TaskRejected("three is unlucky")
        return item * item

    pipeline = mapping(square, range(5))
    result = pipeline.run(store=store)
    assert result.status == "failed"
    assert "item/3" in str(result.error)
    assert sorted(ran) == [0, 1, 2, 3, 4]
    fail.clear()
    assert pipeline.resume(result.run_id, store=store).outputs["go"] == {"all": [0, 1, 4, 9, 16]}
    assert sorted(ran) == [0, 1, 2, 3, 3, 4]


def test_map_with_skip_failed_marks_the_failure(store: MemoryStore) -> None:
    def body(ctx: StepContext, item: int) -> int:
        return item if item else 1 // item

    def go(ctx: StepContext) -> Mapping[str, Any]:
        values = ctx.map("item", [0, 1], body, key=str, skip_failed=True)
        return {"failed": [value.key for value in values if isinstance(value, TaskFailure)]}

    assert Pipeline("skip", [go]).run(store=store).outputs["go"] == {"failed": ["item/0"]}


def test_equal_keys_are_refused_before_any_call_and_those_with_slashes_are_kept_apart(store: MemoryStore) -> None:
    def twice(ctx: StepContext) -> Mapping[str, Any]:
        return {"v": [ctx.task("t", lambda c, i: i, 1), ctx.task("t", lambda c, i: i, 2)]}

    model = ScriptedModel(["never"])
    for pipeline in (mapping(lambda c, i: c.ask(ask("x")).text, [1, 1]), Pipeline("twice", [step("go")(twice)])):
        run = pipeline.run(store=store, model=model).run_id
        assert (load(store, run).steps["go#1"].error or {})["code"] == "duplicate_key"
    assert model.calls == 0

    def apart(ctx: StepContext) -> Mapping[str, Any]:
        first = list(ctx.map("a", [1], lambda c, i: "first", key=lambda i: "b/c"))
        second = list(ctx.map("a/b", [1], lambda c, i: "second", key=lambda i: "c"))
        alone = list(ctx.map("x", [1], lambda c, i: "map", key=lambda i: "x"))
        return {"v": [*first, *second, *alone, ctx.task("x", lambda c, i: "task")]}

    assert Pipeline("slash", [apart]).run(store=store).outputs["apart"] == {"v": ["first", "second", "map", "task"]}


def test_nested_maps_do_not_deadlock(store: MemoryStore) -> None:
    def outer(ctx: StepContext, item: int) -> int:
        return sum(ctx.map("inner", range(4), lambda c, i: int(i), key=str))

    result = mapping(outer, range(6)).run(store=store, options={"concurrency": 2})
    assert result.outputs["go"] == {"all": [6] * 6}


def test_large_values_live_in_blobs_and_come_back(
    store: MemoryStore,
) -> None:
    odd, big = {"$blob": "not one", "bytes": 3}, "x" * 100_000

    def make(ctx: StepContext) -> Mapping[str, Any]:
        items = list(ctx.map("big", [1, 2], lambda c, i: big + str(i), key=str))
        return {"t": [(1, 2), {3: 4}], "odd": ctx.task("odd", lambda c, i: odd), "items": items}

    def use(ctx: StepContext) -> Mapping[str, Any]:
        seen = ctx.outputs["make"]
        return {"t": seen["t"], "same": seen["odd"] == odd, "length": len(seen["items"][1])}

    result = Pipeline("json", [make, use]).run(store=store)
    assert result.outputs["use"] == {"t": [[1, 2], {"3": 4}], "same": True, "length": 100_001}
    assert facts(store, result.run_id, TaskCompleted)[0].value.startswith(b'{"$blob":')


def test_until_stops_resumably_and_begins_nothing_more(store: MemoryStore) -> None:
    result = chain("abc").run(store=store, options={"until": "a"})
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "stopped_as_asked", 0)
    kinds = [type(record.fact).__name__ for record in records(store, result.run_id)]
    assert kinds == ["RunStarted", "StepStarted", "StepCompleted", "RunEnded"]
    assert chain("abc").resume(result.run_id, store=store).status == "completed"


def test_raised_step_version_is_refused_and_names_it(store: MemoryStore) -> None:
    def make(version: int) -> Pipeline:
        bad = step("b")(lambda ctx: 1 / 0)
        return Pipeline("v", [step("a", version=version)(lambda ctx: {}), bad])

    result = make(1).run(store=store)
    with pytest.raises(SettingsConflict) as caught:
        make(2).resume(result.run_id, store=store)
    assert caught.value.data["steps"] == {"a#1": "version 1 → 2"}


@pytest.mark.parametrize(("names", "end"), [("ab", "completed"), ("abc", "in_progress")])
def test_run_that_is_interrupted_in_its_last_step_has_come_to_its_end(store: MemoryStore, names: str, end: str) -> None:
    def body(ctx: StepContext) -> Mapping[str, Any]:
        if ctx.path == "b#1":
            ctx._running.stop.request("interrupted", PipelineError("Interrupted (SIGINT)."))
        return {}

    result = chain(names, body).run(store=store)
    assert (result.status, set(result.outputs)) == (end, {"a", "b"})


def test_a_resume_leaves_the_garbage_collector_on(store: MemoryStore) -> None:
    seen: list[bool] = []

    def body(ctx: StepContext) -> Any:
        seen.append(gc.isenabled())
        if len(seen) == 1:
            ctx.stop("once more")
        return {}

    what = chain("a", body)
    what.resume(what.run(store=store).run_id, store=store)
    with pytest.raises(StoreError):
        what.resume("no-such-run", store=store)
    assert (seen, gc.isenabled()) == ([True, True], True)


def test_fault_of_the_program_is_raised_and_leaves_the_run_free_to_go_on(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "_place", lambda self, node: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            chain("ab").run(store=store, listener=lambda event: None)
    (head,) = store.heads()
    assert (head.owned, head.document["status_detail"]) == (False, "interrupted")
    assert chain("ab").resume(head.run_id, store=store).status == "completed"


def test_listener_that_fails_costs_no_paid_work_and_is_told_nothing_more(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken(event: Event) -> None:
        told.append(event.type)
        if event.type == "call_ended":
            raise ValueError("a fault of the display")

    model = ScriptedModel(lambda request: "fine")
    pipeline = mapping(lambda c, i: c.ask(ask(str(i))).text, [1, 2])
    result = pipeline.run(store=store, model=model, listener=broken, options={"concurrency": 1})
    assert (result.status, model.calls, told[-1]) == ("completed", 2, "call_ended")
    assert caplog.records[0].levelno == logging.ERROR
    caplog.clear()

    def gone(event: Event) -> None:
        raise BrokenPipeError

    assert pipeline.run(store=store, model=model, listener=gone).status == "completed"
    assert not caplog.records, "whose reader went away is dropped in silence"


class Watched(Disk):
    """Remembers whether a record was written since the last sync of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.loose = False
        self.writes = self.syncs = 0

    def write(self, fd: int, data: bytes) -> int:
        # Heads are written too, as time goes.
        if data.startswith(b'{"seq":'):
            self.loose = True
            self.writes += 1
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.syncs += 1
        self.loose = False


@pytest.fixture
def disk() -> Watched:
    return Watched()


@pytest.mark.parametrize(("effect", "loose"), [("write", False), ("external", False), ("read", True)])
def test_start_of_a_step_that_acts_outside_or_of_a_call_is_synced_before_it(
    tmp_path: Path, disk: Watched, effect: str, loose: bool
) -> None:
    seen: list[bool] = []

    def answer(request: Request) -> Reply:
        seen.append(disk.loose)
        return Reply("fine", "end_turn")

    def act(ctx: StepContext) -> Mapping[str, Any]:
        seen.append(disk.loose)
        return {"text": ctx.ask(ask("x")).text}

    pipeline = Pipeline("acts", [step("act", effect=effect)(act)])
    store = FileStore(tmp_path / "s", SystemClock(), disk=disk)
    assert pipeline.run(store=store, model=ScriptedModel(answer)).status == "completed"
    assert seen == [loose, False]


def test_end_of_a_step_and_the_start_it_leads_to_are_one_write_and_one_sync(tmp_path: Path, disk: Watched) -> None:
    made: list[tuple[int, int]] = []

    def act(ctx: StepContext) -> Mapping[str, Any]:
        made.append((disk.writes, disk.syncs))
        return {}

    chain("abcd", act).run(store=FileStore(tmp_path, SystemClock(), disk=disk))
    first = made[1]
    assert [(writes - first[0], syncs - first[1]) for writes, syncs in made[1:]] == [(0, 0), (1, 1), (2, 2)]


def test_item_is_told_of_once_its_end_is_synced(tmp_path: Path, disk: Watched) -> None:
    loose: list[bool] = []

    def listen(event: Event) -> None:
        if event.type == "task_completed":
            loose.append(disk.loose)

    store = FileStore(tmp_path, SystemClock(), disk=disk)
    assert mapping(lambda c, i: i, range(5)).run(store=store, listener=listen).status == "completed"
    assert loose == [False] * 5


def test_torn_end_of_a_completed_run_is_recorded_and_said_once(tmp_path: Path) -> None:
    heard: list[Event] = []
    store = FileStore(tmp_path, FakeClock())
    made = engine(chain("a"), store, listener=heard.append)
    run = made.start({}, identity={}, pins={}).run_id
    with (tmp_path / run / "journal.jsonl").open("ab") as out:
        out.write(b"junk")
    heard.clear()
    for _ in range(2):
        assert made.resume(run).status == "completed"
    assert [text.count("4 bytes kept in journal.torn-1") for text in notes(heard)] == [1]
    assert [(gap.bytes, gap.kept) for gap in facts(store, run, Gap)] == [(4, "journal.torn-1")]


def cut_off(store: MemoryStore) -> tuple[Pipeline, str]:
    """A run whose step "send" was cut off in the middle."""

    def die(ctx: StepContext) -> Any:
        raise KeyboardInterrupt

    def pipeline(body: Any) -> Pipeline:
        return Pipeline("mail", [
            step("write")(lambda ctx: {}), step("send", effect="external")(body),
            step("note")(lambda ctx: {"id": ctx.outputs["send"]["id"]}),
        ])  # fmt: skip

    run = pipeline(die).run(store=store).run_id
    return pipeline(lambda ctx: pytest.fail("it acted again")), run


def test_declared_done_a_step_is_not_repeated_and_what_follows_sees_its_outputs(store: MemoryStore) -> None:
    (what, run), clock = cut_off(store), SystemClock()
    with pytest.raises(ConfigError) as caught:
        declared_done(what.definition, load(store, run), "write", {}, clock)
    assert caught.value.code == "no_open_step"
    amend(store, run, clock, lambda state: [declared_done(what.definition, state, "send", {"id": 7}, clock)])
    result = what.resume(run, store=store)
    assert (result.status, result.outputs["note"]) == ("completed", {"id": 7})
    assert load(store, run).steps["send#1"].reason == "declared done"


def test_amend_records_nothing_where_its_decision_is_refused_or_the_run_is_owned(store: MemoryStore) -> None:
    def refuse(state: object) -> Any:
        raise ConfigError("no such gate")

    run = chain("a").run(store=store).run_id
    before = list(store.read(run))
    with pytest.raises(ConfigError, match="no such gate"):
        amend(store, run, SystemClock(), refuse)
    assert list(store.read(run)) == before
    journal = store.open(run)
    with pytest.raises(RunLocked):
        amend(store, run, SystemClock(), lambda state: [])
    journal.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["files", "memory"])
def either(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Store:
    return FileStore(tmp_path, clock, disk=LazyDisk()) if request.param == "files" else MemoryStore(clock)


def test_clock_that_steps_back_between_records_changes_neither_order_nor_durations(
    either: Store, clock: FakeClock
) -> None:
    def slow(ctx: StepContext) -> dict[str, int]:
        clock.advance(5)
        clock.step(-3600)
        return {"n": len(ctx.outputs)}

    pipeline = chain("abc", slow)
    result = pipeline.run(store=either, clock=clock)
    assert (result.status, result.seconds) == ("completed", 15.0)
    assert [output["n"] for output in result.outputs.values()] == [0, 1, 2]
    told = list(records(either, result.run_id))
    assert [record.seq for record in told] == sorted(record.seq for record in told)
    assert parse_iso(told[0].at) > parse_iso(told[-1].at)
    document = head_document(load(either, result.run_id), 0, ["a", "b", "c"])
    assert [row["duration_seconds"] for row in document["completed_steps"]] == [5.0] * 3
    run = pipeline.run(store=either, clock=clock, options={"until": "a"}).run_id
    clock.step(-86_400)
    assert pipeline.resume(run, store=either, clock=clock).status == "completed"


def test_run_made_after_the_clock_stepped_back_has_a_name_of_its_own_and_latest_is_by_name(
    either: Store, clock: FakeClock
) -> None:
    first = chain("a").run(store=either, clock=clock).run_id
    clock.advance(60)
    second = chain("a").run(store=either, clock=clock).run_id
    clock.at -= timedelta(seconds=60)
    third = chain("a").run(store=either, clock=clock).run_id
    assert third == f"{first}_02"
    assert resolve(either, "latest") == second
    assert [head.run_id for head in either.heads()] == [second, third, first]


def test_wait_that_the_provider_asks_for_is_active_time_and_needs_no_real_time(store: MemoryStore) -> None:
    model = ScriptedModel([ModelUnavailable("slow down", status=429, retry_after=40.0), "fine"])
    clock = FakeClock()
    result = chain("a", lambda ctx: {"v": ctx.ask(ask("x")).text}).run(store=store, model=model, clock=clock)
    assert (result.outputs["a"], sum(clock.waits), result.seconds) == ({"v": "fine"}, 40.0, 40.0)
