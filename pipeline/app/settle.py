"""Closing open charges with what a person knows, or the provider reports, that was billed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError, NeedsConfirmation
from pipeline.records.charge import EXACT, in_full
from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.app.decided import Confirm
    from pipeline.cost.ledger import LedgerRow
    from pipeline.records.kinds import Fact
    from pipeline.records.run import RunState

#: Calls that an error names at most.
_MOST = 20


@dataclass(frozen=True, slots=True)
class Settled:
    """A call whose charge was closed, or closed again."""

    #: As it stood before.
    row: LedgerRow
    usd: Decimal


def settle(store: Store, run: str, call: int, usd: Decimal, *, by: str = "", confirm: Confirm | None = None) -> Settled:
    """Record what a call cost whose charge is open, or was settled before.

    Args:
        confirm: Asks whether an amount above the call's worst case is meant; None: it is refused.

    Raises:
        ConfigError: There is no such call, or its charge is exact as the provider told it.
        NeedsConfirmation: The amount is above the call's worst case, or a batch may hold its answer.
        RunLocked: A living process owns the run.
    """

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[Settled]:
        chosen = next((row for row in ledger if row.seq == call), None)
        if chosen is None:
            raise ConfigError(f"Run {name} has no call {call}.", hint=_open_calls(ledger))
        if chosen.state == EXACT and not chosen.settled:
            raise ConfigError(
                f"Call {call} of run {name} cost {in_full(chosen.low)}, exactly; there is nothing to settle.",
                hint=_open_calls(ledger),
            )
        return [Settled(chosen, usd)]

    return _record(store, run, choose, by, confirm)[0]


def settle_all(
    store: Store, run: str, usd: Decimal, *, by: str = "", confirm: Confirm | None = None, dry_run: bool = False
) -> list[Settled]:
    """Record what all calls with an open charge cost together; where none is open, all that were settled before.

    The shares add up to `usd`. With `dry_run` nothing is written.

    Raises:
        ConfigError: Every charge is exact as the provider told it.
        NeedsConfirmation, RunLocked: As for one call.
    """
    from pipeline.cost.reconciliation import Bounds, shares

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[Settled]:
        chosen = [row for row in ledger if row.state != EXACT] or [row for row in ledger if row.settled]
        if not chosen:
            raise ConfigError(f"Every call of run {name} has its exact charge; there is nothing to settle.")
        return list(map(Settled, chosen, shares([Bounds.of(row) for row in chosen], usd)))

    return _record(store, run, choose, by, confirm, dry_run=dry_run)


def settle_shares(
    store: Store,
    run: str,
    usd: Callable[[LedgerRow], Decimal],
    *,
    by: str = "",
    confirm: Confirm | None = None,
    dry_run: bool = False,
) -> list[Settled]:
    """Record for each call with an open charge the amount that is found for it.

    Raises:
        ConfigError: Every charge is exact.
        NeedsConfirmation, RunLocked: As for one call.
    """

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[Settled]:
        chosen = [row for row in ledger if row.state != EXACT]
        if not chosen:
            raise ConfigError(f"Run {name} has no open charge; there is nothing to settle.")
        return [Settled(row, usd(row)) for row in chosen]

    return _record(store, run, choose, by, confirm, dry_run=dry_run)


def _record(
    store: Store,
    run: str,
    choose: Callable[[str, Sequence[LedgerRow]], list[Settled]],
    by: str,
    confirm: Confirm | None,
    *,
    dry_run: bool = False,
) -> list[Settled]:
    """Record the amounts that `choose` makes of a run's ledger, in one write."""
    from pipeline.clock import SystemClock
    from pipeline.cost.ledger import rows
    from pipeline.engine.amendment import amend
    from pipeline.records.kinds import ChargeSettled
    from pipeline.store.reading import load, records, resolve

    name = resolve(store, run)

    def choose_now() -> list[Settled]:
        return choose(name, rows(records(store, name)))

    found: list[Settled] = []
    if dry_run:
        return choose_now()
    # A person is asked before the run is locked; what is recorded is worked out again under the lock.
    chosen = choose_now()
    _check(chosen, confirm)
    _check_batches(load(store, name), chosen, confirm)

    def decide(_: RunState) -> Sequence[Fact]:
        found.extend(choose_now())
        return [ChargeSettled(each.row.seq, f"{each.usd:f}", by, corrects=each.row.settled) for each in found]

    amend(store, name, SystemClock(), decide)
    return found


def _check(chosen: Sequence[Settled], confirm: Confirm | None) -> None:
    """Refuse what no call can have cost, unless a person says that it did.

    Raises:
        NeedsConfirmation: It was not confirmed.
    """
    from pipeline.cost.reconciliation import Bounds, most

    limit = most([Bounds.of(each.row) for each in chosen])
    usd = sum((each.usd for each in chosen), Decimal(0))
    if limit is None or usd <= limit:
        return
    what = f"call {chosen[0].row.seq}" if len(chosen) == 1 else f"these {len(chosen)} calls"
    said = f"{in_full(usd)} is more than {what} can have cost at worst: {in_full(limit)}."
    if confirm is None or not confirm(f"{said} Record it?"):
        raise NeedsConfirmation(f"{said} Nothing was recorded.", hint="Correct the amount, or add --yes.")


def _check_batches(state: RunState, chosen: Sequence[Settled], confirm: Confirm | None) -> None:
    """Refuse to give up answers that a batch may hold, unless a person says so.

    Raises:
        NeedsConfirmation: It was not confirmed.
    """
    from pipeline.engine.batch_ledger import requests

    closing = {each.row.seq for each in chosen}
    waiting = sum(seq in closing and bool(call.batch) for seq, call in state.open_calls.items())
    if not waiting:
        return
    said = f"A batch may hold the answers to {requests(waiting)}: settled now, they are asked, and paid for, again."
    if confirm is None or not confirm(f"{said} Settle all the same?"):
        raise NeedsConfirmation(f"{said} Nothing was recorded.", hint="Resume the run to fetch them, or add --yes.")


def _open_calls(ledger: Sequence[LedgerRow]) -> str:
    numbers = [str(row.seq) for row in ledger if row.state != EXACT]
    shown = ", ".join(numbers[:_MOST]) or "none"
    return f"Calls with an open charge: {shown}{', …' if len(numbers) > _MOST else ''}."
