"""checkpoint.json: the state as people, `list` and the original system's tools read it (names of seeds/002).

`head_document` writes it from the fold; `PipelineState` and `StepState` read and write it as objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, NamedTuple

from pipeline.records.charge import INPUT_KINDS, TOKEN_KINDS
from pipeline.records.run import RunState, Spend, StepRun, bare, full, spend_by
from pipeline.records.statuses import COMPLETED, PENDING, SKIPPED
from pipeline.records.structure import HEAD

#: Grows after the point with new keys, before it with a changed meaning.
SCHEMA_VERSION = "1.1"
#: A document above this many bytes is worth a warning.
LARGE_BYTES = 500_000
#: Fields that say how a head came about; a document that brings them along does not know.
_OURS = {*HEAD, "imported"}
#: The amounts of a row of sums.
_MONEY = ("usd", "low", "high", "saved_cache", "saved_batch")


@dataclass
class StepState:
    """A step as checkpoint.json shows it."""

    step: str
    status: str = COMPLETED
    started_at: str | None = None
    completed_at: str | None = None
    #: Active seconds.
    duration_seconds: float = 0
    outputs: dict[str, Any] = field(default_factory=dict)
    #: {"input_tokens", "output_tokens", "cost_usd", …}; None where it made no paid call.
    metrics: dict[str, Any] | None = None
    error: str | None = None
    #: Keys of newer versions, kept as they came.
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the step's object; `metrics` and `error` are left out where there are none."""
        out = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "extra"}
        for name in ("metrics", "error"):
            if out[name] is None and name not in self.extra:
                del out[name]
        return {**self.extra, **out} if self.extra else out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepState:
        """Return the step of an object; what it does not say stays at its default."""
        # An explicit null is remembered, so that writing gives back what was read.
        nulls = {name: None for name in ("metrics", "error") if name in data and data[name] is None}
        known, extra = _sorted_out(cls, data)
        return cls(**known, extra={**extra, **nulls})


@dataclass
class PipelineState:
    """A run as checkpoint.json shows it."""

    run_id: str
    pipeline: str = "lessons"
    subject: str | None = None
    level: str | None = None
    course_id: str | None = None
    status: str = PENDING
    started_at: str | None = None
    updated_at: str | None = None
    #: Completed and skipped steps, in order of their ends.
    completed_steps: list[StepState] = field(default_factory=list)
    last_completed_step: str | None = None
    next_step: str | None = None
    total_cost_usd: float = 0.0
    total_tokens: int = 0
    error: str | None = None
    #: Keys beside those of the original schema, kept as they came.
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document: the schema's names first, then whatever else it held."""
        out = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "extra"}
        out["completed_steps"] = [step.to_json() for step in self.completed_steps]
        return {**out, **self.extra}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PipelineState:
        """Return the state of a document.

        Raises:
            KeyError, TypeError: It lacks a run_id, or a step's name.
        """
        known, extra = _sorted_out(cls, data)
        known["completed_steps"] = [StepState.from_json(step) for step in data.get("completed_steps") or ()]
        return cls(**known, extra=extra)


def _sorted_out(cls: type, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    names = {item.name for item in fields(cls)} - {"extra"}
    known = {key: value for key, value in data.items() if key in names}
    return known, {key: value for key, value in data.items() if key not in names}


def head_document(state: RunState, journal_bytes: int, nodes: Sequence[str]) -> dict[str, Any]:
    """Return the checkpoint.json of a run.

    Args:
        journal_bytes: Length of the journal that the state was read from.
        nodes: All nodes of the graph in order of declaration, for n/4; () if unknown.
    """
    sums = spend_by(state, lambda key: key.step)
    done = [step for step in state.steps.values() if step.status == COMPLETED]
    done.sort(key=lambda step: step.ended_seq)
    imported = _imported_steps(state)
    cost, current = cost_of(state), _current_path(state)
    document: dict[str, Any] = {
        "run_id": state.run_id,
        "pipeline": state.pipeline,
        "subject": state.params.get("subject"),
        "level": state.params.get("level"),
        "course_id": _course_id(state, done),
        "status": state.status,
        "started_at": state.started_at or None,
        "updated_at": state.updated_at or None,
        "completed_steps": [_step(step, sums, imported) for step in done] + _skipped(state, nodes),
        "last_completed_step": bare(done[-1].path) if done else None,
        "next_step": _next(state, nodes),
        "total_cost_usd": usd(cost.known),
        "total_tokens": token_total(state.total) + int(state.reported.get("total_tokens") or 0),
        "error": _message(state.error),
        "status_detail": state.detail,
        "current_step": _step(state.steps[current], sums, imported) if current else None,
        "nodes": list(nodes),
        "possibly_spent_usd": usd(cost.more),
        "unpriced_calls": state.total.unpriced,
        "unbounded_calls": cost.unbounded,
        "open_questions": len(state.questions),
        "imported_cost": usd(reported_usd(state)) if state.reported else None,
        "resume_command": state.command or None,
        "author": state.identity.get("author"),
        "target": state.execution.get("target"),
        "needs": state.execution.get("needs"),
        "executor": state.execution.get("executor"),
        "claim": list(state.claim) if state.claim else None,
        "identity": dict(state.identity),
        "parent": dict(state.parent) if state.parent else None,
        "spend": spend_rows(state),
        "seq": state.seq,
        "journal_bytes": journal_bytes,
        "schema_version": SCHEMA_VERSION,
    }
    if state.lost.unbounded:
        document["holes"] = state.lost.unbounded
    if state.submitted:
        document["tasks_out"] = len(state.submitted)
    # What a newer version or another tool wrote into an imported document goes on existing, but by no name of ours.
    document.update({key: value for key, value in state.imported.items() if key not in document and key not in _OURS})
    return document


class RunCost(NamedTuple):
    """Hold what a run cost, as every view of it says; USD."""

    #: Exact, with an imported total; of records that are missing, the least.
    known: Decimal
    #: What calls without an exact bill, and tasks with an executor, may have cost beside it, as far as that is bounded.
    more: Decimal
    #: Calls, tasks and missing records without an upper bound; and calls without a price.
    unbounded: int
    unpriced: int

    @property
    def possibly(self) -> Decimal | None:
        """Return `more`; None: no upper bound is known."""
        return None if self.unbounded or self.unpriced else self.more


def cost_of(state: RunState) -> RunCost:
    """Return what a run cost so far."""
    total, (granted, free) = state.total, _granted(state)
    return RunCost(known_usd(state), total.high + granted, total.unbounded + free, total.unpriced)


def known_usd(state: RunState) -> Decimal:
    """Return what a run cost so far as far as it is known (USD)."""
    return state.total.usd + state.lost.low + reported_usd(state)


def reported_usd(state: RunState) -> Decimal:
    """Return the total that an imported document reported (USD)."""
    return Decimal(str(state.reported.get("cost_usd") or 0))


def _granted(state: RunState) -> tuple[Decimal, int]:
    """Return what tasks with an executor may have spent that is not known here, and how many may spend anything."""
    if not state.submitted or state.identity.get("author") == "offline":
        return Decimal(0), 0
    granted = [task.usd for task in state.submitted.values()]
    return sum((usd for usd in granted if usd is not None), Decimal(0)), granted.count(None)


def spend_rows(state: RunState, money: Callable[[Decimal], Any] = float) -> list[dict[str, Any]]:
    """Return the sums of charges for reports over many runs; what is 0 is left out.

    Args:
        money: How dollars stand in a row: numbers, exact up to 15 digits, or text.
    """
    rows = []
    for key, spend in state.spend.items():
        row: dict[str, Any] = {
            "step": key.step,
            "model": key.model,
            "label": key.label,
            "day": key.day,
            "outcome": key.outcome,
            "calls": spend.calls,
        }
        row.update({name: value for name in ("cause", "provider", "labels") if (value := getattr(key, name))})
        row.update({name: money(value) for name in _MONEY if (value := getattr(spend, name))})
        row.update({name: getattr(spend, name) for name in ("unpriced", "unbounded") if getattr(spend, name)})
        if spend.tokens:
            row["tokens"] = dict(spend.tokens)
        if spend.usd_by_kind:
            row["usd_by_kind"] = {kind: money(value) for kind, value in spend.usd_by_kind.items()}
        # Most kinds are billed by every call of a sum.
        if fewer := {kind: calls for kind, calls in spend.kind_calls.items() if calls != spend.calls}:
            row["kind_calls"] = fewer
        rows.append(row)
    return rows


def metrics(spend: Spend) -> dict[str, Any]:
    """Return a step's metrics: input_tokens counts every input kind; the kinds stand beside it."""
    out: dict[str, Any] = {
        "input_tokens": sum(spend.tokens.get(kind, 0) for kind in INPUT_KINDS),
        "output_tokens": spend.tokens.get("output", 0),
        "cost_usd": usd(spend.usd),
        "calls": spend.calls,
        "tokens": dict(spend.tokens),
        "unpriced_calls": spend.unpriced,
    }
    if spend.high or spend.unbounded:
        out["possibly_spent_usd"] = usd(spend.high)
        out["unbounded_calls"] = spend.unbounded
    return out


def usd(amount: Decimal) -> float:
    """Return money as a JSON number, to a millionth of a dollar."""
    return round(float(amount), 6)


def token_total(spend: Spend) -> int:
    """Return input and output tokens of all kinds; other billed things are not tokens."""
    return sum(spend.tokens.get(kind, 0) for kind in TOKEN_KINDS)


def large_keys(document: Mapping[str, Any]) -> list[str]:
    """Return the largest parts of a document above LARGE_BYTES, largest first, with their sizes; [] below it."""
    # A document holds nothing that its journal does not: a short journal needs no measuring.
    if document.get("journal_bytes", LARGE_BYTES) < LARGE_BYTES:
        return []
    sizes = {key: _size(value) for key, value in document.items() if key != "completed_steps"}
    for step in document.get("completed_steps") or ():
        outputs = step.get("outputs") or {}
        sizes[f"{step.get('step')}"] = _size(step) - _size(outputs)
        sizes.update({f"{step.get('step')}.outputs.{key}": _size(value) for key, value in outputs.items()})
    if sum(sizes.values()) < LARGE_BYTES:
        return []
    largest = sorted(sizes, key=lambda name: -sizes[name])
    return [f"{name} ({sizes[name] // 1000} kB)" for name in largest[:5] if sizes[name] >= 1000]


def _size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def _imported_steps(state: RunState) -> dict[str, Mapping[str, Any]]:
    entries: Iterable[Mapping[str, Any]] = state.imported.get("completed_steps") or ()
    return {bare(entry.get("path") or full(entry["step"])): entry for entry in entries}


def _step(step: StepRun, sums: Mapping[str, Spend], imported: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    name = bare(step.path)
    if not step.checkpoint and name in imported and step.status == COMPLETED:
        return dict(imported[name])
    out: dict[str, Any] = {
        "step": name,
        "status": step.status,
        "started_at": step.started_at or None,
        "completed_at": step.completed_at,
        "duration_seconds": round(step.seconds, 3),
        "outputs": dict(step.outputs),
    }
    if step.artifacts:
        out["artifacts"] = dict(step.artifacts)
    if name in sums:
        out["metrics"] = metrics(sums[name])
    if step.error is not None:
        out["error"] = _message(step.error)
    return out


def _skipped(state: RunState, nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Return, once all is done, the nodes that no visit reached."""
    if state.status != COMPLETED:
        return []
    seen = {step.node for step in state.steps.values()}
    return [{"step": name, "status": SKIPPED, "outputs": {}} for name in nodes if name not in seen]


def _current_path(state: RunState) -> str:
    """Return the visit to look at: the first still open, else the first that failed."""
    return next(iter(state.open_paths), "") or next(iter(state.failed_paths), "")


def _next(state: RunState, nodes: Sequence[str]) -> str | None:
    if state.status == COMPLETED:
        return None
    path = _current_path(state)
    if path:
        return bare(path)
    token = next(iter(state.waiting.values()), None)
    if token is None:
        return None
    if not token.edge:
        return nodes[0] if nodes else None
    return token.edge.partition("->")[2].partition("#")[0] or None


def _course_id(state: RunState, done: Iterable[StepRun]) -> str | None:
    found = state.imported.get("course_id")
    for step in done:
        value = step.outputs.get("course_id")
        if isinstance(value, str):
            found = value
    return found if isinstance(found, str) else None


def _message(error: Mapping[str, Any] | None) -> str | None:
    if error is None:
        return None
    return str(error.get("message") or error.get("type") or "failed")
