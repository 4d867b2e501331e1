"""Slices of the day that owners left open when they died: settled with what their calls cost, as the journal says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from pipeline.cost.ledger import rows
from pipeline.errors import CheckpointCorrupt, RunNotFound, SchemaTooNew, StoreError
from pipeline.records.codec import Record
from pipeline.records.kinds import CallStarted
from pipeline.store.base import Account, Head, Store
from pipeline.store.reading import load, records

#: (UTC day, owner): what one owner spent on one day.
_Share = tuple[str, int]


def settle_left(store: Store, account: Account | None, run: str, slices: Mapping[str, _Share]) -> None:
    """Settle the slices of owners of a run that are dead for certain; what cannot be read counts on in full.

    May be done again once more is known: what was open then, and counted at its worst, may have ended.
    """
    if account is None or not slices:
        return
    try:
        costs = _costs(records(store, run))
        for name, usd in _amounts(slices, costs):
            account.settle(name, usd)
    except StoreError:
        # A slice that stays open errs on the safe side.
        return


def settle_dead(store: Store, account: Account, day: str) -> None:
    """Settle the slices of a day of all runs that nobody works on any more."""
    for head in store.heads(lambda document: _may_be_dead(document, day)):
        if head.owned or head.corrupt:
            continue
        try:
            state = load(store, head.run_id)
            # Nobody may have come between: then its calls were not all read.
            if state.slices and state.detail == "running" and _untouched(store, head, state.seq):
                settle_left(store, account, head.run_id, state.slices)
        except (CheckpointCorrupt, RunNotFound, SchemaTooNew):
            continue


def spent_on(store: Store, day: str) -> Decimal:
    """What the runs of a store spent on a day at most, as their heads say."""
    total = Decimal(0)
    for head in store.heads(lambda document: str(document.get("updated_at") or "")[:10] >= day):
        for row in head.document.get("spend") or ():
            if row.get("day") == day:
                usd, low, high = (Decimal(str(row.get(name) or 0)) for name in ("usd", "low", "high"))
                total += usd + max(low, high)
    return total


def _may_be_dead(document: Mapping[str, object], day: str) -> bool:
    return document.get("status") == "in_progress" and str(document.get("updated_at") or "")[:10] >= day


def _untouched(store: Store, head: Head, seq: int) -> bool:
    """Nobody owns the run still, and it has not grown since it was read."""
    now = next((other for other in store.heads() if other.run_id == head.run_id), None)
    return now is not None and not now.owned and load(store, head.run_id).seq == seq


def _costs(run: Iterable[Record]) -> dict[_Share, Decimal | None]:
    """What the calls of each owner cost at most, by the day they left; None: nobody knows."""
    owners: dict[int, int] = {}

    def noted() -> Iterator[Record]:
        for record in run:
            if isinstance(record.fact, CallStarted):
                # What was copied from a part came out of a slice of its worker.
                owners[record.seq] = 0 if record.fact.origin else record.owner
            yield record

    costs: dict[_Share, Decimal | None] = {}
    for row in rows(noted()):
        share = (row.day, owners.get(row.seq, 0))
        before = costs.get(share, Decimal(0))
        costs[share] = None if before is None or row.high is None else before + row.high
    return costs


def _amounts(slices: Mapping[str, _Share], costs: Mapping[_Share, Decimal | None]) -> Iterator[tuple[str, Decimal]]:
    """What each slice is settled with: the first of an owner's day takes all of it, the others nothing."""
    told: set[_Share] = set()
    for name, share in slices.items():
        cost = costs.get(share, Decimal(0))
        if cost is None:
            continue
        yield name, Decimal(0) if share in told else cost
        told.add(share)
