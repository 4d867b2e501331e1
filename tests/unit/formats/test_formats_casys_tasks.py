"""Tasks and gates of layered runs: what tools get and give, who answers a gate, states saved by hand."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pipeline import ControlledExecutor, TaskResult
from pipeline.clock import SystemClock
from pipeline.engine.people import Answer, Question
from pipeline.errors import ConfigError
from pipeline.store.memory import MemoryStore
from tests.codes import coded
from tests.layered import THREE, Killed, Layered, chain, dag, done, state


@pytest.fixture
def layered() -> Layered:
    return Layered(MemoryStore(SystemClock()))


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


def test_later_task_in_declaration_wins_a_context_key() -> None:
    order = threading.Event()

    def tool(call: Any) -> Any:
        # The later task ends first.
        if call.id == "a":
            order.wait(60)
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
        assert ended.wait(60)

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
        full.acquire(timeout=60)
        with lock:
            running[0] -= 1

    plan = [{"id": f"t{n}", "tool": "t"} for n in range(9)]
    result = ControlledExecutor(plan, {"t": tool}, config={"maxParallel": 3}).execute()
    assert (result.status, most) == ("completed", [3])


def test_task_that_takes_longer_than_its_timeout_fails() -> None:
    never = threading.Event()
    plan = [{"id": "a", "tool": "hang"}, {"id": "b", "tool": "t"}]
    tools = {"hang": lambda call: never.wait(60), "t": lambda call: call.config["timeout"]}
    result = ControlledExecutor(plan, tools, config={"timeout": 2}).execute()
    never.set()
    assert dict(result.failed) == {"a": "It took longer than its timeout of 2 s."}
    assert result.results["b"] == 2


def test_timeout_of_a_tools_own_is_told_as_it_is() -> None:
    def tool(call: Any) -> None:
        raise TimeoutError("the server was slow")

    result = ControlledExecutor([{"id": "a", "tool": "t"}], {"t": tool}, config={"timeout": 60}).execute()
    assert dict(result.failed) == {"a": "TimeoutError: the server was slow"}


# --- gates ---


def test_gate_takes_the_words_people_use(layered: Layered) -> None:
    yes: list[Any] = [True, "Approved ", "yes", Answer("approve", "fine", "Ann")]
    for said in [*yes, False, "NO", "rejected"]:
        outcome = "approve" if said in yes else "reject"
        result = layered.execute(chain(1), hil=lambda question, said=said: said)
        assert result.status == ("completed" if outcome == "approve" else "aborted")
        (decision,) = result.state.decisions
        assert (decision["kind"], decision["layer_index"], decision["outcome"]) == ("human", 0, outcome)
        assert decision["by"] == (said.by if isinstance(said, Answer) else "human")


def test_gate_is_told_of_and_saved_before_it_is_asked(layered: Layered) -> None:
    order: list[str] = []

    def look(question: Question) -> bool:
        told = [event["type"] for event in layered.events]
        order.extend(kind for kind in told if kind in ("checkpoint_saved", "decision_required"))
        latest = layered.latest(question.run)
        order.append(str(latest.layer_index))
        return True

    layered.execute(chain(1), hil=look)
    assert order == ["checkpoint_saved", "decision_required", "1"]


def test_gate_shows_results_and_long_ones_by_their_hash(layered: Layered) -> None:
    shown: list[Question] = []

    def look(question: Question) -> bool:
        shown.append(question)
        return True

    plan = [{"id": "a", "run": lambda call: "short"}, {"id": "b", "run": lambda call: "long " * 1000}]
    layered.execute(plan, hil=look)
    assert shown[0].text == "Layer 1 is done. Approve it?"
    assert shown[0].choices == ["approve", "reject"]
    assert shown[0].shown["results"]["a"] == "short"
    assert set(shown[0].shown["results"]["b"]) == {"bytes", "sha256"}


def test_gate_that_is_answered_otherwise_is_not_passed(layered: Layered) -> None:
    result = layered.execute(chain(2), hil=lambda question: "maybe")
    assert (result.status, layered.ran) == ("aborted", ["t1"])
    assert "'maybe'; it takes approve or reject" in str(result.error)
    assert layered.resume(result.run_id, hil=lambda question: True).status == "completed"


def test_gate_whose_decision_takes_too_long_aborts(layered: Layered) -> None:
    never = threading.Event()
    result = layered.execute(chain(2), hil=lambda question: never.wait(60), config={"decisionTimeout": 0.2})
    never.set()
    assert (result.status, layered.ran) == ("aborted", ["t1"])
    assert "no human decision came in time" in str(result.error)


def test_gate_may_be_answered_by_an_interviewer(layered: Layered) -> None:
    class Desk:
        answer: Answer | None = None

        def ask(self, question: Question) -> Answer | None:
            return self.answer

    desk = Desk()
    result = layered.execute(chain(2), ail=desk)
    assert (result.status, result.detail, layered.ran) == ("in_progress", "waiting_for_human", ["t1"])
    desk.answer = Answer("continue")
    assert layered.resume(result.run_id, ail=desk).status == "completed"


def test_gates_given_to_a_run_that_has_none_are_not_asked_and_that_is_said(layered: Layered) -> None:
    layered.bad = {"t2": "crash"}
    run = layered.execute(chain(2)).run_id
    layered.bad = {}
    result = layered.resume(run, hil=lambda question: False)
    assert result.status == "completed"
    assert any("began without human gates" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("tasks", "layers"), [(("a", "b"), [0, 1, 2]), (("a", "b", "c"), [1, 2]), (("a",), [0, 1, 2]), ((), [0, 1, 2])]
)
def test_gates_of_a_state_saved_by_hand_are_asked_from_its_last_layer_on(
    layered: Layered, tasks: tuple[str, ...], layers: list[int]
) -> None:
    asked: list[int] = []

    def human(question: Question) -> bool:
        asked.append(question.shown["layer_index"])
        return True

    saved = layered.checkpoints.save_checkpoint(state(tasks=done(*tasks)), THREE, 0)
    result = layered.resume(saved.id, hil=human)
    assert (result.status, asked) == ("completed", layers)
    assert sorted(layered.ran) == sorted({"a", "b", "c", "d"} - set(tasks))


def test_state_saved_by_hand_may_be_gone_back_to(layered: Layered) -> None:
    saved = layered.checkpoints.save_checkpoint(state(tasks=done("a", "b"), messages=["m"]), THREE, 1)
    layered.bad = {"d": "crash"}
    layered.resume(saved.id)
    assert layered.ran == ["c", "d"]
    layered.bad = {}
    # By its own id: what came after it is made again.
    back = layered.resume(saved.id)
    assert (back.status, layered.ran) == ("completed", ["c", "d"])
    assert any("repeated: c" in text for text in back.warnings)


def test_state_saved_by_hand_is_gone_on_from_twice_without_repeating_anything(layered: Layered) -> None:
    def die(call: Any) -> None:
        if call.id == "t3":
            raise Killed

    plan = dag("t1:", "t2: t1", "t3: t1", "t4: t2 t3")
    saved = layered.checkpoints.save_checkpoint(state(tasks=done("t1")), plan, 1, {"maxParallel": 1})
    layered.meanwhile = die
    with pytest.raises(Killed):
        layered.resume(saved.id)
    assert layered.ran == ["t2", "t3"]
    layered.meanwhile = lambda call: None
    assert (layered.resume(saved.id).status, layered.ran) == ("completed", ["t3", "t4"])
