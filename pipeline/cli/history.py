"""`history`, `why` and `diff`: the way a run went, why its work ran or was reused, and how two runs differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from pipeline.app.run_status import LESSONS_STEPS, find_step, side_at
from pipeline.app.stores import open_store, place_of, run_folder
from pipeline.app.words import arrow, brief, count, duration, money, money_between, one_line, when, with_unpriced
from pipeline.cli.options import OneOf, RunName, common_options, own_option, run_argument
from pipeline.cli.status import thread_line
from pipeline.cli.text import heading, say, say_json, table, tell
from pipeline.engine.amendment import pinned_graph
from pipeline.graph.model import Graph
from pipeline.records.run import bare, full, item_name
from pipeline.records.statuses import COMPLETED
from pipeline.store.reader import load, records, resolve
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
from pipeline.travel.points import Boundary, boundaries
from pipeline.travel.timeline import INHERITED, NEW, RESUMED, RETRIED, STANDS, Explanation, WorkSpan, explain


@click.command("history")
@run_argument
@own_option("history", "--context", is_flag=True, help="Also show what each step set in the run's context: old → new.")
@common_options
def history(run: str, context: bool, as_json: bool, store: str | None) -> None:
    """List a run's checkpoints: how each step ended, where it led, and what had been spent by then."""
    place = open_store(store)
    name = resolve(place, run)
    state = load(place, name)
    graph = pinned_graph(place, state)
    marks = list(boundaries(name, records(place, name), (graph or Graph({}, (), "")) if context else None))
    if as_json:
        for mark in marks:
            say_json(_mark_json(mark, context=context))
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


def _mark_json(mark: Boundary, *, context: bool) -> Mapping[str, Any]:
    if not context:
        return mark.to_json()
    # A key that was not set before has no `before`.
    changes = {
        key: {"after": after} if before is ... else {"before": before, "after": after}
        for key, (before, after) in mark.changes.items()
    }
    return {**mark.to_json(), "context": changes}


# --- why -----------------------------------------------------------------------------------------


#: Names that are shown of what was read, and calls that are named.
_SHOWN, _CALLS = 40, 8


@click.command("why")
@run_argument
@click.argument("what", type=OneOf("step", LESSONS_STEPS), metavar="STEP[/ITEM]")
@common_options
def why(run: str, what: str, as_json: bool, store: str | None) -> None:
    """Explain why a step or one of its items ran or was reused: each visit and attempt, what it read, what read it."""
    place = open_store(store)
    name = resolve(place, run)
    state = load(place, name)
    step, task = find_step(state, what)
    paths = [step.path]
    if "#" not in what and "/" not in step.path:
        # All visits of the node: none of them was named.
        paths = [each.path for each in state.steps.values() if each.node == step.node and "/" not in each.path]
    found = explain(name, list(records(place, name)), paths, task)
    tell(_why_json(found), _why_lines(found), as_json=as_json)


#: Reads that are noted without a value, as people say them.
_WHOLE = {
    "ancestors": "all visits that led to it",
    "arrivals": "how the visits before it ended",
    "context": "the whole context",
}


def _why_lines(found: Explanation) -> Iterator[str]:
    names = ", ".join(item_name(path, found.task) for path in found.paths)
    yield heading(f"{names} of run {found.run_id}")
    for go in found.goes:
        visit = f"{bare(go.path)}, " if len(found.paths) > 1 else ""
        yield f"{go.seq:>6}  {visit}attempt {go.attempt}: {_because(go, found)} {_what(go)}".rstrip()
    yield ""
    if found.reads:
        yield "Read:"
        for name, value in list(found.reads.items())[:_SHOWN]:
            # The hash of what was read; in words where there is none.
            shown = f"{name}: did not exist" if value == "missing" else f"{name} {value}"
            yield f"  {_WHOLE.get(name, shown)}"
        if len(found.reads) > _SHOWN:
            yield f"  … and {len(found.reads) - _SHOWN} more"
    else:
        ended = bool(found.goes) and bool(found.goes[-1].ended)
        yield "Read: nothing that is tracked." if ended else "Read: not known until it ends."
    if found.dependents:
        yield "Read by:"
        for path, by in found.dependents.items():
            yield f"  {bare(path)}: {one_line(', '.join(_WHOLE.get(name, name) for name in by), 150)}"
    else:
        yield "Read by: nothing yet."


def _because(go: WorkSpan, found: Explanation) -> str:
    """Return why it began, as a sentence."""
    if go.kind == NEW:
        return _arrival(go)
    if go.kind == RESUMED:
        how = f"the run stopped ({go.cause.replace('_', ' ')})" if go.cause else "its process died"
        return f"Resumed: it was interrupted when {how}."
    if go.kind == RETRIED:
        return f"Retried after it had failed: {one_line(go.cause or 'no reason recorded', 200)}."
    if go.kind == INHERITED:
        parent = found.parent or {}
        return f"Inherited from run {parent['run']}." if parent else "Taken over from the imported checkpoint."
    if go.kind == STANDS:
        if found.task is not None:
            return "Reused: its version and all its inputs are the same."
        return "Reused: something before it had changed, but all its inputs came out the same."
    return _void(go)


def _arrival(go: WorkSpan) -> str:
    if go.task is not None:
        return "New: nothing was recorded for it."
    sources = [f"{bare(source)} chose {edge}" for edge, source in go.consumed if source]
    visit = int(go.path.rpartition("#")[2])
    first = "New" if visit == 1 else f"New: visit {visit} of the node"
    return f"{first}: {', '.join(sources)}." if sources else f"{first}: the run starts here."


def _void(go: WorkSpan) -> str:
    reasons = {
        "from": "Run again as requested (--from)",
        "refresh": "Run again because its inputs were refreshed (--refresh)",
        "changed": "Run again because its inputs changed",
        "missing": "Run again because one of its results was missing",
        "jump": "Run again because the run jumped back",
    }
    said = reasons.get(go.kind, f"Run again ({go.kind})")
    if go.followed:
        said = f"Run again because it follows {', '.join(map(bare, go.followed))} ({go.kind})"
    details = [go.cause] if go.cause else []
    details += [
        f"{name} {before or 'not read'} → {after or 'not read'}" for name, (before, after) in go.changed.items()
    ]
    return f"{said}: {one_line('; '.join(details), 300)}." if details else f"{said}."


def _what(go: WorkSpan) -> str:
    """Return what happened in it, as sentences."""
    if go.kind in (INHERITED, STANDS):
        return ""
    said = []
    if go.reused:
        calls = ", ".join(map(str, go.reused[:_CALLS])) + (", …" if len(go.reused) > _CALLS else "")
        said.append(f"Recorded replies reused for free: {len(go.reused)} (call {calls}).")
    if go.asked:
        said.append(f"Asked: {count(len(go.asked), 'call')}.")
    if go.made or go.kept:
        said.append(f"Items: {go.made} made, {go.kept} reused.")
    if go.ended == "failed":
        said.append(f"Failed at {go.ended_seq}: {one_line((go.error or {}).get('message', ''), 200)}")
    else:
        said.append(f"Completed at {go.ended_seq}." if go.ended else "It did not end.")
    return " ".join(said)


def _why_json(found: Explanation) -> Iterator[Mapping[str, Any]]:
    goes = []
    for go in found.goes:
        changed = {name: {"before": before, "after": after} for name, (before, after) in go.changed.items()}
        consumed = [list(token) for token in go.consumed]
        goes.append({**asdict(go), "step": bare(go.path), "consumed": consumed, "changed": changed})
    yield {
        "run_id": found.run_id,
        "steps": [bare(path) for path in found.paths],
        "item": found.task,
        "goes": goes,
        "reads": dict(found.reads),
        "read_by": {bare(path): list(names) for path, names in found.dependents.items()},
        "parent": found.parent,
    }


# --- diff ----------------------------------------------------------------------------------------


_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
#: Items of a step that are named.
_NAMED = 12


@click.command("diff")
@click.argument("first", type=RunName(), metavar="RUN[@POINT]")
@click.argument("second", type=RunName(), metavar="RUN[@POINT]")
@common_options
def diff(first: str, second: str, as_json: bool, store: str | None) -> None:
    """Show how two runs differ: parameters, settings, context, steps with what they made, costs.

    POINT is a record number, a checkpoint id, STEP, STEP#VISIT, start or end (as without one). The same run
    at two points: `diff latest@sow latest`.
    """
    (one, name), (two, other) = _side(first, store), _side(second, store)
    found = difference(one, two)
    tell([{"first": name, "second": other, **found.to_json()}], _diff_lines(found, name, other), as_json=as_json)


def _side(text: str, store: str | None) -> tuple[Side, str]:
    run, at, point = text.rpartition("@")
    if not at or run_folder(text, store):
        # A folder may have an @ in its name; a point has none.
        run, at, point = text, "", ""
    run, store = place_of(run, store)
    side = side_at(open_store(store), run, point)
    return side, f"{side.state.run_id}@{point}" if at else side.state.run_id


def _diff_lines(found: RunDifference, name: str, other: str) -> Iterator[str]:
    yield heading(f"{name} → {other}")
    if found.statuses[0] != found.statuses[1]:
        yield f"Status:  {' → '.join(status.replace('_', ' ') for status in found.statuses)}"
    for title, changes in (("Parameters", found.params), ("Settings", found.settings), ("Context", found.context)):
        if changes:
            yield f"{title}:"
            yield from _change_lines(changes, "  ")
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
    yield from _change_lines(step.outputs, "  ")
    for name, changes in step.artifacts.items():
        yield f"  {name}:"
        yield from _change_lines(changes, "    ")
    if not step.items:
        return
    names = [f"{_SIGNS[kind]} {item_name(full(step.step), key)}" for key, kind in step.items.items()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    yield f"  {count(len(names), 'item')}: {one_line(', '.join(names[:_NAMED]))}{more}"
    for key, changes in step.inside.items():
        yield f"  {item_name(full(step.step), key)}:"
        yield from _change_lines(Changes(changes.told[:_NAMED], changes.left_out + len(changes.told[_NAMED:])), "    ")


def _change_lines(changes: Changes, indent: str) -> Iterator[str]:
    """Yield a line for each difference that was kept, and how many more there are."""
    for change in changes.told:
        place = f"{change.place}: " if change.place else ""
        if change.kind == ADDED:
            line = f"+ {place}{brief(change.after) if change.after is not None else '(added)'}"
        elif change.kind == REMOVED:
            line = f"- {place}{brief(change.before) if change.before is not None else '(gone)'}"
        else:
            line = f"~ {place}{arrow(change.before, change.after)}"
        yield indent + line
    if changes.left_out:
        yield f"{indent}… and {changes.left_out:,} more"
