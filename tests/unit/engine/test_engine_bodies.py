"""Bodies that behave badly: a run goes on from what is recorded, and no body decides how the engine ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pipeline.cost.prices import PriceBook
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.errors import BudgetExceeded, ConfigError, InvalidValue, SecretRefused, StepFailed
from pipeline.llm.base import Message, Reply, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.statuses import FAILED
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load

MODEL = "claude-sonnet-5-5"


def ask(ctx: StepContext, text: str = "hi") -> str:
    return ctx.ask(Request(MODEL, [Message("user", text)], max_tokens=1000)).text


def swallowed(ctx: StepContext) -> Mapping[str, Any]:
    try:
        return {"text": ask(ctx)}
    except BaseException:
        return {"text": "nothing came"}


def turned_into_another(ctx: StepContext) -> Mapping[str, Any]:
    try:
        return {"text": ask(ctx)}
    except BaseException as error:
        raise ValueError("no answer") from error


def swallowed_in_an_item(ctx: StepContext) -> Mapping[str, Any]:
    def body(ctx: StepContext, item: int) -> Any:
        return swallowed(ctx)

    return {"all": list(ctx.map("item", [1, 2], body, key=str))}


def swallowed_around_a_map(ctx: StepContext) -> Mapping[str, Any]:
    try:
        return {"all": list(ctx.map("item", [1, 2], lambda ctx, item: ask(ctx, str(item)), key=str))}
    except BaseException:
        return {"all": []}


@pytest.mark.parametrize("body", [swallowed, turned_into_another, swallowed_in_an_item, swallowed_around_a_map])
def test_pause_that_a_body_swallows_pauses_the_run_all_the_same(
    store: MemoryStore, body: Callable[[StepContext], Mapping[str, Any]]
) -> None:
    pipeline = Pipeline("p", [step("buy")(body)])
    model = ScriptedModel(lambda request: "answer", model_id=MODEL, paid=True)
    prices = PriceBook()
    paused = pipeline.run(store=store, model=model, prices=prices, options={"max_cost_usd": "0.001"})
    assert (paused.detail, type(paused.error)) == ("paused_budget", BudgetExceeded)
    state = load(store, paused.run_id)
    assert not state.tasks
    assert [run.status for run in state.steps.values()] == ["in_progress"]
    done = pipeline.resume(paused.run_id, store=store, model=model, prices=prices, options={"max_cost_usd": "5"})
    assert done.status == "completed"
    assert "answer" in str(done.outputs["buy"])


@pytest.mark.parametrize("in_task", [True, False])
def test_body_that_calls_exit_is_a_failed_one(store: MemoryStore, in_task: bool) -> None:
    def leave(ctx: StepContext, item: int = 0) -> Any:
        sys.exit(3)

    body = (lambda ctx: ctx.map("item", [1], leave, key=str)) if in_task else leave
    result = Pipeline("p", [step("leaves")(body)]).run(store=store)
    assert (result.status, type(result.error)) == (FAILED, StepFailed)
    assert "SystemExit: 3" in str(result.error)


def test_body_that_raises_an_interrupt_interrupts_the_run(store: MemoryStore) -> None:
    def interrupt(ctx: StepContext) -> Any:
        raise KeyboardInterrupt

    result = Pipeline("p", [step("stops")(interrupt)]).run(store=store)
    assert (result.status, result.detail) == ("in_progress", "interrupted")


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (Speechless(), "Speechless: (its text cannot be made: ValueError)"),
        (ValueError("the header said Bearer abc.def-123"), "ValueError: the header said Bearer [key]"),
        (ValueError("sk-ant-api03-abcdefgh is wrong"), "ValueError: [key] is wrong"),
        (ValueError("Authorization is Basic dTpwdzEyMzQ1"), "ValueError: Authorization is Basic [key]"),
        (ValueError("Basic Mathematics, basic education"), "ValueError: Basic Mathematics, basic education"),
        (ValueError("https://me:secret@host/x"), "ValueError: https://host/x"),
    ],
)
def test_error_of_a_body_is_recorded_without_keys(store: MemoryStore, error: Exception, shown: str) -> None:
    def fail(ctx: StepContext) -> Any:
        raise error

    result = Pipeline("p", [step("fails")(fail)]).run(store=store)
    assert load(store, result.run_id).steps["fails#1"].error == {"type": type(error).__name__, "message": shown}


def test_error_without_end_is_cut(store: MemoryStore) -> None:
    def fail(ctx: StepContext) -> Any:
        raise ValueError("x" * 5_000_000)

    result = Pipeline("p", [step("fails")(fail)]).run(store=store)
    assert len(str(load(store, result.run_id).steps["fails#1"].error)) < 5000


def test_what_a_body_does_to_what_it_read_is_seen_by_nobody(store: MemoryStore) -> None:
    @step()
    def make(ctx: StepContext) -> Any:
        return {"list": [1], "map": {"a": 1}}

    @step()
    def spoil(ctx: StepContext) -> Any:
        ctx.outputs["make"]["list"].append(2)
        ctx.outputs["make"]["map"].clear()
        ctx.params["given"].append(2)
        ctx.pin("graph").clear()
        return {}

    @step()
    def look(ctx: StepContext) -> Any:
        return {**ctx.outputs["make"], "given": ctx.params["given"], "graph": bool(ctx.pin("graph"))}

    result = Pipeline("p", [make, spoil, look]).run(store=store, params={"given": (1,)})
    assert result.outputs["look"] == {"list": [1], "map": {"a": 1}, "given": [1], "graph": True}
    assert result.outputs["make"] == {"list": [1], "map": {"a": 1}}


def test_parameter_that_is_no_json_is_refused_by_name(store: MemoryStore) -> None:
    with pytest.raises(InvalidValue, match=r"params\.file is bytes"):
        Pipeline("p", [step("a")(lambda ctx: {})]).run(store=store, params={"file": b"x"})


class Odd(ScriptedModel):
    """Answers with what no provider should send in the place of texts and objects."""

    def complete(self, request: Request) -> Reply:
        super().complete(request)
        return Reply("answer", "end_turn", usage=None, request_id=7, extra=None)  # type: ignore[arg-type]


def test_reply_with_odd_parts_is_recorded_and_not_bought_again(store: MemoryStore) -> None:
    @step()
    def buy(ctx: StepContext) -> Any:
        text = ask(ctx)
        if model.calls == 1 and not stopped:
            stopped.append(text)
            ctx.stop("in the middle")
        return {"text": text}

    stopped: list[str] = []
    model, pipeline = Odd(lambda request: "answer", model_id=MODEL, paid=True), Pipeline("p", [buy])
    first = pipeline.run(store=store, model=model, prices=PriceBook())
    assert first.spent.unpriced == 1
    assert pipeline.resume(first.run_id, store=store, model=model, prices=PriceBook()).outputs["buy"] == {
        "text": "answer"
    }
    assert model.calls == 1
    assert not load(store, first.run_id).gaps


@pytest.mark.parametrize("version", ["2", 1.5, None, True])
def test_version_that_is_no_whole_number_is_refused_at_once(store: MemoryStore, version: Any) -> None:
    with pytest.raises(ConfigError, match="version="):
        step(version=version)
    result = Pipeline("p", [step("a")(lambda ctx: ctx.task("t", lambda ctx, item: 1, version=version))]).run(
        store=store
    )
    assert "version=" in str(result.error)


@pytest.mark.parametrize("value", ["use sk-ant-api03-abcdef", {"deep": ["x", {"er": "sk-ant-api03-abcdef"}]}])
def test_parameter_that_holds_a_key_is_refused_whatever_its_name(store: MemoryStore, value: Any) -> None:
    with pytest.raises(SecretRefused, match="'note'"):
        Pipeline("p", [step("a")(lambda ctx: {})]).run(store=store, params={"note": value})
    assert not list(store.heads())
