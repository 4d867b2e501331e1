"""Forks, replays and completed marks that know this product: whose code a run's pipeline is; the library's store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline import __version__
from pipeline.clock import Clock, SystemClock
from pipeline.engine.amendment import amend, declared_done
from pipeline.engine.arguments import store_of
from pipeline.engine.setup import Definition
from pipeline.errors import ConfigError
from pipeline.formats.agentos import store as agentos
from pipeline.formats.langgraph.threads import PIPELINE as THREAD
from pipeline.formats.langgraph.threads import check_is_no_thread
from pipeline.records.kinds import Fact
from pipeline.records.run import RunState, bare
from pipeline.records.values import is_reference
from pipeline.settings import Identity
from pipeline.store.base import Store
from pipeline.store.reader import load, resolve
from pipeline.travel.fork import Forked, fork_run
from pipeline.travel.fork import fork as made_fork
from pipeline.travel.overrides import parse_changes, read_assignments
from pipeline.travel.replay import Replayed
from pipeline.travel.replay import replay as replayed

#: The pin that holds a DOT graph's text; the service, and the task, that answers prompts in the place of a model.
_DOT, _AGENT = "dot", "backend"
#: Settings of a course that a fork can have otherwise.
_CHANGEABLE = ("effort", "lessons", "model")


def fork(store: Store, run: str, *, at: str, assignments: Sequence[str], into: Store | None = None) -> Forked:
    """Fork a run; assignments are KEY=VALUE as typed.

    Raises:
        ConfigError, RunNotFound, SecretRefused, CheckpointCorrupt: See travel.fork.
    """
    changes = changes_of(load(store, run), assignments)
    return meant(store, made_fork(store, run, at=at, changes=changes, into=into, product=__version__))


def changes_of(state: RunState, assignments: Sequence[str]) -> Mapping[str, Any]:
    """Return KEY=VALUE as typed, by name.

    Raises:
        ConfigError: They cannot be read, or the run cannot have them.
    """
    changes = read_assignments(assignments)
    if state.pipeline == THREAD:
        raise ConfigError(
            f"Run {state.run_id} holds a LangGraph thread, and its graph is not part of this program.",
            code="other_pipeline",
            hint="`update_state` of the graph forks it at any checkpoint; `copy_thread` of the saver copies it.",
        )
    if changes and state.pipeline == "lessons":
        check_course([(wish.kind, wish.key, wish.value) for wish in parse_changes(changes)])
    return changes


def meant(store: Store, found: Forked) -> Forked:
    """Return a fork with those unknown names only that the run's graph does not name either."""
    state = load(store, found.parent) if found.unknown else None
    if state is None or _DOT not in state.pins:
        return found
    from pipeline.dot.names import names_in
    from pipeline.formats.attractor.source import Source

    named = names_in(Source.stored(store, state).graph())
    unknown = {name: near for name, near in found.unknown.items() if name.partition(".")[2] not in named}
    return replace(found, unknown=unknown)


def changeable(state: RunState) -> list[str]:
    """Return the names that a fork can give another value: settings, parameters, context keys, outputs."""
    course = state.pipeline == "lessons"
    names = [f"settings.{key}" for key in state.identity if not course or key in _CHANGEABLE]
    names += [] if course else [f"params.{key}" for key in state.params]
    names += [key if "." not in key else f"context.{key}" for key in state.context]
    made = {bare(step.path): step.outputs for step in state.steps.values() if not is_reference(step.outputs)}
    return names + [f"outputs.{step}.{key}" for step, outputs in made.items() for key in outputs]


def check_course(changes: Iterable[tuple[str, str, Any]]) -> None:
    """Refuse values that a course cannot have: its pinned texts would belong to another one.

    Raises:
        ConfigError: Names the value and what can be changed.
    """
    for kind, key, value in changes:
        if kind == "params" or (kind == "settings" and key not in _CHANGEABLE):
            raise ConfigError(
                f"{kind}.{key} of a course cannot be changed in a fork: the texts it is pinned to would not fit.",
                code="invalid_fork",
                hint=f"It can change settings.{', settings.'.join(_CHANGEABLE)}; for another course start a new run.",
            )
        if kind == "settings" and key == "lessons" and type(value) is not int:
            raise ConfigError(f"settings.lessons is {value!r}; it must be a number.", code="invalid_fork")
        if kind == "settings" and key != "model":
            Identity(**{key: value})


def replay(store: Store, run: str, *, to: str = "end", target: str | None = None) -> Replayed:
    """Run a run's stored graph on its recorded replies.

    Args:
        target: FILE.py:NAME, the code of a pipeline of the user's own.

    Raises:
        RunNotFound, CheckpointCorrupt, GraphError: See travel.replay.
        ConfigError: It is not known where the code of its steps is.
    """
    state = load(store, run)
    # A service that the nodes of a graph look for, where the record has its answers.
    answered = any(_AGENT in tasks for tasks in state.tasks.values())
    services = {_AGENT: _RecordedAgent()} if answered else {}
    return replayed(store, run, definition_of(store, state, target), to=to, services=services)


def mark_done(store: Store, run: str, step: str, outputs: Mapping[str, Any], target: str | None = None) -> str:
    """Mark a step without an end as completed; return the run's id.

    Args:
        target: FILE.py:NAME, the code of a pipeline of the user's own.

    Raises:
        ConfigError: No such step is without an end, or the code of the pipeline is not known.
        RunLocked: A living process owns the run.
    """
    name, clock = resolve(store, run), SystemClock()
    state = load(store, name)
    known = None if _DOT in state.pins else state.execution.get("target")
    definition = definition_of(store, state, target or (str(known) if known else None))

    def decide(state: RunState) -> Sequence[Fact]:
        return [declared_done(definition, state, step, outputs, clock)]

    amend(store, name, clock, decide)
    return name


def definition_of(store: Store, state: RunState, target: str | None) -> Definition:
    """Return the code of a run's pipeline: the product's own, that of a DOT graph's nodes, or FILE.py:NAME.

    Raises:
        ConfigError: None of these is it.
    """
    check_is_no_thread(state)
    if target:
        from pipeline.engine.pipeline import load_pipeline

        found, _ = load_pipeline(target)
        if found.name != state.pipeline:
            raise ConfigError(
                f"Run {state.run_id} belongs to the pipeline {state.pipeline!r}, but {target} is {found.name!r}.",
                code="other_pipeline",
            )
        return found.definition
    if _DOT in state.pins:
        from pipeline.formats.attractor.handlers.standard import standard_registry
        from pipeline.formats.attractor.runner import CompiledGraph
        from pipeline.formats.attractor.source import Source

        return CompiledGraph.of(Source.stored(store, state), standard_registry()).definition
    if state.pipeline == "lessons":
        from pipeline.lessons.pipeline import PIPELINE

        return PIPELINE.definition
    raise ConfigError(
        f"Run {state.run_id} belongs to the pipeline {state.pipeline!r}, whose code is not part of this program.",
        code="code_unknown",
        hint="Name it: --file FILE.py:NAME.",
    )


class _RecordedAgent:
    """Stand for an agent of the user's own: its answers are recorded as work that acts outside."""

    effect = "external"


class CheckpointStore(agentos.GraphCheckpointStore):
    """The checkpoints of graph runs in a store; see formats.agentos.store.GraphCheckpointStore."""

    def __init__(
        self, store: Store | str, *, nodes: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        """Use a store, or the one at a URL; it needs nothing else.

        Args:
            nodes: Node → before, after, both or none: its own boundaries that are listed, whatever the policy.
        """
        super().__init__(store_of(store), fork_run, nodes=nodes, clock=clock)
