"""How a whole state document (seeds/002's schema) becomes steps, tokens and reported totals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.records.kinds import Snapshot
from pipeline.records.positions import START, merged_context, split
from pipeline.records.run import RunState, StepRun, Token, full
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING

_PATH = re.compile(r"[^#/]+#[0-9]{1,9}(/[^#/]+#[0-9]{1,9})*")
_STATUSES = {PENDING, IN_PROGRESS, COMPLETED, FAILED}


def document_shape(document: Any) -> str:
    """Why a document cannot be taken for a run's state; "" if it can."""
    if not isinstance(document, Mapping):
        return "it is no JSON object"
    steps = document.get("completed_steps", [])
    if not isinstance(steps, list):
        return "completed_steps is no list"
    for number, step in enumerate(steps, 1):
        if not isinstance(step, Mapping) or not isinstance(step.get("step"), str) or not step["step"]:
            return f"step {number} in completed_steps has no name"
        if not _PATH.fullmatch(str(step.get("path") or "a#1")):
            return f"the path of step {step['step']} is not a node and its visit"
        if not isinstance(step.get("outputs") or {}, Mapping):
            return f"the outputs of step {step['step']} are no object"
        if not isinstance(step.get("duration_seconds") or 0, (int, float)):
            return f"the duration of step {step['step']} is no number"
    if not {"completed_steps", "status", "pipeline"} & set(document):
        return "it has neither status nor pipeline nor completed_steps"
    return ""


def take(state: RunState, seq: int, fact: Snapshot) -> None:
    """Replace the position by the document's; recorded charges stay what they are."""
    document = fact.document
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
    if last:
        state.waiting = _position(last, document.get("next_step"), seq)
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
