"""The WorkflowState of a run, worked out from its records: nothing of it is stored twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.packing import Get
from pipeline.formats.casys.plan import START, gate_of, visit_of
from pipeline.formats.casys.state import ERROR, FAILED_SAFE, SUCCESS, WorkflowState
from pipeline.records.run import RunState, StepRun
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.values import resolve_value

#: A claim of this kind names the workflow_id of a run whose checkpoints were saved by hand.
CLAIM_KIND = "layers"


def name_of(run: RunState) -> str:
    """The workflow_id of a run: its id, unless its checkpoints were saved under another."""
    claim = run.claim
    return str(claim[1]) if claim and claim[-1] == CLAIM_KIND else run.run_id


def state_of(run: RunState, dag: Dag, get: Get, checkpoint_id: str | None = None) -> WorkflowState:
    """The state as the records say it, in the order of layers and declaration.

    Raises:
        CheckpointCorrupt: A result is missing or damaged.
    """
    start = visit_of(run, START)
    # What a state saved by hand brought along.
    given = _outputs(start, get)
    state = WorkflowState(
        name_of(run), list(given.get("messages", ())), [dict(task) for task in given.get("tasks", ())],
        list(given.get("decisions", ())), _context(start, get), checkpoint_id,
    )  # fmt: skip
    for name in dag.in_order:
        step = visit_of(run, name)
        if step is None or not step.ended_seq:
            continue
        outputs = _outputs(step, get)
        if not outputs.get("given"):
            state.tasks.append(task_entry(step, outputs))
        if step.status == COMPLETED:
            state.messages.extend(outputs.get("messages", ()))
            state.context.update(_context(step, get))
    state.decisions.extend(_decisions(run))
    return state


def task_entry(step: StepRun, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """A task that ended, as the state lists it; duration in milliseconds."""
    status = SUCCESS
    if step.status == FAILED:
        status = ERROR
    elif step.outcome == FAILED_SAFE:
        status = FAILED_SAFE
    entry = {
        "taskId": step.node,
        "result": outputs.get("result"),
        "timestamp": step.completed_at,
        "duration": round(step.seconds * 1000, 3),
        "status": status,
    }
    if status != SUCCESS:
        entry["error"] = step.reason if status == FAILED_SAFE else str((step.error or {}).get("message", "failed"))
    return entry


def done_tasks(run: RunState, dag: Dag) -> list[str]:
    """Ids of the tasks that stand, in order of layers and declaration."""
    found = ((name, visit_of(run, name)) for name in dag.in_order)
    return [name for name, step in found if step is not None and step.status == COMPLETED]


def _decisions(run: RunState) -> Iterator[dict[str, Any]]:
    answered = [(answer, *found) for (path, _), answer in run.decisions.items() if (found := gate_of(_node(path)))]
    for answer, kind, layer in sorted(answered, key=lambda row: (row[2], row[1])):
        yield {
            "kind": kind,
            "layer_index": layer,
            "outcome": answer.choice,
            "by": answer.by,
            "note": answer.note,
            "timestamp": answer.at,
        }


def _node(path: str) -> str:
    return path.rpartition("#")[0]


def _outputs(step: StepRun | None, get: Get) -> Mapping[str, Any]:
    if step is None:
        return {}
    found: Mapping[str, Any] = resolve_value(step.outputs, get)
    return found


def _context(step: StepRun | None, get: Get) -> dict[str, Any]:
    return {} if step is None else {key: resolve_value(value, get) for key, value in step.context.items()}
