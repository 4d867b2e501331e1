"""mark-done: a person says that a step which was cut off had done its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.app.travel import definition_of
from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.records.kinds import Fact
    from pipeline.records.run import RunState


def mark_done(store: Store, run: str, step: str, outputs: Mapping[str, Any], target: str | None = None) -> str:
    """Record a step without an end as completed; the run's id.

    Args:
        target: FILE.py:NAME, the code of a pipeline of the user's own.

    Raises:
        ConfigError: No such step is without an end, or nobody knows the code of the pipeline.
        RunLocked: A living process owns the run.
    """
    from pipeline.clock import SystemClock
    from pipeline.engine.amendment import amend, declared_done
    from pipeline.store.reading import load, resolve

    name, clock = resolve(store, run), SystemClock()
    state = load(store, name)
    known = None if "dot" in state.pins else state.execution.get("target")
    definition = definition_of(store, state, target or (str(known) if known else None))

    def decide(state: RunState) -> Sequence[Fact]:
        return [declared_done(definition, state, step, outputs, clock)]

    amend(store, name, clock, decide)
    return name
