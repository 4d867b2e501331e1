"""The context a node sees: frozen at its activation, travelling with its tokens, merged where branches join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.errors import GraphError
from pipeline.graph.model import Graph
from pipeline.records.run import RunState

Reducer = Callable[[Any, Any], Any]
#: key → (value as recorded, path of the visit that set it)
_View = Mapping[str, tuple[Any, str]]


class Contexts:
    """Works out, and keeps, what each visit saw; views are shared where nothing changed."""

    def __init__(self, graph: Graph, state: RunState, reducers: Mapping[str, Reducer]) -> None:
        self._state = state
        self._reducers = reducers
        self._order = {edge.id: index for index, edge in enumerate(graph.edges)}
        self._after: dict[str, tuple[str, _View]] = {}

    def seen(self, consumed: Sequence[Sequence[str]]) -> dict[str, Any]:
        """What a visit that consumes these tokens sees.

        Raises:
            GraphError: Two branches set one key and no reducer says how to merge them.
        """
        if not self._state.context:
            return {}
        return {key: value for key, (value, _) in self._merge(consumed).items()}

    def _merge(self, consumed: Sequence[Sequence[str]]) -> _View:
        ordered = sorted(consumed, key=lambda token: self._order.get(token[0], -1))
        views = [self._view(source) for _, source in ordered if source]
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
                    hint="Give the pipeline a reducer for it, or use two keys.",
                )
            merged[key] = (reducer(known[0], value), writer)

    def _view(self, path: str) -> _View:
        """What holds after a visit; worked out without recursion, so long chains are no trouble."""
        chain: list[str] = []
        todo = [path]
        while todo:
            at = todo[-1]
            run = self._state.steps.get(at)
            if run is None or self._fresh(at) is not None:
                todo.pop()
                continue
            missing = [source for _, source in run.consumed if source and self._needs(source)]
            if missing:
                todo.extend(missing)
                continue
            base = self._merge(run.consumed)
            changed = {**base, **{key: (value, at) for key, value in run.context.items()}} if run.context else base
            self._after[at] = (run.checkpoint, changed)
            chain.append(todo.pop())
        return self._fresh(path) or {}

    def _needs(self, path: str) -> bool:
        return path in self._state.steps and self._fresh(path) is None

    def _fresh(self, path: str) -> _View | None:
        known = self._after.get(path)
        run = self._state.steps.get(path)
        return known[1] if known is not None and run is not None and known[0] == run.checkpoint else None

    def _before(self, first: str, second: str) -> bool:
        """Whether visit `first` is an ancestor of visit `second`."""
        todo, seen = [second], {second}
        while todo:
            run = self._state.steps.get(todo.pop())
            for _, source in run.consumed if run is not None else ():
                if source == first:
                    return True
                if source and source not in seen:
                    seen.add(source)
                    todo.append(source)
        return False
