"""Questions to people: put once, answered for good, or by default in the end; what a body may know of how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline import Answer, Pipeline, Question, ScriptedModel, StepContext, step
from pipeline.clock import SystemClock
from pipeline.engine.amendment import amend
from pipeline.records.kinds import Decision, DecisionAsked, Fact
from pipeline.records.run import RunState
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.unit.engine.saying import ask, facts, go


def gate(ctx: StepContext) -> dict[str, Any]:
    answer = ctx.ask_person("Ship it?", ["yes", "no"], {"version": 3})
    return {"choice": answer.choice, "by": answer.by}


def patient(ctx: StepContext) -> dict[str, Any]:
    answer = ctx.ask_person("Go on?", ["yes", "no"], seconds=60, otherwise="no")
    return {"choice": answer.choice, "by": answer.by}


EMPTY = {name: step(name)(lambda ctx: {}) for name in ("fan", "slow", "after")}
GATED = Pipeline(
    "gated", [EMPTY["fan"], step("gate")(gate), EMPTY["slow"], EMPTY["after"]],
    edges=[("fan", "gate"), ("fan", "slow"), ("gate", "after")],
)  # fmt: skip
PATIENT = Pipeline("patient", [step("gate")(patient)])


def test_a_gate_that_nobody_answers_waits_while_the_other_branches_run_on(store: MemoryStore) -> None:
    result = go(GATED, store)
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "waiting_for_human", 8)
    state = load(store, result.run_id)
    assert state.steps["slow#1"].status == "completed"
    assert "after#1" not in state.steps
    asked = state.questions["gate#1"]
    assert (asked.choices, asked.shown["text"]) == (["yes", "no"], "Ship it?")
    assert go(GATED, store, result.run_id).exit_code == 8
    assert load(store, result.run_id).questions["gate#1"].seq == asked.seq

    def answer(state: RunState) -> Sequence[Fact]:
        return [Decision("gate#1", state.questions["gate#1"].question, "no", "Ann")]

    assert not amend(store, result.run_id, SystemClock(), answer).questions
    done = go(GATED, store, result.run_id)
    assert (done.status, done.outputs["gate"]) == ("completed", {"choice": "no", "by": "Ann"})


def test_a_question_nobody_answers_waits_until_its_time_is_over(store: MemoryStore) -> None:
    clock, run = FakeClock(), ""
    for seconds in (0, 59):
        clock.advance(seconds)
        waiting = go(PATIENT, store, run, clock=clock)
        assert (waiting.status, waiting.detail) == ("in_progress", "waiting_for_human")
        run = waiting.run_id
    clock.advance(1)
    last = go(PATIENT, store, run, clock=clock)
    assert (last.status, last.outputs["gate"]) == ("completed", {"choice": "no", "by": "timeout"})
    assert len(facts(store, run, DecisionAsked)) == 1


def test_who_asks_knows_how_long_to_wait_its_answer_is_recorded_and_where_it_waits_in_vain_the_default_counts(
    store: MemoryStore,
) -> None:
    clock, asked = FakeClock(), list[Question]()

    class Person:
        def __init__(self, answer: Answer | None) -> None:
            self.answer = answer

        def ask(self, question: Question) -> Answer | None:
            asked.append(question)
            clock.advance(0 if self.answer else question.seconds or 0)
            return self.answer

    def asking(answer: Answer | None) -> dict[str, Any]:
        result = go(PATIENT, store, clock=clock, setup={"services": {"interviewer": Person(answer)}})
        assert load(store, result.run_id).decisions["gate#1", asked[-1].hash].by == result.outputs["gate"]["by"]
        return dict(result.outputs["gate"])

    assert asking(Answer("yes", by="ann")) == {"choice": "yes", "by": "ann"}
    assert asking(None) == {"choice": "no", "by": "timeout"}
    assert [question.seconds for question in asked] == [60, 60]


def test_a_body_knows_whether_its_question_was_answered_before_it_died(store: MemoryStore) -> None:
    told: list[tuple[bool, bool, int]] = []

    def body(ctx: StepContext) -> dict[str, Any]:
        told.append((ctx.answered(ask("one")), ctx.answered(ask("two")), ctx.place.resumed_at))
        ctx.ask(ask("one"))
        if len(told) == 1:
            ctx.stop("here")
        return {}

    model, what = ScriptedModel(["1"]), Pipeline("p", [step("a")(body)])
    run = what.run(store=store, model=model).run_id
    assert what.resume(run, store=store, model=model).status == "completed"
    assert model.calls == 1
    assert [row[:2] for row in told] == [(False, False), (True, False)]
    assert told[0][2] == 0 < told[1][2]
