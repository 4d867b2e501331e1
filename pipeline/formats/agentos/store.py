"""CheckpointStore: the checkpoints of graph runs in a store: views of our own runs, and documents that were saved."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.engine.pipeline import Pipeline
from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.formats.agentos import adoption
from pipeline.formats.agentos.archive import PIPELINE, Archive
from pipeline.formats.agentos.boundaries import EVERY_NODE, NodeBoundary, boundaries, check_policy, checked_wishes
from pipeline.formats.agentos.documents import CheckpointRow, GraphCheckpoint
from pipeline.formats.agentos.view import views
from pipeline.formats.shelf import exists, is_checkpoint_id, run_mark
from pipeline.store.base import Head, Store
from pipeline.store.reader import records

_OWN = re.compile(r"[0-9a-f]{32}")
_Rows = list[dict[str, Any]]
#: A saved document, or a boundary of a run of ours.
_Found = list[CheckpointRow | NodeBoundary]
#: Makes a new run of what another had finished at a record; returns its id (travel.fork.fork_run).
ForkRun = Callable[..., str]


class GraphCheckpointStore:
    """Checkpoints of graph runs: those of our own runs are there by themselves, others are saved.

    Which one is newest is decided by the order of records, never by a timestamp. What is given and taken are
    copies: changing one changes nothing here.
    """

    def __init__(
        self, store: Store, fork_run: ForkRun, *, nodes: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        """Use a store.

        Args:
            nodes: Node → before, after, both or none: its own boundaries that are listed, whatever the policy.

        Raises:
            ConfigError: A node requests something else.
        """
        self._wishes = checked_wishes(nodes or {})
        self._store = store
        self._fork_run = fork_run
        self._clock = clock or SystemClock()
        self._archive = Archive(store, self._clock)
        self._lock = threading.Lock()

    def save(self, checkpoint: GraphCheckpoint | Mapping[str, Any]) -> None:
        """Keep a checkpoint, durable on return; it replaces one of the same id, and is the newest then.

        Raises:
            CheckpointCorrupt: A key is missing or has a value that it cannot have; names it.
            InvalidValue, SecretRefused: It holds what is no JSON, or a secret.
            RunLocked: Another process is saving to the same runId.
            WriteFailed: The disk refused.
        """
        made = checkpoint if isinstance(checkpoint, GraphCheckpoint) else GraphCheckpoint.from_json(checkpoint)
        with self._lock:
            self._archive.save(made)

    def get(self, checkpoint_id: str) -> GraphCheckpoint | None:
        """Return the checkpoint of an id, or None. Of our own runs their own checkpoint ids are known too.

        Raises:
            CheckpointCorrupt: It cannot be read.
        """
        with self._lock:
            found = self._find(checkpoint_id)
            return None if found is None else self._read(found)

    def load(self, run_id: str, node_id: str | None = None, *, policy: str = EVERY_NODE) -> GraphCheckpoint | None:
        """Return the newest checkpoint of a run (at a node), or None.

        Args:
            policy: Which boundaries of a run of ours count (boundaries.POLICIES).

        Raises:
            CheckpointCorrupt, SchemaTooNew: It cannot be read.
            ConfigError: There is no such policy.
        """
        with self._lock:
            found = self._newest_first(policy, None, run_id)
            fits = (
                each
                for each in found
                if node_id in (None, each.nodeId if isinstance(each, CheckpointRow) else each.node)
            )
            newest = next(fits, None)
            return None if newest is None else self._read(newest)

    def latest(self, run_id: str, *, policy: str = EVERY_NODE) -> GraphCheckpoint | None:
        """Return the newest checkpoint of a run; as `load`."""
        return self.load(run_id, policy=policy)

    def list(
        self,
        graph_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        *,
        policy: str = EVERY_NODE,
    ) -> _Rows:
        """Return {id, runId, graphId, nodeId, timestamp, stateSize, hasMemorySnapshot} of checkpoints, newest first.

        stateSize is in bytes, of the state alone.

        Args:
            limit: At most so many; None or below 1: all.
            policy: Which boundaries of runs of ours are listed (boundaries.POLICIES).

        Raises:
            SchemaTooNew: A newer version wrote the run that was named.
            ConfigError: There is no such policy.
        """
        with self._lock:
            found = self._newest_first(policy, graph_id, run_id)
            if limit is not None and limit > 0:
                found = found[:limit]
            rows = self._rows(found)
            return [(each if isinstance(each, CheckpointRow) else rows[each.id]).to_json() for each in found]

    def delete(self, checkpoint_id: str) -> None:
        """Take a checkpoint away; nothing happens where there is none. A run of ours keeps its records.

        Raises:
            RunLocked, WriteFailed: As `save`.
        """
        with self._lock:
            found = self._find(checkpoint_id)
            if found is not None:
                self._archive.delete(found.id, found.runId if isinstance(found, CheckpointRow) else found.place.run_id)

    def fork(self, checkpoint_id: str, patch: Mapping[str, Any] | None = None) -> str:
        """Make a new run that begins at a checkpoint, which stays as it is, and return its runId.

        Of a run of ours it is a run that can be resumed: steps that read a changed value run again, others do not.
        Of a saved document it is a document with a new runId and id, and its `parent`.

        Args:
            patch: {"input", "scratch", "artifacts", "diagnostics"}: keys that are given other values; the other
                keys of each stay. Of a run of ours only input and scratch can be changed.

        Raises:
            RunNotFound: There is no such checkpoint.
            ConfigError: The patch names what cannot be changed.
            CheckpointCorrupt, SecretRefused, RunLocked, WriteFailed: As `get` and `save`.
        """
        changes = patch or {}
        adoption.check_patch(changes)
        with self._lock:
            found = self._existing(checkpoint_id)
            if isinstance(found, NodeBoundary):
                given, run_id = adoption.own_changes(changes), found.place.run_id
                return self._fork_run(self._store, run_id, at=found.upto, changes=given, clock=self._clock)
            made = adoption.forked(self._archive.get(found), changes, self._clock)
            self._archive.save(made)
            return made.run_id

    def adopt(self, checkpoint_id: str, pipeline: Pipeline | None = None) -> str:
        """Make a run that begins at a checkpoint, for Pipeline.resume, and return its id.

        What was visited is done, what is pending comes next, and writes to the memory that were staged and not
        committed are applied first, once. The source stays as it is. Of a run of ours it is a fork.

        Args:
            pipeline: That of the checkpoint's graph; None: as its newest run in the store has it.

        Raises:
            RunNotFound: There is no such checkpoint.
            GraphError, SettingsConflict: It is of another graph; nothing was made.
            ConfigError, SecretRefused, CheckpointCorrupt, WriteFailed: It cannot be adopted.
        """
        with self._lock:
            found = self._existing(checkpoint_id)
            if isinstance(found, CheckpointRow):
                source = self._archive.get(found)
                graph = adoption.graph_of(self._store, source.graph_id, pipeline)
                return adoption.adopt(self._store, self._clock, source, graph)
        return self.fork(checkpoint_id)

    def _existing(self, checkpoint_id: str) -> CheckpointRow | NodeBoundary:
        found = self._find(checkpoint_id)
        if found is None:
            raise RunNotFound(
                f"There is no checkpoint {checkpoint_id!r}.",
                hint="list() names those there are.",
                checkpoint=checkpoint_id,
            )
        return found

    def _read(self, found: CheckpointRow | NodeBoundary) -> GraphCheckpoint:
        if isinstance(found, CheckpointRow):
            return self._archive.get(found)
        ((_, view),) = views(self._store, [found], records(self._store, found.place.run_id))
        return view.document(found)

    def _rows(self, found: _Found) -> dict[str, CheckpointRow]:
        """Return the rows of the boundaries among these, newest first, by id; each run is read once."""
        by_run: dict[str, Any] = {}
        for boundary in reversed(found):
            if isinstance(boundary, NodeBoundary):
                by_run.setdefault(boundary.place.run_id, []).append(boundary)
        return {
            boundary.id: view.row(boundary)
            for run_id, each in by_run.items()
            for boundary, view in views(self._store, each, records(self._store, run_id))
        }

    def _newest_first(self, policy: str, graph_id: str | None, run_id: str | None) -> _Found:
        """Return the checkpoints of a graph or run, or all; a boundary that was deleted or replaced is none."""
        check_policy(policy)
        kept = self._archive.look()
        found: _Found = [
            row for row in kept.values()
            if row is not None and graph_id in (None, row.graphId) and run_id in (None, row.runId)
        ]  # fmt: skip
        own = [head.run_id for head in self._heads() if graph_id in (None, head.document.get("pipeline"))]
        for name in own if run_id is None else [run_id]:
            if "/" not in name and exists(self._store, name):
                found += (each for each in self._boundaries(name) if each.id not in kept and each.is_shown(policy))
        return sorted(found, key=lambda each: each.place or (), reverse=True)

    def _find(self, checkpoint_id: str) -> CheckpointRow | NodeBoundary | None:
        """Return what an id means; what was saved under the id of a boundary replaces it."""
        kept = self._archive.look()
        boundary = None if checkpoint_id in kept else self._find_boundary(checkpoint_id)
        return kept.get(checkpoint_id if boundary is None else boundary.id, boundary)

    def _find_boundary(self, checkpoint_id: str) -> NodeBoundary | None:
        name = checkpoint_id.strip().lower()
        own = name.replace("-", "")
        if is_checkpoint_id(name):
            marked = [head for head in self._store.heads() if run_mark(head.run_id) == name[:8]]
            if damaged := next((head for head in marked if head.corrupt), None):
                raise CheckpointCorrupt(f"Checkpoint {name} cannot be read: {damaged.corrupt}", run=damaged.run_id)
            runs = [head.run_id for head in marked]
        elif _OWN.fullmatch(own):
            needle = b'"checkpoint":"%s"' % own.encode("ascii")
            runs = [
                head.run_id for head in self._heads() if any(needle in line for line in self._store.read(head.run_id))
            ]
        else:
            return None
        every = (boundary for run_id in runs for boundary in self._boundaries(run_id))
        return next((boundary for boundary in every if name == boundary.id or own == boundary.own), None)

    def _boundaries(self, run_id: str) -> Iterator[NodeBoundary]:
        return boundaries(self._store, run_id, records(self._store, run_id), self._wishes)

    def _heads(self) -> Iterator[Head]:
        """Yield the runs of ours that can be read."""
        heads = self._store.heads(lambda document: document.get("pipeline") != PIPELINE)
        return (head for head in heads if head.document and not head.corrupt)
