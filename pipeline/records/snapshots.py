"""Whole state documents: how one becomes steps, tokens and totals; and the finished work that a fork inherits.

A document has the schema of checkpoint.json. That of a fork holds {"inherited": …} (`Inherited`); values above a
kilobyte are in blobs of the new run. What it says replaces the position; no money comes with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from pipeline.records import structure
from pipeline.records.kinds import Pair, Snapshot, replace
from pipeline.records.positions import START, merged_context, split
from pipeline.records.reviews import Review
from pipeline.records.run import (
    Answered,
    CallRun,
    CheckpointMark,
    RunState,
    StepRun,
    TaskRun,
    TaskTable,
    Token,
    full,
    next_attempt,
)
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING
from pipeline.records.structure import fields, fields_of, items, maybe_text, name, number, optional, table, text
from pipeline.records.values import encode_value, is_reference

INHERITED = "inherited"
#: Turns a task's or a reply's recorded JSON text into what stands in the document: a value or a reference.
Kept = Callable[[str, str, TaskRun], Any]
_PATH = re.compile(r"[^#/]+#[0-9]{1,9}(/[^#/]+#[0-9]{1,9})*")
_STATUSES = {PENDING, IN_PROGRESS, COMPLETED, FAILED}


def _position(value: Any) -> str:
    pairs = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    return items(items(text))(value) if pairs else " is not a list of pairs"


def _attempt(value: Any) -> str:
    return "" if type(value) is int and value > 0 else " is not a count"


_STEP = fields(
    ("step",),
    step=name,
    **fields_of(("path", "status", "started_at", "completed_at", "outcome", "error"), maybe_text),
    **fields_of(("outputs", "context"), optional(structure.mapping)),
    duration_seconds=optional(number),
    metrics=optional(fields(**fields_of(("cost_usd", "input_tokens", "output_tokens"), optional(number)))),
    artifacts=optional(table(text)),
)


def _placed_step(value: Any) -> str:
    if found := _STEP(value):
        return found
    return "" if _PATH.fullmatch(str(value.get("path") or full(value["step"]))) else " is at no node and visit"


_DOCUMENT = fields(
    **fields_of(
        ("run_id", "pipeline", "subject", "level", "course_id", "status", "status_detail", "started_at", "updated_at",
         "last_completed_step", "next_step", "error"), maybe_text),
    **fields_of(("total_cost_usd", "total_tokens", "possibly_spent_usd", "unpriced_calls", "unbounded_calls"),
                optional(number)),
    completed_steps=items(_placed_step),
    current_step=lambda step: _placed_step(step) if isinstance(step, Mapping) else "",
    nodes=optional(items(text)),
    position=_position,
    attempts=optional(table(_attempt)),
)  # fmt: skip


def document_shape(document: Any) -> str:
    """Return why a document cannot be a run's state; "" if it can."""
    if not isinstance(document, Mapping):
        return "it is not a JSON object"
    if not {"completed_steps", "status", "pipeline"} & set(document):
        return "it has neither status nor pipeline nor completed_steps"
    return structure.problem(document, _DOCUMENT) or inherited_shape(document)


def take(state: RunState, seq: int, fact: Snapshot) -> None:
    """Replace the position by the document's; recorded charges stay what they are.

    Beside the names of checkpoint.json a document may hold `position`, the edges chosen and not taken as [edge id, path
    that chose it], and `attempts`, the next attempt of a visit by its path.
    """
    document = fact.document
    if fact.source == "fork" and INHERITED in document:
        take_inherited(state, seq, document)
        return
    state.imported = document
    named = {name: document[name] for name in ("subject", "level") if document.get(name) is not None}
    state.params = {**named, **state.params}
    state.pipeline = state.pipeline or document.get("pipeline") or ""
    state.started_at = document.get("started_at") or state.started_at
    state.reported = {
        "cost_usd": document.get("total_cost_usd") or 0,
        "total_tokens": document.get("total_tokens") or 0,
    }
    state.steps, state.open_paths, state.failed_paths = {}, {}, {}
    state.waiting = {START: Token("", "", seq)}
    last = ""
    for entry in document.get("completed_steps") or ():
        step = _imported_step(entry, last, seq)
        state.steps[step.path] = step
        state.visits[step.path.rpartition("#")[0]] = step.visit
        last = step.path
    following = document.get("next_step")
    if "position" in document:
        state.waiting = {(edge, source): Token(edge, source, seq) for edge, source in document["position"]}
    elif last and not following:
        state.waiting = {}
    elif last:
        edge = f"{split(last)[0]}->{split(full(str(following)))[0]}"
        state.waiting = {(edge, last): Token(edge, last, seq)}
    for path, attempt in (document.get("attempts") or {}).items():
        state.attempts[path, None] = attempt
    state.context = merged_context(state.steps.values())
    state.jumps += 1
    if fact.source == "api":
        status = document.get("status")
        state.status, state.detail = (status if status in _STATUSES else IN_PROGRESS), None
        error = document.get("error")
        state.error = {"type": "", "message": str(error)} if error else None


def _imported_step(entry: Mapping[str, Any], last: str, seq: int) -> StepRun:
    path = entry.get("path") or full(entry["step"])
    node, visit = split(path)
    edge = (f"{split(last)[0]}->{node}", last) if last else START
    return StepRun(
        path, node, visit, COMPLETED, consumed=(edge,), started_at=entry.get("started_at") or "",
        completed_at=entry.get("completed_at"), seconds=float(entry.get("duration_seconds") or 0),
        outputs=entry.get("outputs") or {}, artifacts=entry.get("artifacts") or {},
        context=entry.get("context") or {}, outcome=entry.get("outcome") or "success", started_seq=seq, ended_seq=seq,
    )  # fmt: skip


# What a fork inherits


class _Step(Struct, gc=False):
    path: str
    status: str
    attempt: int
    version: int
    started_at: str
    completed_at: str | None
    seconds: float
    outputs: dict[str, Any]
    artifacts: dict[str, str]
    context: dict[str, Any]
    reads: dict[str, str]
    outcome: str
    edges: list[str]
    reason: str
    error: dict[str, Any] | None
    checkpoint: str
    consumed: list[Pair]
    code: str = ""


class _Task(Struct, gc=False):
    path: str
    task: str
    item: str
    hash: str
    reads: dict[str, str]
    attempt: int
    version: int
    status: str
    error: dict[str, Any] | None
    cause: str
    value: Any
    code: str = ""


class _Reply(Struct, gc=False):
    path: str
    task: str | None
    attempt: int
    key: str
    n: int
    k: int
    model: str
    label: str
    usable: bool
    stop_reason: str | None
    error: dict[str, Any] | None
    reply: Any


class _Decision(Struct, gc=False):
    path: str
    question: str
    choice: str
    note: str
    by: str
    at: str
    task: str = ""
    edit: str = ""


class Inherited(Struct, gc=False):
    """What a document holds under INHERITED."""

    steps: list[_Step]
    waiting: list[Pair]
    returning: list[Annotated[list[str], Meta(min_length=3, max_length=3)]]
    visits: dict[str, int]
    tasks: list[_Task]
    attempts: list[tuple[str, str | None, int]]
    replies: list[_Reply]
    decisions: list[_Decision]
    #: Writes to the user's memory that a document of another system had staged.
    unapplied: dict[str, list[dict[str, Any]]] | None = None


def inherited_document(state: RunState, value: Kept, reply: Callable[[CallRun], Any]) -> dict[str, Any]:
    """Return the finished work of a run; visits that have not ended go back to the edges they consumed.

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
        "steps": [_row(step, _Step, consumed=[list(token) for token in step.consumed]) for step in steps],
        "waiting": waiting,
        "returning": returning,
        "visits": dict(state.visits),
        "tasks": [
            _row(task, _Task, path=path, task=key, value=value(path, key, task))
            for path, tasks in state.tasks.items()
            for key, task in tasks.items()
        ],
        "attempts": [[path, task, attempt] for (path, task), attempt in state.attempts.items()],
        "replies": [call_row(call, reply(call)) for call in _tries(state)],
        "decisions": decision_rows(state),
    }


def _row(thing: Any, cls: type[Struct], **more: Any) -> dict[str, Any]:
    """Return the fields of a record that a row has; mappings and lists as JSON has them."""
    out: dict[str, Any] = {}
    for field in cls.__struct_fields__:
        found = more[field] if field in more else getattr(thing, field)
        plain = dict(found) if isinstance(found, Mapping) else found
        out[field] = list(plain) if isinstance(plain, tuple) else plain
    return out


def call_row(call: CallRun, reply: Any) -> dict[str, Any]:
    """Return the row of a try."""
    return _row(call, _Reply, reply=reply)


def decision_rows(state: RunState) -> list[dict[str, Any]]:
    """Return the rows of all answers to questions, and of all that people decided about what tasks made."""
    asked = [
        {"path": path, "question": question, **answer._asdict()} for (path, question), answer in state.decisions.items()
    ]
    reviewed = [
        {"path": path, "task": task, **{key: value for key, value in each._asdict().items() if key != "seq"}}
        for (path, task), found in state.reviews.items()
        for each in found
    ]
    return asked + reviewed


def _tries(state: RunState) -> Iterable[CallRun]:
    """Return tries of attempts that have not ended: replies that can still answer, and what counts as used up.

    What the present attempt hears of earlier ones is as if it were its own.
    """
    for (path, task, first), asks in state.memo.items():
        attempt = next_attempt(state, path, task) if (path, task) in state.heard_from else first
        for call in (call for tries in asks.values() for call in tries if call.ended):
            yield call if call.attempt == attempt else replace(call, attempt=attempt)


def inherited_shape(document: Mapping[str, Any]) -> str:
    """Return why what a document inherits cannot be read; "" if it can, or if it inherits nothing."""
    if INHERITED not in document:
        return ""
    try:
        take_inherited(RunState(), 1, document)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, msgspec.ValidationError) as error:
        return f"what it inherits is inconsistent ({type(error).__name__}: {error})"
    return ""


def take_inherited(state: RunState, seq: int, document: Mapping[str, Any]) -> None:
    """Replace the position by the inherited one.

    Raises:
        msgspec.ValidationError, ValueError, InvalidValue: It makes no sense.
    """
    found = msgspec.convert(document[INHERITED], Inherited)
    state.steps = {}
    for row in found.steps:
        node, visit = split(row.path)
        state.steps[row.path] = StepRun(
            node=node, visit=visit, started_seq=seq, ended_seq=seq, **msgspec.structs.asdict(row)
        )  # fmt: skip
    state.open_paths = {}
    state.failed_paths = {step.path: None for step in state.steps.values() if step.status == FAILED and not step.edges}
    state.waiting = {(edge, source): Token(edge, source, seq) for edge, source in found.waiting}
    state.returning = {(edge, source): path for edge, source, path in found.returning}
    state.visits = found.visits
    state.context = merged_context(state.steps.values())
    state.checkpoints = [
        CheckpointMark(seq, step.checkpoint, step.path, step.completed_at or "", state.total.usd)
        for step in state.steps.values()
    ]
    state.tasks = {}
    for task in found.tasks:
        state.tasks.setdefault(task.path, TaskTable())[task.task] = TaskRun(
            task.item, task.hash, task.reads, seq, encode_value(task.value), task.attempt, task.version, task.status,
            task.error, task.cause, task.code,
        )  # fmt: skip
    state.attempts = {(path, task_name): attempt for path, task_name, attempt in found.attempts}
    state.memo = {}
    for call in found.replies:
        reply = None if call.reply is None else encode_value(call.reply)
        values = {**msgspec.structs.asdict(call), "reply": reply}
        tries = state.memo.setdefault((call.path, call.task, call.attempt), {}).setdefault((call.key, call.n), [])
        tries.append(CallRun(seq=seq, worst=None, at="", ended=True, ended_seq=seq, **values))
    state.unapplied = dict(found.unapplied or {})
    state.decisions = {
        (row.path, row.question): Answered(row.choice, row.note, row.by, row.at)
        for row in found.decisions
        if not row.task
    }
    state.reviews = {}
    for each in found.decisions:
        if each.task:
            made = Review(each.question, each.choice, each.edit, each.note, each.by, each.at, seq)
            state.reviews[each.path, each.task] = (*state.reviews.get((each.path, each.task), ()), made)
    state.inherited = seq
    state.jumps += 1


def references(inherited: Mapping[str, Any]) -> list[str]:
    """Return the blobs that inherited work needs, once each."""
    values: list[Any] = [task["value"] for task in inherited["tasks"]] + [
        call["reply"] for call in inherited["replies"]
    ]
    blobs: list[str] = [row["edit"] for row in inherited["decisions"] if row.get("edit")]
    for step in inherited["steps"]:
        values += [step["outputs"], *step["context"].values()]
        blobs += step["artifacts"].values()
    return list(dict.fromkeys(blobs + [value["$blob"] for value in values if is_reference(value)]))
