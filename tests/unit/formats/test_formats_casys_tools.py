"""What tools get and give: arguments, inputs, context, results, timeouts; which tasks run at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pipeline import ControlledExecutor, TaskResult
from pipeline.clock import SystemClock
from pipeline.errors import ConfigError
from pipeline.formats.casys.dag import DagTask
from pipeline.store.memory import MemoryStore
from tests.codes import coded
from tests.layered import Layered, dag


@pytest.fixture
def layered() -> Layered:
    return Layered(MemoryStore(SystemClock()))


def run(plan: Any, **tools: Any) -> Any:
    return ControlledExecutor(plan, tools).execute()


def test_tool_gets_arguments_inputs_and_context() -> None:
    seen: dict[str, Any] = {}

    def note(call: Any) -> Any:
        seen[call.id] = (dict(call), call.tool, call.inputs, dict(call.context), call.extra, call.services)
        call.arguments["n"].append("only here")
        return TaskResult({"n": call["n"]}, context={call.id: True}) if call.id == "a" else call.get("missing", 7)

    plan = [
        {"id": "a", "tool": "note", "arguments": {"n": [1]}, "type": "code"},
        {"id": "b", "tool": "note", "arguments": {"n": [2]}, "depends_on": ["a"]},
    ]
    result = ControlledExecutor(plan, {"note": note}, services={"lent": 1}).execute({"x": "y"})
    assert seen["a"][:5] == ({"n": [1, "only here"]}, "note", {}, {"x": "y"}, {"type": "code"})
    assert seen["b"][2:4] == ({"a": {"n": [1, "only here"]}}, {"x": "y", "a": True})
    assert seen["a"][5]["lent"] == 1
    assert dict(result.results) == {"a": {"n": [1, "only here"]}, "b": 7}
    assert result.state.context == {"x": "y", "a": True}


def test_tools_may_be_functions_of_the_tasks() -> None:
    result = ControlledExecutor([DagTask("a", run=lambda call: 1), {"id": "b", "run": lambda call: 2}]).execute()
    assert dict(result.results) == {"a": 1, "b": 2}


def test_missing_tools_are_refused_before_anything_runs(layered: Layered) -> None:
    with pytest.raises(ConfigError, check=coded("missing_tool", tasks=["b", "c"])):
        layered.execute(dag("a:", "b: a", "c:", b={"tool": "nope"}, c={"tool": "fetch"}))
    assert list(layered.store.heads()) == []
    with pytest.raises(ConfigError, check=coded("no_dag")):
        ControlledExecutor().execute()


def test_missing_tool_on_a_resume_fails_its_task_only(layered: Layered) -> None:
    layered.bad = {"b": "crash"}
    run_id = layered.execute(dag("a:", "b: a", "c: a", b={"tool": "work"})).run_id
    result = ControlledExecutor(store=layered.store).resume_from_checkpoint(run_id)
    assert "needs the tool 'work', which the executor was not given" in result.failed["b"]
    layered.bad = {}
    assert layered.resume(run_id).status == "completed"


def test_value_that_is_no_json_fails_the_task_naming_the_key() -> None:
    result = run([{"id": "a", "tool": "t"}], t=lambda call: {"when": object()})
    assert "result.when" in result.failed["a"]


def test_later_task_in_declaration_wins_a_context_key() -> None:
    order = threading.Event()

    def tool(call: Any) -> Any:
        # The later task ends first.
        if call.id == "a":
            order.wait(5)
        else:
            order.set()
        return TaskResult(None, context={"k": call.id})

    plan = [{"id": "a", "tool": "t"}, {"id": "b", "tool": "t"}, {"id": "c", "tool": "see", "depends_on": ["b", "a"]}]
    result = ControlledExecutor(plan, {"t": tool, "see": lambda call: call.context["k"]}).execute()
    assert (result.results["c"], result.state.context) == ("b", {"k": "b"})


def test_task_runs_as_soon_as_its_inputs_are_there() -> None:
    ended = threading.Event()

    def slow(call: Any) -> None:
        # Waits for a task of a later layer, which needs only the quick one.
        assert ended.wait(10)

    plan = [
        {"id": "slow", "tool": "slow"},
        {"id": "quick", "tool": "t"},
        {"id": "next", "tool": "end", "depends_on": ["quick"]},
    ]
    result = ControlledExecutor(plan, {"slow": slow, "t": lambda call: 1, "end": lambda call: ended.set()}).execute()
    assert result.status == "completed"


def test_as_many_tasks_run_at_once_as_the_settings_say() -> None:
    lock, running, most = threading.Lock(), [0], [0]
    full = threading.Semaphore(0)

    def tool(call: Any) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 3:
                full.release(9)
        full.acquire(timeout=10)
        with lock:
            running[0] -= 1

    plan = [{"id": f"t{n}", "tool": "t"} for n in range(9)]
    result = ControlledExecutor(plan, {"t": tool}, config={"maxParallel": 3}).execute()
    assert (result.status, most) == ("completed", [3])


def test_task_that_takes_longer_than_its_timeout_fails() -> None:
    never = threading.Event()
    plan = [{"id": "a", "tool": "hang"}, {"id": "b", "tool": "t"}]
    tools = {"hang": lambda call: never.wait(60), "t": lambda call: call.config["timeout"]}
    result = ControlledExecutor(plan, tools, config={"timeout": 0.2}).execute()
    never.set()
    assert dict(result.failed) == {"a": "It took longer than its timeout of 0.2 s."}
    assert result.results["b"] == 0.2


def test_timeout_of_a_tools_own_is_told_as_it_is() -> None:
    def tool(call: Any) -> None:
        raise TimeoutError("the server was slow")

    result = ControlledExecutor([{"id": "a", "tool": "t"}], {"t": tool}, config={"timeout": 60}).execute()
    assert dict(result.failed) == {"a": "TimeoutError: the server was slow"}
