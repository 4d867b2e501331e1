"""The part of a snapshot that a fork begins with: the finished work of another run, as a document and read back.

{"inherited": {"steps", "waiting", "returning", "visits", "tasks", "attempts", "replies", "decisions"}}; values above
a kilobyte stand in blobs of the new run. What it says replaces the position; no money comes with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pipeline.records.kinds import replace
from pipeline.records.positions import merged_context, split
from pipeline.records.run import (
    Answered,
    CallRun,
    CheckpointMark,
    RunState,
    StepRun,
    TaskRun,
    TaskTable,
    Token,
    next_attempt,
)
from pipeline.records.values import encode_value

INHERITED = "inherited"
#: Turns a task's or a reply's recorded JSON text into what stands in the document: a value or a reference.
Kept = Callable[[str, str, TaskRun], Any]

_STEP = ("path", "status", "attempt", "version", "started_at", "completed_at", "seconds", "outputs", "artifacts",
         "context", "reads", "outcome", "edges", "reason", "error", "checkpoint")  # fmt: skip
_TASK = ("item", "hash", "reads", "attempt", "version", "status", "error", "cause")
_CALL = ("path", "task", "attempt", "key", "n", "k", "model", "label", "usable", "stop_reason", "error")
_TEXT, _NUMBER, _AMOUNT, _MAP, _LIST = (str,), (int,), (int, float), (dict,), (list,)
_MAYBE_TEXT, _MAYBE_MAP = (str, type(None)), (dict, type(None))
_TYPES: Mapping[str, tuple[type, ...]] = {
    # Of visits.
    "path": _TEXT, "status": _TEXT, "attempt": _NUMBER, "version": _NUMBER, "started_at": _TEXT,
    "completed_at": _MAYBE_TEXT, "seconds": _AMOUNT, "outputs": _MAP, "artifacts": _MAP, "context": _MAP,
    "reads": _MAP, "outcome": _TEXT, "edges": _LIST, "reason": _TEXT, "error": _MAYBE_MAP, "checkpoint": _TEXT,
    # Of tasks and tries.
    "item": _TEXT, "hash": _TEXT, "cause": _TEXT, "task": _MAYBE_TEXT, "key": _TEXT, "n": _NUMBER, "k": _NUMBER,
    "usable": (bool,), "model": _TEXT, "label": _TEXT, "stop_reason": _MAYBE_TEXT,
    # Of answers.
    "question": _TEXT, "choice": _TEXT, "note": _TEXT, "by": _TEXT, "at": _TEXT,
}  # fmt: skip


def inherited_document(state: RunState, value: Kept, reply: Callable[[CallRun], Any]) -> dict[str, Any]:
    """The finished work of a run as a document; visits that have not ended go back to the edges they consumed.

    Args:
        value: What stands for a finished task's value (path, key, task).
        reply: What stands for a recorded reply.
    """
    begun = dict.fromkeys(state.open_paths)
    steps = sorted((step for step in state.steps.values() if step.path not in begun), key=lambda step: step.ended_seq)
    waiting = [[token.edge, token.source] for token in state.waiting.values()]
    returning = [[edge, source, path] for (edge, source), path in state.returning.items()]
    for path in begun:
        for edge, source in state.steps[path].consumed:
            waiting.append([edge, source])
            returning.append([edge, source, path])
    return {
        "steps": [
            {**_row(step, (*_STEP, "code")), "consumed": [list(token) for token in step.consumed]} for step in steps
        ],
        "waiting": waiting,
        "returning": returning,
        "visits": dict(state.visits),
        "tasks": [
            {"path": path, "task": key, **_row(task, (*_TASK, "code")), "value": value(path, key, task)}
            for path, tasks in state.tasks.items()
            for key, task in tasks.items()
        ],
        "attempts": [[path, task, attempt] for (path, task), attempt in state.attempts.items()],
        "replies": [call_row(call, reply(call)) for call in _tries(state)],
        "decisions": [
            {"path": path, "question": question, **answer._asdict()}
            for (path, question), answer in state.decisions.items()
        ],
    }


def _row(thing: Any, names: Iterable[str]) -> dict[str, Any]:
    """Fields of a record; mappings and lists as JSON has them."""
    out: dict[str, Any] = {}
    for name in names:
        found = getattr(thing, name)
        plain = dict(found) if isinstance(found, Mapping) else found
        out[name] = list(plain) if isinstance(plain, tuple) else plain
    return out


def call_row(call: CallRun, reply: Any) -> dict[str, Any]:
    """How a try stands in a document."""
    return {**_row(call, _CALL), "reply": reply}


def _tries(state: RunState) -> Iterable[CallRun]:
    """Tries of attempts that have not ended: replies that can still answer, and what counts as used up.

    What the present attempt hears of earlier ones is as if it were its own.
    """
    for (path, task, first), asks in state.memo.items():
        attempt = next_attempt(state, path, task) if (path, task) in state.heard_from else first
        for call in (call for tries in asks.values() for call in tries if call.ended):
            yield call if call.attempt == attempt else replace(call, attempt=attempt)


def inherited_shape(document: Mapping[str, Any]) -> str:
    """Why what a document inherits cannot be read; "" if it can, or if it inherits nothing."""
    if INHERITED not in document:
        return ""
    try:
        take_inherited(RunState(), 1, document)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"what it inherits makes no sense ({type(error).__name__}: {error})"
    return ""


def take_inherited(state: RunState, seq: int, document: Mapping[str, Any]) -> None:
    """Replace the position by the inherited one.

    Raises:
        KeyError, TypeError, ValueError: It makes no sense.
    """
    found = document[INHERITED]
    state.steps = {step.path: step for step in (_step(row, seq) for row in found["steps"])}
    state.open_paths = {}
    state.failed_paths = {
        step.path: None for step in state.steps.values() if step.status == "failed" and not step.edges
    }
    state.waiting = {(edge, source): Token(edge, source, seq) for edge, source in map(_pair, found["waiting"])}
    state.returning = {(str(edge), str(source)): str(path) for edge, source, path in found["returning"]}
    state.visits = {str(node): _number(visit) for node, visit in found["visits"].items()}
    state.context = merged_context(state.steps.values())
    state.checkpoints = [
        CheckpointMark(seq, step.checkpoint, step.path, step.completed_at or "", state.total.usd)
        for step in state.steps.values()
    ]
    state.tasks = {}
    for row in found["tasks"]:
        state.tasks.setdefault(_typed(row, "path"), TaskTable())[str(row["task"])] = _task(row, seq)
    state.attempts = {(str(path), _name(task)): _number(attempt) for path, task, attempt in found["attempts"]}
    state.memo = {}
    for row in found["replies"]:
        call = _call(row, seq)
        asks = state.memo.setdefault((call.path, call.task, call.attempt), {})
        asks.setdefault((call.key, call.n), []).append(call)
    # Writes to the user's memory that a document of another system had staged.
    state.unapplied = {str(path): [dict(row) for row in rows] for path, rows in (found.get("unapplied") or {}).items()}
    state.decisions = {}
    for row in found["decisions"]:
        answer = Answered(*(_typed(row, name) for name in Answered._fields))
        state.decisions[_typed(row, "path"), _typed(row, "question")] = answer
    state.inherited = seq
    state.jumps += 1


#: Types of a step's fields that were looked at already: rows are of a few forms.
_sound: set[tuple[type, ...]] = set()


def _step(row: Mapping[str, Any], seq: int) -> StepRun:
    values = {name: row[name] for name in _STEP}
    form = tuple(map(type, values.values()))
    if form not in _sound:
        for name in _STEP:
            _typed(row, name)
        _sound.add(form)
    node, visit = split(values["path"])
    return StepRun(
        node=node, visit=visit, consumed=[list(_pair(token)) for token in row["consumed"]], started_seq=seq,
        ended_seq=seq, code=str(row.get("code") or ""), **values,
    )  # fmt: skip


def _task(row: Mapping[str, Any], seq: int) -> TaskRun:
    text = encode_value(row["value"])
    return TaskRun(seq=seq, value=text, code=str(row.get("code") or ""), **{name: _typed(row, name) for name in _TASK})


def _call(row: Mapping[str, Any], seq: int) -> CallRun:
    values = {name: _typed(row, name) for name in _CALL}
    reply = None if row["reply"] is None else encode_value(row["reply"])
    return CallRun(seq=seq, worst=None, at="", ended=True, reply=reply, ended_seq=seq, **values)


def _typed(row: Mapping[str, Any], name: str) -> Any:
    value = row[name]
    if type(value) not in _TYPES[name]:
        raise TypeError(f"{name} is {json.dumps(value)[:40]}")
    return value


def _pair(token: Any) -> tuple[str, str]:
    edge, source = token
    return str(edge), str(source)


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no number")
    return value


def _name(value: Any) -> str | None:
    return None if value is None else str(value)


def references(inherited: Mapping[str, Any]) -> list[str]:
    """The blobs that inherited work needs, once each."""
    values: list[Any] = []
    for step in inherited["steps"]:
        values += [
            step["outputs"],
            *step["context"].values(),
            *({"$blob": blob} for blob in step["artifacts"].values()),
        ]
    values += [task["value"] for task in inherited["tasks"]]
    values += [call["reply"] for call in inherited["replies"]]
    return list(dict.fromkeys(value["$blob"] for value in values if isinstance(value, Mapping) and "$blob" in value))
