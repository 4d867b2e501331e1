"""Pipelines whose half-done runs are kept: a chain with maps, several asks a task, schemas with and without an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline import Message, Pipeline, Request, StepContext, TaskResult, step
from pipeline.formats.casys.tools import TaskCall

MODEL = "claude-sonnet-5-5"
#: A model that no price list names.
UNPRICED = "claude-atlas-9"
CHAPTERS = ("tides", "moons", "winds", "stars")
SCHEMA = {
    "type": "object",
    "properties": {"echo": {"type": "string"}},
    "required": ["echo"],
    "additionalProperties": False,
}


def ask(text: str, model: str = MODEL, **more: Any) -> Request:
    """A question of 400 tokens at most."""
    return Request(model, [Message("user", text)], max_tokens=400, **more)


@step(saves=("outline",))
def plan(ctx: StepContext) -> Mapping[str, Any]:
    """Three asks in the step itself: free text, a schema without an id, and the same question once more."""
    topic = ctx.params["topic"]
    ctx.save("outline", {"text": ctx.ask(ask(f"Outline a book of {topic}", schema=SCHEMA)).text})
    titles = [ctx.ask(ask(f"A title for a book of {topic}")).text for _ in range(2)]
    return {"titles": titles}


def chapter(ctx: StepContext, name: str) -> Mapping[str, Any]:
    """A draft, its summary under a schema without an id, its check under one with an id, and a title."""
    draft = ctx.ask(ask(f"Draft a chapter of {name}", effort="low")).text
    summary = ctx.ask(ask(f"Sum up: {draft}", schema=SCHEMA)).text
    check = ctx.ask(ask(f"Check: {draft}", schema=SCHEMA, schema_id="check", schema_version=2)).text
    return {"summary": summary, "check": check, "title": ctx.ask(ask(f"A title for: {draft}")).text}


@step()
def chapters(ctx: StepContext) -> Mapping[str, Any]:
    """A map of tasks that ask four times each."""
    made = list(ctx.map("chapters", CHAPTERS, chapter, key=str))
    return {"summaries": [row["summary"] for row in made]}


@step()
def bind(ctx: StepContext) -> Mapping[str, Any]:
    """A single task, and an ask of the step itself."""
    index = ctx.task("index", lambda ctx, item: ctx.ask(ask(f"Index: {item}")).text, list(CHAPTERS))
    blurb = ctx.ask(ask(f"A blurb for {ctx.outputs['plan']['titles'][0]}")).text
    return {"index": index, "blurb": blurb, "parts": len(ctx.outputs["chapters"]["summaries"])}


@step()
def measure(ctx: StepContext) -> Mapping[str, Any]:
    """One call without a price between two with one."""
    models = (MODEL, UNPRICED, MODEL, MODEL)
    return {"texts": [ctx.ask(ask(f"Measure {n}", model)).text for n, model in enumerate(models)]}


BOOK = Pipeline("book", [plan, chapters, bind])
MEASURED = Pipeline("measured", [measure])

#: Layers: two roots, a middle, an end.
LAYERS: dict[str, Any] = {
    "tasks": [
        {"id": name, "tool": "work", "arguments": {"name": name}, "depends_on": needs}
        for name, needs in (("a", []), ("b", []), ("c", ["a", "b"]), ("d", ["c"]))
    ]
}


class Tool:
    """The tool of the layers: asks, notes its tasks, and fails at those that are named."""

    def __init__(self, *bad: str) -> None:
        self.ran: list[str] = []
        self._bad = bad

    def __call__(self, call: TaskCall) -> Any:
        self.ran.append(call.id)
        text = call.ask(ask(f"Work at {call.id}")).text
        if call.id in self._bad:
            raise ValueError(f"{call.id} cannot")
        return TaskResult({"of": text, "from": sorted(call.inputs)}, context={call.id: len(call.inputs)})
