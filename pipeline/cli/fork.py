"""`fork`: a new run that begins with what another had finished by a point, with other values where asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from pipeline.cli.narrate import item_name
from pipeline.cli.options import RunName, json_option, open_store, own, place_of, store_option
from pipeline.cli.reading import head_of
from pipeline.cli.runs import resume_command, way_on
from pipeline.cli.summary import row_of
from pipeline.cli.text import count, money, one_line, say, say_json
from pipeline.records.run import bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.reading import resolve
from pipeline.travel.fork import Forked
from pipeline.travel.given import Dependents

_WIDTH = 200


@click.command("fork")
@click.argument("run", type=RunName(), metavar="RUN")
@click.option("--at", "--from-seq", "at", default="end", envvar=own("fork", "at"), show_envvar=True, metavar="POINT",
              show_default=True,
              help="Up to where: a record's number, a checkpoint id, STEP, STEP#VISIT, start or end.")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", envvar=own("fork", "set"), show_envvar=True,
              help="Another value: params.NAME, settings.NAME, outputs.STEP.KEY, or a context key; "
              "may be given again.")  # fmt: skip
@json_option
@store_option
def fork(run: str, at: str, changes: tuple[str, ...], as_json: bool, store: str | None) -> None:
    """Make a new run of what RUN had finished by a point; nothing is executed or paid.

    RUN stays as it is. The fork holds all it needs, its inherited work costs $0.00 in it, and whatever read a value
    given with --set is made again when it is resumed.
    """
    from pipeline import app

    name, where = place_of(run, store)
    source = open_store(where)
    # A folder that is a run holds no other: its forks go where runs are kept.
    into = source if where == store else open_store(store)
    made = app.fork(source, resolve(source, name), at=at, assignments=changes, into=into)
    row = row_of(head_of(into, made.run_id))
    if as_json:
        say_json(_json(made, resume_command(row, store)))
        return
    for line in _lines(made, way_on(row, store)):
        say(line)


def _lines(made: Forked, command: str) -> Iterator[str]:
    kept = [path for path in made.inherited if path not in {*_void(made), *made.followed}]
    items = [f"{count(number, 'item')} of {bare(path)}" for path, number in made.items.items()]
    names = ", ".join([*map(bare, kept), *items]) or "nothing: no step had finished by then"
    yield f"Forked:    run {made.parent} at {made.seq}"
    yield f"Inherited: {one_line(names, _WIDTH)}{' ($0.00)' if kept or items else ''}"
    for void in made.void:
        yield f"Changed:   {void.given.name}; made again: {one_line(_readers(void), _WIDTH)}"
    for name, near in made.unknown.items():
        meant = f"; did you mean {' or '.join(near)}?" if near else "."
        yield f"Warning:   nobody had read or set {name} by then{meant}"
    for row in made.out:
        usd = "at a price that is not known" if row["worst_usd"] is None else f"at most {money(row['worst_usd'])}"
        yield (
            f"Warning:   The answers of {row['batch'] or 'a batch'} ({count(row['requests'], 'request')}) stay with "
            f"run {made.parent}; the fork asks all of them again, {usd}."
        )
    if made.followed:
        followed = ", ".join(bare(path) for path in made.followed)
        yield f"Follows:   {one_line(followed, _WIDTH)}; made again if what they read comes out otherwise"
    if made.following:
        yield f"Goes on:   {one_line(', '.join(made.following), _WIDTH)}"
    yield f"Run: {made.run_id}"
    yield "Nothing is left to do." if made.status == COMPLETED else f"Go on: {command}"


def _void(made: Forked) -> list[str]:
    return [path for void in made.void for path in void.paths]


def _readers(void: Dependents) -> str:
    steps = [bare(path) for path in void.paths]
    items = [item_name(*task) for task in void.tasks]
    if len(items) > 8:
        items = [*items[:7], f"and {count(len(items) - 7, 'more item')}"]
    return ", ".join([*steps, *items]) or "nothing that is done read it"


def _json(made: Forked, command: str) -> dict[str, Any]:
    return {
        "run": made.run_id,
        "parent": {"run": made.parent, "seq": made.seq},
        "status": made.status,
        "inherited": [bare(path) for path in made.inherited],
        "changed": [
            {
                "name": void.given.name,
                "value": void.given.value,
                "steps": [bare(path) for path in void.paths],
                "items": [item_name(*task) for task in void.tasks],
            }
            for void in made.void
        ],
        "unknown": {name: list(near) for name, near in made.unknown.items()},
        "asked_again": [
            {
                "batch": row["batch"] or None,
                "requests": row["requests"],
                "usd_high": None if row["worst_usd"] is None else float(row["worst_usd"]),
            }
            for row in made.out
        ],
        "followed": [bare(path) for path in made.followed],
        "goes_on": list(made.following),
        "resume_command": command if made.status != COMPLETED else None,
    }
