"""Which handler works for which type of node; users add theirs, and replace what is built in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph, DotNode
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.errors import ConfigError
from pipeline.formats.attractor.children import CHILD_OF
from pipeline.formats.attractor.handlers.foreign import executed
from pipeline.formats.attractor.handlers.results import outcome_of
from pipeline.formats.attractor.outcome import NodeOutcome, to_engine

#: What a handler may do to the world outside the run.
EFFECTS = ("pure", "read", "write", "external", "human")


@dataclass(frozen=True, slots=True)
class Visit:
    """What a handler works with."""

    ctx: StepContext
    #: The node as its file says it, and the graph it stands in.
    node: DotNode
    graph: DotGraph


@dataclass(frozen=True, slots=True)
class Handler:
    """How the nodes of one type are worked."""

    #: Value of the attribute `type`.
    type: str
    run: Callable[[Visit], NodeOutcome]
    purpose: str = ""
    #: Shape that means this type; "": only the type itself does.
    shape: str = ""
    #: pure, read, write, external or human.
    effect: str = "read"
    #: May write/external work whose end is unknown be done again?
    repeatable: bool = False
    #: A user's own: it may read whatever its nodes say.
    own: bool = True


class Row(NamedTuple):
    """A handler as it is listed."""

    type: str
    shape: str
    purpose: str
    effect: str


class Registry:
    """Handlers by type, in order of registration; a type that nobody knows is worked as codergen."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._known: dict[str, Handler] = {}
        for handler in handlers:
            self.add(handler)

    def add(self, handler: Handler) -> None:
        """Take a handler in; it replaces the one of its type.

        Raises:
            ConfigError: It has no type, or an effect that there is not.
        """
        if not handler.type.strip():
            raise ConfigError("A handler is registered under a type; this one has none.")
        if handler.effect not in EFFECTS:
            raise ConfigError(f"effect={handler.effect!r}: it is one of {', '.join(EFFECTS)}.")
        self._known[handler.type] = handler

    def register(
        self, type: str, handler: Any, *, purpose: str = "", effect: str = "", repeatable: bool = False
    ) -> None:
        """Work nodes of a type by a handler of one's own.

        Args:
            handler: A function `(ctx)` that returns a NodeOutcome, a mapping of outputs (or what a status.json says),
                a text or nothing; or an object with `execute(node, context, graph, logs_root)`.
            effect: pure, read, write, external or human; "": as the handler it replaces, else read.

        Raises:
            ConfigError: It is neither, or the effect is none.
        """
        former = self._known.get(type)
        run: Callable[[Visit], NodeOutcome]
        if callable(execute := getattr(handler, "execute", None)):
            run = partial(_execute, execute)
        elif callable(handler):
            run = partial(_call, handler)
        else:
            raise ConfigError(f"The handler of {type!r} is neither a function nor an object with execute().")
        shape = former.shape if former else ""
        effect = effect or (former.effect if former else "read")
        self.add(Handler(type, run, purpose or _first_line(handler), shape, effect, repeatable))

    def resolve(self, type: str) -> Handler:
        """The handler of a type; where there is none, that of codergen.

        Raises:
            ConfigError: There is no codergen either.
        """
        found = self._known.get(type) or self._known.get(kinds.CODERGEN)
        if found is None:
            raise ConfigError(f"Nothing is registered for the type {type!r}.")
        return found

    def types(self) -> frozenset[str]:
        """All types that something is registered for."""
        return frozenset(self._known)

    def own_types(self) -> frozenset[str]:
        """The types that a handler of the user's own works."""
        return frozenset(type for type, known in self._known.items() if known.own)

    def rows(self) -> list[Row]:
        """What is registered, for people."""
        return [Row(known.type, known.shape, known.purpose, known.effect) for known in self._known.values()]

    def step(self, graph: DotGraph, node: DotNode) -> StepSpec:
        """The step that works a node of a graph."""
        handler = self.resolve(graph.kind(node))
        said = node.text("effect").strip().lower()
        effect = said if said in EFFECTS else handler.effect
        repeatable = handler.repeatable if (flag := node.flag("repeatable")) is None else flag
        return StepSpec(node.id, partial(_visit, handler, node, graph), effect=effect, repeatable=repeatable)


def _visit(handler: Handler, node: DotNode, graph: DotGraph, ctx: StepContext) -> Outcome:
    made = handler.run(Visit(ctx, node, graph))
    if made.suggested_next_ids and (supervisor := node.text(CHILD_OF)):
        made = replace(made, suggested_next_ids=[_own(name, supervisor, graph) for name in made.suggested_next_ids])
    return to_engine(made)


def _own(name: str, supervisor: str, graph: DotGraph) -> str:
    """A node by the name it has in its own file, which is a child's."""
    return name if name in graph.nodes and name.startswith(f"{supervisor}.") else f"{supervisor}.{name}"


def _call(function: Callable[[StepContext], Any], visit: Visit) -> NodeOutcome:
    return outcome_of(function(visit.ctx))


def _execute(execute: Callable[..., Any], visit: Visit) -> NodeOutcome:
    return executed(execute, visit.ctx, visit.node, visit.graph)


def _first_line(handler: Any) -> str:
    return next(iter((getattr(handler, "__doc__", None) or "").strip().splitlines()), "")
