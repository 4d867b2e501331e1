"""Looks at the batches that are out, and for those that the provider does not show; records what they answered."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import NoReturn

from pipeline.clock import iso
from pipeline.engine.batch_ledger import (
    LONGEST_SECONDS,
    LOOKS,
    BatchLedger,
    BatchState,
    Search,
    at_most,
    born,
    lost,
    not_shown,
    question,
    requests,
    ways_on,
)
from pipeline.errors import BatchLost, ModelRejected, ModelUnavailable, WaitingForBatch
from pipeline.llm.base import Batch
from pipeline.records.kinds import BatchAbandoned
from pipeline.records.run import BatchRun, CallRun

#: Longest pause between two looks for a batch that the provider does not show.
_LONGEST_LOOKING_SECONDS = 600.0
#: From so long after its expiry a batch is late.
_LATE = timedelta(hours=1)
#: The account does not have it, or does not have it any more.
_GONE = frozenset({404, 410})


class BatchWatch:
    """The batches of one run that are out."""

    def __init__(self, ledger: BatchLedger) -> None:
        self._ledger = ledger
        self._policy = ledger.policy
        self._provider = ledger.provider
        #: Those that the provider does not show, by nonce.
        self._searches: dict[str, Search] = {}
        #: The first custom id in the results of batches that were found, by batch: its nonce says whose it is.
        self._firsts: dict[str, str] = {}
        #: Questions that were resubmitted without knowing the outcome: at most once a start.
        self._again: set[tuple[object, ...]] = set()
        #: Batches that were reported as late, by id.
        self._told_late: set[str] = set()

    def wait(self, runs: list[BatchRun]) -> None:
        """Wait until some of the batches have ended, and record their results.

        Raises:
            Pause: None is to be waited for, or none can be found.
        """
        pause = searching = self._policy.poll_seconds
        while True:
            looked = [run for run in runs if self._policy.wait or run.nonce not in self._ledger.looked]
            self._ledger.looked.update(run.nonce for run in looked)
            stands = [self._look(run) for run in looked]
            if BatchState.ENDED in stands:
                return
            searches = [self._searches[run.nonce] for run in runs if run.nonce in self._searches]
            gone = [search.lost for search in searches if search.lost is not None]
            if gone and (len(gone) == len(runs) or not self._policy.wait):
                self._ledger.stop.pause("waiting_for_batch", gone[0])
            if not self._policy.wait:
                self._leave(runs)
            if BatchState.OUT in stands or any(search.candidate for search in searches):
                self._ledger.stop.rest(pause)
                pause = min(pause * 2, LONGEST_SECONDS)
            else:
                self._ledger.rest(searching, "the provider does not list the batch")
                searching = min(searching * 2, _LONGEST_LOOKING_SECONDS)

    def _leave(self, runs: list[BatchRun]) -> NoReturn:
        shown = [run.batch for run in runs if run.batch and run.nonce not in self._searches]
        hidden = [run for run in runs if run.batch not in shown]
        words = [f"The provider works on {', '.join(shown)}."] if shown else []
        words += [not_shown(run, self._searches.get(run.nonce)) for run in hidden]
        calls = [call for run in hidden for call in self._ledger.open_calls(run).values()]
        hint = ways_on(calls, self._ledger.command()) if hidden else self._ledger.command()
        self._ledger.stop.pause("waiting_for_batch", WaitingForBatch(" ".join(words), hint=hint))

    def _look(self, run: BatchRun) -> BatchState:
        """Look at a batch, or for it, and record its results where it has ended."""
        search = self._searches.get(run.nonce)
        if not run.batch:
            search = search or self._search(run)
            if (found := self._find(run, search)) is None:
                return self._not_there(run, search)
            run = run._replace(batch=found.id)
        batch: Batch | None = None
        try:
            batch = self._ledger.asked(partial(self._provider.look, run.batch))
            self._emit_waiting(batch)
            if batch.ended:
                return self._collect(run, batch)
        except ModelRejected as error:
            self._stop_unless_gone(error)
            search = search or self._search(run)
            search.archived = batch is not None and batch.archived
            search.miss(self._ledger.clock.monotonic(), error.data.get("seen_at"))
            return self._not_there(run, search)
        self._searches.pop(run.nonce, None)
        self._tell_late(batch)
        return BatchState.OUT

    def _emit_waiting(self, batch: Batch) -> None:
        self._ledger.emit(
            "batch_waiting", batch=batch.id, counts=dict(batch.counts), expires_at=iso(batch.expires_at),
            ended=batch.ended,
        )  # fmt: skip

    def _stop_unless_gone(self, error: ModelRejected) -> None:
        """Return where the provider's answer is that it does not have a batch, or not yet."""
        if error.data.get("status") not in _GONE:
            self._ledger.stop.pause("waiting_for_batch", error)

    def _search(self, run: BatchRun) -> Search:
        return self._searches.setdefault(run.nonce, Search(born(run), self._ledger.clock.monotonic()))

    def _find(self, run: BatchRun, search: Search) -> Batch | None:
        """Look for a batch of which only the intent is recorded; the nonce in its results decides.

        Returns:
            The batch, recorded as ours; None: it is not among those that have ended.
        """
        try:
            listed = self._ledger.asked(lambda: self._provider.since(search.begins_at(run)))
        except ModelRejected as error:
            self._stop_unless_gone(error)
            search.miss(self._ledger.clock.monotonic(), error.data.get("seen_at"))
            return None
        with self._ledger.recorder.reading() as state:
            known = {other.batch for other in state.batches.values()}
        search.candidate = ""
        for batch in listed.batches:
            if batch.id in known or batch.count not in (0, run.size):
                continue
            first = self._first(batch)
            if first is None:
                search.candidate = batch.id
            elif first.startswith(run.nonce):
                self._ledger.submitted(run.nonce, batch)
                return batch
        search.miss(self._ledger.clock.monotonic(), listed.seen_at)
        return None

    def _first(self, batch: Batch) -> str | None:
        """Return the custom id of a batch's first result; None: it has not ended, or cannot be read now."""
        if batch.id in self._firsts:
            return self._firsts[batch.id]
        try:
            if not batch.ended:
                batch = self._ledger.asked(partial(self._provider.look, batch.id))
                self._emit_waiting(batch)
            first = self._ledger.asked(lambda: next(self._provider.results(batch.id), None)) if batch.ended else None
        except ModelRejected as error:
            self._stop_unless_gone(error)
            return None
        if first is not None:
            self._firsts[batch.id] = first.custom_id
        return self._firsts.get(batch.id)

    def _not_there(self, run: BatchRun, search: Search) -> BatchState:
        """Decide what follows from a look at a batch that the provider does not show."""
        calls = list(self._ledger.open_calls(run).values())
        enough = search.over or search.looks >= LOOKS or not (self._policy.wait or search.young)
        if enough and self._resubmits(calls):
            return self._abandon(run, "Its batch was not found.")
        if search.over and not search.candidate:
            search.lost = lost(run, ways_on(calls, self._ledger.command()), archived=search.archived)
        elif search.looks == 1 and self._policy.wait:
            soon = "If it does not appear soon, its requests are resubmitted." if self._policy.resubmit else ""
            self._ledger.emit.note(
                f"{not_shown(run, search)} Looking for it. {soon or ways_on(calls, self._ledger.command())}"
            )
        return BatchState.MISSING

    def _resubmits(self, calls: list[CallRun]) -> bool:
        """Return whether these are resubmitted without knowing the outcome: on request, each question once a start."""
        return self._policy.resubmit and self._again.isdisjoint(map(question, calls))

    def _abandon(self, run: BatchRun, why: str) -> BatchState:
        """Give a batch up: what it may have cost stays in the ledger as possibly spent."""
        self._searches.pop(run.nonce, None)
        calls = list(self._ledger.open_calls(run).values())
        self._again.update(map(question, calls))
        self._ledger.failed(calls, ModelUnavailable(why, code="batch_abandoned", billed="unknown"))
        self._ledger.recorder.append(BatchAbandoned(run.nonce, run.batch, len(calls)))
        self._ledger.emit.note(
            f"{why} Resubmitting {requests(len(calls))}; the batch stays possibly spent, {at_most(calls)}."
        )
        return BatchState.ENDED

    def _tell_late(self, batch: Batch) -> None:
        """Report once that a batch should have ended, by the provider's own clock."""
        now = batch.seen_at
        if now is None or now < batch.expires_at + _LATE or batch.id in self._told_late:
            return
        self._told_late.add(batch.id)
        self._ledger.emit.note(
            f"Batch {batch.id} expired at {iso(batch.expires_at)} and has not ended; the provider is late. Waiting for "
            "its results; nothing is resubmitted."
        )

    def _collect(self, run: BatchRun, batch: Batch) -> BatchState:
        """Record the results of a batch that has ended; those recorded before are passed over.

        Answers that the provider counts and its results lack are fetched again, and not asked again.
        """
        succeeded = batch.counts.get("succeeded", 0)
        pause = self._policy.poll_seconds
        for left in reversed(range(LOOKS if self._policy.wait else 2)):
            answered = self._ledger.asked(lambda: self._take(run))
            if answered >= succeeded or not self._ledger.open_calls(run):
                break
            if left:
                self._ledger.rest(pause, f"the results of {batch.id} hold {answered} of {succeeded} answers")
                pause = min(pause * 2, LONGEST_SECONDS)
        else:
            return self._lacking(run, answered, succeeded)
        self._searches.pop(run.nonce, None)
        # Where all answers came, what has no result is among those that ended without one; these are not billed.
        final = "succeeded" in batch.counts and not batch.counts.get("processing") and batch.count == run.size
        billed = "no" if final else "unknown"
        text = "The batch ended without a result for this request."
        silent = ModelUnavailable(text, code="no_result", billed=billed)
        self._ledger.failed(self._ledger.open_calls(run).values(), silent)
        self._ledger.recorder.sync()
        self._ledger.emit("batch_ended", batch=run.batch, requests=run.size)
        return BatchState.ENDED

    def _lacking(self, run: BatchRun, answered: int, succeeded: int) -> BatchState:
        """Leave the requests open whose answers the results lack, or resubmit them on request."""
        text = f"The results of batch {run.batch} hold {answered} of the {succeeded} answers that the provider counts."
        open_calls = list(self._ledger.open_calls(run).values())
        if self._resubmits(open_calls):
            return self._abandon(run, text)
        self._search(run).lost = BatchLost(
            text, code="batch_incomplete", hint=ways_on(open_calls, self._ledger.command()), batch=run.batch
        )
        return BatchState.MISSING

    def _take(self, run: BatchRun) -> int:
        """Record results as they are read, for they may be many and long; return how many answers there were.

        A result that is neither an answer nor an end known to be free is left: it may be read whole another time.
        """
        left = self._ledger.open_calls(run)
        answered: set[str] = set()
        for result in self._provider.results(run.batch):
            if result.custom_id not in run.calls:
                continue
            free = result.error is not None and result.error.billed == "no"
            if result.reply is not None:
                answered.add(result.custom_id)
            elif not free:
                continue
            call = left.pop(result.custom_id, None)
            if call is None:
                continue
            if result.reply is not None:
                self._ledger.calls.replied(self._ledger.open_call(call), result.reply, sync=False)
            elif result.error is not None:
                self._ledger.calls.failed(self._ledger.open_call(call), result.error, sync=False)
        self._ledger.recorder.sync()
        return len(answered)
