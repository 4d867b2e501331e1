"""CheckpointStore: the checkpoints of graph runs in a store: views of our own runs, and documents that were saved."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pipeline.clock import Clock, SystemClock
from pipeline.engine.pipeline import Pipeline
from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.formats.agentos import patches
from pipeline.formats.agentos.adopting import adopt, graph_of
from pipeline.formats.agentos.boundaries import EVERY_NODE, Boundary, boundaries, check_policy, check_wishes, shown
from pipeline.formats.agentos.documents import GraphCheckpoint
from pipeline.formats.agentos.ids import is_view_id, run_mark
from pipeline.formats.agentos.rows import Place, Row
from pipeline.formats.agentos.shelf import PIPELINE, Shelf, exists
from pipeline.formats.agentos.view import view_rows, views
from pipeline.store.base import Head, Store
from pipeline.store.reading import records

_OWN = re.compile(r"[0-9a-f]{32}")
_Rows = list[dict[str, Any]]
_Boundaries = list[Boundary]
_Kept = Mapping[str, Row | None]


class ForkRun(Protocol):
    """Makes a new run of what another had finished at a record; its id (travel.fork.fork_run)."""

    def __call__(
        self, store: Store, run: str, *, at: str | int, changes: Mapping[str, Any] | None, clock: Clock | None
    ) -> str: ...


class CheckpointStore:
    """Checkpoints of graph runs: those of our own runs are there by themselves, others are saved.

    Which one is newest is decided by the order of records, never by a timestamp. What is given and taken are
    copies: changing one changes nothing here.
    """

    def __init__(
        self,
        store: Store,
        fork_run: ForkRun,
        *,
        nodes: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Use a store.

        Args:
            nodes: Node → before, after, both or none: its own boundaries that are listed, whatever the policy.

        Raises:
            ConfigError: A node asks for something else.
        """
        self._wishes = check_wishes(nodes or {})
        self._store = store
        self._fork_run = fork_run
        self._clock = clock or SystemClock()
        self._shelf = Shelf(store, self._clock)
        self._lock = threading.Lock()

    def save(self, checkpoint: GraphCheckpoint | Mapping[str, Any]) -> None:
        """Keep a checkpoint, durable on return; one of the same id is replaced, and is the newest then.

        Raises:
            CheckpointCorrupt: A key is missing or holds what it cannot; names it.
            InvalidValue, SecretRefused: It holds what is no JSON, or a secret.
            RunLocked: Another process is saving to the same runId.
            WriteFailed: The disk refused.
        """
        known = isinstance(checkpoint, GraphCheckpoint)
        made = checkpoint if known else GraphCheckpoint.from_json(checkpoint)
        assert isinstance(made, GraphCheckpoint)
        with self._lock:
            self._shelf.save(made)

    def get(self, checkpoint_id: str) -> GraphCheckpoint | None:
        """The checkpoint of an id; None: there is none. Of our own runs their own checkpoint ids are known too.

        Raises:
            CheckpointCorrupt: It cannot be read.
        """
        with self._lock:
            kept = self._shelf.look()
            if checkpoint_id in kept:
                return self._shelf.get(checkpoint_id)
            boundary = self._find(checkpoint_id)
            if boundary is None:
                return None
            return self._shelf.get(boundary.id) if boundary.id in kept else self._view(boundary)

    def load(self, run_id: str, node_id: str | None = None, *, policy: str = EVERY_NODE) -> GraphCheckpoint | None:
        """The newest checkpoint of a run (at a node); None: there is none.

        Args:
            policy: Which boundaries of a run of ours count (boundaries.POLICIES).

        Raises:
            CheckpointCorrupt, SchemaTooNew: It cannot be read.
            ConfigError: There is no such policy.
        """
        check_policy(policy)
        with self._lock:
            kept = self._shelf.look()
            found: list[tuple[Place, Row | Boundary]] = [
                (row.place, row) for row in kept.values()
                if row is not None and row.runId == run_id and node_id in (None, row.nodeId)
            ]  # fmt: skip
            for boundary in self._of_run(run_id, kept, policy):
                if node_id in (None, boundary.node):
                    found.append((boundary.place, boundary))
            if not found:
                return None
            newest = max(found, key=lambda pair: pair[0])[1]
            return self._view(newest) if isinstance(newest, Boundary) else self._shelf.get(newest.id)

    def latest(self, run_id: str, *, policy: str = EVERY_NODE) -> GraphCheckpoint | None:
        """The newest checkpoint of a run; as `load`."""
        return self.load(run_id, policy=policy)

    def list(
        self,
        graph_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        *,
        policy: str = EVERY_NODE,
    ) -> _Rows:
        """{id, runId, graphId, nodeId, timestamp, stateSize, hasMemorySnapshot} of checkpoints, newest first.

        stateSize is in bytes, of the state alone.

        Args:
            limit: At most so many; None or below 1: all.
            policy: Which boundaries of runs of ours are listed (boundaries.POLICIES).

        Raises:
            SchemaTooNew: A newer version wrote the run that was named.
            ConfigError: There is no such policy.
        """
        check_policy(policy)
        with self._lock:
            kept = self._shelf.look()
            found: list[tuple[Place, Row | Boundary]] = [
                (row.place, row) for row in kept.values()
                if row is not None and graph_id in (None, row.graphId) and run_id in (None, row.runId)
            ]  # fmt: skip
            for own in self._own_runs(graph_id, run_id):
                found += ((boundary.place, boundary) for boundary in self._of_run(own, kept, policy))
            found.sort(key=lambda pair: pair[0], reverse=True)
            if limit is not None and limit > 0:
                found = found[:limit]
            rows = self._views([each for _, each in found if isinstance(each, Boundary)])
            return [(rows[place] if isinstance(each, Boundary) else each).to_json() for place, each in found]

    def delete(self, checkpoint_id: str) -> None:
        """Take a checkpoint away; nothing happens where there is none. A run of ours keeps its records.

        Raises:
            RunLocked, WriteFailed: As `save`.
        """
        with self._lock:
            kept = self._shelf.look()
            if checkpoint_id not in kept:
                boundary = self._find(checkpoint_id)
                if boundary is None or kept.get(boundary.id, boundary) is None:
                    return
                self._shelf.delete(boundary.id, boundary.place.run_id)
            elif (row := kept[checkpoint_id]) is not None:
                self._shelf.delete(checkpoint_id, row.runId)

    def fork(self, checkpoint_id: str, patch: Mapping[str, Any] | None = None) -> str:
        """Make a new run that begins at a checkpoint, which stays as it is; the new runId.

        Of a run of ours it is a run that can be gone on with: what read a changed value is made again, and the rest
        is not. Of a saved document it is a document with a new runId and id, and its `parent`.

        Args:
            patch: {"input", "scratch", "artifacts", "diagnostics"}: keys that are given other values; the other
                keys of each stay. Of a run of ours only input and scratch can be changed.

        Raises:
            RunNotFound: There is no such checkpoint.
            ConfigError: The patch names what cannot be changed.
            CheckpointCorrupt, SecretRefused, RunLocked, WriteFailed: As `get` and `save`.
        """
        changes = patches.checked(patch or {})
        with self._lock:
            kept = self._shelf.look()
            boundary = None if checkpoint_id in kept else self._find(checkpoint_id)
            name = boundary.id if boundary is not None else checkpoint_id
            if name in kept:
                source = self._shelf.get(name)
                if source is not None:
                    made = patches.forked(source, changes, self._clock)
                    self._shelf.save(made)
                    return made.run_id
            elif boundary is not None:
                given = patches.of_own_run(changes)
                run_id = boundary.place.run_id
                return self._fork_run(self._store, run_id, at=boundary.upto, changes=given, clock=self._clock)
        raise RunNotFound(
            f"There is no checkpoint {checkpoint_id!r}.", hint="list() names those there are.", checkpoint=checkpoint_id
        )

    def adopt(self, checkpoint_id: str, pipeline: Pipeline | None = None) -> str:
        """Make a run that stands where a checkpoint does, for Pipeline.resume to go on with; its id.

        What was visited is done, what is pending comes next, and writes to the memory that were staged and not
        committed are applied first, once. The source stays as it is. Of a run of ours it is a fork.

        Args:
            pipeline: That of the checkpoint's graph; None: as its newest run in the store has it.

        Raises:
            RunNotFound: There is no such checkpoint.
            GraphError, SettingsConflict: It is of another graph; nothing was made.
            ConfigError, SecretRefused, CheckpointCorrupt, WriteFailed: It cannot be taken over.
        """
        with self._lock:
            kept = self._shelf.look()
            boundary = None if checkpoint_id in kept else self._find(checkpoint_id)
            name = boundary.id if boundary is not None else checkpoint_id
            source = self._shelf.get(name) if name in kept else None
            if source is not None:
                graph = graph_of(self._store, source.graph_id, pipeline)
                return adopt(self._store, self._clock, source, graph)
        return self.fork(checkpoint_id)

    def _view(self, boundary: Boundary) -> GraphCheckpoint:
        return next(views(self._store, [boundary], records(self._store, boundary.place.run_id)))

    def _views(self, wanted: _Boundaries) -> dict[Place, Row]:
        """The rows of boundaries, newest first, by their places."""
        by_run: dict[str, _Boundaries] = {}
        for boundary in reversed(wanted):
            by_run.setdefault(boundary.place.run_id, []).append(boundary)
        return {
            row.place: row
            for run_id, each in by_run.items()
            for row in view_rows(self._store, each, records(self._store, run_id))
        }

    def _own_runs(self, graph_id: str | None, run_id: str | None) -> Iterator[str]:
        """Runs of ours that may have checkpoints to list."""
        if run_id is not None:
            yield run_id
            return
        for head in self._heads():
            if graph_id in (None, head.document.get("pipeline")):
                yield head.run_id

    def _of_run(self, run_id: str, kept: _Kept, policy: str) -> Iterator[Boundary]:
        """The boundaries of a run of ours that a policy shows, but for those deleted or replaced."""
        if "/" in run_id or not exists(self._store, run_id):
            return
        for boundary in boundaries(self._store, run_id, records(self._store, run_id), self._wishes):
            if boundary.id not in kept and shown(boundary, policy):
                yield boundary

    def _find(self, checkpoint_id: str) -> Boundary | None:
        """The boundary of a run of ours that an id means."""
        name = checkpoint_id.strip().lower()
        own = name.replace("-", "")
        if is_view_id(name):
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
        for run_id in runs:
            for boundary in boundaries(self._store, run_id, records(self._store, run_id), self._wishes):
                if name == boundary.id or own == boundary.own:
                    return boundary
        return None

    def _heads(self) -> Iterator[Head]:
        """Runs of ours that can be read."""
        return (head for head in self._store.heads(lambda document: document.get("pipeline") != PIPELINE)
                if head.document and not head.corrupt)  # fmt: skip
