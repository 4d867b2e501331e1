"""Which finished work would have to be made again, because what it was made from has changed or is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engine.bodies import code_of
from pipeline.engine.setup import StepSpec
from pipeline.engine.sources import Sources
from pipeline.errors import ConfigError
from pipeline.graph.model import ALL, Graph, Node
from pipeline.records.kinds import Invalidated
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import canonical, digest


@dataclass(frozen=True, slots=True)
class Stale:
    """Finished steps whose inputs have changed, and how."""

    #: path → what differs, for people ("settings.model", "version 1 → 2").
    steps: Mapping[str, str]
    #: How the graph differs, where it is more than grown.
    said: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.steps or self.said)

    def facts(self) -> list[Invalidated]:
        """Return the record that voids them, if there are any."""
        return [Invalidated("changed", paths=list(self.steps))] if self.steps else []


@dataclass(frozen=True, slots=True)
class GraphChange:
    """How a graph differs from the one a run was started with."""

    #: Sentences, for people.
    said: Sequence[str]
    #: Nodes that do something else now: what they completed is void.
    changed: frozenset[str]
    #: Ids of the edges that are new, and of those that are gone.
    added: frozenset[str]
    gone: frozenset[str]
    #: Nodes and edges were added, nothing else.
    grown: bool


#: Attributes of a node that do not decide what it does: how many visits run at once, and (JSON) where it leads.
_MAX_PARALLEL, LEADS = "max_parallel", "leads"


def of_graph(
    pinned: Mapping[str, Any], graph: Graph, comparable: Callable[[Graph], Graph] | None = None
) -> GraphChange:
    """Return how a graph differs from the pinned one; a step's version is not looked at here.

    Args:
        comparable: See Definition.
    """
    before = Graph.from_json(pinned)
    if comparable is not None:
        before, graph = comparable(before), comparable(graph)
    both = [name for name in graph.nodes if name in before.nodes]
    new = [f"step {name} is new" for name in graph.nodes if name not in before.nodes]
    gone = [f"step {name} is gone" for name in before.nodes if name not in graph.nodes]
    joins = [name for name in both if graph.nodes[name].join != before.nodes[name].join]
    changed = [name for name in both if _does(graph.nodes[name]) != _does(before.nodes[name])]
    leads = [{name: each.nodes[name].attributes.get(LEADS) for name in both} for each in (before, graph)]
    led = [name for name in both if leads[0][name] != leads[1][name]]
    old, now = ({edge.id: edge for edge in each.edges} for each in (before, graph))
    new += [f"edge {name} is new" for name in now if name not in old]
    gone += [f"edge {name} is gone" for name in old if name not in now]
    gone += [f"edge {name} is taken differently" for name in old if name in now and now[name] != old[name]]
    other = [f"step {name} joins differently" for name in joins]
    other += [f"step {name} does something else" for name in changed]
    other += [f"step {name} leads on differently" for name in led if name not in changed]
    if before.start != graph.start:
        other.append(f"it starts at {graph.start}")
    return GraphChange(
        [*other, *gone, *new], frozenset(changed), frozenset(now) - frozenset(old), frozenset(old) - frozenset(now),
        not (other or gone),
    )  # fmt: skip


def displaced(state: RunState, graph: Graph, change: GraphChange) -> list[str]:
    """Return the unfinished visits that cannot continue: their node is gone, or waits for other edges now."""
    found = []
    for run in state.steps.values():
        node = graph.nodes.get(run.node)
        if run.status == COMPLETED or run.edges:
            continue
        if node is None or (node.join == ALL and _waits_otherwise(run, graph, change)):
            found.append(run.path)
    return found


def _waits_otherwise(run: StepRun, graph: Graph, change: GraphChange) -> bool:
    lost = any(edge in change.gone for edge, _ in run.consumed)
    return lost or any(edge.id in change.added for edge in graph.incoming(run.node))


def _does(node: Node) -> Mapping[str, Any]:
    return {key: value for key, value in node.attributes.items() if key not in (_MAX_PARALLEL, LEADS)}


def asked(
    state: RunState,
    steps: Mapping[str, StepSpec],
    refresh: Collection[str],
    start: str,
    again: Collection[str] = (),
) -> list[Invalidated]:
    """Return the records that void completed visits that a person wants made again, with their tasks.

    What follows a step that was named is made again; what follows a refreshed one, only where it read it.

    Args:
        refresh: Effect classes (read).
        start: A step as people name it (its newest visit), or a path; "": none.
        again: Paths of visits.

    Raises:
        ConfigError: No such step was completed; names those that were.
    """
    named = [path for path in again if path in state.steps]
    if start and (path := _visit(state, start)) not in named:
        named.append(path)
    refreshed = [
        run.path
        for run in state.steps.values()
        if run.status == COMPLETED and run.node in steps and steps[run.node].effect in refresh and run.path not in named
    ]
    return [
        Invalidated(reason, paths, [[path, task] for path in paths for task in state.tasks.get(path, ())])
        for reason, paths in (("from", named), ("refresh", refreshed))
        if paths
    ]


def _visit(state: RunState, name: str) -> str:
    done = [run.path for run in state.steps.values() if run.ended_seq]
    if name in done:
        return name
    visits = [path for path in done if path.rpartition("#")[0] == name or bare(path) == name]
    if not visits:
        names = ", ".join(dict.fromkeys(bare(path) for path in done)) or "none"
        text = f"No step {name!r} has ended in run {state.run_id}."
        raise ConfigError(text, code="unknown_step", hint=f"Steps that have: {names}.")
    return max(visits, key=lambda path: state.steps[path].ended_seq)


def missing(state: RunState, steps: Mapping[str, StepSpec]) -> list[Invalidated]:
    """Return the record that voids completed visits that lack an artifact their step promises (imported runs)."""
    paths = [
        run.path
        for run in state.steps.values()
        if run.status == COMPLETED and run.node in steps and not run.artifacts.keys() >= set(steps[run.node].saves)
    ]
    return [Invalidated("missing", paths=paths)] if paths else []


def nothing_left(state: RunState, graph: Graph, steps: Mapping[str, StepSpec], *, same: bool = False) -> bool:
    """Return whether a run is completed in the graph as it is now, so that it continues only on request.

    Args:
        same: The graph is known to differ in nothing that decides something.
    """
    if state.status != COMPLETED:
        return False
    same = same or state.pins.get("graph") == digest(canonical(graph.to_json(), "graph"))
    return same and not missing(state, steps)


def stale(state: RunState, sources: Sources, steps: Mapping[str, StepSpec], change: GraphChange | None = None) -> Stale:
    """Return the visits that have ended and led on, and whose node, version or reads differ now."""
    found: dict[str, str] = {}
    for run in state.steps.values():
        spec = steps.get(run.node)
        if spec is None or not (run.status == COMPLETED or run.edges):
            continue
        if change is not None and run.node in change.changed:
            found[run.path] = "does something else now"
            continue
        if run.version != spec.version:
            found[run.path] = f"version {run.version} → {spec.version}"
            continue
        for name, known in run.reads.items():
            if not sources.stands(name, known, run.ended_seq):
                found[run.path] = name
                break
    return Stale(found, () if change is None or change.grown else change.said)


def made_otherwise(state: RunState, steps: Mapping[str, StepSpec]) -> list[str]:
    """Return the completed visits that were made by other code of the user's than there is now, oldest first."""
    now = {name: code_of(spec.run) for name, spec in steps.items()}
    return [
        run.path
        for run in state.steps.values()
        if run.status == COMPLETED and run.code and now.get(run.node, "") not in ("", run.code)
    ]


def redone(task: tuple[str, str], note: str) -> Invalidated:
    """Return the record that voids a single task, and the visit it belongs to."""
    return Invalidated("redo", paths=[task[0]], tasks=[list(task)], note=note)
