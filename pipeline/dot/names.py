"""The names that a graph's texts ask for: `$name` in its attributes, keys in its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pipeline.dot.conditions import readable
from pipeline.dot.model import DotGraph
from pipeline.dot.values import Value, as_text

#: $name, ${name}; a name may have parts: $plan.response.
NAME = re.compile(r"\$(?:\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}|([A-Za-z_]\w*(?:\.\w+)*))")


def names_in(graph: DotGraph) -> frozenset[str]:
    """Return the names, whole and by their first part, as keys of the context."""
    found = {name.removeprefix("context.") for place in (graph, *graph.nodes.values(), *graph.edges)
             for name in _names(place.attributes)}  # fmt: skip
    return frozenset(found | {name.partition(".")[0] for name in found})


def names_of(text: str) -> list[str]:
    """Return the names that a text asks for, in order; of one with parts its beginnings too: $goal.txt is the goal."""
    return [name.rsplit(".", cut)[0] if cut else name for name in _named(text) for cut in range(name.count(".") + 1)]


def _named(text: str) -> list[str]:
    return [found[1] or found[2] for found in NAME.finditer(text)] if "$" in text else []


def _names(table: Mapping[str, Value]) -> Iterator[str]:
    for name, value in table.items():
        text = as_text(value)
        yield from _named(text)
        if name in ("condition", "manager.stop_condition") and (condition := readable(text)):
            yield from (clause.key for clause, _ in condition.clauses())
        if name in ("context_keys", "params", "inputs"):
            yield from (part.strip() for part in text.split(","))
