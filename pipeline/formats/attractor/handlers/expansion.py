"""What `$name` stands for in a node's texts: known names are filled in, every other one stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.dot.names import NAME
from pipeline.dot.values import as_text
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.children import GOAL
from pipeline.formats.attractor.handlers.registry import Visit

#: $NODE.response: what a visit's outputs hold.
_OUTPUTS = ("response", "output", "prompt")


class Names:
    """What a visit's names stand for: the goal, context keys, parameters, the graph's attributes, earlier replies."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    def get(self, name: str) -> str | None:
        """The text that a name stands for; None: it is not known."""
        if name == "goal":
            return goal_of(visit=self._visit)
        ctx = self._visit.ctx
        for table in (ctx.context, ctx.params):
            if name in table:
                return text_of(table[name])
        value = self._visit.graph.attributes.get(name.removeprefix("graph."))
        return as_text(value) if value is not None else self._output(name)

    def _output(self, name: str) -> str | None:
        node, _, key = name.rpartition(".")
        if key not in _OUTPUTS or node not in self._visit.graph.nodes:
            return None
        found = newest_output(self._visit.ctx, node, key)
        return None if found is None else text_of(found)


def goal_of(visit: Visit) -> str:
    """The goal a node works for: its child pipeline's own, else the graph's; known names in it are filled in."""
    goal = visit.node.text(GOAL) or visit.graph.goal
    if "$" not in goal:
        return goal
    names = Names(visit)
    return expand(goal, lambda name: None if name == "goal" else names.get(name))


def expand(text: str, known: Callable[[str], str | None]) -> str:
    """The text with known names filled in; what is filled in is not looked at again.

    Of a name with parts the longest beginning that is known counts: "$goal.txt" is the goal and ".txt".
    """

    def filled(found: re.Match[str]) -> str:
        if braced := found[1]:
            value = known(braced)
            return found[0] if value is None else value
        name, rest = found[2], ""
        while True:
            value = known(name)
            if value is not None:
                return value + rest
            name, dot, last = name.rpartition(".")
            if not dot:
                return found[0]
            rest = f".{last}{rest}"

    return NAME.sub(filled, text) if "$" in text else text


def named(text: str) -> list[str]:
    """The simple names a text asks for, in order, each once."""
    return list(dict.fromkeys((found[1] or found[2]).partition(".")[0] for found in NAME.finditer(text)))


def text_of(value: Any) -> str:
    """A context value as text: truths as true and false, what is no single value as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)


def newest_output(ctx: StepContext, node: str, key: str) -> Any:
    """What the newest visit of a node that led here has in its outputs; None: nothing."""
    runs = [run for run in ctx.ancestors() if run.node == node and run.ended_seq]
    if not runs:
        return None
    outputs = ctx.recorded(max(runs, key=lambda run: run.visit).outputs)
    return outputs.get(key) if isinstance(outputs, Mapping) else None
