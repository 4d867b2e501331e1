"""The names that a graph's texts ask for: `$name` in its attributes, keys in its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pipeline.dot.conditions import compile_condition
from pipeline.dot.model import DotGraph
from pipeline.dot.values import Value, as_text
from pipeline.errors import GraphError

#: $name, ${name}; a name may have parts: $plan.response.
NAME = re.compile(r"\$(?:\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}|([A-Za-z_]\w*(?:\.\w+)*))")
_CONDITIONS = ("condition", "manager.stop_condition")
#: Attributes that list context keys.
_LISTS = ("context_keys", "params", "inputs")
_CONTEXT = "context."


def names_in(graph: DotGraph) -> frozenset[str]:
    """The names, whole and by their first part, each as it stands in the context."""
    tables = (graph.attributes, *(node.attributes for node in graph.nodes.values()),
              *(edge.attributes for edge in graph.edges))  # fmt: skip
    found = {name.removeprefix(_CONTEXT) for table in tables for name in _names(table)}
    return frozenset(found | {name.partition(".")[0] for name in found})


def names_of(text: str) -> list[str]:
    """Return the names that a text asks for, in order; of one with parts its beginnings too: $goal.txt is the goal."""
    whole = [found[1] or found[2] for found in NAME.finditer(text)] if "$" in text else []
    return [name.rsplit(".", cut)[0] if cut else name for name in whole for cut in range(name.count(".") + 1)]


def _names(table: Mapping[str, Value]) -> Iterator[str]:
    for name, value in table.items():
        text = as_text(value)
        if "$" in text:
            yield from (found[1] or found[2] for found in NAME.finditer(text))
        if name in _CONDITIONS:
            with suppress(GraphError):
                yield from (clause.key for clause, _ in compile_condition(text).clauses())
        if name in _LISTS:
            yield from (part.strip() for part in text.split(","))
