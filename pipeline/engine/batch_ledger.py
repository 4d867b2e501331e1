"""A run's batches in its ledger: the provider asked about them, the search for a lost one, words for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from pipeline.clock import iso, parse_iso
from pipeline.engine.calls import BATCH, Ask, CallLedger, OpenCall
from pipeline.engine.ceiling import Room
from pipeline.errors import BatchLost, ModelError, ModelUnavailable, WaitingForBatch
from pipeline.llm.base import Batch, Batches
from pipeline.records.kinds import BatchSubmitted
from pipeline.records.run import BatchRun, CallRun, RunState

#: Looks for a batch before `--resubmit` asks again what it held, and readings of results that lack answers.
LOOKS = 6
#: A batch is looked for until it would be so old, by the provider's own clock: by then every batch has ended.
_LOOKING = timedelta(hours=25)
#: Where the provider tells its time, this machine's clock ends a search only so much later.
_LONGEST = timedelta(hours=100)
#: The provider gives up what it has not answered after so long.
_LIFE = timedelta(hours=24)
#: The clocks of the provider's machines may differ by so much.
_SKEW = timedelta(minutes=10)


#: (path, task, attempt, request hash, n).
Question = tuple[str, str | None, int, str, int]


class BatchState(Enum):
    """The state of a batch after a look at it."""

    #: All its requests have a recorded end.
    ENDED = "ended"
    #: The provider works on it.
    OUT = "out"
    #: The provider does not show it, or not all of its answers.
    MISSING = "missing"


@dataclass(slots=True)
class Search:
    """What is known of a batch that the provider does not list. The clock of this machine proves nothing."""

    #: The provider's time from which a day is counted; None: not known yet.
    since: datetime | None
    #: When it began on this machine's monotonic clock: ends a search where the provider tells no time.
    begun: float
    looks: int = 0
    #: A batch of the same size that has not ended and may be it; "": none.
    candidate: str = ""
    #: The provider says that it does not keep the results any more.
    archived: bool = False
    #: By the provider's clock it was submitted a moment ago: it may only not be shown yet.
    young: bool = False
    #: Looking on is of no use.
    over: bool = False
    #: What is said of it then; None: it may show yet.
    lost: BatchLost | None = None

    def begins_at(self, run: BatchRun) -> datetime | None:
        """Return the oldest time at which the batch can have been created; None: not known."""
        at = _moment(run.provider_at)
        return at - _SKEW if at is not None else None

    def miss(self, now: float, at: datetime | None) -> None:
        """Count a look that did not show the batch.

        Args:
            now: This machine's monotonic clock.
            at: The provider's own time; None: it did not tell.
        """
        self.looks += 1
        self.since = self.since or at
        self.young = at is not None and self.since is not None and at - self.since < _SKEW
        by_provider = at is not None and self.since is not None and at - self.since >= _LOOKING
        longest = _LOOKING if at is None else _LONGEST
        self.over = self.archived or by_provider or now - self.begun >= longest.total_seconds()


def born(run: BatchRun) -> datetime | None:
    """Return when a batch was created or submitted, by the provider's own clock; None: not recorded."""
    expires = _moment(run.expires_at)
    return _moment(run.created_at) or _moment(run.provider_at) or (expires - _LIFE if expires is not None else None)


def _moment(text: str) -> datetime | None:
    """Return a recorded time; None where there is none that makes sense."""
    try:
        return parse_iso(text) if text else None
    except ValueError:
        return None


def not_shown(run: BatchRun, search: Search | None) -> str:
    """Return what is known of a batch that the provider does not show."""
    if run.batch:
        return f"The provider does not list batch {run.batch}, although it accepted it."
    may_be = f"; {search.candidate} may be the one, which its results will show" if search and search.candidate else ""
    return f"It is unknown whether the provider accepted the batch of {requests(run.size)} from {run.at}{may_be}."


def ways_on(calls: Collection[CallRun], command: str) -> str:
    """Return what can be done about batches that the provider does not show, and what that may cost."""
    return (
        f"Only the API key it was submitted with can find it. Resume later to look again; `{command} --resubmit` "
        f"resubmits {requests(len(calls))} ({at_most(calls)}, which may be billed twice: the first batch stays in the "
        "ledger as possibly spent)."
    )


def lost(run: BatchRun, ways: str, *, archived: bool) -> BatchLost:
    """Return the error for a batch that is not looked for any longer."""
    if archived:
        text = f"The provider no longer keeps the results of batch {run.batch}."
    elif run.batch:
        text = (
            f"Batch {run.batch} is no longer in this account: it was submitted with another key, or its results are "
            "older than 29 days."
        )
    else:
        text = f"{not_shown(run, None)} The search lasted until the batch would have ended."
    return BatchLost(text, hint=ways, batch=run.batch)


def still_out(state: RunState, *, cancelled: bool = False) -> list[dict[str, Any]]:
    """Return the batches without all of their answers: id ("": not known), open requests, and their worst case.

    Args:
        cancelled: Also those that were cancelled at the provider.
    """
    found = []
    for run in state.batches.values():
        calls = [state.open_calls[seq] for seq in run.calls.values() if seq in state.open_calls]
        if calls and (cancelled or not run.cancelled_at):
            usd = worst(calls)
            found.append({"batch": run.batch, "requests": len(calls), "worst_usd": None if usd is None else str(usd)})
    return found


def out_words(out: Sequence[Mapping[str, Any]], cancel: str) -> str:
    """Return what becomes of batches that a run leaves at the provider, and what can be done; "" where there are none.

    Args:
        cancel: The command that cancels them.
    """
    known = [row for row in out if row["batch"]]
    words = [f"Batch {row['batch']} ({_priced(row)}) continues at the provider and is billed." for row in known]
    words += [
        f"A batch of {_priced(row)} may continue at the provider and be billed; a resume looks for it."
        for row in out if not row["batch"]
    ]  # fmt: skip
    if known:
        words.append(f"A resume collects the answers; {cancel} cancels what is not answered yet.")
    return " ".join(words)


def _priced(row: Mapping[str, Any]) -> str:
    return f"{requests(row['requests'])}, {_at_most(row['worst_usd'])}"


def worst(calls: Collection[CallRun]) -> Decimal | None:
    """Return what calls cost at most; None: not all of them have a price."""
    bounds = [call.worst for call in calls if call.worst is not None]
    return sum(bounds, Decimal(0)) if len(bounds) == len(calls) else None


def at_most(calls: Collection[CallRun]) -> str:
    """Return what calls cost at most, in words."""
    return _at_most(worst(calls))


def _at_most(usd: Decimal | str | None) -> str:
    return "at an unknown price" if usd is None else f"at most ${Decimal(usd):.2f}"


def question(call: CallRun) -> Question:
    """Return which question a recorded try is of."""
    return call.path, call.task, call.attempt, call.key, call.n


def question_of(ask: Ask) -> Question:
    """Return which question a try is of."""
    return ask.scope.path, ask.scope.task, ask.scope.attempt, ask.key, ask.n


def requests(count: int) -> str:
    """Return a number of requests in words."""
    return "1 request" if count == 1 else f"{count} requests"


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

    #: Gather asks at all; False: only batches that were submitted before are waited for.
    gather: bool = True
    #: Fewer asks than this go out as ordinary calls.
    least: int = 1
    #: Stay until the batch has ended; False: submit and leave.
    wait: bool = True
    #: Resubmit the requests of a lost batch: they may be billed twice.
    resubmit: bool = False
    #: First pause between two looks, in seconds; doubles up to a minute.
    poll_seconds: float = POLL_SECONDS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> BatchPolicy:
        """Return the policy that a run's options ask for."""
        return cls(
            gather=bool(options.get("batch")),
            least=int(options.get("batch_min") or 1),
            wait=not options.get("no_wait"),
            resubmit=bool(options.get("resubmit")),
            poll_seconds=float(options.get("batch_poll_seconds") or POLL_SECONDS),
        )


class BatchLedger:
    """A run's batches as recorded, and their provider. One thread at a time."""

    def __init__(self, provider: Batches, calls: CallLedger, policy: BatchPolicy, command: Callable[[], str]) -> None:
        """Keep the parts.

        Args:
            command: The command that resumes this run.
        """
        self.provider = provider
        self.calls = calls
        self.recorder, self.emit, self.stop, self.clock = calls.recorder, calls.emit, calls.stop, calls.clock
        self.policy = policy
        self.command = command
        #: Batches submitted or looked at by this owner, by nonce: without waiting they are not looked at again.
        self.looked: set[str] = set()
        #: Room that requests which are out were admitted to, by call.
        self._rooms: dict[int, Room] = {}

    def open(self) -> list[BatchRun]:
        """Return the batches with requests that have no recorded end, oldest first."""
        with self.recorder.reading() as state:
            open_calls = state.open_calls
            return [run for run in state.batches.values() if any(call in open_calls for call in run.calls.values())]

    def open_calls(self, run: BatchRun) -> dict[str, CallRun]:
        """Return a batch's requests without a recorded end, by custom id."""
        with self.recorder.reading() as state:
            found = {name: state.open_calls.get(call) for name, call in run.calls.items()}
        return {name: call for name, call in found.items() if call is not None}

    def failed(self, calls: Iterable[CallRun], error: ModelError) -> None:
        """Record, without a sync, that requests have ended in an error."""
        for call in calls:
            self.calls.failed(self.open_call(call), error, sync=False)

    def open_call(self, call: CallRun) -> OpenCall:
        """Return a request with the room it was admitted to, to record its end."""
        room = self._rooms.pop(call.seq, None)
        return OpenCall(
            call.seq, call.path, call.task, call.label, call.model, call.worst, parse_iso(call.at), BATCH, room
        )

    def keep_rooms(self, calls: Iterable[OpenCall]) -> None:
        """Keep the room of requests that are out until their ends are recorded."""
        self._rooms.update((call.call, call.room) for call in calls if call.room is not None)

    def submitted(self, nonce: str, batch: Batch) -> None:
        expires = iso(batch.expires_at)
        self.recorder.append(BatchSubmitted(nonce, batch.id, expires, iso(batch.created_at)))
        self.emit("batch_submitted", batch=batch.id, requests=batch.count, expires_at=expires)

    def asked(self, ask: Callable[[], T]) -> T:
        """Return what the provider answers; an outage is waited out for a while, unless the run is not to wait.

        Raises:
            Pause: The outage lasts, or the run is stopping.
        """
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
        lost = WaitingForBatch(f"{last.message} The batch continues.", code="batch_unreachable", hint=self.command())
        self.stop.pause("waiting_for_batch", lost)

    def rest(self, seconds: float, reason: str) -> None:
        """Wait, and report why.

        Raises:
            Pause: The run is stopping.
        """
        self.emit.waiting(seconds, reason)
        self.stop.rest(seconds)
