"""A run's batches in its ledger, and the provider asked about them: outages are waited out, room is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar

from pipeline.clock import iso, parse_iso
from pipeline.engine.entries import BATCH, Entries, Entry
from pipeline.engine.limits import Room
from pipeline.errors import ModelError, ModelUnavailable, Pause, PipelineError, SpendLimit, WaitingForBatch
from pipeline.llm.base import Batch, Batches
from pipeline.records.kinds import BatchSubmitted
from pipeline.records.run import BatchRun, CallRun

#: First and longest pause between two looks at a batch, in seconds.
POLL_SECONDS = 5.0
LONGEST_SECONDS = 60.0
#: A longer wait that the provider asks for pauses the run instead.
PATIENCE_SECONDS = 900.0
#: Looks that may fail one after the other before the run is left for later.
_BLIND = 10
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How a run uses batches."""

    #: Gather asks at all; False: only batches that were handed in before are waited for.
    gather: bool = True
    #: Fewer asks than this go out as ordinary calls.
    least: int = 1
    #: Stay until the batch has ended; False: hand in and leave.
    wait: bool = True
    #: Ask again what was handed in and cannot be found: it may be paid twice.
    resubmit: bool = False
    #: First pause between two looks, in seconds; doubles up to a minute.
    poll_seconds: float = POLL_SECONDS


class BatchLedger:
    """What all parts that deal with batches share. One thread at a time."""

    def __init__(self, provider: Batches, entries: Entries, policy: BatchPolicy, command: Callable[[], str]) -> None:
        """Keep the parts.

        Args:
            command: What to type to come back to this run.
        """
        self.provider = provider
        self.entries = entries
        self.policy = policy
        self.command = command
        #: Batches handed in or looked at by this owner, by nonce: without waiting they are not looked at again.
        self.looked: set[str] = set()
        #: Room that requests which are out were admitted to, by call.
        self._rooms: dict[int, Room] = {}

    def say(self, text: str) -> None:
        """Tell the person something."""
        self.entries.emit("note", text=text)

    def open(self) -> list[BatchRun]:
        """Batches with requests that have no recorded end, oldest first."""
        with self.entries.recorder.reading() as state:
            open_calls = state.open_calls
            return [run for run in state.batches.values() if any(call in open_calls for call in run.calls.values())]

    def calls(self, run: BatchRun) -> dict[str, CallRun]:
        """A batch's requests without a recorded end, by custom id."""
        with self.entries.recorder.reading() as state:
            found = {name: state.open_calls.get(call) for name, call in run.calls.items()}
        return {name: call for name, call in found.items() if call is not None}

    def entry(self, call: CallRun) -> Entry:
        """Return a request's entry, with the room it was admitted to, to record its end."""
        room = self._rooms.pop(call.seq, None)
        return Entry(
            call.seq, call.path, call.task, call.label, call.model, call.worst, parse_iso(call.at), BATCH, room
        )

    def keep_rooms(self, entries: Iterable[Entry]) -> None:
        """Keep the room of requests that are out until their ends are recorded."""
        self._rooms.update((entry.call, entry.room) for entry in entries if entry.room is not None)

    def submitted(self, nonce: str, batch: Batch) -> None:
        """Record that the provider has a batch."""
        expires = iso(batch.expires_at)
        self.entries.recorder.append(BatchSubmitted(nonce, batch.id, expires, iso(batch.created_at)))
        self.entries.emit("batch_submitted", batch=batch.id, requests=batch.count, expires_at=expires)

    def stop_if_hopeless(self, error: ModelError) -> None:
        """Stop the run where no other request can succeed either.

        Raises:
            Pause: It is so.
        """
        if isinstance(error, SpendLimit):
            self.stop("paused_spend_limit", error)
        if error.data.get("stops_run"):
            self.stop("failed", error)

    def stop(self, detail: str, error: PipelineError) -> NoReturn:
        """Leave the run resumable.

        Raises:
            Pause: Always.
        """
        self.entries.stop.request(detail, error)
        raise Pause(detail, error)

    def asked(self, ask: Callable[[], T]) -> T:
        """What the provider answers; an outage is waited out for a while, unless nothing is waited for."""
        pause = self.policy.poll_seconds
        for left in reversed(range(_BLIND if self.policy.wait else 1)):
            try:
                return ask()
            except ModelUnavailable as error:
                last = error
                seconds = float(error.data.get("retry_after") or pause)
                if not left or seconds > PATIENCE_SECONDS:
                    break
                self.rest(seconds, error.message.rstrip("."))
                pause = min(pause * 2, LONGEST_SECONDS)
        self.stop("waiting_for_batch", WaitingForBatch(f"{last.message} The batch goes on.", hint=self.command()))

    def rest(self, seconds: float, reason: str) -> None:
        """Wait, and say why.

        Raises:
            Pause: The run is stopping.
        """
        until = iso(self.entries.clock.now() + timedelta(seconds=seconds))
        self.entries.emit("waiting", reason=reason, until=until, seconds=seconds)
        self.entries.stop.rest(seconds)
