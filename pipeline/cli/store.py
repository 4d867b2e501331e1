"""`store`: what is in a store, what of it is damaged, and how it gets into another."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC
from typing import TypeVar, cast

import click

from pipeline import environment
from pipeline.cli.options import RunName, json_option, open_account, open_store, store_option
from pipeline.cli.text import count, money, say, say_json
from pipeline.cli.where import look_at
from pipeline.clock import SystemClock
from pipeline.errors import StoreError
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Movable, Store
from pipeline.store.copies import Copied, arriving, copy, copy_account
from pipeline.store.integrity import Problem, check
from pipeline.store.place import store_words
from pipeline.store.reading import resolve
from pipeline.store.sql.store import SqlStore

P = TypeVar("P", bound=Store)
_HINT = (
    "`lessons --resume RUN` or `run … --resume RUN` mends the journal of a run and goes on with it. A value that is "
    "lost comes back by `store copy` from another store; without that a resume makes that work again."
)
_PARTED = "Both are whole. Copy the one that is to be kept beside the other into a store of its own."


@click.group("store")
def store() -> None:
    """Look through the store, find damage, copy runs to another.

    A store is files:DIR (a folder, the default), sqlite:FILE, postgresql://USER@HOST/DATABASE, s3://BUCKET/PREFIX
    (objects) or memory: (gone at the end). Databases and objects need optional packages: `extras` lists them.
    """


@store.command("info")
@store_option
@json_option
def info(store: str | None, as_json: bool) -> None:
    """Say where runs are kept, how many there are, and what was spent today."""
    place, account = _there(open_store(store)), open_account(store)
    now = SystemClock().now().astimezone(UTC)
    statuses: Counter[str] = Counter()
    newest = oldest = None
    for head in place.heads():
        newest, oldest = newest or head.run_id, head.run_id
        statuses["corrupt" if head.corrupt else _shown(head.document)] += 1
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


def _shown(document: object) -> str:
    row = cast(dict[str, str | None], document)
    status = row.get("status") or "unknown"
    return row.get("status_detail") or status if status == IN_PROGRESS else status


@store.command("check")
@click.argument("run", type=RunName(), required=False, default="")
@store_option
@json_option
def check_store(run: str, store: str | None, as_json: bool) -> None:
    """Explain what is damaged in the store, or in RUN.

    Every record, value and head is read. Nothing is changed: what can be mended is mended by the next resume.
    """
    place = _there(_movable(store))
    name = resolve(place, run) if run else ""
    problems = list(check(place, open_account(store), name))
    for problem in problems:
        _say_problem(problem, as_json)
    serious = [problem for problem in problems if problem.serious]
    if serious:
        runs = {problem.run.partition("/")[0] for problem in serious} - {""}
        where = count(len(runs), "run") if runs else "what the store tells of all its runs"
        # What is no run's says itself how it is mended.
        raise StoreError(f"{count(len(serious), 'fault')} in {where}.", hint=_HINT if runs else "")
    if as_json:
        say_json({"store": place.url, "run": name or None, "damaged": False})
    else:
        say("Nothing is damaged.")


def _say_problem(problem: Problem, as_json: bool) -> None:
    if as_json:
        say_json({"run": problem.run, "problem": problem.text, "serious": problem.serious})
    else:
        say(f"{problem.run or 'store'}: {'' if problem.serious else '(no harm now) '}{problem.text}")


@store.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("run", type=RunName(), required=False, default="")
@json_option
@click.pass_context
def copy_store(ctx: click.Context, source: str, target: str, run: str, as_json: bool) -> None:
    """Copy the runs of the store FROM, or only RUN, into the store TO.

    FROM and TO are URLs as --store takes them; journals are the same there byte for byte. The same command again
    copies what has come since. Others may read and run in both meanwhile: a run that is still going is copied as
    far as it has got.
    """
    look_at(ctx, source)
    there, here = _movable(source), _movable(target)
    for url in (source, target):
        if url.startswith("memory:"):
            raise StoreError("What memory: holds ends with this command.", hint="Name a store that stays.")
    _there(there)
    if there.url == here.url:
        raise StoreError("FROM and TO are the same store.", hint="Name two.")
    clock = SystemClock()
    name = resolve(there, run) if run else ""
    account = open_account(target)
    if not name:
        comes = arriving(there, here, clock.now().astimezone(UTC).date())
        copy_account(open_account(source), account, clock, comes)
    done = list(_told(copy(there, here, clock, name, account=account), as_json))
    failed = [each for each in done if each.problem]
    if not as_json:
        say(f"{count(len(done) - len(failed), 'run')} there whole, {sum(each.records for each in done)} new records.")
    if failed:
        parted = all(each.parted for each in failed)
        hint = _PARTED if parted else f"`store check{store_words(source)}` says what is damaged."
        raise StoreError(f"{count(len(failed), 'run')} could not be copied whole.", hint=hint)


@store.command("upgrade")
@store_option
@json_option
def upgrade(store: str | None, as_json: bool) -> None:
    """Bring the tables of a database up to date with this program, in one transaction.

    What they tell of runs and calls is put right too, where it is not what the
    records say. Other stores need none. Runs that are going must be stopped first.
    """
    place = open_store(store)
    before, after, again = _upgraded(place) if isinstance(place, SqlStore) else ("", "", [])
    if as_json:
        say_json({"store": place.url, "before": before or None, "after": after or None, "entered": again})
        return
    for run in again:
        say(f"{run}  entered again in the table journals")
    if again and before == after:
        return
    if before == after:
        say(f"{place.url} is up to date.")
    else:
        say(f"{place.url}: tables of version {after}, {before or 'none'} before.")


def _upgraded(place: SqlStore) -> tuple[str, str, list[str]]:
    """The versions before and after, and the runs whose row was gone and is there again."""
    gone: dict[str, str] = {}
    # Before older tables are brought up to date nobody can look into them.
    with contextlib.suppress(StoreError):
        gone = place.orphans()
    before, after = place.upgrade()
    return before, after, sorted(gone.keys() - place.orphans().keys())


def _told(rows: Iterable[Copied], as_json: bool) -> Iterable[Copied]:
    for row in rows:
        if as_json:
            say_json({"run": row.run, "records": row.records, "values": row.values, "running": row.owned,
                      "further": row.further, "problem": row.problem or None})  # fmt: skip
        else:
            say(f"{row.run}  {_outcome(row)}")
        yield row


def _outcome(row: Copied) -> str:
    if row.further and not row.problem:
        return "there already, and further on"
    if row.problem and not row.records:
        return f"nothing was brought: {row.problem}"
    said = f"{count(row.records, 'record')}, {count(row.values, 'value')}" if row.records or row.values else "no change"
    said += " (it is still running: copy again later)" if row.owned else ""
    return f"{said}. {row.problem}" if row.problem else said


def _movable(url: str | None) -> Movable:
    place = open_store(url or environment.default_store())
    if not hasattr(place, "flaws"):
        raise StoreError(f"The store {place.url} cannot be looked through or copied.")
    return cast(Movable, place)


def _there(place: P) -> P:
    """The store, if there is one: a name that is mistyped must not look like a store without faults."""
    if place.is_there():
        return place
    raise StoreError(f"There is no store at {place.url}.", hint="Check its name; the first run that is kept makes it.")
