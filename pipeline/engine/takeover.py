"""A new owner takes a run: what it must ask, what it refuses, and what it records before it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.cost.ledger import reprice, rows, usages_of
from pipeline.engine import changes, people
from pipeline.engine.contexts import Contexts
from pipeline.engine.missing_values import MissingValues
from pipeline.engine.preflight import kept_ceiling
from pipeline.engine.recorder import Recorder
from pipeline.engine.routing import Router, Settled, by_label
from pipeline.engine.setup import UNSAFE, Definition, Setup, host, recorded
from pipeline.engine.sources import Sources
from pipeline.engine.tasks import unknown_hint
from pipeline.errors import CheckpointCorrupt, NeedsConfirmation, SettingsConflict
from pipeline.records.charge import EXACT, UNPRICED, dollars
from pipeline.records.kinds import ChargeSettled, Gap, Invalidated, RunResumed, StepCompleted
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.records.values import canonical, digest
from pipeline.store.base import Journal, Store
from pipeline.store.reader import records

#: Deaths of one step with nothing recorded between them before a person is asked.
_DEATHS = 3


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """What a resume is to do beside continuing."""

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
    #: Repeat work that may have acted outside before it was interrupted.
    retry_unknown: bool = False
    #: Ended tasks (step path, task) to make again, each with the note that its body reads as ctx.remark.
    redo: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: Parameters that the run did not have yet.
    params: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        wants = (self.identity, self.pins, self.missing, self.refresh, self.from_step, self.again, self.redo)
        return any(map(bool, wants))

    def facts(self) -> list[Invalidated]:
        """Return the records that void the tasks to redo, and the visits whose result is gone."""
        found = [changes.redone(task, note) for task, note in self.redo.items()]
        if self.missing:
            found.append(Invalidated("missing", paths=list(self.missing), note="; ".join(self.missing.values())))
        return found


class TakeOver:
    """What a new owner of a run asks, refuses and records before it continues."""

    def __init__(self, definition: Definition, setup: Setup, recorder: Recorder) -> None:
        self._definition = definition
        self._setup = setup
        # The run keeps its ceiling where the resume names none.
        setup.options = {"max_cost_usd": kept_ceiling(recorder.state.execution), **setup.options}
        self._recorder = recorder

    def confirm_risks(self, *, retry_unknown: bool) -> None:
        """Ask before work is repeated that kept dying, or that may have acted outside.

        Args:
            retry_unknown: What may have acted outside is repeated without confirmation.

        Raises:
            NeedsConfirmation: It was not confirmed.
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
                    f"Step {bare(run.path)} has side effects and was interrupted; whether they happened is unknown. "
                    "Repeat it?",
                    unknown_hint(state.run_id, run.path),
                )

    def _ask(self, question: str, hint: str) -> None:
        setup = self._setup
        if setup.yes or (setup.confirm is not None and setup.confirm(question)):
            return
        raise NeedsConfirmation(question, code="unconfirmed", hint=hint)

    def record(self, wish: ResumeOptions, lost: MissingValues, missing: Gap | None) -> None:
        """Record the new owner, what it changes, what was damaged, and what that voids.

        Args:
            lost: Finished work whose values the store has lost: it is made again.
            missing: As `record_repairs`.

        Raises:
            SettingsConflict: Finished work would be void, or the graph is another one, and `accept` did not
                agree; nothing was recorded.
            ConfigError: There is no such step to begin from.
        """
        recorder, setup, steps = self._recorder, self._setup, self._definition.steps
        text = _graph_text(self._definition)
        change = other_graph(self._definition, setup.store, recorder.state, text)
        hashes = self._pin(wish.pins, change, text)
        stale = self._stale(wish.identity, hashes, change)
        if stale and (wish.accept is None or not wish.accept(stale)):
            raise self._refusal(stale)
        again = changes.asked(recorder.state, steps, wish.refresh, wish.from_step, wish.again)
        fact = RunResumed(
            recorded(setup.options), host=host(), identity=dict(wish.identity) or None, pins=hashes or None,
            product=setup.product, params=dict(wish.params) or None,
        )  # fmt: skip
        for sentence in record_repairs(recorder.journal, recorder, missing):
            setup.emit.note(sentence)
        recorder.owner = recorder.append(fact, sync=False)
        people.take_in(recorder, setup.store)
        if change is not None:
            setup.emit.note(f"The graph has changed since the run began: {'; '.join(change.said[:5])}.")
        if lost:
            setup.emit.note(lost.said())
        for void in (*stale.facts(), *again):
            recorder.append(void, sync=False)
        for void in (*changes.missing(recorder.state, steps), *lost.facts(), *wish.facts()):
            recorder.append(void, sync=False)
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
        setup.emit.note(f"Calls that had no price are priced now: {len(priced)}, {usd} ({priced[0].source}).")

    def _pin(self, pins: Mapping[str, Any], change: changes.GraphChange | None, text: bytes) -> dict[str, str]:
        """Store the values to pin and return their hashes."""
        recorder = self._recorder
        pinned = recorder.state.pins.get("graph")
        same = pinned == digest(text)
        if same:
            # Free where it is there, and restores it where it is lost.
            recorder.put_blob(text)
        if change is not None or (pins and pinned and not same):
            # Also where only what is drawn or for people differs in it.
            pins = {**pins, "graph": self._definition.graph.to_json()}
        return {name: recorder.put_blob(canonical(value, name)) for name, value in pins.items()}

    def _refusal(self, stale: changes.Stale) -> SettingsConflict:
        run = self._recorder.state.run_id
        if stale.said and not stale.steps:
            return SettingsConflict(
                f"The pipeline {self._definition.name!r} has changed since run {run} began: "
                f"{'; '.join(stale.said[:5])}.",
                code="pipeline_changed", hint="Resume with the version it was started with, or start a new run.",
                changed=list(stale.said),
            )  # fmt: skip
        shown = ", ".join(f"{bare(path)} ({why})" for path, why in stale.steps.items())
        return SettingsConflict(
            f"Finished work of run {run} would have to be run again: {shown}.",
            code="finished_work_void", steps=dict(stale.steps), changed=list(stale.said),
            hint="Resume without the change, add --accept-changes, or start again with --force.",
        )  # fmt: skip

    def _stale(
        self, identity: Mapping[str, Any], pins: Mapping[str, str], change: changes.GraphChange | None
    ) -> changes.Stale:
        """Return what the new values would void; the state is left as it was."""
        recorder = self._recorder
        state = recorder.state
        kept = state.identity, state.pins
        state.identity, state.pins = {**state.identity, **identity}, {**state.pins, **pins}
        try:
            return changes.stale(state, Sources(recorder, self._setup.store), self._definition.steps, change)
        finally:
            state.identity, state.pins = kept

    def _choose_again(self, change: changes.GraphChange) -> None:
        """Have what completed in the old graph leave edges that are gone, and take the new ones of its outcome."""
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
        """Return the new edges that a completed visit takes, and why."""
        graph = self._definition.graph
        node = graph.nodes.get(run.node)
        if node is None or not any(edge.id in added for edge in graph.outgoing(node.id)):
            return [], run.reason
        route = router(Settled(
            graph, node, run.path, run.visit, run.attempt, run.outcome, False, None, {},
            contexts.seen(run.consumed, node.id), run.context, run.consumed, self._recorder.state,
        ))  # fmt: skip
        return [edge for edge in route.edges if edge in added], route.reason or run.reason


def other_graph(
    definition: Definition, store: Store, state: RunState, text: bytes | None = None
) -> changes.GraphChange | None:
    """Return how a pipeline differs from the one a run was started with; None: in nothing.

    Args:
        text: The pipeline's graph as canonical JSON, where that is known.

    Raises:
        CheckpointCorrupt: The store has lost the one it was started with.
    """
    pinned = state.pins.get("graph")
    if pinned is None or digest(text or _graph_text(definition)) == pinned:
        return None
    try:
        before = json.loads(store.get_blob(state.run_id, pinned))
    except CheckpointCorrupt as error:
        raise CheckpointCorrupt(
            f"The store has lost the graph that run {state.run_id} was started with ({pinned}), "
            "and the pipeline has another one now.",
            code="graph_lost",
            blob=pinned,
            hint="Restore it with `./pipeline.sh store copy` from another store that has the run, or resume with the "
            "pipeline as it was.",
        ) from error
    change = changes.of_graph(before, definition.graph, definition.comparable)
    return change if change.said else None


def _graph_text(definition: Definition) -> bytes:
    """Return a pipeline's graph, as a pin is made of it."""
    return canonical(definition.graph.to_json(), "graph")


def record_repairs(journal: Journal, recorder: Recorder, missing: Gap | None = None) -> list[str]:
    """Record what opening the journal had to leave out; return a sentence each, for people, also on what it took in.

    Args:
        missing: What the head knew to be spent that the records do not show (store.view.fold_beside).
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
