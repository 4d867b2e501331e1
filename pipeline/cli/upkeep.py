"""`cleanup` and `recover`: removing what is old, bringing back what a disk refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import click

from pipeline.cli.options import open_account, open_store, own, run_argument, store_option
from pipeline.cli.progress.watch import ask_yes_no
from pipeline.cli.text import count, say
from pipeline.clock import SystemClock
from pipeline.errors import NeedsConfirmation
from pipeline.store.base import Movable
from pipeline.store.emergency import owner_of
from pipeline.store.reading import resolve
from pipeline.store.recovery import recover as append_emergency
from pipeline.store.retention import cleanup as remove_old


@click.command("cleanup")
@click.option("--max-age-days", type=click.IntRange(min=0), default=30, show_default=True, show_envvar=True,
              envvar=own("cleanup", "max_age_days"), metavar="N", help="Remove runs untouched for longer.")  # fmt: skip
@click.option("--max-runs", type=click.IntRange(min=0), default=50, show_default=True, show_envvar=True,
              envvar=own("cleanup", "max_runs"), metavar="N", help="Keep at most so many finished runs.")  # fmt: skip
@click.option("--dry-run", is_flag=True, envvar=own("cleanup", "dry_run"), show_envvar=True,
              help="Only say what would be removed.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Remove without asking.")
@store_option
def cleanup(max_age_days: int, max_runs: int, dry_run: bool, yes: bool, store: str | None) -> None:
    """Remove old finished runs; what they cost stays on the account.

    Never removed: unfinished, owned and corrupt runs, and the newest completed run of each course.
    """
    place, account, now = open_store(store), open_account(store), SystemClock().now()

    def remove(only_say: bool) -> list[str]:
        return list(remove_old(place, account, max_age_days=max_age_days, max_runs=max_runs, now=now, dry_run=only_say))

    runs = remove(True)
    if not runs:
        say("Nothing to remove.")
        return
    for run in runs:
        say(run)
    if dry_run:
        say(f"{count(len(runs), 'run')} would be removed.")
        return
    if not yes:
        _confirm(len(runs))
    say(f"{count(len(remove(False)), 'run')} removed.")


def _confirm(runs: int) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NeedsConfirmation(f"Nothing was removed: {count(runs, 'run')} would be, and nobody can be asked.",
                                hint="Add --yes, or --dry-run to only look.")  # fmt: skip
    if not ask_yes_no(f"Remove {count(runs, 'run')} for good?"):
        raise click.Abort


@click.command("recover")
@run_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@store_option
def recover(run: str, file: Path, store: str | None) -> None:
    """Append the records of an emergency file to a run; records it has already are left alone.

    A run writes such a file when its store refuses to save what was already paid for. Going on with the run on the
    machine that has the file does the same. A run whose folder is lost is made again where the file holds all of its
    records.
    """
    place = open_store(store)
    # A run that is lost cannot be looked up by a part of its name.
    name = run if run == owner_of(file) else resolve(place, run)
    added = append_emergency(cast(Movable, place), name, file)
    text = f"{count(added, 'record')} appended to run {name}." if added else f"Run {name} has all of these already."
    say(f"{text} {file} {'is not needed any more' if file.exists() else 'was removed'}.")
