"""Batches that runs of a store have handed in: listed from their records, cancelled at the provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pipeline.app.start import model_of
from pipeline.errors import CheckpointCorrupt, ConfigError, RunLocked, RunNotFound, SchemaTooNew
from pipeline.store.base import Store
from pipeline.store.reading import load, resolve

if TYPE_CHECKING:
    from pipeline.records.kinds import Fact
    from pipeline.records.run import BatchRun, RunState


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch of one run, as its records say."""

    run: str
    #: The provider's id; "" while only the intent is recorded.
    batch: str
    requests: int
    #: Requests whose end is not recorded, and the most they may cost.
    open: int
    worst_usd: Decimal
    intended_at: str
    expires_at: str
    #: When the provider was asked to leave the rest; "": it was not.
    cancelled_at: str = ""

    @property
    def status(self) -> str:
        """answered, out, cancelled, or unknown (nobody knows whether it was created)."""
        if self.cancelled_at:
            return "cancelled"
        if not self.open:
            return "answered"
        return "out" if self.batch else "unknown"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What `cancel` did."""

    run: str
    #: The batches that the provider was asked to leave, as they stood.
    batches: Sequence[BatchRow]
    #: False where a living process works on the run: it sees the end of them by itself.
    recorded: bool


def batches(store: Store, run: str | None) -> Iterator[BatchRow]:
    """The batches of a run, or of all runs of the store, newest run first.

    Raises:
        RunNotFound, StoreError: As store.reading.
    """
    names = [resolve(store, run)] if run else [head.run_id for head in store.heads() if not head.corrupt]
    for name in names:
        try:
            state = load(store, name)
        except (CheckpointCorrupt, SchemaTooNew):
            if run:
                raise
            continue
        yield from (_row(state, batch) for batch in reversed(state.batches.values()))


def _row(state: RunState, batch: BatchRun) -> BatchRow:
    left = [call for seq in batch.calls.values() if (call := state.open_calls.get(seq)) is not None]
    worst = sum((call.worst or Decimal(0) for call in left), Decimal(0))
    return BatchRow(
        state.run_id, batch.batch, batch.size, len(left), worst, batch.at, batch.expires_at, batch.cancelled_at
    )


def cancel(store: Store, run: str) -> Cancelled:
    """Ask the provider to leave what it has not answered yet of a run's batches, and record that.

    Raises:
        RunNotFound: No such run.
        ConfigError: The run has no batch out.
        ModelError: The provider does not know the batch, or cannot be reached; what it took before is recorded.
    """
    state = load(store, resolve(store, run))
    out = [row for row in map(lambda batch: _row(state, batch), state.batches.values()) if row.status == "out"]
    if not out:
        raise ConfigError(f"Run {state.run_id} has no batch out.", hint=f"`batches {state.run_id}` lists what it had.")
    model = model_of(str(state.identity.get("model") or ""))
    provider = getattr(model, "batches", None)
    asked: list[BatchRow] = []
    recorded = False
    try:
        if provider is None:
            raise RunNotFound(f"Run {state.run_id} was not made with a model that takes batches.")
        for row in out:
            provider.cancel(row.batch)
            asked.append(row)
    finally:
        model.close()
        recorded = bool(asked) and _recorded(store, state.run_id, asked)
    return Cancelled(state.run_id, asked, recorded)


def _recorded(store: Store, run: str, asked: Sequence[BatchRow]) -> bool:
    """Record what the provider was asked to leave; False where a living process owns the run."""
    from pipeline.clock import SystemClock
    from pipeline.engine.amend import amend
    from pipeline.records.kinds import BatchCancelled, RunEnded
    from pipeline.records.statuses import IN_PROGRESS

    names = {row.batch for row in asked}

    def decide(state: RunState) -> Sequence[Fact]:
        facts: list[Fact] = [
            BatchCancelled(batch.nonce, batch.batch) for batch in state.batches.values() if batch.batch in names
        ]
        # Nothing is waited for any more: the run stands where it was told to.
        text = f"{', '.join(sorted(names))} called back. A resume fetches what was answered, and asks the rest again."
        left = RunEnded(IN_PROGRESS, "stopped_as_asked", {"type": "PipelineError", "message": text}, state.command)
        return [*facts, left] if state.detail == "waiting_for_batch" else facts

    try:
        amend(store, run, SystemClock(), decide)
    except RunLocked:
        return False
    return True
