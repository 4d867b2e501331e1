"""Time travel from the command line: forks that know this product, and the code of a run's pipeline for its replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.errors import ConfigError
from pipeline.settings import LessonsOptions
from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.engine.setup import Definition
    from pipeline.records.run import RunState
    from pipeline.travel.fork import Forked
    from pipeline.travel.replay import Replayed

#: The pin that holds a DOT graph's text; the service, and the task, that answers prompts in the place of a model.
_DOT, _AGENT = "dot", "backend"
#: Settings of a course that a fork can have otherwise.
_CHANGEABLE = ("effort", "lessons", "model")


def fork(store: Store, run: str, *, at: str, assignments: Sequence[str], into: Store | None = None) -> Forked:
    """Fork a run; assignments are KEY=VALUE as typed.

    Raises:
        ConfigError, RunNotFound, SecretRefused, CheckpointCorrupt: See travel.fork.
    """
    from pipeline import __version__
    from pipeline.formats.langgraph.threads import PIPELINE as THREAD
    from pipeline.store.reading import load
    from pipeline.travel.fork import fork as made
    from pipeline.travel.given import read_assignments, wishes

    changes = read_assignments(assignments)
    pipeline = load(store, run).pipeline
    if pipeline == THREAD:
        raise ConfigError(
            f"Run {run} holds a LangGraph thread, and its graph is not part of this program.",
            hint="`update_state` of the graph forks it at any checkpoint; `copy_thread` of the saver copies it.",
        )
    if changes and pipeline == "lessons":
        check_course([(wish.kind, wish.key, wish.value) for wish in wishes(changes)])
    found = made(store, run, at=at, changes=changes, into=into, product=__version__)
    return replace(found, unknown=_not_named(store, run, found.unknown)) if found.unknown else found


def _not_named(store: Store, run: str, unknown: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Of names that nobody knew by then, those that a run's DOT graph does not name either."""
    from pipeline.dot.names import names_in
    from pipeline.formats.attractor.source import Source
    from pipeline.store.reading import load

    state = load(store, run)
    named = names_in(Source.stored(store, state).graph()) if _DOT in state.pins else frozenset()
    return {name: near for name, near in unknown.items() if name.partition(".")[2] not in named}


def check_course(changes: Iterable[tuple[str, str, Any]]) -> None:
    """Refuse values that a course cannot have: its pinned texts would belong to another one.

    Raises:
        ConfigError: Names the value and what can be changed.
    """
    for kind, key, value in changes:
        if kind == "params" or (kind == "settings" and key not in _CHANGEABLE):
            raise ConfigError(
                f"{kind}.{key} of a course cannot be changed in a fork: the texts it is pinned to would not fit.",
                hint=f"It can change settings.{', settings.'.join(_CHANGEABLE)}; for another course start a new run.",
            )
        if kind == "settings" and key == "lessons" and type(value) is not int:
            raise ConfigError(f"settings.lessons is {value!r}; it is a number.")
        if kind == "settings" and key != "model":
            LessonsOptions(**{key: value})


def replay(store: Store, run: str, *, to: str = "end", target: str | None = None) -> Replayed:
    """Run a run's stored graph on its recorded replies.

    Args:
        target: FILE.py:NAME, the code of a pipeline of the user's own.

    Raises:
        RunNotFound, CheckpointCorrupt, GraphError: See travel.replay.
        ConfigError: It is not known where the code of its steps is.
    """
    from pipeline.store.reading import load
    from pipeline.travel.replay import replay as replayed

    state = load(store, run)
    return replayed(store, run, definition_of(store, state, target), to=to, services=_stand_ins(state))


def definition_of(store: Store, state: RunState, target: str | None) -> Definition:
    """The code of a run's pipeline: the product's own, that of a DOT graph's nodes, or FILE.py:NAME.

    Raises:
        ConfigError: None of these is it.
    """
    from pipeline.formats.langgraph.threads import check_is_no_thread

    check_is_no_thread(state)
    if target:
        from pipeline.engine.pipeline import load_pipeline

        found = load_pipeline(target)
        if found.name != state.pipeline:
            raise ConfigError(
                f"Run {state.run_id} belongs to the pipeline {state.pipeline!r}, but {target} is {found.name!r}."
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
        hint="Name it: --file FILE.py:NAME.",
    )


class _RecordedAgent:
    """Stands for an agent of the user's own: its answers are recorded as work that acts outside."""

    effect = "external"


def _stand_ins(state: RunState) -> dict[str, Any]:
    """Services that the nodes of a graph look for, where the record has their answers."""
    answered = any(_AGENT in tasks for tasks in state.tasks.values())
    return {_AGENT: _RecordedAgent()} if answered else {}
