"""`store`: what is in a store, what of it is damaged, and copying it to another."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import TypeVar, cast

import click

from pipeline.app.run_list import row_of
from pipeline.app.stores import open_account, open_store
from pipeline.app.words import count, money
from pipeline.cli.options import RunName, json_option, look_at, store_option
from pipeline.cli.text import say, say_json
from pipeline.clock import SystemClock
from pipeline.errors import StoreError
from pipeline.store.address import store_words
from pipeline.store.base import Movable, Store
from pipeline.store.copies import Copied, arriving, copy, copy_account
from pipeline.store.integrity import check
from pipeline.store.reader import resolve

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
@store_option
@json_option
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
@store_option
@json_option
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
@store_option
@json_option
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
