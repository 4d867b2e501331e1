"""The user's memory beside a run: reads are recorded and answered from the record, writes are applied once.

A write is staged while its step runs, recorded with the step's completion, then applied, each under a key that stays
the same however often it has to be tried; that all of a step's writes are applied is a record too. A new
owner of the run first applies what is recorded and may not have arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pipeline.engine.setup import ActiveRun
from pipeline.engine.sources import Scope
from pipeline.errors import ConfigError, Pause, PipelineError
from pipeline.records.kinds import MemoryApplied, MemoryRead
from pipeline.records.run import bare
from pipeline.records.values import encode_value


class Trace(NamedTuple):
    """One thing remembered."""

    trace_id: str
    content: str
    strength: float


class Memory(Protocol):
    """What a user's memory offers."""

    def read(self, query: str) -> Iterable[tuple[str, str, float]]:
        """Return what it remembers of a query: (trace id, content, strength) each."""

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        """Remember something; the same key again must change nothing."""


class StepMemory:
    """The memory as one body sees it (ctx.memory)."""

    def __init__(self, running: ActiveRun, scope: Scope) -> None:
        self._running = running
        self._scope = scope
        self._memory = _given(running)

    def read(self, query: str) -> list[Trace]:
        """Return what the memory holds on a query; a body that runs again in the same attempt gets the same answer."""
        scope = self._scope
        n = scope.queries[query] = scope.queries.get(query, 0) + 1
        with self._running.recorder.reading() as state:
            known = state.recalled.get(scope.slot(state), {}).get((query, n))
        if known is None:
            found = [
                Trace(str(name), str(content), float(weight)) for name, content, weight in self._memory.read(query)
            ]
            known = [{"id": one.trace_id, "content": one.content, "strength": one.strength} for one in found]
            self._running.recorder.append(MemoryRead(scope.path, query, known, scope.task, scope.attempt, n))
        return [Trace(row["id"], row["content"], row["strength"]) for row in known]

    def write(self, type: str, content: str, scope: str = "") -> None:
        """Remember something once this step has completed; nothing is remembered of one that fails.

        Raises:
            ConfigError: In a task: its writes belong to the step.
            InvalidValue: It cannot be recorded.
        """
        own = self._scope
        if own.task is not None:
            raise ConfigError(
                f"{own.task} writes to the memory; only steps may.",
                code="memory_write_in_task",
                hint="Return the value and let the step write it.",
            )
        run = self._running.recorder.state.run_id
        key = f"{run}/{own.path}/{own.attempt}/{len(own.writes) + 1}"
        entry = {"type": type, "content": content, "scope": scope, "key": key}
        encode_value(entry, "memory write")
        own.writes.append(entry)


def apply(running: ActiveRun, path: str, writes: Sequence[Mapping[str, Any]]) -> None:
    """Hand recorded writes to the user's memory, then record that they arrived.

    Raises:
        Pause: The memory refused; they are applied first when the run is resumed.
    """
    memory = _given(running)
    try:
        for row in writes:
            memory.write(str(row["type"]), str(row["content"]), str(row["scope"]), str(row["key"]))
    except Exception as error:
        cause = PipelineError(
            f"The memory refused what {bare(path)} wrote: {type(error).__name__}: {error}",
            code="memory_refused",
            hint="Resume: it is applied before anything else.",
        )
        raise Pause("interrupted", cause) from error
    running.recorder.append(MemoryApplied(path))


def apply_left(running: ActiveRun) -> None:
    """Apply what an earlier owner recorded and may not have applied."""
    with running.recorder.reading() as state:
        left = dict(state.unapplied)
    for path, writes in left.items():
        apply(running, path, writes)


def _given(running: ActiveRun) -> Memory:
    memory: Memory | None = running.services.get("memory")
    if memory is None:
        hint = 'Give one: services={"memory": …} with read(query) and write(…, key).'
        raise ConfigError("This run has no memory.", code="no_memory", hint=hint)
    return memory
