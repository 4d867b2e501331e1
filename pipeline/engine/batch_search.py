"""The search for a batch that the provider does not show: how long it goes on, and what is said of it. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from pipeline.clock import parse_iso
from pipeline.errors import BatchLost
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


class Stand(Enum):
    """How a batch stands after a look at it."""

    #: All its requests have a recorded end.
    ENDED = "ended"
    #: The provider works on it.
    OUT = "out"
    #: The provider does not show it, or not all of its answers.
    MISSING = "missing"


@dataclass(slots=True)
class Search:
    """What is known of a batch that the provider does not show. The clock of this machine proves nothing."""

    #: The provider's time from which a day is counted; None: not known yet.
    since: datetime | None
    #: When it began on this machine's monotonic clock: ends a search where the provider tells no time.
    begun: float
    looks: int = 0
    #: A batch of the same size that has not ended and may be it; "": none.
    candidate: str = ""
    #: The provider says that it does not keep the results any more.
    archived: bool = False
    #: By the provider's clock it was handed in a moment ago: it may only not be shown yet.
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
    """Return when a batch was created or handed in, by the provider's own clock; None: not recorded."""
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
        return f"The provider does not show batch {run.batch}, which it has taken."
    may_be = f"; {search.candidate} may be it, its results will tell" if search and search.candidate else ""
    return f"Whether the provider took the batch of {requests(run.size)} begun at {run.at} is not known{may_be}."


def ways_on(calls: Collection[CallRun], command: str) -> str:
    """Return what can be done about batches that the provider does not show, and what that may cost."""
    return (
        f"Only the key it was handed in with finds it. Resume later to look again; `{command} --resubmit` asks "
        f"{requests(len(calls))} again ({at_most(calls)}, which may be paid twice: the first batch stays in the "
        "ledger as possibly spent)."
    )


def lost(run: BatchRun, ways: str, *, archived: bool) -> BatchLost:
    """Return the error for a batch that is not looked for any longer."""
    if archived:
        text = f"The provider does not keep the results of batch {run.batch} any more."
    elif run.batch:
        text = (
            f"Batch {run.batch} is not in this account any more: it was handed in with another key, or its results "
            "are older than 29 days."
        )
    else:
        text = f"{not_shown(run, None)} It was looked for until it would have ended."
    return BatchLost(text, hint=ways, batch=run.batch)


def still_out(state: RunState, *, cancelled: bool = False) -> list[dict[str, Any]]:
    """Return the batches without all of their answers: id ("": not known), open requests, and their worst case.

    Args:
        cancelled: Also those that were called back from the provider.
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
        cancel: The command that calls them back.
    """
    known = [row for row in out if row["batch"]]
    words = [f"Batch {row['batch']} ({_priced(row)}) goes on at the provider and is billed." for row in known]
    words += [
        f"A batch of {_priced(row)} may go on at the provider and be billed; a resume looks for it."
        for row in out if not row["batch"]
    ]  # fmt: skip
    if known:
        words.append(f"A resume fetches the answers; {cancel} calls back what is not answered yet.")
    return " ".join(words)


def _priced(row: Mapping[str, Any]) -> str:
    usd = row["worst_usd"]
    cost = "at a price that is not known" if usd is None else f"at most ${Decimal(usd):.2f}"
    return f"{requests(row['requests'])}, {cost}"


def worst(calls: Collection[CallRun]) -> Decimal | None:
    """Return what calls cost at most; None: not all of them have a price."""
    bounds = [call.worst for call in calls if call.worst is not None]
    return sum(bounds, Decimal(0)) if len(bounds) == len(calls) else None


def at_most(calls: Collection[CallRun]) -> str:
    """Return what calls cost at most, in words."""
    usd = worst(calls)
    return "at a price that is not known" if usd is None else f"at most ${usd:.2f}"


def question(call: CallRun) -> tuple[str, str | None, int, str, int]:
    """Return which question a try is of."""
    return call.path, call.task, call.attempt, call.key, call.n


def requests(count: int) -> str:
    """Return a number of requests in words."""
    return "1 request" if count == 1 else f"{count} requests"
