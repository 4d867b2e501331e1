"""`batches` and `cancel`: what is out at the provider at half the price, and cancelling it."""

from __future__ import annotations

import click

from pipeline.app.run_list import resume_command, row_of
from pipeline.app.stores import head_of, open_store
from pipeline.app.words import count, money, when
from pipeline.cli.options import RunName, common_options, here, in_its_folder, run_argument
from pipeline.cli.text import say, say_json, table, tell


@click.command("batches")
@click.argument("run", type=RunName(), metavar="[RUN]", required=False)
@common_options
@in_its_folder
def batches(run: str | None, store: str | None, as_json: bool) -> None:
    """List the batches of a run, or of all runs: what was submitted, what is still out."""
    from pipeline.app.batches import batches as found

    rows = list(found(open_store(store), run))
    if as_json:
        for row in rows:
            say_json({
                "run": row.run, "batch": row.batch or None, "status": row.status, "requests": row.requests,
                "open": row.open, "open_usd_high": row.worst_usd, "intended_at": row.intended_at,
                "expires_at": row.expires_at or None, "cancelled_at": row.cancelled_at or None,
                "abandoned_at": row.abandoned_at or None,
            })  # fmt: skip
        return
    if not rows:
        say(f"No batches{'' if run else here()}.")
        return
    cells = []
    for row in rows:
        most = "unpriced" if row.worst_usd is None else money(row.worst_usd)
        most = most if row.open or row.abandoned_at else ""
        cells.append([row.run, row.batch or "(unknown)", row.status, str(row.requests), str(row.open or ""), most,
                      when(row.intended_at), when(row.expires_at)])  # fmt: skip
    say(table(["Run", "Batch", "Status", "Requests", "Open", "At most", "Submitted", "Answered by"], cells,
              right=["Requests", "Open", "At most"]))  # fmt: skip


@click.command("cancel")
@run_argument
@common_options
def cancel(run: str, as_json: bool, store: str | None) -> None:
    """Ask the provider to cancel what it has not answered of a run's batches.

    What it has answered is kept and paid; --resume fetches it, and asks the rest again.
    """
    from pipeline.app.batches import cancel as ask

    place = open_store(store)
    done = ask(place, run)
    lines = [
        f"{row.batch}: cancelled; {count(row.open, 'request')} had no recorded answer yet." for row in done.batches
    ]
    way = resume_command(row_of(head_of(place, done.run)), store) if done.recorded else ""
    lines.append(
        f"Resume: {way}" if way
        else "A running process waits for it: it records what was answered and asks the rest again."
    )  # fmt: skip
    rows = [
        {"run": done.run, "batch": row.batch, "status": "cancelled", "open": row.open, "resume": way or None}
        for row in done.batches
    ]
    tell(rows, lines, as_json=as_json)
