"""Pipelines that note what they do in a folder and die, or fail, where a file there says so.

Started as `run FILE.py:NAME`, or as a program where a case needs what the command line cannot give: a scripted model,
a memory of the user's own.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline import Outcome, Pipeline, StepContext, open_store, step
from pipeline.clock import SystemClock
from pipeline.cost.prices import PriceBook
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.routing import Route, Settled, by_label
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepSpec
from pipeline.errors import TaskRejected
from pipeline.graph.model import Graph, Node
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel

MODEL = "claude-sonnet-5-5"


def home() -> Path:
    return Path(os.environ["DYING_HOME"])


def die_if(name: str) -> None:
    """Kill -9 of oneself, once, where it was asked for."""
    order = home() / name
    if order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def act(ctx: StepContext) -> None:
    """Note that this step acts; then die or fail where that was asked for."""
    with (home() / "ran").open("a") as out:
        out.write(ctx.place.node.id + "\n")
    die_if(f"die-{ctx.place.node.id}")
    if (home() / f"fail-{ctx.place.node.id}").exists():
        raise ValueError(f"{ctx.place.node.id} has no luck")


def letter(name: str, before: str = "") -> StepSpec:
    """A step that adds its name to the text of the one before it."""

    def body(ctx: StepContext) -> dict[str, Any]:
        act(ctx)
        return {"text": (ctx.outputs[before]["text"] if before else "") + name}

    return step(name)(body)


CHAIN = Pipeline("chain", [letter("a"), letter("b", "a"), letter("c", "b"), letter("d", "c")])


@step(effect="external")
def send(ctx: StepContext) -> dict[str, Any]:
    act(ctx)
    return {"text": "sent by itself"}


@step(effect="external", repeatable=True)
def post(ctx: StepContext) -> dict[str, Any]:
    act(ctx)
    return {"text": "posted"}


MAIL = Pipeline("mail", [letter("draft"), send, letter("note", "send")])
POST = Pipeline("post", [letter("draft"), post, letter("note", "post")])


@step()
def keeps(ctx: StepContext) -> dict[str, Any]:
    """A read step whose task writes."""

    def body(task: StepContext, item: str) -> str:
        act(ctx)
        return item

    return {"text": ctx.task("put", body, "kept", effect="write")}


KEEP = Pipeline("keep", [keeps, letter("note", "keeps")])


@step()
def think(ctx: StepContext) -> dict[str, Any]:
    return {"text": ctx.ask(Request(MODEL, [Message("user", "think")], max_tokens=100)).text}


PAID = Pipeline("paid", [think, letter("note", "think")])


@step()
def choose(ctx: StepContext) -> Outcome:
    def body(task: StepContext, item: None) -> str:
        return (home() / "choice").read_text()

    act(ctx)
    label = ctx.task("choice", body)
    die_if("die-before-choosing")
    return Outcome({"text": "x"}, label=label)


CHOICE = Pipeline(
    "choice", [choose, letter("left"), letter("right"), letter("end")],
    edges=[("choose", "left", "left"), ("choose", "right", "right"), ("left", "end"), ("right", "end")],
    joins={"end": "all"},
)  # fmt: skip


@step(effect="human")
def review(ctx: StepContext) -> dict[str, Any]:
    act(ctx)
    answer = ctx.ask_person("Publish it?", ["yes", "no"], {"text": ctx.outputs["draft"]["text"]})
    if answer.choice == "no":
        raise TaskRejected("The reviewer said no.")
    return {"text": answer.choice}


@step(effect="external")
def publish(ctx: StepContext) -> dict[str, Any]:
    act(ctx)
    return {"text": "published"}


GATE = Pipeline("gate", [letter("draft"), review, publish])


def half(name: str) -> StepSpec:
    """A branch that sets outputs, context and an artifact."""

    def body(ctx: StepContext) -> Outcome:
        act(ctx)
        ctx.save(f"art-{name}", {"of": name})
        return Outcome({"text": name}, context={f"set-{name}": True})

    return step(name, saves=[f"art-{name}"])(body)


@step()
def join(ctx: StepContext) -> dict[str, Any]:
    act(ctx)
    arts = [ctx.load(f"art-{name}")["of"] for name in ("left", "right")]
    return {"arts": arts, "context": sorted(ctx.context)}


PARALLEL = Pipeline(
    "parallel", [letter("start"), half("left"), half("right"), join],
    edges=[("start", "left"), ("start", "right"), ("left", "join"), ("right", "join")], joins={"join": "all"},
)  # fmt: skip


@step(effect="write")
def learn(ctx: StepContext) -> dict[str, Any]:
    known = [trace.content for trace in ctx.memory.read("")]
    for name in ("one", "two", "three"):
        ctx.memory.write("lesson", name, scope="run")
    return {"known": known}


MEMORY = Pipeline("memory", [learn, letter("note")])


class DyingMemory:
    """Lines of a file; dies after as many lines as `die-after` says."""

    def rows(self) -> list[list[str]]:
        path = home() / "memory"
        return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []

    def read(self, query: str) -> list[tuple[str, str, float]]:
        return [(key, content, 1.0) for key, content in self.rows()]

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        if key not in [row[0] for row in self.rows()]:
            with (home() / "memory").open("a") as out:
                out.write(f"{key}\t{content}\n")
        die_if(f"die-after-{content}")


def three_tries(settled: Settled) -> Route:
    return Route(retry_seconds=0.0) if settled.failed and settled.attempt < 3 else by_label(settled)


def shaky(ctx: StepContext) -> dict[str, Any]:
    act(ctx)
    said = ctx.ask(Request(MODEL, [Message("user", f"attempt {ctx.attempt}")], max_tokens=100)).text
    raise TaskRejected(f"{said} is not good enough")


SHAKY = Definition(
    "shaky", Graph.of([Node("shaky")], [], "shaky"), {"shaky": StepSpec("shaky", shaky)}, {}, three_tries
)


def dying_answer(request: Request) -> str:
    """The answer; or death in the middle of the call."""
    text = request.messages[0].text
    with (home() / "asked").open("a") as out:
        out.write(text + "\n")
    die_if("die-in-" + text.replace(" ", "-"))
    return text.upper()


def retried(store: Any, run: str) -> RunResult:
    """Start or resume the run of three tries."""
    clock = SystemClock()
    model = ScriptedModel(dying_answer, model_id=MODEL, paid=True)
    setup = Setup(store, clock, Emitter(clock, []), {}, model)
    setup.info, setup.prices = model.check(), PriceBook()
    engine = Engine(SHAKY, setup)
    return engine.resume(run) if run else engine.start({}, identity={"model": MODEL}, pins={})


def remembered(store: Any, run: str) -> RunResult:
    """Start or resume the run with a memory."""
    services: Mapping[str, Any] = {"memory": DyingMemory()}
    return MEMORY.resume(run, store=store, services=services) if run else MEMORY.run(store=store, services=services)


def main(what: str) -> None:
    """Start the run of this store, or go on with it."""
    store = open_store(os.environ["PIPELINE_STORE"])
    run = next((head.run_id for head in store.heads()), "")
    result = {"retried": retried, "remembered": remembered}[what](store, run)
    sys.exit(result.exit_code)


if __name__ == "__main__":
    main(sys.argv[1])
