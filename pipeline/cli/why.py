"""`why`: why a step or an item ran or was reused, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import click

from pipeline.app.run_status import LESSONS_STEPS, find_step
from pipeline.app.stores import open_store
from pipeline.cli.options import OneOf, json_option, run_argument, store_option
from pipeline.cli.text import count, heading, one_line, tell
from pipeline.records.run import bare, item_name
from pipeline.store.reader import load, records, resolve
from pipeline.travel.timeline import INHERITED, NEW, RESUMED, RETRIED, STANDS, Explanation, WorkSpan, explain

#: Names that are shown of what was read, and calls that are named.
_SHOWN, _CALLS = 40, 8


@click.command("why")
@run_argument
@click.argument("what", type=OneOf("step", LESSONS_STEPS), metavar="STEP[/ITEM]")
@json_option
@store_option
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
    tell(_json(found), _lines(found), as_json=as_json)


#: Reads that are noted without a value, as people say them.
_WHOLE = {
    "ancestors": "all visits that led to it",
    "arrivals": "how the visits before it ended",
    "context": "the whole context",
}


def _lines(found: Explanation) -> Iterator[str]:
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


def _json(found: Explanation) -> Iterator[Mapping[str, Any]]:
    goes = []
    for go in found.goes:
        values = {item.name: getattr(go, item.name) for item in fields(go)}
        changed = {name: {"before": before, "after": after} for name, (before, after) in go.changed.items()}
        consumed = [list(token) for token in go.consumed]
        goes.append({**values, "step": bare(go.path), "consumed": consumed, "changed": changed})
    yield {
        "run_id": found.run_id,
        "steps": [bare(path) for path in found.paths],
        "item": found.task,
        "goes": goes,
        "reads": dict(found.reads),
        "read_by": {bare(path): list(names) for path, names in found.dependents.items()},
        "parent": found.parent,
    }
