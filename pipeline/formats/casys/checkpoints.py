"""LayerCheckpoints: the states of layered runs saved, loaded, listed and pruned, over any store. Usable alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.clock import Clock, SystemClock, iso
from pipeline.errors import InvalidValue
from pipeline.formats.casys import finding, reading
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.finding import Mark
from pipeline.formats.casys.ids import checkpoint_id
from pipeline.formats.casys.keeper import Keeper
from pipeline.formats.casys.packing import Gathered, Packer, largest, packed_text, packed_value
from pipeline.formats.casys.reading import LayerCheckpoint
from pipeline.formats.casys.secrets import refuse_secrets
from pipeline.formats.casys.state import WorkflowState, confirmed
from pipeline.records.values import encode_value
from pipeline.store.base import Store

KEEP_COUNT = 5
#: A checkpoint of more bytes than this is warned of.
LARGE_BYTES = 500_000
#: Workflows whose last saved state is kept in memory, so that the next save takes up only what has changed.
_MOST_PACKERS = 4
_log = logging.getLogger("pipeline")


class _Plan(NamedTuple):
    """A DAG that has been checked."""

    dag: Dag
    #: JSON text of its document, and of what it was read from (None: a Dag, or no JSON).
    text: bytes
    given: bytes | None


class LayerCheckpoints:
    """The checkpoints of layered runs in a store."""

    def __init__(
        self,
        store: Store,
        *,
        auto_prune: bool = False,
        keep_count: int = KEEP_COUNT,
        clock: Clock | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """Use a store.

        Args:
            auto_prune: Each save leaves only the newest `keep_count` on the list.
            warn: Told of checkpoints above 500 kB; None: the log is.

        Raises:
            ValueError: keep_count is below 1.
        """
        self._store = store
        self._keep = _kept(keep_count) if auto_prune else None
        self._clock = clock or SystemClock()
        self._warn = warn or _log.warning
        self._lock = threading.Lock()
        self._keeper = Keeper(store, self._clock)
        self._plan: _Plan | None = None
        #: By workflow_id, the one used last at the end.
        self._packers: dict[str, Packer] = {}
        #: Runs that were warned of.
        self._told: set[str] = set()

    def save_checkpoint(
        self, state: WorkflowState, dag: Any, layer_index: int, config: Mapping[str, Any] | None = None
    ) -> LayerCheckpoint:
        """Make the state durable; its checkpoint_id is the new one then.

        Only tasks that have ended are saved, not pending or speculative ones.

        Args:
            dag: A Dag, or what Dag.of takes.
            layer_index: How many leading layers are done.
            config: Settings of the run that the checkpoint is to be gone on with.

        Raises:
            InvalidValue, GraphError: The state or DAG cannot be saved; names the field or task.
            SecretRefused: A setting or a key of the context is named like a secret.
            RunLocked: Another process owns the run.
            WriteFailed: The disk refused; what was saved before stands.
        """
        settings, blobs = dict(config or {}), Gathered()
        state.check()
        ended = [task for task in state.tasks if confirmed(task)]
        with self._lock:
            plan = self._plan_of(dag)
            document = self._document(state, ended, plan, layer_index, settings, blobs)
            with self._keeper.owning(state.workflow_id, plan.dag) as run:
                made = document["id"] = document["state"]["checkpoint_id"] = checkpoint_id(run.run_id, self._clock)
                text = encode_value(document)
                seq = run.keep(text, blobs)
        self._tell_large(run.run_id, document, len(text))
        state.checkpoint_id = made
        stored = WorkflowState(
            state.workflow_id, list(state.messages), ended, list(state.decisions), dict(state.context), made
        )
        return LayerCheckpoint(
            made, state.workflow_id, document["timestamp"], layer_index, stored, plan.dag, settings, seq, run.run_id,
            len(text),
        )  # fmt: skip

    def _document(
        self, state: WorkflowState, ended: list[dict[str, Any]], plan: _Plan, layer_index: int,
        config: Mapping[str, Any], blobs: Gathered,
    ) -> dict[str, Any]:  # fmt: skip
        """The checkpoint as it is recorded, all but its id; what stands out of line is noted in `blobs`."""
        if type(layer_index) is not int or layer_index < 0:
            raise InvalidValue(f"layer_index is {layer_index!r}; it is how many leading layers are done.")
        document = {
            "type": finding.CHECKPOINT,
            "id": "",
            "workflow_id": state.workflow_id,
            "timestamp": iso(self._clock.now()),
            "layer_index": layer_index,
            "keep": self._keep,
            "state": self._packer(state.workflow_id).packed({**vars(state), "tasks": ended}, blobs),
            "dag": packed_text(plan.text, blobs.put),
            "config": packed_value(config, "config", blobs.put),
        }
        # By now they are known to be JSON.
        refuse_secrets(config, "config")
        refuse_secrets(state.context, "context")
        return document

    def load(self, checkpoint: str) -> LayerCheckpoint:
        """A checkpoint by its id; also one that has left the list.

        Raises:
            RunNotFound: There is none of this id.
            CheckpointCorrupt: It cannot be read; says what is wrong, and which older one is whole.
        """
        return reading.load(self._store, checkpoint)

    def latest(self, workflow_id: str) -> LayerCheckpoint | None:
        """The newest checkpoint of a workflow_id (or run); None: it has none.

        Raises:
            CheckpointCorrupt: As `load`.
        """
        found = self._listed(workflow_id)
        return reading.read(self._store, found[0]) if found else None

    def listed(self, workflow_id: str) -> list[dict[str, Any]]:
        """{id, workflow_id, layer_index, timestamp, seq} of the checkpoints on the list, newest first."""
        return [
            {
                "id": mark.id,
                "workflow_id": workflow_id,
                "layer_index": mark.document.get("layer_index"),
                "timestamp": mark.document.get("timestamp"),
                "seq": mark.seq,
            }
            for mark in self._listed(workflow_id)
        ]

    def prune_old_checkpoints(self, workflow_id: str, keep_count: int = KEEP_COUNT) -> int:
        """Take all but the newest off the list; how many. Their records stay, and `load` still finds them.

        Raises:
            ValueError: keep_count is below 1.
            RunLocked, WriteFailed: As `save_checkpoint`.
        """
        keep = _kept(keep_count)
        with self._lock:
            old = self._listed(workflow_id)[keep:]
            if old:
                with self._keeper.owning(workflow_id) as run:
                    run.keep(encode_value({"type": finding.PRUNED, "upto": old[0].seq}), {})
            return len(old)

    def _listed(self, workflow_id: str) -> list[Mark]:
        run_id = self._keeper.run_of(workflow_id)
        return finding.listed(finding.marks(self._store, run_id)) if run_id else []

    def _packer(self, workflow_id: str) -> Packer:
        packer = self._packers.pop(workflow_id) if workflow_id in self._packers else Packer()
        self._packers[workflow_id] = packer
        while len(self._packers) > _MOST_PACKERS:
            del self._packers[next(iter(self._packers))]
        return packer

    def _plan_of(self, dag: Any) -> _Plan:
        """The DAG, checked; one that was seen last is not read again."""
        known = self._plan
        if isinstance(dag, Dag):
            given = None
            if known is not None and known.dag is dag:
                return known
        else:
            given = _text_of(dag)
            if known is not None and given is not None and known.given == given:
                return known
        made = Dag.of(dag)
        document = made.to_json()
        text = encode_value(document, "dag")
        refuse_secrets(document, "dag")
        self._plan = _Plan(made, text, given)
        return self._plan

    def _tell_large(self, run_id: str, document: Mapping[str, Any], size: int) -> None:
        if size > LARGE_BYTES and run_id not in self._told:
            self._told.add(run_id)
            self._warn(
                f"Checkpoint {document['id']} takes {size:,} bytes (more than {LARGE_BYTES // 1000} kB); "
                f"largest: {', '.join(largest(document))}."
            )

    # Names as the system itself writes them.
    saveCheckpoint = save_checkpoint
    loadCheckpoint = load
    getLatestCheckpoint = latest
    pruneOldCheckpoints = prune_old_checkpoints


def _text_of(dag: Any) -> bytes | None:
    """JSON text of what a DAG is read from; None where it holds code."""
    try:
        return encode_value(dag)
    except InvalidValue:
        return None


def _kept(keep_count: int) -> int:
    if type(keep_count) is not int or keep_count < 1:
        raise ValueError(f"keep_count is {keep_count!r}: at least the newest checkpoint stays on the list.")
    return keep_count
