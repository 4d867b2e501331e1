"""CheckpointManager: the original system's interface (seeds/002), over runs that are journals. Usable alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.clock import Clock, SystemClock, iso
from pipeline.errors import InvalidValue, StoreError
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.documents import PipelineState, head_document
from pipeline.records.kinds import Gap, RunResumed, RunStarted, Snapshot
from pipeline.records.lines import encode_line
from pipeline.records.values import encode_value
from pipeline.store.account import FileAccount
from pipeline.store.files import FileStore
from pipeline.store.head import HEAD
from pipeline.store.imports import document_problem
from pipeline.store.journal import RunJournal
from pipeline.store.reader import load, records
from pipeline.store.retention import MAX_AGE_DAYS, MAX_RUNS, cleanup
from pipeline.store.view import first_problem, pinned_nodes

_BASE = Path("devops/checkpoints")
#: Of the journal that a document was read from, so never part of a state.
_OF_THE_HEAD = ("seq", "journal_bytes")


class CheckpointManager:
    """Load and save the state of one run as a whole document."""

    def __init__(self, run_id: str, base_path: Path | str | None = None, *, clock: Clock | None = None) -> None:
        self.run_id = run_id
        self.base_path = Path(base_path) if base_path is not None else _BASE
        self.checkpoint_file = self.base_path / run_id / HEAD
        self._clock = clock or SystemClock()
        self._store = FileStore(self.base_path, self._clock, concurrency=0)

    def load_or_create(self, subject: str | None = None, level: str | None = None) -> PipelineState:
        """Return the state as last saved; or a new run, pending, that exists on return.

        Raises:
            CheckpointCorrupt, SchemaTooNew: It is there but cannot be read.
            StoreError: The run is another user's, or nothing could be made.
        """
        if self.checkpoint_file.parent.exists():
            return self._load()
        now = iso(self._clock.now())
        state = PipelineState(self.run_id, subject=subject, level=level, started_at=now, updated_at=now)
        self._create(state)
        return state

    def save(self, state: PipelineState) -> None:
        """Make the state durable: one record, then checkpoint.json, replaced as a whole. Sets `updated_at`.

        Raises:
            InvalidValue: It holds what is no JSON value; names the key.
            RunLocked: Another process is running it.
            WriteFailed: The disk refused; the state saved before is kept.
        """
        if state.run_id != self.run_id:
            raise StoreError(f"The state is of run {state.run_id}, not of {self.run_id}.", code="state_of_another_run")
        before, state.updated_at = state.updated_at, iso(self._clock.now())
        try:
            _check(state)
            if not self.checkpoint_file.parent.exists():
                self._create(state)
                return
            journal = self._store.open(self.run_id)
            try:
                self._append(journal, state, self._owner(journal))
            finally:
                journal.close()
        except BaseException:
            state.updated_at = before
            raise

    @classmethod
    def list_runs(cls, base_path: Path | str | None = None) -> list[dict[str, Any]]:
        """Return all runs, newest first, as checkpoint.json's documents; unreadable ones have the status "corrupt"."""
        store = FileStore(base_path if base_path is not None else _BASE, SystemClock())
        return [
            {"run_id": head.run_id, "status": "corrupt", "error": head.corrupt} if head.corrupt else dict(head.document)
            for head in store.heads()
        ]

    @classmethod
    def cleanup_old_runs(
        cls, max_age_days: float = MAX_AGE_DAYS, max_runs: int = MAX_RUNS, base_path: Path | str | None = None
    ) -> list[str]:
        """Remove old completed runs; returns their ids. What is kept in any case: see retention.removable."""
        clock = SystemClock()
        base = base_path if base_path is not None else _BASE
        return cleanup(
            FileStore(base, clock),
            FileAccount(base, clock),
            max_age_days=max_age_days,
            max_runs=max_runs,
            now=clock.now(),
        )

    def _create(self, state: PipelineState) -> None:
        params = {name: value for name, value in (("subject", state.subject), ("level", state.level)) if value}
        fact = RunStarted(state.pipeline, params, {}, {})
        first = encode_line(1, state.started_at or iso(self._clock.now()), 1, encode_fact(fact))
        journal = self._store.create_named(self.run_id, first, at=self._clock.now())
        try:
            self._append(journal, state, owner=1)
        finally:
            journal.close()

    def _load(self) -> PipelineState:
        if problem := first_problem(next(self._store.read(self.run_id), None)):
            raise problem
        document: dict[str, Any] = {}
        for record in records(self._store, self.run_id):
            if isinstance(record.fact, Snapshot):
                document = dict(record.fact.document)
            elif not isinstance(record.fact, (RunStarted, RunResumed, Gap)):
                # Steps were run since: the state is what all records say together.
                document = {}
        if not document:
            state = load(self._store, self.run_id)
            nodes = pinned_nodes(state, lambda blob: self._store.get_blob(self.run_id, blob))
            document = head_document(state, 0, nodes)
        kept = {key: value for key, value in document.items() if key not in _OF_THE_HEAD}
        return PipelineState.from_json({**kept, "run_id": self.run_id})

    def _owner(self, journal: RunJournal) -> int:
        """Return the owner mark for a record appended now; after a repair a new owner says that it knows of it."""
        owner = 1
        for line in self._store.read(self.run_id):
            if b'"kind":"run_resumed"' in line:
                record = decode_line(line)
                owner = record.seq if isinstance(record.fact, RunResumed) else owner
        if journal.repairs:
            owner = journal.last_seq + 1
            line = encode_line(owner, iso(self._clock.now()), owner, encode_fact(RunResumed({})))
            journal.append(owner, [line], sync=False)
        return owner

    def _append(self, journal: RunJournal, state: PipelineState, owner: int) -> None:
        document = {key: value for key, value in state.to_json().items() if key not in _OF_THE_HEAD}
        seq = journal.last_seq + 1
        at = state.updated_at or iso(self._clock.now())
        line = encode_line(seq, at, owner, encode_fact(Snapshot(document=document, source="api")))
        journal.append(seq, [line])
        journal.write_head({**document, "seq": seq, "journal_bytes": journal.size}, durable=True)


def _check(state: PipelineState) -> None:
    document = state.to_json()
    encode_value(document, "state")
    if problem := document_problem(document):
        raise InvalidValue(f"The state cannot be saved: {problem}.", code="state_invalid")
