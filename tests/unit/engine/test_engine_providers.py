"""Trouble at the provider: what stops the run at once, what all workers wait for, what is tried again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.engine.events import Emitter
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.retry import CoolDown, RetryPolicy, retrying
from pipeline.engine.step import StepContext, step
from pipeline.engine.stop import Stop
from pipeline.errors import ModelError, ModelRejected, ModelUnavailable, Pause, SpendLimit
from pipeline.llm.base import Reply, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.unit.engine.saying import ask, facts

ITEMS = 6


@step()
def go(ctx: StepContext) -> Mapping[str, Any]:
    return {"all": list(ctx.map("item", range(ITEMS), lambda c, i: c.ask(ask(f"item {i}")).text, key=str))}


MANY = Pipeline("many", [go])


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (SpendLimit("The account's limit is reached.", status=429), "paused_spend_limit"),
        (ModelRejected("The key is wrong.", status=401, stops_run=True), None),
        (ModelRejected("There is no such model.", status=404, stops_run=True), None),
    ],
)
def test_trouble_of_the_account_stops_the_run_at_once_and_the_next_resume_goes_on(
    store: MemoryStore, error: ModelError, detail: str | None
) -> None:
    model = ScriptedModel(["fine", "fine", error])
    result = MANY.run(store=store, model=model, options={"concurrency": 1})
    assert model.calls == 3, "no other item was tried"
    assert (result.status, result.detail) == ("in_progress" if detail else "failed", detail)
    assert result.exit_code == 4
    assert result.error is error
    mended = ScriptedModel(lambda request: "fine")
    again = MANY.resume(result.run_id, store=store, model=mended)
    assert again.status == "completed"
    assert mended.calls == ITEMS - 2


def test_request_that_is_rejected_fails_its_item_and_no_other(store: MemoryStore) -> None:
    def answer(request: Request) -> str | ModelError:
        return ModelRejected("Too large.", status=413) if request.messages[0].text == "item 2" else "fine"

    model = ScriptedModel(answer)
    result = MANY.run(store=store, model=model)
    assert (result.status, result.exit_code, model.calls) == ("failed", 6, ITEMS)
    assert "item/2" in str(result.error)


@pytest.mark.parametrize("status", [429, 529])
def test_all_workers_wait_for_what_one_was_told(store: MemoryStore, status: int) -> None:
    clock = FakeClock()
    asked: list[float] = []
    lock = threading.Lock()

    def answer(request: Request) -> str | ModelError:
        with lock:
            asked.append(clock.monotonic())
            first = len(asked) == 1
        return ModelUnavailable("Slow down.", status=status, retry_after=40.0) if first else "fine"

    @step()
    def warmed(ctx: StepContext) -> Mapping[str, Any]:
        made = ctx.map("item", range(ITEMS), lambda c, i: c.ask(ask(f"item {i}")).text, key=str, warm=True)
        return {"all": list(made)}

    result = Pipeline("warm", [warmed]).run(store=store, model=ScriptedModel(answer), clock=clock)
    assert result.status == "completed"
    assert asked[0] == 0.0
    assert min(asked[1:]) >= 40.0
    assert len(asked) == ITEMS + 1
    assert len(facts(store, result.run_id, CallStarted)) == ITEMS + 1, "one record a request: nothing else tries again"


@pytest.mark.parametrize(("status", "own", "shared"), [(429, 0.0, 40.0), (529, 0.0, 40.0), (500, 40.0, 40.0)])
def test_wait_after_a_rate_limit_is_everybodys_and_any_other_is_the_calls_own(
    status: int, own: float, shared: float
) -> None:
    clock = FakeClock()
    stop = Stop(clock)
    cool_down = CoolDown(clock, stop, Emitter(clock))
    times: list[float] = []

    def attempt() -> None:
        times.append(clock.monotonic())
        cool_down.wait()
        times.append(clock.monotonic())
        if len(times) == 2:
            raise ModelUnavailable("Not now.", status=status, retry_after=40.0)

    retrying(RetryPolicy(), 0, cool_down, stop, lambda: 0)(attempt)
    assert times == [0.0, 0.0, own, shared]


def test_overload_is_waited_for_as_asked_at_first_and_longer_where_it_lasts() -> None:
    def waits(status: int, **more: Any) -> list[float]:
        return [RetryPolicy().wait(ModelUnavailable("busy", status=status, **more), n) for n in range(1, 8)]

    assert waits(529, retry_after=1.0) == [1, 1, 1, 8, 16, 32, 60]
    assert waits(529, retry_after=0.0) == waits(529) == [1, 2, 4, 8, 16, 32, 60]
    assert waits(429, retry_after=1.0) == [1] * 7


@pytest.mark.parametrize(
    ("status", "others", "tries"), [(429, True, 21), (529, True, 21), (429, False, 8), (500, True, 8)]
)
def test_call_that_a_busy_provider_refuses_while_it_answers_others_is_not_given_up(
    status: int, others: bool, tries: int
) -> None:
    clock = FakeClock()
    stop = Stop(clock)
    asked = 0

    def attempt() -> None:
        nonlocal asked
        asked += 1
        if asked <= 20:
            raise ModelUnavailable("Not now.", status=status, retry_after=1.0)

    loop = retrying(RetryPolicy(), 0, CoolDown(clock, stop, Emitter(clock)), stop, lambda: asked if others else 0)
    if tries > 20:
        loop(attempt)
    else:
        with pytest.raises(Pause, match="8 tries failed"):
            loop(attempt)
    assert asked == tries


def test_call_that_is_refused_a_thousand_times_while_others_are_answered_ends(store: MemoryStore) -> None:
    refused = 0

    class Busy(ScriptedModel):
        """Refuses one question and answers another, in turns."""

        def complete(self, request: Request) -> Reply:
            nonlocal refused
            if request.messages[0].text == "slow" and refused < 1100:
                refused += 1
                running.caller.pace.answers += 1
                raise ModelUnavailable("Slow down.", status=429, retry_after=1.0)
            return super().complete(request)

    running: Any = None

    @step()
    def patient(ctx: StepContext) -> Mapping[str, Any]:
        nonlocal running
        running = ctx._running
        return {"v": ctx.ask(ask("slow")).text}

    result = Pipeline("patient", [patient]).run(store=store, model=Busy(lambda _: "fine"), clock=FakeClock())
    assert (result.status, refused) == ("completed", 1100)
    # Each of them is in the ledger.
    assert len(facts(store, result.run_id, CallStarted)) == len(facts(store, result.run_id, CallEnded)) == 1101


def test_interrupt_ends_a_long_wait(store: MemoryStore) -> None:
    assert threading.current_thread() is threading.main_thread(), "signals reach the main thread only"

    class Interrupted(FakeClock):
        """A real signal comes while the run waits."""

        def wait(self, event: threading.Event, seconds: float) -> bool:
            self.waits.append(seconds)
            os.kill(os.getpid(), signal.SIGINT)
            return event.wait(30)

    clock = Interrupted()
    pipeline = Pipeline("patient", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})])
    model = ScriptedModel([ModelUnavailable("Slow down.", status=429, retry_after=600.0), "fine"])
    result = pipeline.run(store=store, model=model, clock=clock)
    assert (result.detail, result.exit_code, model.calls, clock.waits) == ("interrupted", 130, 1, [600.0])
    assert pipeline.resume(result.run_id, store=store, model=model).outputs["go"] == {"v": "fine"}


def test_errors_count_towards_the_limit_of_tries_over_all_resumes(store: MemoryStore) -> None:
    @step()
    def stubborn(ctx: StepContext) -> Mapping[str, Any]:
        return {"v": ctx.ask(ask("x")).text}

    pipeline = Pipeline("stubborn", [stubborn])
    model = ScriptedModel(lambda request: ModelUnavailable("Overloaded.", status=500))
    result = pipeline.run(store=store, model=model, clock=FakeClock())
    assert (result.detail, result.exit_code, model.calls) == ("paused_rate_limit", 4, 8)
    again = pipeline.resume(result.run_id, store=store, model=model, clock=FakeClock())
    assert (again.detail, model.calls) == ("paused_rate_limit", 9)
    ends = facts(store, result.run_id, CallEnded)
    assert len(ends) == 9
    assert all(end.error["status"] == 500 for end in ends)
