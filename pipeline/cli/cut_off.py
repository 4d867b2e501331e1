"""What of a run acts outside it and was cut off: nobody knows whether it acted, and a person says how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.records.run import RunState, bare
from pipeline.store.base import Store
from pipeline.travel.boundaries import pinned_graph

_UNSAFE = frozenset({"write", "external"})


@dataclass(frozen=True, slots=True)
class CutOff:
    """A visit, or a task of one, that was started and has no recorded end."""

    path: str
    #: The task; "": the step itself.
    task: str = ""

    @property
    def name(self) -> str:
        """As people name it: STEP or STEP/TASK."""
        return f"{bare(self.path)}/{self.task}" if self.task else bare(self.path)


def cut_off(store: Store, state: RunState) -> list[CutOff]:
    """Work of a run that nobody owns which acts outside, has no end, and is not repeated by itself."""
    graph = pinned_graph(store, state)
    nodes = graph.nodes if graph is not None else {}
    found = []
    for path in state.open_paths:
        node = nodes.get(state.steps[path].node)
        if node is not None and node.effect in _UNSAFE and not node.repeatable:
            found.append(CutOff(path))
    whole = {each.path for each in found}
    tasks = sorted((path, task) for path, task in state.unknown_tasks if path not in whole)
    return [*found, *(CutOff(path, task) for path, task in tasks)]


def cut_off_lines(run: str, found: Sequence[CutOff]) -> list[str]:
    """Them, and what can be said about them, for people; nothing where there are none."""
    if not found:
        return []
    lines = [f"Unknown: {each.name} acts outside the run and was cut off; whether it acted is unknown"
             for each in found]  # fmt: skip
    step = bare(found[0].path)
    lines.append(f"If so:   ./pipeline.sh mark-done {run} {step}")
    lines.append("If not:  go on with --retry-unknown")
    return lines
