"""Reads a checkpoint back: a state saved by hand as it was, that of an executed run as its records say up to there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pipeline.errors import CheckpointCorrupt, GraphError, InvalidValue
from pipeline.formats.casys import finding, packing
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.finding import Mark
from pipeline.formats.casys.plan import dag_of
from pipeline.formats.casys.state import WorkflowState
from pipeline.formats.casys.views import name_of, state_of
from pipeline.graph.model import Graph
from pipeline.records.fold import fold
from pipeline.records.run import RunState
from pipeline.store.base import Store
from pipeline.store.reading import records


@dataclass(frozen=True, slots=True)
class LayerCheckpoint:
    """One checkpoint of a layered run."""

    #: In form a UUID of version 4.
    id: str
    workflow_id: str
    #: When it was saved; ISO-8601 UTC. Never an order.
    timestamp: str
    #: How many leading layers were done, as it was saved with.
    layer_index: int
    state: WorkflowState
    dag: Dag
    #: Settings of the run.
    config: Mapping[str, Any]
    #: The order of checkpoints: its record's number in the run.
    seq: int
    run_id: str
    #: Bytes it takes, without what stands out of line.
    size: int

    @property
    def layers_done(self) -> int:
        """How many leading layers are done by what the tasks say: where a resume goes on."""
        return self.dag.layers_done(self.state.results())

    def to_json(self) -> dict[str, Any]:
        """The row of the system's table."""
        return {
            "id": self.id,
            "workflow_id": self.workflow_id,
            "timestamp": self.timestamp,
            "layer_index": self.layer_index,
            "state": self.state.to_json(),
            "dag_structure": self.dag.to_json(),
            "execution_config": dict(self.config),
        }


def load(store: Store, checkpoint: str) -> LayerCheckpoint:
    """A checkpoint by its id.

    Raises:
        RunNotFound: There is none of this id.
        CheckpointCorrupt: It cannot be read; says what is wrong, and which older one is whole.
    """
    return read(store, find(store, checkpoint))


def find(store: Store, checkpoint: str) -> Mark:
    """The record of a checkpoint; raises as `load`."""
    try:
        return finding.find(store, checkpoint)
    except CheckpointCorrupt as error:
        error.hint = _way_back(store, str(error.data["run"]))
        raise


def read(store: Store, mark: Mark) -> LayerCheckpoint:
    """The checkpoint of a record; raises as `load`."""
    try:
        return _read(store, mark)
    except CheckpointCorrupt as error:
        error.hint = _way_back(store, mark.run_id, mark.seq)
        raise


def check(store: Store, mark: Mark) -> None:
    """Refuse a record that is no checkpoint, without reading its state; raises as `load`."""
    if why := problem(mark.document):
        raise _unreadable(mark, why, hint=_way_back(store, mark.run_id, mark.seq))


def _read(store: Store, mark: Mark) -> LayerCheckpoint:
    try:
        if why := problem(mark.document):
            raise CheckpointCorrupt(why)
        return _saved(store, mark) if "state" in mark.document else _executed(store, mark)
    except (CheckpointCorrupt, InvalidValue, GraphError) as error:
        raise _unreadable(mark, error.message) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(mark, f"{type(error).__name__}: {error}") from error


def _unreadable(mark: Mark, why: str, hint: str = "") -> CheckpointCorrupt:
    message = f"Checkpoint {mark.id} cannot be read: {why.rstrip('.')}."
    return CheckpointCorrupt(message, hint=hint, run=mark.run_id, checkpoint=mark.id)


def _way_back(store: Store, run_id: str, before: int | None = None) -> str:
    """What to do where a checkpoint cannot be read: the newest (older than `before`) that can be."""
    for mark in finding.checkpoints_in(finding.marks(store, run_id)):
        if before is not None and mark.seq >= before:
            continue
        try:
            found = _read(store, mark)
        except CheckpointCorrupt:
            continue
        return f"Checkpoint {found.id} before it (layers done: {found.layer_index}) is whole: resume from that one."
    return "No older checkpoint of it can be read either."


def problem(document: Mapping[str, Any]) -> str:
    """Why a record is no checkpoint; "" if it is one."""
    for name in ("id", "workflow_id", "timestamp"):
        if not isinstance(document.get(name), str) or not document[name]:
            return f"{name} is missing, empty or no text"
    index = document.get("layer_index")
    if type(index) is not int or index < 0:
        return "layer_index is no count"
    for name in ("dag", "config") if "state" in document else ():
        if not isinstance(document.get(name), Mapping):
            return f"{name} is missing or no object"
    return ""


def _saved(store: Store, mark: Mark) -> LayerCheckpoint:
    document = mark.document

    def get(blob: str) -> bytes:
        return store.get_blob(mark.run_id, blob)

    state = WorkflowState.from_json(packing.unpacked(document["state"], get))
    if state.workflow_id != document["workflow_id"]:
        raise CheckpointCorrupt(f"Its state is of {state.workflow_id!r}, the checkpoint of {document['workflow_id']!r}")
    dag = Dag.of(packing.unpacked_value(document["dag"], get))
    config = packing.unpacked_value(document["config"], get)
    return _made(mark, state, dag, config)


def _executed(store: Store, mark: Mark) -> LayerCheckpoint:
    run = fold(mark.run_id, takewhile(lambda record: record.seq <= mark.seq, records(store, mark.run_id)))
    dag = dag_of(graph_in(store, run))
    state = state_of(run, dag, lambda blob: store.get_blob(mark.run_id, blob), mark.id)
    if state.workflow_id != mark.document["workflow_id"]:
        raise CheckpointCorrupt(f"Its run is of {name_of(run)!r}")
    return _made(mark, state, dag, config_in(store, run))


def _made(mark: Mark, state: WorkflowState, dag: Dag, config: Mapping[str, Any]) -> LayerCheckpoint:
    document = mark.document
    return LayerCheckpoint(
        mark.id, state.workflow_id, str(document["timestamp"]), document["layer_index"], state, dag, config, mark.seq,
        mark.run_id, len(mark.text),
    )  # fmt: skip


def graph_in(store: Store, run: RunState) -> Graph:
    """The graph that a run is pinned to.

    Raises:
        CheckpointCorrupt: It has none, or it is damaged.
    """
    return Graph.from_json(_pin(store, run, "graph"))


def config_in(store: Store, run: RunState) -> dict[str, Any]:
    """The settings that an executed run is pinned to; {} of one that was only saved to."""
    return dict(_pin(store, run, "config")) if "config" in run.pins else {}


def _pin(store: Store, run: RunState, name: str) -> Any:
    if name not in run.pins:
        raise CheckpointCorrupt(f"Run {run.run_id} is pinned to no {name}.")
    return json.loads(store.get_blob(run.run_id, run.pins[name]))
