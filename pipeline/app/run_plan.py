"""What `run` would do: every node, whether it asks a model, a person or a shell, and what a resume finds done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.app.model_choice import check_able, default_model, has_credential, provider_in, with_own
from pipeline.app.run_graph import drawn_marks
from pipeline.app.start import settings_now
from pipeline.app.stores import open_store
from pipeline.dot import kinds
from pipeline.dot.drawing import in_order
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.rules import tool_commands
from pipeline.engine.pipeline import load_pipeline
from pipeline.errors import ConfigError
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.attractor.library import find_run
from pipeline.formats.attractor.runner import CompiledGraph
from pipeline.formats.attractor.source import Source
from pipeline.providers import ANTHROPIC
from pipeline.records.run import RunState
from pipeline.settings import OFFLINE, Execution, Identity
from pipeline.store.reader import load, resolve

MODEL, SHELL, CODE = "asks the model", "runs a shell command", "runs code"
#: What nodes of a graph do that ask no model and run no command.
_DOES = {
    kinds.START: "begins the run", kinds.EXIT: "ends the run", kinds.CONDITIONAL: "decides where to go",
    kinds.HUMAN: "asks a person", kinds.PARALLEL: "starts branches", kinds.FAN_IN: "gathers branches",
    kinds.LOOP: "runs a child pipeline", kinds.CHILD_START: "begins a child", kinds.CHILD_EXIT: "ends a child",
}  # fmt: skip
#: Of a node that was not visited.
_NEW = ("", "")


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node and what running it means."""

    node: str
    does: str
    #: As the resumed run left it ("completed", "failed", "running"); "": it has not been visited.
    status: str
    #: Its shell command; "": none.
    command: str = ""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Describe what a start would do."""

    pipeline: str
    #: The run that is resumed; "": a new one.
    run: str
    #: "": no node asks one, as far as the graph says.
    model: str
    credential: bool
    ceiling_usd: str | None
    nodes: Sequence[PlannedNode]

    def to_json(self) -> dict[str, Any]:
        """Return the object of --dry-run --json."""
        return {**asdict(self), "nodes": list(map(asdict, self.nodes)), "run": self.run or None}

    @property
    def permissions(self) -> list[str]:
        """Return the nodes that run shell commands."""
        return [each.node for each in self.nodes if each.does == SHELL]


def plan_file(target: str, asked: Identity, execution: Execution) -> RunPlan:
    """Return what running FILE.py:NAME would do; imports the file, as every start does, and changes nothing.

    Raises:
        ConfigError, GraphError: The file has no such pipeline.
        RunNotFound: There is no such run to resume.
    """
    pipeline, _ = load_pipeline(target)
    asked, _ = with_own(asked)
    store = open_store(execution.store_url)
    state = load(store, resolve(store, execution.resume, pipeline.name)) if execution.resume else None
    graph = pipeline.definition.graph
    nodes = {name: DotNode(name, {}) for name in graph.nodes}
    drawn = DotGraph(pipeline.name, {}, nodes, tuple(DotEdge(each.source, each.target) for each in graph.edges))
    marks = drawn_marks(state) if state else {}
    rows = [PlannedNode(name, CODE, marks.get(name, _NEW)[0]) for name in in_order(drawn)]
    answers = _model(state, asked) if pipeline.asks or asked.model or asked.provider or has_credential() else ""
    return _plan(pipeline.name, state, answers, asked, execution, rows)


def plan_dot(
    target: str | None, resume: str | None, asked: Identity, execution: Execution, *, simulate: bool
) -> RunPlan:
    """Return what running a DOT file would do; changes nothing.

    Raises:
        ConfigError, GraphError: The graph cannot be run.
        RunNotFound: There is no such run to resume.
    """
    state = None
    if resume:
        store, run, checkpoint = find_run(resume, open_store(execution.store_url))
        state = load(store, run) if checkpoint is None else None
    if target is not None:
        source = Source.read(target)
    elif state is not None:
        source = Source.stored(store, state)
    else:
        raise ConfigError("Another system's checkpoint has no graph.", code="graph_missing", hint="Name its FILE.dot.")
    source.checked(standard_registry().types())
    graph = CompiledGraph.of(source, standard_registry())
    asking, commands = set(graph.asking_nodes()), dict(tool_commands(graph.dot))
    marks = drawn_marks(state) if state else {}
    rows = []
    for name in in_order(graph.dot):
        kind = graph.dot.kind(graph.dot.nodes[name])
        does = MODEL if name in asking else SHELL if name in commands else _DOES.get(kind, CODE)
        rows.append(PlannedNode(name, does, marks.get(name, _NEW)[0], commands.get(name, "")))
    asked, _ = with_own(asked)
    asks = bool(asking) and not simulate and asked.model != OFFLINE
    return _plan(graph.definition.name, state, _model(state, asked) if asks else "", asked, execution, rows)


def _plan(
    name: str,
    state: RunState | None,
    model: str,
    asked: Identity,
    execution: Execution,
    rows: Sequence[PlannedNode],
) -> RunPlan:
    how: Mapping[str, Any] = settings_now(execution, state.execution if state else {})
    run = state.run_id if state else ""
    provider = asked.provider or (provider_in(state.identity) if state else ANTHROPIC)
    if model not in ("", OFFLINE):
        check_able(provider, how)
    # Whether another provider can be logged in at shows once it is asked.
    able = model == OFFLINE or provider != ANTHROPIC or has_credential()
    return RunPlan(name, run, model, able, how["max_cost_usd"], rows)


def _model(state: RunState | None, asked: Identity) -> str:
    its = str((state.identity.get("model") if state else "") or "")
    return asked.model or its or default_model(asked.provider)
