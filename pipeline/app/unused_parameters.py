"""Detect parameters that are given and never read: most are misspelt."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from pipeline.dot.model import DotGraph
from pipeline.dot.names import names_in
from pipeline.records.run import RunState
from pipeline.travel.overrides import names_read

_PARAMS = "params."
#: Names that are suggested where none is like the one given.
_MOST = 10


def unnamed_params(params: Iterable[str], graph: DotGraph) -> list[str]:
    """Return a sentence for each parameter that nothing in a graph names."""
    names = names_in(graph)
    strange = [name for name in params if name not in names and name.removeprefix("graph.") not in graph.attributes]
    return [f"Nothing in the graph uses the parameter {name!r}{_instead(name, names)}" for name in strange]


def unread_params(state: RunState) -> list[str]:
    """Return a sentence for each parameter of a completed run that no step has read."""
    names = {name.removeprefix(_PARAMS) for name in names_read(state) if name.startswith(_PARAMS)}
    return [f"No step has read the parameter {name!r}{_instead(name, names)}"
            for name in state.params if name not in names]  # fmt: skip


def _instead(name: str, names: Collection[str]) -> str:
    """Return the names that may have been meant."""
    if near := get_close_matches(name, names, 3, 0.6):
        return f"; did you mean {' or '.join(near)}?"
    return f". Known names: {', '.join(sorted(names)[:_MOST])}." if names else "."
