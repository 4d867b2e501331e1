"""LayerCheckpoints: the states of layered runs saved, loaded, listed and pruned, over any store. Usable alone."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

from pipeline.clock import Clock, SystemClock, iso
from pipeline.engine.setup import host
from pipeline.errors import CheckpointCorrupt, GraphError, InvalidValue, RunExists, RunNotFound
from pipeline.formats import packer, shelf
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.plan import PIPELINE, SOURCE, START, dag_of, graph_of
from pipeline.formats.casys.settings import KEEP_COUNT, refuse_secrets
from pipeline.formats.casys.state import CLAIM_KIND, WorkflowState, confirmed, state_of
from pipeline.formats.shelf import Document, Holder, documents
from pipeline.graph.model import Graph
from pipeline.records import structure
from pipeline.records.codec import lines_of
from pipeline.records.fold import fold
from pipeline.records.kinds import RunStarted
from pipeline.records.lines import line_seq
from pipeline.records.structure import count, mapping, name
from pipeline.records.values import canonical, digest, encode_value
from pipeline.store.base import Claim, Head, Journal, Store
from pipeline.store.names import is_id
from pipeline.store.reader import records

CHECKPOINT, PRUNED = "checkpoint", "pruned"
#: A checkpoint of more bytes than this causes a warning.
LARGE_BYTES = 500_000
#: Workflows whose last saved state is kept in memory, so that the next save encodes only what has changed.
_MOST_PACKERS = 4
_log = logging.getLogger("pipeline")


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
    #: Bytes it takes, without what is stored out of line.
    size: int

    @property
    def layers_done(self) -> int:
        """Return how many leading layers are done by the tasks' own entries: where a resume continues."""
        return self.dag.layers_done(self.state.results())

    def to_json(self) -> dict[str, Any]:
        """Return the row of the system's table."""
        return {
            "id": self.id,
            "workflow_id": self.workflow_id,
            "timestamp": self.timestamp,
            "layer_index": self.layer_index,
            "state": self.state.to_json(),
            "dag_structure": self.dag.to_json(),
            "execution_config": dict(self.config),
        }


class _CheckedDag(NamedTuple):
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
            warn: Called about checkpoints above 500 kB; None: they are logged.

        Raises:
            ValueError: keep_count is below 1.
        """
        self._store = store
        self._keep = _checked_count(keep_count) if auto_prune else None
        self._clock = clock or SystemClock()
        self._warn = warn or _log.warning
        self._lock = threading.Lock()
        self._dag: _CheckedDag | None = None
        #: By workflow_id: the runs, and the packers, the one used last at the end.
        self._holders: dict[str, Holder] = {}
        self._packers: dict[str, packer.StatePacker] = {}
        #: Runs that were warned of.
        self._warned: set[str] = set()

    def save_checkpoint(
        self, state: WorkflowState, dag: Any, layer_index: int, config: Mapping[str, Any] | None = None
    ) -> LayerCheckpoint:
        """Make the state durable and set its checkpoint_id to the new one.

        Only tasks that have ended are saved, not pending or speculative ones.

        Args:
            dag: A Dag, or what Dag.of takes.
            layer_index: How many leading layers are done.
            config: Settings of the run, for a resume from the checkpoint.

        Raises:
            InvalidValue, GraphError: The state or DAG cannot be saved; names the field or task.
            SecretRefused: A setting or a key of the context is named like a secret.
            RunLocked: Another process owns the run.
            WriteFailed: The disk refused; what was saved before is kept.
        """
        settings, blobs = dict(config or {}), packer.Gathered()
        state.check()
        ended = [task for task in state.tasks if confirmed(task)]
        with self._lock:
            plan = self._checked(dag)
            if type(layer_index) is not int or layer_index < 0:
                raise InvalidValue(
                    f"layer_index is {layer_index!r}; it is how many leading layers are done.",
                    code="invalid_layer_index",
                )
            head = head_of("", state.workflow_id, iso(self._clock.now()), layer_index, self._keep)
            packed = self._packer(state.workflow_id).packed({**vars(state), "tasks": ended}, blobs)
            document = {**head, **parts_of(packed, plan.text, settings, blobs)}
            # By now they are known to be JSON.
            refuse_secrets(settings, "config")
            refuse_secrets(state.context, "context")
            with self._owning(state.workflow_id, plan.dag) as (holder, journal):
                made = document["id"] = packed["checkpoint_id"] = shelf.checkpoint_id(
                    self._clock.new_id(), holder.run_id
                )
                text = encode_value(document)
                seq = holder.add(journal, [text], blobs, self._clock.stamp())
        if len(text) > LARGE_BYTES and holder.run_id not in self._warned:
            self._warned.add(holder.run_id)
            self._warn(
                f"Checkpoint {made} takes {len(text):,} bytes (more than {LARGE_BYTES // 1000} kB); "
                f"largest: {', '.join(packer.largest(document))}."
            )
        state.checkpoint_id = made
        stored = WorkflowState(
            state.workflow_id, list(state.messages), ended, list(state.decisions), dict(state.context), made
        )
        return _made(Document(holder.run_id, seq, text), document, stored, plan.dag, settings)

    def load(self, checkpoint: str) -> LayerCheckpoint:
        """Return a checkpoint by its id; also one that has left the list.

        Raises:
            RunNotFound: There is none of this id.
            CheckpointCorrupt: It cannot be read; says what is wrong, and which older one is whole.
        """
        return read(self._store, find(self._store, checkpoint))

    def latest(self, workflow_id: str) -> LayerCheckpoint | None:
        """Return the newest checkpoint of a workflow_id (or run); None if it has none.

        Raises:
            CheckpointCorrupt: As `load`.
        """
        found = self._listed(workflow_id)
        return read(self._store, found[0]) if found else None

    def listed(self, workflow_id: str) -> list[dict[str, Any]]:
        """Return {id, workflow_id, layer_index, timestamp, seq} of the checkpoints on the list, newest first."""
        rows = []
        for document in self._listed(workflow_id):
            content = document.content
            rows.append({
                "id": str(content.get("id")), "workflow_id": workflow_id, "layer_index": content.get("layer_index"),
                "timestamp": content.get("timestamp"), "seq": document.seq,
            })  # fmt: skip
        return rows

    def prune_old_checkpoints(self, workflow_id: str, keep_count: int = KEEP_COUNT) -> int:
        """Take all but the newest off the list and return how many. Their records stay, and `load` still finds them.

        Raises:
            ValueError: keep_count is below 1.
            RunLocked, WriteFailed: As `save_checkpoint`.
        """
        keep = _checked_count(keep_count)
        with self._lock:
            old = self._listed(workflow_id)[keep:]
            if old:
                with self._owning(workflow_id) as (holder, journal):
                    holder.add(journal, [{"type": PRUNED, "upto": old[0].seq}], {}, self._clock.stamp())
            return len(old)

    def _listed(self, workflow_id: str) -> list[Document]:
        holder = self._holders.get(workflow_id)
        run_id = holder.run_id if holder is not None else run_of(self._store, workflow_id)
        if run_id is None:
            return []
        found = list(documents(self._store, run_id, SOURCE))
        pruned = max((int(each.content.get("upto", 0)) for each in found if _is(each, PRUNED)), default=0)
        kept = [each for each in checkpoints_in(found) if each.seq > pruned]
        keep = kept[0].content.get("keep") if kept else None
        return kept[:keep] if isinstance(keep, int) else kept

    def _packer(self, workflow_id: str) -> packer.StatePacker:
        known = self._packers.pop(workflow_id) if workflow_id in self._packers else packer.StatePacker()
        self._packers[workflow_id] = known
        while len(self._packers) > _MOST_PACKERS:
            del self._packers[next(iter(self._packers))]
        return known

    def _checked(self, dag: Any) -> _CheckedDag:
        """Return the DAG, checked; the one that was used last is not read again."""
        known, given = self._dag, None
        if not isinstance(dag, Dag):
            # What holds code is no JSON.
            with suppress(InvalidValue):
                given = encode_value(dag)
        if known is not None and (known.dag is dag or (given is not None and known.given == given)):
            return known
        made = Dag.of(dag)
        document = made.to_json()
        text = encode_value(document, "dag")
        refuse_secrets(document, "dag")
        self._dag = _CheckedDag(made, text, given)
        return self._dag

    @contextmanager
    def _owning(self, workflow_id: str, dag: Dag | None = None) -> Iterator[tuple[Holder, Journal]]:
        """Own the run of a workflow_id; it is made for the DAG where there is none."""
        holder, journal = self._opened(workflow_id, dag)
        self._holders[workflow_id] = holder
        try:
            yield holder, journal
        finally:
            journal.close()

    def _opened(self, workflow_id: str, dag: Dag | None) -> tuple[Holder, Journal]:
        known, at = self._holders.pop(workflow_id, None), self._clock.stamp()
        if known is not None:
            # It may have been removed meanwhile.
            with suppress(RunNotFound):
                return known, known.own(self._store, at)
        run_id = run_of(self._store, workflow_id)
        if run_id is None:
            if dag is None:
                raise RunNotFound(f"Nothing was saved of {workflow_id!r}.")
            try:
                return self._begun(workflow_id, dag, at)
            except RunExists as error:
                # Another process was faster.
                run_id = str(error.data["run"])
        holder = Holder(run_id, SOURCE)
        return holder, holder.own(self._store, at)

    def _begun(self, workflow_id: str, dag: Dag, at: str) -> tuple[Holder, Journal]:
        graph, claim = canonical(graph_of(dag).to_json(), "graph"), _claim_of(workflow_id)
        fact = RunStarted(
            PIPELINE, {"workflow_id": workflow_id}, {}, {}, pins={"graph": digest(graph)}, claim=claim.to_json(),
            host=host(),
        )  # fmt: skip
        lines = lines_of([fact], at)
        run_id, journal = self._store.create(lines[0], [graph], at=self._clock.now(), claim=claim)
        holder = Holder(run_id, SOURCE)
        holder.read(lines)
        return holder, journal

    # Names as the system itself writes them.
    saveCheckpoint = save_checkpoint
    loadCheckpoint = load
    getLatestCheckpoint = latest
    pruneOldCheckpoints = prune_old_checkpoints


def _checked_count(keep_count: int) -> int:
    if type(keep_count) is not int or keep_count < 1:
        raise ValueError(f"keep_count is {keep_count!r}: at least the newest checkpoint stays on the list.")
    return keep_count


# --- where checkpoints are ------------------------------------------------------------------------


def head_of(made: str, workflow_id: str, at: str, layer_index: int, keep: int | None) -> dict[str, Any]:
    """Return what the record of a checkpoint begins with."""
    return {
        "type": CHECKPOINT, "id": made, "workflow_id": workflow_id, "timestamp": at, "layer_index": layer_index,
        "keep": keep,
    }  # fmt: skip


def parts_of(state: Mapping[str, Any], dag: bytes, config: Mapping[str, Any], blobs: packer.Gathered) -> dict[str, Any]:
    """Return the state (packed), DAG (JSON text) and settings of a run as the record of a checkpoint holds them."""
    dag_text, settings = packer.packed_text(dag, blobs.put), packer.packed_value(dict(config), "config", blobs.put)
    return {"state": state, "dag": json.loads(dag_text), "config": settings}


def checkpoints_in(found: list[Document]) -> list[Document]:
    """Return all checkpoints among the documents of a run, newest first: seq decides, never the clock."""
    return [each for each in found if _is(each, CHECKPOINT)][::-1]


def _is(document: Document, kind: str) -> bool:
    return document.text.startswith(b'{"type":"%s"' % kind.encode("ascii"))


def _claim_of(workflow_id: str) -> Claim:
    return Claim(PIPELINE, workflow_id, "", CLAIM_KIND)


def run_of(store: Store, workflow_id: str) -> str | None:
    """Return the run of a workflow_id: the run of that name, else the newest whose checkpoints were saved under it."""
    if is_id(workflow_id) and shelf.exists(store, workflow_id):
        return workflow_id
    claim = _claim_of(workflow_id).to_json()
    found = next(store.heads(lambda document: document.get("claim") == claim), None)
    return None if found is None else found.run_id


def find(store: Store, checkpoint: str) -> Document:
    """Return the record of a checkpoint, whichever run it is in.

    Raises:
        RunNotFound: No run has it.
        CheckpointCorrupt: Its run is damaged where it must have been; says which older checkpoint is whole.
    """
    wanted = checkpoint.strip().lower()
    own: list[Head] = []
    others: list[Head] = []
    for head in store.heads() if shelf.is_checkpoint_id(wanted) else ():
        (own if wanted.startswith(shelf.run_mark(head.run_id)) else others).append(head)
    for head in [*own, *others]:
        for found in documents(store, head.run_id, SOURCE, holding=b'"id":"%s"' % wanted.encode("ascii")):
            if found.content.get("id") == wanted:
                return found
    for head in own:
        if damage := _damage(store, head):
            raise CheckpointCorrupt(
                f"Checkpoint {wanted} cannot be read: {damage}.", hint=_way_back(store, head.run_id), run=head.run_id
            )
    raise RunNotFound(f"There is no checkpoint {checkpoint!r}.", checkpoint=checkpoint)


def _damage(store: Store, head: Head) -> str:
    """Return what is missing from a run; "" if nothing is."""
    last, first = 0, 0
    for line in store.read(head.run_id):
        if (seq := line_seq(line)) != last + 1:
            first, last = last + 1, seq - 1
            break
        last = seq
    known = head.document.get("seq")
    if not first and isinstance(known, int) and known > last:
        first, last = last + 1, known
    if not first:
        return head.corrupt or str(head.document.get("lost") or "").rstrip(".")
    what = f"record {first} of run {head.run_id} is" if first == last else (
        f"records {first} to {last} of run {head.run_id} are"
    )  # fmt: skip
    return f"{what} damaged or gone"


def _way_back(store: Store, run_id: str, before: int | None = None) -> str:
    """Return what to do where a checkpoint cannot be read: use the newest (older than `before`) that can be."""
    for each in checkpoints_in(list(documents(store, run_id, SOURCE))):
        if before is None or each.seq < before:
            with suppress(CheckpointCorrupt):
                found = _read(store, each)
                return f"Checkpoint {found.id} before it (layers done: {found.layer_index}) is whole: resume from it."
    return "No older checkpoint of it can be read either."


# --- reading one back: a state saved by hand as it was, that of an executed run as its records tell up to there ---


def read(store: Store, document: Document) -> LayerCheckpoint:
    """Return the checkpoint of a record; CheckpointCorrupt says what is wrong, and which older one is whole."""
    try:
        return _read(store, document)
    except CheckpointCorrupt as error:
        error.hint = _way_back(store, document.run_id, document.seq)
        raise


_RECORD = {"id": name, "workflow_id": name, "timestamp": name, "layer_index": count, "dag": mapping, "config": mapping}
_IDS = ("id", "workflow_id", "timestamp", "layer_index")
_EXECUTED = structure.fields(_IDS, **_RECORD)
_SAVED = structure.fields((*_IDS, "dag", "config"), **_RECORD)


def check(store: Store, document: Document) -> None:
    """Refuse a record that is no checkpoint, without reading its state; raises as `read`."""
    if why := _problem(document.content):
        raise _unreadable(document, why, hint=_way_back(store, document.run_id, document.seq))


def _problem(content: Mapping[str, Any]) -> str:
    return structure.problem(content, _SAVED if "state" in content else _EXECUTED)


def _unreadable(document: Document, why: str, hint: str = "") -> CheckpointCorrupt:
    made = document.content.get("id")
    message = f"Checkpoint {made} cannot be read: {why.rstrip('.')}."
    return CheckpointCorrupt(message, hint=hint, run=document.run_id, checkpoint=made)


def _read(store: Store, document: Document) -> LayerCheckpoint:
    content = document.content
    try:
        if why := _problem(content):
            raise CheckpointCorrupt(why)
        return (_saved if "state" in content else _executed)(store, document, content)
    except (CheckpointCorrupt, InvalidValue, GraphError) as error:
        raise _unreadable(document, error.message) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(document, f"{type(error).__name__}: {error}") from error


def _saved(store: Store, document: Document, content: Mapping[str, Any]) -> LayerCheckpoint:
    def get(blob: str) -> bytes:
        return store.get_blob(document.run_id, blob)

    state = WorkflowState.from_json(packer.unpacked_state(content["state"], get))
    dag, config = (packer.unpacked_value(content[part], get) for part in ("dag", "config"))
    return _made(document, content, state, Dag.of(dag), config)


def _executed(store: Store, document: Document, content: Mapping[str, Any]) -> LayerCheckpoint:
    run_id, seq = document.run_id, document.seq
    run = fold(run_id, takewhile(lambda record: record.seq <= seq, records(store, run_id)))
    graph, config = pinned(store, run_id, run.pins)
    dag = dag_of(graph)
    state = state_of(run, dag, lambda blob: store.get_blob(run_id, blob), str(content["id"]))
    return _made(document, content, state, dag, config)


def _made(
    document: Document, content: Mapping[str, Any], state: WorkflowState, dag: Dag, config: Mapping[str, Any]
) -> LayerCheckpoint:
    if state.workflow_id != content["workflow_id"]:
        raise CheckpointCorrupt(f"Its state is of {state.workflow_id!r}, the checkpoint of {content['workflow_id']!r}")
    return LayerCheckpoint(
        content["id"], state.workflow_id, content["timestamp"], content["layer_index"], state, dag, config,
        document.seq, document.run_id, len(document.text),
    )  # fmt: skip


def pinned(store: Store, run_id: str, pins: Mapping[str, str]) -> tuple[Graph, dict[str, Any]]:
    """Return the graph and settings that a run is pinned to (name → blob); {} of one that was only saved to.

    Raises:
        CheckpointCorrupt: It has no graph, or a blob is damaged.
        RunNotFound: It is not a layered run.
    """
    if "graph" not in pins:
        raise CheckpointCorrupt(f"Run {run_id} is not a layered run, or its first record is damaged.", run=run_id)
    found = {name: json.loads(store.get_blob(run_id, pins[name])) for name in ("graph", "config") if name in pins}
    graph = Graph.from_json(found["graph"])
    if graph.start != START:
        raise RunNotFound(
            f"Run {run_id} is not a layered run.", code="not_layered", hint="Its own command resumes it.", run=run_id
        )
    return graph, found.get("config", {})
