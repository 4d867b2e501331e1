"""Small graphs: diamond, branch, loop, failing sibling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.errors import PipelineError, SettingsConflict
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import ask


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


def test_resume_in_another_graph_is_refused_naming_what_changed(store: MemoryStore) -> None:
    def stop(ctx: StepContext) -> Any:
        ctx.stop("here")

    first, second = step("a")(lambda ctx: {}), step("b")(stop)
    run = Pipeline("shape", [first, second]).run(store=store).run_id
    third = step("c")(lambda ctx: {})
    with pytest.raises(SettingsConflict, match="edge a->b is gone; step c is new"):
        Pipeline("shape", [first, second, third], edges=[("a", "c"), ("c", "b")]).resume(run, store=store)
    assert Pipeline("shape", [first, step("b")(lambda ctx: {})]).resume(run, store=store).status == "completed"


def test_resume_in_a_graph_that_only_grew_goes_on_and_says_so(store: MemoryStore) -> None:
    ran: list[str] = []
    run = Pipeline("grow", [noting(ran, "a"), noting(ran, "b")]).run(store=store).run_id
    notes: list[Any] = []
    grown = Pipeline("grow", [noting(ran, "a"), noting(ran, "b"), noting(ran, "c"), noting(ran, "d")],
                     edges=[("a", "b"), ("b", "c"), ("a", "d")])  # fmt: skip
    result = grown.resume(run, store=store, listener=notes.append)
    assert (result.status, ran[:2], sorted(ran[2:])) == ("completed", ["a", "b"], ["c", "d"])
    assert any("step c is new" in event.data.get("text", "") for event in notes)
    assert not grown.resume(run, store=store).worked
