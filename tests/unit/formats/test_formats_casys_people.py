"""Gates behind layers: who answers, in what words and time, and where they stand for states saved by hand."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.engine.people import Answer, Question
from pipeline.store.memory import MemoryStore
from tests.layered import THREE, Layered, chain, dag, done, facts, state


@pytest.fixture
def layered() -> Layered:
    return Layered(MemoryStore(SystemClock()))


@pytest.mark.parametrize(
    ("said", "outcome"),
    [(True, "approve"), ("Approved ", "approve"), ("yes", "approve"), (Answer("approve", "fine", "Ann"), "approve"),
     (False, "reject"), ("NO", "reject"), ("rejected", "reject")],
)  # fmt: skip
def test_gate_takes_the_words_people_use(layered: Layered, said: Any, outcome: str) -> None:
    result = layered.execute(chain(1), hil=lambda question: said)
    assert result.status == ("completed" if outcome == "approve" else "aborted")
    (decision,) = result.state.decisions
    assert (decision["kind"], decision["layer_index"], decision["outcome"]) == ("human", 0, outcome)
    assert decision["by"] == (said.by if isinstance(said, Answer) else "human")


def test_gate_that_is_answered_otherwise_is_not_passed(layered: Layered) -> None:
    result = layered.execute(chain(2), hil=lambda question: "maybe")
    assert (result.status, layered.ran) == ("aborted", ["t1"])
    assert "'maybe'; it takes approve or reject" in str(result.error)
    assert layered.resume(result.run_id, hil=lambda question: True).status == "completed"


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


def test_gate_is_told_of_and_saved_before_it_is_asked(layered: Layered) -> None:
    order: list[str] = []

    def look(question: Question) -> bool:
        told = [event["type"] for event in layered.events]
        order.extend(kind for kind in told if kind in ("checkpoint_saved", "decision_required"))
        latest = layered.checkpoints.latest(question.run)
        assert latest is not None
        order.append(str(latest.layer_index))
        return True

    layered.execute(chain(1), hil=look)
    assert order == ["checkpoint_saved", "decision_required", "1"]


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


def test_gate_behind_a_failed_layer_is_not_reached(layered: Layered) -> None:
    layered.bad = {"b": "crash"}
    asked: list[Any] = []
    result = layered.execute(THREE, hil=asked.append)
    assert (result.status, asked, sorted(layered.ran)) == ("failed", [], ["a", "b"])


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
    # By its own id: what came after it is made again. By the run's: only what failed.
    back = layered.resume(saved.id)
    assert (back.status, layered.ran) == ("completed", ["c", "d"])
    assert any("repeated: c" in text for text in back.warnings)
    again = Layered(MemoryStore(SystemClock()))
    other = again.checkpoints.save_checkpoint(state(tasks=done("a", "b"), messages=["m"]), THREE, 1)
    again.bad = {"d": "crash"}
    run = again.resume(other.id).run_id
    again.bad = {}
    result = again.resume(run)
    assert (result.status, again.ran) == ("completed", ["d"])
    assert facts(result) == facts(back)


class Killed(BaseException):
    """Nobody catches it: the run is left as a kill leaves it."""


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
