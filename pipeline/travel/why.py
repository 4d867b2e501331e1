"""Why a step or an item ran or was reused, what it had read, and what depends on it; from the records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.records.codec import Record
from pipeline.records.run import WHOLE, RunState, StepRun
from pipeline.travel.goes import Go, Goes


@dataclass(frozen=True, slots=True)
class Why:
    """The answer for one step (all its visits, or one) or one item."""

    run_id: str
    #: Visits asked about, and the item's key.
    paths: Sequence[str]
    task: str | None
    goes: Sequence[Go]
    #: What the last visit, or the item, had read: name → short hash.
    reads: Mapping[str, str]
    #: Visits that read something of it, with the names they read it by.
    dependents: Mapping[str, Sequence[str]]
    #: The run it was forked from: {"run", "seq"}; None: it is no fork.
    parent: Mapping[str, object] | None


def why(run_id: str, records: Sequence[Record], paths: Sequence[str], task: str | None = None) -> Why:
    """Explain visits, or one item of them."""
    goes = Goes(run_id, paths, task).walk(records)
    state = goes.state
    found = [state.steps[path] for path in paths if path in state.steps]
    reads: Mapping[str, str] = found[-1].reads if found else {}
    if task is not None:
        made = [state.tasks[path][task] for path in paths if task in state.tasks.get(path, {})]
        reads = made[-1].reads if made else {}
    return Why(run_id, paths, task, goes.found, reads, _dependents(state, found, task), state.parent)


def _dependents(state: RunState, steps: Sequence[StepRun], task: str | None) -> dict[str, Sequence[str]]:
    if task is not None:
        return {step.path: ["its items"] for step in steps}
    own = {step.path for step in steps}
    found: dict[str, Sequence[str]] = {}
    for step in state.steps.values():
        names = [name for name in step.reads if any(_gave(one, name, step) for one in steps)]
        if not WHOLE.isdisjoint(step.reads) and any(source in own for _, source in step.consumed):
            names += sorted(WHOLE.intersection(step.reads))
        if names and step.path not in own:
            found[step.path] = names
    return found


def _gave(step: StepRun, name: str, reader: StepRun) -> bool:
    """Whether a read of this name can have been of what the step made."""
    if reader.ended_seq < step.ended_seq or reader is step:
        return False
    kind, _, rest = name.partition(".")
    if kind == "outputs":
        return rest.startswith(f"{step.node}.")
    if kind == "artifact":
        return step.artifacts.get(rest, "")[:16] == reader.reads[name]
    return kind == "context" and rest in step.context
