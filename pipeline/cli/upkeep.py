"""`cleanup`, `delete` and `recover`: removing runs, bringing back what a store refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from pipeline.cli.options import RunName, json_option, open_account, open_store, own, run_argument, store_option
from pipeline.cli.progress.watch import confirmer
from pipeline.cli.text import count, money_between, one_line, say, say_json, size, warn, with_unpriced
from pipeline.clock import SystemClock
from pipeline.errors import NeedsConfirmation, RunLocked, RunNotFound
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Account, Movable, Store
from pipeline.store.emergency import aside, claimed, owner_of
from pipeline.store.reading import resolve
from pipeline.store.recovery import recover as append_emergency
from pipeline.store.retention import Removal, removable, removal, remove, sweep


@click.command("cleanup")
@click.option("--max-age-days", type=click.IntRange(min=0), default=30, show_default=True, show_envvar=True,
              envvar=own("cleanup", "max_age_days"), metavar="N", help="Remove runs untouched for longer.")  # fmt: skip
@click.option("--max-runs", type=click.IntRange(min=0), default=50, show_default=True, show_envvar=True,
              envvar=own("cleanup", "max_runs"), metavar="N",
              help="Remove runs beyond the newest N, whatever their age.")  # fmt: skip
@click.option("--unfinished", is_flag=True, envvar=own("cleanup", "unfinished"), show_envvar=True,
              help="Also failed and stopped runs, which could still be resumed.")  # fmt: skip
@click.option("--dry-run", is_flag=True, envvar=own("cleanup", "dry_run"), show_envvar=True,
              help="Only say what would be removed.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Remove without asking.")
@json_option
@store_option
def cleanup(
    max_age_days: int, max_runs: int, unfinished: bool, dry_run: bool, yes: bool, as_json: bool, store: str | None
) -> None:
    """Remove old completed runs; what they cost stays on the account.

    Never removed: owned and corrupt runs, and the newest completed run of each course; failed and stopped runs only
    with --unfinished. `delete RUN` removes any run that has ended.
    """
    place, now = open_store(store), SystemClock().now()
    names = removable(place.heads(), max_age_days=max_age_days, max_runs=max_runs, now=now, unfinished=unfinished)
    going = [removal(place, name) for name in names]
    if not dry_run:
        _sweep(place, now, quiet=as_json)
    if not going:
        if not as_json:
            say("Nothing to remove.")
            _say_unfinished(place, max_age_days, max_runs, now, unfinished=unfinished)
        return
    _remove(going, place, open_account(store), Told("remove", "removed"), dry_run=dry_run, yes=yes, as_json=as_json)
    if not as_json:
        _say_unfinished(place, max_age_days, max_runs, now, unfinished=unfinished)


def _sweep(place: Store, now: datetime, *, quiet: bool) -> None:
    if (swept := sweep(place, now)) and not quiet:
        say(f"Swept: {count(len(swept), 'leftover')} of runs that were half made or half removed.")


def _say_unfinished(place: Store, max_age_days: int, max_runs: int, now: datetime, *, unfinished: bool) -> None:
    """Say what --unfinished would reach besides."""
    if unfinished:
        return
    old = removable(place.heads(), max_age_days=max_age_days, max_runs=max_runs, now=now, unfinished=True)
    left = len(old) - len(removable(place.heads(), max_age_days=max_age_days, max_runs=max_runs, now=now))
    if left:
        say(f"Kept: {count(left, 'failed or stopped run')} of that age; --unfinished removes them too.")


class Told(NamedTuple):
    """The words of a command that removes runs."""

    verb: str
    done: str


@click.command("delete")
@click.argument("runs", type=RunName(), metavar="RUN...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, envvar=own("delete", "dry_run"), show_envvar=True,
              help="Only say what would be deleted.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
@store_option
def delete(runs: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool, store: str | None) -> None:
    """Delete runs for good, whether completed, failed or stopped; what they cost stays on the account.

    A deleted run can neither be shown nor resumed. Published files stay. A run that is still going is refused.
    """
    place = open_store(store)
    names = list(dict.fromkeys(resolve(place, run) for run in runs))
    owned = {head.run_id for head in place.heads() if head.owned}
    for name in names:
        if name in owned:
            raise RunLocked(f"Run {name} is still going; nothing was deleted.", hint="Stop it, then delete it.")
    going = [removal(place, name) for name in names]
    _remove(going, place, open_account(store), Told("delete", "deleted"), dry_run=dry_run, yes=yes, as_json=as_json)


def _remove(
    going: Sequence[Removal], place: Store, account: Account, told: Told, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Say what goes with these runs, ask, and remove them.

    Raises:
        NeedsConfirmation: Without --yes, and nobody can be asked.
        click.Abort: The answer was no.
    """
    if not as_json:
        for each in going:
            for line in _lines(each):
                say(line)
    runs = count(len(going), "run")
    if not dry_run:
        confirm = None if as_json and not yes else confirmer(yes=yes)
        if confirm is None:
            raise NeedsConfirmation(f"Nothing was {told.done}: {runs} would be, and there is no terminal to ask on.",
                                    hint="Add --yes, or --dry-run to only look.")  # fmt: skip
        if not confirm(f"{told.verb.capitalize()} {runs} for good?"):
            raise click.Abort
    done = 0
    for each in going:
        gone = not dry_run and _is_removed(place, account, each)
        done += gone
        if as_json:
            say_json(_row(each, removed=gone))
    if not as_json:
        say(f"{runs} would be {told.done}." if dry_run else f"{count(done, 'run')} {told.done}.")


def _is_removed(place: Store, account: Account, going: Removal) -> bool:
    try:
        remove(place, account, going)
    except (RunLocked, RunNotFound) as error:
        # Taken, or removed, by another process in the meantime.
        warn(f"Not removed: {error.message}")
        return False
    return True


def _lines(going: Removal) -> list[str]:
    """What removing a run frees, what stays, and what is lost with it."""
    if going.sums is None:
        return [f"{going.run}  nothing of it can be read: what it cost is not known, and does not stay on the account"]
    spend = going.spent
    cost = money_between(spend.usd + spend.low, None if spend.unbounded else spend.usd + spend.high)
    values = f" and {count(going.values, 'value')}" if going.values else ""
    name = " ".join(str(going.sums.get(field) or "") for field in ("subject", "level")).strip() or going.pipeline
    lines = [
        f"{going.run}  {one_line(name or '-', 60)}, {(going.detail or going.status).replace('_', ' ')}",
        f"  frees {count(going.records, 'record')}{values}, {size(going.bytes)} of records; "
        f"stays on the account: {with_unpriced(cost, spend.unpriced)}",
    ]
    if going.status != COMPLETED:
        lines.append("  it can no longer be resumed: what it has made so far is lost")
    lines += [f"  batch {batch} is still at the provider: its answers are billed and lost" for batch in going.batches]
    return lines


def _row(going: Removal, *, removed: bool) -> dict[str, Any]:
    spend = going.spent
    return {
        "run": going.run, "status": going.status, "status_detail": going.detail, "records": going.records,
        "bytes": going.bytes, "values": going.values, "cost_usd": None if going.sums is None else spend.usd,
        "possibly_usd": None if spend.unbounded else spend.high, "unpriced_calls": spend.unpriced,
        "batches": list(going.batches), "removed": removed,
    }  # fmt: skip


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
    with claimed(file, name) as kept:
        damaged = kept.damaged
    added = append_emergency(cast(Movable, place), name, file)
    text = f"{count(added, 'record')} appended to run {name}." if added else f"Run {name} has all of these already."
    if damaged:
        say(
            f"{text} {count(damaged, 'more line')} cannot be read: {file if file.exists() else aside(file)} keeps them."
        )
        return
    say(f"{text} {file} {'is not needed any more' if file.exists() else 'was removed'}.")
