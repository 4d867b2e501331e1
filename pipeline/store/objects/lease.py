"""Who owns a journal of objects: one object, changed only where its etag is still the one that was read.

Whether an owner elsewhere is dead is judged by the server's clock alone, against when the owner last renewed.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pipeline.clock import Clock, SystemClock, iso
from pipeline.errors import PipelineError
from pipeline.files import parse_json
from pipeline.store.lock import drop_in_children, locked
from pipeline.store.objects.bucket import Bucket
from pipeline.store.owner import alive, process

#: How often an owner renews, and after how long without that another host may take over: two beats.
BEAT_SECONDS, TTL_SECONDS = 15, 30
#: After how long a record is written only once the server has said that the lease is held still.
CONFIRM_SECONDS = 5
#: A lease that nobody holds is this small, so that a listing tells; one that is held names its owner.
FREE_BYTES = 40

#: How often a server that does not answer is told that an owner has left: for an hour.
_TELLS = 240

#: Leases that this process gave up, also where the server could not be told.
_given_up: set[str] = set()

#: Real seconds, whatever a run's clock says: the server counts them too.
_CLOCK = SystemClock()

Now = Callable[[], datetime | None]


class Lease:
    """A lease that is held, renewed by a thread of its own until it is released or lost."""

    def __init__(
        self, bucket: Bucket, key: str, text: Mapping[str, Any], etag: str, *, contested: bool = False
    ) -> None:
        self.epoch: int = text["epoch"]
        #: Whoever had it before may still write: it was taken from an owner that is dead, or silent.
        self.contested = contested
        #: Another owner has it.
        self.lost = False
        #: The etag under which it was given up; "": it is not, or that is not known.
        self.left = ""
        self._bucket = bucket
        self._key = key
        self._text = dict(text)
        self._etag = etag
        self._lock = threading.Lock()
        self._done = threading.Event()
        #: When the server was last asked, in real seconds.
        self._asked = _CLOCK.monotonic()
        #: The server knows that nobody owns it.
        self._told = threading.Event()
        drop_in_children(self)
        self._thread = threading.Thread(target=self._beat, args=(_CLOCK,), name="lease", daemon=True)
        self._thread.start()

    @property
    def held(self) -> bool:
        return not self.lost and not self._done.is_set()

    def confirm(self) -> None:
        """Ask the server whether this owner has it still, where that was not asked just now."""
        if self.held and _CLOCK.monotonic() - self._asked > CONFIRM_SECONDS:
            self.renew()

    def renew(self) -> None:
        """Say that the owner lives. A server that does not answer is asked again at the next beat."""
        with self._lock, contextlib.suppress(PipelineError):
            if self.held:
                # Never the same text twice: its etag would not change.
                self._text["beat"] += 1
                self._asked = _CLOCK.monotonic()
                etag = self._bucket.put_over(self._key, _encode(self._text), self._etag)
                self.lost, self._etag = etag is None, etag or ""

    def release(self) -> None:
        """Give up ownership; idempotent. A server that does not answer is told later."""
        with self._lock:
            if self.held:
                self._done.set()
                _given_up.add(self._text["id"])
                self._tell()
            else:
                self._told.set()
            self._done.set()

    def _tell(self) -> None:
        with contextlib.suppress(PipelineError):
            # Never the same text twice, also where a run of the same name comes later.
            free = {"epoch": self.epoch, "id": self._text["id"][:8]}
            self.left = self._bucket.put_over(self._key, _encode(free), self._etag) or ""
            self._told.set()

    def drop(self) -> None:
        """In a forked child: the parent goes on owning it."""
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._done.set()

    def _beat(self, clock: Clock) -> None:
        done = self._done
        while not clock.wait(done, BEAT_SECONDS) and not self.lost:
            self.renew()
        # This process lives on, so others on this host would go on believing what the lease says.
        for _ in range(_TELLS):
            if self.lost or clock.wait(self._told, BEAT_SECONDS):
                return
            self._tell()


def acquire(bucket: Bucket, key: str, run: str, since: datetime) -> Lease:
    """Own what this lease is of.

    Raises:
        RunLocked: A living process owns it; names host, pid, since when.
        WriteFailed: The server cannot be asked.
    """
    found = bucket.get(key)
    before = parse(found.data) if found else {}
    if found and is_held(before) and not is_over(before, found.modified, bucket.server_now):
        raise locked(run, before, TTL_SECONDS)
    text = _text(since, _epoch(before) + 1)
    data = _encode(text)
    etag = bucket.put_over(key, data, found.etag) if found else bucket.put_new(key, data)
    if etag is None:
        winner = bucket.get(key)
        raise locked(run, parse(winner.data) if winner else {}, TTL_SECONDS)
    return Lease(bucket, key, text, etag, contested=is_held(before))


def begin(bucket: Bucket, key: str, since: datetime) -> Lease | None:
    """Own what nobody has ever owned; None: somebody has.

    Raises:
        WriteFailed: The server cannot be asked.
    """
    text = _text(since, 1)
    etag = bucket.put_new(key, _encode(text))
    return None if etag is None else Lease(bucket, key, text, etag)


def again(bucket: Bucket, key: str, before: Lease, since: datetime) -> Lease | None:
    """Own what this process gave up; None: somebody has owned it since, or may have.

    Raises:
        WriteFailed: The server cannot be asked.
    """
    text = _text(since, before.epoch + 1)
    etag = bucket.put_over(key, _encode(text), before.left) if before.left else None
    return None if etag is None else Lease(bucket, key, text, etag)


def _text(since: datetime, epoch: int) -> dict[str, Any]:
    return {**process(), "since": iso(since), "epoch": epoch, "beat": 0, "id": os.urandom(8).hex()}


def parse(data: bytes) -> dict[str, Any]:
    """What a lease says; {} where it cannot be read."""
    try:
        text = parse_json(data)
    except ValueError:
        return {}
    return text if isinstance(text, dict) else {}


def is_held(text: Mapping[str, Any]) -> bool:
    """Whether it names an owner, alive or not."""
    return "pid" in text


def is_over(text: Mapping[str, Any], renewed: datetime, now: Now) -> bool:
    """Whether the owner is gone: dead on this host, or on another one and not heard of for two beats.

    Args:
        renewed: When the lease was last written, by the server's clock.
        now: What time it is by the same clock; None where it does not say.
    """
    if text.get("id") in _given_up or not alive(text, otherwise=True):
        return True
    if alive(text, otherwise=False):
        return False
    time = now()
    # One that is far ahead is of a clock that was set back since: a living owner would have put it right.
    return time is not None and abs((time - renewed).total_seconds()) > TTL_SECONDS


def _epoch(text: Mapping[str, Any]) -> int:
    epoch = text.get("epoch")
    return epoch if isinstance(epoch, int) else 0


def _encode(text: Mapping[str, Any]) -> bytes:
    return json.dumps(text, separators=(",", ":")).encode()
