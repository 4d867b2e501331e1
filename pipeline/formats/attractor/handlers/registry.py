"""Which handler works for which type of node; users add theirs, and replace what is built in."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.errors import ConfigError
from pipeline.formats.attractor.children import CHILD_OF, VIRTUAL
from pipeline.formats.attractor.outcome import NodeOutcome, outcome_of, to_engine

#: What a handler may do to the world outside the run.
EFFECTS = ("pure", "read", "write", "external", "human")
#: Name of the service that says where handlers of the field's own interface write: a folder.
LOGS_ROOT = "logs_root"


@dataclass(frozen=True, slots=True)
class Visit:
    """What a handler works with."""

    ctx: StepContext
    #: The node as its file says it, and its graph.
    node: DotNode
    graph: DotGraph

    def outgoing(self, node: str = "") -> list[DotEdge]:
        """Return the drawn edges from a node, "" for this one: none to or from a child pipeline."""
        return [edge for edge in self.graph.outgoing(node or self.node.id) if VIRTUAL not in edge.attributes]


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


class Registry:
    """Handlers by type, in order of registration; nodes of an unknown type are worked as codergen."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._known: dict[str, Handler] = {}
        for handler in handlers:
            self.add(handler)

    def add(self, handler: Handler) -> None:
        """Take a handler in; it replaces the one of its type.

        Raises:
            ConfigError: It has no type, or an unknown effect.
        """
        if not handler.type.strip():
            message = "A handler is registered under a type; this one has none."
            raise ConfigError(message, code="invalid_handler")
        if handler.effect not in EFFECTS:
            message = f"Invalid effect={handler.effect!r}; use one of {', '.join(EFFECTS)}."
            raise ConfigError(message, code="invalid_handler")
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
            ConfigError: It is neither, or the effect is unknown.
        """
        former = self._known.get(type)
        run: Callable[[Visit], NodeOutcome]
        if callable(execute := getattr(handler, "execute", None)):
            run = partial(_execute, execute)
        elif callable(handler):
            run = partial(_call, handler)
        else:
            message = f"The handler of {type!r} is neither a function nor an object with execute()."
            raise ConfigError(message, code="invalid_handler")
        first_line = next(iter((getattr(handler, "__doc__", None) or "").strip().splitlines()), "")
        shape = former.shape if former else ""
        effect = effect or (former.effect if former else "read")
        self.add(Handler(type, run, purpose or first_line, shape, effect, repeatable))

    def resolve(self, type: str) -> Handler:
        """Return the handler of a type; that of codergen if there is none.

        Raises:
            ConfigError: There is no codergen either.
        """
        found = self._known.get(type) or self._known.get(kinds.CODERGEN)
        if found is None:
            raise ConfigError(f"Nothing is registered for the type {type!r}.", code="unknown_type")
        return found

    def types(self) -> frozenset[str]:
        """Return all types that something is registered for."""
        return frozenset(self._known)

    def own_types(self) -> frozenset[str]:
        """Return the types that a handler of the user's own works."""
        return frozenset(handler.type for handler in self._known.values() if handler.own)

    def step(self, graph: DotGraph, node: DotNode) -> StepSpec:
        handler = self.resolve(graph.kind(node))
        said = node.text("effect").strip().lower()
        effect = said if said in EFFECTS else handler.effect
        repeatable = handler.repeatable if (flag := node.flag("repeatable")) is None else flag
        return StepSpec(node.id, partial(_work, handler, node, graph), effect=effect, repeatable=repeatable)


def _work(handler: Handler, node: DotNode, graph: DotGraph, ctx: StepContext) -> Outcome:
    made = handler.run(Visit(ctx, node, graph))
    if made.suggested_next_ids and (supervisor := node.text(CHILD_OF)):
        # A child's file names its nodes without their supervisor.
        prefix = f"{supervisor}."
        names = [name if name in graph.nodes and name.startswith(prefix) else prefix + name
                 for name in made.suggested_next_ids]  # fmt: skip
        made = replace(made, suggested_next_ids=names)
    return to_engine(made)


def _call(function: Callable[[StepContext], Any], visit: Visit) -> NodeOutcome:
    return outcome_of(function(visit.ctx))


# Handlers of the field's own interface


class Context:
    """The run's key-value map as `execute` knows it; what it sets is its own until it returns."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        #: Keys set so far.
        self.changes: dict[str, Any] = {}
        #: Lines said to append_log; shown, not kept.
        self.logs: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, as it is now."""
        return self.changes[key] if key in self.changes else self._values.get(key, default)

    def get_string(self, key: str, default: str = "") -> str:
        """Return the value as text; truths are "true" and "false"."""
        value = self.get(key)
        if value is None:
            return default
        return str(value).lower() if isinstance(value, bool) else str(value)

    def set(self, key: str, value: Any) -> None:
        """Set a key for the nodes after this one."""
        self.changes[key] = value

    def append_log(self, entry: str) -> None:
        """Tell people something."""
        self.logs.append(str(entry))

    def snapshot(self) -> dict[str, Any]:
        """Return all keys and values, as a copy."""
        return copy.deepcopy({**{key: self._values[key] for key in self._values}, **self.changes})

    def clone(self) -> Context:
        """Return a context of its own with the same values."""
        made = Context(self.snapshot())
        made.logs = list(self.logs)
        return made

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """Set many keys."""
        self.changes.update(updates)


def _execute(execute: Callable[..., Any], visit: Visit) -> NodeOutcome:
    """Call `execute(node, context, graph, logs_root)`; its outcome's context changes win over its context's."""
    ctx, node = visit.ctx, visit.node
    context = Context(ctx.context)
    root = ctx.services.get(LOGS_ROOT)
    with nullcontext(str(root)) if root else tempfile.TemporaryDirectory(prefix="pipeline-") as folder:
        made = outcome_of(execute(node, context, visit.graph, folder))
    for line in context.logs:
        ctx.note(f"{node.id}: {line}")
    return replace(made, context_updates={**context.changes, **made.context_updates})
