"""Closing an open interval with the amount a person knows, for instance from the provider's bill."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError
from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.cost.ledger import Row
    from pipeline.records.kinds import Fact
    from pipeline.records.run import RunState


def settle(store: Store, run: str, call: int, usd: Decimal, *, by: str = "") -> Row:
    """Record what a call cost whose charge is open; the row as it stood before.

    Raises:
        ConfigError: There is no such call, or its charge is exact.
        RunLocked: A living process owns the run.
    """
    from pipeline.clock import SystemClock
    from pipeline.cost.ledger import rows
    from pipeline.engine.amend import amend
    from pipeline.records.charge import EXACT
    from pipeline.records.kinds import ChargeSettled
    from pipeline.store.reading import records, resolve

    name = resolve(store, run)
    found: list[Row] = []

    def decide(state: RunState) -> Sequence[Fact]:
        ledger = rows(records(store, name))
        unsettled = [row for row in ledger if row.state != EXACT]
        found.extend(row for row in ledger if row.seq == call)
        numbers = ", ".join(str(row.seq) for row in unsettled[:20]) or "none"
        if not found:
            raise ConfigError(f"Run {name} has no call {call}.", hint=f"Calls with an open charge: {numbers}.")
        if found[0].state == EXACT:
            raise ConfigError(
                f"Call {call} of run {name} cost ${found[0].low}, exactly; there is nothing to settle.",
                hint=f"Calls with an open charge: {numbers}.",
            )
        return [ChargeSettled(call, str(usd), by)]

    amend(store, name, SystemClock(), decide)
    return found[0]
