"""How a whole state document (seeds/002's schema) becomes steps, tokens and reported totals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.records.forks import INHERITED, inherited_shape, take_inherited
from pipeline.records.kinds import Snapshot
from pipeline.records.positions import START, merged_context, split
from pipeline.records.run import RunState, StepRun, Token, full
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING

_PATH = re.compile(r"[^#/]+#[0-9]{1,9}(/[^#/]+#[0-9]{1,9})*")
_STATUSES = {PENDING, IN_PROGRESS, COMPLETED, FAILED}


#: Fields of a document, and of a step in it, that are text or missing; and those that are amounts or missing.
_TEXTS = (
    "run_id", "pipeline", "subject", "level", "course_id", "status", "status_detail", "started_at", "updated_at",
    "last_completed_step", "next_step", "error",
)  # fmt: skip
_AMOUNTS = ("total_cost_usd", "total_tokens", "possibly_spent_usd", "unpriced_calls", "unbounded_calls")
_STEP_TEXTS = ("step", "path", "status", "started_at", "completed_at", "outcome", "error")
_METRICS = ("cost_usd", "input_tokens", "output_tokens")
_OBJECTS = ("outputs", "metrics", "artifacts", "context")
_MOST = 10**15


def document_shape(document: Any) -> str:
    """Why a document cannot be taken for a run's state; "" if it can."""
    if not isinstance(document, Mapping):
        return "it is no JSON object"
    if not {"completed_steps", "status", "pipeline"} & set(document):
        return "it has neither status nor pipeline nor completed_steps"
    steps = document.get("completed_steps", [])
    if not isinstance(steps, list):
        return "completed_steps is no list"
    if problem := _misfit(document, _TEXTS, _AMOUNTS, ()):
        return problem
    if problem := _position_shape(document):
        return problem
    nodes = document.get("nodes") or []
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        return "nodes is no list of names"
    current = document.get("current_step")
    for step, place in [(step, f"step {number} in completed_steps") for number, step in enumerate(steps, 1)] + (
        [(current, "current_step")] if isinstance(current, Mapping) else []
    ):
        if problem := _step_shape(step):
            return f"{place} {problem}"
    return inherited_shape(document)


def _position_shape(document: Mapping[str, Any]) -> str:
    tokens = document.get("position", [])
    if not isinstance(tokens, list) or not all(
        isinstance(token, list) and len(token) == 2 and all(isinstance(part, str) for part in token) for token in tokens
    ):
        return "position is no list of pairs"
    attempts = document.get("attempts") or {}
    if not isinstance(attempts, Mapping) or not all(type(n) is int and n > 0 for n in attempts.values()):
        return "attempts holds what is no count"
    return ""


def _step_shape(step: Any) -> str:
    if not isinstance(step, Mapping) or not isinstance(step.get("step"), str) or not step["step"]:
        return "has no name"
    if not _PATH.fullmatch(str(step.get("path") or full(step["step"]))):
        return f"({step['step']}) is at no node and visit"
    problem = _misfit(step, _STEP_TEXTS, ("duration_seconds",), _OBJECTS)
    problem = problem or _misfit(step.get("metrics") or {}, (), _METRICS, ())
    if not problem and not all(isinstance(blob, str) for blob in (step.get("artifacts") or {}).values()):
        problem = "artifacts are no hashes"
    return f"({step['step']}): {problem}" if problem else ""


def _misfit(found: Mapping[str, Any], texts: Sequence[str], amounts: Sequence[str], objects: Sequence[str]) -> str:
    for name in texts:
        if not isinstance(found.get(name), str | None):
            return f"{name} is no text"
    for name in amounts:
        value = found.get(name) or 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
            return f"{name} is no number that it can be"
    for name in objects:
        if not isinstance(found.get(name) or {}, Mapping):
            return f"{name} is no object"
    return ""


def take(state: RunState, seq: int, fact: Snapshot) -> None:
    """Replace the position by the document's; recorded charges stay what they are.

    Beside seeds/002's names a document may hold `position`, the edges chosen and not taken as [edge id, path that
    chose it], and `attempts`, the next attempt of a visit by its path.
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
        step = _step(entry, last, seq)
        state.steps[step.path] = step
        state.visits[step.path.rpartition("#")[0]] = step.visit
        last = step.path
    if "position" in document:
        state.waiting = {(edge, source): Token(edge, source, seq) for edge, source in document["position"]}
    elif last:
        state.waiting = _position(last, document.get("next_step"), seq)
    for path, attempt in (document.get("attempts") or {}).items():
        state.attempts[path, None] = attempt
    state.context = merged_context(state.steps.values())
    state.jumps += 1
    if fact.source == "api":
        status = document.get("status")
        state.status, state.detail = (status if status in _STATUSES else IN_PROGRESS), None
        error = document.get("error")
        state.error = {"type": "", "message": str(error)} if error else None


def _step(entry: Mapping[str, Any], last: str, seq: int) -> StepRun:
    path = entry.get("path") or full(entry["step"])
    node, visit = split(path)
    edge = (f"{split(last)[0]}->{node}", last) if last else START
    return StepRun(
        path=path,
        node=node,
        visit=visit,
        status=COMPLETED,
        consumed=(edge,),
        started_at=entry.get("started_at") or "",
        completed_at=entry.get("completed_at"),
        seconds=float(entry.get("duration_seconds") or 0),
        outputs=entry.get("outputs") or {},
        artifacts=entry.get("artifacts") or {},
        context=entry.get("context") or {},
        outcome=entry.get("outcome") or "success",
        started_seq=seq,
        ended_seq=seq,
    )


def _position(last: str, following: Any, seq: int) -> dict[tuple[str, str], Token]:
    if not following:
        return {}
    edge = f"{split(last)[0]}->{split(full(str(following)))[0]}"
    return {(edge, last): Token(edge, last, seq)}
