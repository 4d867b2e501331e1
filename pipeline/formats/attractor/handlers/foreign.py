"""Handlers of the field's own interface: execute(node, context, graph, logs_root) → an outcome."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pipeline.dot.model import DotGraph, DotNode
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.handlers.results import outcome_of
from pipeline.formats.attractor.outcome import NodeOutcome

#: Name of the service that says where such handlers write: a folder.
LOGS_ROOT = "logs_root"


class Context:
    """The run's key-value map as such handlers know it; what they set is theirs until they return."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        #: Keys set so far.
        self.changes: dict[str, Any] = {}
        #: Lines said to append_log; shown, not kept.
        self.logs: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, as it stands now."""
        if key in self.changes:
            return self.changes[key]
        return self._values.get(key, default)

    def get_string(self, key: str, default: str = "") -> str:
        """The value as text; truths are "true" and "false"."""
        value = self.get(key)
        if value is None:
            return default
        return str(value).lower() if isinstance(value, bool) else str(value)

    def set(self, key: str, value: Any) -> None:
        """Set a key for the nodes after this one."""
        self.changes[key] = value

    def append_log(self, entry: str) -> None:
        """Say something to people."""
        self.logs.append(str(entry))

    def snapshot(self) -> dict[str, Any]:
        """All keys and values, as a copy."""
        return copy.deepcopy({**{key: self._values[key] for key in self._values}, **self.changes})

    def clone(self) -> Context:
        """A context of its own with the same values."""
        made = Context(self.snapshot())
        made.logs = list(self.logs)
        return made

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """Set many keys."""
        self.changes.update(updates)


def executed(execute: Callable[..., Any], ctx: StepContext, node: DotNode, graph: DotGraph) -> NodeOutcome:
    """Call such a handler; its context changes and its outcome's stand together, the outcome's above."""
    context = Context(ctx.context)
    root = ctx.services.get(LOGS_ROOT)
    if root is not None:
        made = outcome_of(execute(node, context, graph, str(root)))
    else:
        with tempfile.TemporaryDirectory(prefix="pipeline-") as folder:
            made = outcome_of(execute(node, context, graph, folder))
    for line in context.logs:
        ctx.note(f"{node.id}: {line}")
    return replace(made, context_updates={**context.changes, **made.context_updates})
