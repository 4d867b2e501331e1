"""Closing open charges with what a person knows, or the provider reports, that was billed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.app.start import Confirm
from pipeline.clock import SystemClock
from pipeline.cost.ledger import LedgerRow, rows
from pipeline.cost.reconciliation import Bounds, most, shares
from pipeline.engine.amendment import amend
from pipeline.engine.batch_ledger import requests
from pipeline.errors import ConfigError, NeedsConfirmation
from pipeline.records.charge import EXACT, in_full
from pipeline.records.kinds import ChargeSettled, Fact
from pipeline.records.run import RunState
from pipeline.store.base import Store
from pipeline.store.reader import load, records, resolve

#: Calls that an error names at most.
_MOST = 20


@dataclass(frozen=True, slots=True)
class SettledCall:
    """A call whose charge was closed, or closed again."""

    #: As it was before.
    row: LedgerRow
    usd: Decimal


def settle(
    store: Store, run: str, call: int, usd: Decimal, *, by: str = "", confirm: Confirm | None = None
) -> SettledCall:
    """Record what a call cost whose charge is open, or was settled before.

    Args:
        confirm: Asks whether an amount above the call's worst case is intended; None: it is refused.

    Raises:
        ConfigError: There is no such call, or its charge is exact as the provider reported it.
        NeedsConfirmation: The amount is above the call's worst case, or a batch may hold its answer.
        RunLocked: A living process owns the run.
    """

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[SettledCall]:
        chosen = next((row for row in ledger if row.seq == call), None)
        if chosen is not None and (chosen.state != EXACT or chosen.settled):
            return [SettledCall(chosen, usd)]
        numbers = [str(row.seq) for row in ledger if row.state != EXACT]
        shown = ", ".join(numbers[:_MOST]) or "none"
        hint = f"Calls with an open charge: {shown}{', …' if len(numbers) > _MOST else ''}."
        if chosen is None:
            raise ConfigError(f"Run {name} has no call {call}.", code="call_not_found", hint=hint)
        said = f"Call {call} of run {name} cost {in_full(chosen.low)}, exactly; there is nothing to settle."
        raise ConfigError(said, code="nothing_to_settle", hint=hint)

    return _record(store, run, choose, by, confirm)[0]


def settle_all(
    store: Store, run: str, usd: Decimal, *, by: str = "", confirm: Confirm | None = None, dry_run: bool = False
) -> list[SettledCall]:
    """Record what all calls with an open charge cost together; where none is open, all that were settled before.

    The shares add up to `usd`. With `dry_run` nothing is written.

    Raises:
        ConfigError: Every charge is exact as the provider reported it.
        NeedsConfirmation, RunLocked: As for one call.
    """

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[SettledCall]:
        chosen = [row for row in ledger if row.state != EXACT] or [row for row in ledger if row.settled]
        if not chosen:
            raise ConfigError(f"Every call of run {name} has its exact charge; there is nothing to settle.",
                              code="nothing_to_settle")  # fmt: skip
        return list(map(SettledCall, chosen, shares([Bounds.of(row) for row in chosen], usd)))

    return _record(store, run, choose, by, confirm, dry_run=dry_run)


def settle_reported(
    store: Store,
    run: str,
    reported: Callable[[], tuple[str, Mapping[tuple[str, int], Decimal]]],
    *,
    by: str = "",
    confirm: Confirm | None = None,
    dry_run: bool = False,
) -> list[SettledCall]:
    """Record for each call with an open charge its share of what the provider reports.

    Args:
        reported: Fetches the shares, once, where a charge is open; see cost_report.reported_shares.

    Raises:
        ConfigError: Every charge is exact, or the reports do not cover a call yet.
        NeedsConfirmation, RunLocked: As for one call.
    """
    found: list[Mapping[tuple[str, int], Decimal]] = []

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[SettledCall]:
        chosen = [row for row in ledger if row.state != EXACT]
        if not chosen:
            raise ConfigError(f"Run {name} has no open charge; there is nothing to settle.", code="nothing_to_settle")
        if not found:
            found.append(reported()[1])
        for row in chosen:
            if (name, row.seq) not in found[0]:
                raise ConfigError(
                    f"The provider's reports do not cover call {row.seq} of {row.day} yet.",
                    code="not_reported_yet",
                    hint="Try again the day after, or give the amount: `./pipeline.sh settle RUN CALL USD`.",
                )
        return [SettledCall(row, found[0][name, row.seq]) for row in chosen]

    return _record(store, run, choose, by, confirm, dry_run=dry_run)


def _record(
    store: Store,
    run: str,
    choose: Callable[[str, Sequence[LedgerRow]], list[SettledCall]],
    by: str,
    confirm: Confirm | None,
    *,
    dry_run: bool = False,
) -> list[SettledCall]:
    """Record the amounts that `choose` makes of a run's ledger, in one write."""
    name = resolve(store, run)
    # A person is asked before the run is locked; what is recorded is worked out again under the lock.
    chosen = choose(name, rows(records(store, name)))
    if dry_run:
        return chosen
    limit, usd = most([Bounds.of(each.row) for each in chosen]), sum((each.usd for each in chosen), Decimal(0))
    if limit is not None and usd > limit:
        what = f"call {chosen[0].row.seq}" if len(chosen) == 1 else f"these {len(chosen)} calls"
        said = f"{in_full(usd)} is more than {what} can have cost at worst: {in_full(limit)}."
        _need(confirm, said, "Record it?", "Correct the amount, or add --yes.")
    closing = {each.row.seq for each in chosen}
    if waiting := sum(seq in closing and bool(call.batch) for seq, call in load(store, name).open_calls.items()):
        asked = requests(waiting)
        said = f"A batch may hold the answers to {asked}: if you settle now, they are asked and billed again."
        _need(confirm, said, "Settle anyway?", "Resume the run to fetch them, or add --yes.")
    found: list[SettledCall] = []

    def decide(_: RunState) -> Sequence[Fact]:
        found.extend(choose(name, rows(records(store, name))))
        return [ChargeSettled(each.row.seq, f"{each.usd:f}", by, corrects=each.row.settled) for each in found]

    amend(store, name, SystemClock(), decide)
    return found


def _need(confirm: Confirm | None, what: str, question: str, hint: str) -> None:
    """Refuse what a person does not confirm.

    Raises:
        NeedsConfirmation: It was not confirmed.
    """
    if confirm is None or not confirm(f"{what} {question}"):
        raise NeedsConfirmation(f"{what} Nothing was recorded.", hint=hint)
