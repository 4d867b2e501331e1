"""One run as commands and pages present it, now or at any of its points: steps, context, costs, differences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.app.run_list import CORRUPT, RunRow, resume_command, row_of
from pipeline.app.stores import head_of, state_of, words_of
from pipeline.app.words import brief
from pipeline.engine.amendment import pinned_graph
from pipeline.errors import CheckpointCorrupt, PipelineError, RunNotFound
from pipeline.records.codec import Record
from pipeline.records.documents import cost_of
from pipeline.records.redaction import without_secrets
from pipeline.records.run import RunState, Spend, StepRun, bare, completed_tasks, in_order, item_name, spend_by
from pipeline.records.statuses import COMPLETED, IN_PROGRESS, PENDING
from pipeline.records.values import resolve_value
from pipeline.store.base import Store
from pipeline.store.reader import resolve
from pipeline.store.view import pinned_nodes
from pipeline.travel.differences import Side, difference
from pipeline.travel.points import END, Points, points, resolve_point, state_at, state_in
from pipeline.travel.values import Reader

#: Shown of a step that acts outside the run and was interrupted; and of one without an end whose run has no owner.
UNKNOWN, BEGUN = "unknown", "begun"
#: Steps of an imported course, whose document does not name those to come.
LESSONS_STEPS = ("seed", "sow", "lessons", "publish")
_UNSAFE = frozenset({"write", "external"})
#: Items that an error names.
_NAMED = 12


@dataclass(frozen=True, slots=True)
class StepView:
    """One visit of a node, or a node that has none yet."""

    step: str
    path: str = ""
    status: str = PENDING
    attempt: int = 1
    started_at: str | None = None
    completed_at: str | None = None
    duration_seconds: float | None = None
    spend: Spend | None = None
    outputs: Any = None
    error: Any = None
    #: It came with the fork.
    inherited: bool = False
    items_completed: int = 0
    #: What the document of an imported run says that it cost.
    reported_usd: Any = None
    #: The status, or UNKNOWN or BEGUN.
    shown: str = PENDING

    def to_json(self) -> dict[str, Any]:
        """Return one of the steps of `status --json`."""
        if self.spend is None:
            return {"step": self.step, "status": self.status}
        data = {name: getattr(self, name) for name in StepView.__slots__ if name not in ("spend", "shown")}
        spend = self.spend
        data |= {"cost_usd": spend.usd, "possibly_usd": None if spend.unbounded else spend.high,
                 "unpriced_calls": spend.unpriced, "tokens": sum(spend.tokens.values())}  # fmt: skip
        return {name: value for name, value in data.items() if name != "reported_usd" or value is not None}


@dataclass(frozen=True, slots=True)
class Interruption:
    """A visit, or a task of one, that acts outside the run, was started and has no recorded end."""

    path: str
    #: The task; "": the step itself.
    task: str = ""

    @property
    def name(self) -> str:
        """Return STEP or STEP/TASK."""
        return f"{bare(self.path)}/{self.task}" if self.task else bare(self.path)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run, now."""

    row: RunRow
    state: RunState
    steps: Sequence[StepView]
    interruptions: Sequence[Interruption]
    #: The command that resumes it; None: it cannot be resumed now.
    resume_command: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the object of `status --json`."""
        state = self.state
        return {
            **_facts(state, self.steps),
            "status": self.row.status,
            "status_detail": self.row.status_detail,
            "started_at": state.started_at,
            "updated_at": state.updated_at,
            "resumes": state.resumes,
            "unpriced_calls": state.total.unpriced,
            "reported_usd": state.reported.get("cost_usd"),
            "error": state.error,
            "unknown": [each.name for each in self.interruptions],
            "gaps": [dict(gap) for gap in state.gaps],
            "resume_command": self.resume_command,
        }


@dataclass(frozen=True, slots=True)
class Moment:
    """A run as it was at one point."""

    state: RunState
    steps: Sequence[StepView]
    context: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the object of `show RUN --json`."""
        state = self.state
        return {
            **_facts(state, self.steps),
            "seq": state.seq,
            "at": state.updated_at,
            "status": state.status,
            "status_detail": state.detail,
            "context": self.context,
        }


def _facts(state: RunState, steps: Sequence[StepView]) -> dict[str, Any]:
    """Return what programs are told of a run, whenever they look."""
    total = state.total
    return {
        "run_id": state.run_id,
        "pipeline": state.pipeline,
        "params": dict(state.params),
        "settings": dict(state.identity),
        "parent": state.parent,
        "steps": [step.to_json() for step in steps],
        "cost_usd": total.usd + state.lost.low,
        "possibly_usd": None if total.unbounded else total.high,
        "tokens": dict(total.tokens),
        "calls": total.calls,
    }


def status_of(place: Store, text: str, store: str | None) -> RunStatus:
    """Return how a run is now.

    Args:
        text: As `resolve` takes it.
        store: The store as it was named, for the command that resumes the run.

    Raises:
        RunNotFound: No such run.
        CheckpointCorrupt: It cannot be read.
    """
    name = resolve(place, text)
    head = head_of(place, name)
    row = row_of(head)
    if row.status == CORRUPT:
        hint = f"`./pipeline.sh log {name}{words_of(store)}` prints what can still be read."
        raise CheckpointCorrupt(f"Run {name} cannot be read: {row.error}", hint=hint)
    state = state_of(place, head, tasks=False)
    # While a process works on it, what has no end is being done.
    found = [] if row.owned or row.status == COMPLETED else interruptions(place, state)
    steps = steps_of(place, state, {each.path for each in found}, owned=row.owned)
    return RunStatus(row, state, steps, found, resume_command(row, store) if row.resumable else None)


def interruptions(store: Store, state: RunState) -> list[Interruption]:
    """Return the work that acts outside, has no end, and is not repeated by itself."""
    graph = pinned_graph(store, state)
    nodes = graph.nodes if graph is not None else {}
    found = []
    for path in state.open_paths:
        node = nodes.get(state.steps[path].node)
        if node is not None and node.effect in _UNSAFE and not node.repeatable:
            found.append(Interruption(path))
    whole = {each.path for each in found}
    tasks = sorted((path, task) for path, task in state.unknown_tasks if path not in whole)
    return [*found, *(Interruption(path, task) for path, task in tasks)]


def steps_of(
    store: Store, state: RunState, interrupted: frozenset[str] | set[str] = frozenset(), *, owned: bool = True
) -> list[StepView]:
    """Return every visit in order of start, then the nodes that have none yet."""
    by_step = spend_by(state, lambda key: key.step)
    reported = {entry.get("step"): entry for entry in state.imported.get("completed_steps") or ()}
    rows = []
    for step in state.steps.values():
        name = bare(step.path)
        outputs = resolve_value(step.outputs, partial(store.get_blob, state.run_id))
        shown = BEGUN if step.status == IN_PROGRESS and not owned else step.status
        entry = {} if step.checkpoint else reported.get(name, {})
        rows.append(StepView(
            name, step.path, step.status, step.attempt, step.started_at or None, step.completed_at, step.seconds,
            by_step.get(name, Spend()), outputs, step.error, 0 < step.ended_seq <= state.inherited,
            completed_tasks(state, step.path),
            (entry.get("metrics") or {}).get("cost_usd"), UNKNOWN if step.path in interrupted else shown,
        ))  # fmt: skip
    seen = {step.node for step in state.steps.values()}
    return rows + [StepView(node) for node in _nodes(store, state) if node not in seen]


def _nodes(store: Store, state: RunState) -> Sequence[str]:
    """Return the pinned graph's nodes in order; for an imported run, what its document names as next."""
    if nodes := pinned_nodes(state, lambda blob: store.get_blob(state.run_id, blob)):
        return nodes
    if state.pipeline == "lessons":
        return LESSONS_STEPS
    following = state.imported.get("next_step")
    return [str(following)] if following else []


def moment(place: Store, state: RunState) -> Moment:
    """Return what `show RUN` presents of a state; long values of the context are read whole."""
    reader = Reader(place, state.run_id)
    context = {key: reader.whole(value) for key, value in state.context.items()}
    return Moment(state, steps_of(place, state), context)


def state_then(place: Store, text: str, at: str) -> RunState:
    """Return the state of a run at a point; "": now.

    Raises:
        RunNotFound: There is no such run, or no such point.
    """
    name = resolve(place, text)
    if not at:
        return state_of(place, head_of(place, name))
    return state_at(place, name, resolve_point(points(place, name), at))


def side_at(place: Store, text: str, at: str) -> Side:
    """Return one side of a difference: a run at a point; "": at its end.

    Raises:
        RunNotFound: There is no such run, or no such point.
    """
    name = resolve(place, text)
    return Side(place, state_at(place, name, resolve_point(points(place, name), at or END)))


def find_step(state: RunState, what: str) -> tuple[StepRun, str | None]:
    """Return the step that `STEP[/ITEM]` names (of a node's visits the last), and the item's key if one is named.

    Raises:
        RunNotFound: The run has no such step yet, or the step no such item.
    """
    steps = {bare(step.path): step for step in state.steps.values()}
    steps |= {step.path: step for step in state.steps.values()}
    latest = {step.node: step for step in state.steps.values()}
    parts = what.split("/")
    for cut in range(len(parts), 0, -1):
        # The longest path that fits.
        name = "/".join(parts[:cut])
        step = steps.get(name) or (latest.get(name) if cut == 1 else None)
        if step is not None:
            return step, None if cut == len(parts) else _key(state, step, "/".join(parts[cut:]))
    names = ", ".join(sorted({bare(path) for path in state.steps})) or "none"
    raise RunNotFound(f"Run {state.run_id} has no step {what!r}.", code="step_not_found",
                      hint=f"Steps started so far: {names}.")  # fmt: skip


def _key(state: RunState, step: StepRun, text: str) -> str:
    """Return the key of a task: as recorded, or its last part where that is unique ("7" for "lesson/7")."""
    tasks = state.tasks.get(step.path, {})
    if text in tasks:
        return text
    near = [key for key in tasks if text in (key.rpartition("/")[2], key.rpartition(":")[2], key.lstrip("0"))]
    if len(near) == 1:
        return near[0]
    names = in_order([item_name(step.path, key) for key in near or tasks], str)
    some = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "") or "none"
    raise RunNotFound(f"Step {bare(step.path)} has no item {text!r}.", code="item_not_found",
                      hint=f"Items so far: {some}.")  # fmt: skip


# --- its points ----------------------------------------------------------------------------------


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
