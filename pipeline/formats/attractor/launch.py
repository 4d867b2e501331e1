"""A compiled graph and one go at a run of it: what is refused first, what the run is pinned to, the files beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from pipeline.engine.recorder import HeadView
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.takeover import other_graph
from pipeline.errors import RunExists, SettingsConflict
from pipeline.files import read_regular, replace_file
from pipeline.formats.attractor.children import CHILD_EXIT, CHILD_START
from pipeline.formats.attractor.compile import Handlers, check_entry, compile_graph
from pipeline.formats.attractor.documents import Checkpoint
from pipeline.formats.attractor.entry import entry_at, entry_document
from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.asking import check_providers
from pipeline.formats.attractor.handlers.codergen import BACKEND
from pipeline.formats.attractor.handlers.fidelity import default_mode
from pipeline.formats.attractor.handlers.tool import check_allowed
from pipeline.formats.attractor.head import Facts, shaped
from pipeline.formats.attractor.kept import graph_context
from pipeline.formats.attractor.plan import comparable
from pipeline.formats.attractor.source import Source, attribute_changes
from pipeline.formats.attractor.views import Views
from pipeline.records.run import RunState, bare, full
from pipeline.store.base import Store
from pipeline.store.head import HEAD
from pipeline.store.names import JOURNAL

#: Types that are worked without anybody's answer, or whose questions are looked at above.
BUILT_IN = frozenset({*(kind.type for kind in kinds.KINDS), CHILD_START, CHILD_EXIT})

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
    def of(cls, source: Source, handlers: Handlers, entry: str = "") -> CompiledGraph:
        """The graph of these texts.

        Raises:
            GraphError: It cannot be run, or has no node `entry`.
        """
        dot = source.graph()
        if entry:
            check_entry(dot, entry)
        definition = compile_graph(dot, handlers=handlers, name=dot.name or "graph")
        return cls(source, dot, definition, entry, handlers.own_types())

    def read_by_backend(self) -> CompiledGraph:
        """The same where a backend of the user's own answers prompts: it may read whatever a node says."""
        compared = partial(comparable, own=self.own | {kinds.CODERGEN}, fidelity=default_mode(self.dot))
        return replace(self, definition=replace(self.definition, comparable=compared))

    def decides_as(self, stored: Source, store: Store, state: RunState) -> bool:
        """Whether it differs from the graph that a run holds in nothing that decides something."""
        if self.source.same(stored):
            return True
        return other_graph(self.definition, store, state) is None and not attribute_changes(stored.graph(), self.dot)


class Launch:
    """One go at a run of a graph."""

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
        """A new run: from the start node, from the graph's entry, or from where a checkpoint stands.

        Raises:
            ConfigError: The graph would run commands that nobody allowed, or asks models that nobody can ask.
            GraphError: The checkpoint is of another graph.
            RunExists: The folder holds a run already.
        """
        graph = self._graph
        self._check()
        self._keep_foreign(checkpoint)
        with self._shown():
            return Engine(graph.definition, self._setup).start(
                params, identity=identity, pins=graph.source.pins(),
                imported=self._imported(checkpoint, params, rerun_current),
            )  # fmt: skip

    def _keep_foreign(self, checkpoint: Checkpoint | None) -> None:
        """Another system's checkpoint.json in the run's folder is not written over unseen."""
        found = self._folder / HEAD if self._folder is not None else None
        if self._folder is None or found is None or not found.exists() or (self._folder / JOURNAL).exists():
            return
        if checkpoint is None:
            raise RunExists(
                f"{self._folder} holds a checkpoint of another system.",
                hint=f"Go on with it (--resume {self._folder}), or name another folder for the new run.",
            )
        replace_file(self._folder / "checkpoint.imported.json", read_regular(found))

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
        """Go on with a run, in the graph it holds or in a changed one.

        Args:
            state: The run as it stands.
            identity: Settings that replace the pinned ones (model).
            accept: What a changed graph voids is made again.
            from_step, refresh, retry_unknown: See Engine.resume.

        Raises:
            ConfigError: The graph would run commands that nobody allowed, or asks models that nobody can ask.
            SettingsConflict: Finished work would be void and that is not accepted; names it and what it had cost.
        """
        stored = Source.stored(self._setup.store, state)
        changed = {} if stored.same(self._graph.source) else self._graph.source.pins()
        same = self._graph.decides_as(stored, self._setup.store, state)
        wanted = bool(not same or from_step or refresh or identity)
        definition = self._graph.definition
        if wanted or not changes.nothing_left(state, definition.graph, definition.steps, same=same):
            self._check()
        if changed and same:
            self._setup.emit("note", text="The edits of the file affect no work; the run now holds the edited text.")
        missing = self._stale_by_names(stored, state) if not same else {}
        if missing and not accept:
            raise _conflict(state, missing, [])
        try:
            with self._shown(state.run_id):
                return Engine(self._graph.definition, self._setup).resume(
                    state.run_id, identity=identity, pins=changed or None, missing=missing or None, from_step=from_step,
                    refresh=refresh, retry_unknown=retry_unknown,
                    accept=partial(self._accepted, state) if accept else None,
                )  # fmt: skip
        except SettingsConflict as conflict:
            raise _conflict(state, conflict.data.get("steps") or {}, conflict.data.get("changed") or []) from conflict

    def _imported(
        self, checkpoint: Checkpoint | None, params: Mapping[str, Any], rerun_current: bool
    ) -> dict[str, Any] | None:
        graph, definition = self._graph, self._graph.definition
        base = {**graph_context(graph.dot), **params}
        if checkpoint is None:
            return entry_at(graph.entry, definition.graph, pipeline=definition.name, base=base) if graph.entry else None
        if graph.entry:
            # Whoever names the node to begin with means that one.
            checkpoint, rerun_current = _at(checkpoint, graph.entry), True
        return entry_document(
            checkpoint, definition.graph, definition.router, pipeline=definition.name, base=base,
            rerun_current=rerun_current,
        )  # fmt: skip

    def _stale_by_names(self, stored: Source, state: RunState) -> dict[str, str]:
        """Completed visits whose texts name an attribute of the graph that has another value now; tells what has."""
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
                named = [name for name in names_of(text) if name in names]
                if named:
                    found[run.path] = f"the {named[0]} it names differs"
        return found

    def _accepted(self, state: RunState, stale: changes.Stale) -> bool:
        if not stale.steps:
            return True
        shown = ", ".join(f"{bare(path)} ({why})" for path, why in stale.steps.items())
        follows = _also(state, stale.steps)
        self._setup.emit("note", text=f"Made again because of changes: {shown}{follows}; {_cost(state, stale.steps)}.")
        return True

    @contextmanager
    def _shown(self, run: str = "") -> Iterator[None]:
        """The files beside the run are kept up meanwhile; `run`: one that may have nothing left to do."""
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


def asking_nodes(graph: CompiledGraph) -> list[str]:
    """Nodes whose prompts somebody has to answer, in order of declaration."""
    found = []
    for node in graph.dot.nodes.values():
        kind = graph.dot.kind(node)
        if kind == kinds.CODERGEN or kind not in BUILT_IN or (kind == kinds.FAN_IN and node.text("prompt").strip()):
            found.append(node.id)
    return found


def head_view(dot: DotGraph, *, each_checkpoint: bool = False) -> HeadView:
    """What a graph's run adds to checkpoint.json."""
    return HeadView(partial(_shape, Facts.of(dot)), each_checkpoint)


def _shape(facts: Facts, document: dict[str, Any], state: RunState) -> dict[str, Any]:
    return shaped(facts, document, state)


def _at(checkpoint: Checkpoint, node: str) -> Checkpoint:
    return Checkpoint(
        checkpoint.context, node, checkpoint.completed_nodes, checkpoint.node_history,
        node_retries=checkpoint.node_retries, pipeline_name=checkpoint.pipeline_name,
    )  # fmt: skip


def _conflict(state: RunState, steps: Mapping[str, str], said: Sequence[str]) -> SettingsConflict:
    """Why a run is not gone on with in a changed graph: what would be made again, and what it had cost."""
    if steps:
        shown = ", ".join(f"{bare(path)} ({why})" for path, why in steps.items()) + _also(state, steps)
        what = f"Finished work of run {state.run_id} would have to be made again: {shown}; {_cost(state, steps)}."
    else:
        what = (
            f"The graph has changed since run {state.run_id} began: {'; '.join(said[:5])}. No finished work is touched."
        )
    return SettingsConflict(
        what, hint="Leave the file out to go on with the graph that the run holds, or add --accept-changes.",
        steps=dict(steps), changed=list(said),
    )  # fmt: skip


def _with_followers(state: RunState, paths: Mapping[str, str]) -> dict[str, None]:
    """These visits and all that followed from them, in order of their starts."""
    gone = dict.fromkeys(paths)
    for path, run in state.steps.items():
        if any(source in gone for _, source in run.consumed):
            gone[path] = None
    return gone


def _also(state: RunState, paths: Mapping[str, str]) -> str:
    """The visits that these take with them, for people; "": none."""
    more = [bare(path) for path in _with_followers(state, paths) if path not in paths]
    if not more:
        return ""
    rest = f" and {len(more) - _MOST_FOLLOWERS} more" if len(more) > _MOST_FOLLOWERS else ""
    return f", and what followed: {', '.join(more[:_MOST_FOLLOWERS])}{rest}"


def _cost(state: RunState, paths: Mapping[str, str]) -> str:
    """What these visits and all that followed from them had cost."""
    gone = _with_followers(state, paths)
    spent = [spend for key, spend in state.spend.items() if full(key.step) in gone]
    return f"it had cost ${sum((spend.usd for spend in spent), Decimal(0)):.2f}"
