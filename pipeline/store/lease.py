"""Owners of journals on a server: heartbeats, how long silence may last, and telling a silent server later.

What a lease is made of is the backend's; that it is renewed, lost and given up is decided here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from typing import Any

from pipeline.clock import Clock, SystemClock, iso
from pipeline.errors import PipelineError
from pipeline.files import parse_json
from pipeline.store.backend import Fenced, Tail
from pipeline.store.lock import drop_in_children
from pipeline.store.owner import alive, process

#: How often an owner says that it lives, and after how long without that another host may take over: two beats.
BEAT_SECONDS, TTL_SECONDS = 15, 30
#: How long a record that needs no sync may be unseen by others.
TICK_SECONDS = 0.5
#: How often a server that does not answer is told that an owner has left: for an hour.
_TELLS = 240

#: Leases that this process gave up, also where the server could not be told: (place, name, epoch).
_given_up: set[tuple[str, str, int]] = set()


def holder(since: datetime, **more: Any) -> dict[str, Any]:
    """Return how this process names itself in a lease.

    Args:
        more: What else the backend keeps there, such as an id that tells this taking from all others.
    """
    return {**process(), "since": iso(since), **more}


def parse(text: bytes | str) -> dict[str, Any]:
    """Return the owner that a lease names; {} where it names none, or cannot be read."""
    try:
        owner = parse_json(text)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def taken(place: str, name: str, epoch: int) -> None:
    """Note that this process owns a journal: one of that name and epoch may have been given up and removed before."""
    _given_up.discard((place, name, epoch))


def is_held(place: str, name: str, epoch: int, holder: Mapping[str, Any], silent: float | None) -> bool:
    """Return whether the owner that a lease names is alive: seen to be on this host, heard of lately on another.

    Args:
        holder: What the lease says of its owner; {} if it names none.
        silent: Seconds since its last beat, both by the server's clock; None: the server does not say. A beat far
            ahead is of a clock that was set back since, and counts as silence.
    """
    if not holder or (place, name, epoch) in _given_up:
        return False
    return alive(holder, otherwise=silent is None or abs(silent) <= TTL_SECONDS)


class Lease:
    """A tail that is renewed by a thread of its own until it is released or lost."""

    def __init__(self, place: str, name: str, tail: Tail, tick: Callable[[], None] | None = None) -> None:
        """Begin to renew.

        Args:
            tick: Called every half second; None: nothing is to be done then.
        """
        #: Another owner has it.
        self.lost = False
        self._key = (place, name, tail.epoch)
        self._tail = tail
        self._tick = tick
        self._done = threading.Event()
        #: The server knows that it has no owner.
        self._told = threading.Event()
        drop_in_children(self)
        # Real seconds, whatever the run's clock says: the server counts them too.
        threading.Thread(target=self._beat, args=(SystemClock(),), name="lease", daemon=True).start()

    def renew(self) -> None:
        """Say that the owner lives. A server that does not answer is asked again at the next beat."""
        try:
            with contextlib.suppress(PipelineError):
                self._tail.renew()
        except Fenced:
            self.lost = True

    def release(self) -> None:
        """Give up ownership; idempotent. A server that does not answer is told later."""
        if not self._done.is_set():
            _given_up.add(self._key)
            self._tell()
            self._done.set()

    def drop(self) -> None:
        """Stop in a forked child: the parent goes on owning it."""
        self._done = threading.Event()
        self._done.set()

    def _tell(self) -> None:
        with contextlib.suppress(PipelineError, Fenced):
            self._tail.release()
            self._told.set()
        if self.lost:
            self._told.set()

    def _beat(self, clock: Clock) -> None:
        done = self._done
        seconds = BEAT_SECONDS if self._tick is None else TICK_SECONDS
        for number in count(1):
            if clock.wait(done, seconds):
                break
            # Once more where it is lost: what waits is kept where the new owner finds it.
            if self._tick is not None:
                self._tick()
            if self.lost:
                return
            if number % (BEAT_SECONDS / seconds) == 0:
                self.renew()
        # This process lives on, so others on this host would go on believing what the lease says.
        for _ in range(_TELLS):
            if clock.wait(self._told, BEAT_SECONDS):
                return
            self._tell()
