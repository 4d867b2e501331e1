"""A run at its points: where one can stand, what was made there, and how another point or run differs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.app.run_status import side_at, steps_of
from pipeline.app.value_format import brief
from pipeline.engine.amendment import pinned_graph
from pipeline.errors import CheckpointCorrupt, PipelineError
from pipeline.records.codec import Record
from pipeline.records.documents import cost_of
from pipeline.records.redaction import without_secrets
from pipeline.records.run import RunState, bare, completed_tasks
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.travel.differences import Side, difference
from pipeline.travel.points import Points, resolve_point, state_in
from pipeline.travel.values import Reader

#: Characters of a value on a line, and of what a step made.
_LINE, _TEXT = 200, 20_000


def stops(store: Store, known: Points, found: Sequence[Record]) -> list[dict[str, Any]]:
    """Return where the slider can stand: the start, each own checkpoint, and the end where records follow the last."""
    first: dict[str, Any] = {"seq": known.start, "step": "start", "ending": "", "route": "", "cost_usd": 0,
                             "possibly_usd": 0}  # fmt: skip
    state = state_in(known.run_id, found, known.start)
    graph = pinned_graph(store, state)
    own = [mark for mark in known.boundaries if not mark.inherited]
    places = [first | {"at": state.started_at}]
    places += [mark.to_json() | {"ending": mark.ending, "route": mark.route(graph)} for mark in own]
    if known.end > places[-1]["seq"]:
        last = places[-1] | {"seq": known.end, "step": "end", "ending": "", "route": "", "at": found[-1].at}
        places.append(last | {"cost_usd": None, "possibly_usd": 0})
    return places


def seq_at(known: Points, places: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> int:
    """Return the record that is meant: `point`, a number of these places, else `at` as `show --at` takes it.

    Raises:
        RunNotFound: There is no such point.
    """
    point = query.get("point", "")
    if point.isdecimal():
        return int(places[min(int(point), len(places) - 1)]["seq"])
    return resolve_point(known, query.get("at") or "end")


def state_json(store: Store, state: RunState) -> dict[str, Any]:
    """Return how a run stood: its steps, its context on a line each, and what the step that just ended made."""
    ended, cost = next((step for step in state.steps.values() if step.ended_seq == state.seq), None), cost_of(state)
    return {
        "cost_usd": cost.known,
        "possibly_usd": cost.possibly,
        "calls": state.total.calls,
        "when": state.updated_at,
        "steps": [_step(view.to_json()) for view in steps_of(store, state)],
        "context": [{"key": key, "value": brief(value, _LINE)} for key, value in state.context.items()],
        "made": _made(state, ended.path, Reader(store, state.run_id)) if ended is not None else None,
    }


def _step(view: Mapping[str, Any]) -> dict[str, Any]:
    return {name: view.get(name) for name in ("step", "status", "attempt", "items_completed", "cost_usd", "inherited")}


def _made(state: RunState, path: str, reader: Reader) -> dict[str, Any]:
    """Return what the step that ended here made: outputs, artifacts and how many items; long ones cut."""
    step = state.steps[path]
    found = [("outputs", step.outputs), *((name, {"$blob": blob, "bytes": 0}) for name, blob in step.artifacts.items())]
    values = []
    for name, value in found:
        try:
            text = json.dumps(reader.whole(value), indent=2, ensure_ascii=False)
        except (CheckpointCorrupt, ValueError) as damage:
            text = f"It cannot be read: {damage}"
        values.append({"name": name, "text": without_secrets(text[:_TEXT]), "characters": len(text)})
    error = without_secrets(str((step.error or {}).get("message", ""))) if step.status != COMPLETED else ""
    return {"step": bare(path), "status": step.status, "values": values, "error": error or None,
            "items_completed": completed_tasks(state, path)}  # fmt: skip


def differences(store: Store, state: RunState, query: Mapping[str, str]) -> dict[str, Any]:
    """Return how another point, or run, differs from this one: `with` is RUN@POINT, `other` one that was typed."""
    wanted = query.get("other", "").strip() or query.get("with", "")
    found: dict[str, Any] = {
        "with": wanted or None,
        "other": query.get("other", "").strip(),
        "differs": None,
        "differs_error": None,
    }
    if not wanted:
        return found
    run, at, point = wanted.rpartition("@")
    run, point = (run, point) if at else (point, "")
    try:
        side = side_at(store, run or state.run_id, point)
        return found | {"differs": difference(Side(store, state), side).to_json()}
    except PipelineError as error:
        return found | {"differs_error": f"{error.message} {error.hint}".strip()}
