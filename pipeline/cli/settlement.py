"""`settle`: charges that were open get the amount that was really billed."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from pipeline.app.stores import open_account, open_store
from pipeline.app.words import count, money_between
from pipeline.cli.displays import confirmer
from pipeline.cli.options import common_options, own_option, run_argument
from pipeline.cli.run_options import Usd
from pipeline.cli.text import say, say_json, table
from pipeline.records.charge import UNPRICED, dollars, in_full

if TYPE_CHECKING:
    from pipeline.cost.ledger import LedgerRow


@click.command("settle")
@run_argument
@click.argument("call", type=click.IntRange(min=1), required=False)
@click.argument("usd", type=Usd(none=False), metavar="[USD]", required=False)
@click.option("--all", "total", type=Usd(none=False), metavar="USD",
              help="Total billed for all calls with an open charge, to be shared among them.")  # fmt: skip
@own_option("settle", "--reconcile", is_flag=True,
            help="Share out the amounts that the provider reports; needs ANTHROPIC_ADMIN_KEY.")  # fmt: skip
@own_option("settle", "--by", default="", metavar="NAME", help="Who confirmed the amount; kept in the record.")
@own_option("settle", "--dry-run", is_flag=True, help="Only show what would be recorded.")
@click.option(
    "--yes", is_flag=True, help="Record an amount above the worst case, or give up a batch's answers, without asking."
)
@common_options
def settle(
    run: str, call: int | None, usd: Decimal | None, total: Decimal | None, reconcile: bool, by: str, dry_run: bool,
    yes: bool, as_json: bool, store: str | None,
) -> None:  # fmt: skip
    """Close the open charge of CALL (its number in `cost RUN`) with what was billed.

    Or close all of RUN at once: with one amount (--all USD), or with the provider's report (--reconcile). Settling a
    call again corrects the amount.
    """
    from pipeline.app import settlement

    one = call is not None
    if (total is not None) + reconcile + one != 1 or one != (usd is not None):
        raise click.UsageError("Give CALL and USD, or --all USD, or --reconcile.")
    if one and dry_run:
        raise click.UsageError("--dry-run only applies to --all and --reconcile.")
    if call is not None and usd is not None:
        choice = settlement.one_call(call, usd)
    else:
        choice = settlement.all_calls(total) if total is not None else settlement.reported_calls(store)
    done = settlement.settle(
        open_store(store), run, choice, by=by or ("reconciled" if reconcile else ""), confirm=confirmer(yes=yes),
        dry_run=dry_run, account=open_account(store),
    )  # fmt: skip
    if as_json:
        for each in done:
            say_json({"call": each.row.seq, "step": each.row.step, "item": each.row.item, "low_usd": each.row.low,
                      "high_usd": each.row.high, "usd": each.usd, "recorded": not dry_run})  # fmt: skip
    elif one:
        row = done[0].row
        say(f"Call {row.seq} ({row.place}): {_before(row)} before, {in_full(done[0].usd)} now.")
    else:
        rows = [[str(each.row.seq), each.row.place, _before(each.row), dollars(each.usd, 4)] for each in done]
        say(table(["Call", "Item", "Before", "Now"], rows, right=["Call", "Now"]))
        whole = in_full(sum((each.usd for each in done), Decimal(0)))
        say(f"{count(len(done), 'call')}: {whole} in all. {'Nothing was recorded.' if dry_run else 'Recorded.'}")


def _before(row: LedgerRow) -> str:
    return "not priced" if row.state == UNPRICED else money_between(row.low, row.high)
