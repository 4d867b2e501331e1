"""ControlledExecutor: runs a DAG of tools on the engine's one loop, and resumes it from any checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.cost.prices import PriceBook
from pipeline.engine import preflight
from pipeline.engine.arguments import model_of, store_of
from pipeline.engine.changes import Stale
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter, Event
from pipeline.engine.result import RunResult
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Definition, Setup, check_body
from pipeline.engine.step import Outcome, StepSpec
from pipeline.errors import ConfigError
from pipeline.formats.casys import plan
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.gates import CHOICES, Decider, Deciders, gate_step
from pipeline.formats.casys.layer_watch import LayerWatch
from pipeline.formats.casys.resumption import Resumable, cost_of, is_free, repeats_refused, resumable
from pipeline.formats.casys.settings import check_spelling, refuse_secrets, settings
from pipeline.formats.casys.state import WorkflowState, state_of
from pipeline.formats.casys.tolerant_store import TolerantStore
from pipeline.formats.casys.tools import Tool, step_of
from pipeline.graph.model import Graph
from pipeline.graph.validation import validate
from pipeline.llm.base import Model
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS
from pipeline.records.values import encode_value
from pipeline.store.base import Store
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load

ABORTED = "aborted"
_log = logging.getLogger("pipeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredResult(RunResult):
    """A layered run as its owner left it; its status may also be aborted (by a decision, or for want of one)."""

    workflow_id: str
    state: WorkflowState
    #: Results of the completed tasks, by id; null of one that was safe to fail.
    results: Mapping[str, Any]
    #: Messages of the tasks that failed, by id; tasks that could not run because of them.
    failed: Mapping[str, str]
    blocked: Sequence[str]
    #: How many leading layers are done, of how many.
    layer_index: int
    layers: int
    #: What people should know of this start or resume.
    warnings: Sequence[str] = ()
    #: The disk refused records: the run can be resumed only from this record on. None: all is saved.
    not_resumable_past: int | None = None

    @property
    def checkpoint_id(self) -> str | None:
        return self.state.checkpoint_id


class ControlledExecutor:
    """Runs the tasks of a DAG as soon as what they need is there, and saves a checkpoint behind each layer."""

    def __init__(
        self,
        dag: Any = None,
        tools: Mapping[str, Tool] | None = None,
        *,
        store: Store | str | None = None,
        config: Mapping[str, Any] | None = None,
        hil: Decider = None,
        ail: Decider = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        model: Model | str | None = None,
        prices: PriceBook | None = None,
        services: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Check and keep the parts.

        Args:
            dag: A Dag, {"tasks": [{"id", "tool", "arguments", "depends_on"}]}, or a list of tasks. None: on a
                resume, the DAG that the run began with.
            tools: Functions by name; each gets a TaskCall and gives JSON or a TaskResult.
            store: Where the run is kept, or its URL; None: in memory.
            config: timeout, autoPrune, keepCount, maxParallel, concurrency, max_cost_usd, …; see settings.DEFAULTS.
            hil: Asks a person behind each layer: a function (Question → True, "approve", "reject", None for no
                answer in time), an interviewer, or True to wait for an answer from elsewhere. None: no such gate.
            ail: Asks an agent: the same with "continue" and "abort".
            on_event: Called with {"type", "timestamp", …} of everything, one at a time, after it is durable.
            services: Lent to the tools; never stored.

        Raises:
            GraphError: The DAG cannot be run; names the tasks at fault.
            ConfigError: A setting has a value that it cannot have. SecretRefused: It would store a secret.
        """
        self.dag = None if dag is None else Dag.of(dag)
        if self.dag is not None:
            refuse_secrets(self.dag.to_json(), "dag")
            encode_value(self.dag.to_json(), "dag")
        check_spelling(config or {})
        self.config = settings(config or {})
        self._tools = dict(tools or {})
        for name, tool in self._tools.items():
            check_body(tool, f"the tool {name!r}", "call")
        self._clock = clock or SystemClock()
        self._store = TolerantStore(store_of(store) if store is not None else MemoryStore(self._clock))
        self._deciders: Mapping[str, Decider] = {plan.AGENT: ail, plan.HUMAN: hil}
        self._gates = [kind for kind in CHOICES if self._deciders[kind] is not None]
        self._on_event = on_event
        self._services = dict(services or {})
        self._model = model_of(model)
        self._prices = prices

    def execute(self, context: Mapping[str, Any] | None = None) -> LayeredResult:
        """Start a new run of the DAG and return how it ended; its problems are in the result.

        Args:
            context: JSON values that every task sees.

        Raises:
            ConfigError: There is no DAG, or a tool is missing. SecretRefused: The context holds a secret.
            StoreError, ModelError: Before anything was recorded.
        """
        if self.dag is None:
            raise ConfigError("There is no DAG to run.", code="no_dag", hint="Give one, or resume_from_checkpoint(ID).")
        lacking = [task.id for task in self.dag.tasks.values() if self._tool(task.id, task.tool) is None]
        if lacking:
            names = sorted({self.dag.tasks[name].tool for name in lacking})
            raise ConfigError(
                f"No tool {', '.join(map(repr, names))} for: {', '.join(lacking)}.", code="missing_tool", tasks=lacking
            )
        params = dict(context or {})
        encode_value(params, "context")
        refuse_secrets(params, "context")
        graph = plan.graph_of(self.dag, self._gates, self.config["maxParallel"])
        validate(graph)
        run = self._run(self.dag, graph, self.config)
        info = run.setup.info
        identity = info.identity() if info else {}
        return run.end(Engine(run.definition, run.setup).start(params, identity=identity, pins={"config": self.config}))

    def resume_from_checkpoint(
        self,
        checkpoint_id: str,
        *,
        config: Mapping[str, Any] | None = None,
        accept_changes: bool = False,
        retry_unknown: bool = False,
    ) -> LayeredResult:
        """Resume a run: only what is not finished runs. The run keeps the DAG and settings it began with.

        The newest checkpoint, or the run's id: nothing recorded since is repeated. An older one: what was finished
        after it is repeated. A DAG given to the executor is compared with the stored one.

        Args:
            checkpoint_id: A checkpoint, a run, or the workflow_id of a saved state.
            config: Settings that replace stored ones.
            accept_changes: Repeat finished tasks that were paid for, or whose arguments changed.
            retry_unknown: Repeat tasks that act outside and were cut off, or that died again and again.

        Raises:
            RunNotFound: There is none of this id.
            CheckpointCorrupt: It cannot be read; says which older one can.
            RunLocked: Another process runs it; names host and pid.
            SettingsConflict: Finished work would be repeated, and that was not accepted; names tasks and cost.
            NeedsConfirmation: What may have acted outside would be repeated.
        """
        given = config or {}
        check_spelling(given)
        ready = resumable(self._store.as_store(), self._clock, checkpoint_id, self._gates)
        kept = settings(ready.config)
        in_force = settings(kept, given)
        graph, dag = ready.graph, self.dag or plan.dag_of(ready.graph)
        if self.dag is not None or plan.parallel_of(graph) != in_force["maxParallel"]:
            graph = plan.graph_of(dag, plan.gates_of(graph), in_force["maxParallel"])
            validate(graph)
        run = self._run(dag, graph, in_force, ready)
        self._warn_of_settings(run, ready, kept, given)
        run.setup.yes = retry_unknown
        if ready.again:
            run.check_repeats(ready, accept_changes)
        return run.end(Engine(run.definition, run.setup).resume(
            ready.run_id,
            pins={"config": in_force} if given or not ready.config else {},
            accept=lambda stale: run.accept(ready.run_id, stale, accept_changes),
            again=list(ready.again.values()),
            retry_unknown=retry_unknown,
        ))  # fmt: skip

    def _warn_of_settings(
        self, run: LayeredRun, ready: Resumable, kept: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        """Warn of settings that are not those that were given or are usual now."""
        changed = settings(kept, given)
        for name in kept if ready.config else ():
            if name in self.config and name not in given and kept[name] != self.config[name]:
                then, now = (encode_value(each[name]).decode("ascii") for each in (kept, self.config))
                run.warn(f"{name} is {then}, as the run began with; not {now}.")
        for name in given:
            if name in changed and changed[name] != kept.get(name):
                run.warn(f"{name} is {changed[name]!r} from here on; it was {kept.get(name)!r}.")
        there = plan.gates_of(ready.graph)
        for kind in self._gates:
            if kind not in there:
                run.warn(f"This run began without {kind} gates, so the one given now is not asked.")
        for kind in there:
            if kind not in self._gates:
                run.warn(f"This run has {kind} gates, and none was given to answer them, so it waits there.")

    def _tool(self, task: str, tool: str) -> Tool | None:
        own = self.dag.tasks[task].run if self.dag is not None and task in self.dag.tasks else None
        return self._tools.get(tool) or own

    def _run(self, dag: Dag, graph: Graph, config: Mapping[str, Any], ready: Resumable | None = None) -> LayeredRun:
        """Put a start or resume together, down to the steps of its tasks and gates."""
        run = LayeredRun(self._store, self._clock, self._on_event, dag, config, ready)
        steps = {graph.start: StepSpec(graph.start, lambda ctx: Outcome({}, context=dict(ctx.params)))}
        for task in dag.tasks.values():
            body = step_of(task, self._tool(task.id, task.tool), config, self._clock)
            steps[task.id] = StepSpec(task.id, body, task.version, task.effect, task.repeatable)
        for name in graph.nodes:
            if gate := plan.gate_of(name):
                body = gate_step(*gate, dag.layers[gate[1]], run.watch.settle)
                steps[name] = StepSpec(name, body, effect="human")
        run.definition = Definition(plan.PIPELINE, graph, steps, plan.LastWins(), plan.route)
        setup = run.setup
        setup.services = {
            **self._services,
            "interviewer": Deciders(self._deciders, run.watch.asked, config["decisionTimeout"], self._clock),
        }
        if self._model is not None:
            setup.model = self._model
            setup.info = look_up(self._model, self._clock, setup.emit, setup.policy)
            setup.prices = self._prices or PriceBook()
            preflight.check_priced(setup.info, setup.prices, setup.clock, setup.options)
        return run

    # The name as the system itself writes it.
    resumeFromCheckpoint = resume_from_checkpoint


class LayeredRun:
    """One start or resume of a layered run: whom it tells what, and its result."""

    definition: Definition

    def __init__(
        self,
        store: TolerantStore,
        clock: Clock,
        on_event: Callable[[dict[str, Any]], None] | None,
        dag: Dag,
        config: Mapping[str, Any],
        ready: Resumable | None,
    ) -> None:
        self._dag = dag
        self._journals = store.journals
        self._store = store.as_store()
        self._on_event = on_event
        self._checkpoint = ready.checkpoint if ready is not None else None
        self._warnings: list[str] = []
        self._say = Emitter(clock, [self._tell])
        keep = config["keepCount"] if config["autoPrune"] else None
        self.watch = LayerWatch(dag, self._say, clock, keep, ready.saved if ready is not None else 0, config)
        self.setup = Setup(self._store, clock, Emitter(clock, [self.watch.heard]))
        self.setup.options = {name: config[name] for name in ("concurrency", "max_cost_usd")}
        self.setup.hook = self.watch
        self.setup.command = lambda run: f'ControlledExecutor(…).resume_from_checkpoint("{run}")'
        self.setup.anew = lambda run, path, task: (
            "resume_from_checkpoint(…, accept_changes=True) with the id of a checkpoint before it"
        )

    def warn(self, text: str) -> None:
        """Tell something that people should know."""
        self._say("warning", message=text)

    def _tell(self, event: Event) -> None:
        data = dict(event.data)
        # The seed shows this event with no other names.
        when = {} if event.type == "checkpoint_failed" else {"timestamp": event.at}
        if event.type == "checkpoint_failed":
            _log.error("A checkpoint could not be saved: %s", data["error"])
        if event.type == "warning":
            self._warnings.append(data["message"])
            if self._on_event is None:
                _log.warning("%s", data["message"])
        if self._on_event is not None:
            self._on_event({"type": event.type, **when, **data})

    def check_repeats(self, ready: Resumable, accepted: bool) -> None:
        """Refuse to return to where finished work would be paid for again."""
        state = load(self._store, ready.run_id)
        again = self._with_dependents(state, list(ready.again))
        if not accepted and not is_free(cost_of(state, again)):
            raise repeats_refused(state, again, "The run has moved on since this checkpoint.")
        self.warn(f"Finished after this checkpoint, and repeated: {', '.join(again)}.")

    def accept(self, run_id: str, stale: Stale, accepted: bool) -> bool:
        """Return whether to continue with a changed DAG; warn of what is different."""
        names = {plan.node_of(path) for path in stale.steps}
        changed = [name for name in self._dag.in_order if name in names]
        said = ", ".join(f"{plan.node_of(path)} {why}" for path, why in stale.steps.items())
        if changed and not accepted:
            state = load(self._store, run_id)
            raise repeats_refused(state, self._with_dependents(state, changed), f"The DAG has changed: {said}.")
        if changed:
            self.warn(f"The DAG has changed, so finished tasks are repeated: {said}.")
        return True

    def _with_dependents(self, state: RunState, tasks: Sequence[str]) -> list[str]:
        """Return the finished tasks among these and those that need them."""
        names = {*tasks, *self._dag.behind(tasks)}
        return [name for name in plan.done_tasks(state, self._dag) if name in names]

    def end(self, result: RunResult) -> LayeredResult:
        """Return what it came to, which is also told as its last event."""
        run_id, watch = result.run_id, self.watch
        journal = self._journals[run_id]
        run = watch.recorder.state if watch.recorder is not None else load(self._store, run_id)
        state = state_of(
            run, self._dag, lambda blob: self._store.get_blob(run_id, blob), watch.checkpoint or self._checkpoint
        )
        past = None
        if journal.refused is not None:
            past = journal.durable_seq
            self.warn(
                f"The disk refused records: the run is not resumable past record {past}. "
                f"{journal.refused.hint}".rstrip()
            )
        done = plan.done_tasks(run, self._dag)
        # A run that failed at a gate was aborted there.
        at_gate = any(plan.gate_of(plan.node_of(path)) for path in run.failed_paths)
        status = ABORTED if result.status == FAILED and at_gate else result.status
        self._tell_end(status, result, len(done))
        kept = {item.name: getattr(result, item.name) for item in fields(result)}
        return LayeredResult(
            **{**kept, "status": status},
            workflow_id=state.workflow_id,
            state=state,
            results=state.results(),
            failed=dict(watch.failed),
            blocked=watch.blocked(),
            layer_index=self._dag.layers_done(done),
            layers=len(self._dag.layers),
            warnings=tuple(self._warnings),
            not_resumable_past=past,
        )

    def _tell_end(self, status: str, result: RunResult, done: int) -> None:
        ms = round(result.seconds * 1000, 3)
        if status == ABORTED:
            self._say("workflow_abort", reason=str(result.error), totalTimeMs=ms)
        elif status in (COMPLETED, FAILED):
            lost = len(self.watch.failed) + len(self.watch.blocked())
            self._say("workflow_complete", totalTimeMs=ms, successfulTasks=done, failedTasks=lost)
        elif status == IN_PROGRESS:
            self._say("workflow_paused", detail=result.detail, reason=str(result.error))
