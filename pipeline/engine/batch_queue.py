"""Asks that wait for a batch: gathered from all bodies, submitted once, answered by the record.

No thread waits for a single answer: an ask leaves its request in the queue and suspends its body; a visit whose body
is suspended waits; once every visit that runs does, what was gathered goes out. After the results are recorded the
bodies run again from the top.

A batch is in the journal before it is created, and its id before it is looked at. One that the provider does not list
is searched for, by the provider's clock; its requests are resubmitted only where they certainly never arrived, or on
request (`--resubmit`), and then it stays in the ledger as possibly spent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

from pipeline.clock import iso
from pipeline.engine.batch_ledger import (
    LONGEST_SECONDS,
    PATIENCE_SECONDS,
    BatchLedger,
    BatchPolicy,
    Question,
    question,
    question_of,
    requests,
)
from pipeline.engine.batch_watch import BatchWatch
from pipeline.engine.calls import Ask, CallLedger, Gathering, OpenCall, stop_if_hopeless
from pipeline.engine.preflight import no_batches
from pipeline.engine.setup import Setup
from pipeline.errors import ModelError, ModelRejected, ModelUnavailable, Suspended, WaitingForBatch
from pipeline.records.kinds import BatchIntended
from pipeline.records.run import CallRun
from pipeline.records.values import digest

_ID_CHARS = 64


def batches_of(setup: Setup, calls: CallLedger) -> Gathering:
    """Return where asks wait for a batch, if the run gathers them or has some out.

    Raises:
        ConfigError: It does, and the model takes none.
    """
    policy, state = BatchPolicy.of(setup.options), calls.recorder.state
    if not policy.gather and not any(call.batch for call in state.open_calls.values()):
        return Gathering()
    batches = getattr(setup.model, "batches", None)
    if batches is None:
        raise no_batches()
    return BatchQueue(BatchLedger(batches, calls, policy, command=lambda: setup.command(state.run_id)))


class BatchQueue(Gathering):
    """The asks of one run that wait for a batch."""

    def __init__(self, ledger: BatchLedger) -> None:
        self._ledger = ledger
        self._policy = ledger.policy
        self._client = BatchClient(ledger)
        self._turn = threading.Condition()
        self._asks: dict[Question, Ask] = {}
        #: Questions that go out as ordinary calls.
        self._single: set[Question] = set()
        self._active = 0
        self._idle = 0
        self._round = 0
        self._leading = False
        self._error: BaseException | None = None

    def takes(self, ask: Ask, tries: Sequence[CallRun]) -> bool:
        return _waits(tries) or (self._policy.gather and question_of(ask) not in self._single)

    def leave(self, ask: Ask, tries: Sequence[CallRun]) -> NoReturn:
        if not _waits(tries):
            with self._turn:
                self._asks[question_of(ask)] = ask
        raise Suspended("waiting_for_batch", WaitingForBatch(hint=self._ledger.command()))

    def expect(self, active: int) -> None:
        """Take note of how many visits run now; once all of them wait here, a batch goes out."""
        with self._turn:
            self._active = active
            self._turn.notify_all()

    def settle(self) -> None:
        with self._turn:
            self._idle += 1
            mine = self._round
            while self._round == mine and self._error is None:
                if self._idle < self._active or self._leading:
                    self._turn.wait()
                else:
                    self._lead()
            if self._error is not None:
                raise self._error

    def _lead(self) -> None:
        """Serve all threads that wait; called and left with the lock held."""
        self._leading = True
        asks, self._asks = list(self._asks.values()), {}
        self._turn.release()
        error: BaseException | None = None
        try:
            if asks and len(asks) < self._policy.least:
                self._single.update(map(question_of, asks))
                few = f"{requests(len(asks))} {'is' if len(asks) == 1 else 'are'} fewer than --batch-min"
                self._ledger.emit.note(f"{few}; sending {'it' if len(asks) == 1 else 'them'} individually.")
                asks = []
            self._client.go(asks)
        except BaseException as caught:
            error = caught
        finally:
            self._turn.acquire()
            self._leading, self._error = False, error
            self._round += 1
            self._idle = 0
            self._turn.notify_all()


def _waits(tries: Sequence[CallRun]) -> bool:
    """Return whether the last try is out in a batch."""
    return bool(tries) and bool(tries[-1].batch) and not tries[-1].ended


class BatchClient:
    """Submits batches of one run, and collects their results. One thread at a time."""

    def __init__(self, ledger: BatchLedger) -> None:
        self._ledger = ledger
        self._watch = BatchWatch(ledger)
        #: Kinds of request the provider has checked.
        self._checked: set[tuple[str, str, str]] = set()
        self._begun = False
        #: Batches refused one after the other.
        self._refusals = 0

    def go(self, asks: list[Ask]) -> None:
        """Submit these, then wait until one of all batches that are out has ended and its results are recorded.

        Raises:
            Pause: The run is stopping, the ceiling has no room, or the batches are left at the provider.
        """
        if not self._begun:
            self._begun = True
            self._close_unsent()
        if asks:
            self._send(asks)
        if out := self._ledger.open():
            self._watch.wait(out)

    def _close_unsent(self) -> None:
        """Close what an earlier owner had prepared for a batch that was never intended: it did not leave."""
        recorder = self._ledger.recorder
        with recorder.reading() as state:
            unsent = [c for c in state.open_calls.values() if c.batch and c.batch not in state.batches]
            damaged = bool(state.gaps)
        if not damaged:
            self._ledger.failed(unsent, ModelUnavailable("It was never sent.", code="never_sent", billed="no"))
            recorder.sync()
            return
        # Where lines of the journal were lost, so may the intent have been: such batches are searched for.
        for nonce in dict.fromkeys(call.batch for call in unsent):
            calls = [{"id": _custom_id(nonce, question(c), c.k), "call": c.seq} for c in unsent if c.batch == nonce]
            recorder.append(BatchIntended(nonce, calls, len(calls)))

    def _send(self, asks: list[Ask]) -> None:
        """Submit what the ceiling and the provider's limits allow; the rest is asked for again when bodies rerun."""
        ledger, room = self._ledger, True
        for part in self._parts([ask for ask in asks if self._fit_to_send(ask)]):
            nonce = ledger.clock.new_id()
            begun: list[tuple[Ask, OpenCall]] = []
            for ask in part:
                call = ledger.calls.begin_in_batch(ask, nonce)
                if call is None:
                    room = False
                    break
                begun.append((ask, call))
            if begun:
                self._submit(nonce, begun)
            elif not ledger.open():
                # Nothing is out that could leave some room.
                ledger.calls.ceiling.refuse(ledger.calls.worst(part[0].request, batch=True))
            if not room:
                ledger.emit.note("The ceiling has no room for the other requests yet; they wait.")
                return

    def _fit_to_send(self, ask: Ask) -> bool:
        """Return whether a request may go out: the provider checks the first of each kind, free of charge."""
        ledger, request = self._ledger, ask.request
        kind = (request.model, request.label, request.schema_id)
        if kind in self._checked:
            return True
        try:
            ledger.provider.validate(request)
        except ModelError as error:
            stop_if_hopeless(ledger.stop, error)
            if not isinstance(error, ModelRejected):
                return True
            ledger.calls.failed(ledger.calls.begin(ask), error)
            return False
        self._checked.add(kind)
        return True

    def _parts(self, asks: list[Ask]) -> Iterator[list[Ask]]:
        part: list[Ask] = []
        size = 0
        provider = self._ledger.provider
        for ask in asks:
            more = ask.request.size()
            if part and (len(part) >= provider.most_requests or size + more > provider.most_bytes):
                yield part
                part, size = [], 0
            part.append(ask)
            size += more
        if part:
            yield part

    def _submit(self, nonce: str, begun: list[tuple[Ask, OpenCall]]) -> None:
        ledger = self._ledger
        rows = [(_custom_id(nonce, question_of(ask), ask.k), ask.request) for ask, _ in begun]
        calls = [{"id": name, "call": call.call} for (name, _), (_, call) in zip(rows, begun, strict=True)]
        ledger.recorder.append(BatchIntended(nonce, calls, len(rows), self._provider_time()))
        try:
            batch = ledger.provider.submit(rows)
        except ModelError as error:
            self._not_submitted(error, [call for _, call in begun])
            return
        self._refusals = 0
        ledger.keep_rooms(call for _, call in begun)
        ledger.looked.add(nonce)
        ledger.submitted(nonce, batch)

    def _provider_time(self) -> str:
        """Return the provider's own time, from which its list is searched if need be; "": unknown."""
        try:
            now = self._ledger.provider.time()
        except ModelError:
            return ""
        return iso(now) if now is not None else ""

    def _not_submitted(self, error: ModelError, calls: list[OpenCall]) -> None:
        """Close the requests of a batch that was certainly not taken; leave those of any other to be searched for."""
        ledger = self._ledger
        # A call that meets a 500 is documented as unbilled; a batch may exist all the same.
        if error.billed != "no" or error.data.get("status") == 500:
            ledger.keep_rooms(calls)
            ledger.emit.note(f"The response to submitting {requests(len(calls))} was lost: {error.message}")
            return
        for call in calls:
            ledger.calls.failed(call, error, sync=False)
        ledger.recorder.sync()
        stop_if_hopeless(ledger.stop, error)
        if error.retryable:
            self._rest_before_next(error)

    def _rest_before_next(self, error: ModelError) -> None:
        """Wait before submitting again: as the provider asks, else not at first where nothing arrived, then longer."""
        self._refusals += 1
        arrived = error.data.get("status") is not None
        doublings = self._refusals - (1 if arrived else 2)
        own = min(self._ledger.policy.poll_seconds * 2.0**doublings, LONGEST_SECONDS) if doublings >= 0 else 0.0
        asked = error.data.get("retry_after")
        seconds = own if asked is None else float(asked)
        if seconds > PATIENCE_SECONDS:
            self._ledger.stop.pause("paused_rate_limit", error)
        self._ledger.rest(seconds, error.message.rstrip("."))


def _custom_id(nonce: str, asked: Question, k: int) -> str:
    """Return the nonce and a hash of the call's key, within the provider's limit."""
    parts = [*map(str, asked), str(k)]
    return f"{nonce}-{digest(chr(0).join(parts).encode('utf-8', 'surrogatepass'))}"[:_ID_CHARS]
