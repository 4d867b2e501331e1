"""`history`: the checkpoints of a run; where each step led, what it set, and what had been spent by then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from pipeline.cli.briefly import arrow, context_json
from pipeline.cli.options import json_option, open_store, own, run_argument, store_option
from pipeline.cli.summary import thread_line
from pipeline.cli.text import duration, money, money_between, one_line, say, say_json, table, when, with_unpriced
from pipeline.graph.model import Graph
from pipeline.records.run import bare
from pipeline.records.statuses import COMPLETED
from pipeline.store.reading import load, records, resolve
from pipeline.travel.boundaries import Boundary, boundaries, pinned_graph


@click.command("history")
@run_argument
@click.option("--context", is_flag=True, envvar=own("history", "context"), show_envvar=True,
              help="Also what each step set in the run's context: old → new.")  # fmt: skip
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
            say_json({**_json(mark), **({"context": context_json(mark.changes)} if context else {})})
        return
    if state.parent:
        say(f"Forked from run {state.parent.get('run')} at {state.parent.get('seq')}.")
    if not marks:
        say(thread_line(state) or f"Run {name} has no checkpoint yet.")
        return
    if context:
        for mark in marks:
            _say_context(mark, graph)
        return
    rows = [[str(mark.seq), mark.id, bare(mark.path), when(mark.at), how(mark), route(mark, graph), cost(mark)]
            for mark in marks]  # fmt: skip
    say(table(["Seq", "Checkpoint", "Step", "When (UTC)", "Ended", "Went on to", "Cost so far"], rows,
              right=["Seq", "Cost so far"]))  # fmt: skip


def how(mark: Boundary) -> str:
    """How a step ended: its outcome where that says more, the attempt from the second on, inherited or not."""
    words = "completed" if mark.status == COMPLETED else "failed"
    if mark.outcome not in ("", "success", words):
        words = f"{words}, {mark.outcome}"
    if mark.attempt > 1:
        words += f" (attempt {mark.attempt})"
    if mark.inherited:
        words += ", inherited"
    return words


def route(mark: Boundary, graph: Graph | None) -> str:
    """Where it led, and why if there is more to say than the outcome."""
    if mark.retry:
        return "tried again by itself"
    names = [_target(edge, graph) for edge in mark.edges]
    reason = f" ({mark.reason.replace('_', ' ')})" if mark.reason else ""
    return (", ".join(names) or "-") + reason


def cost(mark: Boundary) -> str:
    """What had been spent by then; a + where more may have been."""
    return with_unpriced(money(mark.usd) + ("+" if mark.possibly is None or mark.possibly else ""), mark.unpriced)


def _target(edge: str, graph: Graph | None) -> str:
    found = graph.edge(edge) if graph is not None else None
    return found.target if found else edge.partition("->")[2].partition("#")[0] or edge


def _say_context(mark: Boundary, graph: Graph | None) -> None:
    error = (
        f": {one_line((mark.error or {}).get('message', ''), 100)}" if mark.error and mark.status != COMPLETED else ""
    )
    upper = None if mark.possibly is None else mark.usd + mark.possibly
    spent = with_unpriced(money_between(mark.usd, upper), mark.unpriced)
    say(f"{mark.seq:>6}  {bare(mark.path)}: {how(mark)}{error} in {duration(mark.seconds)}, "
        f"went on to {route(mark, graph)}; {spent} so far")  # fmt: skip
    for keys, change in _together(mark.changes):
        say(f"        {', '.join(keys)}: {change}")


def _together(changes: Mapping[str, tuple[Any, Any]]) -> list[tuple[list[str], str]]:
    """Keys that changed in the same way on one line: most of what a graph's node leaves stands under several names."""
    found: list[tuple[list[str], tuple[Any, Any]]] = []
    for key, change in changes.items():
        same = next((keys for keys, known in found if known == change), None)
        if same is None:
            found.append(([key], change))
        else:
            same.append(key)
    return [(keys, arrow(*change)) for keys, change in found]


def _json(mark: Boundary) -> Mapping[str, Any]:
    return {
        "seq": mark.seq,
        "id": mark.id,
        "step": bare(mark.path),
        "path": mark.path,
        "at": mark.at,
        "cost_usd": mark.usd,
        "possibly_usd": mark.possibly,
        "status": mark.status,
        "outcome": mark.outcome,
        "edges": list(mark.edges),
        "reason": mark.reason,
        "attempt": mark.attempt,
        "retry": mark.retry,
        "error": mark.error,
        "duration_seconds": mark.seconds,
        "inherited": mark.inherited,
    }
