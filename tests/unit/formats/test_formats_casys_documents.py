"""DAGs and states of layered runs: what is read, what is refused and how it is named, layers, the graph of a DAG."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import Dag, WorkflowState
from pipeline.errors import GraphError, InvalidValue
from pipeline.formats.casys.dag import DagTask
from pipeline.formats.casys.plan import START, dag_of, gates_of, graph_of, parallel_of
from pipeline.graph.model import Graph
from pipeline.graph.validation import validate
from tests.codes import coded
from tests.layered import THREE, chain, dag

#: Names of a task with values that they cannot have.
WRONG: list[dict[str, Any]] = [
    {"arguments": []}, {"depends_on": "b"}, {"tool": 3}, {"effect": "magic"}, {"version": True}, {"safe_to_fail": 1},
    {"run": 3},
]  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "code", "named"),
    [
        (dag("a:", "b: a z y"), "unknown_dependency", "b"),
        (dag("a: c", "b: a", "c: b", "d:"), "dependency_cycle", ["a", "b", "c"]),
        (dag("a: a"), "dependency_cycle", ["a"]),
        (dag("a:", "b:", "a:"), "duplicate_task", "a"),
        ({"tasks": []}, "empty_dag", None),
        ({}, "invalid_dag", None),
        ("tasks", "invalid_dag", None),
        (["a"], "invalid_task", None),
        ([{"tool": "t"}], "invalid_task", None),
        ([{"id": 3}], "invalid_task", None),
        *(([{"id": name}], "invalid_task", name) for name in ("", "a/b", "a#1", "a->b", "@start")),
        *(([{"id": "a", **wrong}], "invalid_task", "a") for wrong in WRONG),
    ],
)
def test_dag_that_cannot_be_run_is_refused_naming_the_task(tasks: Any, code: str, named: Any) -> None:
    with pytest.raises(GraphError) as refused:
        Dag(tasks)
    assert refused.value.code == code
    assert refused.value.data.get("tasks", refused.value.data.get("task")) == named


def test_dag_reads_both_spellings_and_keeps_what_it_does_not_know() -> None:
    read = Dag([
        {"id": "a", "run": "fetch", "type": "code"},
        {"id": "b", "dependsOn": ["a", "a"], "safeToFail": True, "arguments": {"n": 1}},
    ])  # fmt: skip
    assert read.tasks["a"] == DagTask("a", "fetch", extra={"type": "code"})
    assert read.tasks["b"] == DagTask("b", "b", {"n": 1}, ("a",), safe_to_fail=True)
    assert read.to_json()["tasks"][1] == {
        "id": "b", "tool": "b", "arguments": {"n": 1}, "depends_on": ["a"], "safe_to_fail": True,
    }  # fmt: skip
    assert Dag(read.to_json()) == read


def test_layers_stand_one_behind_the_last_dependency() -> None:
    read = Dag(dag("d: c", "a:", "b:", "c: a b", "e: a", "f: a d"))
    assert read.layers == [["a", "b"], ["c", "e"], ["d"], ["f"]]
    assert read.layers_done([]) == 0
    assert read.layers_done(["a", "b", "e"]) == 1
    assert read.layers_done("abcdef") == 4
    assert read.layers_done("cdef") == 0
    assert sorted(read.behind(["c"])) == ["d", "f"]
    # No recursion.
    assert len(Dag(chain(5000)).layers) == 5000


@pytest.mark.parametrize("gates", [[], ["human"], ["agent", "human"]])
def test_graph_of_a_dag_can_be_run_and_read_back(gates: list[str]) -> None:
    read = Dag(THREE)
    graph = graph_of(read, gates, 7)
    validate(graph)
    again = Graph.from_json(graph.to_json())
    assert dag_of(again) == read
    assert (gates_of(again), parallel_of(again), again.start) == (gates, 7, START)
    if not gates:
        assert [edge.source for edge in graph.incoming("c")] == ["a", "b"]
    else:
        # Every task waits for the gate before its layer, every gate for all tasks of its own.
        assert [edge.source for edge in graph.incoming("d")] == ["c", f"@{gates[-1]}-1"]
        assert [edge.source for edge in graph.incoming(f"@{gates[0]}-0")] == ["a", "b"]


@st.composite
def dags(draw: st.DrawFn) -> dict[str, Any]:
    """Random DAGs whose tasks stand in a random order."""
    count = draw(st.integers(1, 9))
    lines = []
    for number in range(count):
        needs = draw(st.lists(st.integers(0, number - 1), unique=True, max_size=3)) if number else []
        lines.append(f"t{number}: {' '.join(f't{need}' for need in needs)}")
    return dag(*draw(st.permutations(lines)))


@given(dags())
def test_layers_law_every_task_stands_behind_what_it_needs(tasks: dict[str, Any]) -> None:
    read = Dag(tasks)
    for task in read.tasks.values():
        needs = [read.layer_of[name] for name in task.depends_on]
        assert read.layer_of[task.id] == max(needs, default=-1) + 1
    assert sorted(name for layer in read.layers for name in layer) == sorted(read.tasks)
    validate(graph_of(read, ["human"]))


TASK = {"taskId": "a", "result": {"x": 1}, "timestamp": "2026-01-09T14:30:22Z", "duration": 3, "status": "success"}
FIELDS = ["workflow_id", "messages", "tasks", "decisions", "context"]


def test_state_reducers_append_lists_merge_the_context_and_keep_the_workflow() -> None:
    first = WorkflowState("wf").updated(messages=["m"], tasks=[TASK], context={"a": {"deep": 1}, "b": 2})
    second = first.updated(messages=["n"], decisions=["d"], context={"a": {"other": 2}}, workflow_id="wf")
    assert (second.messages, second.tasks, second.decisions) == (["m", "n"], [TASK], ["d"])
    assert second.context == {"a": {"other": 2}, "b": 2}
    assert (first.messages, first.context["b"], first.decisions) == (["m"], 2, [])
    with pytest.raises(InvalidValue, check=coded("other_workflow")):
        first.updated(workflow_id="other")
    with pytest.raises(InvalidValue, check=coded("other_workflow")):
        first.workflow_id = "other"


def test_state_document_has_the_names_of_its_system_and_is_a_copy() -> None:
    state = WorkflowState("wf", context={"a": [1]})
    document = state.to_json()
    assert list(document) == [*FIELDS, "checkpoint_id"]
    document["context"]["a"].append(2)
    assert state.context == {"a": [1]}
    assert WorkflowState.from_json(state.to_json()) == state


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(({name: ...}, f"{name} is missing") for name in FIELDS),
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
        WorkflowState.from_json({name: value for name, value in document.items() if value is not ...})
    assert said in str(refused.value)


def test_results_are_the_newest_that_stand() -> None:
    tasks = [{**TASK, "status": "error"}, {**TASK, "result": 1}, {**TASK, "taskId": "b", "status": "failed_safe"},
             {**TASK, "result": 2}, {**TASK, "taskId": "c", "status": "error"}]  # fmt: skip
    assert WorkflowState("wf", tasks=tasks).results() == {"a": 2, "b": {"x": 1}}
