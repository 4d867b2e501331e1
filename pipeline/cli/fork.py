"""`fork` and `replay`: a run that starts from a checkpoint of another; a run's graph on its recorded replies alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pipeline.app.run_list import resume_command, row_of, way_on
from pipeline.app.stores import head_of, open_store, place_of
from pipeline.app.words import arrow, count, money, one_line
from pipeline.cli.options import RunName, common_options, own_option, run_argument
from pipeline.cli.text import tell
from pipeline.errors import StepFailed
from pipeline.records.run import bare, item_name
from pipeline.records.statuses import COMPLETED
from pipeline.store.reader import resolve

if TYPE_CHECKING:
    from pipeline.travel.fork import Forked
    from pipeline.travel.overrides import Dependents
    from pipeline.travel.replay import Replayed

#: Characters of a list of names, and of each side of a difference, that are shown.
_WIDTH = 200
_POINT = "Up to this point: a record number, a checkpoint id, STEP, STEP#VISIT, start or end."


@click.command("fork")
@click.argument("run", type=RunName(), metavar="RUN")
@own_option("fork", "--at", "--from-seq", "at", default="end", metavar="POINT", show_default=True, help=_POINT)
@own_option("fork", "--set", "changes", multiple=True, metavar="KEY=VALUE",
            help="New value: params.NAME, settings.NAME, outputs.STEP.KEY, or a context key. Repeatable.")  # fmt: skip
@common_options
def fork(run: str, at: str, changes: tuple[str, ...], as_json: bool, store: str | None) -> None:
    """Start a new run from a checkpoint of RUN; nothing is executed or paid.

    RUN stays as it is. The fork holds all it needs, its inherited work costs $0.00 in it, and whatever read a value
    given with --set is run again when the fork is resumed.
    """
    from pipeline.app import travel

    name, where = place_of(run, store)
    source = open_store(where)
    # A folder that is a run holds no other: its forks go where runs are kept.
    into = source if where == store else open_store(store)
    made = travel.fork(source, resolve(source, name), at=at, assignments=changes, into=into)
    row = row_of(head_of(into, made.run_id))
    command = resume_command(row, store) if made.status != COMPLETED else None
    tell([{**made.to_json(), "resume_command": command}], _lines(made, way_on(row, store)), as_json=as_json)


def _lines(made: Forked, command: str) -> Iterator[str]:
    again = {path for void in made.void for path in void.paths} | {*made.followed}
    kept = [path for path in made.inherited if path not in again]
    items = [f"{count(number, 'item')} of {bare(path)}" for path, number in made.items.items()]
    names = ", ".join([*map(bare, kept), *items]) or "nothing: no step had finished by that point"
    yield f"Forked:    run {made.parent} at {made.seq}"
    yield f"Inherited: {one_line(names, _WIDTH)}{' ($0.00)' if kept or items else ''}"
    for void in made.void:
        yield f"Changed:   {void.given.name}; run again: {one_line(_readers(void), _WIDTH)}"
    for name, near in made.unknown.items():
        meant = f"; did you mean {' or '.join(near)}?" if near else "."
        yield f"Warning:   nothing had read or set {name} by that point{meant}"
    for row in made.out:
        usd = "at an unknown price" if row["worst_usd"] is None else f"at most {money(row['worst_usd'])}"
        yield (
            f"Warning:   The answers of {row['batch'] or 'a batch'} ({count(row['requests'], 'request')}) belong to "
            f"run {made.parent}; the fork asks for all of them again, {usd}."
        )
    if made.followed:
        followed = ", ".join(bare(path) for path in made.followed)
        yield f"Follows:   {one_line(followed, _WIDTH)}; run again if their inputs change"
    if made.following:
        yield f"Next:      {one_line(', '.join(made.following), _WIDTH)}"
    yield f"Run: {made.run_id}"
    yield "Nothing is left to do." if made.status == COMPLETED else f"Resume: {command}"


def _readers(void: Dependents) -> str:
    items = [item_name(*task) for task in void.tasks]
    if len(items) > 8:
        items = [*items[:7], f"and {count(len(items) - 7, 'more item')}"]
    return ", ".join([*map(bare, void.paths), *items]) or "nothing finished has read it"


@click.command("replay")
@run_argument
@own_option("replay", "--to", default="end", metavar="POINT", show_default=True, help=_POINT)
@own_option("replay", "--file", "target", type=click.Path(), metavar="FILE.py:NAME",
            help="The code of your own pipeline.")  # fmt: skip
@common_options
def replay(run: str, to: str, target: str | None, as_json: bool, store: str | None) -> int:
    """Run a run's stored graph again on its recorded replies alone: no call, nothing written outside.

    Exit code 0: context, outputs, edges and order are the same. 6: something differs; the first difference
    is named. Steps that act outside and people's answers are taken as recorded.
    """
    from pipeline.app import travel

    place = open_store(store)
    found = travel.replay(place, resolve(place, run), to=to, target=target)
    differences = [each._asdict() for each in found.differences]
    told = {**asdict(found), "differences": differences, "equal": found.equal}
    tell([told], _replayed_lines(found), as_json=as_json)
    return 0 if found.equal else StepFailed.exit_code


def _replayed_lines(found: Replayed) -> Iterator[str]:
    taken = f"; as recorded: {', '.join(path.removesuffix('#1') for path in found.taken)}" if found.taken else ""
    yield (f"Replayed run {found.run_id} to {found.seq}: {count(found.again, 'step')} run on "
           f"{count(found.replies, 'recorded answer')}{taken}.")  # fmt: skip
    if found.equal:
        yield "Equal: the same context, outputs, edges and order."
        return
    first, more = found.differences[0], len(found.differences) - 1
    recorded, now = ("nothing" if value is None else value for value in (first.recorded, first.now))
    yield f"Different: {first.path or 'the run'}, {first.key}: {arrow(recorded, now, _WIDTH)}"
    if more:
        yield f"{count(more, 'more difference')}; --json has them all."
