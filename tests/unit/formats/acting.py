"""Plays DOT graphs in tests on a store in memory: with a model that has a script, or with handlers that have one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.dot import kinds
from pipeline.dot.parser import parse
from pipeline.engine.changes import Stale
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.children import from_texts, inline_children
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.fan import fan_in
from pipeline.formats.attractor.handlers.registry import Handler, Registry, Visit
from pipeline.formats.attractor.handlers.standard import conditional, standard_registry
from pipeline.formats.attractor.outcome import NodeOutcome, outcome_of
from pipeline.formats.attractor.run_documents import shaped
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


#: What a node does: its outcomes by visit (the last one for all later), or a function of its context.
Said = str | NodeOutcome | Sequence[str | NodeOutcome] | Callable[[StepContext], Any]


class Play(Act):
    """One graph whose handlers do as a script says."""

    def __init__(self, text: str, script: Mapping[str, Said] | None = None) -> None:
        self.script = dict(script or {})
        #: Paths and attempts in the order in which the handlers were called.
        self.called: list[tuple[str, int]] = []
        made = Registry([Handler(kinds.CONDITIONAL, conditional), Handler(kinds.FAN_IN, self._gather)])
        for kind in kinds.KINDS:
            if kind.type not in (kinds.CONDITIONAL, kinds.FAN_IN):
                made.register(kind.type, self._act, effect="pure")
        super().__init__(text if "digraph" in text else f"digraph g {{\n{text}\n}}", handlers=made)

    def _act(self, ctx: StepContext) -> Any:
        self.called.append((ctx.path, ctx.attempt))
        said = self.script.get(ctx.place.node.id, NodeOutcome())
        if callable(said):
            return said(ctx)
        if not isinstance(said, str | NodeOutcome):
            said = said[min(self.count(ctx.place.node.id), len(said)) - 1]
        return NodeOutcome(said) if isinstance(said, str) else said

    def _gather(self, visit: Visit) -> NodeOutcome:
        if visit.node.id in self.script:
            return outcome_of(self._act(visit.ctx))
        self.called.append((visit.ctx.path, visit.ctx.attempt))
        return fan_in(visit)

    def count(self, node: str) -> int:
        """How often a node's handler was called."""
        return sum(path.rpartition("#")[0] == node for path, _ in self.called)

    @property
    def order(self) -> list[str]:
        """Nodes in the order in which their visits ended."""
        return [visit.partition("#")[0] for visit in super().order]

    def told(self, name: str) -> Any:
        """What checkpoint.json says of the run under one of the dialects' names."""
        return shaped(self.dot, {}, self.state)[name]

    def reason(self, path: str) -> str:
        return self.state.steps[path].reason


def played(text: str, script: Mapping[str, Said] | None = None) -> tuple[Play, RunResult]:
    """A graph that ran, and how that ended."""
    play = Play(text, script)
    return play, play.go(model=False)
