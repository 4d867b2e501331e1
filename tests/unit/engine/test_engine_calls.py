"""Paid calls: recorded, reused, retried, truncated, refused."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.engine.events import Event
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.result import RunResult
from pipeline.engine.step import StepContext, step
from pipeline.errors import ModelUnavailable, TaskRejected
from pipeline.llm.base import Message, ModelInfo, Reply, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records import kinds
from pipeline.records.charge import TOKEN_KINDS
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.unit.engine.saying import ask, facts


def test_ask_is_answered_from_the_record_on_resume(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: request.messages[0].text.upper())
    crash = threading.Event()
    crash.set()

    def go(ctx: StepContext) -> Mapping[str, Any]:
        first = ctx.ask(ask("one")).text
        second = ctx.ask(ask("one")).text
        if crash.is_set():
            ctx.stop("crash")
        return {"texts": [first, second]}

    pipeline = Pipeline("ask", [go])
    result = pipeline.run(store=store, model=model)
    assert model.calls == 2
    crash.clear()
    again = pipeline.resume(result.run_id, store=store, model=model)
    assert again.outputs["go"] == {"texts": ["ONE", "ONE"]}
    assert model.calls == 2


def test_content_failure_closes_the_attempt_so_the_next_asks_again(store: MemoryStore) -> None:
    answers = iter(["bad", "good"])
    model = ScriptedModel(lambda request: next(answers))

    def body(ctx: StepContext, item: int) -> str:
        text = ctx.ask(ask("same prompt")).text
        if text == "bad":
            raise TaskRejected("bad")
        return text

    pipeline = Pipeline("again", [step("go")(lambda ctx: {"v": ctx.task("t", body)})])
    result = pipeline.run(store=store, model=model)
    assert result.status == "failed"
    again = pipeline.resume(result.run_id, store=store, model=model)
    assert again.outputs["go"] == {"v": "good"}


def test_truncation_is_asked_once_more_with_a_higher_cap(store: MemoryStore) -> None:
    def answer(request: Request) -> Reply:
        full = request.max_tokens > 100
        return Reply("whole" if full else "wh", "end_turn" if full else "max_tokens")

    model = ScriptedModel(answer)
    request = Request("scripted", [Message("user", "x")], max_tokens=100)
    result = Pipeline("cut", [step("go")(lambda ctx: {"v": ctx.ask(request).text})]).run(store=store, model=model)
    assert result.outputs["go"] == {"v": "whole"}
    assert [asked.max_tokens for asked in model.requests] == [100, 200]


def test_truncated_twice_fails_naming_max_tokens(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: Reply("x", "max_tokens"))
    result = Pipeline("cut", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})]).run(store=store, model=model)
    assert result.status == "failed"
    caps = [request.max_tokens for request in model.requests]
    assert re.findall(r"cut off at (\d+)", str(result.error)) == [str(cap) for cap in caps]
    assert model.calls == 2


def test_answer_that_more_room_cannot_make_longer_is_bought_once(store: MemoryStore) -> None:
    def cut(stop_reason: str, longest: int | None = None) -> tuple[list[int], RunResult]:
        class Limited(ScriptedModel):
            def check(self) -> ModelInfo:
                return replace(super().check(), max_output_tokens=longest)

        model = Limited(lambda request: Reply("x", stop_reason))
        result = Pipeline("cut", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})]).run(store=store, model=model)
        assert (result.status, result.error is None) == ("failed", False)
        return [asked.max_tokens for asked in model.requests], result

    caps, window = cut("model_context_window_exceeded")
    assert caps == [16_000]
    assert "context window" in str(window.error)
    assert window.error is not None
    assert "max_tokens" not in f"{window.error} {window.error.hint}"
    assert cut("max_tokens", longest=16_000)[0] == [16_000], "there is no higher cap"
    assert cut("max_tokens", longest=20_000)[0] == [16_000, 20_000]


def test_refusal_is_returned_and_not_asked_again(store: MemoryStore) -> None:
    model = ScriptedModel(lambda request: Reply("I cannot", "refusal"))
    run = step("go")(lambda ctx: {"refused": ctx.ask(ask("x")).refused})
    assert Pipeline("no", [run]).run(store=store, model=model).outputs["go"] == {"refused": True}
    assert model.calls == 1


def test_rate_limits_are_waited_out_and_every_try_is_recorded(store: MemoryStore) -> None:
    answers: list[Any] = [ModelUnavailable("slow down", status=429, retry_after=0.0), "fine"]
    model = ScriptedModel(answers)
    result = Pipeline("slow", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})]).run(store=store, model=model)
    assert result.outputs["go"] == {"v": "fine"}
    started, ended = facts(store, result.run_id, kinds.CallStarted), facts(store, result.run_id, kinds.CallEnded)
    assert [(call.n, call.k) for call in started] == [(1, 1), (1, 2)]
    assert [end.error is None for end in ended] == [False, True]


def test_a_wait_of_one_call_is_told(store: MemoryStore) -> None:
    answers: list[Any] = [ModelUnavailable("The connection was lost."), "fine"]
    heard: list[Event] = []
    pipeline = Pipeline("slow", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})])
    result = pipeline.run(store=store, model=ScriptedModel(answers), clock=FakeClock(), listener=heard.append)
    assert result.outputs["go"] == {"v": "fine"}
    waits = [(event.data["reason"], event.data["seconds"]) for event in heard if event.type == "waiting"]
    assert waits == [("The connection was lost", 1.0)]


def test_a_wait_beyond_patience_pauses_resumably(store: MemoryStore) -> None:
    answers: list[Any] = [ModelUnavailable("slow", status=429, retry_after=100_000.0), "fine"]
    model = ScriptedModel(answers)
    pipeline = Pipeline("slow", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})])
    result = pipeline.run(store=store, model=model)
    assert (result.detail, result.exit_code) == ("paused_rate_limit", 4)
    assert pipeline.resume(result.run_id, store=store, model=model).outputs["go"] == {"v": "fine"}


def test_prices_given_at_a_resume_price_what_had_none_and_the_ceiling_is_kept(
    store: MemoryStore, tmp_path: Path
) -> None:
    model = ScriptedModel(lambda request: "x", model_id="nobody-1", paid=True)

    def go(ctx: StepContext) -> Mapping[str, Any]:
        ctx.ask(Request("nobody-1", [Message("user", "first")]))
        if ctx.options.get("until_here"):
            ctx.stop("here")
        ctx.ask(Request("nobody-1", [Message("user", "second")]))
        return {}

    pipeline = Pipeline("unpriced", [go])
    run = pipeline.run(store=store, model=model, options={"until_here": True, "max_cost_usd": None}).run_id
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {"nobody-1": dict.fromkeys(TOKEN_KINDS, "1")}}))
    options = {"max_cost_usd": "5"}
    result = pipeline.resume(run, store=store, model=model, options=options, prices=PriceBook(prices))
    assert (result.status, result.spent.unpriced, model.calls) == ("completed", 0, 2)
