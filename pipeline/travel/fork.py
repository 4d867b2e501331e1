"""Forks: a new run that begins with the finished work of another up to a point. The source is only read.

The child is whole with its creation: run_started (with its parent), the inherited work as one snapshot, what
overrides make void, and how it was left. Inherited work costs nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.clock import Clock, SystemClock, iso
from pipeline.engine.amendment import begin_run, pinned_graph
from pipeline.engine.arguments import store_of
from pipeline.engine.batch_ledger import still_out
from pipeline.engine.setup import host
from pipeline.errors import CheckpointCorrupt
from pipeline.graph.model import Graph
from pipeline.records.codec import Record
from pipeline.records.fold import fold
from pipeline.records.kinds import Fact, Invalidated, RunEnded, RunStarted, Snapshot
from pipeline.records.run import RunState, bare, item_name
from pipeline.records.snapshots import INHERITED, inherited_document, references
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.travel.overrides import (
    CONTEXT,
    OUTPUTS,
    PARAMS,
    SETTINGS,
    Assignment,
    Changes,
    Dependents,
    Override,
    parse_changes,
    unknown_names,
)
from pipeline.travel.points import END, points_in, resolve_point, state_in
from pipeline.travel.values import BlobCollector


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork that was made."""

    run_id: str
    #: The run it came from, and the seq up to which.
    parent: str
    seq: int
    #: Finished visits it inherited, in order of their ends; some of them may be void.
    inherited: Sequence[str]
    #: What read the overridden values, a row for each value.
    void: Sequence[Dependents]
    #: Visits that are void because they followed; they stand again if they read nothing that changed.
    followed: Sequence[str]
    #: Where it goes on: nodes.
    following: Sequence[str]
    #: completed where nothing is left to do.
    status: str
    command: str
    #: Of the overrides, those whose names were unknown by then, each with names that may have been meant.
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Batches of the source that had no recorded answers by then, as batch_search.still_out: all is asked again.
    out: Sequence[Mapping[str, Any]] = ()
    #: Finished items of visits that had not finished, by visit: how many.
    items: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object of `fork --json`, but for the command that resumes it."""
        return {
            "run": self.run_id,
            "parent": {"run": self.parent, "seq": self.seq},
            "status": self.status,
            "inherited": [bare(path) for path in self.inherited],
            "changed": [
                {"name": void.given.name, "value": void.given.value, "steps": [bare(path) for path in void.paths],
                 "items": [item_name(*task) for task in void.tasks]}
                for void in self.void
            ],
            "unknown": {name: list(near) for name, near in self.unknown.items()},
            "asked_again": [
                {"batch": row["batch"] or None, "requests": row["requests"],
                 "usd_high": None if row["worst_usd"] is None else float(row["worst_usd"])}
                for row in self.out
            ],
            "followed": [bare(path) for path in self.followed],
            "goes_on": list(self.following),
        }  # fmt: skip


def fork_run(
    store: Store | str,
    run: str,
    *,
    at: str | int = END,
    changes: Mapping[str, Any] | None = None,
    into: Store | str | None = None,
    clock: Clock | None = None,
) -> str:
    """Make a new run of what another had finished at a point; its id. Nothing is executed.

    Args:
        store: A store, or its URL.
        run: Exact id of the source, which stays as it is.
        at: seq, checkpoint id, STEP, STEP#VISIT, "start" or "end".
        changes: Values in the place of the parent's: params.NAME, settings.NAME, outputs.STEP.KEY, context.KEY (or
            a bare context key). Exactly what read one of them is made again when the fork is resumed.
        into: Where the fork is kept; None: beside its source.

    Raises:
        RunNotFound: No such run or point; names what there is.
        ConfigError, SecretRefused: A change names nothing, or a secret.
        CheckpointCorrupt: Something that is to be inherited is damaged.
    """
    other = None if into is None else store_of(into)
    return fork(store_of(store), run, at=at, changes=changes, into=other, clock=clock).run_id


def fork(
    store: Store,
    run: str,
    *,
    at: str | int = END,
    changes: Mapping[str, Any] | None = None,
    into: Store | None = None,
    clock: Clock | None = None,
    product: str = "",
) -> Forked:
    """Fork as `fork_run` does, and return all about the fork."""
    making, last = _begun(store, run, at, changes, clock or SystemClock(), product)
    return making.make(into or store, last.command)


def plan_fork(
    store: Store, run: str, *, at: str | int = END, changes: Mapping[str, Any] | None = None
) -> tuple[Forked, RunState, RunState]:
    """Return what a fork would be (its run_id is ""), its state (under its source's id), and the source's as it is now.

    Nothing is written.

    Raises:
        RunNotFound, ConfigError, SecretRefused, CheckpointCorrupt: As `fork_run`.
    """
    making, last = _begun(store, run, at, changes, SystemClock(), "")
    return (*making.plan(), last)


def _begun(
    store: Store, run: str, at: str | int, changes: Mapping[str, Any] | None, clock: Clock, product: str
) -> tuple[_Making, RunState]:
    """Return a fork being put together, and the source as it is now."""
    found = list(records(store, run))
    seq = resolve_point(points_in(run, found), at)
    state, last = state_in(run, found, seq), fold(run, found)
    if not state.pipeline:
        raise CheckpointCorrupt(
            f"Run {run} cannot be forked: its first record is damaged.", code="first_record_damaged"
        )
    making = _Making(store, state, seq, clock, product)
    making.change(parse_changes(changes or {}))
    return making, last


class _Making:
    """One fork being put together."""

    def __init__(self, store: Store, state: RunState, seq: int, clock: Clock, product: str) -> None:
        self._state = state
        self._seq = seq
        self._clock = clock
        self._product = product
        self._keeper = BlobCollector(store, state.run_id)
        self._graph = pinned_graph(store, state)
        self._inherited = inherited_document(state, self._keeper.task, self._keeper.reply)
        #: Who read what is changed; in the order in which it becomes void.
        self._void: list[Dependents] = []

    def change(self, wanted: Sequence[Assignment]) -> None:
        """Find out what each value replaces, and who has read that."""
        whole = Changes(self._state, self._keeper.reader, self._graph)
        for wish in wanted:
            if wish.kind != CONTEXT and (given := whole.given(wish)) is not None:
                self._void.append(whole.dependents(given))
        # A context key stands where the fork goes on: that is known once the rest is void, and of a new key only
        # once those are that read other keys.
        known = self._folded(self._facts()).context
        for wish in sorted(wanted, key=lambda wish: wish.key not in known):
            if wish.kind == CONTEXT:
                there = Changes(self._folded(self._facts()), self._keeper.reader, self._graph)
                if (given := there.given(wish)) is not None:
                    self._void.append(there.dependents(given))

    def plan(self) -> tuple[Forked, RunState]:
        """Put it together; return all about it but its id, and its state under its source's id."""
        for each in self._void:
            self._give(each.given)
        facts = self._facts()
        before, child = self._folded(facts[:2]), self._folded(facts, self._state.run_id)
        done = not child.waiting and not child.failed_paths
        direct = {path for each in self._void for path in each.paths}
        finished = [path for path in before.steps if path not in before.failed_paths]
        made = {path: sum(task.status == COMPLETED for task in tasks.values()) for path, tasks in before.tasks.items()}
        return Forked(
            "", self._state.run_id, self._seq, finished, self._void,
            [path for path in before.steps if path not in child.steps and path not in direct],
            _following(child, self._graph), COMPLETED if done else IN_PROGRESS, "",
            unknown_names(self._state, [each.given for each in self._void]), still_out(self._state, cancelled=True),
            {path: count for path, count in made.items() if count and path not in finished},
        ), child  # fmt: skip

    def make(self, into: Store, command: str) -> Forked:
        """Put it together and create it."""
        planned, _ = self.plan()
        blobs = self._keeper.blobs([*self._state.pins.values(), *references(self._inherited)])
        run_id, resume = self._create(into, self._facts(), blobs, command, done=planned.status == COMPLETED)
        return replace(planned, run_id=run_id, command=resume)

    def _facts(self) -> list[Fact]:
        """Return the records that the fork begins with, as far as is known."""
        document = {"pipeline": self._state.pipeline, "status": IN_PROGRESS, INHERITED: self._inherited}
        facts: list[Fact] = [self._started([each.given for each in self._void]), Snapshot(document, "fork")]
        return facts + [self._invalidated(each) for each in self._void if each.paths or each.tasks]

    def _started(self, given: Sequence[Override]) -> RunStarted:
        state = self._state
        params = {**state.params, **{each.key: each.value for each in given if each.kind == PARAMS}}
        identity = {**state.identity, **{each.key: each.value for each in given if each.kind == SETTINGS}}
        return RunStarted(
            state.pipeline, params, identity, dict(state.execution), dict(state.pins),
            parent={"run": state.run_id, "seq": self._seq}, host=host(), product=self._product,
        )  # fmt: skip

    def _give(self, given: Override) -> None:
        """Put a value where its carriers hold it."""
        for step in self._inherited["steps"]:
            if step["path"] not in given.carriers:
                continue
            if given.kind == CONTEXT:
                step["context"] = {**step["context"], given.key: self._keeper.fit(given.value)}
            elif given.kind == OUTPUTS:
                before = self._keeper.whole(step["outputs"])
                step["outputs"] = self._keeper.fit({**before, given.key: given.value})

    def _invalidated(self, void: Dependents) -> Invalidated:
        tasks = [list(task) for task in void.tasks]
        return Invalidated("changed", list(void.paths), tasks, void.given.name, "fork")

    def _create(
        self, into: Store, facts: list[Fact], blobs: Sequence[bytes], command: str, *, done: bool
    ) -> tuple[str, str]:
        """Return the new run's id, and the command that goes on with it ("": nothing is left to do)."""

        def left(run_id: str) -> RunEnded:
            resume = _command(command, self._state, run_id)
            return RunEnded(COMPLETED) if done else RunEnded(IN_PROGRESS, "stopped_as_asked", command=resume)

        run_id = begin_run(into, self._clock, facts, blobs, left)
        return run_id, left(run_id).command

    def _folded(self, facts: Sequence[Fact], run_id: str = "") -> RunState:
        """Return the state of these facts, as they will be recorded."""
        at = iso(self._clock.now())
        return fold(run_id, (Record(seq, at, 1, fact) for seq, fact in enumerate(facts, 1)))


def _following(state: RunState, graph: Graph | None) -> list[str]:
    """Return the steps where a run goes on."""
    ahead = [bare(path) for path in state.failed_paths]
    for token in state.waiting.values():
        edge = graph.edge(token.edge) if graph is not None else None
        start = graph.start if graph is not None and not token.edge else ""
        ahead.append(edge.target if edge else start or token.edge.partition("->")[2].partition("#")[0])
    return list(dict.fromkeys(filter(None, ahead)))


def _command(known: str, parent: RunState, child: str) -> str:
    """Return the command that goes on with the child: as for its parent, with the child's id."""
    if " --resume " in known:
        return f"{known.partition(' --resume ')[0]} --resume {child}"
    verb = "lessons" if parent.pipeline == "lessons" else f"run {parent.execution.get('target') or 'FILE.py:NAME'}"
    return f"./pipeline.sh {verb} --resume {child}"
