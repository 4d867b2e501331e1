"""LayerCheckpoints: the states of layered runs saved, loaded, listed and pruned, over any store. Usable alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline.clock import Clock, SystemClock, iso
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import host
from pipeline.engine.takeover import record_repairs
from pipeline.errors import InvalidValue, Pause, RunExists
from pipeline.formats.casys import finding, reading
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.finding import Mark
from pipeline.formats.casys.ids import checkpoint_id
from pipeline.formats.casys.packing import Put, largest, packed, packed_text, packed_value
from pipeline.formats.casys.plan import graph_of
from pipeline.formats.casys.reading import LayerCheckpoint
from pipeline.formats.casys.secrets import refuse_secrets
from pipeline.formats.casys.state import WorkflowState, confirmed
from pipeline.records.codec import Record, encode_fact
from pipeline.records.fold import Builder
from pipeline.records.kinds import DocumentKept, RunStarted
from pipeline.records.lines import encode_line
from pipeline.records.values import canonical, digest, encode_value
from pipeline.store.base import Journal, Store
from pipeline.store.reading import records

KEEP_COUNT = 5
#: A checkpoint of more bytes than this is warned of.
LARGE_BYTES = 500_000
_log = logging.getLogger("pipeline")


@dataclass
class _Run:
    """What this process knows of a run it has saved to."""

    builder: Builder
    #: Blobs that were written or verified.
    sound: set[str] = field(default_factory=set)
    warned: bool = False


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
        self._runs: dict[str, _Run] = {}
        #: Runs by workflow_id.
        self._names: dict[str, str] = {}
        self._plan: _Plan | None = None

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
        plan = self._plan_of(dag)
        state.check()
        if type(layer_index) is not int or layer_index < 0:
            raise InvalidValue(f"layer_index is {layer_index!r}; it is how many leading layers are done.")
        settings = dict(config or {})
        for value, where in ((settings, "config"), (state.context, "context")):
            encode_value(value, where)
            refuse_secrets(value, where)
        with self._lock:
            run_id, journal = self._open(state.workflow_id, plan.dag)
            try:
                return self._save(journal, self._runs[run_id], state, plan, layer_index, settings)
            except Pause as pause:
                raise pause.cause from None
            finally:
                journal.close()

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
            if not old:
                return 0
            journal = self._store.open(old[0].run_id)
            try:
                recorder = self._recorder(journal, self._known(journal).builder)
                pruned = encode_value({"type": finding.PRUNED, "upto": old[0].seq})
                recorder.append(DocumentKept(pruned, finding.SOURCE))
                recorder.leave()
            except Pause as pause:
                raise pause.cause from None
            finally:
                journal.close()
            return len(old)

    def _listed(self, workflow_id: str) -> list[Mark]:
        run_id = self._names.get(workflow_id) or finding.run_of(self._store, workflow_id)
        return finding.listed(finding.marks(self._store, run_id)) if run_id else []

    def _open(self, workflow_id: str, dag: Dag) -> tuple[str, Journal]:
        """The run of a workflow_id, owned; made where there is none."""
        run_id = self._names.get(workflow_id) or finding.run_of(self._store, workflow_id)
        if run_id is None:
            try:
                run_id, journal = self._create(workflow_id, dag)
            except RunExists as error:
                # Another process was faster.
                run_id = str(error.data["run"])
                journal = self._store.open(run_id)
        else:
            journal = self._store.open(run_id)
        self._names[workflow_id] = run_id
        try:
            self._known(journal)
        except BaseException:
            journal.close()
            raise
        return run_id, journal

    def _create(self, workflow_id: str, dag: Dag) -> tuple[str, Journal]:
        graph = canonical(graph_of(dag).to_json(), "dag")
        claim = finding.claim_of(workflow_id)
        fact = RunStarted(
            finding.PIPELINE, {"workflow_id": workflow_id}, {}, {}, pins={"graph": digest(graph)},
            claim=claim.to_json(), host=host(),
        )  # fmt: skip
        now = self._clock.now()
        line = encode_line(1, iso(now), 1, encode_fact(fact))
        run_id, journal = self._store.create(line, [graph], at=now, claim=claim)
        builder = Builder(run_id)
        builder.apply(Record(1, iso(now), 1, fact))
        self._runs[run_id] = _Run(builder)
        return run_id, journal

    def _known(self, journal: Journal) -> _Run:
        """The fold of the run, read anew where another process has written since."""
        known = self._runs.get(journal.run_id)
        if known is None or known.builder.state.seq != journal.last_seq or journal.repairs:
            builder = Builder(journal.run_id)
            for record in records(self._store, journal.run_id):
                builder.apply(record)
            known = self._runs[journal.run_id] = _Run(builder)
        return known

    def _recorder(self, journal: Journal, builder: Builder) -> Recorder:
        state = builder.state
        recorder = Recorder(journal, builder, self._clock, owner=state.owner, nodes=(), warn=_log.warning)
        record_repairs(journal, recorder)
        return recorder

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

    def _save(
        self, journal: Journal, run: _Run, state: WorkflowState, plan: _Plan, layer_index: int,
        config: Mapping[str, Any],
    ) -> LayerCheckpoint:  # fmt: skip
        recorder = self._recorder(journal, run.builder)
        made, at = checkpoint_id(journal.run_id, self._clock), iso(self._clock.now())
        stored = WorkflowState(
            state.workflow_id, list(state.messages), [task for task in state.tasks if confirmed(task)],
            list(state.decisions), dict(state.context), made,
        )  # fmt: skip
        put = _once(recorder.put_blob, run.sound)
        document = {
            "type": finding.CHECKPOINT,
            "id": made,
            "workflow_id": state.workflow_id,
            "timestamp": at,
            "layer_index": layer_index,
            "keep": self._keep,
            "state": packed(vars(stored), put),
            "dag": packed_text(plan.text, put),
            "config": packed_value(dict(config), "config", put),
        }
        text = encode_value(document, "checkpoint")
        seq = recorder.append(DocumentKept(text, finding.SOURCE))
        recorder.leave()
        self._tell_large(run, document, len(text))
        state.checkpoint_id = made
        return LayerCheckpoint(made, state.workflow_id, at, layer_index, stored, plan.dag, dict(config), seq,
                               journal.run_id, len(text))  # fmt: skip

    def _tell_large(self, run: _Run, document: Mapping[str, Any], size: int) -> None:
        if size > LARGE_BYTES and not run.warned:
            run.warned = True
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


def _once(put: Put, sound: set[str]) -> Put:
    """Stores what this process has not stored in the run already."""

    def once(data: bytes) -> str:
        blob = digest(data)
        if blob not in sound:
            put(data)
            sound.add(blob)
        return blob

    return once
