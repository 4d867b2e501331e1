"""The run command for DOT files: which graph, where its records lie, going on with it, how it ended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pipeline.app.decided import Confirm
from pipeline.app.dot_answers import Answers, DotOptions
from pipeline.app.gates import Gate, open_gates
from pipeline.app.start import (
    RunResult,
    Start,
    check_readable,
    finish,
    nothing_left,
    open_store,
    resume_command,
    store_note,
    unmodelled,
    wishes,
)
from pipeline.app.unread import unnamed_params
from pipeline.errors import ConfigError, SettingsConflict, WaitingForHuman
from pipeline.files import write_over
from pipeline.settings import LessonsOptions
from pipeline.store.base import Store
from pipeline.store.head import HEAD
from pipeline.store.names import JOURNAL
from pipeline.store.place import store_words

if TYPE_CHECKING:
    from pipeline.engine.events import Listener
    from pipeline.engine.people import Interviewer
    from pipeline.engine.setup import Setup
    from pipeline.formats.attractor.documents import Checkpoint
    from pipeline.formats.attractor.runner import CompiledGraph
    from pipeline.formats.attractor.source import Source
    from pipeline.records.run import RunState

#: Warnings of a graph that are shown; the rest `validate` tells.
_MOST_WARNINGS = 10


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
    if options.executor is not None:
        raise ConfigError(
            "A DOT graph has no maps that an executor could do; its branches run in threads of this process.",
            hint="Leave --executor (PIPELINE_EXECUTOR) out.",
        )
    listeners = [listener, interviewer] if callable(interviewer) else [listener]
    return _Go(target, options, dot, Answers(options, dot, interviewer), listeners, confirm).run(params)


class _Go:
    """One start of the program with a graph."""

    def __init__(
        self,
        target: str | None,
        options: LessonsOptions,
        dot: DotOptions,
        answers: Answers,
        listeners: list[Listener],
        confirm: Confirm | None,
    ) -> None:
        from pipeline.formats.attractor.handlers.standard import standard_registry

        self._target = target
        self._options = options
        self._dot = dot
        self._answers = answers
        self._listeners = listeners
        self._confirm = confirm
        self._registry = standard_registry()

    def run(self, params: Mapping[str, Any]) -> RunResult:
        """A new run, or an old one gone on with."""
        if self._dot.resume is None:
            return self._new(params, None)
        self._dot = replace(self._dot, resume=its_folder(self._dot.resume))
        store, run, checkpoint = self._found(str(self._dot.resume))
        if checkpoint is not None:
            return self._new(params, checkpoint)
        self._check_place(store, run)
        if params:
            raise ConfigError("--resume goes on with the parameters of its run; give no --param.")
        return self._again(store, run)

    def _check_place(self, store: Store, run: str) -> None:
        """Refuse another folder than the run's: it stays where it is.

        Raises:
            SettingsConflict: --run-dir names one.
        """
        wanted, own = self._dot.run_dir, _folder(store)
        if wanted is None or (own is not None and Path(os.path.expanduser(wanted)).absolute() == own.absolute()):
            return
        raise SettingsConflict(
            f"Run {run} is kept in {own or self._options.store_url}, but --run-dir {wanted} is given.",
            hint="Leave --run-dir out: a run goes on where it is. `fork` makes a new one.",
        )

    def _new(self, params: Mapping[str, Any], checkpoint: Checkpoint | None) -> RunResult:
        from pipeline.formats.attractor.runner import GraphRunner
        from pipeline.formats.attractor.source import Source

        if self._target is None:
            raise ConfigError("Another system's checkpoint holds no graph.", hint="Name its file: run FILE.dot")
        source = Source.read(self._target)
        start = self._start(self._new_store(checkpoint))
        graph = self._compiled(source, start)
        for text in unnamed_params(params, graph.dot):
            start.emit("note", text=text)
        model = self._answers.model(graph, None, simulate=self._answers.simulates)
        setup = self._setup(start, model, {}, simulate=self._answers.simulates)
        launch = GraphRunner(graph, setup, _folder(start.store))
        identity = self._answers.identity(setup)
        result = launch.start(params, identity, checkpoint, rerun_current=self._dot.rerun_current)
        return self._finished(start, setup, graph, result)

    def _again(self, store: Store, run: str) -> RunResult:
        from pipeline.formats.attractor.library import check_is_dot, current_node
        from pipeline.formats.attractor.runner import GraphRunner
        from pipeline.store.reading import load

        state = load(store, run)
        check_readable(state)
        check_is_dot(state)
        start = self._start(store)
        graph = self._compiled(self._source(store, state), start)
        if graph.definition.name != state.pipeline and not self._options.accept_changes:
            raise ConfigError(f"Run {run} is of the graph {state.pipeline!r}, but {self._target} is "
                              f"{graph.definition.name!r}.", hint="Leave the file out.")  # fmt: skip
        if self._idle(state, start, graph):
            setup = unmodelled(start, state.execution, "run")
            setup.command = self._command(store)
            return self._finished(start, setup, graph, GraphRunner(graph, setup, _folder(store)).resume(state))
        simulate, identity = self._answers.stays_simulated(state), self._answers.changes(state)
        pinned = identity.get("model") or state.identity.get("model")
        model = self._answers.model(graph, str(pinned) if pinned else None, simulate=simulate)
        setup = self._setup(start, model, state.execution, simulate=simulate)
        wanted = wishes(self._options)
        if self._dot.rerun_current and not wanted["from_step"]:
            wanted["from_step"] = current_node(state)
        result = GraphRunner(graph, setup, _folder(store)).resume(
            state, accept=self._options.accept_changes, identity=identity or None, **wanted
        )
        return self._finished(start, setup, graph, result)

    def _idle(self, state: RunState, start: Start, graph: CompiledGraph) -> bool:
        """Whether the run is completed and nothing else is wanted of it."""
        from pipeline.formats.attractor.source import Source

        other = self._answers.changes(state) or self._dot.rerun_current
        if other or not graph.decides_as(Source.stored(start.store, state), start.store, state):
            return False
        return nothing_left(state, graph.definition, self._options, same=True)

    def _setup(self, start: Start, model: str, recorded: Mapping[str, Any], *, simulate: bool) -> Setup:
        setup = self._answers.set_up(start, model, recorded, simulate=simulate)
        # Recorded, so that whoever looks at the run, or forks it, can say what goes on with it.
        setup.options = {**setup.options, "target": self._target or recorded.get("target")}
        setup.command = self._command(start.store)
        setup.again = self._answers.again()
        if (folder := _folder(start.store)) is not None:
            setup.services = {**setup.services, "logs_root": str(folder)}
        return setup

    # Which graph

    def _source(self, store: Store, state: RunState) -> Source:
        """The file's texts, where it is given and says other than the run's; else those that the run holds."""
        from pipeline.formats.attractor.source import Source

        stored = Source.stored(store, state)
        if self._target is None:
            return stored
        given = Source.read(self._target)
        return stored if given.same(stored) else given

    def _compiled(self, source: Source, start: Start) -> CompiledGraph:
        from pipeline.formats.attractor.runner import CompiledGraph

        found = [finding for finding in source.checked(self._registry.types()) if finding.severity == "WARNING"]
        found = [finding for finding in found if self._dot.auto_approve or finding.rule != "auto_approve"]
        for finding in found[:_MOST_WARNINGS]:
            where = f"line {finding.line}: " if finding.line else ""
            start.emit("note", text=f"Warning: {where}{finding.message}")
        if len(found) > _MOST_WARNINGS:
            more = len(found) - _MOST_WARNINGS
            start.emit("note", text=f"{more} warnings more: ./pipeline.sh validate FILE.dot")
        return CompiledGraph.of(source, self._registry)

    # Where

    def _found(self, resume: str) -> tuple[Store, str, Checkpoint | None]:
        from pipeline.formats.attractor.library import find_run

        if is_place(resume):
            return find_run(resume, None)
        return find_run(resume, open_store(self._options.store_url, concurrency=self._options.at_once))

    def _new_store(self, checkpoint: Checkpoint | None) -> Store:
        from pipeline.clock import SystemClock
        from pipeline.store.run_folder import RunFolder

        folder = self._dot.run_dir
        if folder is None and checkpoint is not None and os.path.isdir(os.path.expanduser(str(self._dot.resume))):
            folder = self._named_folder()
        if folder is None:
            return open_store(self._options.store_url, concurrency=self._options.at_once)
        return RunFolder(os.path.expanduser(folder), SystemClock(), concurrency=self._options.at_once)

    def _start(self, store: Store) -> Start:
        from pipeline.clock import SystemClock
        from pipeline.engine.events import Emitter

        clock = SystemClock()
        emit = Emitter(clock, self._listeners)
        if note := store_note(store.url):
            emit("note", text=note)
        return Start(self._options, store, clock, emit, self._confirm)

    def _command(self, store: Store) -> Callable[[str], str]:
        verb = f"run {quote(self._target)}" if self._target else "run"
        if _folder(store) is None:
            return lambda run: resume_command(self._options, run, verb)
        return lambda run: f"./pipeline.sh {verb} --resume {quote(str(self._named_folder()))}"

    def _named_folder(self) -> Path:
        """The run's folder as it was named: a run that is gone on with stays in its own."""
        own = self._dot.run_dir is None or (self._dot.resume is not None and has_run(self._dot.resume))
        return Path(str(self._dot.resume)) if own else Path(str(self._dot.run_dir))

    # The end

    def _finished(self, start: Start, setup: Setup, graph: CompiledGraph, result: Any) -> RunResult:
        from pipeline.formats.attractor.run_documents import ended_visits, passed_visits
        from pipeline.store.reading import load

        state = load(start.store, result.run_id)
        if not result.worked:
            start.emit("run_already_completed", run=result.run_id, reason="nothing is left to do")
        if self._dot.execution_log is not None:
            start.emit("note", text=_write_log(self._dot.execution_log, graph, state))
        nodes = tuple(step.node for step in passed_visits(ended_visits(state)))
        made = replace(finish(start, setup, result, "run"), completed_nodes=nodes)
        if made.resume_command:
            more = made.resume_command.removeprefix(resume_command(self._options, result.run_id, "run"))
            made = replace(made, resume_command=setup.command(result.run_id) + more + setup.again)
        return self._asked(start, made, open_gates(state)) if made.detail == "waiting_for_human" else made

    def _asked(self, start: Start, made: RunResult, gates: list[Gate]) -> RunResult:
        """The end of a run that waits for people: each question with the command that answers it."""
        for gate in gates[1:]:
            start.emit("note", text=f"{gate.gate} waits, too: {gate.text} {self._answer(start.store, gate)}")
        if not gates:
            return made
        first = gates[0]
        hint = f"Answer with: {self._answer(start.store, first)}"
        return replace(made, error=WaitingForHuman(f"{first.gate} waits for an answer: {first.text}", hint=hint))

    def _answer(self, store: Store, gate: Gate) -> str:
        """The command that answers a question."""
        own = _folder(store) is not None
        named = self._options.store if not own and "store" in self._options.given else ""
        place = store_words(named) if named else ""
        run = quote(str(self._named_folder())) if own else gate.run
        choices = f" ({', '.join(gate.choices)})" if gate.choices else ""
        return f"./pipeline.sh answer {run} {gate.gate} CHOICE{place}{choices}"


def is_place(text: str) -> bool:
    """Whether a resume names a folder or a file, not a run of the store."""
    path = Path(os.path.expanduser(text))
    if os.sep in text or text.startswith((".", "~")):
        return True
    documents = (JOURNAL, HEAD, "execution.log.json")
    return any((path / name).exists() for name in documents) or (path.suffix == ".json" and path.is_file())


def its_folder(text: str) -> str:
    """What a resume names; for the checkpoint.json of a run of ours its folder, which alone says how it stands."""
    path = Path(os.path.expanduser(text))
    return str(path.parent) if path.name == HEAD and has_run(path.parent) else text


def has_run(folder: Path | str) -> bool:
    """Whether a run of ours lies in a folder."""
    return Path(os.path.expanduser(folder), JOURNAL).exists()


def _folder(store: Store) -> Path | None:
    """The run's own folder; None: it lies in a store."""
    from pipeline.store.run_folder import RunFolder

    return store.root if isinstance(store, RunFolder) else None


def _write_log(path: Path, graph: CompiledGraph, state: RunState) -> str:
    """Write run_dot's execution log; what came of it, for people."""
    from pipeline.formats.attractor.run_documents import execution_log

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_over(path, (json.dumps(execution_log(graph.dot, state), indent=2) + "\n").encode("ascii"))
    except OSError as error:
        return f"--execution-log: {path} cannot be written: {error.strerror}."
    return f"Execution log: {path}"
