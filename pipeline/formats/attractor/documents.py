"""Checkpoint documents of the Attractor family: read into one form, and written so that all of it can read them.

Read: the six fields of the specification, the nine of its paraphrase (seeds/000), the three of run_dot (seeds/004),
its execution.log.json, and the checkpoint.json of a run of ours. A run that another system began
is resumed from one: by the edge that was chosen; else by what the router chooses from the stored outcome; a node that
had not completed runs (again), and so does one whose failure nothing accepts.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from pipeline.clock import SystemClock, iso
from pipeline.engine.routing import Router, Settled, by_label
from pipeline.errors import CheckpointCorrupt, GraphError, InvalidValue, RunNotFound, StoreError
from pipeline.files import read_regular
from pipeline.formats.attractor.outcome import FAIL, SKIPPED, SUCCESS, normalise
from pipeline.graph.model import Graph
from pipeline.records.fold import Builder
from pipeline.records.kinds import Snapshot
from pipeline.records.run import RunState, StepRun
from pipeline.records.snapshots import take
from pipeline.records.values import encode_value, resolve_value
from pipeline.store.disk import Disk, write_file
from pipeline.store.head import HEAD, parse_head, sealed
from pipeline.store.names import JOURNAL
from pipeline.store.run_folder import read_value


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a graph's run stands."""

    #: The run's key-value map; JSON values.
    context: Mapping[str, Any]
    #: The node last looked at: completed if it is in `completed_nodes`, else about to run. "": none yet.
    current_node_id: str = ""
    #: Nodes in order of their ends; one that a loop visits again is listed again.
    completed_nodes: Sequence[str] = ()
    #: (node, outcome) of every visit that ended; (): the completed nodes succeeded.
    node_history: Sequence[tuple[str, str]] = ()
    #: The node whose edge was chosen and not yet taken; "": to be chosen.
    next_node_id: str = ""
    #: Retries used by nodes that have not succeeded since.
    node_retries: Mapping[str, int] = field(default_factory=dict)
    #: Goal gate → satisfied, failed or pending.
    goal_gate_status: Mapping[str, Any] = field(default_factory=dict)
    fidelity_state: Mapping[str, Any] = field(default_factory=dict)
    logs: Sequence[str] = ()
    run_id: str = ""
    pipeline_name: str = ""
    #: When it was made, ISO 8601; no part of what a checkpoint is.
    timestamp: str = field(default="", compare=False)

    @property
    def completed(self) -> bool:
        """Return whether the current node has ended."""
        return self.current_node_id in self.completed_nodes

    @property
    def outcome(self) -> str:
        """Return the outcome of the current node's last visit; "success" if the document does not say."""
        for node, outcome in reversed(self.node_history):
            if node == self.current_node_id:
                return outcome
        said = self.context.get("outcome")
        return outcome_word(said) if isinstance(said, str) and said else SUCCESS

    def visits(self) -> list[tuple[str, str]]:
        """Return (node, outcome) of every visit that ended, in order."""
        if self.node_history:
            return list(self.node_history)
        return [(node, self.outcome if node == self.current_node_id else SUCCESS) for node in self.completed_nodes]

    def to_json(self) -> dict[str, Any]:
        """Return it as checkpoint.json: the names of all dialects side by side."""
        last = self.completed_nodes[-1] if self.completed_nodes else ""
        return {
            "run_id": self.run_id,
            "pipeline_name": self.pipeline_name,
            "timestamp": self.timestamp,
            "current_node": self.current_node_id if self.completed else last,
            "current_node_id": self.current_node_id,
            "completed_nodes": list(self.completed_nodes),
            "context": dict(self.context),
            "outcome": {"status": self.outcome} if self.completed else None,
            "node_history": [list(pair) for pair in self.node_history],
            "node_retries": dict(self.node_retries),
            "goal_gate_status": dict(self.goal_gate_status),
            "fidelity_state": dict(self.fidelity_state),
            "next_node_id": self.next_node_id,
            "logs": list(self.logs),
        }


@lru_cache(maxsize=1024)
def outcome_word(text: str) -> str:
    """Return an outcome in this program's spelling; run_dot's execution log says Error."""
    word = normalise(text)
    return FAIL if word.lower() == "error" else word


def save_checkpoint(path: Path | str, cp: Checkpoint) -> None:
    """Write a checkpoint, atomically and durably; of a folder the checkpoint.json in it.

    Raises:
        InvalidValue: The context holds a value that is not JSON; names the key.
        StoreError: The place is a run's own folder, whose journal alone says where it stands.
        OSError: It could not be written; the former one is kept.
    """
    target = _file(path)
    if os.path.lexists(target.parent / JOURNAL):
        raise StoreError(
            f"{target.parent} holds a run; its checkpoint.json follows the journal and is not written by hand.",
            code="folder_holds_run", hint=f"Save elsewhere, or resume the run: --resume {target.parent}",
        )  # fmt: skip
    document = cp.to_json()
    document["timestamp"] = cp.timestamp or iso(SystemClock().now())
    encode_value(document, "checkpoint")
    data = json.dumps(document, indent=2, allow_nan=False).encode("ascii") + b"\n"
    disk = Disk()
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        write_file(disk, aside, data)
        disk.replace(aside, target)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    disk.sync_folder(target.parent)


def load_checkpoint(path: Path | str) -> Checkpoint:
    """Return the checkpoint in a file; of a folder the checkpoint.json (else execution.log.json) in it.

    Raises:
        RunNotFound: There is no such file.
        CheckpointCorrupt: It is damaged, or says no position; names what is wrong.
    """
    target = _file(path, "execution.log.json")
    try:
        raw = read_regular(target)
    except FileNotFoundError:
        raise RunNotFound(f"There is no checkpoint {target}.", hint="Name its file or its folder.") from None
    except OSError as error:
        raise CheckpointCorrupt(f"{target} cannot be read: {error.strerror}.") from error
    document = parse_head(raw)
    if document is None:
        raise CheckpointCorrupt(f"{target} is not a JSON object: it was cut off, or is another file.")
    if b'"crc": "' in raw[-40:] and not sealed(raw):
        raise CheckpointCorrupt(
            f"{target} was damaged or edited: its crc does not fit.", hint="Remove its crc to load it as it is."
        )
    try:
        return read_document(document, partial(read_value, target.parent))
    except CheckpointCorrupt as error:
        error.args = (f"{target} is not a checkpoint: {error.message}",)
        raise


def _file(path: Path | str, other: str = "") -> Path:
    target = Path(os.path.expanduser(path))
    if not target.is_dir():
        return target
    return target / other if other and not (target / HEAD).exists() and (target / other).exists() else target / HEAD


def read_document(document: Mapping[str, Any], get_blob: Callable[[str], bytes] | None = None) -> Checkpoint:
    """Return the checkpoint that a document of any dialect says.

    Args:
        get_blob: Reads the long values that a run of ours keeps beside its checkpoint.json.

    Raises:
        CheckpointCorrupt: A field is missing or of a wrong type; names it.
    """
    try:
        encode_value(dict(document), "checkpoint")
    except InvalidValue as error:
        raise CheckpointCorrupt(error.message) from None
    if isinstance(document.get("steps"), list) and "current_node" not in document:
        return _of_execution_log(document)
    if "current_node" not in document and "current_node_id" not in document:
        raise CheckpointCorrupt("it has neither current_node nor current_node_id.")
    context = _object(document, "context", needed=True)
    if get_blob is not None:
        context = {key: resolve_value(value, get_blob) for key, value in context.items()}
    history = [_pair(entry) for entry in _list(document, "node_history")]
    completed, last = list(_list(document, "completed_nodes")), _text(document, "current_node")
    if not all(isinstance(item, str) and item for item in completed):
        raise CheckpointCorrupt("completed_nodes is not a list of node ids.")
    if not completed:
        completed = [node for node, _ in history] or ([last] if last else [])
    elif last and last not in completed:
        completed.append(last)
    retries = _object(document, "node_retries")
    if not all(type(count) is int and count >= 0 for count in retries.values()):
        raise CheckpointCorrupt("node_retries holds a value that is not a count.")
    found = Checkpoint(
        context, _text(document, "current_node_id") or last, tuple(completed), tuple(history),
        _text(document, "next_node_id"), dict(retries), _object(document, "goal_gate_status"),
        _object(document, "fidelity_state"), tuple(str(line) for line in _list(document, "logs")),
        _text(document, "run_id"), _text(document, "pipeline_name"), _text(document, "timestamp"),
    )  # fmt: skip
    said = _status(document.get("outcome"))
    if history or not last or said in ("", found.outcome):
        return found
    return replace(found, node_history=tuple((node, said if node == last else SUCCESS) for node in completed))


def _of_execution_log(document: Mapping[str, Any]) -> Checkpoint:
    """Return the last step of run_dot's execution.log.json, version 1."""
    if document.get("version") != 1:
        raise CheckpointCorrupt(f"it is an execution log of version {document.get('version')!r}; version 1 is known.")
    steps = [step for step in _list(document, "steps") if isinstance(step, Mapping)]
    history = [(_text(step, "node_id", needed=True), _status(step.get("outcome")) or SUCCESS) for step in steps]
    if not steps:
        return Checkpoint({"graph.goal": document.get("goal") or ""})
    following = steps[-1].get("next_node_id") or ""
    completed = [node for node, _ in history]
    if not following and document.get("final_status") != SUCCESS and history[-1][1] == FAIL:
        # It failed there and nothing accepted that: the step is to be made again.
        completed.pop()
    return Checkpoint(
        _object(steps[-1], "context_after", needed=True), history[-1][0], tuple(completed),
        tuple(history[: len(completed)]), str(following),
        timestamp=str(document.get("finished_at") or document.get("started_at") or ""),
    )  # fmt: skip


def _status(outcome: Any) -> str:
    """Return the word of an outcome: a text, or an object that has one."""
    if isinstance(outcome, Mapping):
        outcome = outcome.get("status") or outcome.get("outcome")
    return outcome_word(outcome) if isinstance(outcome, str) else ""


def _pair(entry: Any) -> tuple[str, str]:
    if isinstance(entry, Mapping):
        node, outcome = entry.get("node_id") or entry.get("node"), entry.get("outcome") or entry.get("status")
    elif isinstance(entry, (list, tuple)) and len(entry) == 2:
        node, outcome = entry
    else:
        raise CheckpointCorrupt("an entry of node_history is not a pair of node and outcome.")
    if not isinstance(node, str) or not node:
        raise CheckpointCorrupt("an entry of node_history names no node.")
    return node, _status(outcome) or SUCCESS


def _text(document: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    value = document.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise CheckpointCorrupt(f"{name} is not text.")
    return value


def _object(document: Mapping[str, Any], name: str, *, needed: bool = False) -> Mapping[str, Any]:
    value = document.get(name)
    if value is None and not needed:
        return {}
    if not isinstance(value, Mapping):
        raise CheckpointCorrupt(f"{name} is missing." if value is None else f"{name} is not an object.")
    return value


def _list(document: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = document.get(name)
    if value is not None and not isinstance(value, list):
        raise CheckpointCorrupt(f"{name} is not a list.")
    return value or ()


# The state document that a new run of ours begins from

#: (edge id, path of the visit that chose it).
Token = tuple[str, str]


def entry_document(
    checkpoint: Checkpoint,
    graph: Graph,
    router: Router | None = None,
    *,
    pipeline: str = "",
    base: Mapping[str, Any] | None = None,
    rerun_current: bool = False,
) -> dict[str, Any]:
    """Return the document to start a run from; see Engine.start(imported=…).

    Args:
        pipeline: The graph's name.
        base: Context keys that hold if the checkpoint says nothing of them (those of the graph itself).
        rerun_current: Run the current node (again) whether it completed or not.

    Raises:
        GraphError: The checkpoint names nodes that the graph does not have.
    """
    visits = checkpoint.visits()
    named = dict.fromkeys([checkpoint.current_node_id, checkpoint.next_node_id, *(node for node, _ in visits)])
    unknown = [name for name in named if name and name not in graph.nodes]
    if unknown:
        raise GraphError(
            f"The checkpoint is of another graph: it names {', '.join(unknown[:5])}, which this one does not have.",
            code="unknown_node", hint="Give the graph it was made with.", nodes=unknown,
        )  # fmt: skip
    context = {**(base or {}), **checkpoint.context}
    if not visits and (checkpoint.current_node_id not in ("", graph.start) or context):
        # What is known is known from the start node on, which itself has not been recorded.
        visits = [(graph.start, SKIPPED)]
    counts: dict[str, int] = {}
    steps: list[dict[str, Any]] = []
    for node, outcome in visits:
        counts[node] = counts.get(node, 0) + 1
        steps.append({"step": node, "path": f"{node}#{counts[node]}", "status": "completed", "outcome": outcome})
    if steps:
        # What the visits set is recorded with the last.
        steps[-1]["context"] = context
    document: dict[str, Any] = {
        "pipeline": pipeline or checkpoint.pipeline_name,
        "status": "in_progress",
        "completed_steps": steps,
        "attractor": {**checkpoint.to_json(), "context": {}},
    }
    builder = Builder("")
    take(builder.state, 1, Snapshot(document))
    position = _position(checkpoint, builder.state, graph, router or by_label, rerun_current)
    document["position"] = [list(token) for token in position]
    # Retries used count on for the visit that comes.
    document["attempts"] = {
        f"{node}#{counts.get(node, 0) + 1}": used + 1 for node, used in checkpoint.node_retries.items() if used
    }
    return document


def _position(checkpoint: Checkpoint, state: RunState, graph: Graph, router: Router, rerun: bool) -> list[Token]:
    last = list(state.steps.values())[-1] if state.steps else None
    current = checkpoint.current_node_id
    if last is None:
        return [("", "")]
    if not current and not checkpoint.next_node_id:
        return _led_on(last, graph, router, state)
    if rerun or not (checkpoint.completed or checkpoint.next_node_id):
        return [("", "")] if current == graph.start and last.node != graph.start else [_edge(last, current, graph)]
    source = next((step for step in reversed(state.steps.values()) if step.node == current), last)
    if checkpoint.next_node_id:
        return [_edge(source, checkpoint.next_node_id, graph)]
    return _led_on(source, graph, router, state)


def _led_on(step: StepRun, graph: Graph, router: Router, state: RunState) -> list[Token]:
    """Return what the router makes of a visit's stored outcome."""
    failed = step.outcome == FAIL
    error = {"type": "StepFailed", "message": "It had failed."} if failed else None
    said = {key: state.context[key] for key in ("preferred_label", "suggested_next_ids") if state.context.get(key)}
    outcome = SUCCESS if step.outcome == SKIPPED else step.outcome
    route = router(Settled(
        graph, graph.nodes[step.node], step.path, step.visit, 1, outcome, failed, error, said, state.context, {},
        step.consumed, state,
    ))  # fmt: skip
    if route.edges:
        return [(edge, step.path) for edge in route.edges]
    if route.retry_seconds is None and not (failed if route.failed is None else route.failed):
        return []
    return [_edge(step, step.node, graph)]


def _edge(source: StepRun, target: str, graph: Graph) -> Token:
    """Return the edge between the two; if there is none, one that only this run knows."""
    known = (edge.id for edge in graph.outgoing(source.node) if edge.target == target)
    return next(known, f"{source.node}->{target}"), source.path
