"""What a newcomer easily writes: it works where only one thing can be meant, else a sentence says what to write."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline import (
    CheckpointStore,
    ControlledExecutor,
    Message,
    Pipeline,
    Reply,
    Request,
    StepContext,
    compile_graph,
    fork_run,
    open_store,
    parse_dot,
    run_compiled_graph,
    run_dot,
    step,
)
from pipeline.engine.pipeline import load_pipeline
from pipeline.engine.setup import EFFECTS
from pipeline.errors import ConfigError, PipelineError
from pipeline.llm.base import ModelInfo
from pipeline.llm.script import ScriptedModel
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import ask, facts

KEY = f"sk-ant-api03-{'x' * 40}"
USER = [Message("user", "Hello?")]


def one(ctx: StepContext) -> Mapping[str, Any]:
    """A step that asks nothing."""
    return {"one": 1}


@step()
def asks(ctx: StepContext) -> Mapping[str, Any]:
    """One call."""
    return {"text": ctx.ask(ask("Well?")).text}


async def later(ctx: StepContext, item: Any = None) -> Mapping[str, Any]:
    """What an async framework would take."""
    return {}


class Talks(ScriptedModel):
    """A model whose complete() raises with its key in the text."""

    def complete(self, request: Request) -> Reply:
        raise ValueError(f"no answer for {KEY}")


class Texts:
    """A model whose complete() gives text."""

    def check(self) -> Any:
        return ModelInfo("texts", paid=False)

    def complete(self, request: Request) -> Any:
        return "a text"

    def close(self) -> None: ...


class Named(Texts):
    """A model whose check() gives a name."""

    def check(self) -> Any:
        return "texts"


class Later(Texts):
    """A model that has to be awaited."""

    async def complete(self, request: Request) -> Any:
        return Reply("a text", "end_turn")


PIPELINE: Any = Pipeline("one", [one])

#: What is written, the code of its error, and what its sentence or hint has to say.
SLIPS: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: step(one), "bare_step", "@step()"),  # type: ignore[arg-type]
    (lambda: step(version="2"), "invalid_version", "version"),  # type: ignore[arg-type]
    (lambda: step(effect="reed"), "invalid_effect", "'read'"),
    (lambda: step()(later), "async_body", "asyncio.run"),
    (lambda: step()(lambda: {}), "invalid_body", "(ctx)"),  # type: ignore[misc, arg-type]
    (lambda: Pipeline("one", ["one"]), "invalid_body", "not 'one'"),  # type: ignore[list-item]
    (lambda: Pipeline("one", one), "invalid_steps", "list of steps"),  # type: ignore[arg-type]
    (lambda: Pipeline([one], "one"), "invalid_steps", "list of steps"),  # type: ignore[arg-type]
    (lambda: Pipeline("one", [one], joins={"on": "all"}), "unknown_step", "'one'"),
    (lambda: Pipeline("one", [one], edges=[("one",)]), "invalid_edge", "(source, target)"),
    (lambda: Pipeline("one", [one], edges=["one"]), "invalid_edge", "(source, target)"),
    (lambda: open_store(Path("runs")), "store_url_invalid", "files:runs"),  # type: ignore[arg-type]
    (lambda: open_store("runs"), "store_url_invalid", "files:runs"),
    (lambda: PIPELINE.run(store=Path("runs")), "store_url_invalid", "files:runs"),
    (lambda: PIPELINE.run(store=None), "invalid_argument", "open_store"),
    (lambda: PIPELINE.run(store="memory:", model=ScriptedModel), "invalid_argument", "ScriptedModel(…)"),
    (lambda: PIPELINE.run(store="memory:", model=object()), "invalid_argument", "complete()"),
    (lambda: PIPELINE.run(store="memory:", model=Named()), "invalid_model_info", "ModelInfo"),
    (lambda: PIPELINE.run(store="memory:", model=Later()), "async_body", "plain function"),
    (lambda: PIPELINE.run(store="memory:", listener=3), "invalid_body", "(event)"),
    (lambda: PIPELINE.run(store="memory:", listener=later), "async_body", "plain function"),
    (lambda: PIPELINE.run(store="memory:", pins=["a"]), "invalid_argument", "pins is"),
    (lambda: PIPELINE.run(store="memory:", services=3), "invalid_argument", "services is 3"),
    (lambda: PIPELINE.resume(PIPELINE.run(store="memory:"), store="memory:"), "invalid_argument", "result.run_id"),
    (lambda: ScriptedModel("hello"), "invalid_argument", "ScriptedModel(["),
    (lambda: ControlledExecutor(tools={"x": later}), "async_body", "plain function"),  # type: ignore[dict-item]
    (lambda: ControlledExecutor(tools={"x": 3}), "invalid_body", "(call)"),  # type: ignore[dict-item]
    (lambda: ControlledExecutor(store=Path("runs")), "store_url_invalid", "files:runs"),  # type: ignore[arg-type]
    (lambda: PIPELINE.run(store="memory:", prices="none.toml"), "price_file_unreadable", "none.toml"),
    (lambda: PIPELINE.run(["a"], store="memory:"), "invalid_argument", "params is ['a']"),
    (lambda: PIPELINE.run({1: "a"}, store="memory:"), "invalid_argument", "key 1"),
    (lambda: PIPELINE.run(store="memory:", options=["batch"]), "invalid_argument", "options is"),
    (lambda: PIPELINE.run(store="memory:", options={"max_cost_usd": "cheap"}), "invalid_option", "2.50"),
    (lambda: PIPELINE.run(store="memory:", options={"concurrency": 0}), "invalid_option", "at least 1"),
    (lambda: PIPELINE.run(store="memory:", options={"max_cost": 1}), "unknown_option", "'max_cost_usd'"),
    (lambda: PIPELINE.run(store="memory:", max_cost_usd="cheap"), "unknown_argument", 'options={"max_cost_usd"'),
    (lambda: PIPELINE.run(store="memory:", concurency=0), "unknown_argument", 'options={"concurrency"'),
    (lambda: PIPELINE.run(store="memory:", modell="x"), "unknown_argument", "'model'"),
    (lambda: PIPELINE.resume("latest", store="memory:", yess=True), "unknown_argument", "'yes'"),
    (lambda: Request("m", "Hello?"), "invalid_request", 'Message("user"'),  # type: ignore[arg-type]
    (lambda: Request("m", ["Hello?"]), "invalid_request", 'Message("user"'),  # type: ignore[list-item]
    (lambda: Request("m", USER, "Be kind."), "invalid_request", "Segment("),  # type: ignore[arg-type]
    (lambda: Request(USER, "m"), "invalid_request", "not a name"),  # type: ignore[arg-type]
    (lambda: Request("m", [Message("human", "Hello?")]), "invalid_request", "'human'"),
]  # fmt: skip


@pytest.mark.parametrize(("slip", "code", "says"), SLIPS)
def test_slip_at_the_front_door_gets_a_sentence(slip: Callable[[], Any], code: str, says: str) -> None:
    with pytest.raises(PipelineError) as caught:
        slip()
    assert caught.value.code == code
    assert says in f"{caught.value.message} {caught.value.hint}"


#: What a step's code does, and the code of its error or what the error says.
BODIES: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda ctx: ctx.ask("Hello?"), "invalid_request", "Request("),
    (lambda ctx: ctx.map("n", [1], later, key=str), "async_body", "ctx.map"),
    (lambda ctx: ctx.map("n", [1], lambda item: item, key=str), "invalid_body", "(ctx, item)"),
    (lambda ctx: ctx.map("n", [1], 3, key=str), "invalid_body", "not 3"),
    (lambda ctx: ctx.map("n", [1], lambda c, i: i, key="id"), "invalid_body", "(item)"),
    (lambda ctx: ctx.map("n", 3, lambda c, i: i, key=str), "invalid_items", "range(n)"),
    (lambda ctx: ctx.map("n", "Oban\nNairn", lambda c, i: i, key=str), "invalid_items", "splitlines()"),
    (lambda ctx: ctx.load("cards"), "unknown_artifact", "saved"),
    (lambda ctx: ctx.prompt("cart"), "unknown_pin", "prompt:card"),
    (lambda ctx: ctx.task(lambda c, i: i, "n"), "invalid_name", "NAME"),
    (lambda ctx: ctx.task("n", lambda c, i: i, effect="writes"), "invalid_effect", "'write'"),
    (lambda ctx: later(ctx), "async_body", "asyncio.run"),
    (lambda ctx: ctx.map("n", [1], functools.partial(later), key=str), "items_failed", "asyncio.run"),
    (lambda ctx: ctx.map("n", [1], lambda c, i: later(c), key=str), "items_failed", "asyncio.run"),
    (lambda ctx: ctx.param, "", "'params'"),
    (lambda ctx: ctx.params.town, "", '["town"]'),
    (lambda ctx: ctx.params["twon"], "missing_value", "town"),
    (lambda ctx: "text", "outputs_not_mapping", '{"result": …}'),
    (lambda ctx: {"reply": ctx.ask(ask("Hello?"))}, "invalid_value", "reply.text"),
]


@pytest.mark.parametrize(("body", "code", "says"), BODIES)
def test_slip_in_a_body_gets_a_sentence(store: MemoryStore, body: Callable[[Any], Any], code: str, says: str) -> None:
    result = Pipeline("slips", [step("slip")(body)]).run(
        {"town": "Oban"}, store=store, model=ScriptedModel(), pins={"prompt:card": "A card."}
    )  # fmt: skip
    error = load(store, result.run_id).steps["slip#1"].error
    assert error is not None
    assert error.get("code", "") == code
    assert says in f"{error['message']} {error.get('hint', '')}"


def test_model_that_gives_text_stops_the_run_and_its_call_has_an_end(store: MemoryStore) -> None:
    what = Pipeline("texts", [step("ask")(lambda ctx: {"text": ctx.ask(ask("Hello?")).text})])
    result = what.run(store=store, model=Texts())
    assert result.error is not None
    assert (result.error.code, "Reply(text" in result.error.hint) == ("reply_expected", True)
    assert len(facts(store, result.run_id, CallStarted)) == len(facts(store, result.run_id, CallEnded)) == 1


def test_store_and_model_may_be_named(tmp_path: Path) -> None:
    url = f"files:{tmp_path}"
    what = Pipeline("named", [step("ask")(lambda ctx: {"text": ctx.ask(ask("Hello?", "offline")).text})], asks=True)
    first = what.run(store=url, model="offline", options={"daily_budget_usd": "1"}, account=url)
    assert first.outputs["ask"]["text"].startswith("[offline stand-in for call]")
    assert what.resume("latest", store=url, model="offline", account=url).run_id == first.run_id
    with pytest.raises(PipelineError) as caught:
        PIPELINE.run(store=url, model="claude-sonnet-5-5")
    assert caught.value.code == "credential_missing"


def test_dot_graphs_from_python_take_the_same_names_and_refuse_the_same_slips(tmp_path: Path) -> None:
    file = tmp_path / "graph.dot"
    file.write_text("digraph g { start [shape=Mdiamond]; end [shape=Msquare]; start -> a -> end; a [prompt=hello] }")
    done = run_dot(file, store=f"files:{tmp_path}/runs", model="offline")
    assert done.status == "completed"
    for more, code in (
        ({"max_cost": 1}, "unknown_argument"), ({"max_cost_usd": "cheap"}, "invalid_option"),
        ({"concurrency": 0}, "invalid_option"), ({"store": Path("runs")}, "store_url_invalid"),
    ):  # fmt: skip
        with pytest.raises(PipelineError) as caught:
            run_dot(file, **more)
        assert caught.value.code == code
    wrong: Any = str(file)
    for slip in (compile_graph, run_compiled_graph, lambda text: parse_dot(Path(text))):  # type: ignore[arg-type]
        with pytest.raises(PipelineError) as caught:
            slip(wrong)
        assert (caught.value.code, "run_dot" in caught.value.hint or "parse_dot" in caught.value.hint) == (
            "invalid_argument", True,
        )  # fmt: skip


def test_other_front_doors_take_a_stores_url(tmp_path: Path) -> None:
    url = f"files:{tmp_path}"
    run = PIPELINE.run(store=url).run_id
    child = fork_run(url, run, at="start", into=url)
    assert PIPELINE.resume(child, store=url).status == "completed"
    assert CheckpointStore(url) is not None
    for slip in (lambda: fork_run(Path("runs"), run), lambda: CheckpointStore(3)):  # type: ignore[arg-type]
        with pytest.raises(PipelineError):
            slip()


def test_body_may_run_a_loop_of_its_own_wherever_the_run_was_begun(store: MemoryStore) -> None:
    async def twice(text: str) -> str:
        await asyncio.sleep(0)
        return text * 2

    body = step("wait")(lambda ctx: {"text": asyncio.run(twice("a"))})
    what = Pipeline("waits", [body, step("more")(lambda ctx: {"text": asyncio.run(twice("b"))})])

    async def cell() -> list[Any]:
        """A notebook's cell: a loop runs in its thread already."""
        beside = await asyncio.to_thread(what.run, store=store)
        return [what.run(store=store).outputs, beside.outputs]

    assert asyncio.run(cell()) == [{"wait": {"text": "aa"}, "more": {"text": "bb"}}] * 2


def test_effects_are_those_of_the_guide() -> None:
    assert all(step(effect=effect)(one).effect == effect for effect in EFFECTS)
    assert Reply("x", "end_turn").complete


def test_key_in_the_error_of_a_model_is_not_recorded() -> None:
    store = open_store("memory:")
    result = Pipeline("asks", steps=[asks]).run(store=store, model=Talks([]))
    (ended,) = facts(store, result.run_id, CallEnded)
    assert "no answer for" in str(ended.error)
    assert KEY not in str(ended.error)


def test_file_that_leaves_the_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ConfigError, match=r"leaves\.py cannot be imported: SystemExit: 0"):
        load_pipeline(str(tmp_path / "leaves.py"))
