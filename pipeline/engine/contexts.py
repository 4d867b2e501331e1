"""The context a node sees: frozen at its activation, travelling with its tokens, merged where branches join.

Two things in the graph change that: a node that gathers a fan-out (attributes["scope"]) sees what held before
its branches, and an edge that restarts (attributes["restart"]) lets only the keys `graph.…` through, and those that
its attributes["keep"] names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engine.recorder import Recorder
from pipeline.errors import GraphError
from pipeline.graph.model import Graph, frozen
from pipeline.graph.tracks import Tracks
from pipeline.records.run import RunState, StepRun
from pipeline.records.statuses import FAILED

#: Merges what two branches set for one context key.
Reducer = Callable[[Any, Any], Any]
#: key → (value as recorded, path of the visit that set it)
_View = Mapping[str, tuple[Any, str]]
#: Keys that a restart keeps begin with this.
_KEPT = "graph."


class Contexts:
    """Works out, and keeps, what each visit saw; views are shared where nothing changed."""

    def __init__(self, graph: Graph, state: RunState, reducers: Mapping[str, Reducer]) -> None:
        self._state = state
        self._reducers = reducers
        self._order = {edge.id: index for index, edge in enumerate(graph.edges)}
        #: Edges that restart, and the keys that those let through beside `graph.…`.
        self._restarts = {
            edge.id: frozenset(edge.attributes.get("keep") or ())
            for edge in graph.edges
            if edge.attributes.get("restart")
        }
        self._tracks = Tracks(graph, state.steps)
        self._after: dict[str, tuple[str, _View]] = {}

    def seen(self, consumed: Sequence[Sequence[str]], node: str = "") -> dict[str, Any]:
        """Return what a visit of `node` that consumes these tokens sees.

        Raises:
            GraphError: Two branches set one key and no reducer says how to merge them.
        """
        if not self._state.context:
            return {}
        return {key: value for key, (value, _) in self._base(node, consumed).items()}

    def setter(self, path: str, key: str) -> str:
        """Return the visit that set what a key holds after a visit; "" where none did."""
        return self._view(path).get(key, (None, ""))[1]

    def since(self, path: str, fan: str) -> dict[str, Any]:
        """Return what is set after a visit that was not set so after the visit `fan`."""
        before = self._view(fan) if fan else {}
        return {key: value for key, (value, writer) in self._view(path).items() if before.get(key) != (value, writer)}

    def fan_of(self, node: str, consumed: Sequence[Sequence[str]]) -> str:
        """Return the visit whose branches a node gathers; "" where it gathers none."""
        return next((fan for _, source in consumed if (fan := self._tracks.group(node, source))), "")

    def branch_of(self, path: str, fan: str) -> str:
        """Return the node with which the branch began that led from the visit `fan` to the visit `path`."""
        for step in self._backwards(path):
            if any(source == fan for _, source in step.consumed):
                return step.node
        return ""

    def branch(self, node: str, path: str, consumed: Sequence[Sequence[str]]) -> str:
        """Return the node with which the branch of the innermost fan-out began that a visit lies in; "": in none."""
        fans = self._tracks.of(node, consumed)
        return self.branch_of(path, fans[-1]) if fans else ""

    def ordered(self, consumed: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """Return tokens in order of their edges' declaration."""
        return sorted(consumed, key=lambda token: self._order.get(token[0], -1))

    def ancestors(self, consumed: Sequence[Sequence[str]]) -> list[StepRun]:
        """Return the visits that led here, oldest first, in a fixed order; a restart forgets those before it."""
        found: dict[str, StepRun] = {}
        seen: set[str] = set()
        todo = [(source, False) for _, source in reversed(self._onward(consumed))]
        while todo:
            path, entered = todo.pop()
            run = self._state.steps.get(path)
            if run is None or (path in seen and not entered):
                continue
            if entered:
                found[path] = run
                continue
            seen.add(path)
            todo.append((path, True))
            todo.extend((source, False) for _, source in reversed(self._onward(run.consumed)))
        return list(found.values())

    def nearest(self, consumed: Sequence[Sequence[str]], most: int) -> list[StepRun]:
        """Return the visits that led here, nearest first, at most so many; costs no more where there are thousands."""
        found: dict[str, StepRun] = {}
        todo = [source for _, source in self._onward(consumed)]
        for path in todo:
            run = self._state.steps.get(path)
            if run is None or path in found:
                continue
            if len(found) == most:
                break
            found[path] = run
            todo.extend(source for _, source in self._onward(run.consumed))
        return list(found.values())

    def _onward(self, consumed: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        return [token for token in self.ordered(consumed) if token[1] and token[0] not in self._restarts]

    def _backwards(self, path: str) -> Iterator[StepRun]:
        """Yield a visit and what it came from, nearest first."""
        todo, seen = [path], {path}
        for at in todo:
            run = self._state.steps.get(at)
            if run is None:
                continue
            yield run
            for _, source in self.ordered(run.consumed):
                if source and source not in seen:
                    seen.add(source)
                    todo.append(source)

    def _base(self, node: str, consumed: Sequence[Sequence[str]]) -> _View:
        fan = self.fan_of(node, consumed) if node in self._tracks.gathers else ""
        return self._view(fan) if fan else self._merge(consumed)

    def _merge(self, consumed: Sequence[Sequence[str]]) -> _View:
        views = []
        for edge, source in self.ordered(consumed):
            if source:
                view, kept = self._view(source), self._restarts.get(edge)
                if kept is not None:
                    view = {key: entry for key, entry in view.items() if key.startswith(_KEPT) or key in kept}
                views.append(view)
        if not views:
            return {}
        merged = dict(views[0]) if len(views) > 1 else views[0]
        for view in views[1:]:
            assert isinstance(merged, dict)
            for key, (value, writer) in view.items():
                self._join(merged, key, value, writer)
        return merged

    def _join(self, merged: dict[str, tuple[Any, str]], key: str, value: Any, writer: str) -> None:
        known = merged.get(key)
        if known is None or known[1] == writer or self._before(known[1], writer):
            merged[key] = (value, writer)
        elif not self._before(writer, known[1]):
            reducer = self._reducers.get(key)
            if reducer is None:
                raise GraphError(
                    f"Two branches set the context key {key!r} ({known[1]} and {writer}).",
                    code="context_conflict",
                    hint="Give the pipeline a reducer for it, or use two keys.",
                )
            merged[key] = (reducer(known[0], value), writer)

    def _view(self, path: str) -> _View:
        """Return what holds after a visit; worked out without recursion, so long chains are no trouble."""
        todo = [path]
        while todo:
            at = todo[-1]
            run = self._state.steps.get(at)
            if run is None or self._fresh(at) is not None:
                todo.pop()
                continue
            sources = [source for _, source in run.consumed if source in self._state.steps]
            missing = [source for source in sources if self._fresh(source) is None]
            if missing:
                todo.extend(missing)
                continue
            base = self._base(run.node, run.consumed)
            changed = {**base, **{key: (value, at) for key, value in run.context.items()}} if run.context else base
            self._after[at] = (run.checkpoint, changed)
            todo.pop()
        return self._fresh(path) or {}

    def _fresh(self, path: str) -> _View | None:
        known = self._after.get(path)
        run = self._state.steps.get(path)
        return known[1] if known is not None and run is not None and known[0] == run.checkpoint else None

    def _before(self, first: str, second: str) -> bool:
        """Return whether visit `first` is an ancestor of visit `second`."""
        return first != second and any(step.path == first for step in self._backwards(second))


@dataclass(frozen=True, slots=True)
class Arrival:
    """One of the tokens that a visit consumed, and the work that sent it."""

    edge: str
    #: The visit it came from, and its node.
    path: str
    node: str
    #: The node with which its branch began, where a fan-out is gathered; else "".
    branch: str
    outcome: str
    failed: bool
    error: Mapping[str, Any] | None
    outputs: Mapping[str, Any]
    #: What the branch set since its fan-out; where none is gathered, what held after the visit.
    context: Mapping[str, Any]


@frozen
class Lineage:
    """Where a visit is in the graph and what it came from."""

    graph: Graph
    contexts: Contexts
    node: str
    visit: int
    #: (edge id, path of the visit that chose it).
    consumed: Sequence[Sequence[str]]

    def arrivals(self, recorder: Recorder, value: Callable[[Any], Any]) -> list[Arrival]:
        """Return the tokens consumed, in order of their edges' declaration.

        Args:
            value: Reads back a recorded value.
        """
        contexts, found = self.contexts, []
        with recorder.reading() as state:
            fan = contexts.fan_of(self.node, self.consumed)
            for edge, source in contexts.ordered(self.consumed):
                run = state.steps.get(source)
                if run is not None:
                    branch = contexts.branch_of(source, fan) if fan else ""
                    found.append((edge, run, branch, contexts.since(source, fan)))
        return [
            Arrival(edge, run.path, run.node, branch, run.outcome, run.status == FAILED, run.error,
                    value(run.outputs), {key: value(known) for key, known in since.items()})
            for edge, run, branch, since in found
        ]  # fmt: skip
