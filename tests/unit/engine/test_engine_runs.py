"""The engine on a memory store: chains, values, tasks, resume."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.engine.tasks import TaskFailure
from pipeline.errors import PipelineError, SecretRefused, SettingsConflict, TaskRejected
from pipeline.llm.script import ScriptedModel
from pipeline.records import kinds
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import ask, facts


def test_run_chain_gives_outputs_and_completes(store: MemoryStore) -> None:
    def first(ctx: StepContext) -> Mapping[str, Any]:
        return {"n": ctx.params["n"] + 1}

    def second(ctx: StepContext) -> Mapping[str, Any]:
        return {"n": ctx.outputs["first"]["n"] * 10}

    result = Pipeline("sums", [first, second]).run({"n": 1}, store=store)
    assert (result.status, result.error) == ("completed", None)
    assert result.outputs == {"first": {"n": 2}, "second": {"n": 20}}
    assert load(store, result.run_id).status == "completed"


def test_step_reads_are_recorded_with_their_hashes(store: MemoryStore) -> None:
    def one(ctx: StepContext) -> Mapping[str, Any]:
        return {"x": ctx.params["a"]}

    def two(ctx: StepContext) -> Mapping[str, Any]:
        return {"y": ctx.outputs["one"]["x"]}

    result = Pipeline("reads", [one, two]).run({"a": 1, "b": 2}, store=store)
    done = facts(store, result.run_id, kinds.StepCompleted)
    assert list(done[0].reads) == ["params.a"]
    assert list(done[1].reads) == ["outputs.one.x"]


@pytest.mark.parametrize("value", [float("nan"), b"x", {(1, 2): 3}, {"a": object()}])
def test_step_output_that_is_no_json_fails_naming_the_key(store: MemoryStore, value: Any) -> None:
    result = Pipeline("bad", [step("make")(lambda ctx: {"value": value})]).run(store=store)
    assert result.status == "failed"
    assert "make outputs.value" in str(result.error)


def test_resume_after_failure_repeats_only_what_failed(store: MemoryStore) -> None:
    ran: list[str] = []
    broken = threading.Event()
    broken.set()

    def good(ctx: StepContext) -> Mapping[str, Any]:
        ran.append("good")
        return {}

    def bad(ctx: StepContext) -> Mapping[str, Any]:
        ran.append("bad")
        if broken.is_set():
            raise RuntimeError("no luck")
        return {"ok": True}

    pipeline = Pipeline("luck", [good, bad])
    result = pipeline.run(store=store)
    assert result.status == "failed"
    assert "no luck" in str(result.error)
    broken.clear()
    again = pipeline.resume(result.run_id, store=store)
    assert again.status == "completed"
    assert ran == ["good", "bad", "bad"]
    assert load(store, result.run_id).steps["bad#1"].attempt == 2


def test_resume_of_completed_run_does_nothing(store: MemoryStore) -> None:
    ran: list[int] = []

    def only(ctx: StepContext) -> Mapping[str, Any]:
        ran.append(1)
        return {}

    pipeline = Pipeline("once", [only])
    result = pipeline.run(store=store)
    again = pipeline.resume(result.run_id, store=store)
    assert (again.status, again.worked, ran) == ("completed", False, [1])


def test_map_gives_values_in_item_order_and_reuses_them(store: MemoryStore) -> None:
    ran: list[int] = []
    fail = {3}

    def square(ctx: StepContext, item: int) -> int:
        ran.append(item)
        if item in fail:
            raise TaskRejected("three is unlucky")
        return item * item

    def squares(ctx: StepContext) -> Mapping[str, Any]:
        return {"all": list(ctx.map("square", range(5), square, key=str))}

    pipeline = Pipeline("map", [squares])
    result = pipeline.run(store=store)
    assert result.status == "failed"
    assert "square/3" in str(result.error)
    assert sorted(ran) == [0, 1, 2, 3, 4]
    fail.clear()
    again = pipeline.resume(result.run_id, store=store)
    assert again.outputs["squares"] == {"all": [0, 1, 4, 9, 16]}
    assert sorted(ran) == [0, 1, 2, 3, 3, 4]


def test_map_with_skip_failed_marks_the_failure(store: MemoryStore) -> None:
    def body(ctx: StepContext, item: int) -> int:
        if item == 1:
            raise TaskRejected("not good enough")
        return item

    def go(ctx: StepContext) -> Mapping[str, Any]:
        values = ctx.map("item", [0, 1], body, key=str, skip_failed=True)
        return {"failed": [v.error["message"] for v in values if isinstance(v, TaskFailure)]}

    result = Pipeline("skip", [go]).run(store=store)
    assert result.outputs["go"] == {"failed": ["not good enough"]}


def test_map_refuses_equal_keys_before_any_call(store: MemoryStore) -> None:
    model = ScriptedModel(["never"])

    def go(ctx: StepContext) -> Mapping[str, Any]:
        ctx.map("item", [1, 1], lambda c, i: c.ask(ask("x")).text, key=str)
        return {}

    result = Pipeline("keys", [go]).run(store=store, model=model)
    assert (load(store, result.run_id).steps["go#1"].error or {})["code"] == "duplicate_key"
    assert model.calls == 0


def test_nested_maps_do_not_deadlock(store: MemoryStore) -> None:
    def inner(ctx: StepContext, item: int) -> int:
        return item

    def outer(ctx: StepContext, item: int) -> int:
        return sum(ctx.map("inner", range(4), inner, key=str))

    def go(ctx: StepContext) -> Mapping[str, Any]:
        return {"sum": sum(ctx.map("outer", range(6), outer, key=str))}

    assert Pipeline("nest", [go]).run(store=store, options={"concurrency": 2}).outputs["go"] == {"sum": 36}


def test_values_are_what_a_resumed_run_would_see(store: MemoryStore) -> None:
    seen: list[Any] = []

    def make(ctx: StepContext) -> Mapping[str, Any]:
        value = {"t": [(1, 2), {3: 4}]}
        return value

    def use(ctx: StepContext) -> Mapping[str, Any]:
        seen.append(ctx.outputs["make"]["t"])
        return {}

    Pipeline("json", [make, use]).run(store=store)
    assert seen == [[[1, 2], {"3": 4}]]


def test_large_values_live_in_blobs_and_come_back(store: MemoryStore) -> None:
    big = "x" * 100_000

    def make(ctx: StepContext) -> Mapping[str, Any]:
        return {"items": list(ctx.map("big", [1, 2], lambda c, i: big + str(i), key=str))}

    def use(ctx: StepContext) -> Mapping[str, Any]:
        return {"length": len(ctx.outputs["make"]["items"][1])}

    result = Pipeline("big", [make, use]).run(store=store)
    assert result.outputs["use"] == {"length": 100_001}
    assert facts(store, result.run_id, kinds.TaskCompleted)[0].value.startswith(b'{"$blob":')


def test_value_that_looks_like_a_reference_survives(store: MemoryStore) -> None:
    odd = {"$blob": "not one", "bytes": 3}

    def make(ctx: StepContext) -> Mapping[str, Any]:
        return {"v": ctx.task("odd", lambda c, i: odd)}

    def use(ctx: StepContext) -> Mapping[str, Any]:
        return {"same": dict(ctx.outputs["make"])["v"] == odd}

    assert Pipeline("odd", [make, use]).run(store=store).outputs["use"] == {"same": True}


def test_secret_looking_parameters_are_refused(store: MemoryStore) -> None:
    with pytest.raises(SecretRefused, match="api_key"):
        Pipeline("s", [step("x")(lambda ctx: {})]).run({"api_key": "1"}, store=store)


def test_until_stops_resumably(store: MemoryStore) -> None:
    pipeline = Pipeline("until", [step("a")(lambda ctx: {}), step("b")(lambda ctx: {}), step("c")(lambda ctx: {})])
    result = pipeline.run(store=store, options={"until": "b"})
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "stopped_as_asked", 0)
    assert set(result.outputs) == {"a", "b"}
    assert pipeline.resume(result.run_id, store=store).status == "completed"


def test_raised_step_version_is_refused_and_names_it(store: MemoryStore) -> None:
    def make(version: int) -> Pipeline:
        bad = step("b")(lambda ctx: 1 / 0)
        return Pipeline("v", [step("a", version=version)(lambda ctx: {}), bad])

    result = make(1).run(store=store)
    with pytest.raises(SettingsConflict, match=r"a \(version 1 → 2\)"):
        make(2).resume(result.run_id, store=store)


def test_pause_inside_a_body_is_not_swallowed_by_except_exception(store: MemoryStore) -> None:
    def go(ctx: StepContext) -> Mapping[str, Any]:
        try:
            ctx.stop("enough")
        except Exception:
            return {"swallowed": True}
        return {}

    result = Pipeline("stop", [go]).run(store=store)
    assert result.detail == "stopped_as_asked"
    assert result.outputs == {}


@pytest.mark.parametrize(("names", "end"), [("ab", "completed"), ("abc", "in_progress")])
def test_run_that_is_interrupted_in_its_last_step_has_come_to_its_end(store: MemoryStore, names: str, end: str) -> None:
    def go(ctx: StepContext) -> Mapping[str, Any]:
        if ctx.path == "b#1":
            ctx._running.stop.request("interrupted", PipelineError("Interrupted (SIGINT)."))
        return {}

    result = Pipeline("last", [step(name)(go) for name in names]).run(store=store)
    assert (result.status, set(result.outputs)) == (end, {"a", "b"})


def test_task_key_used_twice_in_a_step_is_refused(store: MemoryStore) -> None:
    def go(ctx: StepContext) -> Mapping[str, Any]:
        return {"v": [ctx.task("t", lambda c, i: i, 1), ctx.task("t", lambda c, i: i, 2)]}

    result = Pipeline("twice", [go]).run(store=store)
    assert (load(store, result.run_id).steps["go#1"].error or {})["code"] == "duplicate_key"


def test_keys_with_slashes_are_kept_apart(store: MemoryStore) -> None:
    def go(ctx: StepContext) -> Mapping[str, Any]:
        first = list(ctx.map("a", [1], lambda c, i: "first", key=lambda i: "b/c"))
        second = list(ctx.map("a/b", [1], lambda c, i: "second", key=lambda i: "c"))
        alone = list(ctx.map("x", [1], lambda c, i: "map", key=lambda i: "x"))
        return {"v": [*first, *second, *alone, ctx.task("x", lambda c, i: "task")]}

    assert Pipeline("slash", [go]).run(store=store).outputs["go"] == {"v": ["first", "second", "map", "task"]}


def test_a_resume_leaves_the_garbage_collector_on(store: MemoryStore) -> None:
    seen: list[bool] = []

    @step("a")
    def a(ctx: StepContext) -> Any:
        seen.append(gc.isenabled())
        if len(seen) == 1:
            ctx.stop("once more")
        return {}

    what = Pipeline("collects", [a])
    what.resume(what.run(store=store).run_id, store=store)
    with pytest.raises(PipelineError):
        what.resume("no-such-run", store=store)
    assert (seen, gc.isenabled()) == ([True, True], True)
