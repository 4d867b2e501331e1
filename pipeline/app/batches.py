"""Batches that runs of a store have submitted: listed from their records, cancelled at the provider."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from pipeline.app.model_choice import model_of, provider_in
from pipeline.app.stores import words_of
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows as ledger_rows
from pipeline.engine.amendment import amend
from pipeline.errors import CheckpointCorrupt, ConfigError, RunLocked, SchemaTooNew
from pipeline.records.kinds import BatchCancelled, Fact, RunEnded
from pipeline.records.run import RunState
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Store
from pipeline.store.reader import all_records, load, resolve


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
    #: When the provider was asked to cancel the rest; "": it was not.
    cancelled_at: str = ""
    #: When its requests were given up to be asked again (`--resubmit`); "": they were not.
    abandoned_at: str = ""

    @property
    def status(self) -> str:
        """Return answered, out, cancelled, abandoned, or unknown (it may or may not have been created)."""
        if self.abandoned_at:
            return "abandoned"
        if self.cancelled_at:
            return "cancelled"
        if not self.open:
            return "answered"
        return "out" if self.batch else "unknown"


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What `cancel` did."""

    run: str
    #: The batches that the provider was asked to cancel, as they were before.
    batches: Sequence[BatchRow]
    #: False where a living process works on the run: it sees the end of them by itself.
    recorded: bool


def batches(store: Store, run: str | None) -> Iterator[BatchRow]:
    """Yield the batches of a run, or of all runs of the store, newest run first.

    Raises:
        RunNotFound, StoreError: As store.reader.
    """
    if run:
        yield from _of_run(store, resolve(store, run))
        return
    yield from _of_runs(store)


def possibly_billed(store: Store, runs: Collection[str], since: str, until: str) -> Iterator[BatchRow]:
    """Yield the batches submitted on these UTC days that may have been billed beside what is exactly known.

    Args:
        runs: Those with calls that are not exactly known; no other journal is read.
    """
    for row in _of_runs(store, runs) if runs else ():
        doubtful = row.status in ("unknown", "abandoned") and row.worst_usd != 0
        if doubtful and since <= row.intended_at[:10] <= until:
            yield row


def _of_runs(store: Store, only: Collection[str] | None = None) -> Iterator[BatchRow]:
    for head in store.heads():
        if not head.corrupt and (only is None or head.run_id in only):
            with suppress(CheckpointCorrupt, SchemaTooNew):
                yield from _of_run(store, head.run_id)


def _of_run(store: Store, run: str) -> Iterator[BatchRow]:
    state = load(store, run)
    for batch in reversed(state.batches.values()):
        left = [call for seq in batch.calls.values() if (call := state.open_calls.get(seq)) is not None]
        worst = [call.worst for call in left]
        if batch.abandoned_at:
            calls = frozenset(batch.calls.values())
            rows = [row for row in ledger_rows(all_records(store, run)) if row.seq in calls]
            worst = [None if row.high is None else row.high - row.low for row in rows]
        known = [usd for usd in worst if usd is not None]
        yield BatchRow(
            run, batch.batch, batch.size, len(left), sum(known, Decimal(0)) if len(known) == len(worst) else None,
            batch.at, batch.expires_at, batch.cancelled_at, batch.abandoned_at,
        )  # fmt: skip


def cancel(store: Store, text: str) -> Cancellation:
    """Ask the provider to cancel what it has not answered yet of a run's batches, and record that.

    Raises:
        RunNotFound: No such run.
        ConfigError: The run has no batch out, or its model takes none.
        ModelError: The provider does not know the batch, or cannot be reached; what it took before is recorded.
    """
    run = resolve(store, text)
    rows = list(_of_run(store, run))[::-1]
    out = [row for row in rows if row.status == "out"]
    if not out:
        if any(row.status == "unknown" for row in rows):
            raise ConfigError(f"Run {run} may have a submitted batch whose id is not known yet.", code="batch_unknown",
                              hint="Resume the run: it looks for the batch; then it can be cancelled.")  # fmt: skip
        raise ConfigError(f"Run {run} has no pending batch.", code="no_batch_out",
                          hint=f"`./pipeline.sh batches {run}{words_of(store.url)}` lists what it had.")  # fmt: skip
    state = load(store, run)
    model = model_of(str(state.identity.get("model") or ""), provider=provider_in(state.identity),
                     base_url=state.execution.get("base_url"))  # fmt: skip
    provider = getattr(model, "batches", None)
    asked: list[BatchRow] = []
    recorded = False
    try:
        if provider is None:
            raise ConfigError(f"Run {run} was not made with a model that supports batches.", code="no_batch_out")
        for row in out:
            provider.cancel(row.batch)
            asked.append(row)
    finally:
        model.close()
        recorded = bool(asked) and _is_recorded(store, run, asked)
    return Cancellation(run, asked, recorded)


def _is_recorded(store: Store, run: str, asked: Sequence[BatchRow]) -> bool:
    """Record what the provider was asked to cancel; False where a living process owns the run."""
    names = {row.batch for row in asked}

    def decide(state: RunState) -> Sequence[Fact]:
        facts: list[Fact] = [
            BatchCancelled(batch.nonce, batch.batch) for batch in state.batches.values() if batch.batch in names
        ]
        if state.detail != "waiting_for_batch":
            return facts
        # Nothing is waited for any more.
        text = f"{', '.join(sorted(names))} cancelled. A resume collects the answers and asks the rest again."
        error = {"type": "PipelineError", "message": text}
        return [*facts, RunEnded(IN_PROGRESS, "stopped_as_asked", error, state.command)]

    try:
        amend(store, run, SystemClock(), decide)
    except RunLocked:
        return False
    return True
