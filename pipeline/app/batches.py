"""Batches that runs of a store have handed in: listed from their records, cancelled at the provider."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pipeline.app.start import model_of
from pipeline.cost.ledger import rows as ledger_rows
from pipeline.errors import CheckpointCorrupt, ConfigError, RunLocked, RunNotFound, SchemaTooNew
from pipeline.store.base import Store
from pipeline.store.reading import all_records, load, resolve

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
    #: Requests whose end is not recorded.
    open: int
    #: The most that those may cost, and those that were given up; None: not known.
    worst_usd: Decimal | None
    intended_at: str
    expires_at: str
    #: When the provider was asked to leave the rest; "": it was not.
    cancelled_at: str = ""
    #: When its requests were given up to be asked again (`--resubmit`); "": they were not.
    abandoned_at: str = ""

    @property
    def status(self) -> str:
        """answered, out, cancelled, abandoned, or unknown (it may or may not have been created)."""
        if self.abandoned_at:
            return "abandoned"
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
    if run:
        yield from _of_run(store, resolve(store, run))
        return
    for head in store.heads():
        if not head.corrupt:
            with suppress(CheckpointCorrupt, SchemaTooNew):
                yield from _of_run(store, head.run_id)


def possibly_billed(store: Store, runs: Collection[str], since: str, until: str) -> Iterator[BatchRow]:
    """The batches handed in on these UTC days that may have been billed beside what is exactly known.

    Args:
        runs: Those with calls that are not exactly known; no other journal is read.
    """
    for head in store.heads() if runs else ():
        if head.run_id not in runs or head.corrupt:
            continue
        with suppress(CheckpointCorrupt, SchemaTooNew):
            for row in _of_run(store, head.run_id):
                doubtful = row.status in ("unknown", "abandoned") and row.worst_usd != 0
                if doubtful and since <= row.intended_at[:10] <= until:
                    yield row


def _of_run(store: Store, run: str) -> Iterator[BatchRow]:
    state = load(store, run)
    yield from (_row(state, batch, store) for batch in reversed(state.batches.values()))


def _row(state: RunState, batch: BatchRun, store: Store | None = None) -> BatchRow:
    left = [call for seq in batch.calls.values() if (call := state.open_calls.get(seq)) is not None]
    worst = [call.worst for call in left]
    if batch.abandoned_at and store is not None:
        calls = frozenset(batch.calls.values())
        rows = [row for row in ledger_rows(all_records(store, state.run_id)) if row.seq in calls]
        worst = [None if row.high is None else row.high - row.low for row in rows]
    known = [usd for usd in worst if usd is not None]
    return BatchRow(
        state.run_id, batch.batch, batch.size, len(left),
        sum(known, Decimal(0)) if len(known) == len(worst) else None,
        batch.at, batch.expires_at, batch.cancelled_at, batch.abandoned_at,
    )  # fmt: skip


def cancel(store: Store, run: str) -> Cancelled:
    """Ask the provider to leave what it has not answered yet of a run's batches, and record that.

    Raises:
        RunNotFound: No such run.
        ConfigError: The run has no batch out.
        ModelError: The provider does not know the batch, or cannot be reached; what it took before is recorded.
    """
    state = load(store, resolve(store, run))
    rows = [_row(state, batch) for batch in state.batches.values()]
    out = [row for row in rows if row.status == "out"]
    if not out and any(row.status == "unknown" for row in rows):
        raise ConfigError(
            f"Run {state.run_id} may have a batch out whose id is not known yet.",
            hint="Resume the run: it looks for the batch; then it can be called back.",
        )
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
    from pipeline.engine.amendment import amend
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
