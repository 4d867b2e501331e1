"""The engine on a memory store: chains, graphs, tasks, calls, resume."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pipeline.store.memory import MemoryStore
from pipeline.store.reading import load, records

from pipeline.clock import SystemClock
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.engine.tasks import TaskFailure
from pipeline.errors import ModelUnavailable, PipelineError, SecretRefused, SettingsConflict, TaskRejected
from pipeline.llm.base import Message, Reply, Request
from pipeline.llm.scripted import ScriptedModel
from pipeline.records import kinds


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())


def ask(text: str) -> Request:
    return Request("scripted", [Message("user", text)])


class Killed(BaseException):
    """Stands for a kill: nothing after it runs."""


def facts(store: MemoryStore, run: str, kind: type) -> list[Any]:
    return [record.fact for record in records(store, run) if isinstance(record.fact, kind)]


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
    pipeline = Pipeline("once", [step("only")(lambda ctx: ran.append(1) or {})])
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
    assert "two items have the key '1'" in str(result.error)
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
    assert facts(store, result.run_id, kinds.TaskCompleted)[0].value.keys() == {"$blob", "bytes"}


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
    with pytest.raises(SettingsConflict, match=r"a#1 \(version 1 → 2\)"):
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


# Calls


def test_ask_is_answered_from_the_record_on_resume(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: request.messages[0].text.upper())
    crash = threading.Event()
    crash.set()

    def go(ctx: StepContext) -> Mapping[str, Any]:
        first = ctx.ask(ask("one")).text
        second = ctx.ask(ask("one")).text
        if crash.is_set():
            ctx.stop("crash")
        return {"texts": [first, second]}

    pipeline = Pipeline("ask", [go])
    result = pipeline.run(store=store, model=model)
    assert model.calls == 2
    crash.clear()
    again = pipeline.resume(result.run_id, store=store, model=model)
    assert again.outputs["go"] == {"texts": ["ONE", "ONE"]}
    assert model.calls == 2


def test_content_failure_closes_the_attempt_so_the_next_asks_again(store: MemoryStore) -> None:
    answers = iter(["bad", "good"])
    model = ScriptedModel(lambda request: next(answers))

    def body(ctx: StepContext, item: int) -> str:
        text = ctx.ask(ask("same prompt")).text
        if text == "bad":
            raise TaskRejected("bad")
        return text

    pipeline = Pipeline("again", [step("go")(lambda ctx: {"v": ctx.task("t", body)})])
    result = pipeline.run(store=store, model=model)
    assert result.status == "failed"
    again = pipeline.resume(result.run_id, store=store, model=model)
    assert again.outputs["go"] == {"v": "good"}


def test_truncation_is_asked_once_more_with_a_higher_cap(store: MemoryStore) -> None:
    def answer(request: Request) -> Reply:
        full = request.max_tokens > 100
        return Reply("whole" if full else "wh", "end_turn" if full else "max_tokens")

    model = ScriptedModel(answer)
    request = Request("scripted", [Message("user", "x")], max_tokens=100)
    result = Pipeline("cut", [step("go")(lambda ctx: {"v": ctx.ask(request).text})]).run(store=store, model=model)
    assert result.outputs["go"] == {"v": "whole"}
    assert [asked.max_tokens for asked in model.requests] == [100, 200]


def test_truncated_twice_fails_naming_max_tokens(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: Reply("x", "max_tokens"))
    result = Pipeline("cut", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})]).run(store=store, model=model)
    assert result.status == "failed"
    assert "cut off at 32000 tokens" in str(result.error)
    assert model.calls == 2


def test_refusal_is_returned_and_not_asked_again(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: Reply("I cannot", "refusal"))
    run = step("go")(lambda ctx: {"refused": ctx.ask(ask("x")).refused})
    assert Pipeline("no", [run]).run(store=store, model=model).outputs["go"] == {"refused": True}
    assert model.calls == 1


def test_rate_limits_are_waited_out_and_every_try_is_recorded(store: MemoryStore) -> None:
    answers: list[Any] = [ModelUnavailable("slow down", status=429, retry_after=0.0), "fine"]
    model = ScriptedModel(answers)
    result = Pipeline("slow", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})]).run(store=store, model=model)
    assert result.outputs["go"] == {"v": "fine"}
    started, ended = facts(store, result.run_id, kinds.CallStarted), facts(store, result.run_id, kinds.CallEnded)
    assert [(call.n, call.k) for call in started] == [(1, 1), (1, 2)]
    assert [end.error is None for end in ended] == [False, True]


def test_a_wait_beyond_patience_pauses_resumably(store: MemoryStore) -> None:
    answers: list[Any] = [ModelUnavailable("slow", status=429, retry_after=100_000.0), "fine"]
    model = ScriptedModel(answers)
    pipeline = Pipeline("slow", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})])
    result = pipeline.run(store=store, model=model)
    assert (result.detail, result.exit_code) == ("paused_rate_limit", 4)
    assert pipeline.resume(result.run_id, store=store, model=model).outputs["go"] == {"v": "fine"}


# Graphs


def noting(ran: list[str], name: str, then: Callable[[StepContext], Any] = lambda ctx: {}) -> Any:
    def body(ctx: StepContext) -> Any:
        ran.append(name)
        return then(ctx)

    return step(name)(body)


def test_diamond_joins_once_with_both_contexts(store: MemoryStore) -> None:
    ran: list[str] = []
    steps = [
        noting(ran, "a", lambda ctx: Outcome({}, context={"a": 1})),
        noting(ran, "b", lambda ctx: Outcome({}, context={"b": ctx.context["a"] + 1})),
        noting(ran, "c", lambda ctx: Outcome({}, context={"c": ctx.context["a"] + 2})),
        noting(ran, "d", lambda ctx: {"sum": ctx.context["b"] + ctx.context["c"]}),
    ]
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    result = Pipeline("diamond", steps, edges=edges, joins={"d": "all"}).run(store=store)
    assert result.outputs["d"] == {"sum": 5}
    assert sorted(ran) == ["a", "b", "c", "d"]


def test_branches_setting_one_key_need_a_reducer(store: MemoryStore) -> None:
    def diamond(reducers: dict[str, Any]) -> Any:
        steps = [
            step("a")(lambda ctx: {}),
            step("b")(lambda ctx: Outcome({}, context={"k": [1]})),
            step("c")(lambda ctx: Outcome({}, context={"k": [2]})),
            step("d")(lambda ctx: {"k": ctx.context["k"]}),
        ]
        edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
        return Pipeline("keys", steps, edges=edges, joins={"d": "all"}, reducers=reducers).run(store=store)

    assert "two branches set the context key 'k'" in str(diamond({}).error).lower()
    assert diamond({"k": lambda x, y: x + y}).outputs["d"] == {"k": [1, 2]}


def test_branch_takes_the_edge_of_its_label(store: MemoryStore) -> None:
    ran: list[str] = []
    steps = [
        noting(ran, "a", lambda ctx: Outcome({}, label="left")),
        noting(ran, "b"),
        noting(ran, "c"),
        noting(ran, "d"),
    ]
    edges = [("a", "b", "left"), ("a", "c", "right"), ("b", "d"), ("c", "d")]
    result = Pipeline("branch", steps, edges=edges, joins={"d": "all"}).run(store=store)
    assert result.status == "completed"
    assert ran == ["a", "b", "d"]


def test_loop_visits_are_new_work_each_time(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: "x")
    crash = {"at": 3}

    def body(ctx: StepContext) -> Any:
        count = ctx.context.get("count", 0) + 1
        ctx.ask(ask("the same prompt"))
        if count == crash["at"]:
            ctx.stop("killed in the third")
        return Outcome({}, label="again" if count < 3 else "done", context={"count": count})

    edges = [("loop", "loop", "again"), ("loop", "end", "done")]
    pipeline = Pipeline("loop", [step("loop")(body), step("end")(lambda ctx: {})], edges=edges)
    result = pipeline.run(store=store, model=model)
    assert model.calls == 3
    crash["at"] = 0
    again = pipeline.resume(result.run_id, store=store, model=model)
    assert again.status == "completed"
    assert model.calls == 3
    assert [p for p in load(store, result.run_id).steps] == ["loop#1", "loop#2", "loop#3", "end#1"]


def test_failing_sibling_lets_the_other_finish_and_blocks_the_join(store: MemoryStore) -> None:
    ran: list[str] = []

    def boom(ctx: StepContext) -> Any:
        raise PipelineError("boom")

    steps = [noting(ran, "a"), step("b")(boom), noting(ran, "c"), noting(ran, "d")]
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    result = Pipeline("sibling", steps, edges=edges, joins={"d": "all"}).run(store=store)
    assert result.status == "failed"
    assert "b: boom" in str(result.error)
    assert sorted(ran) == ["a", "c"]


def test_failure_edge_accepts_the_failure(store: MemoryStore) -> None:
    ran: list[str] = []
    steps = [step("a")(lambda ctx: 1 / 0), noting(ran, "good"), noting(ran, "mend")]
    edges = [("a", "good"), ("a", "mend", "fail")]
    result = Pipeline("mend", steps, edges=edges).run(store=store)
    assert (result.status, ran) == ("completed", ["mend"])
