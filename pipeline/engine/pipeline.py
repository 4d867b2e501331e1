"""Pipeline: a user's steps as one thing to run and resume; the library's front door."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Never

from pipeline.clock import Clock, SystemClock
from pipeline.cost.admission import DEFAULT_CEILING_USD
from pipeline.cost.prices import PriceBook
from pipeline.engine import preflight
from pipeline.engine.arguments import (
    account_of,
    check_arguments,
    check_mapping,
    model_of,
    prices_of,
    store_of,
)
from pipeline.engine.contexts import Reducer
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter, Listener
from pipeline.engine.preflight import check_options
from pipeline.engine.remote.coordinator import maps_on
from pipeline.engine.remote.parcels import load_file
from pipeline.engine.result import RunResult
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Definition, Setup, check_body
from pipeline.engine.step import StepFunction, StepSpec, step
from pipeline.errors import ConfigError, GraphError
from pipeline.graph.model import Edge, Graph, Node, chain
from pipeline.graph.validation import validate
from pipeline.llm.base import Model
from pipeline.store.base import Account, Store
from pipeline.store.reader import LATEST, load, resolve


class Pipeline:
    """Named steps in a chain, or in a graph where `edges` are given."""

    def __init__(
        self,
        name: str,
        steps: Sequence[StepSpec | StepFunction],
        *,
        edges: Iterable[Sequence[str] | Edge] | None = None,
        joins: Mapping[str, str] | None = None,
        reducers: Mapping[str, Reducer] | None = None,
        asks: bool = False,
        options: Collection[str] = (),
    ) -> None:
        """Check and keep the parts.

        Args:
            edges: (source, target) or (source, target, outcome label); None: a chain.
            joins: Node → "any" (each token is a visit; default) or "all" (waits for every branch).
            reducers: Context key → function that merges what two branches set.
            asks: It asks a model, so a run without one is refused before any step.
            options: Names of options of its own that could be taken for misspelt ones of the engine.

        Raises:
            GraphError: The graph cannot be run; names the node or edge.
        """
        specs = _specs(name, steps)
        graph = _graph(specs, edges, joins or {})
        validate(graph)
        self.definition = Definition(str(name), graph, {spec.name: spec for spec in specs}, reducers or {})
        #: Its steps ask a model.
        self.asks = asks
        self._own_options = frozenset(options)

    @property
    def name(self) -> str:
        """Return the pipeline's name, as `list` shows it."""
        return self.definition.name

    def run(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        store: Store | str,
        model: Model | str | None = None,
        pins: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        listener: Listener | None = None,
        services: Mapping[str, Any] | None = None,
        prices: PriceBook | Path | str | None = None,
        clock: Clock | None = None,
        account: Account | str | None = None,
        executor: Executor | None = None,
        **unknown: Never,
    ) -> RunResult:
        """Make a new run, and run it as far as it goes; problems of the run are in the result.

        Args:
            params: JSON values the steps read as ctx.params; never secrets.
            store: A store, or its URL.
            model: A model, or the name of one of Claude's ("offline": stand-in answers).
            options: max_cost_usd (default 50; None: no ceiling), daily_budget_usd, budget, concurrency (default 4),
                batch, until, and whatever steps read as ctx.options.
            account: Of another store (open_account), where limits are to count over both; else the store's own.
            executor: Does the items of maps (devops/docs/scale.md); None: threads of this process.

        Raises:
            ConfigError, StoreError, ModelError: Before anything was recorded.
        """
        check_arguments("run", unknown, _names(Pipeline.run))
        check_mapping(params, "params")
        check_mapping(pins, "pins")
        setup = self._setup(
            {"max_cost_usd": DEFAULT_CEILING_USD}, options, clock or SystemClock(), listener, executor,
            store=store, model=model, services=services or {}, prices=prices, account=account,
        )  # fmt: skip
        preflight.check_params(params or {})
        identity = setup.info.identity() if setup.info else {}
        return Engine(self.definition, setup).start(params or {}, identity=identity, pins=pins or {})

    def resume(
        self,
        run_id: str,
        *,
        store: Store | str,
        model: Model | str | None = None,
        options: Mapping[str, Any] | None = None,
        listener: Listener | None = None,
        services: Mapping[str, Any] | None = None,
        prices: PriceBook | Path | str | None = None,
        clock: Clock | None = None,
        account: Account | str | None = None,
        executor: Executor | None = None,
        yes: bool = False,
        refresh: Collection[str] = (),
        retry_unknown: bool = False,
        params: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> RunResult:
        """Continue a run: only what is not finished is made; recorded replies are free.

        Args:
            run_id: Its id, or "latest": the newest run of this pipeline.
            params: Parameters that the run lacks; those that it has are kept.
            options: As of run(); the run keeps its ceiling where none is given.
            yes: Continue without confirmation.
            refresh: Effect classes (read) whose completed steps are run again, with what read them.
            retry_unknown: Retry side effects whose outcome is unknown.

        Raises:
            RunNotFound, RunLocked, CheckpointCorrupt, SettingsConflict, NeedsConfirmation: See Engine.resume.
        """
        check_arguments("resume", unknown, _names(Pipeline.resume))
        if not isinstance(run_id, str):
            text = f"resume was given a {type(run_id).__name__}; it takes the id of a run."
            hint = 'Write resume(result.run_id, …), or resume("latest", …).'
            raise ConfigError(text, code="invalid_argument", argument="run_id", hint=hint)
        check_mapping(params, "params")
        setup = self._setup(
            {}, options, clock or SystemClock(), listener, executor, store=store, model=model,
            services=services or {}, prices=prices, account=account, yes=yes,
        )  # fmt: skip
        run = resolve(setup.store, run_id, self.name) if run_id == LATEST else run_id
        added = preflight.added_params(load(setup.store, run), params) if params else None
        return Engine(self.definition, setup).resume(run, refresh=refresh, retry_unknown=retry_unknown, params=added)

    def _setup(
        self,
        defaults: Mapping[str, Any],
        options: Mapping[str, Any] | None,
        clock: Clock,
        listener: Listener | None,
        executor: Executor | None,
        **given: Any,
    ) -> Setup:
        check_mapping(options, "options")
        check_mapping(given["services"], "services")
        if listener is not None:
            check_body(listener, "the listener", "event")
        options = {**defaults, **(options or {})}
        # An executor given from Python has no name that a command could repeat.
        checked = {"executor": None, **check_options(options, self.definition.graph.nodes, self._own_options)}
        opening = {"store": store_of, "model": model_of, "prices": prices_of, "account": account_of}
        given |= {name: opened(given[name]) for name, opened in opening.items()}
        setup = Setup(clock=clock, emit=Emitter(clock, [listener] if listener else []), options=checked, **given)
        setup.command = "./pipeline.sh run FILE.py:NAME --resume {}".format
        if self.asks and setup.model is None:
            raise preflight.no_model()
        preflight.check_batches(setup.model, checked)
        if setup.model is not None:
            setup.info = look_up(setup.model, clock, setup.emit, setup.policy)
            setup.prices = setup.prices or PriceBook()
            preflight.check_counts(setup.model, setup.info, checked)
            preflight.check_priced(setup.info, setup.prices, clock, checked)
        if executor is not None:
            setup.map_runner = maps_on(executor, getattr(setup.store, "url", ""), self.definition, setup)
        return setup


def _names(function: Callable[..., Any]) -> list[str]:
    """Return the names of a method's arguments."""
    code = function.__code__
    return list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def _specs(name: object, steps: Any) -> list[StepSpec]:
    """Return the steps, each a function or one made by @step().

    Raises:
        ConfigError: They are none.
    """
    if isinstance(steps, (str, StepSpec, Mapping)) or not isinstance(steps, Iterable) or not isinstance(name, str):
        text = 'A pipeline is a name and a list of steps: Pipeline("name", [first, second]).'
        raise ConfigError(text, code="invalid_steps")
    return [item if isinstance(item, StepSpec) else step()(item) for item in steps]


def _graph(specs: Sequence[StepSpec], edges: Iterable[Sequence[str] | Edge] | None, joins: Mapping[str, str]) -> Graph:
    names = [spec.name for spec in specs]
    for name in joins:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"Did you mean {near[0]!r}?" if near else ""
            raise GraphError(f"joins names {name!r}, which is no step.", code="unknown_step", hint=hint)
    nodes = [Node(spec.name, joins.get(spec.name, "any"), spec.version, spec.effect, spec.repeatable) for spec in specs]
    if edges is None:
        return chain(nodes)
    made = [edge if isinstance(edge, Edge) else _edge(edge) for edge in edges]
    return Graph.of(nodes, made, nodes[0].id if nodes else "")


def _edge(parts: Sequence[str]) -> Edge:
    if isinstance(parts, str) or len(parts) not in (2, 3):
        text = f"{parts!r} is no edge; an edge is (source, target) or (source, target, outcome)."
        raise GraphError(text, code="invalid_edge", hint='For example: edges=[("draft", "done")].')
    return Edge(parts[0], parts[1], parts[2] if len(parts) > 2 else None)


def load_pipeline(target: str) -> tuple[Pipeline, str]:
    """Return the Pipeline object that FILE.py:NAME names, and its whole name. Runs the file, as Python's import does.

    Args:
        target: Without NAME: the only Pipeline of the file.

    Raises:
        ConfigError: No such file, it cannot be imported, NAME is no Pipeline, or none is named where there are more.
    """
    text, _, name = target.rpartition(":") if ":" in target else (target, "", "")
    module = load_python(text)
    there = {key: value for key, value in vars(module).items() if isinstance(value, Pipeline)}
    if not name and len(set(map(id, there.values()))) == 1:
        name = next(iter(there))
    if name not in there:
        raise _unnamed(text, name, list(there))
    return there[name], f"{text}:{name}"


def load_python(text: str) -> ModuleType:
    """Return a Python file as a module. Runs the file, as Python's import does.

    Raises:
        ConfigError: No such file, or it cannot be imported.
    """
    path = Path(os.path.expanduser(text)).absolute()
    if not path.is_file():
        what = f"{text!r} is not a regular file." if path.exists() else f"There is no file {text!r}."
        raise ConfigError(what, code="file_not_found")
    if path.suffix != ".py":
        raise ConfigError(f"{text!r} is not a Python file.", code="not_python", hint="Its name must end in .py.")
    try:
        return load_file(_module_name(path), path)
    except (Exception, SystemExit) as error:
        text = f"{text} cannot be imported: {type(error).__name__}: {error}"
        raise ConfigError(text, code="import_failed", hint=_namesake(path)) from error


def _module_name(path: Path) -> str:
    """Return the name under which a file is imported: its own, unless that is a module of Python's or of ours."""
    known = sys.modules.get(path.stem)
    taken = known is not None and getattr(known, "__file__", None) != str(path)
    return f"{path.stem}_file" if taken or path.stem in sys.stdlib_module_names else path.stem


def _namesake(path: Path) -> str:
    """Return what to do where a module beside a file has the name of this program's package; "" where none has."""
    beside = [each for each in ("pipeline.py", "pipeline/") if (path.parent / each).exists() and path.name != each]
    if not beside:
        return ""
    return f"`import pipeline` finds this program, not the {beside[0]} beside {path.name}: give that another name."


def _unnamed(file: str, name: str, there: Sequence[str]) -> ConfigError:
    """Return the error of a target that names no pipeline of its file."""
    hint = "It must assign a Pipeline to a name: LESSONS = Pipeline(…)."
    if there:
        hint = f"Add a name: `./pipeline.sh run {shlex.quote(f'{file}:{there[0]}')}`."
    if name:
        return ConfigError(f"{name!r} in {file} is not a Pipeline.", code="pipeline_not_found", hint=hint)
    what = f"{file} has {len(there)} pipelines: {', '.join(there)}." if there else f"{file} has no pipeline."
    return ConfigError(what, code="invalid_target" if there else "pipeline_not_found", hint=hint)
