"""Bodies that behave badly: a run goes on from what is recorded, and no body decides how the engine ends.

Also the hash of the user's source text: what changes it, what does not, and where there is no text.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline import Pipeline, PriceBook, Reply, Request, StepContext, compile_graph, parse_dot, step
from pipeline.clock import SystemClock
from pipeline.engine import bodies
from pipeline.engine.bodies import code_of
from pipeline.engine.remote.parcels import load_file
from pipeline.engine.step import VisitPlace
from pipeline.errors import BudgetExceeded, ConfigError, InvalidValue, SecretRefused, StepFailed
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.casys.dag import DagTask
from pipeline.formats.casys.tools import step_of
from pipeline.lessons.pipeline import PIPELINE
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import MODEL, fine
from tests.unit.engine.saying import ask as asking


def ask(ctx: StepContext, text: str = "hi") -> str:
    return ctx.ask(asking(text, MODEL, max_tokens=1000)).text


def swallowed(ctx: StepContext, item: int = 0) -> Mapping[str, Any]:
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
    return {"all": list(ctx.map("item", [1, 2], swallowed, key=str))}


def swallowed_around_a_map(ctx: StepContext) -> Mapping[str, Any]:
    try:
        return {"all": list(ctx.map("item", [1, 2], lambda ctx, item: ask(ctx, str(item)), key=str))}
    except BaseException:
        return {"all": []}


@pytest.mark.parametrize("body", [swallowed, turned_into_another, swallowed_in_an_item, swallowed_around_a_map])
def test_pause_that_a_body_swallows_pauses_the_run_all_the_same(
    store: MemoryStore, body: Callable[[StepContext], Mapping[str, Any]]
) -> None:
    pipeline, model = Pipeline("p", [step("buy")(body)]), fine()
    paused = pipeline.run(store=store, model=model, options={"max_cost_usd": "0.001"})
    assert (paused.detail, type(paused.error)) == ("paused_budget", BudgetExceeded)
    state = load(store, paused.run_id)
    assert not state.tasks
    assert [run.status for run in state.steps.values()] == ["in_progress"]
    done = pipeline.resume(paused.run_id, store=store, model=model, options={"max_cost_usd": "5"})
    assert done.status == "completed"
    assert "fine" in str(done.outputs["buy"])


@pytest.mark.parametrize("in_task", [True, False])
def test_body_that_exits_or_is_cancelled_is_a_failed_one_and_one_that_is_interrupted_interrupts(
    store: MemoryStore, in_task: bool
) -> None:
    def go(error: BaseException) -> Any:
        def leave(ctx: StepContext, item: int = 0) -> Any:
            raise error

        body = (lambda ctx: ctx.map("item", [1], leave, key=str)) if in_task else leave
        return Pipeline("p", [step("leaves")(body)]).run(store=store)

    for error, said in ((SystemExit(3), "SystemExit: 3"), (asyncio.CancelledError("late"), "CancelledError: late")):
        result = go(error)
        assert (result.status, type(result.error)) == ("failed", StepFailed)
        assert said in str(result.error)
    stopped = go(KeyboardInterrupt())
    assert (stopped.status, stopped.detail) == ("in_progress", "interrupted")


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_error_of_a_body_is_recorded_without_keys_and_of_bounded_length(store: MemoryStore) -> None:
    for error, shown in (
        (Speechless(), "Speechless: (its text cannot be made: ValueError)"),
        (ValueError("the header said Bearer abc.def-123"), "ValueError: the header said Bearer [key]"),
        (ValueError("sk-ant-api03-abcdefgh is wrong"), "ValueError: [key] is wrong"),
        (ValueError("Authorization is Basic dTpwdzEyMzQ1"), "ValueError: Authorization is Basic [key]"),
        (ValueError("Basic Mathematics, basic education"), "ValueError: Basic Mathematics, basic education"),
        (ValueError("https://me:secret@host/x"), "ValueError: https://host/x"),
        (ValueError("x" * 5_000_000), "ValueError: " + "x" * 3987 + "…"),
    ):

        def fail(ctx: StepContext, error: Exception = error) -> Any:
            raise error

        result = Pipeline("p", [step("fails")(fail)]).run(store=store)
        where = f"test_engine_bodies.py:{fail.__code__.co_firstlineno + 1}"
        recorded = load(store, result.run_id).steps["fails#1"].error
        assert recorded == {"type": type(error).__name__, "message": shown, "where": where}
        assert str(result.error) == f"fails: {shown} ({where})"


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


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"file": b"x"}, InvalidValue), ({"api_key": "1"}, SecretRefused), ({"note": "sk-ant-api03-x"}, SecretRefused),
        ({"note": {"deep": ["x", {"er": "use sk-ant-api03-abcdef"}]}}, SecretRefused),
    ],
)  # fmt: skip
def test_parameter_that_is_no_json_or_a_secret_is_refused_by_name(
    store: MemoryStore, params: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=next(iter(params))):
        Pipeline("p", [step("a")(lambda ctx: {})]).run(store=store, params=params)
    assert not list(store.heads())


class Odd(ScriptedModel):
    """Answers with what no provider should send in the place of texts and objects."""

    def complete(self, request: Request) -> Reply:
        super().complete(request)
        return Reply("answer", "end_turn", usage=None, request_id=7, extra=None)  # type: ignore[arg-type]


def test_reply_with_odd_parts_is_recorded_and_not_bought_again(store: MemoryStore) -> None:
    stopped: list[str] = []

    @step()
    def buy(ctx: StepContext) -> Any:
        text = ask(ctx)
        if not stopped:
            stopped.append(text)
            ctx.stop("in the middle")
        return {"text": text}

    model, pipeline = Odd(lambda request: "answer", model_id=MODEL, paid=True), Pipeline("p", [buy])
    first = pipeline.run(store=store, model=model, prices=PriceBook())
    assert first.spent.unpriced == 1
    assert pipeline.resume(first.run_id, store=store, model=model).outputs["buy"] == {"text": "answer"}
    assert (model.calls, load(store, first.run_id).gaps) == (1, [])


@pytest.mark.parametrize("version", ["2", 1.5, None, True])
def test_version_that_is_no_whole_number_is_refused_at_once(store: MemoryStore, version: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        step(version=version)
    body = step("a")(lambda ctx: ctx.task("t", lambda ctx, item: 1, version=version))
    run = Pipeline("p", [body]).run(store=store).run_id
    assert (load(store, run).steps["a#1"].error or {})["code"] == caught.value.code == "invalid_version"


#: Members of a step's context that the documentation shows.
DOCUMENTED = {
    "ask", "ask_person", "context", "load", "map", "memory", "note", "options", "outputs", "params", "pin", "prompt",
    "save", "services", "settings", "stop", "task",
}  # fmt: skip


def test_step_context_has_few_public_members_and_all_that_are_documented() -> None:
    public, place = ({name for name in dir(kind) if not name.startswith("_")} for kind in (StepContext, VisitPlace))
    assert len(public) <= 24
    assert public >= DOCUMENTED
    assert place.isdisjoint(public)


TEXT = """
import functools
from prompts_of_test import TEMPLATE, phrase
import prompts_of_test

PROMPT = "Write about"
OTHER = "Never named"
LIMIT = 3

def clean(text):
    return text.strip()

class Checker:
    def check(self, text):
        return text

def body(ctx, item):
    # A remark
    return Checker().check(clean(PROMPT + item)) + TEMPLATE + phrase() + prompts_of_test.LAST

lines = [lambda ctx: "first", lambda ctx: "second"]
partial = functools.partial(body, item="x")

def outer():
    def inner(ctx):
        return "inner"
    return inner

inner = outer()

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@decorated
def wrapped(ctx):
    return "wrapped"

class Called:
    def __call__(self, ctx):
        return "called"

called = Called()
method = Checker().check
"""
PROMPTS = 'TEMPLATE = "A template"\nLAST = "last"\nUNUSED = 1\ndef phrase():\n    return "a phrase"\n'


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Loads the module of a user anew, with edits (was, is) of its text or of what it imports."""

    def loaded(*edits: tuple[str, str]) -> Any:
        texts = {"prompts_of_test": PROMPTS, "own": TEXT}
        for was, now in edits:
            name = "own" if was in TEXT else "prompts_of_test"
            assert was in texts[name]
            texts[name] = texts[name].replace(was, now)
        for name, text in texts.items():
            path = tmp_path / f"{name}.py"
            path.write_text(text)
            module = sys.modules[name] = ModuleType(name)
            module.__file__ = str(path)
            exec(compile(text, str(path), "exec"), module.__dict__)
        return module

    yield loaded
    for name in ("own", "prompts_of_test"):
        sys.modules.pop(name, None)


def test_hash_follows_the_text_of_the_body_and_of_all_that_it_names(user: Callable[..., Any]) -> None:
    before = code_of(user().body)
    assert before
    assert code_of(user().body) == before
    for edit in (
        ("Write about", "Tell of"), ("text.strip()", "text.lower()"), ("return text\n", "return text * 2\n"),
        ("A template", "Another"), ('"last"', '"least"'), ("a phrase", "two"), ("Checker().check(", "str("),
    ):  # fmt: skip
        assert code_of(user(edit).body) not in ("", before), edit
    for edit in (("Never named", "Still not"), ("UNUSED = 1", "UNUSED = 2"), ("LIMIT = 3", "LIMIT = 4\n\n\n")):
        assert code_of(user(edit).body) == before, edit


def test_body_of_any_form_is_found(user: Callable[..., Any]) -> None:
    for name, was, now in (
        ("partial", "Write about", "Tell of"), ("inner", '"inner"', '"other"'), ("wrapped", '"wrapped"', '"other"'),
        ("called", '"called"', '"other"'), ("method", "return text\n", "return text * 2\n"),
    ):  # fmt: skip
        before = code_of(getattr(user(), name))
        assert before, name
        assert code_of(getattr(user((was, now)), name)) not in ("", before), name
    lines = [code_of(each) for each in user().lines]
    assert all(lines)
    assert [code_of(each) for each in user(('"first"', '"other"')).lines] != lines


def test_thousand_steps_of_one_definition_cost_one_look_at_its_text(user: Callable[..., Any]) -> None:
    outer, files = user().outer, set[str]()
    assert code_of(outer())
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        assert code_of(outer()) == code_of(outer())
    finally:
        sys.setprofile(None)
    assert bodies.__file__ in files
    assert ast.__file__ not in files


def test_where_there_is_no_text_there_is_no_hash() -> None:
    names: dict[str, Any] = {}
    exec("def body(ctx): return 1\nother = lambda ctx: 2", names)
    made = [names["body"], names["other"], functools.partial(names["body"]), len, str, type("C", (), {})(), None]
    assert [code_of(body) for body in made] == [""] * len(made)
    assert {code_of(spec.run) for spec in PIPELINE.definition.steps.values()} == {""}


def test_function_that_a_graph_or_a_layer_calls_is_found() -> None:
    def mine(ctx: Any) -> dict[str, int]:
        return {"a": 1}

    found = standard_registry()
    found.register("mine", mine)
    text = "digraph { start [shape=Mdiamond] x [type=mine, goal_gate=true] y [prompt=Y] exit [shape=Msquare] "
    graph = compile_graph(parse_dot(text + "start -> x -> y -> exit }"), registry=found)
    codes = {name: code_of(spec.run) for name, spec in graph.definition.steps.items()}
    assert {name for name, code in codes.items() if code} == {"x"}
    assert code_of(step_of(DagTask("a"), mine, {}, SystemClock())) == code_of(mine) == codes["x"]


def test_file_edited_within_a_second_to_the_same_size_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "edited_at_once.py"
    for value in (1, 2):
        file.write_text(f"VALUE = {value}\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert value == load_file(file.stem, file).VALUE
