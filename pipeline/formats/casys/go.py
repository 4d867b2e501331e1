"""One go at a layered run: what it is made of, who is told what, and what it came to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.clock import Clock
from pipeline.cost.prices import PriceBook
from pipeline.engine import preflight
from pipeline.engine.changes import Stale
from pipeline.engine.events import Emitter, Event
from pipeline.engine.result import RunResult
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.formats.casys import plan, resuming, views
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.enduring import EnduringStore
from pipeline.formats.casys.finding import PIPELINE
from pipeline.formats.casys.gates import Decider, Deciders, gate_step
from pipeline.formats.casys.result import ABORTED, LayeredResult
from pipeline.formats.casys.resuming import Ready
from pipeline.formats.casys.tools import Tool, step_of
from pipeline.formats.casys.watch import LayerWatch
from pipeline.graph.model import Graph
from pipeline.llm.base import Model
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS
from pipeline.store.reading import load

_log = logging.getLogger("pipeline")
#: Documents of these types name exactly their own keys.
_BARE = frozenset({"checkpoint_failed"})


@dataclass(frozen=True, slots=True)
class Lent:
    """What an executor lends to each go."""

    store: EnduringStore
    clock: Clock
    #: The tool of a task, by its id and the tool's name; None: there is none.
    tool: Callable[[str, str], Tool | None]
    deciders: Mapping[str, Decider]
    on_event: Callable[[dict[str, Any]], None] | None
    services: Mapping[str, Any]
    model: Model | None
    prices: PriceBook | None


class Go:
    """One go at a run: its definition, who is told what, and what it came to."""

    def __init__(
        self,
        lent: Lent,
        dag: Dag,
        graph: Graph,
        config: Mapping[str, Any],
        *,
        saved: int,
        checkpoint: str | None = None,
    ) -> None:
        self._dag = dag
        self._lent = lent
        self._store = lent.store
        self._checkpoint = checkpoint
        self.warnings: list[str] = []
        self._say = Emitter(lent.clock, [self._tell])
        keep = config["keepCount"] if config["autoPrune"] else None
        self.watch = LayerWatch(dag, self._say, lent.clock, keep, saved, config)
        self.definition = Definition(PIPELINE, graph, self._steps(graph, config), plan.LastWins(), plan.route)
        self.setup = self._setup(config)

    def _steps(self, graph: Graph, config: Mapping[str, Any]) -> dict[str, StepSpec]:
        lent = self._lent
        steps = {graph.start: StepSpec(graph.start, _begin)}
        for task in self._dag.tasks.values():
            body = step_of(task, lent.tool(task.id, task.tool), config, lent.clock)
            steps[task.id] = StepSpec(task.id, body, task.version, task.effect, task.repeatable)
        for name in graph.nodes:
            if found := plan.gate_of(name):
                kind, layer = found
                body = gate_step(kind, layer, self._dag.layers[layer], self.watch.settle)
                steps[name] = StepSpec(name, body, effect="human")
        return steps

    def _setup(self, config: Mapping[str, Any]) -> Setup:
        lent = self._lent
        setup = Setup(self._store, lent.clock, Emitter(lent.clock, [self.watch.heard]))
        setup.options = {name: config[name] for name in ("concurrency", "max_cost_usd")}
        setup.boundary = self.watch
        setup.command, setup.anew = _command, _anew
        setup.services = {
            **lent.services,
            "interviewer": Deciders(lent.deciders, self.watch.asked, config["decisionTimeout"], lent.clock),
        }
        if lent.model is not None:
            setup.model = lent.model
            setup.info = look_up(lent.model, lent.clock, setup.emit, setup.policy)
            setup.prices = lent.prices or PriceBook()
            preflight.check_priced(setup.info, setup.prices, setup.clock, setup.options)
        return setup

    def warn(self, text: str) -> None:
        """Tell a person something that matters to them."""
        self._say("warning", message=text)

    def _tell(self, event: Event) -> None:
        data = dict(event.data)
        if event.type == "warning":
            self.warnings.append(data["message"])
            if self._lent.on_event is None:
                _log.warning("%s", data["message"])
        if event.type == "checkpoint_failed":
            _log.error("A checkpoint could not be saved: %s", data["error"])
        if self._lent.on_event is not None:
            when = {} if event.type in _BARE else {"timestamp": event.at}
            self._lent.on_event({"type": event.type, **when, **data})

    def check_repeats(self, ready: Ready, accepted: bool) -> None:
        """Refuse to go back where that would buy finished work again."""
        state = load(self._store, ready.run_id)
        again = self._with_behind(state, list(ready.again))
        if not accepted and not resuming.free(resuming.cost_of(state, again)):
            raise resuming.refuse_repeats(state, again, "The run has gone on since this checkpoint.")
        self.warn(f"Finished after this checkpoint, and made again: {', '.join(again)}.")

    def accept(self, run_id: str, stale: Stale, accepted: bool) -> bool:
        """Whether a changed DAG may be gone on with; warns of what is different."""
        changed = resuming.changed_tasks(stale, self._dag)
        said = ", ".join(f"{path.rpartition('#')[0]} {why}" for path, why in stale.steps.items())
        if changed and not accepted:
            state = load(self._store, run_id)
            raise resuming.refuse_repeats(state, self._with_behind(state, changed), f"The DAG has changed: {said}.")
        if changed:
            self.warn(f"The DAG has changed, so finished tasks are made again: {said}.")
        return True

    def _with_behind(self, state: RunState, tasks: Sequence[str]) -> list[str]:
        """Finished tasks among these and those that need them."""
        names = {*tasks, *self._dag.behind(tasks)}
        return [name for name in views.done_tasks(state, self._dag) if name in names]

    def end(self, result: RunResult) -> LayeredResult:
        """What the go came to; told as its last event."""
        journal = self._store.journals[result.run_id]
        state = self.watch.recorder.state if self.watch.recorder is not None else load(self._store, result.run_id)
        made = views.state_of(
            state, self._dag, lambda blob: self._store.get_blob(result.run_id, blob),
            self.watch.checkpoint or self._checkpoint,
        )  # fmt: skip
        status = _status(state, result)
        past = journal.durable_seq if journal.refused is not None else None
        if past is not None:
            why = journal.refused.hint if journal.refused is not None else ""
            self.warn(f"The disk refused records: the run is not resumable past record {past}. {why}".rstrip())
        done = views.done_tasks(state, self._dag)
        self._tell_end(status, result, len(done))
        return LayeredResult(
            workflow_id=made.workflow_id,
            run_id=result.run_id,
            status=status,
            detail=result.detail,
            error=result.error,
            state=made,
            results=made.results(),
            failed=dict(self.watch.failed),
            blocked=self.watch.blocked(),
            layer_index=self._dag.layers_done(done),
            layers=len(self._dag.layers),
            warnings=tuple(self.warnings),
            not_resumable_past=past,
            spent=result.spent,
            seconds=result.seconds,
            exit_code=result.exit_code,
        )

    def _tell_end(self, status: str, result: RunResult, done: int) -> None:
        if status == ABORTED:
            self._say("workflow_abort", reason=str(result.error), totalTimeMs=round(result.seconds * 1000, 3))
        elif status in (COMPLETED, FAILED):
            lost = len(self.watch.failed) + len(self.watch.blocked())
            self._say("workflow_complete", totalTimeMs=round(result.seconds * 1000, 3), successfulTasks=done,
                      failedTasks=lost)  # fmt: skip
        elif status == IN_PROGRESS:
            self._say("workflow_paused", detail=result.detail, reason=str(result.error))


def _status(state: RunState, result: RunResult) -> str:
    """The run's status; one that ended at a gate was aborted."""
    at_gate = any(plan.gate_of(path.rpartition("#")[0]) for path in state.failed_paths)
    return ABORTED if result.status == FAILED and at_gate else result.status


def _begin(ctx: StepContext) -> Outcome:
    """The start of every DAG: what the run was given is its context."""
    return Outcome({}, context=dict(ctx.params))


def _command(run: str) -> str:
    return f'ControlledExecutor(…).resume_from_checkpoint("{run}")'


def _anew(run: str, path: str, task: str | None) -> str:
    return "resume_from_checkpoint(…, accept_changes=True) with the id of a checkpoint before it"
