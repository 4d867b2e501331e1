"""How a whole state document (seeds/002's schema) becomes steps, tokens and reported totals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.records.kinds import Snapshot
from pipeline.records.positions import START, merged_context, split
from pipeline.records.run import RunState, StepRun, Token, full
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING

_STATUSES = {PENDING, IN_PROGRESS, COMPLETED, FAILED}


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
