"""`history`: the checkpoints of a run; where each step led, what it set, and what had been spent by then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from pipeline.app.stores import open_store
from pipeline.app.value_format import arrow
from pipeline.cli.options import json_option, own_option, run_argument, store_option
from pipeline.cli.status import thread_line
from pipeline.cli.text import duration, money, money_between, one_line, say, say_json, table, when, with_unpriced
from pipeline.engine.amendment import pinned_graph
from pipeline.graph.model import Graph
from pipeline.records.run import bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.reader import load, records, resolve
from pipeline.travel.points import Boundary, boundaries


@click.command("history")
@run_argument
@own_option("history", "--context", is_flag=True, help="Also show what each step set in the run's context: old → new.")
@json_option
@store_option
def history(run: str, context: bool, as_json: bool, store: str | None) -> None:
    """List a run's checkpoints: how each step ended, where it led, and what had been spent by then."""
    place = open_store(store)
    name = resolve(place, run)
    state = load(place, name)
    graph = pinned_graph(place, state)
    marks = list(boundaries(name, records(place, name), (graph or Graph({}, (), "")) if context else None))
    if as_json:
        for mark in marks:
            say_json(_json(mark, context=context))
        return
    if state.parent:
        say(f"Forked from run {state.parent.get('run')} at {state.parent.get('seq')}.")
    if not marks:
        say(thread_line(state) or f"Run {name} has no checkpoint yet.")
    elif context:
        for mark in marks:
            _say_context(mark, graph)
    else:
        rows = [[str(mark.seq), mark.id, bare(mark.path), when(mark.at), mark.ending, mark.route(graph), _cost(mark)]
                for mark in marks]  # fmt: skip
        say(table(["Seq", "Checkpoint", "Step", "When (UTC)", "Ended", "Went on to", "Cost so far"], rows,
                  right=["Seq", "Cost so far"]))  # fmt: skip


def _cost(mark: Boundary) -> str:
    """Return what had been spent by then; a + where more may have been."""
    return with_unpriced(money(mark.usd) + ("+" if mark.possibly is None or mark.possibly else ""), mark.unpriced)


def _say_context(mark: Boundary, graph: Graph | None) -> None:
    failed = mark.error if mark.status != COMPLETED else None
    error = f": {one_line(failed.get('message', ''), 100)}" if failed else ""
    upper = None if mark.possibly is None else mark.usd + mark.possibly
    spent = with_unpriced(money_between(mark.usd, upper), mark.unpriced)
    say(f"{mark.seq:>6}  {bare(mark.path)}: {mark.ending}{error} in {duration(mark.seconds)}, "
        f"next: {mark.route(graph)}; {spent} so far")  # fmt: skip
    # Keys that changed in the same way share a line: most of what a graph's node leaves has several names.
    together: list[tuple[list[str], tuple[Any, Any]]] = []
    for key, change in mark.changes.items():
        keys = next((keys for keys, known in together if known == change), None)
        if keys is None:
            together.append(([key], change))
        else:
            keys.append(key)
    for keys, change in together:
        say(f"        {', '.join(keys)}: {arrow(*change)}")


def _json(mark: Boundary, *, context: bool) -> Mapping[str, Any]:
    if not context:
        return mark.to_json()
    # A key that was not set before has no `before`.
    changes = {
        key: {"after": after} if before is ... else {"before": before, "after": after}
        for key, (before, after) in mark.changes.items()
    }
    return {**mark.to_json(), "context": changes}
