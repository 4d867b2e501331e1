"""The run command for DOT files: what is run, where its records lie, who answers, and going on with it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pipeline.app.gates import Gate, open_gates
from pipeline.app.start import (
    Confirm,
    RunResult,
    Start,
    check_readable,
    finish,
    has_credential,
    resume_command,
    set_up,
    store_note,
)
from pipeline.errors import ConfigError, CredentialMissing, SettingsConflict
from pipeline.settings import DEFAULT_MODEL, OFFLINE, LessonsOptions
from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.engine.events import Listener
    from pipeline.engine.people import Interviewer
    from pipeline.engine.setup import Setup
    from pipeline.formats.attractor.documents import Checkpoint
    from pipeline.formats.attractor.handlers.registry import Registry
    from pipeline.formats.attractor.launch import CompiledGraph
    from pipeline.formats.attractor.source import Source
    from pipeline.records.run import RunState

_SIMULATION = "simulation"
#: Warnings of a graph that are shown; the rest `validate` tells.
_MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DotOptions:
    """What only DOT pipelines are started with."""

    #: The run's own folder; None: it lies in the store.
    run_dir: Path | None = None
    #: A run of the store, or a folder with a run or another system's checkpoint.
    resume: str | None = None
    simulate: bool = False
    auto_approve: bool = False
    allow_tools: bool = False
    #: Run the node that ended last again.
    rerun_current: bool = False
    #: How much the first node after a resume is told; None: compact.
    resume_fidelity: str | None = None
    #: A command that answers prompts in the place of the model.
    agent_cmd: str | None = None
    #: Where commands and agents leave their outcome.json.
    stage_dir: Path | None = None
    #: Where execution.log.json is written at the end; None: nowhere.
    execution_log: Path | None = None


def run_dot(
    target: str | None,
    *,
    params: Mapping[str, Any],
    options: LessonsOptions,
    dot: DotOptions,
    listener: Listener,
    interviewer: Interviewer | None = None,
    confirm: Confirm | None = None,
) -> RunResult:
    """Run a DOT file, or go on with one of its runs.

    Args:
        target: The file; None (with a resume): the graph that the run holds.

    Raises:
        ConfigError, GraphError, StoreError, SettingsConflict: Before anything was recorded.
    """
    from pipeline.engine import preflight

    preflight.check_params(params)
    return _Go(target, options, dot, listener, interviewer, confirm).run(params)


class _Go:
    """One start of the program with a graph."""

    def __init__(
        self,
        target: str | None,
        options: LessonsOptions,
        dot: DotOptions,
        listener: Listener,
        interviewer: Interviewer | None,
        confirm: Confirm | None,
    ) -> None:
        from pipeline.formats.attractor.handlers import built_in

        self._target = target
        self._options = options
        self._dot = dot
        self._listeners = [listener, interviewer] if callable(interviewer) else [listener]
        self._interviewer = interviewer
        self._confirm = confirm
        self._registry: Registry = built_in.registry()

    def run(self, params: Mapping[str, Any]) -> RunResult:
        """A new run, or an old one gone on with."""
        if self._dot.resume is None:
            assert self._target is not None
            return self._new(self._read(self._target), params, None)
        store, run, checkpoint = self._found(self._dot.resume)
        if checkpoint is not None:
            if self._target is None:
                raise ConfigError("Another system's checkpoint holds no graph.", hint="Name its file: run FILE.dot")
            return self._new(self._read(self._target), params, checkpoint)
        if params:
            raise ConfigError("--resume goes on with the parameters of its run; give no --param.")
        return self._again(store, run)

    def _read(self, target: str) -> Source:
        from pipeline.formats.attractor.source import Source

        return Source.read(target)

    def _new(self, source: Source, params: Mapping[str, Any], checkpoint: Checkpoint | None) -> RunResult:
        from pipeline.formats.attractor.launch import Launch

        start = self._start(self._new_store(checkpoint))
        graph = self._compiled(source, start)
        simulate = self._simulates()
        setup = self._setup(start, graph, self._model_for(graph, simulate), {}, simulate=simulate)
        identity: dict[str, Any] = {"model": setup.info.id, "author": setup.info.author} if setup.info else {}
        if simulate:
            identity = {"author": _SIMULATION}
        launch = Launch(graph, setup, self._folder(start.store))
        result = launch.start(params, identity, checkpoint, rerun_current=self._dot.rerun_current)
        return self._finished(start, setup, graph, result)

    def _again(self, store: Store, run: str) -> RunResult:
        from pipeline.formats.attractor.launch import Launch
        from pipeline.formats.attractor.library import check_is_dot, current_node
        from pipeline.formats.attractor.source import Source
        from pipeline.store.reading import load

        state = load(store, run)
        check_readable(state)
        check_is_dot(state)
        start = self._start(store)
        stored = Source.stored(store, state)
        source = stored if self._target is None else self._read(self._target)
        graph = self._compiled(stored if source.same(stored) else source, start)
        simulate = self._stays_simulated(state)
        identity = self._changes(state)
        wanted = {**state.identity, **identity}.get("model")
        model = self._model_for(graph, simulate, str(wanted) if wanted else None)
        setup = self._setup(start, graph, model, state.execution, simulate=simulate)
        launch = Launch(graph, setup, self._folder(store))
        from_step = self._options.from_step or (current_node(state) if self._dot.rerun_current else "")
        result = launch.resume(
            state, accept=self._options.accept_changes, from_step=from_step, identity=identity or None
        )
        return self._finished(start, setup, graph, result)

    # Where

    def _found(self, resume: str) -> tuple[Store, str, Checkpoint | None]:
        from pipeline.app.start import open_store
        from pipeline.formats.attractor.library import find_run

        if os.path.exists(os.path.expanduser(resume)):
            return find_run(resume, None)
        return find_run(resume, open_store(self._options.store_url, concurrency=self._options.at_once))

    def _new_store(self, checkpoint: Checkpoint | None) -> Store:
        from pipeline.app.start import open_store
        from pipeline.clock import SystemClock
        from pipeline.store.run_folder import RunFolder

        folder = self._dot.run_dir
        if folder is None and checkpoint is not None and os.path.isdir(os.path.expanduser(str(self._dot.resume))):
            folder = Path(os.path.expanduser(str(self._dot.resume)))
        if folder is None:
            return open_store(self._options.store_url, concurrency=self._options.at_once)
        return RunFolder(os.path.expanduser(folder), SystemClock(), concurrency=self._options.at_once)

    def _folder(self, store: Store) -> Path | None:
        from pipeline.store.run_folder import RunFolder

        return store.root if isinstance(store, RunFolder) else None

    def _start(self, store: Store) -> Start:
        from pipeline.clock import SystemClock
        from pipeline.engine.events import Emitter

        clock = SystemClock()
        emit = Emitter(clock, self._listeners)
        if note := store_note(store.url):
            emit("note", text=note)
        return Start(self._options, store, clock, emit, self._confirm)

    def _command(self, store: Store) -> Callable[[str], str]:
        folder = self._folder(store)
        verb = f"run {quote(self._target)}" if self._target else "run"
        if folder is None:
            return lambda run: resume_command(self._options, run, verb)
        return lambda run: f"./pipeline.sh {verb} --resume {quote(str(self._named_folder()))}"

    def _named_folder(self) -> Path:
        """The run's folder as it was named."""
        return self._dot.run_dir or Path(str(self._dot.resume))

    # What

    def _compiled(self, source: Source, start: Start) -> CompiledGraph:
        from pipeline.formats.attractor.launch import CompiledGraph

        found = [finding for finding in source.checked(self._registry.types()) if finding.severity == "WARNING"]
        for finding in found[:_MOST_WARNINGS]:
            where = f"line {finding.line}: " if finding.line else ""
            start.emit("note", text=f"Warning: {where}{finding.message}")
        if len(found) > _MOST_WARNINGS:
            more = len(found) - _MOST_WARNINGS
            start.emit("note", text=f"{more} warnings more: ./pipeline.sh validate FILE.dot")
        return CompiledGraph.of(source, self._registry)

    # Who answers

    def _simulates(self) -> bool:
        return self._dot.simulate or self._options.model == OFFLINE

    def _stays_simulated(self, state: RunState) -> bool:
        simulated = state.identity.get("author") == _SIMULATION
        if self._simulates() and not simulated:
            raise SettingsConflict(
                f"Run {state.run_id} is answered by {state.identity.get('model') or 'no model'}; it is not simulated.",
                hint="Leave --simulate out, or start a new run.",
            )  # fmt: skip
        return simulated

    def _changes(self, state: RunState) -> dict[str, Any]:
        """Another model than the pinned one, given now.

        Raises:
            SettingsConflict: It is given without --accept-changes, or for a simulated run.
        """
        asked, pinned = self._options.model, state.identity.get("model")
        if asked in (None, OFFLINE, pinned) or "model" not in self._options.given:
            return {}
        if state.identity.get("author") == _SIMULATION:
            raise SettingsConflict(f"Run {state.run_id} is simulated; no model answers in it.",
                                   hint="Start a new run without --simulate.")  # fmt: skip
        if pinned is not None and not self._options.accept_changes:
            raise SettingsConflict(
                f"Run {state.run_id} was made with --model {pinned}, and now {asked} is given.",
                hint="Leave the option out to go on as it was, or --accept-changes to make again what it touches.",
            )
        return {"model": asked}

    def _model_for(self, graph: CompiledGraph, simulate: bool, pinned: str | None = None) -> str:
        """The model to set up; "": none is needed.

        Raises:
            CredentialMissing: The graph asks a model, and no credential is set.
        """
        from pipeline.formats.attractor.launch import asking_nodes

        nodes = [] if simulate or self._dot.agent_cmd else asking_nodes(graph)
        if not nodes:
            return ""
        if not has_credential():
            shown = ", ".join(nodes[:5]) + (", …" if len(nodes) > 5 else "")
            raise CredentialMissing(
                f"This graph asks a model ({shown}), and no credential is set.",
                hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh); "
                "--simulate runs it without any model.",
            )
        return pinned or self._options.model or DEFAULT_MODEL

    def _setup(
        self, start: Start, graph: CompiledGraph, model: str, recorded: Mapping[str, Any], *, simulate: bool
    ) -> Setup:
        from pipeline.formats.attractor.handlers.interviewers import AutoApprove

        dot, setup = self._dot, set_up(start, model, recorded)
        workdir = str(recorded.get("workdir") or os.getcwd())
        setup.command = self._command(start.store)
        setup.options = {
            **setup.options, "simulate": simulate, "allow_tools": dot.allow_tools, "auto_approve": dot.auto_approve,
            "resume_fidelity": dot.resume_fidelity, "workdir": workdir,
            "stage_dir": None if dot.stage_dir is None else str(dot.stage_dir.absolute()),
            "target": self._target or recorded.get("target"),
        }  # fmt: skip
        setup.services = {"workdir": workdir}
        if (folder := self._folder(start.store)) is not None:
            setup.services = {**setup.services, "logs_root": str(folder)}
        interviewer = AutoApprove() if dot.auto_approve else self._interviewer
        if interviewer is not None:
            setup.services = {**setup.services, "interviewer": interviewer}
        if dot.agent_cmd and not simulate:
            setup.services = {**setup.services, "backend": self._agent(dot.agent_cmd, Path(workdir))}
        return setup

    def _agent(self, command: str, workdir: Path) -> Any:
        from pipeline.formats.attractor.agent import STAGE_DIR, AgentCommand

        if not self._dot.allow_tools:
            raise ConfigError(
                f"--agent-cmd runs a command, which nobody has allowed:\n  {command}",
                hint="Read it; --allow-tools lets this process run it.",
            )
        return AgentCommand(command, (self._dot.stage_dir or workdir / STAGE_DIR).absolute(), workdir)

    # The end

    def _finished(self, start: Start, setup: Setup, graph: CompiledGraph, result: Any) -> RunResult:
        from pipeline.formats.attractor.head import ended_visits, passed_visits
        from pipeline.store.reading import load

        state = load(start.store, result.run_id)
        self._write_log(graph, state)
        if not result.worked:
            start.emit("run_already_completed", run=result.run_id, reason="nothing is left to do")
        nodes = [step.node for step in passed_visits(ended_visits(state))]
        start.emit("note", text=f"Completed nodes: {', '.join(nodes) or 'none'}")
        for gate in open_gates(state):
            start.emit("note", text=f"{gate.gate} asks: {gate.text} Answer with: {self._answer(start.store, gate)}")
        made = finish(start, setup, result, "run")
        if not made.resume_command:
            return made
        more = made.resume_command.removeprefix(resume_command(self._options, result.run_id, "run"))
        return replace(made, resume_command=setup.command(result.run_id) + more)

    def _answer(self, store: Store, gate: Gate) -> str:
        """The command that answers a question."""
        folder = self._folder(store)
        place = "" if folder is not None or "store" not in self._options.given else f" --store {self._options.store}"
        run = gate.run if folder is None else quote(str(self._named_folder()))
        choices = f" ({', '.join(gate.choices)})" if gate.choices else ""
        return f"./pipeline.sh answer {run} {gate.gate} CHOICE{place}{choices}"

    def _write_log(self, graph: CompiledGraph, state: RunState) -> None:
        from pipeline.formats.attractor.execution_log import execution_log

        path = self._dot.execution_log
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(execution_log(graph.dot, state), indent=2) + "\n", encoding="ascii")
        except OSError as error:
            raise ConfigError(f"--execution-log: {path} cannot be written: {error.strerror}.") from error
