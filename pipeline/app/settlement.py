"""Closing open charges with what a person knows, or the provider reports, that was billed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from pipeline.app.start import Confirm
from pipeline.app.stores import open_store, words_of
from pipeline.clock import SystemClock
from pipeline.cost.ledger import LedgerRow, rows
from pipeline.cost.reconciliation import Bounds, most, shares
from pipeline.engine.amendment import amend
from pipeline.engine.batch_ledger import requests
from pipeline.engine.store_limits import left_open, settle_dead, settle_slices
from pipeline.errors import ConfigError, NeedsConfirmation, StoreError
from pipeline.records.budgets import LimitStanding
from pipeline.records.charge import EXACT, in_full
from pipeline.records.kinds import ChargeSettled, Fact
from pipeline.records.run import RunState
from pipeline.store.base import Account, Store
from pipeline.store.reader import load, records, resolve

#: Calls that an error names at most.
_MOST = 20


@dataclass(frozen=True, slots=True)
class SettledCall:
    """A call whose charge was closed, or closed again."""

    #: As it was before.
    row: LedgerRow
    usd: Decimal


#: A run's id and its ledger → the amounts to record.
Choice = Callable[[str, Sequence[LedgerRow]], list[SettledCall]]


def one_call(call: int, usd: Decimal) -> Choice:
    """Choose the amount of one call whose charge is open, or was settled before.

    Raises (when it chooses):
        ConfigError: There is no such call, or its charge is exact as the provider reported it.
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

    return choose


def all_calls(usd: Decimal) -> Choice:
    """Choose shares, `usd` in all, for the calls with an open charge; where none is open, for all settled before.

    Raises (when it chooses):
        ConfigError: Every charge is exact as the provider reported it.
    """

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[SettledCall]:
        chosen = [row for row in ledger if row.state != EXACT] or [row for row in ledger if row.settled]
        if not chosen:
            raise ConfigError(f"Every call of run {name} has its exact charge; there is nothing to settle.",
                              code="nothing_to_settle")  # fmt: skip
        return list(map(SettledCall, chosen, shares([Bounds.of(row) for row in chosen], usd)))

    return choose


def reported_calls(url: str | None) -> Choice:
    """Choose for each call with an open charge its share of what the provider reports; it is asked once.

    Raises (when it chooses):
        ConfigError: Every charge is exact, or the reports do not cover a call yet.
        CredentialMissing, ModelError: The reports are unavailable.
    """
    found: list[Mapping[tuple[str, int], Decimal]] = []

    def choose(name: str, ledger: Sequence[LedgerRow]) -> list[SettledCall]:
        chosen = [row for row in ledger if row.state != EXACT]
        if not chosen:
            raise ConfigError(f"Run {name} has no open charge; there is nothing to settle.", code="nothing_to_settle")
        if not found:
            from pipeline.app.cost_report import reported_shares

            found.append(reported_shares(url, name))
        for row in chosen:
            if (name, row.seq) not in found[0]:
                raise ConfigError(
                    f"The provider's reports do not cover call {row.seq} of {row.day} yet.",
                    code="not_reported_yet",
                    hint="Try again the day after, or give the amount: "
                    f"`./pipeline.sh settle {name} {row.seq} USD{words_of(url)}`.",
                )
        return [SettledCall(row, found[0][name, row.seq]) for row in chosen]

    return choose


def settle(
    store: Store, run: str, choose: Choice, *, by: str = "", confirm: Confirm | None = None, dry_run: bool = False,
    account: Account | None = None,
) -> list[SettledCall]:  # fmt: skip
    """Record the amounts that are chosen from a run's ledger, in one write; with `dry_run` nothing is written.

    Args:
        confirm: Asks whether an amount above the calls' worst case is intended; None: it is refused.
        account: Of the same store: its limits count the calls with these amounts from then on.

    Raises:
        ConfigError: As `choose` does.
        NeedsConfirmation: The amount is above the worst case, or a batch may hold an answer.
        RunLocked: A living process owns the run.
    """
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

    state = amend(store, name, SystemClock(), decide)
    settle_slices(store, account, name, left_open(store, account, name, state))
    return found


def standings_now(url: str | None) -> Sequence[LimitStanding]:
    """Return how the limits of a store stand, once what processes that died had reserved is given back.

    Raises:
        StoreError: The account cannot be read.
    """
    store, now = open_store(url), SystemClock().now()
    account = store.account()
    found = account.standings(now)
    if any(each.tally.reserved for each in found):
        # A store that this process may only read is shown as it is.
        with suppress(StoreError):
            settle_dead(store, account, min(each.window.first for each in found))
        found = account.standings(now)
    return found


def _need(confirm: Confirm | None, what: str, question: str, hint: str) -> None:
    """Refuse what a person does not confirm.

    Raises:
        NeedsConfirmation: It was not confirmed.
    """
    if confirm is None or not confirm(f"{what} {question}"):
        raise NeedsConfirmation(f"{what} Nothing was recorded.", hint=hint)
