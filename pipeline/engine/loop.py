"""The one loop: fire what is ready, record how it ended, follow the edges chosen. It decides from the fold alone."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pipeline.engine import memory
from pipeline.engine.bodies import code_of
from pipeline.engine.contexts import Contexts, Lineage
from pipeline.engine.routing import Route, Settled, by_label, way
from pipeline.engine.setup import UNSAFE, ActiveRun, Definition, settled
from pipeline.engine.sources import UNCHANGED, Scope, fresh
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.engine.tasks import failures, judged
from pipeline.errors import GraphError, InvalidValue, Pause, PipelineError, Suspended
from pipeline.graph.model import choose, frozen
from pipeline.graph.readiness import Activation, Frontier
from pipeline.records.kinds import CODE, CONTENT, PROVIDER, ROUTE, StepCompleted, StepFailed, StepStarted
from pipeline.records.run import Spend, StepRun, bare, next_attempt
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import decode_value, encode_value, members

#: A pause that holds up one visit only: the others run on.
_WAITS = "waiting_for_human"
#: Durations are recorded to a millionth of a second.
_MICRO = 1_000_000


@frozen
class Made:
    """What a step returned, as JSON sees it."""

    outputs: dict[str, Any]
    #: The outputs' JSON text.
    encoded: bytes
    label: str
    changes: dict[str, Any]
    #: {"type", "message", …} where it failed; what the step said about the way on.
    error: Mapping[str, Any] | None = None
    hints: Mapping[str, Any] = field(default_factory=dict)


class Loop:
    """Runs one graph from wherever its records left it."""

    def __init__(self, running: ActiveRun, definition: Definition) -> None:
        self._running = running
        self._recorder = running.recorder
        self._graph = graph = definition.graph
        self._steps = steps = definition.steps
        self._router = definition.router or by_label
        #: Hashes of the steps' source texts, as they are now: a file may be edited while it runs.
        self._codes = {name: code_of(spec.run) for name, spec in steps.items()}
        self._frontier = Frontier(graph, running.recorder.state)
        self._contexts = Contexts(graph, running.recorder.state, definition.reducers)
        #: Paths of visits whose thread has ended, with what stopped it without a record.
        self._ended: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
        #: Visits that run, with the fan-out they lie in ("" : none), and how many a fan-out lets run at once.
        self._active: dict[str, str] = {}
        #: Whether the loop's own thread runs the only visit there is, and the one whose start is recorded already.
        self._inline = False
        #: In the thread of an event loop (a notebook's, a server's) no body is run: it could run none of its own there.
        self._apart = _in_event_loop()
        self._begun: Activation | None = None
        self._fans = {name: str(fan) for name, node in graph.nodes.items() if (fan := node.attributes.get("fan"))}
        self._most = {name: most for name, node in graph.nodes.items() if (most := node.attributes.get("max_parallel"))}
        #: The node after which to stop.
        self._until = running.options.get("until")
        self._order = {node: index for index, node in enumerate(graph.nodes, 1)}
        self._first: BaseException | None = None
        self._waits: BaseException | None = None

    def run(self) -> None:
        """Return when nothing is left to fire.

        Raises:
            Pause: The run is stopping; everything in flight has ended.
        """
        self._stop_if_passed(self._until)
        while True:
            ready = self._ready()
            self._inline = inline = len(ready) == 1 and not self._active and not self._apart
            for activation in ready:
                self._active[activation.path] = self._fans.get(activation.node, "")
            if self._running.caller is not None:
                self._running.caller.batches.expect(len(self._active))
            if inline:
                self._settle(ready[0].path, self._go(ready[0]))
                continue
            for activation in ready:
                name = f"step {activation.node}"
                threading.Thread(target=self._thread, args=(activation,), name=name, daemon=True).start()
            if not self._active:
                break
            self._settle(*self._ended.get())
        if self._first or self._waits:
            raise self._first or self._waits  # type: ignore[misc]

    def _ready(self) -> list[Activation]:
        """Return what fires now; joins that wait for dead branches are looked at only when the loop would idle."""
        if self._first is not None or self._running.stop.asked:
            if self._first is None and not self._active:
                with self._recorder.reading():
                    unfinished = self._begun is not None or bool(self._frontier.ready(idle=True))
                # A run that was stopped in its last step has come to its end.
                self._first = self._running.stop.as_pause() if unfinished else None
            return []
        if self._begun is not None:
            return [self._begun]
        with self._recorder.reading():
            found = self._frontier.ready(idle=not self._active)
        if self._most:
            found = self._bounded(found)
        return [activation for activation in found if activation.path not in self._active] if self._active else found

    def _bounded(self, found: list[Activation]) -> list[Activation]:
        """Return as many visits of a fan-out's branches as may run at once."""
        active, fans = self._active, self._fans
        free = dict(self._most)
        for fan in active.values():
            if fan in free:
                free[fan] -= 1
        kept = []
        # Of a wide fan-out most of it waits each time: what is looked at here is looked at once a branch and end.
        for activation in found:
            left = free.get(fans.get(activation.node, ""))
            if left is None or activation.path in active:
                kept.append(activation)
            elif left > 0:
                free[fans[activation.node]] = left - 1
                kept.append(activation)
        return kept

    def _settle(self, path: str, error: BaseException | None) -> None:
        self._active.pop(path, None)
        if isinstance(error, Pause) and error.detail == _WAITS:
            self._waits = self._waits or error
        elif error is not None:
            self._first = self._first or error
            if isinstance(error, Pause):
                self._running.stop.request(error.detail, error.cause)

    def _thread(self, activation: Activation) -> None:
        self._ended.put((activation.path, self._go(activation)))

    def _go(self, activation: Activation) -> BaseException | None:
        """Run one visit to a recorded end, or return what prevented one."""
        try:
            wait = self._attempt(activation, activation.attempt)
            while wait is not None:
                self._running.stop.rest(wait)
                with self._recorder.reading() as state:
                    attempt = next_attempt(state, activation.path)
                wait = self._attempt(activation, attempt)
        except BaseException as error:
            return error
        return None

    def _attempt(self, activation: Activation, attempt: int) -> float | None:
        """Make one attempt of a visit, to its recorded end; return the seconds until the next one, if there is one."""
        running, path = self._running, activation.path
        spec = self._steps.get(activation.node)
        if spec is None:
            raise GraphError(f"The pipeline no longer has a step {activation.node!r}.", code="unknown_step")
        with self._recorder.reading() as state:
            recorded = self._contexts.seen(activation.consumed, activation.node)
            former = state.former.get(path)
        seen = {key: running.sources.values.get(value) for key, value in recorded.items()} if recorded else recorded
        if former is not None and self._stands(former, activation, spec, attempt, seen):
            return None
        if self._begun is activation:
            self._begun = None
        else:
            # What acts outside must be known to have begun, also after a power cut.
            self._recorder.append(_started(activation, attempt, spec), sync=spec.effect in UNSAFE)
        if running.emit.heard:
            running.emit("step_started", path=path, again=activation.again, **self._place(activation))
        begun = running.clock.monotonic()
        lineage = Lineage(self._graph, self._contexts, activation.node, activation.visit, activation.consumed)
        while True:
            scope = Scope(path, None, attempt)
            context = StepContext(running, scope, seen, lineage)
            try:
                made, cause = self._made(spec, context, scope)
                break
            except Suspended:
                assert running.caller is not None
                running.caller.batches.settle()
        route = self._route(activation, attempt, seen, made)
        seconds = int((running.clock.monotonic() - begun) * _MICRO) / _MICRO
        wait = self._record(activation, scope, context, made, route, cause, seconds)
        if running.hook is not None:
            running.hook.ended(path)
        return wait

    def _made(self, spec: StepSpec, context: StepContext, scope: Scope) -> tuple[Made, str]:
        """Return what the step's code came to, also where it failed, and whose fault that is."""
        try:
            made = self._make(spec, context)
            scope.leave_if_paused()
            return made, CONTENT
        except KeyboardInterrupt:
            error = PipelineError(f"Interrupted (in step {spec.name}).", code="run_interrupted")
            raise Pause("interrupted", error) from None
        except failures() as error:
            with self._recorder.reading() as state:
                last = state.steps.get(scope.path)
            cause, facts = judged(self._running, scope, error, last.error if last else None)
            return Made({}, b"{}", "failed", {}, facts), cause

    def _stands(
        self, former: StepRun, activation: Activation, spec: StepSpec, attempt: int, seen: Mapping[str, Any]
    ) -> bool:
        """Return whether the visit's former result holds, all it read being the same; then it is recorded again.

        Only where edges follow from the outcome's label: what other routers go by is not recorded.
        """
        path, recorder, sources = activation.path, self._recorder, self._running.sources
        if self._router is not by_label or not sources.unchanged(former, activation.consumed, spec.version, seen):
            return False
        edges = [edge.id for edge in choose(self._graph, activation.node, former.outcome)]
        recorder.append(_started(activation, attempt, spec), sync=False)
        recorder.append(StepCompleted(
            path, former.outputs, self._running.clock.new_id(), edges, former.outcome, former.context,
            former.artifacts, former.reads, attempt, reason=UNCHANGED, code=former.code,
        ))  # fmt: skip
        self._running.emit.note(f"Reusing {bare(path)}: its inputs have not changed.")
        if self._running.hook is not None:
            self._running.hook.ended(path)
        if self._until == activation.node:
            self._stop_after(activation.node)
        return True

    def _make(self, spec: StepSpec, context: StepContext) -> Made:
        """Run the step's code."""
        result = settled(spec.run(context), f"Step {spec.name!r}")
        outcome = result if isinstance(result, Outcome) else Outcome({} if result is None else result)
        changes = fresh(dict(outcome.context), f"{spec.name} context") if outcome.context else {}
        outputs: Any = {} if outcome.outputs is None else outcome.outputs
        outputs = outputs if (found := members(outputs)) is None else found
        if not isinstance(outputs, Mapping):
            text = f"Step {spec.name!r} returned a {type(outputs).__name__}; return a mapping of its outputs."
            raise InvalidValue(text, code="outputs_not_mapping", hint='Return {"result": …} with the value in it.')
        encoded = encode_value(outputs if isinstance(outputs, dict) else dict(outputs), f"{spec.name} outputs")
        return Made(decode_value(encoded), encoded, str(outcome.label), changes, outcome.error, outcome.hints)

    def _route(self, activation: Activation, attempt: int, seen: Mapping[str, Any], made: Made) -> Route:
        """Return where the visit's end leads."""
        if self._router is by_label:
            return way(self._graph, activation.node, made.label, failed=made.error is not None)
        with self._recorder.reading() as state:
            return self._router(Settled(
                self._graph, self._graph.nodes[activation.node], activation.path, activation.visit, attempt,
                made.label, made.error is not None, made.error, made.hints, seen, made.changes,
                activation.consumed, state,
            ))  # fmt: skip

    def _record(
        self, activation: Activation, scope: Scope, context: StepContext, made: Made, route: Route, cause: str,
        seconds: float,
    ) -> float | None:  # fmt: skip
        """Record and report how an attempt ended; return the seconds until the visit's next attempt, or None."""
        recorder, path = self._recorder, activation.path
        label = made.label if route.outcome is None else route.outcome
        again = route.retry_seconds is not None
        failed = again or (made.error is not None if route.failed is None else route.failed)
        changes = {**made.changes, **route.context} if route.context else made.changes
        changes = {key: recorder.fit(value, encode_value(value)) for key, value in changes.items()}
        outputs = recorder.fit(made.outputs, made.encoded)
        known = made.encoded if outputs is made.outputs and outputs else None
        checkpoint = self._running.clock.new_id()
        if not failed:
            # Nothing may begin before a memory has what this step wrote.
            follow = None if scope.writes else self._follow(activation, route)
            begun = [] if follow is None else [_started(follow, follow.attempt, self._steps[follow.node])]
            recorder.append(StepCompleted(
                path, outputs, checkpoint, route.edges, label, changes, context.saved, scope.reads, scope.attempt,
                seconds, route.reason, scope.writes or (), self._codes.get(activation.node, ""), scope.rejected or (),
            ), known, follow=begun)  # fmt: skip
            if scope.writes:
                memory.apply(self._running, path, scope.writes)
            self._begun = follow
            self._tell_completed(activation, made, seconds)
            return None
        error = route.error or made.error or {"type": "StepFailed", "message": f"Its outcome was {label}."}
        if again:
            # Another try by itself counts as an attempt, also where the provider failed.
            cause = CODE if cause == PROVIDER else cause
        elif route.kept and not route.edges:
            cause = ROUTE
        recorder.append(StepFailed(
            path, error, checkpoint, () if again else route.edges, cause, scope.attempt,
            seconds, label, outputs, changes, context.saved, scope.reads, route.reason, again,
        ), known)  # fmt: skip
        self._running.emit(
            "step_failed", path=path, error=dict(error), again=route.retry_seconds, **self._place(activation)
        )
        return route.retry_seconds

    def _follow(self, activation: Activation, route: Route) -> Activation | None:
        """Return the visit whose start is recorded in one write with the end of this one: the next one of a chain."""
        stops = self._running.stop.asked or self._until == activation.node
        if not self._inline or self._running.hook is not None or stops:
            return None
        with self._recorder.reading() as state:
            found = self._frontier.follows(activation.path, route.edges)
            return found if found is not None and found.node in self._steps and found.path not in state.former else None

    def _tell_completed(self, activation: Activation, made: Made, seconds: float) -> None:
        if self._running.emit.heard:
            cost, name = Spend(), bare(activation.path)
            if self._running.caller is not None:
                with self._recorder.reading() as state:
                    for key, amount in state.spend.items():
                        if key.step == name:
                            cost.add(amount)
            self._running.emit(
                "step_completed", path=activation.path, outputs=made.outputs, seconds=seconds,
                usd=str(cost.usd), unpriced_calls=cost.unpriced, **self._place(activation),
            )  # fmt: skip
        if self._until == activation.node:
            self._stop_after(activation.node)

    def _place(self, activation: Activation) -> dict[str, Any]:
        """Return which of how many steps it is, in order of declaration, and in which branch of a fan-out."""
        node, branch = activation.node, ""
        if node in self._fans:
            with self._recorder.reading():
                branch = self._contexts.branch(node, activation.path, activation.consumed)
        return {"step": node, "index": self._order[node], "total": len(self._order), "branch": branch}

    def _stop_if_passed(self, node: Any) -> None:
        """Begin nothing where the node to stop after is done and will not be visited again."""
        if node not in self._graph.nodes or self._graph.leads(node, node):
            return
        with self._recorder.reading() as state:
            visits = [run for run in state.steps.values() if run.node == node]
        if visits and all(run.status == COMPLETED for run in visits):
            self._stop_after(node)

    def _stop_after(self, node: str) -> None:
        if self._graph.outgoing(node):
            error = PipelineError(f"Stopped after {node} as requested.", code="stopped_as_asked")
            self._running.stop.request("stopped_as_asked", error)


def _in_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _started(activation: Activation, attempt: int, spec: StepSpec) -> StepStarted:
    return StepStarted(activation.path, activation.consumed, attempt, spec.version)
