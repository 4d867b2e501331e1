"""Plays DOT graphs in tests with the handlers that are built in: a store in memory, a model with a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.dot.parser import parse
from pipeline.engine.changes import Stale
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.children import from_texts, inline_children
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.llm.base import Request
from pipeline.records.run import RunState, StepRun
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock, ScriptedModel

ENDS = "start [shape=Mdiamond]\nexit [shape=Msquare]\n"
#: What a model says: a function of the request, or texts in the order of the calls.
Script = Callable[[Request], Any] | list[Any]


class Act:
    """One graph and the run of it, over as many processes as it takes."""

    def __init__(
        self,
        text: str,
        script: Script | None = None,
        *,
        children: Mapping[str, str] | None = None,
        handlers: Registry | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        graph = parse(text if "digraph" in text else f"digraph g {{\n{ENDS}{text}\n}}", "g.dot")
        self.dot = inline_children(graph, from_texts(children or {}))
        self.model = ScriptedModel(script if script is not None else lambda request: f"reply to {said(request)}")
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.definition: Definition = compile_graph(self.dot, handlers or standard_registry())
        self.params = dict(params or {})
        self.run_id = ""
        #: Whether a person says yes to what is asked before a resume.
        self.yes = True
        #: What people were told.
        self.notes: list[str] = []

    def go(
        self,
        *,
        services: Mapping[str, Any] | None = None,
        model: bool = True,
        imported: Mapping[str, Any] | None = None,
        accept: Callable[[Stale], bool] | None = None,
        **options: Any,
    ) -> RunResult:
        """Start the run, or go on with it in a new process."""
        emit = Emitter(self.clock, [lambda event: self.notes.append(str(event.data.get("text", "")))])
        setup = Setup(
            self.store, self.clock, emit, {"concurrency": 4, **options}, services=services or {}, yes=self.yes
        )
        if model:
            setup.model, setup.info, setup.prices = self.model, self.model.check(), PriceBook()
        engine = Engine(self.definition, setup)
        identity = {"model": "scripted", "author": "model"} if model else {}
        if self.run_id:
            return engine.resume(self.run_id, accept=accept)
        result = engine.start(self.params, identity=identity, pins={}, imported=imported)
        self.run_id = result.run_id
        return result

    def dying_after(self, node: str) -> None:
        """Let the next process stop between the node's work and the record of its end, once."""
        spec, left = self.definition.steps[node], [True]

        def body(ctx: StepContext) -> Any:
            made = spec.run(ctx)
            if left:
                left.pop()
                ctx.stop("here")
            return made

        steps = {**self.definition.steps, node: replace(spec, run=body)}
        self.definition = replace(self.definition, steps=steps)

    @property
    def state(self) -> RunState:
        return load(self.store, self.run_id)

    @property
    def order(self) -> list[str]:
        """Visits in the order of their ends."""
        runs = sorted(self.state.steps.values(), key=lambda run: run.ended_seq)
        return [run.path.removesuffix("#1") for run in runs]

    def visit(self, path: str) -> StepRun:
        return self.state.steps[path if "#" in path else f"{path}#1"]

    def context(self, key: str) -> Any:
        return self.state.context.get(key)

    @property
    def prompts(self) -> list[str]:
        """What the model was asked last in each call."""
        return [said(request) for request in self.model.requests]


def said(request: Request) -> str:
    """The last turn of a request."""
    return request.messages[-1].text


def system(request: Request) -> str:
    return "\n".join(part.text for part in request.system)


def turns(request: Request) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in request.messages]
