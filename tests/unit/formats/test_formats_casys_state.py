"""WorkflowState: reducers, what is refused, its document."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline import WorkflowState
from pipeline.errors import InvalidValue
from tests.codes import coded

NAMES = ["workflow_id", "messages", "tasks", "decisions", "context", "checkpoint_id"]
TASK = {"taskId": "a", "result": {"x": 1}, "timestamp": "2026-01-09T14:30:22Z", "duration": 3, "status": "success"}


def test_state_reducers_append_lists_and_merge_the_context() -> None:
    first = WorkflowState("wf").updated(messages=["m"], tasks=[TASK], context={"a": {"deep": 1}, "b": 2})
    second = first.updated(messages=["n"], decisions=["d"], context={"a": {"other": 2}})
    assert second.messages == ["m", "n"]
    assert (second.tasks, second.decisions) == ([TASK], ["d"])
    assert second.context == {"a": {"other": 2}, "b": 2}
    assert (first.messages, first.context["b"], first.decisions) == (["m"], 2, [])


def test_state_belongs_to_one_run_for_ever() -> None:
    state = WorkflowState("wf")
    assert state.updated(workflow_id="wf") == state
    with pytest.raises(InvalidValue, check=coded("other_workflow")):
        state.updated(workflow_id="other")
    with pytest.raises(InvalidValue, check=coded("other_workflow")):
        state.workflow_id = "other"


def test_state_document_has_the_names_of_its_system_and_is_a_copy() -> None:
    state = WorkflowState("wf", context={"a": [1]})
    document = state.to_json()
    assert list(document) == NAMES
    document["context"]["a"].append(2)
    assert state.context == {"a": [1]}
    assert WorkflowState.from_json(state.to_json()) == state


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workflow_id": ""}, "workflow_id is empty"),
        ({"workflow_id": 3}, "workflow_id"),
        ({"messages": {}}, "messages is not a list"),
        ({"decisions": None}, "decisions is not a list"),
        ({"context": []}, "context is not an object"),
        ({"checkpoint_id": 3}, "checkpoint_id"),
        ({"tasks": ["a"]}, "tasks[0] is not an object"),
        ({"tasks": [TASK, {"taskId": ""}]}, "tasks[1].taskId"),
        ({"tasks": [{"taskId": "a"}]}, "tasks[0].result is missing"),
        ({"tasks": [{**TASK, "status": 1}]}, "tasks[0].status"),
    ],
)
def test_state_that_is_none_is_refused_naming_the_field(change: dict[str, Any], said: str) -> None:
    document = {**WorkflowState("wf").to_json(), **change}
    with pytest.raises(InvalidValue) as refused:
        WorkflowState.from_json(document)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_state_without_a_field_is_refused(name: str) -> None:
    document = WorkflowState("wf").to_json()
    del document[name]
    with pytest.raises(InvalidValue, match=f"{name} is missing"):
        WorkflowState.from_json(document)


def test_results_are_the_newest_that_stand() -> None:
    tasks = [{**TASK, "status": "error"}, {**TASK, "result": 1}, {**TASK, "taskId": "b", "status": "failed_safe"},
             {**TASK, "result": 2}, {**TASK, "taskId": "c", "status": "error"}]  # fmt: skip
    assert WorkflowState("wf", tasks=tasks).results() == {"a": 2, "b": {"x": 1}}
