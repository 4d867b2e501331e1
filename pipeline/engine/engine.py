"""Start or resume one run: claim it, put its parts together, let the loop run, record how it was left."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.clock import iso
from pipeline.engine import changes, memory, missing_values
from pipeline.engine.batch_ledger import out_words, still_out
from pipeline.engine.batch_queue import batches_of
from pipeline.engine.call_setup import at_once, caller_of
from pipeline.engine.ceiling import more_room
from pipeline.engine.loop import Loop
from pipeline.engine.map_runner import MapRunner
from pipeline.engine.recorder import Recorder
from pipeline.engine.result import RunResult
from pipeline.engine.setup import ActiveRun, Definition, Setup, host, recorded
from pipeline.engine.sources import Sources, fresh, missing_param
from pipeline.engine.stop import Stop, run_with_signals
from pipeline.engine.store_limits import Slices, left_open, settle_slices
from pipeline.engine.takeover import ResumeOptions, TakeOver, other_graph, record_repairs
from pipeline.engine.tasks import error_facts, made_by_other_code
from pipeline.engine.watches import watching_store
from pipeline.errors import (
    CheckpointCorrupt,
    GraphError,
    Pause,
    PipelineError,
    PublishedFilesEdited,
    PublishError,
    RunLocked,
    StepFailed,
    StoreError,
    WaitingForBatch,
    WriteFailed,
)
from pipeline.records.codec import Record, encode_fact
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder, spent
from pipeline.records.kinds import Fact, RunEnded, RunStarted, Snapshot
from pipeline.records.lines import encode_line
from pipeline.records.run import RunState, Spend, StepRun, bare, error_text
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS
from pipeline.records.values import canonical, digest, resolve_value
from pipeline.store.base import Claim, Journal
from pipeline.store.reader import folded, load

_FULL = "The disk is full: what was in flight is recorded, nothing more was started."
#: How long a process that leaves at once waits for a store that is just writing.
_SYNC_SECONDS, _LEAD_SECONDS = 1.0, 0.3
_FREE_SPACE = "Free some space, then resume."
_KEPT: Mapping[str, type[PipelineError]] = {cls.__name__: cls for cls in (PublishError, PublishedFilesEdited)}


class Engine:
    """Runs pipelines on a store."""

    def __init__(self, definition: Definition, setup: Setup) -> None:
        self._definition = definition
        self._setup = setup
        self._nodes = list(definition.graph.nodes)
        #: Slices of the day that dead owners of the run left open.
        self._left: Slices = {}

    def start(
        self,
        params: Mapping[str, Any],
        *,
        identity: Mapping[str, Any],
        pins: Mapping[str, Any],
        claim: Claim | None = None,
        exclusive: bool = True,
        imported: Mapping[str, Any] | None = None,
    ) -> RunResult:
        """Make a new run, and run it as far as it goes.

        Args:
            pins: JSON values the run is pinned to, by name (catalogue, prompt:NAME).
            exclusive: Refuse where another unfinished run holds the claim.
            imported: A state document to begin from, instead of the start node; see records.snapshots.

        Raises:
            RunExists, StoreError, ConfigError: Before anything was recorded.
        """
        setup, graph = self._setup, dict(self._definition.graph.to_json())
        blobs = {name: canonical(value, name) for name, value in {**pins, "graph": graph}.items()}
        now = setup.clock.now()
        facts: list[Fact] = [RunStarted(
            self._definition.name, fresh(dict(params), "params"), fresh(dict(identity), "settings"),
            recorded(setup.options), pins={name: digest(data) for name, data in blobs.items()},
            claim=claim.to_json() if claim else None, host=host(), product=setup.product,
        )]  # fmt: skip
        if imported is not None:
            facts.append(Snapshot(fresh(dict(imported), "imported")))
        lines = [encode_line(seq, iso(now), 1, encode_fact(each)) for seq, each in enumerate(facts, 1)]
        with watching_store(setup.emit):
            run_id, journal = setup.store.create(
                b"".join(lines), list(blobs.values()), at=now, claim=claim if exclusive else None
            )
        builder = Builder(run_id)
        for seq, each in enumerate(facts, 1):
            builder.apply(Record(seq, iso(now), 1, each))
        recorder = self._recorder(journal, builder, owner=1)
        setup.emit("run_started", run=run_id, pipeline=self._definition.name, params=dict(params))
        return self._go(recorder, Spend())

    def resume(self, run_id: str, **wanted: Any) -> RunResult:
        """Continue a run; only what is not finished is made.

        Args:
            wanted: The fields of ResumeOptions; None is as if not given.

        Raises:
            RunNotFound, RunLocked, CheckpointCorrupt, SchemaTooNew: As Store.open.
            SettingsConflict: Finished work would be void and `accept` did not agree.
            NeedsConfirmation: It died three times in one step, or an outside effect is unknown.
        """
        wish = ResumeOptions(**{name: value for name, value in wanted.items() if value is not None})
        ready = _collector_off()
        try:
            return self._resume(run_id, wish, ready)
        finally:
            ready()

    def _resume(self, run_id: str, wish: ResumeOptions, ready: Callable[[], None]) -> RunResult:
        setup = self._setup
        try:
            with watching_store(setup.emit):
                # Before it is opened: what is repaired then may be known to it alone.
                head = setup.store.written_head(run_id)
                journal = setup.store.open(run_id)
        except StoreError as error:
            if wish or isinstance(error, RunLocked):
                raise
            # A completed run needs no owner, also in a store that this process may only read.
            with contextlib.suppress(StoreError):
                if (done := self._nothing_to_do(load(setup.store, run_id))) is not None:
                    return done
            raise
        try:
            builder, gap = folded(setup.store, run_id, head)
            recorder = self._recorder(journal, builder, owner=0)
            taking = TakeOver(self._definition, setup, recorder)
            if not wish and (done := self._nothing_to_do(builder.state)):
                # It stays as it is, except for what had to be repaired.
                for text in record_repairs(journal, recorder, gap):
                    setup.emit.note(text)
                recorder.leave()
                journal.close()
                return done
            taking.confirm_risks(retry_unknown=wish.retry_unknown)
            self._left = left_open(setup.store, setup.account, run_id, builder.state)
            taking.record(wish, missing_values.find(setup.store, builder.state), gap)
            before = spent(builder.state)
            settle_slices(setup.store, setup.account, run_id, self._left)
            setup.yes = setup.yes or wish.retry_unknown
        except BaseException:
            journal.close()
            raise
        self._tell_resumed(builder.state, before)
        return self._go(recorder, before, ready)

    def _recorder(self, journal: Journal, builder: Builder, owner: int) -> Recorder:
        setup = self._setup
        return Recorder(
            journal, builder, setup.clock, owner=owner, nodes=self._nodes, warn=setup.emit.note, view=setup.view
        )

    def _tell_other_code(self, state: RunState) -> None:
        """Report which finished steps were made by other code of the user's than there is now."""
        other = changes.made_otherwise(state, self._definition.steps)
        if other:
            text = made_by_other_code([bare(path) for path in other], self._anew(state.run_id)(other[0], None))
            self._setup.emit.note(text)

    def _anew(self, run: str) -> Callable[[str, str | None], str]:
        """Return what makes words for people on how to have work done again: (path, task)."""
        setup = self._setup
        if setup.anew is not None:
            return partial(setup.anew, run)
        return lambda path, task: f"{setup.command(run)} --from {bare(path)}{setup.again}"

    def _tell_resumed(self, state: RunState, before: Spend) -> None:
        if not self._setup.emit.heard:
            return
        head = head_document(state, 0, self._nodes)
        self._setup.emit(
            "run_resumed", run=state.run_id, pipeline=state.pipeline, subject=head["subject"], level=head["level"],
            last_completed=head["last_completed_step"], resuming_from=head["next_step"], spent_usd=str(before.usd),
            unpriced_calls=before.unpriced,
        )  # fmt: skip
        self._tell_other_code(state)

    def _nothing_to_do(self, state: RunState) -> RunResult | None:
        """Return the result of a completed run for which nothing has changed."""
        what = self._definition
        if state.status != COMPLETED or other_graph(what, self._setup.store, state) is not None:
            return None
        if changes.missing(state, what.steps):
            return None
        self._tell_other_code(state)
        return self._result(state, None, Spend(), 0.0, worked=False)

    def _go(self, recorder: Recorder, before: Spend, ready: Callable[[], None] = lambda: None) -> RunResult:
        """Run the loop in its own thread, then record how this owner leaves.

        Args:
            ready: Called once the first step can begin.
        """
        setup = self._setup
        begun = setup.clock.monotonic()
        stop = Stop(setup.clock)
        recorder.on_strain = lambda: stop.request("interrupted", WriteFailed(_FULL, code="disk_full", hint=_FREE_SPACE))
        detail: str | None = None
        stopped: PipelineError | None = None

        def work() -> None:
            running = self._running(recorder, stop)
            loop = Loop(running, self._definition)
            if setup.hook is not None:
                setup.hook.begun(recorder)
            try:
                running.maps.begin()
                memory.apply_left(running)
                ready()
                loop.run()
            finally:
                if running.caller is not None:
                    running.caller.ledger.ceiling.close()
                settle_slices(setup.store, setup.account, recorder.state.run_id, self._left)

        try:
            with watching_store(setup.emit):
                run_with_signals(
                    work, lambda name: self._interrupted(stop, recorder, name), lambda: self._leaving(recorder)
                )
        except Pause as pause:
            detail, stopped = pause.detail, pause.cause
        except PipelineError as error:
            detail, stopped = "failed", error
        except BaseException:
            # A fault of this program: the run stays as recorded, and free for the next owner.
            recorder.journal.close()
            raise
        if recorder.refused is not None:
            detail, stopped = "store", recorder.refused
        try:
            ended = self._leave(recorder, detail, stopped)
            return self._result(recorder.state, ended, before, setup.clock.monotonic() - begun)
        finally:
            recorder.journal.close()

    def _running(self, recorder: Recorder, stop: Stop) -> ActiveRun:
        setup = self._setup
        workers = at_once(setup.options) - 1
        sources = Sources(recorder, setup.store)
        running = ActiveRun(
            recorder, sources, setup.clock, setup.emit, stop, setup.options, setup.store, services=setup.services,
            spare=threading.Semaphore(workers), workers=workers, repeat_unknown=setup.yes, hook=setup.hook,
        )  # fmt: skip
        running.anew = self._anew(recorder.state.run_id)
        running.caller = caller_of(setup, recorder, sources.values, stop, batches=partial(batches_of, setup))
        running.maps = (setup.map_runner or MapRunner)(running)
        return running

    def _interrupted(self, stop: Stop, recorder: Recorder, name: str) -> None:
        with recorder.reading() as state:
            owner, run = state.owner, state.run_id
            flying = [call for call in state.open_calls.values() if call.admitted == owner and not call.batch]
            out = still_out(state)
        usd = sum((call.worst or Decimal(0) for call in flying), Decimal(0))
        stop.request("interrupted", PipelineError(f"Interrupted ({name}).", code="run_interrupted"))
        self._setup.emit(
            "stopping", signal=name, calls=len(flying), worst_usd=str(usd), batches=out,
            out=out_words(out, self._setup.cancel(run)),
        )  # fmt: skip

    def _leaving(self, recorder: Recorder) -> None:
        """Do what can be done where the process is to leave at once."""

        def sync() -> None:
            with contextlib.suppress(Pause):
                recorder.sync()

        # In a thread of its own: a store that does not answer would hold this one.
        syncing = threading.Thread(target=sync, name="syncing", daemon=True)
        syncing.start()
        syncing.join(_SYNC_SECONDS)
        kept = recorder.leave_behind(_LEAD_SECONDS)
        run = recorder.state.run_id
        self._setup.emit("leaving", run=run, command=self._setup.command(run) + self._setup.again, kept=kept)

    def _leave(self, recorder: Recorder, detail: str | None, stopped: PipelineError | None) -> PipelineError | None:
        """Record run_ended; return the error that people see, or None."""
        state = recorder.state
        error = stopped
        if detail is None:
            error = self._end_of_loop(state)
        status = IN_PROGRESS
        if detail in (None, "failed"):
            status, detail = (COMPLETED if error is None else FAILED), None
        out = still_out(state) if error is not None and not isinstance(error, WaitingForBatch) else []
        if error is not None and out:
            error.args = (f"{error.message} {out_words(out, self._setup.cancel(state.run_id))}",)
        if detail != "store":
            facts = error_facts(error) if error is not None else None
            more = more_room(error) + missing_param(error)
            command = "" if status == COMPLETED else self._setup.command(state.run_id) + more
            try:
                recorder.append(RunEnded(status, detail, facts, command))
            except Pause as refused:
                return refused.cause
            recorder.leave()
        return error

    def _end_of_loop(self, state: RunState) -> PipelineError | None:
        failed = [state.steps[path] for path in sorted(state.failed_paths)]
        if failed:
            first = failed[0].error or {}
            more = f" Also failed: {', '.join(run.path for run in failed[1:])}." if failed[1:] else ""
            name = bare(failed[0].path)
            # What people can act on by its exit code keeps its class; the rest is a step that failed.
            kind = _KEPT.get(str(first.get("type")), StepFailed)
            needs = str(first.get("missing_param", ""))
            text = f"{name}: {error_text(first) or 'failed'}{more}"
            return kind(text, hint=str(first.get("hint", "")), missing_param=needs)
        if state.waiting:
            waiting = ", ".join(sorted({token.edge for token in state.waiting.values()}))
            return GraphError(f"No step can run although edges are chosen: {waiting}.", code="stuck")
        return None

    def _result(
        self, state: RunState, error: PipelineError | None, before: Spend, seconds: float, *, worked: bool = True
    ) -> RunResult:
        total = spent(state)
        now = Spend(calls=total.calls - before.calls, usd=total.usd - before.usd)
        now.low, now.high = total.low - before.low, total.high - before.high
        now.unpriced = max(total.unpriced - before.unpriced, 0)
        now.unbounded = max(total.unbounded - before.unbounded, 0)
        now.tokens = {kind: count - before.tokens.get(kind, 0) for kind, count in total.tokens.items()}
        outputs = {run.node: self._whole(state, run) for run in state.steps.values() if run.status == COMPLETED}
        return RunResult(state.run_id, state.status, state.detail, error, outputs, total, now, seconds, worked)

    def _whole(self, state: RunState, run: StepRun) -> dict[str, Any]:
        """Return a step's outputs; long ones are read back, unless they are damaged."""
        with contextlib.suppress(CheckpointCorrupt):
            return dict(resolve_value(run.outputs, partial(self._setup.store.get_blob, state.run_id)))
        return dict(run.outputs)


def _collector_off() -> Callable[[], None]:
    """Turn the cyclic garbage collector off while records are read, all of which it would look at again and again.

    Returns:
        What turns it on again, if it was.
    """
    if not gc.isenabled():
        return lambda: None
    gc.disable()
    return gc.enable
