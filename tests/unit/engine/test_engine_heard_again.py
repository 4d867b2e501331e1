"""Replies are bought once: an error of the user's code leaves them to the next attempt, a check that fails does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import (
    Outcome,
    Pipeline,
    Reply,
    Request,
    RunResult,
    ScriptedModel,
    StepContext,
    fork_run,
    step,
)
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.errors import TaskRejected
from pipeline.records.kinds import CallEnded
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import records
from tests.unit.engine.saying import MODEL, ask, facts

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
STRING = {"type": "object", "properties": {"s": {"type": "string"}}}


def _raise(error: BaseException) -> Any:
    raise error


#: Ways in which code fails after it was answered; what a step returns in their place is its result.
BUGS: Mapping[str, Callable[[], Any]] = {
    "KeyError": lambda: dict[str, int]()["missing"],
    "FileNotFoundError": lambda: Path("/nonexistent/x").read_text(),
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
            return Reply("cut", "max_tokens", {"input_tokens": 1, "output_tokens": request.max_tokens}, MODEL)
        return self.answer(text)

    def ask(self, ctx: StepContext, text: str, **more: Any) -> str:
        return ctx.ask(ask(text, MODEL, **{"max_tokens": 50, **more})).text

    def work(self, ctx: StepContext, item: Any) -> Any:
        """Two asks, then what may be broken."""
        texts = [self.ask(ctx, f"{part} {item}") for part in ("draft", "check")]
        return self.bug() if self.bug is not None else {"texts": texts}

    def go(self, what: Pipeline | Callable[[StepContext], Any], run: str = "", bug: str = "") -> RunResult:
        """Run it, or go on with it, broken or not."""
        pipeline = what if isinstance(what, Pipeline) else Pipeline("p", [step("a")(what)])
        self.bug = BUGS[bug] if bug else None
        more: Any = {"store": self.store, "model": self.model}
        return pipeline.resume(run, **more) if run else pipeline.run(**more)

    def causes(self, run: str) -> set[str]:
        return {row.cause for row in rows(records(self.store, run))}

    @property
    def paid_once(self) -> bool:
        return len(self.asked) == len(set(self.asked))


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

    fan = Pipeline(
        "fan",
        [
            step("begin")(lambda ctx: {}), step("left")(lambda ctx: world.work(ctx, "left")),
            step("right")(lambda ctx: {"right": world.ask(ctx, "right")}), step("end")(lambda ctx: {}),
        ],
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
    for bug in BUGS:
        world = World()
        pipeline = shapes(world)[shape]
        if bug == "no mapping" and shape not in ("step", "fan"):
            continue
        run = world.go(pipeline, bug=bug).run_id
        before = list(world.asked)
        assert before
        assert world.go(pipeline, run, bug=bug).status == "failed", bug
        # A value that is no JSON stops a map at once: items that had not begun may begin now. Nothing is asked twice.
        assert world.asked == before or (shape in ("map", "nested") and bug == "no JSON"), bug
        assert world.go(pipeline, run).status == "completed", bug
        assert world.paid_once, bug
        assert world.causes(run) == {""}, bug


def test_same_replies_that_lead_to_the_same_error_are_named_with_the_way_to_ask_anew(world: World) -> None:
    pipeline = shapes(world)["step"]
    first = world.go(pipeline, bug="KeyError")
    told = [first, world.go(pipeline, first.run_id, "KeyError"), world.go(pipeline, first.run_id, "exit")]
    assert [f"--resume {first.run_id} --from a" in getattr(one.error, "hint", "") for one in told] == [0, 1, 0]


def test_check_that_does_not_accept_a_reply_has_it_asked_anew(world: World) -> None:
    class Poor(TaskRejected):
        """A check of the user's own."""

    def checked(ctx: StepContext, item: int) -> Any:
        texts = world.work(ctx, item)
        return texts if poor is None else _raise(poor)

    poor: Poor | None = Poor("too short")
    pipeline = Pipeline("map", [step("a")(lambda ctx: {"rows": list(ctx.map("rows", range(3), checked, key=str))})])
    run = world.go(pipeline).run_id
    poor = None
    assert world.go(pipeline, run).status == "completed"
    assert sorted(world.asked) == sorted([*set(world.asked)] * 2)
    assert world.causes(run) == {"", "rejected"}


def test_reply_that_its_schema_does_not_allow_is_asked_anew(world: World) -> None:
    def body(ctx: StepContext) -> Any:
        world.ask(ctx, "fine", schema={"type": "object"})
        return {"n": json.loads(world.ask(ctx, "number", schema=OBJECT))["n"]}

    world.answer = lambda text: '{"m": 1}'
    run = world.go(body).run_id
    world.answer = lambda text: '{"n": 1}'
    assert world.go(body, run).outputs["a"] == {"n": 1}
    assert world.asked == ["fine", "number"] * 2
    assert world.causes(run) == {"", "rejected"}


def test_reply_that_wraps_what_its_schema_describes_is_given_without_and_kept_as_received(world: World) -> None:
    whole = '{"n": 1}'
    forms = [
        whole, f"\ufeff{whole}", f"```json\n{whole}\n```", f"```json\n\ufeff{whole}```", f"// as asked\n{whole}",
        f"Here it is:\n```\n{whole}\n```\nDone.", f'{{"output": {whole}}}', f"[{whole}]", json.dumps(whole),
        f'~~~\n{{"a": [{whole}]}}\n~~~',
    ]  # fmt: skip
    several = [f"[{whole}, {whole}]", f"```\n{whole}\n```\nor\n```\n{whole}\n```", '{"n": 1', "none", '{"n": "1"}', ""]

    def body(ctx: StepContext) -> Any:
        texts = [world.ask(ctx, text, schema=OBJECT) for text in (*several, *forms)]
        return world.bug() if world.bug is not None else {"texts": texts}

    world.answer = lambda text: text
    run = world.go(body, bug="KeyError").run_id
    texts = world.go(body, run).outputs["a"]["texts"]
    assert texts[: len(several)] == several, "none or more than one is left as it is"
    assert [json.loads(text) for text in texts[len(several) :]] == [{"n": 1}] * len(forms)
    assert world.asked == [*several, *forms]
    assert [json.loads(end.reply)["text"] for end in facts(world.store, run, CallEnded)] == world.asked


def test_outcome_that_says_it_failed_is_asked_anew_and_no_check_is_blamed(world: World) -> None:
    def body(ctx: StepContext) -> Any:
        world.ask(ctx, "number")
        return Outcome({}, "failed", error={"type": "Own", "message": "no"}) if world.bug else {}

    run = world.go(body, bug="KeyError").run_id
    assert world.go(body, run).status == "completed"
    assert world.asked == ["number"] * 2
    assert world.causes(run) == {"", "failed"}


def test_answer_cut_off_is_asked_anew_only_with_more_room(world: World) -> None:
    room = 50

    def body(ctx: StepContext) -> Any:
        world.ask(ctx, "first")
        return {"text": world.ask(ctx, "long", max_tokens=room)}

    run = world.go(body).run_id
    before = list(world.asked)
    assert world.go(body, run).status == "failed"
    assert world.asked == before
    room = 5000
    assert world.go(body, run).status == "completed"
    assert world.asked == [*before, "long"]


def test_fork_of_a_run_that_failed_hears_the_replies_too(world: World) -> None:
    pipeline = shapes(world)["map"]
    first = world.go(pipeline, bug="KeyError")
    fork = fork_run(world.store, first.run_id)
    before = len(world.asked)
    assert world.go(pipeline, getattr(fork, "run_id", fork)).status == "completed"
    assert len(world.asked) == before


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

    with monkeypatch.context() as patch:
        if former:
            patch.setattr(Request, "hash", Request.former_hash)
        run = world.go(body, bug="KeyError").run_id
    assert world.asked == ["same"] * 3 + ["other"]
    schemas[:] = [STRING, OBJECT, OBJECT]
    assert world.go(body, run, "KeyError").detail == "interrupted"
    assert len(world.asked) == 4
    schemas[:] = [STRING, OBJECT, {"type": "object"}, STRING]
    assert world.go(body, run).status == "completed"
    assert world.asked[4:] == ["same"] * 2
