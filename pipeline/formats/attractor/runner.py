"""A compiled graph and one start or resume of a run of it: what is refused first, its pins, the files beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph
from pipeline.dot.names import names_of
from pipeline.dot.stylesheet import apply
from pipeline.engine import changes
from pipeline.engine.engine import Engine
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.takeover import other_graph
from pipeline.errors import RunExists, SettingsConflict
from pipeline.files import read_regular, replace_file
from pipeline.formats.attractor.compilation import check_entry, compile_graph
from pipeline.formats.attractor.documents import Checkpoint, entry_document
from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.codergen import BACKEND, check_providers
from pipeline.formats.attractor.handlers.prompt import default_mode
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.handlers.tool import check_allowed
from pipeline.formats.attractor.plan import comparable
from pipeline.formats.attractor.router import graph_context
from pipeline.formats.attractor.run_documents import head_view
from pipeline.formats.attractor.source import Source, attribute_changes
from pipeline.formats.attractor.views import Views
from pipeline.records.run import RunState, bare, full
from pipeline.store.base import Store
from pipeline.store.head import HEAD
from pipeline.store.names import JOURNAL

#: Types that need no answer, or whose questions are looked at elsewhere.
_BUILT_IN = kinds.BY_TYPE.keys() | {kinds.CHILD_START, kinds.CHILD_EXIT}
#: Visits that followed and are named.
_MOST_FOLLOWERS = 8


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """A DOT pipeline ready to run."""

    source: Source
    #: With its children worked in.
    dot: DotGraph
    definition: Definition
    #: Where a new run begins instead of at the start node; "": there.
    entry: str = ""
    #: Types that a handler of the user's own works.
    own: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: Source, handlers: Registry, entry: str = "") -> CompiledGraph:
        """Return the graph of these texts.

        Raises:
            GraphError: It cannot be run, or has no node `entry`.
        """
        dot = source.graph()
        if entry:
            check_entry(dot, entry)
        return cls(source, dot, compile_graph(dot, handlers), entry, handlers.own_types())

    def asking_nodes(self) -> list[str]:
        """Return the nodes whose prompts must be answered, in order of declaration."""
        found = []
        for node in self.dot.nodes.values():
            kind = self.dot.kind(node)
            ranks = kind == kinds.FAN_IN and node.text("prompt").strip()
            if kind == kinds.CODERGEN or kind not in _BUILT_IN or ranks:
                found.append(node.id)
        return found

    def read_by_backend(self) -> CompiledGraph:
        """Return the same for a backend of the user's own that answers prompts: it may read whatever a node says."""
        compared = partial(comparable, own=self.own | {kinds.CODERGEN}, fidelity=default_mode(self.dot))
        return replace(self, definition=replace(self.definition, comparable=compared))

    def decides_as(self, stored: Source, store: Store, state: RunState) -> bool:
        """Return whether it differs from the graph that a run holds in nothing that decides something."""
        if self.source.same(stored):
            return True
        return other_graph(self.definition, store, state) is None and not attribute_changes(stored.graph(), self.dot)


class GraphRunner:
    """One start or resume of a run of a graph."""

    def __init__(self, graph: CompiledGraph, setup: Setup, folder: Path | None = None) -> None:
        """Put it together.

        Args:
            setup: Its view of checkpoint.json is set here.
            folder: The run's own folder, in which files for people are kept; None: none are.
        """
        backend = setup.services.get(BACKEND)
        reads_nodes = backend is not None and getattr(backend, "reads_nodes", True)
        self._graph = graph.read_by_backend() if reads_nodes else graph
        self._setup = setup
        self._folder = folder
        self._views = Views(folder, setup.store, graph.dot) if folder is not None else None
        setup.view = head_view(graph.dot, each_checkpoint=folder is not None)

    def _check(self) -> None:
        """Refuse what could not be done, before anything is."""
        check_allowed(self._graph.dot, self._setup.options)
        check_providers(apply(self._graph.dot), self._setup.options, self._setup.services)

    def start(
        self,
        params: Mapping[str, Any],
        identity: Mapping[str, Any],
        checkpoint: Checkpoint | None = None,
        *,
        rerun_current: bool = False,
    ) -> RunResult:
        """Start a new run: from the start node, from the graph's entry, or from where a checkpoint stands.

        Raises:
            ConfigError: The graph would run commands that are not allowed, or asks models that cannot be asked.
            GraphError: The checkpoint is of another graph.
            RunExists: The folder holds a run already.
        """
        graph, definition, folder = self._graph, self._graph.definition, self._folder
        self._check()
        if folder is not None and (folder / HEAD).exists() and not (folder / JOURNAL).exists():
            # Another system's checkpoint.json is not overwritten unseen.
            if checkpoint is None:
                hint = f"Continue it (--resume {folder}), or name another folder for the new run."
                raise RunExists(f"{folder} holds a checkpoint of another system.", code="foreign_checkpoint", hint=hint)
            replace_file(folder / "checkpoint.imported.json", read_regular(folder / HEAD))
        if graph.entry:
            # The node to begin with was named, so it is meant, as if all before it had been done.
            checkpoint = replace(checkpoint or Checkpoint({}), current_node_id=graph.entry, next_node_id="")
        imported = None
        if checkpoint is not None:
            imported = entry_document(
                checkpoint, definition.graph, definition.router, pipeline=definition.name,
                base={**graph_context(graph.dot), **params}, rerun_current=rerun_current or bool(graph.entry),
            )  # fmt: skip
        with self._shown():
            return Engine(definition, self._setup).start(
                params, identity=identity, pins=graph.source.pins(), imported=imported
            )

    def resume(
        self,
        state: RunState,
        *,
        accept: bool = False,
        from_step: str = "",
        refresh: Collection[str] = (),
        retry_unknown: bool = False,
        identity: Mapping[str, Any] | None = None,
    ) -> RunResult:
        """Resume a run, in the graph it holds or in a changed one.

        Args:
            state: The run as it is.
            identity: Settings that replace the pinned ones (model).
            accept: Re-run what a changed graph voids.
            from_step, refresh, retry_unknown: See Engine.resume.

        Raises:
            ConfigError: The graph would run commands that are not allowed, or asks models that cannot be asked.
            SettingsConflict: Finished work would be void and that is not accepted; names it and what it had cost.
        """
        setup, definition = self._setup, self._graph.definition
        stored = Source.stored(setup.store, state)
        changed = {} if stored.same(self._graph.source) else self._graph.source.pins()
        same = self._graph.decides_as(stored, setup.store, state)
        wanted = bool(not same or from_step or refresh or identity)
        if wanted or not changes.nothing_left(state, definition.graph, definition.steps, same=same):
            self._check()
        if changed and same:
            setup.emit("note", text="The edits of the file affect no work; the run now holds the edited text.")
        missing = self._stale_by_names(stored, state) if not same else {}
        if missing and not accept:
            raise _conflict(state, missing, [])

        def accepted(stale: changes.Stale) -> bool:
            if stale.steps:
                setup.emit("note", text=f"Re-running because of changes: {_voided(state, stale.steps)}.")
            return True

        try:
            with self._shown(state.run_id):
                return Engine(definition, setup).resume(
                    state.run_id, identity=identity, pins=changed or None, missing=missing or None, from_step=from_step,
                    refresh=refresh, retry_unknown=retry_unknown, accept=accepted if accept else None,
                )  # fmt: skip
        except SettingsConflict as conflict:
            raise _conflict(state, conflict.data.get("steps") or {}, conflict.data.get("changed") or []) from conflict

    def _stale_by_names(self, stored: Source, state: RunState) -> dict[str, str]:
        """Return the completed visits whose texts name an attribute of the graph that has changed; and which one."""
        before = stored.graph()
        differ = attribute_changes(before, self._graph.dot)
        if differ:
            shown = "; ".join(f"the graph's {name} differs" for name in differ[:5])
            self._setup.emit("note", text=f"Since the run began: {shown}.")
        # What a parameter or a visit has set is read before the graph's attribute of that name.
        names = {name for name in differ if name == "goal" or not (name in state.params or name in state.context)}
        if not names.isdisjoint(names_of(before.goal)):
            names.add("goal")
        found = {}
        for run in state.steps.values():
            node = before.nodes.get(run.node)
            if node is not None and run.ended_seq:
                text = node.command if before.kind(node) == kinds.TOOL else node.prompt
                if named := next((name for name in names_of(text) if name in names), ""):
                    found[run.path] = f"the {named} it names differs"
        return found

    @contextmanager
    def _shown(self, run: str = "") -> Iterator[None]:
        """Keep up the files beside the run meanwhile; `run`: one that may have nothing left to do."""
        views, emit = self._views, self._setup.emit
        if views is None:
            with emit.also(shell.leave):
                yield
            return
        with emit.also(shell.leave), emit.also(views):
            try:
                yield
                if run:
                    views.follow(run)
            finally:
                views.close()
        if views.problem:
            emit("note", text=views.problem)


def _conflict(state: RunState, steps: Mapping[str, str], said: Collection[str]) -> SettingsConflict:
    """Return why a run is not resumed in a changed graph: what would be re-run, and what it had cost."""
    what = f"Finished work of run {state.run_id} would have to be run again: {_voided(state, steps)}."
    if not steps:
        differences = "; ".join(list(said)[:5])
        what = f"The graph has changed since run {state.run_id} began: {differences}. No finished work is touched."
    return SettingsConflict(
        what, code="graph_changed", steps=dict(steps), changed=list(said),
        hint="Omit the file to resume with the graph that the run holds, or add --accept-changes.",
    )  # fmt: skip


def _voided(state: RunState, steps: Mapping[str, str]) -> str:
    """Return these visits and why they are void, those that followed from them, and what all of them had cost."""
    gone = dict.fromkeys(steps)
    for path, run in state.steps.items():
        if any(source in gone for _, source in run.consumed):
            gone[path] = None
    shown = ", ".join(f"{bare(path)} ({why})" for path, why in steps.items())
    more = [bare(path) for path in gone if path not in steps]
    if more:
        rest = f" and {len(more) - _MOST_FOLLOWERS} more" if len(more) > _MOST_FOLLOWERS else ""
        shown += f", and what followed: {', '.join(more[:_MOST_FOLLOWERS])}{rest}"
    cost = sum((spend.usd for key, spend in state.spend.items() if full(key.step) in gone), Decimal(0))
    return f"{shown}; it had cost ${cost:.2f}"
