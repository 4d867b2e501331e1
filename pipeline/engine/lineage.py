"""Where a visit stands in the graph, and what arrived at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engine.contexts import Contexts
from pipeline.engine.running import Running
from pipeline.graph.model import Graph, frozen
from pipeline.records.statuses import FAILED


@dataclass(frozen=True, slots=True)
class Arrival:
    """One of the tokens that a visit consumed, and the work that sent it."""

    edge: str
    #: The visit it came from, and its node.
    path: str
    node: str
    #: The node with which its branch began, where a fan-out is gathered; else "".
    branch: str
    outcome: str
    failed: bool
    error: Mapping[str, Any] | None
    outputs: Mapping[str, Any]
    #: What the branch set since its fan-out; where none is gathered, what held after the visit.
    context: Mapping[str, Any]


@frozen
class Lineage:
    """Where a visit stands in the graph and what it came from."""

    graph: Graph
    contexts: Contexts
    node: str
    visit: int
    #: (edge id, path of the visit that chose it).
    consumed: Sequence[Sequence[str]]

    def arrivals(self, running: Running) -> list[Arrival]:
        """The tokens consumed, in order of their edges' declaration."""
        contexts, values = self.contexts, running.sources.values
        found = []
        with running.recorder.reading() as state:
            fan = contexts.fan_of(self.node, self.consumed)
            for edge, source in contexts.ordered(self.consumed):
                run = state.steps.get(source)
                if run is not None:
                    branch = contexts.branch_of(source, fan) if fan else ""
                    found.append((edge, run, branch, contexts.since(source, fan)))
        return [
            Arrival(edge, run.path, run.node, branch, run.outcome, run.status == FAILED, run.error,
                    values.get(run.outputs), {key: values.get(value) for key, value in since.items()})
            for edge, run, branch, since in found
        ]  # fmt: skip
