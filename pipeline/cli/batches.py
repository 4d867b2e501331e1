"""`batches` and `cancel`: what is out at the provider at half the price, and calling it back."""

from __future__ import annotations

from decimal import Decimal

import click

from pipeline.cli.options import RunName, in_its_folder, json_option, open_store, run_argument, store_option
from pipeline.cli.reading import head_of
from pipeline.cli.runs import resume_command
from pipeline.cli.summary import row_of
from pipeline.cli.text import count, money, say, say_json, table, when
from pipeline.cli.where import here


@click.command("batches")
@click.argument("run", type=RunName(), metavar="[RUN]", required=False)
@json_option
@store_option
@in_its_folder
def batches(run: str | None, store: str | None, as_json: bool) -> None:
    """List the batches of a run, or of all runs: what was handed in, what is still out."""
    from pipeline import app

    rows = list(app.batches(open_store(store), run))
    if as_json:
        for row in rows:
            say_json({
                "run": row.run, "batch": row.batch or None, "status": row.status, "requests": row.requests,
                "open": row.open, "open_usd_high": None if row.worst_usd is None else float(row.worst_usd),
                "intended_at": row.intended_at, "expires_at": row.expires_at or None,
                "cancelled_at": row.cancelled_at or None, "abandoned_at": row.abandoned_at or None,
            })  # fmt: skip
        return
    if not rows:
        say(f"No batches{'' if run else here()}.")
        return
    cells = [
        [row.run, row.batch or "(unknown)", row.status, str(row.requests), str(row.open or ""),
         at_most(row.worst_usd) if row.open or row.abandoned_at else "", when(row.intended_at), when(row.expires_at)]
        for row in rows
    ]  # fmt: skip
    say(table(["Run", "Batch", "Status", "Requests", "Open", "At most", "Handed in", "Answered by"], cells,
              right=["Requests", "Open", "At most"]))  # fmt: skip


def at_most(usd: Decimal | None) -> str:
    """An upper end in the table; `unpriced` where there is none."""
    return "unpriced" if usd is None else money(usd)


@click.command("cancel")
@run_argument
@store_option
def cancel(run: str, store: str | None) -> None:
    """Ask the provider to leave what it has not answered of a run's batches.

    What it has answered is kept and paid; --resume fetches it, and asks the rest again.
    """
    from pipeline import app

    place = open_store(store)
    done = app.cancel(place, run)
    for row in done.batches:
        say(f"{row.batch}: cancelled; {count(row.open, 'request')} had no recorded answer yet.")
    if not done.recorded:
        say("A living process waits for it: what was answered is recorded there, and the rest asked again.")
        return
    say(f"Go on: {resume_command(row_of(head_of(place, done.run)), store)}")
