"""DOT pipelines from Python: compile a graph, run it, resume it, all in one call each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.cost.admission import DEFAULT_CEILING_USD
from pipeline.cost.prices import PriceBook
from pipeline.dot.model import DotGraph
from pipeline.dot.parser import parse
from pipeline.engine import preflight
from pipeline.engine.arguments import check_arguments, model_of, prices_of, store_of
from pipeline.engine.events import Emitter, Listener
from pipeline.engine.people import Interviewer
from pipeline.engine.preflight import kept_ceiling
from pipeline.engine.result import RunResult
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Setup
from pipeline.errors import ConfigError, GraphError
from pipeline.formats.attractor.children import Load, child_texts, from_folder
from pipeline.formats.attractor.documents import Checkpoint, load_checkpoint
from pipeline.formats.attractor.handlers.codergen import BACKEND, RESUME_FIDELITY, SIMULATE
from pipeline.formats.attractor.handlers.interviewers import AutoApprove
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.handlers.standard import standard_registry as standard_registry
from pipeline.formats.attractor.handlers.tool import ALLOW
from pipeline.formats.attractor.run_documents import ended_visits, passed_visits, word_of
from pipeline.formats.attractor.runner import CompiledGraph, GraphRunner
from pipeline.formats.attractor.source import DOT, Source
from pipeline.llm.base import Model
from pipeline.records.run import RunState
from pipeline.records.values import resolve_value
from pipeline.store.base import Store
from pipeline.store.head import HEAD
from pipeline.store.memory import MemoryStore
from pipeline.store.names import JOURNAL
from pipeline.store.reader import load, resolve
from pipeline.store.run_folder import RunFolder

#: Returns the graph that a DOT text says.
parse_dot = parse

#: The author of a run that asks no model.
SIMULATION = "simulation"


@dataclass(frozen=True, slots=True)
class GraphResult(RunResult):
    """Result of one start or resume of a graph's run."""

    #: Outcome of the last node that ended: success, fail, …; "" if none has.
    outcome: str = ""
    #: Nodes in order of their ends; one that a loop visits again is listed again.
    completed_nodes: Sequence[str] = ()
    #: The run's key-value map at the end; long values are read back.
    context: Mapping[str, Any] = field(default_factory=dict)


def compile_graph(
    ast: DotGraph,
    entry_node_id: str | None = None,
    *,
    registry: Registry | None = None,
    children: Load | None = None,
) -> CompiledGraph:
    """Return a parsed graph made ready to run.

    Args:
        entry_node_id: Node that a run begins with, as if all before it had been done.
        registry: Handlers by type; None: those that are built in.
        children: Finds the child pipelines of its nodes; None: beside the current folder.

    Raises:
        GraphError: The graph cannot be run, or has no node of that id.
    """
    _check(ast, DotGraph, "compile_graph", "compile_graph(parse_dot(text))")
    texts = child_texts(ast, children or from_folder(Path.cwd()))
    return _compiled(Source(ast.source, ast.name or "<text>", texts), registry, entry_node_id or "")


def _check(given: object, kind: type, function: str, example: str) -> None:
    """Refuse a graph in another shape than a function takes."""
    if not isinstance(given, kind):
        text = f"{function} takes a {kind.__name__}, not a {type(given).__name__}."
        raise GraphError(text, code="invalid_argument", argument="graph", hint=f"Write {example}.")


def _compiled(source: Source, registry: Registry | None, entry: str = "") -> CompiledGraph:
    handlers = registry or standard_registry()
    source.checked(handlers.types())
    return CompiledGraph.of(source, handlers, entry)


def run_compiled_graph(
    graph: CompiledGraph,
    run_dir: Path | str | None = None,
    resume_checkpoint: Checkpoint | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    rerun_current: bool = False,
    **how: Any,
) -> GraphResult:
    """Run a graph from its start, or from where a checkpoint stands.

    State is saved after every node: in `run_dir`, which is the run's own folder, or in `store`; without either the
    run is gone with this process.

    Args:
        resume_checkpoint: Of this graph, by whatever system; its current node runs if it had not completed, else what
            follows it. A run of ours is resumed with run_dot(…, resume=…), which forgets nothing.
        rerun_current: Run the checkpoint's current node in any case.
        how: As the keywords of `run_dot`.

    Raises:
        RunExists: The folder holds a run already.
        ConfigError, GraphError, StoreError, ModelError: Before anything was recorded.
    """
    _check(graph, CompiledGraph, "run_compiled_graph", "run_dot(path)")
    store = how.pop("store", None)
    check_arguments("run_compiled_graph", how.keys() - _HOW, [*_HOW, "store"])
    place = RunFolder(run_dir, SystemClock()) if run_dir is not None else store_of(store or MemoryStore(SystemClock()))
    preflight.check_params(params or {})
    setup = _setup(place, **how)
    ran = _runner(graph, setup).start(params or {}, identity_of(setup), resume_checkpoint, rerun_current=rerun_current)
    return _result(place, ran)


def run_dot(
    path: Path | str,
    run_dir: Path | str | None = None,
    resume: Path | str | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    rerun_current: bool = False,
    accept_changes: bool = False,
    store: Store | str | None = None,
    **how: Any,
) -> GraphResult:
    """Run a DOT file, or resume a run of it; see `run_compiled_graph`.

    Args:
        resume: The run's folder, or an id in `store`; a folder may also hold another system's checkpoint.json.
        accept_changes: Resume although the file has changed; finished work that this touches is made again.
        how: model (to ask; prices), simulate, auto_approve, interviewer, backend, allow_tools, resume_fidelity,
            max_cost_usd (default 50, at a resume the run's own; None: no ceiling), concurrency, listener, services,
            clock, yes.

    Raises:
        RunNotFound, RunLocked, CheckpointCorrupt, SettingsConflict: The run cannot be resumed.
    """
    check_arguments("run_dot", how.keys() - _HOW, _HOW)
    store = None if store is None else store_of(store)
    graph = _compiled(Source.read(path), registry)
    if resume is None:
        return run_compiled_graph(graph, run_dir, params=params, store=store, **how)
    place, run, checkpoint = find_run(resume, store)
    if checkpoint is not None:
        target = run_dir if run_dir is not None else resume
        return run_compiled_graph(graph, target, checkpoint, params=params, rerun_current=rerun_current, **how)
    state = load(place, run)
    check_is_dot(state)
    kept = {"simulate": is_simulated(state), "max_cost_usd": kept_ceiling(state.execution)}
    setup = _setup(place, **{**kept, **how})
    from_step = current_node(state) if rerun_current else ""
    return _result(place, _runner(graph, setup).resume(state, accept=accept_changes, from_step=from_step))


def find_run(where: Path | str, store: Store | None) -> tuple[Store, str, Checkpoint | None]:
    """Return the store and the run to resume; or the checkpoint of another system that lies in the folder.

    Raises:
        RunNotFound: Neither is there.
    """
    folder = Path(os.path.expanduser(where))
    if folder.name == HEAD and (folder.parent / JOURNAL).exists():
        # Of a run of ours the journal alone says where it stands.
        folder = folder.parent
    if (folder / JOURNAL).exists():
        place = RunFolder(folder, SystemClock())
        return place, place.run_id, None
    if folder.exists() or store is None:
        return MemoryStore(SystemClock()), "", load_checkpoint(folder)
    return store, resolve(store, str(where)), None


def _setup(
    store: Store,
    *,
    model: Model | str | None = None,
    prices: PriceBook | Path | str | None = None,
    simulate: bool = False,
    auto_approve: bool = False,
    interviewer: Interviewer | None = None,
    backend: Any = None,
    allow_tools: bool = False,
    resume_fidelity: str | None = None,
    max_cost_usd: Decimal | float | str | None = DEFAULT_CEILING_USD,
    concurrency: int = 4,
    listener: Listener | None = None,
    services: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    yes: bool = False,
) -> Setup:
    """Return what a start or resume works with.

    Raises:
        ConfigError, ModelError: The model cannot be asked, or its calls cannot be priced under a ceiling.
    """
    clock = clock or SystemClock()
    options: dict[str, Any] = {
        SIMULATE: simulate, ALLOW: allow_tools, "auto_approve": auto_approve, "concurrency": concurrency,
        "max_cost_usd": max_cost_usd, RESUME_FIDELITY: resume_fidelity,
    }  # fmt: skip
    options = preflight.check_options(options, (), options.keys())
    setup = Setup(store, clock, Emitter(clock, [listener] if listener else []), options, yes=yes)
    given = {"interviewer": interviewer or (AutoApprove() if auto_approve else None), BACKEND: backend}
    setup.services = {**{name: value for name, value in given.items() if value is not None}, **(services or {})}
    setup.command = "./pipeline.sh run FILE.dot --resume {}".format
    if model is not None and not simulate:
        setup.model, setup.prices = model_of(model), prices_of(prices) or PriceBook()
        assert setup.model is not None
        setup.info = look_up(setup.model, clock, setup.emit, setup.policy)
        preflight.check_priced(setup.info, setup.prices, clock, options)
    return setup


#: The keywords of run_dot and run_compiled_graph that are for both.
_HOW = tuple(_setup.__kwdefaults__ or {})


def _runner(graph: CompiledGraph, setup: Setup) -> GraphRunner:
    return GraphRunner(graph, setup, setup.store.root if isinstance(setup.store, RunFolder) else None)


def identity_of(setup: Setup) -> dict[str, Any]:
    """Return what decides the work of a new run: who answers its prompts."""
    if setup.options.get(SIMULATE):
        return {"author": SIMULATION}
    return setup.info.identity() if setup.info else {}


def is_simulated(state: RunState) -> bool:
    """Return whether a run answers its prompts itself."""
    return state.identity.get("author") == SIMULATION


def check_is_dot(state: RunState) -> None:
    """Refuse a run of another kind of pipeline.

    Raises:
        ConfigError: It is one.
    """
    if DOT not in state.pins:
        message = f"Run {state.run_id} is of the pipeline {state.pipeline!r}, which is not a DOT graph."
        raise ConfigError(message, code="not_a_graph")


def current_node(state: RunState) -> str:
    """Return the path of the visit that ended last; "" if none has."""
    passed = passed_visits(ended_visits(state))
    return passed[-1].path if passed else ""


def _result(store: Store, ran: RunResult) -> GraphResult:
    """Return how it ended, with what the run's records say of nodes and context."""
    state = load(store, ran.run_id)
    ended, get_blob = ended_visits(state), partial(store.get_blob, ran.run_id)
    return GraphResult(
        **{each.name: getattr(ran, each.name) for each in fields(RunResult)},
        outcome=word_of(ended[-1]) if ended else "",
        completed_nodes=tuple(step.node for step in passed_visits(ended)),
        context={key: resolve_value(value, get_blob) for key, value in state.context.items()},
    )
