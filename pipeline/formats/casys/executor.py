"""ControlledExecutor: runs a DAG of tools on the engine's one loop, and goes on with it from any checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.cost.prices import PriceBook
from pipeline.engine.engine import Engine
from pipeline.errors import ConfigError
from pipeline.formats.casys import plan, resuming
from pipeline.formats.casys.config import check_given, differences, settings
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.enduring import EnduringStore
from pipeline.formats.casys.gates import CHOICES, Decider
from pipeline.formats.casys.go import Go, Lent
from pipeline.formats.casys.plan import AGENT, HUMAN
from pipeline.formats.casys.result import LayeredResult
from pipeline.formats.casys.resuming import Ready
from pipeline.formats.casys.secrets import refuse_secrets
from pipeline.formats.casys.tools import Tool
from pipeline.graph.validate import validate
from pipeline.llm.base import Model
from pipeline.records.values import encode_value
from pipeline.store.base import Store
from pipeline.store.memory import MemoryStore


class ControlledExecutor:
    """Runs the tasks of a DAG as soon as what they need is there, and saves a checkpoint behind each layer."""

    def __init__(
        self,
        dag: Any = None,
        tools: Mapping[str, Tool] | None = None,
        *,
        store: Store | None = None,
        config: Mapping[str, Any] | None = None,
        hil: Decider = None,
        ail: Decider = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        model: Model | None = None,
        prices: PriceBook | None = None,
        services: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Check and keep the parts.

        Args:
            dag: A Dag, {"tasks": [{"id", "tool", "arguments", "depends_on"}]}, or a list of tasks. None: on a
                resume, the DAG that the run began with.
            tools: Functions by name; each gets a TaskCall and gives JSON or a TaskResult.
            store: Where the run is kept; None: in memory.
            config: timeout, autoPrune, keepCount, maxParallel, concurrency, max_cost_usd, …; see config.DEFAULTS.
            hil: Asks a person behind each layer: a function (Question → True, "approve", "reject", None for no
                answer in time), an interviewer, or True to wait for an answer from elsewhere. None: no such gate.
            ail: Asks an agent: the same with "continue" and "abort".
            on_event: Told {"type", "timestamp", …} of everything, one at a time, after it is durable.
            services: Lent to the tools; never stored.

        Raises:
            GraphError: The DAG cannot be run; names the tasks at fault.
            ConfigError: A setting cannot be what it is. SecretRefused: It would store a secret.
        """
        self.dag = None if dag is None else Dag.of(dag)
        if self.dag is not None:
            refuse_secrets(self.dag.to_json(), "dag")
            encode_value(self.dag.to_json(), "dag")
        check_given(config or {})
        self.config = settings(config or {})
        self._tools = dict(tools or {})
        clock = clock or SystemClock()
        deciders: Mapping[str, Decider] = {AGENT: ail, HUMAN: hil}
        self._gates = [kind for kind in CHOICES if deciders[kind] is not None]
        self._lent = Lent(
            EnduringStore(store if store is not None else MemoryStore(clock)), clock, self._tool, deciders, on_event,
            dict(services or {}), model, prices,
        )  # fmt: skip

    def execute(self, context: Mapping[str, Any] | None = None) -> LayeredResult:
        """A new run of the DAG, as far as it comes; its problems are in the result.

        Args:
            context: JSON values that every task sees.

        Raises:
            ConfigError: There is no DAG, or a tool is missing. SecretRefused: The context holds a secret.
            StoreError, ModelError: Before anything was recorded.
        """
        if self.dag is None:
            raise ConfigError("There is no DAG to run.", hint="Give one, or resume_from_checkpoint(ID).")
        lacking = [task.id for task in self.dag.tasks.values() if self._tool(task.id, task.tool) is None]
        if lacking:
            names = sorted({self.dag.tasks[name].tool for name in lacking})
            raise ConfigError(f"No tool {', '.join(map(repr, names))} for: {', '.join(lacking)}.", tasks=lacking)
        params = dict(context or {})
        encode_value(params, "context")
        refuse_secrets(params, "context")
        graph = plan.graph_of(self.dag, self._gates, self.config["maxParallel"])
        validate(graph)
        go = Go(self._lent, self.dag, graph, self.config, saved=0)
        info = go.setup.info
        identity = {"model": info.id, "author": info.author} if info else {}
        return go.end(Engine(go.definition, go.setup).start(params, identity=identity, pins={"config": self.config}))

    def resume_from_checkpoint(
        self,
        checkpoint_id: str,
        *,
        config: Mapping[str, Any] | None = None,
        accept_changes: bool = False,
        retry_unknown: bool = False,
    ) -> LayeredResult:
        """Go on with a run: only what is not finished is made. The run keeps the DAG and settings it began with.

        The newest checkpoint, or the run's id: nothing recorded since is made again. An older one: what was
        finished after it is made again. A DAG given to the executor is compared with the stored one.

        Args:
            checkpoint_id: A checkpoint, a run, or the workflow_id of a saved state.
            config: Settings that replace stored ones.
            accept_changes: Finished tasks that paid calls were made for, or whose arguments changed, may be made
                again.
            retry_unknown: Tasks that act outside and were cut off, or died again and again, may be made again.

        Raises:
            RunNotFound: There is none of this id.
            CheckpointCorrupt: It cannot be read; says which older one can.
            RunLocked: Another process runs it; names host and pid.
            SettingsConflict: Finished work would be made again, and that was not accepted; names tasks and cost.
            NeedsConfirmation: What may have acted outside would be made again.
        """
        check_given(config or {})
        ready = resuming.ready(self._lent.store, self._lent.clock, checkpoint_id, self._gates)
        stored = plan.dag_of(ready.graph)
        dag = self.dag or stored
        kept = settings(ready.config)
        in_force = settings(kept, config or {})
        graph = ready.graph
        if self.dag is not None or plan.parallel_of(graph) != in_force["maxParallel"]:
            graph = plan.graph_of(dag, plan.gates_of(graph), in_force["maxParallel"])
            validate(graph)
        go = Go(self._lent, dag, graph, in_force, saved=ready.saved, checkpoint=ready.checkpoint)
        self._tell_settings(go, ready, kept, config or {})
        go.setup.yes = retry_unknown
        if ready.again:
            go.check_repeats(ready, accept_changes)
        pins = {"config": in_force} if config or not ready.config else {}
        result = Engine(go.definition, go.setup).resume(
            ready.run_id,
            pins=pins,
            accept=lambda stale: go.accept(ready.run_id, stale, accept_changes),
            again=list(ready.again.values()),
            retry_unknown=retry_unknown,
        )
        return go.end(result)

    def _tell_settings(self, go: Go, ready: Ready, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Say which settings are not those that were given or are usual now."""
        for text in differences(kept, self.config) if ready.config else ():
            if text.split(" ", 1)[0] not in given:
                go.warn(text + ".")
        changed = settings(kept, given)
        for name in given:
            if name in changed and changed[name] != kept.get(name):
                go.warn(f"{name} is {changed[name]!r} from here on; it was {kept.get(name)!r}.")
        there = plan.gates_of(ready.graph)
        for kind in self._gates:
            if kind not in there:
                go.warn(f"This run began without {kind} gates, so the one given now is not asked.")
        for kind in there:
            if kind not in self._gates:
                go.warn(f"This run has {kind} gates; nobody was given to answer them, so it waits there.")

    def _tool(self, task: str, tool: str) -> Tool | None:
        own = self.dag.tasks[task].run if self.dag is not None and task in self.dag.tasks else None
        return self._tools.get(tool) or own

    # The name as the system itself writes it.
    resumeFromCheckpoint = resume_from_checkpoint
