"""Who owns a journal of a database: one row, with an epoch that each owner raises and the database's own clock.

An append is made only where the row still has the owner's epoch, in the same transaction: who was fenced out
cannot write, however late it wakes.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from typing import Any

from pipeline.clock import Clock, SystemClock, iso
from pipeline.errors import PipelineError, RunNotFound, StoreError
from pipeline.files import parse_json
from pipeline.store.lock import drop_in_children, locked
from pipeline.store.owner import alive, process
from pipeline.store.sql.database import Database
from pipeline.store.sql.link import Link

#: How often an owner says that it lives, and after how long without that another host may take over: two beats.
BEAT_SECONDS, TTL_SECONDS = 15, 30
#: How long a record that needs no sync may be unseen by others.
TICK_SECONDS = 0.5

#: How often a database that does not answer is told that an owner has left: for an hour.
_TELLS = 240
#: More owners than a journal ever has.
_BEYOND = 1_000_000
#: What a column holds.
_MOST = 2**63 - 1

#: Leases that this process gave up, also where the database could not be told: (store, journal, epoch).
_given_up: set[tuple[str, int, int]] = set()


def free(link: Link, journal: int) -> None:
    """The row of a new journal that nobody owns."""
    link.run("INSERT INTO leases (journal, epoch, holder, beat_at) VALUES (?, 0, '', 0)", journal)


def make_missing(link: Link, run_id: str) -> None:
    """Rows for journals of a run that have lost theirs; nobody owns them, and no owner that there was has the epoch."""
    sql = (
        "INSERT INTO leases (journal, epoch, holder, beat_at) SELECT j.journal, ?, '', 0 FROM journals j"
        " WHERE j.run_id = ? AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.journal = j.journal)"
    )
    link.run(sql, _BEYOND, run_id)


class Lease:
    """A lease that is held, renewed by a thread of its own until it is released or lost."""

    def __init__(self, database: Database, journal: int, epoch: int) -> None:
        self.journal = journal
        self.epoch = epoch
        #: Another owner has it.
        self.lost = False
        #: What is done at every tick.
        self.tick: Callable[[], None] = lambda: None
        self._database = database
        self._done = threading.Event()
        #: The database knows that nobody owns it.
        self._told = threading.Event()
        drop_in_children(self)
        # Real seconds, whatever the run's clock says: the database counts them too.
        threading.Thread(target=self._beat, args=(SystemClock(),), name="lease", daemon=True).start()

    def renew(self) -> None:
        """Say that the owner lives. A database that does not answer is asked again at the next beat."""
        database = self._database
        sql = f"UPDATE leases SET beat_at = {database.now} WHERE journal = ? AND epoch = ?"
        with contextlib.suppress(PipelineError), database.write(sync=False) as link:
            self.lost = link.run(sql, self.journal, self.epoch) == 0

    def release(self) -> None:
        """Give up ownership; idempotent. A database that does not answer is told later."""
        if self._done.is_set():
            return
        self._done.set()
        _given_up.add((self._database.address.url, self.journal, self.epoch))
        self._tell()

    def _tell(self) -> None:
        sql = "UPDATE leases SET holder = '' WHERE journal = ? AND epoch = ?"
        with contextlib.suppress(PipelineError):
            with self._database.write(sync=False) as link:
                link.run(sql, self.journal, self.epoch)
            self._told.set()

    def drop(self) -> None:
        """In a forked child: the parent goes on owning it."""
        self._done = threading.Event()
        self._done.set()

    def _beat(self, clock: Clock) -> None:
        done = self._done
        for number in count(1):
            if clock.wait(done, TICK_SECONDS):
                break
            # Once more where it is lost: what waits is kept where the new owner finds it.
            self.tick()
            if self.lost:
                return
            if number % (BEAT_SECONDS / TICK_SECONDS) == 0:
                self.renew()
        # This process lives on, so others on this host would go on believing what the row says.
        for _ in range(_TELLS):
            if clock.wait(self._told, BEAT_SECONDS):
                return
            self._tell()


def begin(database: Database, link: Link, journal: int, since: datetime) -> int:
    """The row of a new journal, owned by this process; its epoch."""
    sql = f"INSERT INTO leases (journal, epoch, holder, beat_at) VALUES (?, 1, ?, {database.now})"
    link.run(sql, journal, holder_text(since))
    return 1


def take(database: Database, link: Link, journal: int, run: str, holder: str) -> int:
    """Own a journal from now on; the epoch.

    Args:
        holder: Who; made for this once, so that who tries again where the answer was lost finds that it has it.

    Raises:
        RunLocked: A living process owns it; names host, pid, since when.
        RunNotFound: It was removed.
        StoreError: Its row is damaged.
    """
    sql = f"SELECT epoch, holder, beat_at, {database.now} FROM leases WHERE journal = ?"
    found = link.row(sql + link.for_update(), journal)
    if found is None:
        raise RunNotFound(f"Run {run} was just removed.", hint="`list` shows the runs there are.", run=run)
    epoch, former, beat, now = found
    if former == holder:
        return int(epoch)
    if not is_epoch(epoch):
        hint = f"The next resume makes one anew once it is gone: DELETE FROM leases WHERE journal = {journal};"
        raise StoreError(f"The lease of run {run} is damaged: its epoch is {str(epoch)[:40]!r}.", hint=hint, run=run)
    if is_held(database, journal, epoch, former, beat, now):
        raise locked(run, parse(former), TTL_SECONDS)
    sql = f"UPDATE leases SET epoch = ?, holder = ?, beat_at = {database.now} WHERE journal = ?"
    link.run(sql, epoch + 1, holder, journal)
    return int(epoch) + 1


def is_epoch(epoch: object) -> bool:
    """Whether an owner can have had it, and another one come after."""
    return isinstance(epoch, int) and 0 <= epoch < _MOST


def holder_text(since: datetime, once: str = "") -> str:
    """How this process names itself in a lease.

    Args:
        once: Told apart by this from all other times that it takes one.
    """
    return json.dumps({**process(), "since": iso(since), **({"id": once} if once else {})}, separators=(",", ":"))


def is_held(database: Database, journal: int, epoch: int, holder: str, beat: float, now: float) -> bool:
    """Whether the owner is alive: seen to be so on this host; on another, heard of within two beats.

    Args:
        now: What time it is by the database's clock, which `beat` was taken from too.
    """
    if not holder or (database.address.url, journal, epoch) in _given_up:
        return False
    # A beat far ahead is of a clock that was set back since: a living owner would have put it right.
    return alive(parse(holder), otherwise=abs(now - beat) <= TTL_SECONDS)


def parse(holder: str) -> Mapping[str, Any]:
    """Who a lease names; {} where it cannot be read."""
    try:
        text = parse_json(holder)
    except ValueError:
        return {}
    return text if isinstance(text, dict) else {}
