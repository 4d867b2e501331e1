"""Batches: handed in once, found again after any kill, their results recorded.

A batch is in the journal before it is created, and its id before it is looked at. One that the provider does not show
is looked for, by the provider's clock; its requests are asked again only where they certainly never arrived, or on
request (`--resubmit`), and then it stays in the ledger as possibly spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.clock import iso
from pipeline.engine.batch_ledger import LONGEST_SECONDS, PATIENCE_SECONDS, BatchLedger, BatchPolicy
from pipeline.engine.batch_search import question, requests
from pipeline.engine.batch_watch import Watch
from pipeline.engine.entries import Ask, Entries, Entry
from pipeline.errors import ModelError, ModelRejected, ModelUnavailable
from pipeline.llm.base import Batches
from pipeline.records.kinds import BatchIntended
from pipeline.records.run import CallRun
from pipeline.records.values import digest

_ID_CHARS = 64

#: (path, task, attempt, request hash, n): one question.
Slot = tuple[str, str | None, int, str, int]


class Post:
    """Hands in batches of one run, and fetches their results. One thread at a time."""

    def __init__(self, batches: Batches, entries: Entries, policy: BatchPolicy, *, command: Callable[[], str]) -> None:
        """Keep the parts.

        Args:
            command: What to type to come back to this run.
        """
        self._batches = batches
        self._entries = entries
        self._ledger = BatchLedger(batches, entries, policy, command)
        self._watch = Watch(self._ledger)
        #: Kinds of request the provider has looked at.
        self._seen: set[tuple[str, str, str]] = set()
        self._begun = False
        #: Batches refused one after the other.
        self._refusals = 0

    def command(self) -> str:
        """What to type to come back to this run."""
        return self._ledger.command()

    def say(self, text: str) -> None:
        """Tell the person something."""
        self._ledger.say(text)

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
        if out := self._ledger.open():
            self._watch.wait(out)

    def _close_unsent(self) -> None:
        """What an earlier owner had readied for a batch that was never intended did not leave."""
        with self._entries.recorder.reading() as state:
            unsent = [c for c in state.open_calls.values() if c.batch and c.batch not in state.batches]
            damaged = bool(state.gaps)
        if damaged:
            return self._intend_again(unsent)
        for call in unsent:
            self._entries.failed(self._ledger.entry(call), ModelUnavailable("It never left.", billed="no"), sync=False)
        self._entries.recorder.sync()

    def _intend_again(self, unsent: list[CallRun]) -> None:
        """Where lines of the journal were lost, so may the intent have been: such batches are looked for."""
        for nonce in dict.fromkeys(call.batch for call in unsent):
            calls = [{"id": _custom_id(nonce, question(c), c.k), "call": c.seq} for c in unsent if c.batch == nonce]
            self._entries.recorder.append(BatchIntended(nonce, calls, len(calls)))

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
            elif not self._ledger.open():
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
            self._ledger.stop_if_hopeless(error)
            self._entries.failed(self._entries.begin(ask), error)
            return False
        except ModelError as error:
            self._ledger.stop_if_hopeless(error)
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
        rows = [(_custom_id(nonce, slot(ask), ask.k), ask.request) for ask, _ in begun]
        calls = [{"id": name, "call": entry.call} for (name, _), (_, entry) in zip(rows, begun, strict=True)]
        self._entries.recorder.append(BatchIntended(nonce, calls, len(rows), self._provider_time()))
        try:
            batch = self._batches.submit(rows)
        except ModelError as error:
            self._not_handed_in(error, [entry for _, entry in begun])
            return
        self._refusals = 0
        self._ledger.keep_rooms(entry for _, entry in begun)
        self._ledger.looked.add(nonce)
        self._ledger.submitted(nonce, batch)

    def _provider_time(self) -> str:
        """The provider's own time, from which its list is searched if need be; "": it does not tell."""
        try:
            now = self._batches.time()
        except ModelError:
            return ""
        return iso(now) if now is not None else ""

    def _not_handed_in(self, error: ModelError, entries: list[Entry]) -> None:
        """Close the requests of a batch that was certainly not taken; leave those of any other to be looked for."""
        status = error.data.get("status")
        # A call that meets a 500 is documented as unbilled; a batch may exist all the same.
        if error.billed != "no" or status == 500:
            self._ledger.keep_rooms(entries)
            self.say(f"The response to submitting {requests(len(entries))} was lost: {error.message}")
            return
        for entry in entries:
            self._entries.failed(entry, error, sync=False)
        self._entries.recorder.sync()
        self._ledger.stop_if_hopeless(error)
        if error.retryable:
            self._rest_before_next(error)

    def _rest_before_next(self, error: ModelError) -> None:
        """Wait before handing in again: as the provider asks, else not at first where nothing arrived, then longer.

        Raises:
            Pause: That would take too long, or the run is stopping.
        """
        self._refusals += 1
        arrived = error.data.get("status") is not None
        doublings = self._refusals - (1 if arrived else 2)
        own = min(self._ledger.policy.poll_seconds * 2.0**doublings, LONGEST_SECONDS) if doublings >= 0 else 0.0
        asked = error.data.get("retry_after")
        seconds = own if asked is None else float(asked)
        if seconds > PATIENCE_SECONDS:
            self._ledger.stop("paused_rate_limit", error)
        self._ledger.rest(seconds, error.message.rstrip("."))


def slot(ask: Ask) -> Slot:
    """Which question a try is of."""
    return ask.scope.path, ask.scope.task, ask.scope.attempt, ask.key, ask.n


def _custom_id(nonce: str, asked: Slot, k: int) -> str:
    """The nonce and a hash of the call's key, within the provider's limit."""
    parts = [*map(str, asked), str(k)]
    return f"{nonce}-{digest(chr(0).join(parts).encode('utf-8', 'surrogatepass'))}"[:_ID_CHARS]
