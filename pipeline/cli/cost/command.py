"""The command `cost`: its options, and which of its forms they ask for."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click

from pipeline.cli.cost import chart, reprice
from pipeline.cli.cost import reconcile as comparison
from pipeline.cli.cost.books import Books, Range, read, read_all
from pipeline.cli.cost.form import Form
from pipeline.cli.cost.machine import csv_rows, json_lines
from pipeline.cli.cost.table import lines_of
from pipeline.cli.options import RunName, in_its_folder, json_option, open_store, own, store_option
from pipeline.cli.reading import head_of
from pipeline.cost.report import GROUPS, OF_TRIES, report
from pipeline.store.reading import resolve


class Day(click.ParamType[str]):
    """A UTC day."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return date.fromisoformat(str(value)).isoformat()
        except ValueError:
            self.fail(f"Invalid date {value!r}; use YYYY-MM-DD.", param, ctx)


@click.command("cost")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@click.option("--by", type=click.Choice(GROUPS), default="step", show_default=True, envvar=own("cost", "by"),
              show_envvar=True, help="What to sum by.")  # fmt: skip
@click.option("--since", type=Day(), envvar=own("cost", "since"), show_envvar=True, metavar="DATE",
              help="Only calls that left on this UTC day or later.")  # fmt: skip
@click.option("--until", type=Day(), envvar=own("cost", "until"), show_envvar=True, metavar="DATE",
              help="Only calls that left on this UTC day or earlier.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, envvar=own("cost", "csv"), show_envvar=True,
              help="CSV with stable columns; of single calls with --by call.")  # fmt: skip
@click.option("--reprice", "prices", envvar=own("cost", "reprice"), show_envvar=True, metavar="FILE|published",
              help="What the recorded tokens would cost at other prices.")  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), envvar=own("cost", "plot"),
              show_envvar=True, metavar="FILE.svg|FILE.png",
              help="Draw spend by day and by step into a file.")  # fmt: skip
@click.option("--reconcile", is_flag=True, envvar=own("cost", "reconcile"), show_envvar=True,
              help="Compare with the provider's reports by day and model; needs ANTHROPIC_ADMIN_KEY.")  # fmt: skip
@json_option
@store_option
@in_its_folder
def cost(
    run: str | None, by: str, since: str | None, until: str | None, as_csv: bool, prices: str | None, plot: Path | None,
    reconcile: bool, as_json: bool, store: str | None,
) -> None:  # fmt: skip
    """Show what was spent on what; of all runs without RUN, removed ones too.

    Failed and wasted spend is in the total and stands apart beside it; calls whose cost is only known
    between two bounds are listed.
    """
    form = Form(as_csv, as_json)
    if since and until and since > until:
        raise click.UsageError(f"--since {since} is after --until {until}.")
    days = Range(since or "", until or "")
    if (prices is not None) + (plot is not None) + reconcile > 1:
        raise click.UsageError("--reprice, --plot and --reconcile are different answers; ask for one.")
    if reconcile:
        _reconcile(run, store, days, form)
        return
    if prices is not None:
        _reprice(run, store, days, by, prices, form)
        return
    if plot is not None:
        chart.check(plot)
        books = _books(run, store, days, tries=False)
        chart.draw(books, plot)
        form.write(chart.lines_of(books, plot), chart.json_lines(plot), chart.csv_rows(plot))
        return
    books = _books(run, store, days, tries=by in OF_TRIES)
    made = report(books.postings, by, many=books.many)
    form.write(lines_of(books, made), json_lines(books, made), csv_rows(books, made))


def _reprice(run: str | None, store: str | None, days: Range, by: str, prices: str, form: Form) -> None:
    book = reprice.prices_of(prices)
    made = reprice.compare(_books(run, store, days, tries=True), open_store(store), book, by)
    form.write(reprice.lines_of(made), reprice.json_lines(made), reprice.csv_rows(made))


def _reconcile(run: str | None, store: str | None, days: Range, form: Form) -> None:
    from pipeline import app

    if run is not None:
        raise click.UsageError("--reconcile compares all runs of a store: the provider knows no runs. Leave RUN out.")
    since, until = app.days_to_reconcile(days.since, days.until)
    # A day more at either end: what was sent before midnight is billed after it.
    wider = Range((since - timedelta(days=1)).isoformat(), (until + timedelta(days=1)).isoformat())
    books = read_all(store, wider)
    made = app.reconcile(books.postings, since, until)
    doubtful = {posting.origin.run for posting in books.postings if not posting.exact}
    batches = list(app.possibly_billed(open_store(store), doubtful, str(since), str(until)))
    lines = comparison.lines_of(made, books, since, until, batches)
    form.write(lines, comparison.json_lines(made, books, batches), comparison.csv_rows(made))


def _books(run: str | None, store: str | None, days: Range, *, tries: bool) -> Books:
    if run is None:
        return read_all(store, days, tries=tries)
    place = open_store(store)
    return read(place, head_of(place, resolve(place, run)), days)
