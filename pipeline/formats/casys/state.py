"""WorkflowState: what a layered run tells of itself, the reducers that change it, and how records tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.errors import InvalidValue
from pipeline.formats.casys.dag import ERROR, FAILED_SAFE, SUCCESS, Dag
from pipeline.formats.casys.plan import START, gate_of, node_of, visit_of
from pipeline.formats.packer import Get
from pipeline.records import structure
from pipeline.records.run import RunState, StepRun
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.structure import items, mapping, maybe_text, name
from pipeline.records.values import decode_value, encode_value, resolve_value

#: A task's status that lets its dependents use it; no resume repeats it.
DONE = frozenset({SUCCESS, FAILED_SAFE, "completed"})
#: A claim of this kind names the workflow_id of a run whose checkpoints were saved by hand.
CLAIM_KIND = "layers"


@dataclass
class WorkflowState:
    """Messages, task results, decisions and context of one layered run. JSON values only."""

    #: Never changes.
    workflow_id: str
    messages: list[Any] = field(default_factory=list)
    #: {"taskId", "result", "timestamp", "duration" (milliseconds), "status", …}, one for each task that ended.
    tasks: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    #: The newest checkpoint it was saved as; None: none.
    checkpoint_id: str | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "workflow_id":
            self._refuse_other(value)
        super().__setattr__(name, value)

    def _refuse_other(self, workflow_id: Any) -> None:
        own = vars(self).get("workflow_id", workflow_id)
        if own != workflow_id:
            raise InvalidValue(f"A state of {own!r} cannot become one of {workflow_id!r}.", code="other_workflow")

    def updated(
        self,
        *,
        messages: Iterable[Any] = (),
        tasks: Iterable[Mapping[str, Any]] = (),
        decisions: Iterable[Any] = (),
        context: Mapping[str, Any] | None = None,
        workflow_id: str | None = None,
    ) -> WorkflowState:
        """Return the state after an update: lists grow at their end, context keys are replaced one by one.

        Raises:
            InvalidValue: It would belong to another workflow_id, or is no state.
        """
        self._refuse_other(self.workflow_id if workflow_id is None else workflow_id)
        made = WorkflowState(
            self.workflow_id,
            [*self.messages, *messages],
            [*self.tasks, *map(dict, tasks)],
            [*self.decisions, *decisions],
            {**self.context, **(context or {})},
            self.checkpoint_id,
        )
        made.check()
        return made

    def check(self) -> None:
        """Refuse what is no state.

        Raises:
            InvalidValue: Names the field.
        """
        _check({item.name: getattr(self, item.name) for item in fields(self)})

    def results(self) -> dict[str, Any]:
        """Return the newest result of each task that succeeded or was safe to fail, by id."""
        return {task["taskId"]: task.get("result") for task in self.tasks if task.get("status", SUCCESS) in DONE}

    def to_json(self) -> dict[str, Any]:
        """Return the state under the names of its document; a copy."""
        document = {item.name: getattr(self, item.name) for item in fields(self)}
        copied: dict[str, Any] = decode_value(encode_value(document, "state"))
        return copied

    @classmethod
    def from_json(cls, data: Any) -> WorkflowState:
        """Return the state of a document.

        Raises:
            InvalidValue: A field is missing or of a wrong type; names it.
        """
        _check(data)
        return cls(
            str(data["workflow_id"]), list(data["messages"]), [dict(task) for task in data["tasks"]],
            list(data["decisions"]), dict(data["context"]), data.get("checkpoint_id"),
        )  # fmt: skip


def _task(task: Any) -> str:
    if not isinstance(task, dict):
        return " is not an object"
    if problem := name(task.get("taskId")):
        return ".taskId" + problem
    status = task.get("status", SUCCESS)
    if not isinstance(status, str):
        return ".status is not text"
    return ".result is missing" if status in DONE and "result" not in task else ""


_ANY = items(lambda _: "")
_STATE = structure.fields(
    ("workflow_id", "messages", "tasks", "decisions", "context"),
    workflow_id=name, messages=_ANY, tasks=items(_task), decisions=_ANY, context=mapping, checkpoint_id=maybe_text,
)  # fmt: skip


def _check(data: Any) -> None:
    if problem := structure.problem(data, _STATE):
        raise InvalidValue(f"This is not a state: {problem}.", code="invalid_state")


def confirmed(task: Mapping[str, Any]) -> bool:
    """Return whether a task's entry belongs in a checkpoint: it has ended and is not speculative."""
    speculative = task.get("speculative") is True and task.get("confirmed") is not True
    return not speculative and task.get("status", SUCCESS) in DONE | {ERROR}


# --- a run's records as a state: nothing of it is stored twice ---------------------------------------


def name_of(run: RunState) -> str:
    """Return the workflow_id of a run: its id, unless its checkpoints were saved under another."""
    claim = run.claim
    return str(claim[1]) if claim and claim[-1] == CLAIM_KIND else run.run_id


def state_of(run: RunState, dag: Dag, get: Get, checkpoint_id: str | None = None) -> WorkflowState:
    """Return the state of a run, by layer and declaration; CheckpointCorrupt where a result is damaged."""
    start = visit_of(run, START)
    # What a state saved by hand brought along.
    given: Mapping[str, Any] = {} if start is None else resolve_value(start.outputs, get)
    state = WorkflowState(
        name_of(run), list(given.get("messages", ())), [dict(task) for task in given.get("tasks", ())],
        list(given.get("decisions", ())), {} if start is None else _context(start, get), checkpoint_id,
    )  # fmt: skip
    for task in dag.in_order:
        step = visit_of(run, task)
        if step is None or not step.ended_seq:
            continue
        outputs: Mapping[str, Any] = resolve_value(step.outputs, get)
        if not outputs.get("given"):
            state.tasks.append(task_entry(step, outputs))
        if step.status == COMPLETED:
            state.messages.extend(outputs.get("messages", ()))
            state.context.update(_context(step, get))
    answered = [(answer, *gate) for (path, _), answer in run.decisions.items() if (gate := gate_of(node_of(path)))]
    for answer, kind, layer in sorted(answered, key=lambda row: (row[2], row[1])):
        state.decisions.append({
            "kind": kind, "layer_index": layer, "outcome": answer.choice, "by": answer.by, "note": answer.note,
            "timestamp": answer.at,
        })  # fmt: skip
    return state


def _context(step: StepRun, get: Get) -> dict[str, Any]:
    return {key: resolve_value(value, get) for key, value in step.context.items()}


def task_entry(step: StepRun, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task that ended as the state lists it; duration in milliseconds."""
    status = ERROR if step.status == FAILED else FAILED_SAFE if step.outcome == FAILED_SAFE else SUCCESS
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
