"""`settle`: a charge that was open gets the amount that was really billed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import click

from pipeline.cli.options import open_store, own, run_argument, store_option
from pipeline.cli.text import money, money_between, say
from pipeline.errors import ConfigError
from pipeline.settings import parse_usd


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
@click.argument("call", type=click.IntRange(min=1))
@click.argument("usd", type=Billed(), metavar="USD")
@click.option("--by", default="", envvar=own("settle", "by"), show_envvar=True, metavar="NAME",
              help="Who says so; kept in the record.")  # fmt: skip
@store_option
def settle(run: str, call: int, usd: Decimal, by: str, store: str | None) -> None:
    """Close the open charge of CALL (its number in `cost RUN`) with what was billed."""
    from pipeline import app

    row = app.settle(open_store(store), run, call, usd, by=by)
    before = "not priced" if row.state == "unpriced" else money_between(row.low, row.high)
    say(f"Call {call} ({row.place}): {before} before, {money(usd)} now.")
