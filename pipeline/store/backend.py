"""The seam below a store: what a place for runs must be able to do. It knows names, keys and bytes, no records.

Two nouns. A `Backend` is the place; a `Tail` is the end of one journal, lent to its only owner. All that a store
promises above them (creation, claims, repair, values, heads, the account, fenced records, emergency files) is written
once, in `pipeline.store.runs` and the files that it calls.

Names of journals: `ID` (a run), `ID/PATH` (a part of a run), `.claims/HASH` (owned for a moment while a run with
that claim is created). Keys of objects, each an opaque value that is replaced as a whole:

    runs/ID/head                  the head document of a run
    runs/ID/blobs/HASH            a packed value
    runs/ID/x/NAME                damaged bytes that a repair keeps
    runs/ID/late/NAME             lines that an owner left which had lost the run (fenced records)
    runs/ID/parts/QUOTED/x/NAME   the same two of a part; QUOTED is PATH by `urllib.parse.quote(PATH, safe="")`
    account/DAY, kept/ID, kept-again/ID, limits/all
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote


class Held(Exception):
    """A living owner has the journal."""

    def __init__(self, holder: Mapping[str, Any]) -> None:
        super().__init__(holder)
        #: What its lock or lease says: host, pid, started, since …; {} where that cannot be read.
        self.holder = holder


class Fenced(Exception):
    """Another owner has taken the journal over; nothing of this call counts, and no later one ever will."""


class Gone(Exception):
    """The journal was removed, moved or replaced under its owner; what is written here would be lost, or harm."""

    def __init__(
        self, where: str = "", stored: Callable[[], bytes | None] = lambda: None, *, written: bool = False
    ) -> None:
        super().__init__(where)
        #: The folder that it is gone from, for people; "" where it was no folder.
        self.where = where
        #: Read the whole journal from its first record on, where that can still be done; else None.
        self.stored = stored
        #: The lines of this call are in `stored`.
        self.written = written


class Refused(Exception):
    """Nothing of this call counts; the owner may go on, and try again later."""

    def __init__(self, message: str, hint: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data


class Unsure(Refused):
    """Whether it counts is not known: a sync failed, or no answer came. The owner must append nothing more.

    Everything since the last append that was synced is in doubt.
    """


@dataclass(slots=True)
class Tip:
    """One name of a run as a listing sees it, in one look."""

    run: str
    #: The head object; None: there is none.
    head: bytes | None = None
    #: How long the journal is, in bytes (-1: not known) and as the seq of its last record (-1: not known). One of the
    #: two is known, and is compared with what the head says.
    size: int = -1
    last: int = -1
    #: There is a journal; else only a head, which is taken over as a run.
    journal: bool = True
    #: No run: what a creation or removal left that was cut off; never listed.
    leftover: bool = False
    #: Its first line need not be looked at where the head tells all: nothing is written over it.
    sealed: bool = False
    #: When it was last written to, POSIX seconds; 0.0: not known.
    touched: float = 0.0
    #: Why it cannot be read, a sentence; "" if it can.
    problem: str = ""
    #: Read the first line of the journal (b"" if there is none), without a newline.
    first: Callable[[], bytes] = bytes
    #: Whether a living process owns it.
    owned: Callable[[], bool] = bool
    #: What its lock or lease says of its owner, living or not: host, pid, started, since …; {}: nothing.
    holder: Callable[[], Mapping[str, Any]] = dict


class Tail(ABC):
    """The end of a journal that this process owns; one thread at a time, but for `put` and `renew`.

    Every verb is fenced: once another owner has the journal, nothing of it takes effect and `Fenced` is raised.
    """

    #: Counts owners: each has a higher one than all before it. 1: the first.
    epoch: int = 1
    #: Stamp of the journal as `Backend.own` found it; "": not known. See `left`.
    found: str = ""

    @property
    def inherits(self) -> bool:
        """Return whether owners before may have left fenced records that this one has to look for."""
        return self.epoch > 1

    @property
    def strained(self) -> bool:
        """Return whether space is short and a reserve is in use: what is in flight may be recorded, nothing started."""
        return False

    @abstractmethod
    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
        """Append lines, each with its newline; the first has the number `seq`. All of them or none.

        Durable on return if `sync`; else no later than the next synced append or `release`. The law of append: the
        same lines at the same seq by the same owner again are a no-op, so that who did not hear the answer repeats.
        A backend repeats by itself while its server is silent (`pipeline.store.patience`), so what is raised is final.
        The first append of a run creates it: a run exists if and only if its first record does.

        Raises:
            Fenced, Gone, Refused, Unsure.
        """

    @abstractmethod
    def head(self, data: bytes, sync: bool) -> None:
        """Replace the head object of the run as a whole; durable on return if `sync`.

        Raises:
            Fenced, Gone, Refused, Unsure, OSError, StoreError: It may be the old one still.
        """

    @abstractmethod
    def put(self, key: str, data: bytes) -> None:
        """Put an object of the run as its owner, whatever was there; durable on return.

        As `Backend.put_if`, but for what only an owner knows: a reserve is spent for it, and a run that is gone is not
        written to. An owner that was fenced may still put: a value does no harm.

        Raises:
            Gone.
            OSError, StoreError: It was not put.
        """

    @abstractmethod
    def rewrite(self, lines: Sequence[bytes]) -> None:
        """Replace the whole journal by these lines (with newlines, numbers may be missing); atomic, durable on return.

        Raises:
            Fenced, Gone, Refused, Unsure, OSError, StoreError: The journal is as before, or is the new one.
        """

    def left(self) -> str:
        """Return the stamp of the journal as this owner leaves it; "": not known. Called right before `release`.

        Where the next owner's `found` is the same text, the journal is byte for byte as it was left, so that it need
        not be surveyed again.
        """
        return ""

    def renew(self) -> None:  # noqa: B027 - only leased tails have a server to tell
        """Tell the server that the owner lives; called every 15 s where `Backend.leased`.

        Raises:
            Fenced: It lost the journal.
            StoreError: The server does not answer; asked again at the next beat.
        """

    @abstractmethod
    def release(self) -> None:
        """Make durable what was appended, and give up ownership; idempotent.

        Raises:
            StoreError: The server does not answer; where `Backend.leased` it is told again later.
        """

    def drop(self) -> None:  # noqa: B027 - most tails have nothing to let go
        """Let go in a forked child, silently: the parent goes on owning the journal."""


class Backend(ABC):
    """A place for journals and objects; any number of threads.

    Every verb repeats by itself while a server is silent. Raises for all of them, where nothing else is said:

        OSError: The local disk refused; the caller says what for.
        StoreError (WriteFailed for what writes): A server refused, does not answer, or holds what makes no sense.
    """

    #: Where it is, for people and commands.
    url: str
    #: How emergency files name it; "": it ends with the process, so nothing is kept elsewhere. See `place_of`.
    place: str
    #: Unsynced lines are held back by the journal above and appended at most 0.5 s later.
    lazy: bool = False
    #: Owners beat every 15 s by `Tail.renew` and lose what they own after 30 s of silence.
    leased: bool = False
    #: People query it by rows: documents bring along what these show.
    queried: bool = False
    #: So many values are stored at once while a run is made; above 1 where each waits for a network.
    at_once: int = 1
    #: What a sentence calls the head of a run, and the file that a place in a journal is of; "": places say nothing.
    head_name: str = "its head"
    journal_name: str = ""

    @abstractmethod
    def own(self, name: str, since: datetime, *, new: bool = False) -> Tail | None:
        """Become the only owner of a journal; no former owner can write anything any more.

        With `new` the name is taken for a run that does not exist yet, and None is returned where it is taken, be it
        by a leftover. Without, None: there is no such run. A part of a run that exists, and `.claims/HASH`, are made
        where they are missing.

        Args:
            since: What time it is, for the text that names the owner.

        Raises:
            Held: A living owner has it.
        """

    @abstractmethod
    def read(self, name: str, after: int = 0) -> Iterator[list[bytes]]:
        """Return the raw lines of a journal, some at a time, without their newlines, damaged and empty ones too.

        With `after` it may begin anywhere before the first line with a higher number. What this process appended
        before the call is in it. An unfinished last line is in it.

        Raises:
            FileNotFoundError: At the call: there is no such journal, or a run of that name has no record.
            StoreError: It cannot be read.
        """

    @abstractmethod
    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        """Put an object if the one that is there has this etag; atomic over all processes, durable on return.

        Args:
            etag: "": there must be none; None: whatever is there.

        Returns its new etag, which no other content of the object has had; None: the condition did not hold.
        """

    @abstractmethod
    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return an object and its etag; None: there is none."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[str]:
        """Return the keys of the objects below a prefix that ends in "/", ascending."""

    @abstractmethod
    def delete(self, prefix: str) -> None:
        """Remove `runs/ID` with all that is in it, a part (`runs/ID/parts/QUOTED`), or one object; durable on return.

        Cut off, a run is gone already or still whole, and `tips` shows what is left as a leftover. The caller owns
        what it removes. What is not there is no error.
        """

    @abstractmethod
    def tips(self, claim: str = "", start: str = "") -> Iterator[Tip]:
        """Return every name of a run and every leftover, runs newest first (`names.newest_first`), lazily.

        Args:
            claim: Only runs whose first record claims this (`claim_text`) are wanted; a backend that keeps no index
                of it returns all.
            start: Only this run, which need not be there, and older ones are wanted, and no leftovers; nothing newer
                is looked at.
        """

    @abstractmethod
    def parts(self, run: str, beginning: str = "") -> Sequence[str]:
        """Return the paths of the parts of a run that have a journal, sorted.

        Args:
            beginning: Only those are wanted of which the last frame begins so; a backend may return others too.
        """

    @abstractmethod
    def is_there(self) -> bool:
        """Return whether anything was ever kept here; False: nothing can be read."""

    def ended(self, name: str) -> bool:
        """Return whether the last line of a journal has its newline; else `Tail.rewrite` must come before `append`."""
        return True

    def place_of(self, run: str) -> str:
        """Return how emergency files name where a run is."""
        return self.place

    def named(self, run: str) -> str:
        """Return how people name a run in commands."""
        return run

    def unlisted(self) -> Sequence[str]:
        """Return runs that have records and that `tips` does not show."""
        return ()

    def relist(self, run: str) -> None:  # noqa: B027 - only where `unlisted` returns some
        """Have `tips` show a run that it does not."""

    def upgrade(self) -> tuple[str, str]:
        """Bring what is kept up to date with this program, in one transaction; its versions before and after.

        Before is "" where nothing was there; both are, where nothing has a version.

        Raises:
            SchemaTooNew: It is newer than this program.
            WriteFailed: Nothing was changed.
        """
        return "", ""

    def flaws(self, name: str) -> Iterator[str]:
        """Return what is wrong with how a journal is kept that its raw lines do not show, a sentence each."""
        return iter(())


def folder_key(name: str) -> str:
    """Return the prefix of a journal's objects, without a slash at its end."""
    run_id, _, path = name.partition("/")
    return f"runs/{run_id}/parts/{quote(path, safe='')}" if path else f"runs/{run_id}"


def claim_text(claim: Sequence[str]) -> str:
    """Return a claim as `Backend.tips` takes it: JSON of the list that the first record of a run holds."""
    return json.dumps(list(claim))
