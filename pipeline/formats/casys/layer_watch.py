"""LayerWatch: tells the events of one owner's part in a layered run, and saves a checkpoint where a layer has ended."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.engine.events import Emitter, Event
from pipeline.engine.people import Question
from pipeline.engine.recorder import Recorder
from pipeline.errors import CheckpointCorrupt
from pipeline.formats.casys.checkpoints import head_of, parts_of
from pipeline.formats.casys.dag import ERROR, FAILED_SAFE, SUCCESS, Dag
from pipeline.formats.casys.plan import SOURCE, done_tasks, node_of
from pipeline.formats.casys.state import name_of, state_of, task_entry
from pipeline.formats.packer import Gathered, StatePacker
from pipeline.formats.shelf import checkpoint_id
from pipeline.records.kinds import DocumentKept
from pipeline.records.values import encode_value, resolve_value

_EVENTS = {SUCCESS: "task_complete", FAILED_SAFE: "task_warning", ERROR: "task_error"}


class LayerWatch:
    """The engine's boundary and listener of one owner. Layers end in order; a failed one ends too, but is not done."""

    def __init__(
        self, dag: Dag, say: Emitter, clock: Clock, keep: int | None, saved: int, config: Mapping[str, Any]
    ) -> None:
        """Begin with nothing seen.

        Args:
            keep: How many checkpoints stay on the list; None: all.
            saved: Leading layers that the newest checkpoint counts as done.
        """
        self._dag = dag
        self._say = say
        self._clock = clock
        self._keep = keep
        self._saved = saved
        self._config = config
        self._lock = threading.Lock()
        self._done: set[str] = set()
        #: Failed in this owner's part, with their messages.
        self.failed: dict[str, str] = {}
        #: Tasks that will not run any more.
        self._settled: set[str] = set()
        #: Tasks of each layer that have not ended; whether any ended in this owner's part.
        self._unsettled = [len(layer) for layer in dag.layers]
        self._moved = [False] * len(dag.layers)
        #: Leading layers that have ended, and whose begin was told.
        self._ended = 0
        self._begun = 0
        self.recorder: Recorder | None = None
        #: The newest checkpoint saved in this owner's part; None: none.
        self.checkpoint: str | None = None
        #: What rows of a queried store show: unchanged parts are packed once, values read once and stored once.
        self._packer = StatePacker()
        self._values: dict[str, bytes] = {}
        self._stored: set[str] = set()

    def begun(self, recorder: Recorder) -> None:
        """See StepEndHook: what an earlier owner did is done; a checkpoint it could not save is saved."""
        self.recorder = recorder
        with recorder.reading() as state:
            done = done_tasks(state, self._dag)
            resumed = state.resumes > 0
            name = name_of(state)
        self._say(
            "workflow_start",
            workflow_id=name,
            tasks=len(self._dag.tasks),
            layers=len(self._dag.layers),
            resumed=resumed,
            completed=len(done),
        )
        with self._lock:
            for task in done:
                self._settle(task, moved=False)
            self._done.update(done)
            self._ended = self._begun = self._dag.layers_done(done)
            if self._ended > self._saved:
                self._save()

    def heard(self, event: Event) -> None:
        """Listen to the engine's own events."""
        if event.type == "note":
            self._say("warning", message=event.data["text"])
        elif event.type == "step_started" and event.data["step"] in self._dag.tasks:
            task = self._dag.tasks[event.data["step"]]
            layer = self._dag.layer_of[task.id]
            while self._begun <= layer:
                ids = self._dag.layers[self._begun]
                if self._unsettled[self._begun]:
                    self._say("layer_start", layerIndex=self._begun, tasksCount=len(ids), taskIds=ids)
                self._begun += 1
            self._say("task_start", taskId=task.id, tool=task.tool, layerIndex=layer)

    def ended(self, path: str) -> None:
        name, recorder = node_of(path), self.recorder
        if name not in self._dag.tasks or recorder is None:
            return
        with recorder.reading() as state:
            step = state.steps[path]
        entry = task_entry(step, resolve_value(step.outputs, recorder.journal.get_blob))
        said = "result" if entry["status"] == SUCCESS else "error"
        more = {said: entry[said], "executionTimeMs": entry["duration"], "layerIndex": self._dag.layer_of[name]}
        self._say(_EVENTS[entry["status"]], taskId=name, **more)
        with self._lock:
            self._settle(name)
            if entry["status"] == ERROR:
                self.failed[name] = entry["error"]
                for blocked in self._dag.behind([name]):
                    self._settle(blocked, moved=False)
            else:
                self._done.add(name)
            self._advance()

    def settle(self, layer: int) -> None:
        """Save the checkpoint of a layer now: all its tasks have ended, as a gate behind it knows."""
        with self._lock:
            for index in range(self._ended, layer + 1):
                for name in self._dag.layers[index]:
                    self._settle(name)
                    self._done.add(name)
            self._advance()

    def asked(self, question: Question, kind: str, layer: int) -> None:
        """Tell that a gate is about to put its question."""
        self._say(
            "decision_required",
            decisionType=kind,
            layerIndex=layer,
            description=question.text,
            choices=list(question.choices),
            results=question.shown.get("results", {}),
        )

    def blocked(self) -> list[str]:
        """Return the tasks that could not run because of those that failed, in order of layers and declaration."""
        found = self._dag.behind(self.failed) - self._done
        return [name for name in self._dag.in_order if name in found]

    def _settle(self, name: str, *, moved: bool = True) -> None:
        if name not in self._settled:
            self._settled.add(name)
            layer = self._dag.layer_of[name]
            self._unsettled[layer] -= 1
            self._moved[layer] |= moved

    def _advance(self) -> None:
        while self._ended < len(self._unsettled) and not self._unsettled[self._ended]:
            layer = self._ended
            self._ended += 1
            if self._moved[layer]:
                done = [name for name in self._dag.layers[layer] if name in self._done]
                self._say("state_updated", layerIndex=layer, tasks=done)
                self._save()

    def _save(self) -> None:
        """Record a checkpoint; after a refusal, which is told, the run continues without one."""
        recorder = self.recorder
        assert recorder is not None
        journal: Any = recorder.journal
        if (refused := journal.mend()) is None:
            run_id = recorder.state.run_id
            made, at = checkpoint_id(self._clock.new_id(), run_id), iso(self._clock.now())
            # The end of a task in the next layer may be seen before the last one of this layer.
            index = min(self._ended, self._dag.layers_done(self._done))
            document = head_of(made, name_of(recorder.state), at, index, self._keep)
            if journal.queried:
                # Damage to a result stops no run here: the step that needs the result reports it.
                with contextlib.suppress(CheckpointCorrupt):
                    document["shown"] = self._shown(recorder, made)
            recorder.append(DocumentKept(encode_value(document), SOURCE))
            refused = journal.mend()
        if refused is not None:
            self._say("checkpoint_failed", error=refused.message)
            return
        self.checkpoint = made
        self._say("checkpoint_saved", checkpoint_id=made, timestamp=at)

    def _shown(self, recorder: Recorder, made: str) -> dict[str, Any]:
        """Return {"state", "dag", "config"} for people who query a database; long values are stored, each once."""
        blobs = Gathered()

        def get(blob: str) -> bytes:
            if blob not in self._values:
                self._values[blob] = recorder.journal.get_blob(blob)
            return self._values[blob]

        with recorder.reading() as state:
            packed = self._packer.packed(vars(state_of(state, self._dag, get, made)), blobs)
        document = parts_of(packed, encode_value(self._dag.to_json(), "dag"), self._config, blobs)
        for blob in blobs.keys() - self._stored:
            recorder.put_blob(blobs[blob])
            self._stored.add(blob)
        return document
