"""`settle`: charges that were open get the amount that was really billed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.options import json_option, open_store, own, run_argument, store_option
from pipeline.cli.progress.watch import confirmer
from pipeline.cli.text import count, money_between, say, say_json, table
from pipeline.errors import ConfigError
from pipeline.records.charge import UNPRICED, dollars, in_full
from pipeline.settings import parse_usd

if TYPE_CHECKING:
    from pipeline.app.settle import Settled
    from pipeline.cost.ledger import LedgerRow


class Billed(click.ParamType[Decimal]):
    """An amount of dollars."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        if isinstance(value, Decimal):
            return value
        try:
            amount = parse_usd(str(value), "USD")
        except ConfigError as error:
            self.fail(error.message, param, ctx)
        if amount is None:
            self.fail("USD is an amount of dollars such as 0.12.", param, ctx)
        return amount


@click.command("settle")
@run_argument
@click.argument("call", type=click.IntRange(min=1), required=False)
@click.argument("usd", type=Billed(), metavar="[USD]", required=False)
@click.option("--all", "total", type=Billed(), metavar="USD",
              help="What all calls with an open charge were billed together; each gets its share.")  # fmt: skip
@click.option("--reconcile", is_flag=True, envvar=own("settle", "reconcile"), show_envvar=True,
              help="Give each call its share of what the provider reports; needs ANTHROPIC_ADMIN_KEY.")  # fmt: skip
@click.option("--by", default="", envvar=own("settle", "by"), show_envvar=True, metavar="NAME",
              help="Who confirmed the amount; kept in the record.")  # fmt: skip
@click.option("--dry-run", is_flag=True, envvar=own("settle", "dry_run"), show_envvar=True,
              help="Only show what would be recorded.")  # fmt: skip
@click.option(
    "--yes", is_flag=True, help="Record an amount above the worst case, or give up a batch's answers, without asking."
)
@json_option
@store_option
def settle(
    run: str, call: int | None, usd: Decimal | None, total: Decimal | None, reconcile: bool, by: str, dry_run: bool,
    yes: bool, as_json: bool, store: str | None,
) -> None:  # fmt: skip
    """Close the open charge of CALL (its number in `cost RUN`) with what was billed.

    Or close all of RUN at once: with one amount (--all USD), or with the provider's report (--reconcile). Settling a
    call again corrects the amount.
    """
    from pipeline import app

    one = call is not None
    if (total is not None) + reconcile + one != 1 or one != (usd is not None):
        raise click.UsageError("Give CALL and USD, or --all USD, or --reconcile.")
    if one and dry_run:
        raise click.UsageError("--dry-run shows the shares of --all and of --reconcile; CALL gets USD.")
    place, confirm = open_store(store), confirmer(yes=yes)
    if call is not None and usd is not None:
        done = [app.settle(place, run, call, usd, by=by, confirm=confirm)]
    elif total is not None:
        done = app.settle_all(place, run, total, by=by, confirm=confirm, dry_run=dry_run)
    else:
        done = app.settle_shares(
            place, run, _Reported(store, run), by=by or "reconciled", confirm=confirm, dry_run=dry_run
        )
    _show(done, as_json=as_json, one=one, dry_run=dry_run)


class _Reported:
    """What the provider's reports leave for each call of a run; fetched once a call is asked about."""

    def __init__(self, store: str | None, run: str) -> None:
        self._store = store
        self._run = run
        self._found: dict[tuple[str, int], Decimal] | None = None

    def __call__(self, row: LedgerRow) -> Decimal:
        if self._found is None:
            self._name, self._found = self._fetch()
        share = self._found.get((self._name, row.seq))
        if share is None:
            raise ConfigError(
                f"The provider's reports do not cover call {row.seq} of {row.day} yet.",
                hint="Try again on the day after, or give the amount: `settle RUN CALL USD`.",
            )
        return share

    def _fetch(self) -> tuple[str, dict[tuple[str, int], Decimal]]:
        from pipeline import app
        from pipeline.cli.cost.books import Range, read_all
        from pipeline.cost.reconciliation import open_shares
        from pipeline.store.reading import resolve

        name = resolve(open_store(self._store), self._run)
        books = read_all(self._store, tries=True)
        days = [p.day for p in books.postings if p.origin.run == name and p.row is not None and not p.exact]
        _, today = app.days_to_reconcile("", "")
        # The day that is not over is not all reported.
        since, until = date.fromisoformat(min(days)), min(date.fromisoformat(max(days)), today - timedelta(days=1))
        if since > until:
            return name, {}
        wider = Range((since - timedelta(days=1)).isoformat(), (until + timedelta(days=1)).isoformat())
        postings = wider.of(books.postings)
        return name, open_shares(app.reconcile(postings, since, until), postings)


def _show(done: Sequence[Settled], *, as_json: bool, one: bool, dry_run: bool) -> None:
    if as_json:
        for each in done:
            say_json({"call": each.row.seq, "step": each.row.step, "item": each.row.item, "low_usd": each.row.low,
                      "high_usd": each.row.high, "usd": each.usd, "recorded": not dry_run})  # fmt: skip
        return
    if one:
        row = done[0].row
        say(f"Call {row.seq} ({row.place}): {_before(row)} before, {in_full(done[0].usd)} now.")
        return
    rows = [[str(each.row.seq), each.row.place, _before(each.row), dollars(each.usd, 4)] for each in done]
    say(table(["Call", "Item", "Before", "Now"], rows, right=["Call", "Now"]))
    whole = in_full(sum((each.usd for each in done), Decimal(0)))
    say(f"{count(len(done), 'call')}: {whole} in all. {'Nothing was recorded.' if dry_run else 'Recorded.'}")


def _before(row: LedgerRow) -> str:
    return "not priced" if row.state == UNPRICED else money_between(row.low, row.high)
