"""Seam 1: what is remembered. Store, Journal and Account as protocols; a backend knows bytes, not records.

A run name is `ID` or `ID/PATH` (a sub-journal owned by a branch or task that works elsewhere).
Single-threaded per journal: the engine's Recorder serialises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pipeline.records.budgets import Limit, LimitStanding, Tallies


@dataclass(frozen=True, slots=True)
class Claim:
    """What at most one unfinished run may hold: the course and the kind of its author."""

    pipeline: str
    subject: str
    level: str
    #: "offline" or "model".
    author: str

    def to_json(self) -> list[str]:
        return [self.pipeline, self.subject, self.level, self.author]


@dataclass(frozen=True, slots=True)
class Head:
    """A run as `list` sees it."""

    run_id: str
    #: The head document (schema of seeds/002 and more), up to date with the journal; {} if corrupt.
    document: Mapping[str, Any]
    #: Why it cannot be read; "" if it can.
    corrupt: str = ""
    #: A living process owns it.
    owned: bool = False
    #: By its records it is running, and no living process owns it: the document says interrupted.
    gone: bool = False
    #: Of a corrupt run: the head document as it was last written, where that is whole; else {}.
    known: Mapping[str, Any] = field(default_factory=dict)


class Taken(NamedTuple):
    """What opening a run took in of what had been kept outside it."""

    file: Path
    #: Records that the journal did not have.
    records: int
    #: Lines of it that cannot be read.
    damaged: int = 0

    def __str__(self) -> str:
        """Say what happened."""
        if self.damaged:
            return (
                f"{self.records} records kept outside the run were added to it; {self.damaged} more cannot be read and "
                f"stay in {self.file}."
            )
        if not self.records:
            return f"All that was kept in {self.file} is in the run already; the file was removed."
        many = (
            f"{self.records} records kept in {self.file} were"
            if self.records > 1
            else f"1 record kept in {self.file} was"
        )
        return f"{many} added to the run; the file was removed."


class Journal(Protocol):
    """The one writer of a run."""

    run_id: str
    #: seq of the last durable line (0: none yet).
    last_seq: int
    #: Bytes of all lines so far: what a head written now records as journal_bytes.
    size: int
    #: What opening had to repair: sentences for people, and the facts to append as `gap`
    #: ([first, last, bytes, kept, reason] each); () normally. A row whose `recorded` is true is
    #: in the journal already, where the records are missing; append the others before run_resumed.
    repairs: Sequence[Sequence[Any]]
    #: What opening took in of emergency files of this machine; () normally.
    taken: Sequence[Taken]
    #: People query the store by rows: documents bring along what these show.
    queried: bool

    @property
    def strained(self) -> bool:
        """Return whether the disk is full and the reserve in use: record what is in flight, start nothing more."""

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """Append whole lines (codec.encode_line) with seq first_seq, first_seq+1, …; all or nothing.

        Durable on return if `sync` (else with the next synced append). A line whose seq exists
        with the same body is a no-op.

        Raises:
            WriteFailed: Nothing of it counts. data["fatal"] True: a sync failed; the journal is
                closed, data["emergency"] names the file that holds what was not durable.
        """

    def put_blob(self, data: bytes) -> str:
        """Store bytes under their sha256 (hex), durable on return; the same bytes cost nothing."""

    def get_blob(self, blob: str) -> bytes:
        """Return the bytes, verified.

        Raises:
            CheckpointCorrupt: Missing or damaged; names the hash.
        """

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """Replace the head document atomically. A view: failing to write it is no error of the run."""

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """Keep lines outside the store, which is not asked, before the process ends; the file, "" if there is none.

        Another thread may hang in `append`; what it was given and may not have written is kept too.
        """

    def close(self) -> None:
        """Give up ownership; idempotent."""


class Listable(Protocol):
    """Runs that can be looked over."""

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None, start: str = "") -> Iterator[Head]:
        """Return all runs, newest first (id order), lazily; `match` sees the document and may drop it.

        Args:
            start: Only this run, which need not be there, and older ones; nothing newer is looked at.

        Raises:
            StoreError: The place itself cannot be read.
            RunNotFound: `start` cannot be the name of a run.
        """


class Store(Listable, Protocol):
    """A place for runs. What `Journal.append` returned from survives kill -9 and power loss."""

    #: Where it is, for people and commands ("files:devops/checkpoints").
    url: str

    def account(self) -> Account:
        """Return what keeps its limits, and what counts towards them."""

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, Journal]:
        """Make a run whose first lines (seq 1, 2, …; usually one) are `first`, atomically, owned by the caller.

        The id is `YYYYMMDD_HHMMSS` of `at` (UTC), `_02`, … on collision. With a claim, look-up and
        creation happen under one lock.

        Raises:
            RunExists: An unfinished, readable run touched within 7 days holds the claim; data["run"].
            WriteFailed: Nothing was made.
        """

    def open(self, run: str) -> Journal:
        """Own an existing run; repairs damage at the tail and in the middle first.

        Raises:
            RunNotFound, CheckpointCorrupt (first record damaged), SchemaTooNew.
            RunLocked: A living process owns it; message names host, pid, since when.
        """

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        """Return the whole lines with seq > after, in order, without damaged ones. Never writes.

        Raises:
            RunNotFound: No such run.
        """

    def written_head(self, run: str) -> Mapping[str, Any]:
        """Return the head document as it was last written, whatever the records say now; {} where none is whole.

        Raises:
            RunNotFound: No such run.
        """

    def holder(self, run: str) -> Mapping[str, Any]:
        """Return what the living owner of a run says of itself (host, pid, started, since …); {}: it has none.

        Raises:
            RunNotFound: No such run.
        """

    def get_blob(self, run: str, blob: str) -> bytes:
        """Return a value for readers, as Journal.get_blob."""

    def blobs(self, run: str) -> list[str]:
        """Return the hashes of the values stored with a run, damaged or not."""

    def delete(self, run: str) -> None:
        """Remove a run without an owner, for good.

        Raises:
            RunNotFound, RunLocked.
        """

    def sweep(self, before: datetime) -> list[str]:
        """Remove what was half built or half removed and is untouched since `before`; returns names."""

    def is_there(self) -> bool:
        """Return whether anything was ever kept here, even if it is gone by now."""


class Movable(Store, Protocol):
    """A store whose runs can be looked through and moved as they are: `store check` and `store copy`."""

    def create_named(self, run: str, first: bytes, blobs: Iterable[bytes] = (), *, at: datetime) -> Journal:
        """Make a run as `create` does, under a given name; `first` may be a whole journal, with gaps.

        Raises:
            RunNotFound: The name cannot be a run's.
            StoreError: The name is taken.
            RunLocked: Another process is just making or removing a run of this name.
            WriteFailed: Nothing was made.
        """

    def parts(self, run: str) -> list[str]:
        """Return the paths of the sub-journals of a run."""

    def flaws(self, run: str) -> Iterator[str]:
        """Return what of a run or sub-journal is damaged, a sentence each; never writes."""

    def leftovers(self) -> list[str]:
        """Return the names of what was half built or half removed, however new."""

    def unlisted(self) -> list[str]:
        """Return runs that have records and that `heads` does not show."""


class Account(Protocol):
    """Spend over all runs of a store: the daily limit, limits of windows and labels, and what deleted runs cost."""

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal | None, labels: str = "") -> str | None:
        """Reserve `usd` for the UTC day of `at`; the slice's id, or None if the day would pass `limit`.

        Nor may a limit that was set and fits `labels` be passed by what is settled and reserved in its window. As one
        step over all processes of the store, whatever days their clocks show. `owner` names the process and the run
        (engine.store_limits.owner_words); a dead owner's open slices count at their full amount.

        Args:
            limit: None: it was spent already, so no limit is asked.
            labels: Of the run (records.budgets.labels_text).
        """

    def set_limit(self, limit: Limit) -> None:
        """Set a limit, or its amount; it holds for every reservation from then on, and counts earlier ones."""

    def remove_limit(self, labels: str, per: str) -> bool:
        """Remove the limit of these labels and this period; False: there is none."""

    def limits(self) -> Sequence[Limit]:
        """Return all limits that are set (records.budgets.ordered)."""

    def standings(self, at: datetime, labels: str | None = None) -> Sequence[LimitStanding]:
        """Return how each limit stands in its window that the UTC day of `at` is in.

        Args:
            labels: Only limits that fit a run with these; None: all.
        """

    def settle(self, slice_id: str, usd: Decimal) -> None:
        """Set a slice to what it cost (at most what was reserved, or the truth if more); again where more is known."""

    def open_slices(self, since: str = "") -> Mapping[str, str]:
        """Return the slices of a UTC day and later ("": ever) that are not settled: id → the owner it was given."""

    def total(self, day: date) -> Decimal:
        """Return settled spend plus open slices of that UTC day."""

    def days(self) -> Tallies:
        """Return what is settled and reserved of every UTC day, by the labels of runs."""

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        """Record a run's sums before it is deleted; durable on return; idempotent."""

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the sums of deleted runs, by run id."""

    def lost(self) -> str:
        """Return what is known to be lost for good, a sentence; "" if nothing is. Quick; `flaws` looks at all of it."""

    def flaws(self) -> Iterator[str]:
        """Return what is damaged or lost, a sentence each; never writes.

        Raises:
            StoreError: It cannot be read at all.
        """
