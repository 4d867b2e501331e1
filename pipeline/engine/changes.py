"""Which finished work would have to be made again, because what it was made from has changed or is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engine.sources import Sources
from pipeline.engine.step import StepSpec
from pipeline.graph.model import Graph
from pipeline.records.kinds import Invalidated
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED


@dataclass(frozen=True, slots=True)
class Stale:
    """Finished steps that no longer stand, and why."""

    #: path → what differs ("settings.model", "version 1 → 2", "artifact scheme is missing").
    steps: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.steps)

    def facts(self) -> list[Invalidated]:
        """The records that void them, one a reason."""
        missing = [path for path, why in self.steps.items() if why.endswith("is missing")]
        changed = [path for path in self.steps if path not in missing]
        pairs: Sequence[tuple[str, list[str]]] = (("missing", missing), ("changed", changed))
        return [Invalidated(reason, paths=paths) for reason, paths in pairs if paths]


def of_graph(pinned: Mapping[str, Any], graph: Graph) -> list[str]:
    """How a graph differs in shape from the pinned one: sentences; versions are not shape."""
    before, now = Graph.from_json(pinned), graph
    said = [f"step {name} is new" for name in now.nodes if name not in before.nodes]
    said += [f"step {name} is gone" for name in before.nodes if name not in now.nodes]
    said += [
        f"step {name} joins otherwise"
        for name, node in now.nodes.items()
        if name in before.nodes and before.nodes[name].join != node.join
    ]
    old, new = ({(edge.id, edge.when) for edge in each.edges} for each in (before, now))
    said += [f"edge {name} is new" for name, _ in sorted(new - old, key=str)]
    said += [f"edge {name} is gone" for name, _ in sorted(old - new, key=str)]
    return said if said or before.start == now.start else [f"it starts at {now.start}"]


def missing(state: RunState, steps: Mapping[str, StepSpec]) -> Stale:
    """Completed visits that lack an artifact their step promises (imported runs)."""
    found = {}
    for run in state.steps.values():
        spec = steps.get(run.node)
        if run.status == COMPLETED and spec is not None:
            lacking = [name for name in spec.saves if name not in run.artifacts]
            if lacking:
                found[run.path] = f"artifact {lacking[0]} is missing"
    return Stale(found)


def stale(state: RunState, sources: Sources, steps: Mapping[str, StepSpec]) -> Stale:
    """Completed visits whose version or reads differ from what holds now."""
    found: dict[str, str] = {}
    for run in state.steps.values():
        spec = steps.get(run.node)
        if run.status != COMPLETED or spec is None:
            continue
        if run.version != spec.version:
            found[run.path] = f"version {run.version} → {spec.version}"
            continue
        for name, known in run.reads.items():
            if not name.startswith("context.") and sources.hash(name, {}) != known:
                found[run.path] = name
                break
    return Stale(found)
