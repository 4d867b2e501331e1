"""The runs that hold checkpoints saved by hand: found or made by workflow_id, owned for one save, folded once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipeline.clock import Clock, iso
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import host
from pipeline.engine.takeover import record_repairs
from pipeline.errors import Pause, RunExists, RunNotFound
from pipeline.formats.casys import finding
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.plan import graph_of
from pipeline.records.codec import Record, encode_fact
from pipeline.records.fold import Builder
from pipeline.records.kinds import DocumentKept, Gap, RunStarted
from pipeline.records.lines import encode_line
from pipeline.records.values import canonical, digest
from pipeline.store.base import Journal, Store
from pipeline.store.reading import folded

_log = logging.getLogger("pipeline")


@dataclass
class _Known:
    """What this process knows of a run."""

    builder: Builder
    #: Blobs that were written or verified.
    sound: set[str] = field(default_factory=set)
    #: What its head knew to be spent that the records do not tell, until that is recorded.
    missing: Gap | None = None


class OwnedRun:
    """A run that is owned for as long as a save takes."""

    def __init__(self, recorder: Recorder, sound: set[str]) -> None:
        self.run_id = recorder.state.run_id
        self._recorder = recorder
        self._sound = sound

    def keep(self, text: bytes, blobs: Mapping[str, bytes]) -> int:
        """Record one of our documents with what stands out of line, durable on return; its seq.

        What this process has stored in the run already costs nothing.
        """
        for blob, data in blobs.items():
            if blob not in self._sound:
                self._recorder.put_blob(data)
                self._sound.add(blob)
        seq = self._recorder.append(DocumentKept(text, finding.SOURCE))
        self._recorder.leave()
        return seq


class Keeper:
    """Opens the runs of a store; not for several threads at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        #: Runs by workflow_id.
        self._names: dict[str, str] = {}

    def run_of(self, workflow_id: str) -> str | None:
        """The run of a workflow_id; None: there is none."""
        return self._names.get(workflow_id) or finding.run_of(self._store, workflow_id)

    @contextmanager
    def owning(self, workflow_id: str, dag: Dag | None = None) -> Iterator[OwnedRun]:
        """The run of a workflow_id, owned; made for the DAG where there is none.

        Raises:
            RunNotFound: There is none, and no DAG to make it for.
            RunLocked: Another process owns it.
            WriteFailed: The disk refused.
        """
        journal = self._open(workflow_id, dag)
        try:
            known = self._folded(journal)
            recorder = Recorder(
                journal, known.builder, self._clock, owner=known.builder.state.owner, nodes=(), warn=_log.warning
            )
            record_repairs(journal, recorder, known.missing)
            known.missing = None
            yield OwnedRun(recorder, known.sound)
        except Pause as pause:
            raise pause.cause from None
        finally:
            journal.close()

    def _open(self, workflow_id: str, dag: Dag | None) -> Journal:
        run_id = self._names.pop(workflow_id, None)
        if run_id is not None:
            try:
                journal = self._store.open(run_id)
                self._names[workflow_id] = run_id
                return journal
            except RunNotFound:
                # It was removed meanwhile.
                self._known.pop(run_id, None)
        run_id = finding.run_of(self._store, workflow_id)
        journal = self._store.open(run_id) if run_id else self._make(workflow_id, dag)
        self._names[workflow_id] = journal.run_id
        return journal

    def _make(self, workflow_id: str, dag: Dag | None) -> Journal:
        if dag is None:
            raise RunNotFound(f"Nothing was saved of {workflow_id!r}.")
        graph = canonical(graph_of(dag).to_json(), "graph")
        claim = finding.claim_of(workflow_id)
        fact = RunStarted(
            finding.PIPELINE, {"workflow_id": workflow_id}, {}, {}, pins={"graph": digest(graph)},
            claim=claim.to_json(), host=host(),
        )  # fmt: skip
        now = self._clock.now()
        line = encode_line(1, iso(now), 1, encode_fact(fact))
        try:
            run_id, journal = self._store.create(line, [graph], at=now, claim=claim)
        except RunExists as error:
            # Another process was faster.
            return self._store.open(str(error.data["run"]))
        builder = Builder(run_id)
        builder.apply(Record(1, iso(now), 1, fact))
        self._known[run_id] = _Known(builder)
        return journal

    def _folded(self, journal: Journal) -> _Known:
        """The fold of the run, made anew where somebody else has written since."""
        known = self._known.get(journal.run_id)
        if known is None or known.builder.state.seq != journal.last_seq or journal.repairs:
            head = self._store.written_head(journal.run_id)
            builder, missing = folded(self._store, journal.run_id, head)
            known = self._known[journal.run_id] = _Known(builder, missing=missing)
        return known
