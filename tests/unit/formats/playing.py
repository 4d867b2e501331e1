"""Plays DOT graphs in tests: handlers that do as a script says, on the real engine with a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.parser import parse
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.fan import fan_in
from pipeline.formats.attractor.handlers.registry import Handler, Registry, Visit
from pipeline.formats.attractor.handlers.standard import conditional
from pipeline.formats.attractor.outcome import NodeOutcome, outcome_of
from pipeline.formats.attractor.run_documents import shaped
from pipeline.records.run import RunState
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock

#: What a node does: its outcomes by visit (the last one for all later), or a function of its context.
Said = str | NodeOutcome | Sequence[str | NodeOutcome] | Callable[[StepContext], Any]


class Play:
    """One graph, what its nodes do, and the run of it."""

    def __init__(self, text: str, script: Mapping[str, Said] | None = None) -> None:
        self.script = dict(script or {})
        self.dot = parse(text if "digraph" in text else f"digraph g {{\n{text}\n}}", "g.dot")
        #: Paths and attempts in the order in which the handlers were called.
        self.called: list[tuple[str, int]] = []
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.definition: Definition = compile_graph(self.dot, self.handlers())
        self.run_id = ""

    def handlers(self) -> Registry:
        made = Registry([Handler(kinds.CONDITIONAL, conditional), Handler(kinds.FAN_IN, self._gather)])
        for kind in kinds.KINDS:
            if kind.type not in (kinds.CONDITIONAL, kinds.FAN_IN):
                made.register(kind.type, self._act, effect="pure")
        return made

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

    def go(self, **options: Any) -> RunResult:
        """Start the run, or go on with it."""
        setup = Setup(self.store, self.clock, Emitter(self.clock), {"concurrency": 4, **options})
        engine = Engine(self.definition, setup)
        result = engine.resume(self.run_id) if self.run_id else engine.start({}, identity={}, pins={})
        self.run_id = result.run_id
        return result

    @property
    def state(self) -> RunState:
        return load(self.store, self.run_id)

    @property
    def order(self) -> list[str]:
        """Nodes in the order in which their visits ended."""
        runs = sorted(self.state.steps.values(), key=lambda run: run.ended_seq)
        return [run.node for run in runs]

    def told(self, name: str) -> Any:
        """What checkpoint.json says of the run under one of the dialects' names."""
        return shaped(self.dot, {}, self.state)[name]

    def reason(self, path: str) -> str:
        return self.state.steps[path].reason


def played(text: str, script: Mapping[str, Said] | None = None) -> tuple[Play, RunResult]:
    """A graph that ran, and how that ended."""
    play = Play(text, script)
    return play, play.go()


#: The ends that most graphs of the tests have.
ENDS = "start [shape=Mdiamond]\nexit [shape=Msquare]\n"
