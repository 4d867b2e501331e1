"""`store`, `cleanup`, `delete`, `recover`: what a store holds, what of it is damaged, copied, removed or restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import TypeVar, cast

import click

from pipeline.app.removals import removal_json, removal_lines, removals, remove
from pipeline.app.run_list import row_of
from pipeline.app.stores import open_account, open_store
from pipeline.app.words import count, money
from pipeline.cli.displays import confirmer
from pipeline.cli.options import NamedPath, RunName, common_options, json_option, look_at, own_option, run_argument
from pipeline.cli.text import say, say_json, tell, warn
from pipeline.clock import SystemClock
from pipeline.errors import NeedsConfirmation, RunLocked, RunNotFound, StoreError
from pipeline.store.address import store_words
from pipeline.store.base import Account, Movable, Store
from pipeline.store.copies import Copied, arriving, copy, copy_account
from pipeline.store.emergency import aside, claimed, owner_of
from pipeline.store.integrity import check
from pipeline.store.reader import resolve
from pipeline.store.recovery import recover as append_emergency
from pipeline.store.retention import Removal, removable, removal, sweep

P = TypeVar("P", bound=Store)
_HINT = (
    "`./pipeline.sh lessons --resume RUN` or `./pipeline.sh run … --resume RUN` repairs the journal of a run and "
    "resumes it. Restore a lost value with `./pipeline.sh store copy` from another store; without that a resume makes "
    "that work again."
)
_PARTED = "Both are intact. Copy the one you want to keep into a separate store."


@click.group("store")
def store() -> None:
    """Inspect the store, find damage, copy runs to another store.

    A store is files:DIR (a folder, the default), sqlite:FILE, postgresql://USER@HOST/DATABASE, s3://BUCKET/PREFIX
    (objects) or memory: (gone at the end). PostgreSQL and objects need optional packages: `extras` lists them.
    """


@store.command("info")
@common_options
def info(store: str | None, as_json: bool) -> None:
    """Show where runs are kept, how many, and what was spent today."""
    place, account = _there(open_store(store)), open_account(store)
    now = SystemClock().now().astimezone(UTC)
    rows = list(map(row_of, place.heads()))
    statuses = Counter(row.status_detail or row.status for row in rows)
    newest, oldest = (rows[0].run_id, rows[-1].run_id) if rows else (None, None)
    row = {"store": place.url, "runs": statuses.total(), "statuses": dict(sorted(statuses.items())), "newest": newest,
           "oldest": oldest, "deleted_runs": len(account.kept()), "today_usd": account.total(now.date())}  # fmt: skip
    if as_json:
        say_json(row)
        return
    say(f"Store:   {place.url}")
    say(f"Runs:    {statuses.total()}" + "".join(f", {number} {name}" for name, number in sorted(statuses.items())))
    if newest:
        say(f"Newest:  {newest}")
        say(f"Oldest:  {oldest}")
    say(f"Deleted: {count(len(account.kept()), 'run')} whose cost is kept")
    say(f"Today:   {money(account.total(now.date()))} spent or reserved")


@store.command("check")
@click.argument("run", type=RunName(), required=False, default="")
@common_options
def check_store(run: str, store: str | None, as_json: bool) -> None:
    """Explain what is damaged in the store, or in RUN.

    Every record, value and head is read. Nothing is changed: what can be repaired is repaired by the next resume.
    """
    place = _there(_movable(store))
    name = resolve(place, run) if run else ""
    problems = list(check(place, open_account(store), name))
    for problem in problems:
        if as_json:
            say_json({"run": problem.run, "problem": problem.text, "serious": problem.serious})
        else:
            say(f"{problem.run or 'store'}: {'' if problem.serious else '(harmless) '}{problem.text}")
    serious = [problem for problem in problems if problem.serious]
    if serious:
        runs = {problem.run.partition("/")[0] for problem in serious} - {""}
        where = count(len(runs), "run") if runs else "the store's own records"
        # A fault of no run says itself how it is repaired.
        raise StoreError(f"{count(len(serious), 'fault')} in {where}.", code="damaged", hint=_HINT if runs else "")
    if as_json:
        say_json({"store": place.url, "run": name or None, "damaged": False})
    else:
        say("No damage found.")


@store.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("run", type=RunName(), required=False, default="")
@json_option
@click.pass_context
def copy_store(ctx: click.Context, source: str, target: str, run: str, as_json: bool) -> None:
    """Copy the runs of the store FROM, or only RUN, into the store TO.

    FROM and TO are URLs as --store takes them; journals are copied byte for byte. The same command again
    copies what was added since. Both stores can be used meanwhile: a run that is still going is copied as
    far as it has got.
    """
    look_at(ctx, source)
    there, here = _movable(source), _movable(target)
    for url in (source, target):
        if url.startswith("memory:"):
            raise StoreError("A memory: store is lost when this command ends.", code="store_not_kept",
                             hint="Name a permanent store.")  # fmt: skip
    _there(there)
    if there.url == here.url:
        raise StoreError("FROM and TO are the same store.", code="same_store", hint="Name two different stores.")
    clock = SystemClock()
    name = resolve(there, run) if run else ""
    account = open_account(target)
    if not name:
        comes = arriving(there, here, clock.now().astimezone(UTC).date())
        copy_account(open_account(source), account, clock, comes)
    done = []
    for row in copy(there, here, clock, name, account=account):
        if as_json:
            say_json({"run": row.run, "records": row.records, "values": row.values, "running": row.owned,
                      "further": row.further, "problem": row.problem or None})  # fmt: skip
        else:
            say(f"{row.run}  {_outcome(row)}")
        done.append(row)
    failed = [each for each in done if each.problem]
    if not as_json:
        say(f"{count(len(done) - len(failed), 'run')} copied, {sum(each.records for each in done)} new records.")
    if failed:
        parted = all(each.parted for each in failed)
        hint = _PARTED if parted else f"`./pipeline.sh store check{store_words(source)}` says what is damaged."
        raise StoreError(f"{count(len(failed), 'run')} could not be copied completely.", code="not_copied", hint=hint)


@store.command("upgrade")
@common_options
def upgrade(store: str | None, as_json: bool) -> None:
    """Bring a database's tables up to date with this program.

    It is one transaction. Other stores need no upgrade. Running runs must be stopped first.
    """
    place = open_store(store)
    before, after = place.upgrade() if hasattr(place, "upgrade") else ("", "")
    if as_json:
        say_json({"store": place.url, "before": before or None, "after": after or None, "entered": []})
    elif before == after:
        say(f"{place.url} is up to date.")
    else:
        say(f"{place.url}: tables of version {after}, {before or 'none'} before.")


def _outcome(row: Copied) -> str:
    if row.further and not row.problem:
        return "already there, with more records"
    if row.problem and not row.records:
        return f"nothing was copied: {row.problem}"
    said = f"{count(row.records, 'record')}, {count(row.values, 'value')}" if row.records or row.values else "no change"
    said += " (it is still running: copy again later)" if row.owned else ""
    return f"{said}. {row.problem}" if row.problem else said


def _movable(url: str | None) -> Movable:
    place = open_store(url)
    if not hasattr(place, "flaws"):
        raise StoreError(f"The store {place.url} cannot be inspected or copied.", code="store_not_movable")
    return cast(Movable, place)


def _there(place: P) -> P:
    """Return the store, if there is one: a mistyped name must not look like a store without faults."""
    if place.is_there():
        return place
    raise StoreError(f"There is no store at {place.url}.", code="no_store",
                     hint="Check its name; the first run creates it.")  # fmt: skip


# --- removing runs, restoring records ------------------------------------------------------------


@click.command("cleanup")
@own_option("cleanup", "--max-age-days", type=click.IntRange(min=0), default=30, show_default=True, metavar="N",
            help="Remove runs untouched for longer.")  # fmt: skip
@own_option("cleanup", "--max-runs", type=click.IntRange(min=0), default=50, show_default=True, metavar="N",
            help="Remove runs beyond the newest N, whatever their age.")  # fmt: skip
@own_option("cleanup", "--unfinished", is_flag=True,
            help="Also remove failed and stopped runs, which could still be resumed.")  # fmt: skip
@own_option("cleanup", "--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@common_options
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
@common_options
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
@common_options
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
