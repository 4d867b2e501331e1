"""Replies are bought once: an error of the user's code leaves them to the next attempt, a check that fails does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import (
    ControlledExecutor,
    Message,
    Outcome,
    Pipeline,
    Reply,
    Request,
    ScriptedModel,
    StepContext,
    TaskRejected,
    step,
)
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.engine.result import RunResult
from pipeline.records.fold import fold
from pipeline.records.kinds import CallEnded
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import records

MODEL = "claude-sonnet-5-5"
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Trouble(Exception):
    """What user code raises."""


def _raise(error: BaseException) -> Any:
    raise error


#: Ways in which code fails after it was answered; what a step returns in their place is its result.
BUGS: Mapping[str, Callable[[], Any]] = {
    "KeyError": lambda: dict[str, int]()["missing"],
    "FileNotFoundError": lambda: Path("/nonexistent/x").read_text(),
    "own": lambda: _raise(Trouble("not today")),
    "exit": lambda: _raise(SystemExit(3)),
    "no JSON": lambda: {"made": Decimal("1.5")},
    "no mapping": lambda: 7,
}


class World:
    """One store and model; code that is broken until it is repaired."""

    def __init__(self) -> None:
        self.store = MemoryStore(SystemClock())
        self.asked: list[str] = []
        self.bug: Callable[[], Any] | None = None
        self.answer: Callable[[str], str] = lambda text: f"<{text}>"
        self.model = ScriptedModel(self._reply, model_id=MODEL, paid=True)

    def _reply(self, request: Request) -> str | Reply:
        self.asked.append(text := request.messages[-1].text)
        if text == "long" and request.max_tokens < 1000:
            return Reply(
                "cut", "max_tokens", usage={"input_tokens": 1, "output_tokens": request.max_tokens}, model=MODEL
            )
        return self.answer(text)

    def ask(self, ctx: StepContext, text: str, **more: Any) -> str:
        return ctx.ask(Request(MODEL, [Message("user", text)], max_tokens=50, **more)).text

    def work(self, ctx: StepContext, item: Any) -> Any:
        """Two asks, then what may be broken."""
        texts = [self.ask(ctx, f"{part} {item}") for part in ("draft", "check")]
        return self.bug() if self.bug is not None else {"texts": texts}

    def resume(self, pipeline: Pipeline, run: str) -> RunResult:
        return pipeline.resume(run, store=self.store, model=self.model)

    def causes(self, run: str) -> set[str]:
        return {row.cause for row in rows(records(self.store, run))}


@pytest.fixture
def world() -> World:
    return World()


def shapes(world: World) -> Mapping[str, Pipeline]:
    """Where such code may stand."""

    def mapped(ctx: StepContext) -> Any:
        return {"rows": list(ctx.map("rows", range(3), world.work, key=str))}

    def nested(ctx: StepContext) -> Any:
        world.ask(ctx, "first")

        def outer(ctx: StepContext, item: int) -> Any:
            world.ask(ctx, f"outer {item}")
            return ctx.task("inner", world.work, item)

        return {"rows": list(ctx.map("rows", range(2), outer, key=str))}

    def left(ctx: StepContext) -> Any:
        return world.work(ctx, "left")

    def right(ctx: StepContext) -> Any:
        return {"right": world.ask(ctx, "right")}

    fan = Pipeline(
        "fan", [step("begin")(lambda ctx: {}), step("left")(left), step("right")(right), step("end")(lambda ctx: {})],
        edges=[("begin", "left"), ("begin", "right"), ("left", "end"), ("right", "end")], joins={"end": "all"},
    )  # fmt: skip
    return {
        "step": Pipeline("step", [step("a")(lambda ctx: world.work(ctx, 1))]),
        "map": Pipeline("map", [step("a")(mapped)]),
        "nested": Pipeline("nested", [step("a")(nested)]),
        "task": Pipeline("task", [step("a")(lambda ctx: {"b": ctx.task("b", world.work, 1)})]),
        "fan": fan,
    }


@pytest.mark.parametrize("shape", ["step", "map", "nested", "task", "fan"])
def test_error_of_the_users_code_leaves_its_replies_to_be_heard_again(shape: str) -> None:
    for name, bug in BUGS.items():
        world = World()
        pipeline = shapes(world)[shape]
        if name == "no mapping" and shape not in ("step", "fan"):
            continue
        world.bug = bug
        first = pipeline.run(store=world.store, model=world.model)
        assert first.status == "failed", (name, first)
        before = list(world.asked)
        assert before
        again = world.resume(pipeline, first.run_id)
        assert again.status == "failed", name
        # A value that is no JSON stops a map at once: items that had not begun may begin now. Nothing is asked twice.
        begun = set(world.asked) - set(before)
        assert not begun or (shape in ("map", "nested") and name == "no JSON"), name
        assert sorted(world.asked) == sorted(set(world.asked)), name
        world.bug = None
        last = world.resume(pipeline, first.run_id)
        assert last.status == "completed", (name, last.error)
        assert sorted(world.asked) == sorted(set(world.asked)), name
        assert world.causes(first.run_id) == {""}, name


def test_same_replies_that_lead_to_the_same_error_are_named_with_the_way_to_ask_anew(world: World) -> None:
    pipeline = shapes(world)["step"]
    world.bug = BUGS["KeyError"]
    first = pipeline.run(store=world.store, model=world.model)
    assert first.error is not None
    assert "--from" not in first.error.hint
    second = world.resume(pipeline, first.run_id)
    assert second.error is not None
    assert f"--resume {first.run_id} --from a" in second.error.hint
    world.bug = BUGS["own"]
    other = world.resume(pipeline, first.run_id)
    assert other.error is not None
    assert "--from" not in other.error.hint


def test_check_that_does_not_accept_a_reply_has_it_asked_anew(world: World) -> None:
    class Poor(TaskRejected):
        """A check of the user's own."""

    pipeline = shapes(world)["map"]
    world.bug = lambda: _raise(Poor("too short"))
    first = pipeline.run(store=world.store, model=world.model)
    world.bug = None
    assert world.resume(pipeline, first.run_id).status == "completed"
    assert sorted(world.asked) == sorted([*set(world.asked)] * 2)
    assert world.causes(first.run_id) == {"", "rejected"}


def test_reply_that_its_schema_does_not_allow_is_asked_anew(world: World) -> None:
    def body(ctx: StepContext) -> Any:
        world.ask(ctx, "fine", schema={"type": "object"})
        return {"n": json.loads(world.ask(ctx, "number", schema=OBJECT))["n"]}

    world.answer = lambda text: '{"m": 1}'
    pipeline = Pipeline("p", [step("a")(body)])
    first = pipeline.run(store=world.store, model=world.model)
    world.answer = lambda text: '{"n": 1}'
    assert world.resume(pipeline, first.run_id).outputs["a"] == {"n": 1}
    assert world.asked == ["fine", "number"] * 2
    assert world.causes(first.run_id) == {"", "rejected"}


def test_reply_that_wraps_what_its_schema_describes_is_given_without_and_kept_as_received(world: World) -> None:
    def body(ctx: StepContext) -> Any:
        replies = [json.loads(world.ask(ctx, text, schema=OBJECT)) for text in forms]
        return world.bug() if world.bug is not None else {"replies": replies}

    whole = '{"n": 1}'
    forms = [
        whole, f"\ufeff{whole}", f"```json\n{whole}\n```", f"```json\n\ufeff{whole}```", f"// as asked\n{whole}",
        f"Here it is:\n```\n{whole}\n```\nDone.", f'{{"output": {whole}}}', f"[{whole}]", json.dumps(whole),
        f'~~~\n{{"a": [{whole}]}}\n~~~',
    ]  # fmt: skip
    world.answer = lambda text: text
    world.bug = BUGS["KeyError"]
    pipeline = Pipeline("p", [step("a")(body)])
    first = pipeline.run(store=world.store, model=world.model)
    world.bug = None
    assert world.resume(pipeline, first.run_id).outputs["a"] == {"replies": [{"n": 1}] * len(forms)}
    assert world.asked == forms
    kept = [record.fact for record in records(world.store, first.run_id) if isinstance(record.fact, CallEnded)]
    assert [json.loads(fact.reply or b"")["text"] for fact in kept] == forms


def test_reply_that_holds_several_objects_or_none_is_left_as_it_is(world: World) -> None:
    whole = '{"n": 1}'
    two = f"```\n{whole}\n```\nor\n```\n{whole}\n```"
    forms = [f"[{whole}, {whole}]", two, '{"n": 1', "none", '{"n": "1"}', ""]
    world.answer = lambda text: text
    body = step("a")(lambda ctx: {"texts": [world.ask(ctx, text, schema=OBJECT) for text in forms]})
    assert Pipeline("p", [body]).run(store=world.store, model=world.model).outputs["a"] == {"texts": forms}


def test_outcome_that_says_it_failed_is_asked_anew_and_no_check_is_blamed(world: World) -> None:
    def body(ctx: StepContext) -> Any:
        world.ask(ctx, "number")
        return Outcome({}, "failed", error={"type": "Own", "message": "no"}) if world.bug else {}

    world.bug = BUGS["KeyError"]
    pipeline = Pipeline("p", [step("a")(body)])
    first = pipeline.run(store=world.store, model=world.model)
    world.bug = None
    assert world.resume(pipeline, first.run_id).status == "completed"
    assert world.asked == ["number"] * 2
    assert world.causes(first.run_id) == {"", "failed"}


def test_answer_cut_off_is_asked_anew_only_with_more_room(world: World) -> None:
    room = 50

    def body(ctx: StepContext) -> Any:
        world.ask(ctx, "first")
        return {"text": ctx.ask(Request(MODEL, [Message("user", "long")], max_tokens=room)).text}

    pipeline = Pipeline("p", [step("a")(body)])
    first = pipeline.run(store=world.store, model=world.model)
    assert first.status == "failed"
    before = list(world.asked)
    assert world.resume(pipeline, first.run_id).status == "failed"
    assert world.asked == before
    room = 5000
    assert world.resume(pipeline, first.run_id).status == "completed"
    assert world.asked == [*before, "long"]


def test_layer_whose_tool_fails_hears_its_replies_again(world: World) -> None:
    def tool(call: Any) -> Any:
        return world.work(call.ctx, call.id)

    dag = {"tasks": [{"id": name, "tool": "work", "arguments": {}, "depends_on": []} for name in "ab"]}
    world.bug = BUGS["KeyError"]
    first = ControlledExecutor(dag, {"work": tool}, store=world.store, model=world.model).execute()
    assert first.status == "failed"
    world.bug = None
    again = ControlledExecutor(dag, {"work": tool}, store=world.store, model=world.model)
    assert again.resume_from_checkpoint(first.run_id).status == "completed"
    assert sorted(world.asked) == sorted(set(world.asked))


def test_fork_of_a_run_that_failed_hears_the_replies_too(world: World) -> None:
    from pipeline import fork_run

    pipeline = shapes(world)["map"]
    world.bug = BUGS["KeyError"]
    first = pipeline.run(store=world.store, model=world.model)
    assert world.resume(pipeline, first.run_id).status == "failed"
    fork = fork_run(world.store, first.run_id)
    world.bug = None
    before = len(world.asked)
    assert world.resume(pipeline, getattr(fork, "run_id", fork)).status == "completed"
    assert len(world.asked) == before


def test_fold_of_such_a_run_is_the_same_in_pieces(world: World) -> None:
    pipeline = shapes(world)["nested"]
    world.bug = BUGS["own"]
    first = pipeline.run(store=world.store, model=world.model)
    world.resume(pipeline, first.run_id)
    world.bug = None
    world.resume(pipeline, first.run_id)
    state = fold(first.run_id, records(world.store, first.run_id))
    assert not state.memo
    assert state.attempts["a#1", None] == 3


STRING = {"type": "object", "properties": {"s": {"type": "string"}}}


@pytest.mark.parametrize("former", [False, True])
def test_reply_answers_only_the_schema_that_it_was_asked_with(
    world: World, monkeypatch: pytest.MonkeyPatch, former: bool
) -> None:
    """Also what earlier versions recorded, whose hashes held no schema."""
    schemas = [OBJECT, STRING, OBJECT]
    world.answer = lambda text: "{}"

    def body(ctx: StepContext) -> Any:
        texts = [world.ask(ctx, "same", schema=schema) for schema in schemas]
        texts.append(world.ask(ctx, "other", schema={**STRING, "title": str(len(schemas))}, schema_id="mine"))
        if world.bug is not None:
            raise KeyboardInterrupt
        return {"texts": texts}

    pipeline = Pipeline("p", [step("a")(body)])
    world.bug = BUGS["own"]
    with monkeypatch.context() as patch:
        if former:
            patch.setattr(Request, "hash", Request.former_hash)
        run = pipeline.run(store=world.store, model=world.model).run_id
    assert world.asked == ["same"] * 3 + ["other"]
    schemas[:] = [STRING, OBJECT, OBJECT]
    assert world.resume(pipeline, run).detail == "interrupted"
    assert len(world.asked) == 4
    schemas[:] = [STRING, OBJECT, {"type": "object"}, STRING]
    world.bug = None
    assert world.resume(pipeline, run).status == "completed"
    assert world.asked[4:] == ["same"] * 2
