"""A new owner takes a run: what it must ask, what it refuses, and what it records before it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.cost.ledger import reprice, rows, usages_of
from pipeline.engine import changes
from pipeline.engine.contexts import Contexts
from pipeline.engine.lost import Lost
from pipeline.engine.options import kept_ceiling
from pipeline.engine.recorder import Recorder
from pipeline.engine.routing import Router, Settled, by_label
from pipeline.engine.setup import Definition, Setup, host, recorded
from pipeline.engine.sources import Sources
from pipeline.engine.tasks import UNSAFE, unknown_hint
from pipeline.errors import CheckpointCorrupt, NeedsConfirmation, SettingsConflict
from pipeline.records.charge import EXACT, UNPRICED, dollars
from pipeline.records.kinds import ChargeSettled, Gap, Invalidated, RunResumed, StepCompleted
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.records.values import canonical, digest
from pipeline.store.base import Journal, Store
from pipeline.store.reading import records

#: Deaths of one step with nothing recorded between them before a person is asked.
_DEATHS = 3


@dataclass(frozen=True, slots=True)
class Wish:
    """What whoever resumes a run wants beside going on."""

    #: Values that replace the pinned ones, or fill what an imported run lacks.
    identity: Mapping[str, Any] = field(default_factory=dict)
    pins: Mapping[str, Any] = field(default_factory=dict)
    #: Decides whether finished work that these changes void is made again; None: no.
    accept: Callable[[changes.Stale], bool] | None = None
    #: Completed visits whose result is gone (path → why).
    missing: Mapping[str, str] = field(default_factory=dict)
    #: Effect classes whose completed steps are made again.
    refresh: Collection[str] = ()
    #: A completed step to begin from again, with all that followed; "": none.
    from_step: str = ""
    #: Paths of completed visits to make again, with all that followed from them.
    again: Collection[str] = ()
    #: Work that may have acted outside before it was cut off is repeated.
    retry_unknown: bool = False
    #: Ended tasks (step path, task) to make again, each with what its body reads as ctx.remark.
    redo: Collection[tuple[str, str]] = ()
    note: str = ""
    #: Parameters that the run did not have yet.
    params: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        wants = (self.identity, self.pins, self.missing, self.refresh, self.from_step, self.again, self.redo)
        return any(map(bool, wants))


class TakeOver:
    """One new owner at the door of one run."""

    def __init__(self, definition: Definition, setup: Setup, recorder: Recorder, journal: Journal) -> None:
        self._definition = definition
        self._setup = setup
        # Where none is named, the run keeps its ceiling.
        setup.options = {"max_cost_usd": kept_ceiling(recorder.state.execution), **setup.options}
        self._recorder = recorder
        self._journal = journal

    def confirm_risks(self, *, retry_unknown: bool) -> None:
        """Ask before work is repeated that kept dying, or that may have acted outside.

        Args:
            retry_unknown: What may have acted outside is to be repeated; it is not asked about.

        Raises:
            NeedsConfirmation: Nobody said yes.
        """
        state = self._recorder.state
        for run in state.steps.values():
            if run.status != IN_PROGRESS or run.ended_seq:
                continue
            spec = self._definition.steps.get(run.node)
            if run.deaths >= _DEATHS:
                self._ask(
                    f"Step {bare(run.path)} has died {run.deaths} times without recording anything. Try it again?",
                    "Look at the log first; --yes tries again.",
                )
            if spec is not None and spec.effect in UNSAFE and not (spec.repeatable or retry_unknown):
                self._ask(
                    f"Step {bare(run.path)} acts outside the run and was cut off; whether it acted is unknown. "
                    "Repeat it?",
                    unknown_hint(state.run_id, run.path),
                )

    def _put_graph(self) -> None:
        """Store the graph again that the run is pinned to: free where it is there, and mends what is lost of it."""
        if self._recorder.state.pins.get("graph") == digest(graph := _graph_text(self._definition)):
            self._recorder.put_blob(graph)

    def _ask(self, question: str, hint: str) -> None:
        setup = self._setup
        if setup.yes or (setup.confirm is not None and setup.confirm(question)):
            return
        raise NeedsConfirmation(question, hint=hint)

    def record(self, wish: Wish, lost: Lost, missing: Gap | None) -> None:
        """Record the new owner, what it changes, what was damaged, and what that voids.

        Args:
            lost: Finished work whose values the store does not have any more: it is made again.
            missing: As `record_repairs`.

        Raises:
            SettingsConflict: Finished work would be void, or the graph is another one, and `accept` did not
                agree; nothing was recorded.
            ConfigError: There is no such step to begin from.
        """
        recorder, setup, steps = self._recorder, self._setup, self._definition.steps
        change = other_graph(self._definition, setup.store, recorder.state)
        self._put_graph()
        hashes = {
            name: recorder.put_blob(canonical(value, name)) for name, value in self._pins(wish.pins, change).items()
        }
        stale = self._stale(wish.identity, hashes, change)
        if stale and (wish.accept is None or not wish.accept(stale)):
            raise self._refusal(stale)
        again = changes.asked(recorder.state, steps, wish.refresh, wish.from_step, wish.again)
        fact = RunResumed(
            recorded(setup.options), host=host(), identity=dict(wish.identity) or None, pins=hashes or None,
            product=setup.product, params=dict(wish.params) or None,
        )  # fmt: skip
        for text in record_repairs(self._journal, recorder, missing):
            setup.emit("note", text=text)
        recorder.owner = recorder.append(fact, sync=False)
        if change is not None:
            setup.emit("note", text=f"The graph has changed since the run began: {'; '.join(change.said[:5])}.")
        for void in (*stale.facts(), *again.again(recorder.state)):
            recorder.append(void, sync=False)
        for void in (*changes.missing(recorder.state, steps).facts(), *self._told(lost)):
            recorder.append(void, sync=False)
        if wish.redo:
            recorder.append(changes.redone(wish.redo, wish.note), sync=False)
        if wish.missing:
            gone = Invalidated("missing", paths=list(wish.missing), note="; ".join(wish.missing.values()))
            recorder.append(gone, sync=False)
        if change is not None:
            if away := changes.displaced(recorder.state, self._definition.graph, change):
                recorder.append(Invalidated("changed", paths=away), sync=False)
            self._choose_again(change)
        self._price()

    def _price(self) -> None:
        """Record what calls without a price have cost, where the prices of this start know it."""
        recorder, setup = self._recorder, self._setup
        if setup.prices is None or not recorder.state.total.unpriced:
            return
        run = recorder.state.run_id
        unpriced = [row for row in rows(records(setup.store, run)) if row.state == UNPRICED]
        usages = usages_of(records(setup.store, run), partial(setup.store.get_blob, run))
        found = [reprice(row, usages.get(row.seq), setup.prices).row for row in unpriced]
        priced = [row for row in found if row.state == EXACT]
        if not priced:
            return
        facts = [ChargeSettled(row.seq, f"{row.low:f}", f"prices: {row.source}") for row in priced]
        recorder.append(facts[0], follow=facts[1:])
        usd = dollars(sum((row.low for row in priced), Decimal(0)))
        setup.emit("note", text=f"Calls that had no price are priced now: {len(priced)}, {usd} ({priced[0].source}).")

    def _pins(self, pins: Mapping[str, Any], change: changes.GraphChange | None) -> Mapping[str, Any]:
        """The values to pin: the graph too, also where nothing in it differs but what is drawn or for people."""
        pinned = self._recorder.state.pins.get("graph")
        if change is None and not (pins and pinned and pinned != digest(_graph_text(self._definition))):
            return pins
        return {**pins, "graph": self._definition.graph.to_json()}

    def _told(self, lost: Lost) -> list[Invalidated]:
        if lost:
            self._setup.emit("note", text=lost.said())
        return lost.facts()

    def _refusal(self, stale: changes.Stale) -> SettingsConflict:
        run = self._recorder.state.run_id
        if stale.said and not stale.steps:
            return SettingsConflict(
                f"The pipeline {self._definition.name!r} has changed since run {run} began: "
                f"{'; '.join(stale.said[:5])}.",
                hint="Resume with the version it was started with, or start a new run.",
                changed=list(stale.said),
            )
        shown = ", ".join(f"{bare(path)} ({why})" for path, why in stale.steps.items())
        return SettingsConflict(
            f"Finished work of run {run} would have to be made again: {shown}.",
            hint="Resume without the change, add --accept-changes, or start anew with --force.",
            steps=dict(stale.steps),
            changed=list(stale.said),
        )

    def _stale(
        self, identity: Mapping[str, Any], pins: Mapping[str, str], change: changes.GraphChange | None
    ) -> changes.Stale:
        """What the new values would void; the state is left as it was."""
        recorder = self._recorder
        state = recorder.state
        kept = state.identity, state.pins
        state.identity, state.pins = {**state.identity, **identity}, {**state.pins, **pins}
        try:
            return changes.stale(state, Sources(recorder, self._setup.store), self._definition.steps, change)
        finally:
            state.identity, state.pins = kept

    def _choose_again(self, change: changes.GraphChange) -> None:
        """What completed in the old graph leaves edges that are gone, and takes the new ones of its outcome."""
        what, recorder = self._definition, self._recorder
        router = what.router or by_label
        contexts = Contexts(what.graph, recorder.state, what.reducers)
        for run in list(recorder.state.steps.values()):
            if run.status != COMPLETED:
                continue
            kept = [edge for edge in run.edges if edge not in change.gone]
            more, reason = self._new_edges(run, change.added, router, contexts)
            if more or len(kept) < len(run.edges):
                recorder.append(StepCompleted(
                    run.path, run.outputs, self._setup.clock.new_id(), [*kept, *more], run.outcome, run.context,
                    run.artifacts, run.reads, run.attempt, 0.0, reason, code=run.code,
                ), sync=False)  # fmt: skip

    def _new_edges(
        self, run: StepRun, added: Collection[str], router: Router, contexts: Contexts
    ) -> tuple[list[str], str]:
        """New edges that a completed visit takes, and why."""
        graph = self._definition.graph
        node = graph.nodes.get(run.node)
        if node is None or not any(edge.id in added for edge in graph.outgoing(node.id)):
            return [], run.reason
        route = router(Settled(
            graph, node, run.path, run.visit, run.attempt, run.outcome, False, None, {},
            contexts.seen(run.consumed, node.id), run.context, run.consumed, self._recorder.state,
        ))  # fmt: skip
        return [edge for edge in route.edges if edge in added], route.reason or run.reason


def other_graph(definition: Definition, store: Store, state: RunState) -> changes.GraphChange | None:
    """How a pipeline differs from the one a run was started with; None: in nothing.

    Raises:
        CheckpointCorrupt: The store has lost the one it was started with.
    """
    pinned = state.pins.get("graph")
    # Most graphs are what they were.
    if pinned is None or digest(_graph_text(definition)) == pinned:
        return None
    try:
        before = json.loads(store.get_blob(state.run_id, pinned))
    except CheckpointCorrupt as error:
        raise CheckpointCorrupt(
            f"The store has lost the graph that run {state.run_id} was started with ({pinned}), "
            "and the pipeline has another one now.",
            hint="Bring it back: `store copy` from another store that has the run. "
            "Or go on with the pipeline as it was.",
            blob=pinned,
        ) from error
    change = changes.of_graph(before, definition.graph, definition.comparable)
    return change if change.said else None


def _graph_text(definition: Definition) -> bytes:
    """A pipeline's graph, as a pin is made of it."""
    return canonical(definition.graph.to_json(), "graph")


def record_repairs(journal: Journal, recorder: Recorder, missing: Gap | None = None) -> list[str]:
    """Record what opening the journal had to leave out; a sentence each, for people, also on what it took in.

    Args:
        missing: What the head knew to be spent that the records do not tell (store.view.fold_beside).
    """
    said = [str(taken) for taken in journal.taken]
    for repair in journal.repairs:
        first, last, size, kept, reason = repair
        if not getattr(repair, "recorded", False):
            recorder.append(Gap(first, last, size, kept, reason, getattr(repair, "torn", None)), sync=False)
        where = f" ({size:,} bytes kept in {kept})" if kept else ""
        said.append(f"The journal was repaired: {reason}{where}.")
    if missing is not None:
        recorder.append(missing, sync=False)
    if recorder.state.lost.unbounded and (journal.repairs or missing is not None):
        low = recorder.state.total.usd + recorder.state.total.low
        said.append(f"Records of calls may be among what is missing: at least ${low:.4f} was spent.")
    return said
