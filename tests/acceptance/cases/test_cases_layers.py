"""Acceptance cases of layered DAGs: checkpoints, resuming, failures, changed DAGs (28 to 30, 32, 33, 36)."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from pipeline import LayerCheckpoints, WorkflowState
from pipeline.errors import SettingsConflict
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.store.reader import load
from tests.layered import THREE, Layered, chain, dag, done, ids, state

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
#: A state with everything that may be lost on the way.
FULL = {
    "workflow_id": "wf",
    "messages": [{"role": "user", "content": "größer ✓ \U0001f600"}, "two", None],
    "tasks": [
        {"taskId": "a", "result": {"big": 2**60 + 1, "none": None}, "timestamp": "2026-01-09T14:30:22Z",
         "duration": 12.5, "status": "success", "layerIndex": 0},
        {"taskId": "b", "result": [], "timestamp": "2026-01-09T14:30:23Z", "duration": 3, "status": "success"},
    ],
    "decisions": [{"kind": "human", "outcome": "approve", "when": "2026-01-09T14:30:24Z"}],
    "context": {"nested": {"deep": [{"x": [1, {"y": None}]}]}, "text": "é\u0000\ud83d", "flag": False},
    "checkpoint_id": None,
}  # fmt: skip


def test_case_28_one_checkpoint_behind_each_layer(layered: Layered) -> None:
    result = layered.execute(THREE)
    told = layered.told("checkpoint_saved")
    listed = layered.checkpoints.listed(result.run_id)[::-1]
    assert [row["layer_index"] for row in listed] == [1, 2, 3]
    assert [list(event) for event in told] == [["type", "timestamp", "checkpoint_id"]] * 3
    assert [(event["checkpoint_id"], event["timestamp"]) for event in told] == [
        (row["id"], row["timestamp"]) for row in listed
    ]
    assert all(UUID4.fullmatch(row["id"]) for row in listed)
    for row in listed:
        assert layered.checkpoints.load(row["id"]).state.checkpoint_id == row["id"]
    assert result.state.checkpoint_id == result.checkpoint_id == listed[-1]["id"]


def test_case_29_a_state_comes_back_field_by_field(layered: Layered) -> None:
    given = WorkflowState.from_json(FULL)
    saved = layered.checkpoints.save_checkpoint(given, THREE, 1)
    assert given.checkpoint_id == saved.id
    again = LayerCheckpoints(layered.store).load(saved.id).state
    for item in fields(WorkflowState):
        assert getattr(again, item.name) == {**FULL, "checkpoint_id": saved.id}[item.name], item.name
    result = layered.resume(saved.id)
    assert (result.status, layered.ran, result.workflow_id) == ("completed", ["c", "d"], "wf")
    after = result.state
    assert after.tasks[:2] == FULL["tasks"]
    assert ids(after.tasks) == ["a", "b", "c", "d"]
    assert (after.messages[:3], after.messages[3:]) == (FULL["messages"], ["c says", "d says"])
    assert after.decisions == FULL["decisions"]
    assert after.context == {**FULL["context"], "c": 2, "d": 1, "last": "d"}  # type: ignore[dict-item]


def test_case_29_a_long_state_comes_back_and_its_tasks_read_it(layered: Layered) -> None:
    long = "x" * 40_000
    given = state(
        messages=[f"{n} {'m' * 500}" for n in range(200)],
        tasks=[*done("b"), {**done("a")[0], "result": {"text": long}}],
        context={"long": long, "looks": {"$blob": "like a reference"}},
    )
    saved = layered.checkpoints.save_checkpoint(given, THREE, 1)
    seen: dict[str, Any] = {}
    layered.meanwhile = lambda call: seen.update({call.id: (call.inputs, dict(call.context))})
    result = layered.resume(saved.id)
    assert seen["c"] == ({"a": {"text": long}, "b": "b"}, given.context)
    assert (result.state.messages[:200], result.results["a"]) == (given.messages, {"text": long})


def test_case_30_from_the_third_of_five_layers_the_last_two_run(layered: Layered) -> None:
    layered.execute(chain(5))
    third = layered.saved()[2]
    result = layered.resume(third)
    assert layered.ran == ["t4", "t5"]
    assert [event["layerIndex"] for event in layered.told("layer_start")] == [3, 4]
    assert ids(result.state.tasks) == ["t1", "t2", "t3", "t4", "t5"]
    assert (result.status, result.layer_index, len(layered.saved())) == ("completed", 5, 2)


def test_case_32_only_the_failed_task_and_what_it_blocked_run_again(layered: Layered) -> None:
    plan = dag("t0:", "t1: t0", "t2: t0", "u1: t1", "u2: t2", "v2: u2")
    layered.bad = {"t2": "no luck"}
    result = layered.execute(plan)
    assert (result.status, dict(result.failed), result.blocked) == (
        "failed",
        {"t2": "ValueError: no luck"},
        ["u2", "v2"],
    )
    assert sorted(layered.ran) == ["t0", "t1", "t2", "u1"]
    assert layered.told("workflow_complete")[0]["failedTasks"] == 3
    layered.bad = {}
    latest = layered.latest(result.run_id)
    assert (latest.layer_index, latest.id) == (1, result.checkpoint_id)
    result = layered.resume(latest.id)
    assert (result.status, layered.ran, result.layer_index) == ("completed", ["t2", "u2", "v2"], 4)
    assert result.failed == {}


def test_case_33_a_task_that_is_safe_to_fail_is_a_warning(layered: Layered) -> None:
    plan = dag("a:", "s: a", "b: s", "c: b", s={"safeToFail": True})
    layered.bad = {"s": "sandbox", "c": "crash"}
    result = layered.execute(plan)
    assert [(event["taskId"], event["error"]) for event in layered.told("task_warning")] == [
        ("s", "ValueError: sandbox")
    ]
    assert (layered.ran, result.results["s"], list(result.failed)) == (["a", "s", "b", "c"], None, ["c"])
    layered.bad["b"] = ""
    result = layered.resume(result.run_id)
    assert (layered.ran, list(result.failed)) == (["c"], ["c"])
    layered.bad = {}
    assert layered.resume(result.run_id).status == "completed"
    assert [(task["taskId"], task["status"]) for task in result.state.tasks if task["status"] == "failed_safe"] == [
        ("s", "failed_safe")
    ]
    # One that is met only after the resume is a warning too.
    layered.bad = {"s": "sandbox"}
    saved = layered.checkpoints.save_checkpoint(state(tasks=done("a")), plan, 1)
    assert layered.resume(saved.id).status == "completed"
    assert len(layered.told("task_warning")) == 1


def test_case_36_a_layer_added_at_the_end_is_a_warning_and_runs(layered: Layered) -> None:
    checkpoint = layered.execute(chain(3)).checkpoint_id
    assert checkpoint
    result = layered.resume(checkpoint, chain(4))
    assert (result.status, layered.ran, result.layers) == ("completed", ["t4"], 4)
    assert any("step t4 is new" in text for text in result.warnings)
    assert [text for text in (event["message"] for event in layered.told("warning")) if "t4" in text]


def test_case_36_a_completed_task_removed_is_a_warning_and_its_cost_stays(layered: Layered) -> None:
    model = ScriptedModel(lambda request: "x", model_id="claude-sonnet-5-5", paid=True)
    layered.bad = {"d": "crash"}

    def ask(call: Any) -> None:
        call.ask(Request("claude-sonnet-5-5", [Message("user", call.id)], max_tokens=10))

    layered.meanwhile = ask
    before = layered.execute(dag("a:", "b:", "d: a"), model=model)
    layered.bad = {}
    result = layered.resume(before.run_id, dag("a:", "d: a"), model=model)
    assert (result.status, layered.ran) == ("completed", ["d"])
    assert any("b is gone" in text for text in result.warnings)
    # What the task that crashed had asked is heard again; what the removed one cost stays.
    assert (result.spent.calls, model.calls) == (3, 3)
    assert result.spent.usd == before.spent.usd


def test_case_36_changed_arguments_of_a_completed_task_are_refused_naming_tasks_and_cost(layered: Layered) -> None:
    model = ScriptedModel(lambda request: "x", model_id="claude-sonnet-5-5", paid=True)
    layered.meanwhile = lambda call: call.ask(Request("claude-sonnet-5-5", [Message("user", call.id)], max_tokens=10))
    layered.bad = {"d": "crash"}
    before = layered.execute(THREE, model=model)
    layered.bad = {}
    changed = dag("a:", "b:", "c: a b", "d: c", b={"arguments": {"name": "other"}})
    with pytest.raises(SettingsConflict) as refused:
        layered.resume(before.run_id, changed, model=model)
    assert layered.ran == []
    cost = sum(spend.usd for key, spend in load(layered.store, before.run_id).spend.items() if key.step in ("b", "c"))
    assert "b does something else now" in str(refused.value)
    assert (refused.value.code, refused.value.data["tasks"]) == ("repeats_finished_tasks", ["b", "c"])
    assert refused.value.data["usd"] == str(cost)
    assert "accept_changes" in refused.value.hint
    result = layered.resume(before.run_id, changed, model=model, accept_changes=True)
    assert (result.status, layered.ran, result.results["b"]["of"]) == ("completed", ["b", "c", "d"], "other")
    # Of a task that has not run, arguments may change.
    layered.bad = {"d": "crash"}
    run = layered.execute(THREE, model=model).run_id
    layered.bad = {}
    result = layered.resume(run, dag("a:", "b:", "c: a b", "d: c", d={"arguments": {"name": "new"}}), model=model)
    assert (layered.ran, result.results["d"]["of"]) == (["d"], "new")
