"""`list`: which runs there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import click

from pipeline.app.run_list import CORRUPT, STATUSES, RunRow, find, way_on
from pipeline.app.stores import missing_store
from pipeline.app.words import money, one_line, when, with_unpriced
from pipeline.cli.options import FIRST_RUN, common_options, here, own_option, store_words_here
from pipeline.cli.text import heading, say, say_json, table
from pipeline.records.statuses import COMPLETED

#: Rows shown unless --limit says otherwise.
DEFAULT_LIMIT = 50
#: More rows than any store has; islice takes no number beyond a machine word.
_MOST = 10**9
#: How many runs the closing hint names.
_HINTS = 5


class Statuses(click.ParamType[frozenset[str]]):
    """One or more statuses, separated by commas."""

    name = "status"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        if isinstance(value, frozenset):
            return value
        names = frozenset(part.strip().lower().replace("-", "_") for part in str(value).split(","))
        for name in sorted(names - set(STATUSES)):
            self.fail(f"{name!r} is not a status; use {', '.join(STATUSES)}.", param, ctx)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        return click.Choice(STATUSES).shell_complete(ctx, param, incomplete)


@click.command("list")
@own_option("list", "--status", type=Statuses(), metavar="STATUS[,STATUS]",
            help="Only runs with one of these; in_progress includes its sub-statuses.")  # fmt: skip
@own_option("list", "--subject", metavar="NAME", default="", help="Only runs of this subject; aliases are accepted.")
@own_option("list", "--resumable", is_flag=True, help="Only runs that can be resumed.")
@own_option("list", "--verbose", "-v", is_flag=True, help="Also show times, last and next step, and the error.")
@own_option("list", "--limit", type=click.IntRange(min=0), default=DEFAULT_LIMIT, metavar="N", show_default=True,
            help="Show at most N runs; 0 = all.")  # fmt: skip
@common_options
def list_runs(
    status: frozenset[str] | None, subject: str, resumable: bool, verbose: bool, limit: int, as_json: bool,
    store: str | None,
) -> None:  # fmt: skip
    """List runs, newest first."""
    rows = find(store, status=status, subject=subject, resumable=resumable)
    shown = list(islice(rows, min(limit, _MOST) or None))
    if as_json:
        for row in shown:
            say_json(row.to_json())
        return
    say(heading("PIPELINE RUNS"))
    say()
    if not shown:
        url = missing_store(store) if store_words_here() else ""
        if not url and (status or subject or resumable):
            say("No run matches.")
        else:
            nothing = f"There is no store at {url} yet." if url else f"No runs yet{here()}."
            say(f"{nothing} Start one: {FIRST_RUN}{store_words_here()}")
        return
    columns = [column for column in COLUMNS if column.wanted(shown, verbose)]
    say(table([column.title for column in columns], [[column.cell(row) for column in columns] for row in shown]))
    if limit and len(shown) == limit and next(rows, None) is not None:
        newest = "The newest run is" if limit == 1 else f"The newest {limit} are"
        say(f"\n{newest} shown; --limit 0 shows all.")
    if found := [row for row in shown if row.resumable and row.status != COMPLETED][:_HINTS]:
        say("\nResume with:")
        for row in found:
            say(f"  {way_on(row, store)}")


class RunColumn(NamedTuple):
    """One column of the table."""

    title: str
    cell: Callable[[RunRow], str]
    #: (all rows, --verbose) → whether it is shown.
    wanted: Callable[[Sequence[RunRow], bool], bool] = lambda rows, verbose: True


def _verbose(_: Sequence[RunRow], verbose: bool) -> bool:
    return verbose


def steps_text(row: RunRow) -> str:
    """Return 3/4; of a completed run also what has failed on its way, and what its route did not reach."""
    if row.status == CORRUPT:
        return "-"
    if row.checkpoints is not None:
        return f"{row.checkpoints} kept"
    failed = row.steps_failed if row.status == COMPLETED else 0
    numbers = ((failed, "failed"), (row.steps_skipped, "not taken"))
    more = ", ".join(f"{number} {word}" for number, word in numbers if number)
    return f"{row.steps_completed - row.steps_skipped}/{row.steps_total}" + (f" ({more})" if more else "")


def cost_text(row: RunRow) -> str:
    """Return $1.85; with a + where more may have been spent; - where another system keeps the accounts."""
    if row.checkpoints is not None:
        return "-"
    usd = money(row.cost_usd)
    more = "+" if row.possibly_usd is None or row.possibly_usd > 0 else ""
    return with_unpriced(f"at least {usd}" if row.at_least else f"{usd}{more}", row.unpriced_calls)


#: What others name a run by, such as a thread's id, may be of any length.
COLUMNS = (
    RunColumn("Run ID", lambda row: row.run_id),
    RunColumn("Subject", lambda row: one_line(row.subject or row.pipeline, 40) or "-"),
    RunColumn("Level", lambda row: one_line(row.level, 40) or "-"),
    RunColumn("Status", lambda row: row.shown_status),
    RunColumn("Steps", steps_text),
    RunColumn("Cost", cost_text),
    RunColumn("Fork of", lambda row: row.parent or "-", lambda rows, _: any(row.parent for row in rows)),
    RunColumn("Started", lambda row: when(row.started_at), _verbose),
    RunColumn("Updated", lambda row: when(row.updated_at), _verbose),
    RunColumn("Last step", lambda row: row.last_completed_step or "-", _verbose),
    RunColumn("Next step", lambda row: row.next_step or "-", _verbose),
    RunColumn("Error", lambda row: one_line(row.error, 60) or "-", _verbose),
)
