"""Start or resume one run: claim it, put its parts together, let the loop run, record how it was left."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.engine import changes
from pipeline.engine.calls import Caller, Prices
from pipeline.engine.contexts import Reducer
from pipeline.engine.events import Emitter
from pipeline.engine.limits import Ceiling, CoolDown
from pipeline.engine.loop import Loop, failed_runs
from pipeline.engine.recorder import Recorder
from pipeline.engine.result import RunResult
from pipeline.engine.retry import RetryPolicy
from pipeline.engine.running import Running
from pipeline.engine.signals import run_with_signals
from pipeline.engine.sources import Sources
from pipeline.engine.step import StepSpec
from pipeline.engine.stop import Stop
from pipeline.engine.tasks import error_facts
from pipeline.errors import (
    CheckpointCorrupt,
    GraphError,
    NeedsConfirmation,
    Pause,
    PipelineError,
    PublishedFilesEdited,
    PublishError,
    SettingsConflict,
    StepFailed,
    WriteFailed,
)
from pipeline.graph.model import Graph
from pipeline.llm.base import Model, ModelInfo
from pipeline.records.codec import Record, encode_fact
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder, spent
from pipeline.records.kinds import Gap, Invalidated, RunEnded, RunResumed, RunStarted
from pipeline.records.lines import encode_line
from pipeline.records.run import RunState, Spend, StepRun, bare
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS
from pipeline.records.values import canonical, digest
from pipeline.store.base import Claim, Journal, Store
from pipeline.store.reading import records

#: Deaths of one step with nothing recorded between them before a person is asked.
_DEATHS = 3
_FULL = "The disk is full: what was in flight is recorded, nothing more was started."
_FREE_SPACE = "Free some space, then resume."
_KEPT: Mapping[str, type[PipelineError]] = {cls.__name__: cls for cls in (PublishError, PublishedFilesEdited)}


@dataclass(frozen=True, slots=True)
class Definition:
    """What a pipeline is: its graph, the code of its nodes, how branches' context keys merge."""

    name: str
    graph: Graph
    steps: Mapping[str, StepSpec]
    reducers: Mapping[str, Reducer] = field(default_factory=dict)


@dataclass(slots=True)
class Setup:
    """What an application gives a run."""

    store: Store
    clock: Clock
    emit: Emitter
    options: Mapping[str, Any] = field(default_factory=dict)
    model: Model | None = None
    info: ModelInfo | None = None
    prices: Prices | None = None
    services: Mapping[str, Any] = field(default_factory=dict)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    product: str = ""
    #: The command that resumes a run, for people.
    command: Callable[[str], str] = lambda run: f"./pipeline.sh lessons --resume {run}"
    #: A person's yes to a question; None: nobody can be asked.
    confirm: Callable[[str], bool] | None = None
    yes: bool = False


class Engine:
    """Runs pipelines on a store."""

    def __init__(self, definition: Definition, setup: Setup) -> None:
        self._definition = definition
        self._setup = setup
        self._nodes = list(definition.graph.nodes)

    def start(
        self,
        params: Mapping[str, Any],
        *,
        identity: Mapping[str, Any],
        pins: Mapping[str, Any],
        claim: Claim | None = None,
        exclusive: bool = True,
    ) -> RunResult:
        """A new run, from its start to wherever it comes.

        Args:
            pins: JSON values the run is pinned to, by name (catalogue, prompt:NAME).
            exclusive: Refuse where another unfinished run holds the claim.

        Raises:
            RunExists, StoreError, ConfigError: Before anything was recorded.
        """
        setup = self._setup
        blobs = {name: canonical(value, name) for name, value in {**pins, "graph": self._graph_json()}.items()}
        fact = RunStarted(
            self._definition.name, dict(params), dict(identity), _recorded(setup.options),
            pins={name: digest(data) for name, data in blobs.items()}, claim=claim.to_json() if claim else None,
            host=_host(), product=setup.product,
        )  # fmt: skip
        now = setup.clock.now()
        line = encode_line(1, iso(now), 1, encode_fact(fact))
        run_id, journal = setup.store.create(line, list(blobs.values()), at=now, claim=claim if exclusive else None)
        builder = Builder(run_id)
        builder.apply(Record(1, iso(now), 1, fact))
        recorder = self._recorder(journal, builder, owner=1)
        setup.emit("run_started", run=run_id, pipeline=self._definition.name, params=dict(params))
        return self._go(recorder, journal, Spend())

    def resume(
        self,
        run_id: str,
        *,
        identity: Mapping[str, Any] | None = None,
        pins: Mapping[str, Any] | None = None,
        accept: Callable[[changes.Stale], bool] | None = None,
        missing: Mapping[str, str] | None = None,
    ) -> RunResult:
        """Go on with a run; only what is not finished is made.

        Args:
            identity, pins: Values that replace the pinned ones (given by the user), or fill what
                an imported run lacks.
            accept: Decides whether finished work that these changes void is made again; None: no.
            missing: Completed visits whose result is gone (path → why): they are made again.

        Raises:
            RunNotFound, RunLocked, CheckpointCorrupt, SchemaTooNew: As Store.open.
            SettingsConflict: Finished work would be void and `accept` did not agree.
            NeedsConfirmation: It died three times in one step, or an outside effect is unknown.
        """
        journal = self._setup.store.open(run_id)
        try:
            builder = Builder(run_id)
            for record in records(self._setup.store, run_id):
                builder.apply(record)
            recorder = self._recorder(journal, builder, owner=0)
            before = spent(builder.state)
            if not missing and (done := self._nothing_to_do(builder.state, identity, pins)):
                recorder.leave()
                journal.close()
                return done
            self._confirm_risks(builder.state)
            self._take_over(recorder, journal, identity or {}, pins or {}, accept)
            if missing:
                recorder.append(
                    Invalidated("missing", paths=list(missing), note="; ".join(missing.values())), sync=False
                )
        except BaseException:
            journal.close()
            raise
        self._tell_resumed(builder.state, before)
        return self._go(recorder, journal, before)

    def _recorder(self, journal: Journal, builder: Builder, owner: int) -> Recorder:
        def warn(text: str) -> None:
            self._setup.emit("note", text=text)

        return Recorder(journal, builder, self._setup.clock, owner=owner, nodes=self._nodes, warn=warn)

    def _tell_resumed(self, state: RunState, before: Spend) -> None:
        head = head_document(state, 0, self._nodes)
        self._setup.emit(
            "run_resumed", run=state.run_id, pipeline=state.pipeline, subject=head["subject"], level=head["level"],
            last_completed=head["last_completed_step"], resuming_from=head["next_step"], spent_usd=str(before.usd),
        )  # fmt: skip

    def _graph_json(self) -> dict[str, Any]:
        return dict(self._definition.graph.to_json())

    def _nothing_to_do(
        self, state: RunState, identity: Mapping[str, Any] | None, pins: Mapping[str, Any] | None
    ) -> RunResult | None:
        """The result of a completed run nothing has changed for."""
        if state.status != COMPLETED or identity or pins:
            return None
        missing = changes.missing(state, self._definition.steps)
        return None if missing else self._result(state, None, Spend(), 0.0, worked=False)

    def _confirm_risks(self, state: RunState) -> None:
        for run in state.steps.values():
            if run.status != IN_PROGRESS or run.ended_seq:
                continue
            spec = self._definition.steps.get(run.node)
            if run.deaths >= _DEATHS:
                self._ask(f"Step {run.path} has died {run.deaths} times without recording anything. Try it again?")
            if spec is not None and spec.effect in ("write", "external") and not spec.repeatable:
                self._ask(
                    f"Step {run.path} acts outside the run and was cut off; whether it acted is unknown. Repeat it?"
                )

    def _ask(self, question: str) -> None:
        setup = self._setup
        if setup.yes or (setup.confirm is not None and setup.confirm(question)):
            return
        raise NeedsConfirmation(question, hint="Look at the log first; --yes goes on.")

    def _take_over(
        self,
        recorder: Recorder,
        journal: Journal,
        identity: Mapping[str, Any],
        pins: Mapping[str, Any],
        accept: Callable[[changes.Stale], bool] | None,
    ) -> None:
        """Record the new owner, what it changes, what was damaged, and what that voids."""
        setup, state, steps = self._setup, recorder.state, self._definition.steps
        hashes = {name: recorder.put_blob(canonical(value, name)) for name, value in pins.items()}
        stale = self._stale(recorder, state, identity, hashes)
        if stale and (accept is None or not accept(stale)):
            shown = ", ".join(f"{path} ({why})" for path, why in stale.steps.items())
            raise SettingsConflict(
                f"Finished work of run {state.run_id} would have to be made again: {shown}.",
                hint="Resume without the change, add --accept-changes, or start anew with --force.",
                steps=dict(stale.steps),
            )
        fact = RunResumed(
            _recorded(setup.options), host=_host(), identity=dict(identity) or None, pins=hashes or None,
            product=setup.product,
        )  # fmt: skip
        for repair in journal.repairs:
            first, last, size, kept, reason = repair
            if not getattr(repair, "recorded", False):
                recorder.append(Gap(first, last, size, kept, reason), sync=False)
            setup.emit("note", text=_repaired(size, kept, reason))
        recorder.owner = recorder.append(fact, sync=False)
        for void in (*stale.facts(), *changes.missing(recorder.state, steps).facts()):
            recorder.append(void, sync=False)

    def _stale(
        self, recorder: Recorder, state: RunState, identity: Mapping[str, Any], pins: Mapping[str, str]
    ) -> changes.Stale:
        """What the new values would void; the state is left as it was."""
        kept = state.identity, state.pins
        state.identity, state.pins = {**state.identity, **identity}, {**state.pins, **pins}
        try:
            return changes.stale(state, Sources(recorder, self._setup.store), self._definition.steps)
        finally:
            state.identity, state.pins = kept

    def _go(self, recorder: Recorder, journal: Journal, before: Spend) -> RunResult:
        """Run the loop in its own thread, then record how this owner leaves."""
        setup = self._setup
        begun = setup.clock.monotonic()
        stop = Stop(setup.clock)
        recorder.on_strain = lambda: stop.request("interrupted", WriteFailed(_FULL, hint=_FREE_SPACE))
        stopped: PipelineError | None = None
        detail: str | None = None

        def work() -> None:
            running = self._running(recorder, stop)
            loop = Loop(running, self._definition.graph, self._definition.steps, self._definition.reducers)
            loop.run()

        try:
            run_with_signals(
                work, lambda name: self._interrupted(stop, recorder, name), lambda: self._leaving(recorder)
            )
        except Pause as pause:
            detail, stopped = pause.detail, pause.cause
        except PipelineError as error:
            detail, stopped = "failed", error
        except BaseException:
            # A fault of this program: the run stays as its records say, and free for the next owner.
            journal.close()
            raise
        if recorder.refused is not None:
            detail, stopped = "store", recorder.refused
        try:
            ended = self._leave(recorder, detail, stopped)
            return self._result(recorder.state, ended, before, setup.clock.monotonic() - begun)
        finally:
            journal.close()

    def _running(self, recorder: Recorder, stop: Stop) -> Running:
        setup = self._setup
        workers = max(int(setup.options.get("concurrency") or 4), 1) - 1
        sources = Sources(recorder, setup.store)
        running = Running(
            recorder, sources, setup.clock, setup.emit, stop, setup.options, services=setup.services,
            spare=threading.Semaphore(workers), workers=workers, repeat_unknown=setup.yes,
        )  # fmt: skip
        if setup.model is not None and setup.info is not None and setup.prices is not None:
            limit = setup.options.get("max_cost_usd")
            ceiling = Ceiling(Decimal(str(limit)) if limit is not None else None, recorder, stop, setup.clock)
            running.caller = Caller(
                setup.model, setup.info, setup.prices, recorder, sources.values, setup.clock, setup.emit, stop, ceiling,
                CoolDown(setup.clock, stop, setup.emit), threading.BoundedSemaphore(workers + 1), setup.policy,
            )  # fmt: skip
        return running

    def _interrupted(self, stop: Stop, recorder: Recorder, name: str) -> None:
        with recorder.reading() as state:
            owner = state.owner
            flying = [call for call in state.open_calls.values() if call.seq > owner]
        worst = sum((call.worst or Decimal(0) for call in flying), Decimal(0))
        stop.request("interrupted", PipelineError(f"Interrupted ({name})."))
        self._setup.emit("stopping", signal=name, calls=len(flying), worst_usd=str(worst))

    def _leaving(self, recorder: Recorder) -> None:
        """What is still done where somebody wants to leave at once."""
        with contextlib.suppress(Pause):
            recorder.sync()
        run = recorder.state.run_id
        self._setup.emit("leaving", run=run, command=self._setup.command(run))

    def _leave(self, recorder: Recorder, detail: str | None, stopped: PipelineError | None) -> PipelineError | None:
        """Record run_ended; the error people see, or None."""
        state = recorder.state
        error = stopped
        if detail is None:
            error = self._end_of_loop(state)
        status = IN_PROGRESS
        if detail in (None, "failed"):
            status, detail = (COMPLETED if error is None else FAILED), None
        if detail != "store":
            facts = error_facts(error) if error is not None else None
            command = "" if status == COMPLETED else self._setup.command(state.run_id)
            try:
                recorder.append(RunEnded(status, detail, facts, command))
            except Pause as refused:
                return refused.cause
            recorder.leave()
        return error

    def _end_of_loop(self, state: RunState) -> PipelineError | None:
        failed = failed_runs(state)
        if failed:
            first = failed[0].error or {}
            more = f" Also failed: {', '.join(run.path for run in failed[1:])}." if failed[1:] else ""
            name = bare(failed[0].path)
            # What people can act on by its exit code keeps its class; the rest is a step that failed.
            kind = _KEPT.get(str(first.get("type")), StepFailed)
            return kind(f"{name}: {first.get('message', 'failed')}{more}", hint=str(first.get("hint", "")))
        if state.waiting:
            waiting = ", ".join(sorted({token.edge for token in state.waiting.values()}))
            return GraphError(f"Nothing can run although edges are chosen: {waiting}.")
        return None

    def _result(
        self, state: RunState, error: PipelineError | None, before: Spend, seconds: float, *, worked: bool = True
    ) -> RunResult:
        total = spent(state)
        now = Spend(calls=total.calls - before.calls, usd=total.usd - before.usd)
        now.low, now.high = total.low - before.low, total.high - before.high
        now.tokens = {kind: count - before.tokens.get(kind, 0) for kind, count in total.tokens.items()}
        outputs = {run.node: self._whole(state, run) for run in state.steps.values() if run.status == COMPLETED}
        return RunResult(state.run_id, state.status, state.detail, error, outputs, total, now, seconds, worked)

    def _whole(self, state: RunState, run: StepRun) -> dict[str, Any]:
        """A step's outputs; long ones are read back, unless they are damaged."""
        if "$blob" in run.outputs:
            with contextlib.suppress(CheckpointCorrupt):
                return dict(json.loads(self._setup.store.get_blob(state.run_id, run.outputs["$blob"])))
        return dict(run.outputs)


def _repaired(size: int, kept: str, reason: str) -> str:
    where = f" ({size:,} bytes kept in {kept})" if kept else ""
    return f"The journal was repaired: {reason}{where}."


def _host() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid()}


def _recorded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Execution settings as recorded: JSON values only, no objects."""
    return {key: value for key, value in options.items() if isinstance(value, (str, int, float, bool)) or value is None}
