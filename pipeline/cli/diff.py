"""`diff`: how two runs, or two points of runs, differ."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pipeline.app.run_status import side_at
from pipeline.app.stores import open_store, place_of, run_folder
from pipeline.app.value_format import change_lines
from pipeline.cli.options import RunName, json_option, store_option
from pipeline.cli.text import count, heading, money, one_line, tell, with_unpriced
from pipeline.records.run import full, item_name
from pipeline.travel.differences import (
    ADDED,
    CHANGED,
    REMOVED,
    Changes,
    RunDifference,
    Side,
    StepDifference,
    difference,
)

_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
#: Items of a step that are named.
_NAMED = 12


@click.command("diff")
@click.argument("first", type=RunName(), metavar="RUN[@POINT]")
@click.argument("second", type=RunName(), metavar="RUN[@POINT]")
@json_option
@store_option
def diff(first: str, second: str, as_json: bool, store: str | None) -> None:
    """Show how two runs differ: parameters, settings, context, steps with what they made, costs.

    POINT is a record number, a checkpoint id, STEP, STEP#VISIT, start or end (as without one). The same run
    at two points: `diff latest@sow latest`.
    """
    (one, name), (two, other) = _side(first, store), _side(second, store)
    found = difference(one, two)
    tell([{"first": name, "second": other, **found.to_json()}], _lines(found, name, other), as_json=as_json)


def _side(text: str, store: str | None) -> tuple[Side, str]:
    run, at, point = text.rpartition("@")
    if not at or run_folder(text, store):
        # A folder may have an @ in its name; a point has none.
        run, at, point = text, "", ""
    run, store = place_of(run, store)
    side = side_at(open_store(store), run, point)
    return side, f"{side.state.run_id}@{point}" if at else side.state.run_id


def _lines(found: RunDifference, name: str, other: str) -> Iterator[str]:
    yield heading(f"{name} → {other}")
    if found.statuses[0] != found.statuses[1]:
        yield f"Status:  {' → '.join(status.replace('_', ' ') for status in found.statuses)}"
    for title, changes in (("Parameters", found.params), ("Settings", found.settings), ("Context", found.context)):
        if changes:
            yield f"{title}:"
            yield from change_lines(changes, "  ")
    for step in found.steps:
        yield from _step_lines(step)
    if found.same:
        yield "All results are the same."
    yield f"Cost:    {' → '.join(map(with_unpriced, map(money, found.usd), found.unpriced))}"


def _step_lines(step: StepDifference) -> Iterator[str]:
    words = []
    if step.statuses[0] != step.statuses[1]:
        words.append(" → ".join((status or "not started").replace("_", " ") for status in step.statuses))
    if step.outcomes[0] != step.outcomes[1]:
        words.append(f"outcome {' → '.join(outcome or 'none' for outcome in step.outcomes)}")
    if step.usd[0] != step.usd[1]:
        words.append(f"cost {money(step.usd[0])} → {money(step.usd[1])}")
    yield f"{step.step}: {', '.join(words)}" if words else f"{step.step}:"
    yield from change_lines(step.outputs, "  ")
    for name, changes in step.artifacts.items():
        yield f"  {name}:"
        yield from change_lines(changes, "    ")
    if not step.items:
        return
    names = [f"{_SIGNS[kind]} {item_name(full(step.step), key)}" for key, kind in step.items.items()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    yield f"  {count(len(names), 'item')}: {one_line(', '.join(names[:_NAMED]))}{more}"
    for key, changes in step.inside.items():
        yield f"  {item_name(full(step.step), key)}:"
        yield from change_lines(Changes(changes.told[:_NAMED], changes.left_out + len(changes.told[_NAMED:])), "    ")
