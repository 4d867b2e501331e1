"""Paid calls: recorded, reused, cut off, refused; trouble at the provider, and how long it is waited for."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import Event, Pipeline, PriceBook, Reply, Request, RunResult, StepContext, step
from pipeline.engine.events import Emitter
from pipeline.engine.retry import CoolDown, RetryPolicy, retrying
from pipeline.engine.stop import Stop
from pipeline.errors import ModelError, ModelRejected, ModelUnavailable, Pause, SpendLimit, TaskRejected
from pipeline.llm.base import ModelInfo
from pipeline.llm.script import ScriptedModel
from pipeline.records.charge import TOKEN_KINDS
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.unit.engine.saying import ask, facts

ITEMS = 6


def one(request: Request | None = None) -> Pipeline:
    """A step that asks once."""
    asked = request or ask("x")
    return Pipeline("one", [step("go")(lambda ctx: {"v": ctx.ask(asked).text})])


def many(**more: Any) -> Pipeline:
    def body(ctx: StepContext) -> Any:
        made = ctx.map("item", range(ITEMS), lambda c, i: c.ask(ask(f"item {i}")).text, key=str, **more)
        return {"all": list(made)}

    return Pipeline("many", [step("go")(body)])


def test_ask_is_answered_from_the_record_on_resume(store: MemoryStore) -> None:
    model, crash = ScriptedModel(lambda request: request.messages[0].text.upper()), [True]

    def go(ctx: StepContext) -> Any:
        texts = [ctx.ask(ask("one")).text for _ in range(2)]
        if crash.pop() if crash else False:
            ctx.stop("crash")
        return {"texts": texts}

    pipeline = Pipeline("ask", [go])
    run = pipeline.run(store=store, model=model).run_id
    assert model.calls == 2
    assert pipeline.resume(run, store=store, model=model).outputs["go"] == {"texts": ["ONE", "ONE"]}
    assert model.calls == 2


def test_content_failure_closes_the_attempt_so_the_next_asks_again(store: MemoryStore) -> None:
    model = ScriptedModel(["bad", "good"])

    def body(ctx: StepContext, item: int) -> str:
        text = ctx.ask(ask("same prompt")).text
        if text == "bad":
            raise TaskRejected("bad")
        return text

    pipeline = Pipeline("again", [step("go")(lambda ctx: {"v": ctx.task("t", body)})])
    result = pipeline.run(store=store, model=model)
    assert result.status == "failed"
    assert pipeline.resume(result.run_id, store=store, model=model).outputs["go"] == {"v": "good"}


def test_truncation_is_asked_once_more_with_a_higher_cap(store: MemoryStore) -> None:
    model = ScriptedModel(lambda asked: "whole" if asked.max_tokens > 100 else Reply("wh", "max_tokens"))
    result = one(ask("x", max_tokens=100)).run(store=store, model=model)
    assert result.outputs["go"] == {"v": "whole"}
    assert [asked.max_tokens for asked in model.requests] == [100, 200]


@pytest.mark.parametrize(
    ("stop_reason", "longest", "caps", "code"),
    [
        ("max_tokens", None, [16_000, 32_000], "model_truncated"), ("max_tokens", 16_000, [16_000], "model_truncated"),
        ("max_tokens", 20_000, [16_000, 20_000], "model_truncated"),
        ("model_context_window_exceeded", None, [16_000], "context_window_full"),
    ],
)  # fmt: skip
def test_truncated_twice_fails_naming_max_tokens(
    store: MemoryStore, stop_reason: str, longest: int | None, caps: list[int], code: str
) -> None:
    class Limited(ScriptedModel):
        def check(self) -> ModelInfo:
            return replace(super().check(), max_output_tokens=longest)

    def body(ctx: StepContext) -> Any:
        with pytest.raises(ModelError) as caught:
            ctx.ask(ask("x"))
        return {"code": caught.value.code}

    model = Limited(lambda request: Reply("x", stop_reason))
    assert Pipeline("cut", [step("go")(body)]).run(store=store, model=model).outputs["go"] == {"code": code}
    assert [asked.max_tokens for asked in model.requests] == caps


def test_refusal_is_returned_and_not_asked_again(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: Reply("I cannot", "refusal"))
    run = step("go")(lambda ctx: {"refused": ctx.ask(ask("x")).refused})
    assert Pipeline("no", [run]).run(store=store, model=model).outputs["go"] == {"refused": True}
    assert model.calls == 1


def test_rate_limits_are_waited_out_and_every_try_is_recorded(store: MemoryStore) -> None:
    model = ScriptedModel([ModelUnavailable("slow down", status=429, retry_after=0.0), "fine"])
    result = one().run(store=store, model=model)
    assert result.outputs["go"] == {"v": "fine"}
    assert [(call.n, call.k) for call in facts(store, result.run_id, CallStarted)] == [(1, 1), (1, 2)]
    assert [end.error is None for end in facts(store, result.run_id, CallEnded)] == [False, True]


def test_a_wait_of_one_call_is_told(store: MemoryStore) -> None:
    heard: list[Event] = []
    model = ScriptedModel([ModelUnavailable("The connection was lost."), "fine"])
    assert one().run(store=store, model=model, clock=FakeClock(), listener=heard.append).status == "completed"
    waits = [(event.data["reason"], event.data["seconds"]) for event in heard if event.type == "waiting"]
    assert waits == [("The connection was lost", 1.0)]


def test_a_wait_beyond_patience_pauses_resumably(store: MemoryStore) -> None:
    model = ScriptedModel([ModelUnavailable("slow", status=429, retry_after=100_000.0), "fine"])
    result = one().run(store=store, model=model)
    assert (result.detail, result.exit_code) == ("paused_rate_limit", 4)
    assert one().resume(result.run_id, store=store, model=model).outputs["go"] == {"v": "fine"}


def test_prices_given_at_a_resume_price_what_had_none_and_the_ceiling_is_kept(
    store: MemoryStore, tmp_path: Path
) -> None:
    model = ScriptedModel(lambda request: "x", model_id="nobody-1", paid=True)

    def go(ctx: StepContext) -> Any:
        ctx.ask(ask("first", "nobody-1"))
        if ctx.options.get("until_here"):
            ctx.stop("here")
        ctx.ask(ask("second", "nobody-1"))
        return {}

    pipeline = Pipeline("unpriced", [go])
    run = pipeline.run(store=store, model=model, options={"until_here": True, "max_cost_usd": None}).run_id
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {"nobody-1": dict.fromkeys(TOKEN_KINDS, "1")}}))
    options = {"max_cost_usd": "5"}
    result = pipeline.resume(run, store=store, model=model, options=options, prices=PriceBook(prices))
    assert (result.status, result.spent.unpriced, model.calls) == ("completed", 0, 2)


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (SpendLimit("The account's limit is reached.", status=429), "paused_spend_limit"),
        (ModelRejected("The key is wrong.", status=401, stops_run=True), None),
    ],
)
def test_trouble_of_the_account_stops_the_run_at_once_and_the_next_resume_goes_on(
    store: MemoryStore, error: ModelError, detail: str | None
) -> None:
    model = ScriptedModel(["fine", "fine", error])
    result = many().run(store=store, model=model, options={"concurrency": 1})
    assert model.calls == 3, "no other item was tried"
    assert (result.status, result.detail) == ("in_progress" if detail else "failed", detail)
    assert (result.exit_code, result.error) == (4, error)
    mended = ScriptedModel(lambda request: "fine")
    assert many().resume(result.run_id, store=store, model=mended).status == "completed"
    assert mended.calls == ITEMS - 2


def test_request_that_is_rejected_fails_its_item_and_no_other(store: MemoryStore) -> None:
    def answer(request: Request) -> str | ModelError:
        return ModelRejected("Too large.", status=413) if request.messages[0].text == "item 2" else "fine"

    result = many().run(store=store, model=(model := ScriptedModel(answer)))
    assert (result.status, result.exit_code, model.calls) == ("failed", 6, ITEMS)
    assert result.error is not None
    assert "item/2" in result.error.message


@pytest.mark.parametrize("status", [429, 529])
def test_all_workers_wait_for_what_one_was_told(store: MemoryStore, status: int) -> None:
    clock, asked, lock = FakeClock(), list[float](), threading.Lock()

    def answer(request: Request) -> str | ModelError:
        with lock:
            asked.append(clock.monotonic())
            first = len(asked) == 1
        return ModelUnavailable("Slow down.", status=status, retry_after=40.0) if first else "fine"

    result = many(warm=True).run(store=store, model=ScriptedModel(answer), clock=clock)
    assert (result.status, asked[0], len(asked)) == ("completed", 0.0, ITEMS + 1)
    assert min(asked[1:]) >= 40.0
    assert len(facts(store, result.run_id, CallStarted)) == ITEMS + 1, "one record a request: nothing else tries again"


class Trying:
    """Runs an attempt as patiently as the policy says."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.stop = Stop(self.clock)
        self.cool_down = CoolDown(self.clock, self.stop, Emitter(self.clock))

    def go(self, attempt: Callable[[], None], answers: Callable[[], int] = lambda: 0) -> None:
        retrying(RetryPolicy(), 0, self.cool_down, self.stop, answers)(attempt)


@pytest.mark.parametrize(("status", "own", "shared"), [(429, 0.0, 40.0), (529, 0.0, 40.0), (500, 40.0, 40.0)])
def test_wait_after_a_rate_limit_is_everybodys_and_any_other_is_the_calls_own(
    status: int, own: float, shared: float
) -> None:
    trying, times = Trying(), list[float]()

    def attempt() -> None:
        times.append(trying.clock.monotonic())
        trying.cool_down.wait()
        times.append(trying.clock.monotonic())
        if len(times) == 2:
            raise ModelUnavailable("Not now.", status=status, retry_after=40.0)

    trying.go(attempt)
    assert times == [0.0, 0.0, own, shared]


def test_overload_is_waited_for_as_asked_at_first_and_longer_where_it_lasts() -> None:
    def waits(status: int, **more: Any) -> list[float]:
        return [RetryPolicy().wait(ModelUnavailable("busy", status=status, **more), n) for n in range(1, 8)]

    assert waits(529, retry_after=1.0) == [1, 1, 1, 8, 16, 32, 60]
    assert waits(529, retry_after=0.0) == waits(529) == [1, 2, 4, 8, 16, 32, 60]
    assert waits(429, retry_after=1.0) == [1] * 7


@pytest.mark.parametrize(
    ("status", "others", "tries"), [(429, True, 1101), (529, True, 1101), (429, False, 8), (500, True, 8)]
)
def test_call_that_a_busy_provider_refuses_while_it_answers_others_is_not_given_up(
    status: int, others: bool, tries: int
) -> None:
    asked = 0

    def attempt() -> None:
        nonlocal asked
        asked += 1
        if asked <= 1100:
            raise ModelUnavailable("Not now.", status=status, retry_after=1.0)

    with nullcontext() if tries > 8 else pytest.raises(Pause):
        Trying().go(attempt, lambda: asked if others else 0)
    assert asked == tries


def test_interrupt_ends_a_long_wait(store: MemoryStore) -> None:
    assert threading.current_thread() is threading.main_thread(), "signals reach the main thread only"

    class Interrupted(FakeClock):
        """A real signal comes while the run waits."""

        def wait(self, event: threading.Event, seconds: float) -> bool:
            self.waits.append(seconds)
            os.kill(os.getpid(), signal.SIGINT)
            return event.wait(120)

    model = ScriptedModel([ModelUnavailable("Slow down.", status=429, retry_after=600.0), "fine"])
    result = one().run(store=store, model=model, clock=(clock := Interrupted()))
    assert (result.detail, result.exit_code, model.calls, clock.waits) == ("interrupted", 130, 1, [600.0])
    assert one().resume(result.run_id, store=store, model=model).outputs["go"] == {"v": "fine"}


def test_errors_count_towards_the_limit_of_tries_over_all_resumes(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: ModelUnavailable("Overloaded.", status=500))
    result = one().run(store=store, model=model, clock=FakeClock())
    assert (result.detail, result.exit_code, model.calls) == ("paused_rate_limit", 4, 8)
    again: RunResult = one().resume(result.run_id, store=store, model=model, clock=FakeClock())
    assert (again.detail, model.calls) == ("paused_rate_limit", 9)
    assert [end.error["status"] for end in facts(store, result.run_id, CallEnded)] == [500] * 9


def test_reply_that_is_no_json_is_recorded_without_what_is_none(store: MemoryStore) -> None:
    odd = Reply("text", "end_turn", {"tokens": float("nan")}, extra={"raw": b"bytes"})
    result = one().run(store=store, model=ScriptedModel(lambda request: odd))
    assert result.outputs["go"] == {"v": "text"}
    (end,) = facts(store, result.run_id, CallEnded)
    assert b"left_out" in end.reply
