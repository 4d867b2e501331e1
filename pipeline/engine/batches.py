"""Batches: handed in once, found again after any kill, their results recorded.

A batch is in the journal before it is created, and its id before it is looked at; one of which only the intent is
recorded is looked for at the provider. None is handed in twice without being told to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import NoReturn, TypeVar

from pipeline.clock import iso, parse_iso
from pipeline.engine.entries import BATCH, Ask, Entries, Entry
from pipeline.engine.limits import Room
from pipeline.errors import (
    BatchLost,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    Pause,
    PipelineError,
    SpendLimit,
    WaitingForBatch,
)
from pipeline.llm.base import Batch, Batches, BatchResult
from pipeline.records.kinds import BatchIntended, BatchSubmitted
from pipeline.records.run import BatchRun, CallRun
from pipeline.records.values import digest

#: First and longest pause between two looks at a batch, in seconds.
POLL_SECONDS = 5.0
_LONGEST_SECONDS = 60.0
#: The provider's clock may be off ours by so much.
_SKEW = timedelta(minutes=10)
#: Looks that may fail one after the other before the run is left for later.
_BLIND = 10
_ID_CHARS = 64
T = TypeVar("T")

#: (path, task, attempt, request hash, n): one question.
Slot = tuple[str, str | None, int, str, int]


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How a run uses batches."""

    #: Gather asks at all; False: only batches that were handed in before are waited for.
    gather: bool = True
    #: Fewer asks than this go out as ordinary calls.
    least: int = 1
    #: Stay until the batch has ended; False: hand in and leave.
    wait: bool = True
    #: Ask again what was handed in and cannot be found, though it may be paid twice.
    resubmit: bool = False
    #: First pause between two looks, in seconds; doubles up to a minute.
    poll_seconds: float = POLL_SECONDS


class Post:
    """Hands in batches of one run, and fetches their results. One thread at a time."""

    def __init__(
        self,
        batches: Batches,
        entries: Entries,
        policy: BatchPolicy,
        *,
        owned: Callable[[], Collection[str]],
        command: Callable[[], str],
    ) -> None:
        """Keep the parts.

        Args:
            owned: Ids of all batches that other runs of this store have handed in.
            command: What to type to come back to this run.
        """
        self._batches = batches
        self._entries = entries
        self._policy = policy
        self._owned = owned
        self.command = command
        #: Kinds of request the provider has looked at.
        self._seen: set[tuple[str, str, str]] = set()
        self._begun = False
        #: Room that requests which are out were admitted to, by call.
        self._rooms: dict[int, Room] = {}

    def say(self, text: str) -> None:
        """Tell the person something."""
        self._entries.emit("note", text=text)

    def go(self, asks: list[Ask]) -> None:
        """Hand these in, then wait until one of all batches that are out has ended and its results are recorded.

        Raises:
            Pause: The run is stopping, the ceiling has no room, or the batches are left to themselves.
        """
        if not self._begun:
            self._begun = True
            self._close_unsent()
        if asks:
            self._send(asks)
        for run in [run for run in self._open() if not run.batch]:
            self._find(run)
        if out := self._open():
            self._await(out)

    def _open(self) -> list[BatchRun]:
        """Batches with requests that have no recorded end, oldest first."""
        with self._entries.recorder.reading() as state:
            open_calls = state.open_calls
            return [run for run in state.batches.values() if any(call in open_calls for call in run.calls.values())]

    def _calls(self, run: BatchRun) -> dict[str, CallRun]:
        """A batch's requests without a recorded end, by custom id."""
        with self._entries.recorder.reading() as state:
            found = {name: state.open_calls.get(call) for name, call in run.calls.items()}
        return {name: call for name, call in found.items() if call is not None}

    def _close_unsent(self) -> None:
        """What an earlier owner had readied for a batch that was never intended did not leave."""
        with self._entries.recorder.reading() as state:
            unsent = [c for c in state.open_calls.values() if c.batch and c.batch not in state.batches]
        for call in unsent:
            self._entries.failed(self._entry(call), ModelUnavailable("It never left.", billed="no"), sync=False)
        self._entries.recorder.sync()

    def _entry(self, call: CallRun) -> Entry:
        room = self._rooms.pop(call.seq, None)
        return Entry(
            call.seq, call.path, call.task, call.label, call.model, call.worst, parse_iso(call.at), BATCH, room
        )

    # Handing in

    def _send(self, asks: list[Ask]) -> None:
        """Hand in what the ceiling and the provider's limits allow; the rest is asked for again when bodies rerun."""
        room = True
        for part in self._parts([ask for ask in asks if self._fit_to_send(ask)]):
            nonce = self._entries.clock.new_id()
            begun: list[tuple[Ask, Entry]] = []
            for ask in part if room else ():
                entry = self._entries.begin_in_batch(ask, nonce)
                if entry is None:
                    room = False
                    break
                begun.append((ask, entry))
            if begun:
                self._hand_in(nonce, begun)
            elif not self._open():
                self._entries.refuse(part[0])
            if not room:
                self.say("The ceiling has no room for the other requests yet; they wait.")
                return

    def _fit_to_send(self, ask: Ask) -> bool:
        """Whether a request may go out: the first of each kind is shown to the provider, free."""
        request = ask.request
        kind = (request.model, request.label, request.schema_id)
        if kind in self._seen:
            return True
        try:
            self._batches.validate(request)
        except ModelRejected as error:
            self._stop_if_hopeless(error)
            self._entries.failed(self._entries.begin(ask), error)
            return False
        except ModelError as error:
            self._stop_if_hopeless(error)
            return True
        self._seen.add(kind)
        return True

    def _parts(self, asks: list[Ask]) -> Iterator[list[Ask]]:
        part: list[Ask] = []
        size = 0
        for ask in asks:
            more = ask.request.size()
            if part and (len(part) >= self._batches.most_requests or size + more > self._batches.most_bytes):
                yield part
                part, size = [], 0
            part.append(ask)
            size += more
        if part:
            yield part

    def _hand_in(self, nonce: str, begun: list[tuple[Ask, Entry]]) -> None:
        rows = [(_custom_id(nonce, ask), ask.request) for ask, _ in begun]
        calls = [{"id": name, "call": entry.call} for (name, _), (_, entry) in zip(rows, begun, strict=True)]
        recorder = self._entries.recorder
        recorder.append(BatchIntended(nonce, calls, len(rows)))
        try:
            batch = self._batches.submit(rows)
        except ModelError as error:
            self._not_handed_in(error, [entry for _, entry in begun])
            return
        self._rooms.update((entry.call, entry.room) for _, entry in begun if entry.room is not None)
        self._submitted(nonce, batch)

    def _submitted(self, nonce: str, batch: Batch) -> None:
        expires = iso(batch.expires_at)
        self._entries.recorder.append(BatchSubmitted(nonce, batch.id, expires))
        self._entries.emit("batch_submitted", batch=batch.id, requests=batch.count, expires_at=expires)

    def _not_handed_in(self, error: ModelError, entries: list[Entry]) -> None:
        """The provider did not take a batch, or nobody knows: then it is looked for."""
        status = error.data.get("status")
        unknown = isinstance(error, ModelUnavailable) and (
            error.billed != "no" or (isinstance(status, int) and status >= 500 and status != 529)
        )
        if unknown:
            self._rooms.update((entry.call, entry.room) for entry in entries if entry.room is not None)
            return
        for entry in entries:
            self._entries.failed(entry, error, sync=False)
        self._entries.recorder.sync()
        self._stop_if_hopeless(error)

    def _stop_if_hopeless(self, error: ModelError) -> None:
        if isinstance(error, SpendLimit):
            self._stop("paused_spend_limit", error)
        if error.data.get("stops_run"):
            self._stop("failed", error)

    def _stop(self, detail: str, error: PipelineError) -> NoReturn:
        self._entries.stop.request(detail, error)
        raise Pause(detail, error)

    # Finding again what was handed in when the run was cut off

    def _find(self, run: BatchRun) -> None:
        """Look for a batch of which only the intent is recorded; the nonce in its results decides."""
        if self._policy.resubmit:
            self._abandon(run, "Handed in again without knowing whether the first time worked.")
            return
        owned = set(self._owned())
        since = parse_iso(run.at) - _SKEW
        found = [b for b in self._asked(lambda: list(self._batches.since(since))) if b.count == run.size]
        for batch in [batch for batch in reversed(found) if batch.id not in owned]:
            text = f"A batch was being handed in when the run was cut off; {batch.id} may be it."
            if not batch.ended:
                self.say(f"{text} Its results will tell; --resubmit does not wait for that.")
                batch = self._until_ended([batch.id])
            first = self._asked(partial(self._first, batch.id))
            if first is not None and first.custom_id.startswith(run.nonce):
                self._submitted(run.nonce, batch)
                return
        for call in self._calls(run).values():
            self._entries.failed(
                self._entry(call), ModelUnavailable("Its batch was never created.", billed="no"), sync=False
            )
        self._entries.recorder.sync()

    def _abandon(self, run: BatchRun, why: str) -> None:
        """Give a batch up: what it may have cost stays in the ledger as possibly spent."""
        for call in self._calls(run).values():
            self._entries.failed(self._entry(call), ModelUnavailable(why, billed="unknown"), sync=False)
        self._entries.recorder.sync()

    # Waiting for results

    def _await(self, runs: list[BatchRun]) -> None:
        """Wait until one of the batches has ended, and record its results."""
        if not self._policy.wait:
            names = ", ".join(run.batch for run in runs)
            cause = WaitingForBatch(f"The provider works on {names}.", hint=self.command())
            self._stop("waiting_for_batch", cause)
        by_id = {run.batch: run for run in runs}
        try:
            batch = self._until_ended(list(by_id))
            self._collect(by_id[batch.id])
        except ModelRejected as error:
            self._explain_gone(error, by_id[str(error.data.get("batch") or next(iter(by_id)))])

    def _until_ended(self, ids: list[str]) -> Batch:
        """The first of these batches that has ended."""
        pause = self._policy.poll_seconds
        while True:
            for name in ids:
                batch = self._asked(partial(self._look, name))
                self._entries.emit(
                    "batch_waiting", batch=name, counts=dict(batch.counts), expires_at=iso(batch.expires_at),
                    ended=batch.ended,
                )  # fmt: skip
                if batch.ended:
                    return batch
            self._entries.stop.rest(pause)
            pause = min(pause * 2, _LONGEST_SECONDS)

    def _first(self, name: str) -> BatchResult | None:
        return next(self._batches.results(name), None)

    def _look(self, name: str) -> Batch:
        try:
            return self._batches.look(name)
        except ModelRejected as error:
            error.data["batch"] = name
            raise

    def _asked(self, ask: Callable[[], T]) -> T:
        """What the provider answers; an outage is waited out for a while."""
        pause = self._policy.poll_seconds
        for _ in range(_BLIND):
            try:
                return ask()
            except ModelUnavailable as error:
                last = error
                seconds = float(error.data.get("retry_after") or pause)
                self._entries.emit(
                    "waiting", reason=error.message.rstrip("."), until=self._until(seconds), seconds=seconds
                )
                self._entries.stop.rest(seconds)
                pause = min(pause * 2, _LONGEST_SECONDS)
        self._stop("waiting_for_batch", WaitingForBatch(f"{last.message} The batch goes on.", hint=self.command()))

    def _until(self, seconds: float) -> str:
        return iso(self._entries.clock.now() + timedelta(seconds=seconds))

    def _collect(self, run: BatchRun) -> None:
        """Record the results of a batch that has ended; those recorded before are passed over."""
        self._asked(lambda: self._take(run))
        for call in self._calls(run).values():
            lost = ModelUnavailable("The batch ended without a word on this request.", billed="unknown")
            self._entries.failed(self._entry(call), lost, sync=False)
        self._entries.recorder.sync()
        self._entries.emit("batch_ended", batch=run.batch, requests=run.size)

    def _take(self, run: BatchRun) -> None:
        """Record results as they are read: they may be many and long."""
        left = self._calls(run)
        for result in self._batches.results(run.batch):
            call = left.pop(result.custom_id, None)
            if call is None:
                continue
            if result.reply is not None:
                self._entries.replied(self._entry(call), result.reply, sync=False)
            else:
                error = result.error or ModelUnavailable("The batch holds no answer to it.", billed="no")
                self._entries.failed(self._entry(call), error, sync=False)

    def _explain_gone(self, error: ModelRejected, run: BatchRun) -> None:
        """The account does not have the batch, or its results are no longer kept.

        Raises:
            Pause: With the choices, and what they cost.
        """
        if error.data.get("status") not in (404, 410):
            self._stop("waiting_for_batch", error)
        if self._policy.resubmit:
            self._abandon(run, "Its batch is gone.")
            return
        calls = self._calls(run).values()
        worst = sum((call.worst or Decimal(0) for call in calls), Decimal(0))
        asked = "its request" if len(calls) == 1 else f"its {len(calls)} requests"
        cause = BatchLost(
            f"Batch {run.batch} is not in this account any more: it was handed in with another key, or its results "
            f"are older than 29 days.",
            hint=f"Resume with the key it was handed in with; or {self.command()} --resubmit asks {asked} "
            f"again (at most ${worst:.2f}, which may be paid twice).",
            batch=run.batch,
        )
        self._stop("waiting_for_batch", cause)


def slot(ask: Ask) -> Slot:
    """Which question a try is of."""
    return ask.scope.path, ask.scope.task, ask.scope.attempt, ask.key, ask.n


def _custom_id(nonce: str, ask: Ask) -> str:
    """The nonce and a hash of the call's key, within the provider's limit."""
    parts = [*map(str, slot(ask)), str(ask.k)]
    return f"{nonce}-{digest(chr(0).join(parts).encode('utf-8', 'surrogatepass'))}"[:_ID_CHARS]
