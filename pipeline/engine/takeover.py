"""A new owner takes a run: what it must ask, what it refuses, and what it records before it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.engine import changes
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import Definition, Setup, host, recorded
from pipeline.engine.sources import Sources
from pipeline.engine.tasks import UNSAFE
from pipeline.errors import NeedsConfirmation, SettingsConflict
from pipeline.records.kinds import Gap, Invalidated, RunResumed
from pipeline.records.statuses import IN_PROGRESS
from pipeline.records.values import canonical
from pipeline.store.base import Journal

#: Deaths of one step with nothing recorded between them before a person is asked.
_DEATHS = 3


class TakeOver:
    """One new owner at the door of one run."""

    def __init__(self, definition: Definition, setup: Setup, recorder: Recorder, journal: Journal) -> None:
        self._definition = definition
        self._setup = setup
        self._recorder = recorder
        self._journal = journal

    def confirm_risks(self) -> None:
        """Ask before work is repeated that kept dying, or that may have acted outside.

        Raises:
            NeedsConfirmation: Nobody said yes.
        """
        state = self._recorder.state
        for run in state.steps.values():
            if run.status != IN_PROGRESS or run.ended_seq:
                continue
            spec = self._definition.steps.get(run.node)
            if run.deaths >= _DEATHS:
                self._ask(f"Step {run.path} has died {run.deaths} times without recording anything. Try it again?")
            if spec is not None and spec.effect in UNSAFE and not spec.repeatable:
                self._ask(
                    f"Step {run.path} acts outside the run and was cut off; whether it acted is unknown. Repeat it?"
                )

    def refuse_other_graph(self) -> None:
        """What is done was done in the pinned graph; its position means nothing in another one.

        Raises:
            SettingsConflict: The pipeline has other steps or edges now; names them.
        """
        state, name = self._recorder.state, self._definition.name
        if "graph" not in state.pins:
            return
        pinned = json.loads(self._journal.get_blob(state.pins["graph"]))
        if said := changes.of_graph(pinned, self._definition.graph):
            raise SettingsConflict(
                f"The pipeline {name!r} has changed since run {state.run_id} began: {'; '.join(said[:5])}.",
                hint="Resume with the version it was started with, or start a new run.",
                changed=said,
            )

    def _ask(self, question: str) -> None:
        setup = self._setup
        if setup.yes or (setup.confirm is not None and setup.confirm(question)):
            return
        raise NeedsConfirmation(question, hint="Look at the log first; --yes goes on.")

    def record(
        self,
        identity: Mapping[str, Any],
        pins: Mapping[str, Any],
        accept: Callable[[changes.Stale], bool] | None,
        missing: Mapping[str, str],
    ) -> None:
        """Record the new owner, what it changes, what was damaged, and what that voids.

        Raises:
            SettingsConflict: Finished work would be void and `accept` did not agree; nothing was recorded.
        """
        recorder, setup, steps = self._recorder, self._setup, self._definition.steps
        state = recorder.state
        hashes = {name: recorder.put_blob(canonical(value, name)) for name, value in pins.items()}
        stale = self._stale(identity, hashes)
        if stale and (accept is None or not accept(stale)):
            shown = ", ".join(f"{path} ({why})" for path, why in stale.steps.items())
            raise SettingsConflict(
                f"Finished work of run {state.run_id} would have to be made again: {shown}.",
                hint="Resume without the change, add --accept-changes, or start anew with --force.",
                steps=dict(stale.steps),
            )
        fact = RunResumed(
            recorded(setup.options), host=host(), identity=dict(identity) or None, pins=hashes or None,
            product=setup.product,
        )  # fmt: skip
        for repair in self._journal.repairs:
            first, last, size, kept, reason = repair
            if not getattr(repair, "recorded", False):
                recorder.append(Gap(first, last, size, kept, reason), sync=False)
            setup.emit("note", text=_repaired(size, kept, reason))
        recorder.owner = recorder.append(fact, sync=False)
        for void in (*stale.facts(), *changes.missing(recorder.state, steps).facts()):
            recorder.append(void, sync=False)
        if missing:
            gone = Invalidated("missing", paths=list(missing), note="; ".join(missing.values()))
            recorder.append(gone, sync=False)

    def _stale(self, identity: Mapping[str, Any], pins: Mapping[str, str]) -> changes.Stale:
        """What the new values would void; the state is left as it was."""
        recorder = self._recorder
        state = recorder.state
        kept = state.identity, state.pins
        state.identity, state.pins = {**state.identity, **identity}, {**state.pins, **pins}
        try:
            return changes.stale(state, Sources(recorder, self._setup.store), self._definition.steps)
        finally:
            state.identity, state.pins = kept


def _repaired(size: int, kept: str, reason: str) -> str:
    where = f" ({size:,} bytes kept in {kept})" if kept else ""
    return f"The journal was repaired: {reason}{where}."
