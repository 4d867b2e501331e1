"""Follows one owner's go at a layered run: tells its events, and saves a checkpoint where a layer has ended."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.engine.events import Emitter, Event
from pipeline.engine.people import Question
from pipeline.engine.recorder import Recorder
from pipeline.errors import CheckpointCorrupt, StoreError
from pipeline.formats.casys import finding
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.ids import checkpoint_id
from pipeline.formats.casys.shown import Shown
from pipeline.formats.casys.state import ERROR, FAILED_SAFE
from pipeline.formats.casys.views import done_tasks, name_of, task_entry
from pipeline.records.kinds import DocumentKept
from pipeline.records.values import encode_value, resolve_value


class LayerWatch:
    """The boundary and the listener of one go. Layers end in order; one that failed ends too, but is not done."""

    def __init__(
        self, dag: Dag, say: Emitter, clock: Clock, keep: int | None, saved: int, config: Mapping[str, Any]
    ) -> None:
        self._dag = dag
        self._shown = Shown(dag, config)
        self._say = say
        self._clock = clock
        self._keep = keep
        #: Leading layers that the newest checkpoint says are done.
        self._saved = saved
        self._lock = threading.Lock()
        self._done: set[str] = set()
        #: Failed in this go, and what cannot run because of it.
        self.failed: dict[str, str] = {}
        self._settled: set[str] = set()
        #: Tasks of each layer that have not ended; whether any ended in this go.
        self._left = [len(layer) for layer in dag.layers]
        self._moved = [False] * len(dag.layers)
        self._next = 0
        self._begun_layers = 0
        self.recorder: Recorder | None = None
        #: The newest checkpoint saved in this go; None: none.
        self.checkpoint: str | None = None
        self.refused: StoreError | None = None

    def begun(self, recorder: Recorder) -> None:
        """See engine.recorder.Boundary: what an earlier owner did is done; a checkpoint it could not save is saved."""
        self.recorder = recorder
        with recorder.reading() as state:
            done = done_tasks(state, self._dag)
            resumed = state.resumes > 0
            name = name_of(state)
        self._say("workflow_start", workflow_id=name, tasks=len(self._dag.tasks), layers=len(self._dag.layers),
                  resumed=resumed, completed=len(done))  # fmt: skip
        with self._lock:
            for task in done:
                self._end(task)
            self._done.update(done)
            self._moved = [False] * len(self._dag.layers)
            self._next = self._begun_layers = self._dag.layers_done(self._done)
            if self._next > self._saved:
                self._save(self._next)

    def heard(self, event: Event) -> None:
        """A listener of the engine's own events."""
        if event.type == "note":
            self._say("warning", message=event.data["text"])
        elif event.type == "step_started" and event.data["step"] in self._dag.tasks:
            task = self._dag.tasks[event.data["step"]]
            layer = self._dag.layer_of[task.id]
            while self._begun_layers <= layer:
                if not self._left[self._begun_layers]:
                    self._begun_layers += 1
                    continue
                ids = self._dag.layers[self._begun_layers]
                self._say("layer_start", layerIndex=self._begun_layers, tasksCount=len(ids), taskIds=ids)
                self._begun_layers += 1
            self._say("task_start", taskId=task.id, tool=task.tool, layerIndex=layer)

    def ended(self, path: str) -> None:
        """See engine.recorder.Boundary."""
        name = path.rpartition("#")[0]
        if name not in self._dag.tasks or self.recorder is None:
            return
        with self.recorder.reading() as state:
            step = state.steps[path]
        entry = task_entry(step, _whole(step.outputs, self.recorder))
        self._tell(entry)
        with self._lock:
            self._take(name, entry)
            self._advance()

    def settle(self, layer: int) -> None:
        """All tasks of a layer have ended, as whoever comes after them knows; its checkpoint is saved now."""
        with self._lock:
            for index in range(self._next, layer + 1):
                for name in self._dag.layers[index]:
                    self._end(name)
                    self._done.add(name)
            self._advance()

    def asked(self, question: Question, kind: str, layer: int) -> None:
        """A gate is about to put its question."""
        self._say("decision_required", decisionType=kind, layerIndex=layer, description=question.text,
                  choices=list(question.choices), results=question.shown.get("results", {}))  # fmt: skip

    def _tell(self, entry: Mapping[str, Any]) -> None:
        name, ms, layer = entry["taskId"], entry["duration"], self._dag.layer_of[entry["taskId"]]
        if entry["status"] == ERROR:
            self._say("task_error", taskId=name, error=entry["error"], executionTimeMs=ms, layerIndex=layer)
        elif entry["status"] == FAILED_SAFE:
            self._say("task_warning", taskId=name, error=entry["error"], executionTimeMs=ms, layerIndex=layer)
        else:
            self._say("task_complete", taskId=name, result=entry["result"], executionTimeMs=ms, layerIndex=layer)

    def _take(self, name: str, entry: Mapping[str, Any]) -> None:
        self._end(name)
        if entry["status"] != ERROR:
            self._done.add(name)
            return
        self.failed[name] = entry["error"]
        for blocked in self._dag.behind([name]):
            self._end(blocked, moved=False)

    def _end(self, name: str, *, moved: bool = True) -> None:
        """A task that will not run any more in this go; the first word counts."""
        if name in self._settled:
            return
        self._settled.add(name)
        layer = self._dag.layer_of[name]
        self._left[layer] -= 1
        self._moved[layer] = self._moved[layer] or moved

    def _advance(self) -> None:
        while self._next < len(self._left) and not self._left[self._next]:
            layer = self._next
            self._next += 1
            if self._moved[layer]:
                done = [name for name in self._dag.layers[layer] if name in self._done]
                self._say("state_updated", layerIndex=layer, tasks=done)
                self._save(self._next)

    def _save(self, behind: int) -> None:
        """Record a checkpoint; a refusal is told and the run goes on, with nothing that looks like a checkpoint.

        Args:
            behind: How many leading layers have ended: a task further on may have ended before their last one was seen.
        """
        recorder = self.recorder
        assert recorder is not None
        journal: Any = recorder.journal
        self.refused = journal.mend()
        if self.refused is None:
            made, at = checkpoint_id(recorder.state.run_id, self._clock), iso(self._clock.now())
            recorder.append(DocumentKept(self._document(made, at, behind), finding.SOURCE))
            self.refused = journal.mend()
        if self.refused is not None:
            self._say("checkpoint_failed", error=self.refused.message)
            return
        self.checkpoint = made
        self._say("checkpoint_saved", checkpoint_id=made, timestamp=at)

    def _document(self, made: str, at: str, behind: int) -> bytes:
        recorder = self.recorder
        assert recorder is not None
        document = {
            "type": finding.CHECKPOINT,
            "id": made,
            "workflow_id": name_of(recorder.state),
            "timestamp": at,
            "layer_index": min(behind, self._dag.layers_done(self._done)),
            "keep": self._keep,
        }
        if recorder.journal.queried:
            # What people are shown stops no run: a result that is damaged is told by whoever needs it.
            with contextlib.suppress(CheckpointCorrupt):
                with recorder.reading() as state:
                    document["shown"], values = self._shown.document(state, recorder.journal, made)
                for data in values:
                    recorder.put_blob(data)
        return encode_value(document)

    def blocked(self) -> list[str]:
        """Tasks that could not run because of those that failed, in order of layers and declaration."""
        behind: Iterable[str] = self._dag.behind(self.failed)
        found = set(behind) - self._done
        return [name for name in self._dag.in_order if name in found]


def _whole(value: Mapping[str, Any], recorder: Recorder) -> Mapping[str, Any]:
    found: Mapping[str, Any] = resolve_value(value, recorder.journal.get_blob)
    return found
