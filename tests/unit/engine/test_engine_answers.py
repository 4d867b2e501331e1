"""Answers of a form: sent as a schema, checked, asked for again with what is wrong, typed again from the records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from pipeline import AnthropicModel, Pipeline, Reply, RunResult, ScriptedModel, StepContext, step, typed
from pipeline.errors import ConfigError, InvalidValue
from pipeline.llm.base import Request
from pipeline.records.kinds import CallStarted, TaskCompleted
from pipeline.records.values import encode_value
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.servers.billing import BillingServer
from tests.unit.engine.saying import MODEL, ask, facts


class Kind(StrEnum):
    LONG = "long"
    SHORT = "short"


@dataclass
class Question:
    text: str
    marks: int
    kind: Kind = Kind.LONG


class Lesson(BaseModel):
    title: str = Field(min_length=3)
    questions: list[Question]
    held: date | None = None


@dataclass(frozen=True)
class Card:
    town: str
    words: int = 0
    tags: list[str] = field(default_factory=list)


SCHEMA = {
    "title": "card",
    "type": "object",
    "properties": {"town": {"type": "string", "minLength": 2}, "words": {"type": "integer", "maximum": 9}},
    "required": ["town"],
    "additionalProperties": False,
}
GOOD = {"title": "Tides", "questions": [{"text": "Why?", "marks": 2, "kind": "short"}], "held": "2026-01-02"}


def asking(returns: Any, answers: Sequence[Any], store: MemoryStore, **more: Any) -> tuple[RunResult, list[Any], Any]:
    """The result of a run that asks once for a form, what the step was given, and the model."""
    given: list[Any] = []

    @step("ask")
    def body(ctx: StepContext) -> Mapping[str, Any]:
        given.append(ctx.ask(ask("A lesson?"), returns=returns, **more))
        return {}

    model = ScriptedModel(answers)
    return Pipeline("typed", [body]).run(store=store, model=model), given, model


def test_answer_comes_back_as_what_it_was_asked_for(store: MemoryStore) -> None:
    wanted = Lesson(title="Tides", questions=[Question("Why?", 2, Kind.SHORT)], held=date(2026, 1, 2))
    for returns, answer, value in (
        (Lesson, GOOD, wanted),
        (Card, {"town": "Oban", "words": 3}, Card("Oban", 3)),
        (SCHEMA, {"town": "Oban"}, {"town": "Oban"}),
    ):
        for text in (json.dumps(answer), f"Here it is:\n```json\n{json.dumps(answer)}\n```", json.dumps([answer])):
            result, given, model = asking(returns, [text], store)
            assert (result.error, given, model.calls) == (None, [value], 1)
            assert set(model.requests[0].schema["properties"]) >= set(answer)


def test_answer_that_does_not_fit_is_asked_for_again_with_its_faults_and_each_try_is_in_the_ledger(
    store: MemoryStore,
) -> None:
    short = {"title": "No", "questions": [{"text": "Why?"}]}
    result, given, model = asking(Lesson, ["sorry", short, GOOD], store)
    assert (result.error, given[0].title, model.calls) == (None, "Tides", 3)
    turns = [(turn.role, turn.text) for turn in model.requests[2].messages]
    assert [role for role, _ in turns] == ["user", "assistant", "user"]
    assert turns[1][1] == json.dumps(short, sort_keys=True)
    assert "- title: " in turns[2][1]
    assert "- questions[0].marks: " in turns[2][1]
    calls = facts(store, result.run_id, CallStarted)
    assert len({call.key for call in calls}) == 3


def test_answer_that_never_fits_closes_the_attempt_so_that_a_resume_asks_anew(store: MemoryStore) -> None:
    given: list[Any] = []

    @step("ask")
    def body(ctx: StepContext) -> Mapping[str, Any]:
        given.append(ctx.ask(ask("A card?"), returns=SCHEMA, tries=2))
        return {}

    pipeline = Pipeline("typed", [body])
    model = ScriptedModel([{"town": "O"}, {"town": "Oban", "words": 10}, {"town": "Oban"}])
    result = pipeline.run(store=store, model=model)
    error = load(store, result.run_id).steps["ask#1"].error
    assert error is not None
    assert (error["code"], model.calls) == ("answer_misfit", 2)
    assert "No answer in 2 tries fits card" in error["message"]
    assert "words: must be at most 9" in error["message"]
    assert pipeline.resume(result.run_id, store=store, model=model).status == "completed"
    assert (given, model.calls) == ([{"town": "Oban"}], 3)


def test_recorded_tries_are_free_and_another_form_is_another_request(store: MemoryStore) -> None:
    forms: list[Any] = [Card]

    @step("ask")
    def body(ctx: StepContext) -> Mapping[str, Any]:
        card = ctx.ask(ask("A card?"), returns=forms[-1])
        if len(forms) < 4:
            forms.append(Card if len(forms) == 1 else SCHEMA)
            raise RuntimeError("once more")
        return {"card": card}

    pipeline = Pipeline("typed", [body])
    model = ScriptedModel([{"words": 1}, {"town": "Oban"}, {"town": "Nairn"}])
    run = pipeline.run(store=store, model=model).run_id
    assert model.calls == 2
    pipeline.resume(run, store=store, model=model)
    assert model.calls == 2, "the same form: both tries are answered by the record"
    pipeline.resume(run, store=store, model=model)
    assert model.calls == 3, "another schema is another request"


def test_answer_that_pydantic_takes_and_the_schema_does_not_is_no_fault_of_the_model(store: MemoryStore) -> None:
    seen = []

    @step("ask")
    def body(ctx: StepContext) -> Mapping[str, Any]:
        seen.append(ctx.ask(ask("A card?"), returns=Card).words)
        if len(seen) == 1:
            raise RuntimeError("of the body itself")
        return {}

    pipeline = Pipeline("typed", [body])
    model = ScriptedModel([{"town": "Oban", "words": "7"}])
    run = pipeline.run(store=store, model=model).run_id
    assert pipeline.resume(run, store=store, model=model).status == "completed"
    assert (seen, model.calls) == ([7, 7], 1)


class Echo(BaseModel):
    """What the server answers where JSON is asked for: the last text; the first question is not yet as wanted."""

    echo: str = Field(pattern="corrected")


def test_batches_carry_answers_of_a_form_and_each_of_their_tries(
    store: MemoryStore, server: BillingServer, claude: AnthropicModel
) -> None:
    def body(ctx: StepContext, item: int) -> Echo:
        return ctx.ask(ask(f"item {item}", MODEL, max_tokens=200), returns=Echo)

    what = Pipeline("items", [step("work")(lambda ctx: {"all": ctx.map("i", range(4), body, key=str)})])
    result = what.run(store=store, model=claude, options={"batch": True, "max_cost_usd": 5}, clock=FakeClock())
    assert (result.error, len(result.outputs["work"]["all"])) == (None, 4)
    assert [len(held.requests) for held in server.batches.held.values()] == [4, 4]
    assert result.spent.usd == server.bill.usd


def test_refusal_under_a_form_is_an_error_of_its_own(store: MemoryStore) -> None:
    result, given, _ = asking(Card, [Reply("I cannot.", "refusal")], store)
    error = load(store, result.run_id).steps["ask#1"].error
    assert error is not None
    assert (error["code"], given) == ("model_refused", [])


@pytest.mark.parametrize(
    ("returns", "more", "code"),
    [
        (list[Card], {}, "invalid_form"),
        (str, {}, "invalid_form"),
        (Card("Oban"), {}, "invalid_form"),
        (type("Odd", (BaseModel,), {"__annotations__": {"x": "Any"}, "__module__": "nowhere"}), {}, "invalid_form"),
        (Card, {"tries": 0}, "invalid_tries"),
        (Card, {"tries": "3"}, "invalid_tries"),
    ],
)
def test_form_that_cannot_be_is_refused_before_anything_is_asked(
    store: MemoryStore, returns: Any, more: dict[str, Any], code: str
) -> None:
    result, _, model = asking(returns, [GOOD], store, **more)
    error = load(store, result.run_id).steps["ask#1"].error
    assert error is not None
    assert (error["code"], model.calls) == (code, 0)


def test_request_with_a_schema_takes_no_second_form(store: MemoryStore) -> None:
    body = step("ask")(lambda ctx: ctx.ask(ask("A card?", schema=SCHEMA), returns=Card))
    result = Pipeline("typed", [body]).run(store=store, model=ScriptedModel())
    error = load(store, result.run_id).steps["ask#1"].error
    assert error is not None
    assert error["code"] == "two_schemas"


def test_steps_and_tasks_return_models_and_dataclasses_and_read_them_typed(store: MemoryStore) -> None:
    lesson = Lesson.model_validate(GOOD)
    items = [Card("Oban", 1, ["sea"]), Lesson(title="Moon", questions=[])]
    seen: list[Any] = []

    def body(ctx: StepContext, item: Any) -> Any:
        seen.append(item)
        return Question(type(item).__name__, 1)

    @step()
    def make(ctx: StepContext) -> Lesson:
        return lesson

    @step()
    def load_it(ctx: StepContext) -> Card:
        return typed(ctx.load("card"), Card)

    @step()
    def made(ctx: StepContext) -> Mapping[str, Any]:
        found = ctx.map("item", items, body, key=lambda item: type(item).__name__)
        ctx.save("card", items[0])
        return {"again": typed(ctx.outputs["make"], Lesson), "kept": [typed(value, Question) for value in found]}

    result = Pipeline("typed", [make, made, load_it]).run(store=store)
    assert result.error is None
    assert result.outputs["make"] == GOOD
    assert result.outputs["made"]["again"] == GOOD
    assert result.outputs["made"]["kept"][0] == {"text": "Card", "marks": 1, "kind": "long"}
    assert result.outputs["load_it"] == {"town": "Oban", "words": 1, "tags": ["sea"]}
    assert sorted(map(repr, seen)) == sorted(map(repr, items))
    assert all(own is not item for own in seen for item in items)
    assert len(facts(store, result.run_id, TaskCompleted)) == 2
    assert typed(result.outputs["make"], Lesson) == lesson


def test_dates_decimals_and_paths_are_refused_with_the_line_that_converts_them() -> None:
    @dataclass
    class Odd:
        value: Any

    for value, line in (
        (date(2026, 1, 2), "value.isoformat()"),
        (Decimal("1.5"), "str(value)"),
        (Path("a"), "str(value)"),
    ):
        for where in (Odd(value), {"value": value}, {"value": [Odd(value)]}):
            with pytest.raises(InvalidValue) as caught:
                encode_value(where, "out")
            assert line in caught.value.hint
            assert caught.value.data["key"].startswith("out.value")


def test_typed_takes_what_json_made_of_a_value_and_refuses_what_is_not_of_its_form() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid")
        held: date = Field(alias="heldOn")
        cost: Decimal

    strict = Strict(heldOn=date(2026, 1, 2), cost=Decimal("1.10"))
    assert json.loads(encode_value(strict)) == {"heldOn": "2026-01-02", "cost": "1.10"}
    assert typed(json.loads(encode_value(strict)), Strict) == strict
    with pytest.raises(InvalidValue) as caught:
        typed({"town": 1, "tags": ["a", 2]}, Card)
    assert caught.value.code == "value_misfit"
    assert [fault.partition(":")[0] for fault in caught.value.data["faults"]] == ["town", "tags[1]"]
    with pytest.raises(ConfigError) as refused:
        typed(1, int)
    assert refused.value.code == "invalid_form"


def test_schema_of_a_form_is_in_the_request_key_and_one_with_an_id_goes_by_that() -> None:
    plain = ask("What?")
    assert len({plain.hash(), Request("scripted", plain.messages, schema=SCHEMA).hash()}) == 2
    named = [
        Request("scripted", plain.messages, schema=schema, schema_id="card").hash() for schema in (SCHEMA, {"a": 1})
    ]
    assert named[0] == named[1]
