"""The run command for DOT files: which graph, where its records lie, who answers its prompts, how it ended."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from pipeline.app.gates import Gate, open_gates
from pipeline.app.model_choice import (
    OwnModel,
    check_asked_model,
    check_model_change,
    default_model,
    has_credential,
    provider_in,
    with_own,
    with_provider,
)
from pipeline.app.start import (
    Confirm,
    RunReport,
    Start,
    announce_model,
    check_readable,
    finish,
    nothing_left,
    resume_command,
    resume_wishes,
    set_up,
    store_note,
    store_words_of,
    unnamed_params,
    without_model,
)
from pipeline.app.stores import open_store
from pipeline.clock import SystemClock
from pipeline.dot.attributes import FIDELITIES
from pipeline.engine import preflight
from pipeline.engine.events import Emitter, Listener
from pipeline.engine.people import Interviewer
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.errors import ConfigError, CredentialMissing, SettingsConflict, WaitingForHuman
from pipeline.files import write_over
from pipeline.formats.attractor.documents import Checkpoint
from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.codergen import AgentCommand
from pipeline.formats.attractor.handlers.interviewers import AutoApprove
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.attractor.library import check_is_dot, current_node, find_run, identity_of, is_simulated
from pipeline.formats.attractor.run_documents import ended_visits, execution_log, passed_visits
from pipeline.formats.attractor.runner import CompiledGraph, GraphRunner
from pipeline.formats.attractor.source import Source
from pipeline.providers import ANTHROPIC
from pipeline.records.redaction import without_keys
from pipeline.records.run import RunState
from pipeline.settings import OFFLINE, Execution, Identity
from pipeline.store.base import Store
from pipeline.store.head import HEAD
from pipeline.store.names import JOURNAL
from pipeline.store.reader import load
from pipeline.store.run_folder import RunFolder

#: Warnings of a graph that are shown; the rest `validate` tells.
_MOST_WARNINGS = 10
#: Variables in which an agent's command is found again.
_AGENT_VARIABLES = ("PIPELINE_AGENT_CMD", "ATTRACTOR_AGENT_CMD")
#: A name that a command gives a value: --name, NAME=.
_NAMED = re.compile(r"--?([A-Za-z][\w-]*)|([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True, kw_only=True)
class DotOptions:
    """Options that only DOT pipelines have."""

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
    asked: Identity,
    execution: Execution,
    dot: DotOptions,
    listener: Listener,
    interviewer: Interviewer | None = None,
    confirm: Confirm | None = None,
) -> RunReport:
    """Run a DOT file, or resume one of its runs.

    Args:
        target: The file; None (with a resume): the graph that the run holds.
        asked: The model and its provider.

    Raises:
        ConfigError, GraphError, StoreError, SettingsConflict: Before anything was recorded.
    """
    preflight.check_params(params)
    if execution.executor is not None:
        raise ConfigError(
            "A DOT graph has no maps for an executor to run; its branches run in threads of this process.",
            code="executor_unused", hint="Omit --executor (PIPELINE_EXECUTOR).",
        )  # fmt: skip
    listeners = [listener, interviewer] if callable(interviewer) else [listener]
    asked, own = with_own(asked)
    return _DotStart(target, asked, own, execution, dot, interviewer, listeners, confirm).run(params)


@dataclass(slots=True)
class _DotStart:
    """One start of the program with a graph."""

    _target: str | None
    _asked: Identity
    _own: OwnModel | None
    _execution: Execution
    _dot: DotOptions
    _interviewer: Interviewer | None
    _listeners: list[Listener]
    _confirm: Confirm | None
    _registry: Registry = field(default_factory=standard_registry)

    def run(self, params: Mapping[str, Any]) -> RunReport:
        """Start a new run, or resume one."""
        if self._dot.resume is None:
            return self._new(params, None)
        resume = Path(os.path.expanduser(self._dot.resume))
        if resume.name == HEAD and has_run(resume.parent):
            # Of a run of ours the journal alone says where it stands.
            self._dot = replace(self._dot, resume=str(resume.parent))
        named = str(self._dot.resume)
        store, run, checkpoint = find_run(named, None if is_place(named) else self._store())
        if checkpoint is not None:
            return self._new(params, checkpoint)
        wanted, own = self._dot.run_dir, _folder(store)
        if wanted is not None and (own is None or Path(os.path.expanduser(wanted)).absolute() != own.absolute()):
            raise SettingsConflict(
                f"Run {run} is kept in {own or self._execution.store_url}, but --run-dir {wanted} is given.",
                code="other_run_dir",
                hint="Omit --run-dir: a run stays in its place. `./pipeline.sh fork` makes a new one.",
            )  # fmt: skip
        if params:
            message = "--resume uses the parameters of its run; give no --param."
            raise ConfigError(message, code="params_of_a_resume")
        return self._resumed(store, run)

    def _new(self, params: Mapping[str, Any], checkpoint: Checkpoint | None) -> RunReport:
        if self._target is None:
            hint = "Name its file: run FILE.dot"
            raise ConfigError("Another system's checkpoint has no graph.", code="graph_missing", hint=hint)
        source = Source.read(self._target)
        start = self._start(self._new_store(checkpoint))
        graph = self._compiled(source, start)
        for text in unnamed_params(params, graph.dot):
            start.emit("note", text=text)
        simulate = self._simulates
        provider = self._asked.provider
        model = self._model(graph, None, provider, simulate=simulate)
        setup = self._setup(start, model, provider, {}, simulate=simulate)
        runner = GraphRunner(graph, setup, _folder(start.store))
        result = runner.start(
            params, with_provider(identity_of(setup), provider), checkpoint, rerun_current=self._dot.rerun_current
        )
        return self._finished(start, setup, graph, result)

    def _resumed(self, store: Store, run: str) -> RunReport:
        state = load(store, run)
        check_readable(state)
        check_is_dot(state)
        start = self._start(store)
        stored = Source.stored(store, state)
        given = Source.read(self._target) if self._target is not None else stored
        graph = self._compiled(stored if given.same(stored) else given, start)
        if graph.definition.name != state.pipeline and not self._execution.accept_changes:
            message = f"Run {run} is of the graph {state.pipeline!r}, but {self._target} is {graph.definition.name!r}."
            raise ConfigError(message, code="other_graph", hint="Omit the file.")
        identity, rerun = self._changes(state), self._dot.rerun_current
        idle = not (identity or rerun) and graph.decides_as(stored, store, state)
        if idle and nothing_left(state, graph.definition, self._execution, same=True):
            setup = without_model(start, state.execution, "run")
            setup.command = self._command(store)
            return self._finished(start, setup, graph, GraphRunner(graph, setup, _folder(store)).resume(state))
        simulate = self._stays_simulated(state)
        pinned = identity.get("model") or state.identity.get("model")
        provider = self._asked.provider or (provider_in(state.identity) if pinned else None)
        model = self._model(graph, str(pinned) if pinned else None, provider, simulate=simulate)
        setup = self._setup(start, model, provider, state.execution, simulate=simulate)
        wanted = resume_wishes(self._execution)
        if rerun and not wanted["from_step"]:
            wanted["from_step"] = current_node(state)
        result = GraphRunner(graph, setup, _folder(store)).resume(
            state, accept=self._execution.accept_changes, identity=identity or None, **wanted
        )
        return self._finished(start, setup, graph, result)

    def _compiled(self, source: Source, start: Start) -> CompiledGraph:
        found = [finding for finding in source.checked(self._registry.types()) if finding.severity == "WARNING"]
        found = [finding for finding in found if self._dot.auto_approve or finding.rule != "auto_approve"]
        for finding in found[:_MOST_WARNINGS]:
            where = f"line {finding.line}: " if finding.line else ""
            start.emit("note", text=f"Warning: {where}{finding.message}")
        if (more := len(found) - _MOST_WARNINGS) > 0:
            start.emit("note", text=f"{more} more warnings: ./pipeline.sh validate FILE.dot")
        return CompiledGraph.of(source, self._registry)

    # Who answers

    @property
    def _simulates(self) -> bool:
        """Return whether no model is to be asked."""
        return self._dot.simulate or self._asked.model == OFFLINE

    def _stays_simulated(self, state: RunState) -> bool:
        """Return whether a resumed run asks no model.

        Raises:
            SettingsConflict: It asks one, and now it is not to.
        """
        if self._simulates and not is_simulated(state):
            raise SettingsConflict(
                f"Run {state.run_id} is answered by {state.identity.get('model') or 'no model'}; it is not simulated.",
                code="not_simulated", hint="Omit --simulate, or start a new run.",
            )  # fmt: skip
        return is_simulated(state)

    def _changes(self, state: RunState) -> dict[str, Any]:
        """Return another model than the pinned one, given now.

        Raises:
            SettingsConflict: It is given without --accept-changes, or for a simulated run.
        """
        asked, pinned = self._asked.model, state.identity.get("model")
        provider = self._asked.provider
        moves = pinned is not None and provider not in (None, provider_in(state.identity))
        if asked in (None, OFFLINE, pinned) and not moves:
            return {}
        if is_simulated(state):
            raise SettingsConflict(
                f"Run {state.run_id} is simulated; no model answers in it.",
                code="simulated", hint="Start a new run without --simulate.",
            )  # fmt: skip
        model = asked if asked not in (None, OFFLINE) else pinned
        check_model_change(state, str(model), provider, accept=self._execution.accept_changes)
        return with_provider({"model": model}, provider)

    def _model(self, graph: CompiledGraph, pinned: str | None, provider: str | None, *, simulate: bool) -> str:
        """Return the model to set up; "" if none is needed.

        Raises:
            CredentialMissing: The graph asks a model, and no credential is set.
        """
        nodes = [] if simulate or self._dot.agent_cmd else graph.asking_nodes()
        if not nodes:
            return ""
        if self._asked.model:
            check_asked_model(self._asked.model, provider, self._execution.base_url)
        if self._own is None and provider in (None, ANTHROPIC) and not has_credential():
            shown = ", ".join(nodes[:5]) + (", …" if len(nodes) > 5 else "")
            raise CredentialMissing(
                f"This graph asks a model ({shown}), and no credential is set.",
                hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh); "
                "--simulate runs it without any model.",
            )
        return pinned or self._asked.model or default_model(provider)

    def _setup(
        self, start: Start, model: str, provider: str | None, recorded: Mapping[str, Any], *, simulate: bool
    ) -> Setup:
        """Return what a start or resume works with.

        Raises:
            CredentialMissing, ModelError, BudgetExceeded, ConfigError: Before any step.
        """
        dot = self._dot
        if dot.resume_fidelity is not None and dot.resume_fidelity not in FIDELITIES:
            message = f"Invalid --resume-fidelity {dot.resume_fidelity!r}; use {', '.join(FIDELITIES)}."
            raise ConfigError(message, code="invalid_fidelity")
        setup = set_up(start, model, recorded, "run", provider=provider)
        workdir = str(recorded.get("workdir") or os.getcwd())
        stage_dir = recorded.get("stage_dir") if dot.stage_dir is None else str(dot.stage_dir.absolute())
        # What permits something is not recorded: a resume needs it again.
        given = {"--allow-tools": dot.allow_tools, "--agent-cmd": dot.agent_cmd, "--auto-approve": dot.auto_approve}
        permissions = [option for option, there in given.items() if there]
        # Recorded, the target and `needs` too, so that `status` and `fork` can say what resumes the run.
        setup.options = {
            **setup.options, "simulate": simulate, "allow_tools": dot.allow_tools, "auto_approve": dot.auto_approve,
            "resume_fidelity": dot.resume_fidelity, "workdir": workdir, "stage_dir": stage_dir,
            "needs": " ".join(permissions) or None, "target": self._target or recorded.get("target"),
        }  # fmt: skip
        services = {
            "workdir": workdir,
            "interviewer": AutoApprove() if dot.auto_approve else self._interviewer,
            "backend": self._agent(workdir, stage_dir) if dot.agent_cmd and not simulate else None,
            "logs_root": str(_folder(start.store) or ""),
        }
        setup.services = {name: value for name, value in services.items() if value}
        setup.command = self._command(start.store)
        setup.again = self._again(permissions) + (self._own.words if self._own else "")
        announce_model(start, setup)
        return setup

    def _agent(self, workdir: str, stage_dir: str | None) -> Any:
        command = str(self._dot.agent_cmd)
        if not self._dot.allow_tools:
            raise ConfigError(
                f"--agent-cmd runs a command; pass --allow-tools to permit it:\n  {command}",
                code="tools_not_allowed", hint="Read the command first; --allow-tools holds for this start only.",
            )  # fmt: skip
        return AgentCommand(command, Path(stage_dir or Path(workdir, ".attractor")), Path(workdir))

    def _again(self, permissions: list[str]) -> str:
        """Return the options that permit something as they are typed, for the person who gave them.

        A command that may hold a secret is not repeated; one that a variable holds need not be typed.
        """
        typed, command = list(permissions), self._dot.agent_cmd
        if command:
            at = typed.index("--agent-cmd")
            typed[at] += f" {'COMMAND' if may_hold_secret(command) else quote(command)}"
            if any(os.environ.get(name) == command for name in _AGENT_VARIABLES):
                del typed[at]
        return "".join(f" {option}" for option in typed)

    # Where

    def _store(self) -> Store:
        return open_store(self._execution.store_url, concurrency=self._execution.at_once)

    def _new_store(self, checkpoint: Checkpoint | None) -> Store:
        folder = self._dot.run_dir
        if folder is None and checkpoint is not None and os.path.isdir(os.path.expanduser(str(self._dot.resume))):
            folder = self._named_folder()
        if folder is None:
            return self._store()
        return RunFolder(os.path.expanduser(folder), SystemClock(), concurrency=self._execution.at_once)

    def _start(self, store: Store) -> Start:
        clock = SystemClock()
        emit = Emitter(clock, self._listeners)
        if note := store_note(store.url):
            emit("note", text=note)
        return Start(self._execution, store, clock, emit, self._confirm, own=self._own)

    def _command(self, store: Store) -> Callable[[str], str]:
        verb = f"run {quote(self._target)}" if self._target else "run"
        if _folder(store) is None:
            return lambda run: resume_command(self._execution, run, verb)
        return lambda run: f"./pipeline.sh {verb} --resume {quote(str(self._named_folder()))}"

    def _named_folder(self) -> Path:
        """Return the run's folder as it was named: a resumed run stays in its own."""
        own = self._dot.run_dir is None or (self._dot.resume is not None and has_run(self._dot.resume))
        return Path(str(self._dot.resume)) if own else Path(str(self._dot.run_dir))

    # The end

    def _finished(self, start: Start, setup: Setup, graph: CompiledGraph, result: RunResult) -> RunReport:
        state = load(start.store, result.run_id)
        if not result.worked:
            start.emit("run_already_completed", run=result.run_id, reason="nothing is left to do")
        if self._dot.execution_log is not None:
            start.emit("note", text=_write_log(self._dot.execution_log, graph, state))
        nodes = tuple(step.node for step in passed_visits(ended_visits(state)))
        made = replace(finish(start, setup, result, "run"), completed_nodes=nodes)
        if made.result.detail != "waiting_for_human" or not (gates := open_gates(state)):
            return made
        # Each question is shown with the command that answers it.
        for gate in gates[1:]:
            start.emit("note", text=f"{gate.gate} also waits: {gate.text} {self._answer(start.store, gate)}")
        hint = f"Answer with: {self._answer(start.store, gates[0])}"
        message = f"{gates[0].gate} waits for an answer: {gates[0].text}"
        return replace(made, result=replace(made.result, error=WaitingForHuman(message, hint=hint)))

    def _answer(self, store: Store, gate: Gate) -> str:
        """Return the command that answers a question."""
        own = _folder(store) is not None
        run = quote(str(self._named_folder())) if own else gate.run
        choices = f" ({', '.join(gate.choices)})" if gate.choices else ""
        return f"./pipeline.sh answer {run} {gate.gate} CHOICE{'' if own else store_words_of(self._execution)}{choices}"


def may_hold_secret(command: str) -> bool:
    """Return whether a command's text may hold a secret: something in it looks like one, or a name says so."""
    names = [(option or variable).replace("-", "_") for option, variable in _NAMED.findall(command)]
    return without_keys(command) != command or any(map(shell.is_secret, names))


def is_place(text: str) -> bool:
    """Return whether a resume names a folder or a file, not a run of the store."""
    path = Path(os.path.expanduser(text))
    if os.sep in text or text.startswith((".", "~")):
        return True
    documents = (JOURNAL, HEAD, "execution.log.json")
    return any((path / name).exists() for name in documents) or (path.suffix == ".json" and path.is_file())


def has_run(folder: Path | str) -> bool:
    """Return whether a run of ours lies in a folder."""
    return Path(os.path.expanduser(folder), JOURNAL).exists()


def _folder(store: Store) -> Path | None:
    """Return the run's own folder; None if it lies in a store."""
    return store.root if isinstance(store, RunFolder) else None


def _write_log(path: Path, graph: CompiledGraph, state: RunState) -> str:
    """Write run_dot's execution log; return what came of it, for people."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_over(path, (json.dumps(execution_log(graph.dot, state), indent=2) + "\n").encode("ascii"))
    except OSError as error:
        return f"--execution-log: {path} cannot be written: {error.strerror}."
    return f"Execution log: {path}"
