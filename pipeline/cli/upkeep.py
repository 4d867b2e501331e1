"""`cleanup`, `delete` and `recover`: removing runs, bringing back what a store refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click

from pipeline.app.removals import removal_json, removal_lines, removals, remove
from pipeline.app.stores import open_account, open_store
from pipeline.app.words import count
from pipeline.cli.displays import confirmer
from pipeline.cli.options import NamedPath, RunName, json_option, own_option, run_argument, store_option
from pipeline.cli.text import say, say_json, tell, warn
from pipeline.clock import SystemClock
from pipeline.errors import NeedsConfirmation, RunLocked, RunNotFound
from pipeline.store.base import Account, Movable, Store
from pipeline.store.emergency import aside, claimed, owner_of
from pipeline.store.reader import resolve
from pipeline.store.recovery import recover as append_emergency
from pipeline.store.retention import Removal, removable, removal, sweep


@click.command("cleanup")
@own_option("cleanup", "--max-age-days", type=click.IntRange(min=0), default=30, show_default=True, metavar="N",
            help="Remove runs untouched for longer.")  # fmt: skip
@own_option("cleanup", "--max-runs", type=click.IntRange(min=0), default=50, show_default=True, metavar="N",
            help="Remove runs beyond the newest N, whatever their age.")  # fmt: skip
@own_option("cleanup", "--unfinished", is_flag=True,
            help="Also remove failed and stopped runs, which could still be resumed.")  # fmt: skip
@own_option("cleanup", "--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@json_option
@store_option
def cleanup(
    max_age_days: int, max_runs: int, unfinished: bool, dry_run: bool, yes: bool, as_json: bool, store: str | None
) -> None:
    """Remove old completed runs; their cost stays on the account.

    Never removed: owned and corrupt runs, and the newest completed run of each course; failed and stopped runs only
    with --unfinished. `delete RUN` removes any run that has ended.
    """
    place, now = open_store(store), SystemClock().now()

    def old(*, unfinished: bool) -> list[str]:
        return removable(place.heads(), max_age_days=max_age_days, max_runs=max_runs, now=now, unfinished=unfinished)

    going = [removal(place, name) for name in old(unfinished=unfinished)]
    if not dry_run and (swept := sweep(place, now)) and not as_json:
        say(f"Swept: {count(len(swept), 'leftover')} of partly created or removed runs.")
    if going:
        _remove(going, place, open_account(store), "remove", dry_run=dry_run, yes=yes, as_json=as_json)
    elif not as_json:
        say("Nothing to remove.")
    if not as_json and not unfinished and (left := len(old(unfinished=True)) - len(old(unfinished=False))):
        say(f"Kept: {count(left, 'failed or stopped run')} of that age; --unfinished removes them too.")


@click.command("delete")
@click.argument("runs", type=RunName(), metavar="RUN...", nargs=-1, required=True)
@own_option("delete", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
@store_option
def delete(runs: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool, store: str | None) -> None:
    """Delete runs permanently, whether completed, failed or stopped; their cost stays on the account.

    A deleted run can be neither shown nor resumed. Published files stay. A run that is still going is refused.
    """
    place = open_store(store)
    names = list(dict.fromkeys(resolve(place, run) for run in runs))
    _remove(removals(place, names), place, open_account(store), "delete", dry_run=dry_run, yes=yes, as_json=as_json)


def _remove(
    going: Sequence[Removal], place: Store, account: Account, verb: str, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Show what goes with these runs, ask, and remove them.

    Raises:
        NeedsConfirmation: Without --yes, and there is no terminal.
        click.Abort: The answer was no.
    """
    if not as_json:
        for each in going:
            say("\n  ".join(removal_lines(each)))
    runs, past = count(len(going), "run"), f"{verb.removesuffix('e')}ed"
    if not dry_run:
        confirm = None if as_json and not yes else confirmer(yes=yes)
        if confirm is None:
            raise NeedsConfirmation(f"Nothing was {past}: {runs} would be, and there is no terminal to confirm on.",
                                    hint="Add --yes, or --dry-run to only look.")  # fmt: skip
        if not confirm(f"{verb.capitalize()} {runs} permanently?"):
            raise click.Abort
    done = 0
    for each in going:
        gone = not dry_run and _is_removed(place, account, each)
        done += gone
        if as_json:
            say_json(removal_json(each, removed=gone))
    if not as_json:
        say(f"{runs} would be {past}." if dry_run else f"{count(done, 'run')} {past}.")


def _is_removed(place: Store, account: Account, going: Removal) -> bool:
    try:
        remove(place, account, going)
    except (RunLocked, RunNotFound) as error:
        # Taken, or removed, by another process in the meantime.
        warn(f"Not removed: {error.message}")
        return False
    return True


@click.command("recover")
@run_argument
@click.argument("file", type=NamedPath(dir_okay=False))
@json_option
@store_option
def recover(run: str, file: Path, as_json: bool, store: str | None) -> None:
    """Append the records of an emergency file to a run; records it already has are skipped.

    A run writes such a file when its store refuses to save what was already paid for. Resuming the run on the
    machine that has the file does the same. A run whose folder is lost is restored where the file holds all of its
    records.
    """
    place = open_store(store)
    # A run that is lost cannot be looked up by a prefix of its name.
    name = run if run == owner_of(file) else resolve(place, run)
    with claimed(file, name) as kept:
        damaged = kept.damaged
    added = append_emergency(cast(Movable, place), name, file)
    text = f"{count(added, 'record')} appended to run {name}." if added else f"Run {name} already has all of these."
    left = file if file.exists() else aside(file)
    end = f"{file} {'is no longer needed' if file.exists() else 'was removed'}."
    if damaged:
        end = f"{count(damaged, 'more line')} cannot be read: {left} keeps them."
    done = {"run": name, "appended": added, "unreadable": damaged, "kept_in": str(left) if damaged else None}
    tell([done], [f"{text} {end}"], as_json=as_json)
