"""The one loop: fire what is ready, record how it ended, follow the edges chosen. It decides from the fold alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from pipeline.engine.calls import Scope
from pipeline.engine.contexts import Contexts, Reducer
from pipeline.engine.running import Running
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.engine.tasks import UNSAFE, error_facts
from pipeline.errors import GraphError, InvalidValue, ModelError, Pause, PipelineError
from pipeline.graph.model import Graph
from pipeline.graph.readiness import Activation, Frontier
from pipeline.graph.routing import choose
from pipeline.records.kinds import StepCompleted, StepFailed, StepStarted
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.values import decode_value, encode_value

FAIL = "fail"


class Ended(NamedTuple):
    """How a step's thread ended: None, or what stopped it without a record."""

    path: str
    error: BaseException | None


class Made(NamedTuple):
    """What a step returned, as JSON sees it."""

    outputs: dict[str, Any]
    #: The outputs' JSON text.
    encoded: bytes
    label: str
    changes: dict[str, Any]


class Loop:
    """Runs one graph from wherever its records left it."""

    def __init__(
        self, running: Running, graph: Graph, steps: Mapping[str, StepSpec], reducers: Mapping[str, Reducer]
    ) -> None:
        self._running = running
        self._graph = graph
        self._steps = steps
        self._recorder = running.recorder
        self._frontier = Frontier(graph, running.recorder.state)
        self._contexts = Contexts(graph, running.recorder.state, reducers)
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._active: set[str] = set()
        self._order = {node: index for index, node in enumerate(graph.nodes, 1)}
        self._first: BaseException | None = None

    def run(self) -> None:
        """Return when nothing is left to fire.

        Raises:
            Pause: The run is stopping; everything in flight has ended.
        """
        while True:
            ready = self._ready()
            if len(ready) == 1 and not self._active:
                self._active.add(ready[0].path)
                self._settle(self._go(ready[0]))
                continue
            for activation in ready:
                self._active.add(activation.path)
                name = f"step {activation.node}"
                threading.Thread(target=self._thread, args=(activation,), name=name, daemon=True).start()
            if not self._active:
                break
            self._settle(self._ended.get())
        if self._first is not None:
            raise self._first

    def _ready(self) -> list[Activation]:
        """What fires now; joins that wait for dead branches are looked at only when the loop would idle."""
        if self._first is not None or self._running.stop.asked:
            self._note_stop()
            return []
        with self._recorder.reading():
            found = self._frontier.ready(idle=not self._active)
        return [activation for activation in found if activation.path not in self._active]

    def _note_stop(self) -> None:
        if self._first is None and self._running.stop.why is not None:
            self._first = Pause(*self._running.stop.why)

    def _settle(self, ended: Ended) -> None:
        self._active.discard(ended.path)
        if ended.error is not None:
            self._first = self._first or ended.error
            if isinstance(ended.error, Pause):
                self._running.stop.request(ended.error.detail, ended.error.cause)

    def _thread(self, activation: Activation) -> None:
        self._ended.put(self._go(activation))

    def _go(self, activation: Activation) -> Ended:
        """Run one visit to a recorded end, or give back what prevented one."""
        try:
            self._visit(activation)
        except BaseException as error:
            return Ended(activation.path, error)
        return Ended(activation.path, None)

    def _visit(self, activation: Activation) -> None:
        running, path = self._running, activation.path
        spec = self._steps.get(activation.node)
        if spec is None:
            raise GraphError(f"The pipeline has no step {activation.node!r} any more.")
        with self._recorder.reading():
            recorded = self._contexts.seen(activation.consumed)
        seen = {key: running.sources.values.get(value) for key, value in recorded.items()}
        attempt = activation.attempt
        # What acts outside must be known to have begun, also after a power cut.
        self._recorder.append(
            StepStarted(path, consumed=activation.consumed, attempt=attempt, version=spec.version),
            sync=spec.effect in UNSAFE,
        )
        if running.emit.heard:
            running.emit("step_started", path=path, again=activation.again, **self._place(activation.node))
        begun = running.clock.monotonic()
        scope = Scope(path, None, attempt)
        context = StepContext(running, scope, seen)
        try:
            made = self._make(spec, context)
            scope.leave_if_paused()
        except KeyboardInterrupt:
            raise Pause("interrupted", PipelineError(f"Interrupted (in step {spec.name}).")) from None
        except (Exception, SystemExit) as error:
            scope.leave_if_paused()
            self._failed(activation, attempt, error, running.clock.monotonic() - begun)
            return
        self._completed(activation, scope, context, made, running.clock.monotonic() - begun)

    def _make(self, spec: StepSpec, context: StepContext) -> Made:
        """Run the step's code."""
        result = spec.run(context)
        label, changes = "success", {}
        if isinstance(result, Outcome):
            changes = decode_value(encode_value(dict(result.context), f"{spec.name} context"))
            label, result = str(result.label), result.outputs
        if result is None:
            result = {}
        if not isinstance(result, Mapping):
            kind = type(result).__name__
            raise InvalidValue(f"Step {spec.name!r} returned a {kind}; return a mapping of its outputs.")
        encoded = encode_value(result if isinstance(result, dict) else dict(result), f"{spec.name} outputs")
        return Made(decode_value(encoded), encoded, label, changes)

    def _completed(
        self, activation: Activation, scope: Scope, context: StepContext, made: Made, seconds: float
    ) -> None:
        recorder = self._recorder
        edges = [edge.id for edge in choose(self._graph, activation.node, made.label)]
        changes = {key: recorder.fit(value, encode_value(value)) for key, value in made.changes.items()}
        outputs = recorder.fit(made.outputs, made.encoded)
        fact = StepCompleted(
            activation.path, outputs, self._running.clock.new_id(), edges, made.label, changes, context.saved,
            scope.reads, scope.attempt, round(seconds, 6),
        )  # fmt: skip
        if outputs is made.outputs:
            recorder.append(fact, outputs=made.encoded)
        else:
            recorder.append(fact)
        if self._running.emit.heard:
            self._running.emit(
                "step_completed", path=activation.path, outputs=made.outputs, seconds=seconds,
                usd=self._spent(activation.path), **self._place(activation.node),
            )  # fmt: skip
        if self._running.options.get("until") == activation.node:
            self._stop_after(activation.node)

    def _place(self, node: str) -> dict[str, Any]:
        """Which of how many steps it is, in order of declaration."""
        return {"step": node, "index": self._order[node], "total": len(self._order)}

    def _spent(self, path: str) -> str:
        if self._running.caller is None:
            return "0"
        name = bare(path)
        with self._recorder.reading() as state:
            return str(sum((amount.usd for key, amount in state.spend.items() if key.step == name), Decimal(0)))

    def _stop_after(self, node: str) -> None:
        from_here = self._graph.outgoing(node)
        if from_here:
            self._running.stop.request("stopped_as_asked", _asked(node))

    def _failed(self, activation: Activation, attempt: int, error: BaseException, seconds: float) -> None:
        facts = error_facts(error)
        cause = "provider" if isinstance(error, ModelError) and error.retryable else "content"
        edges = [edge.id for edge in choose(self._graph, activation.node, FAIL)]
        fact = StepFailed(
            activation.path, facts, self._running.clock.new_id(), edges=edges, cause=cause, attempt=attempt,
            seconds=round(seconds, 6),
        )  # fmt: skip
        self._recorder.append(fact)
        self._running.emit("step_failed", path=activation.path, error=facts, **self._place(activation.node))


def _asked(node: str) -> PipelineError:
    return PipelineError(f"Stopped after {node}, as asked.")


def failed_runs(state: RunState) -> list[StepRun]:
    """Visits that failed and chose no edge, by path."""
    return [state.steps[path] for path in sorted(state.failed_paths)]
