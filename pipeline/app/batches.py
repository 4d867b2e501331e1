"""Batches that runs of a store have handed in: listed from their records, cancelled at the provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pipeline.app.start import model_of
from pipeline.errors import CheckpointCorrupt, ConfigError, RunNotFound, SchemaTooNew
from pipeline.store.base import Store
from pipeline.store.reading import load, resolve

if TYPE_CHECKING:
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

    @property
    def status(self) -> str:
        """answered, out, or unknown (nobody knows whether it was created)."""
        if not self.open:
            return "answered"
        return "out" if self.batch else "unknown"


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
    return BatchRow(state.run_id, batch.batch, batch.size, len(left), worst, batch.at, batch.expires_at)


def cancel(store: Store, run: str) -> Sequence[BatchRow]:
    """Ask the provider to leave what it has not answered yet of a run's batches; those it was asked of.

    Raises:
        RunNotFound: No such run.
        ConfigError: The run has no batch out.
        ModelError: The provider does not know the batch, or cannot be reached.
    """
    state = load(store, resolve(store, run))
    out = [row for row in map(lambda batch: _row(state, batch), state.batches.values()) if row.status == "out"]
    if not out:
        raise ConfigError(f"Run {state.run_id} has no batch out.", hint=f"`batches {state.run_id}` lists what it had.")
    model = model_of(str(state.identity.get("model") or ""))
    try:
        provider = getattr(model, "batches", None)
        if provider is None:
            raise RunNotFound(f"Run {state.run_id} was not made with a model that takes batches.")
        for row in out:
            provider.cancel(row.batch)
    finally:
        model.close()
    return out
