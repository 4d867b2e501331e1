"""Who owns a journal: the holder of a flock that the kernel frees at death; its text names the holder to readers."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pipeline.clock import iso
from pipeline.errors import RunLocked
from pipeline.store.backend import Held
from pipeline.store.disk import Disk
from pipeline.store.owner import LOCK, owner, process

#: How often, and in which distance, the name of an owner is looked for that has only just taken its lock.
_LOOKS, _LOOK_SECONDS = 50, 0.01


class Droppable(Protocol):
    """What a forked child must let go, because its parent owns it."""

    def drop(self) -> None: ...


_held: weakref.WeakSet[Any] = weakref.WeakSet()


def drop_in_children(thing: Droppable) -> None:
    """Have `thing.drop()` called in every child that is forked from now on."""
    _held.add(thing)


def _drop_all() -> None:
    for thing in list(_held):
        thing.drop()


os.register_at_fork(after_in_child=_drop_all)


class OwnerLock:
    """A held lock; `release` gives it up, the file stays."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self.path = path
        found = os.fstat(fd)
        self._file = found.st_ino, found.st_dev
        drop_in_children(self)

    def is_in(self, folder: str) -> bool:
        """Return whether other processes meet this lock in a folder: not where it was removed or replaced.

        One that may not be looked at is taken to be there.
        """
        try:
            there = os.stat(f"{folder}/{LOCK}")
        except PermissionError:
            return True
        except OSError:
            return False
        return (there.st_ino, there.st_dev) == self._file

    def release(self) -> None:
        """Give up ownership; idempotent. The text goes first, so no reader sees a living owner of a free run."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            self.drop()

    def drop(self) -> None:
        """Close the descriptor only: in a forked child the parent goes on owning the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def acquire(disk: Disk, folder: Path, since: datetime) -> OwnerLock:
    """Own the run in `folder`.

    Raises:
        Held: A living process owns it.
        OSError: The folder cannot be written, or is gone.
    """
    path = folder / LOCK
    text = json.dumps({**process(), "since": iso(since)}).encode() + b"\n"
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # One write over the old text, then the cut: a reader hardly ever finds it empty while it is owned.
        os.pwrite(fd, text, 0)
        # Between open and flock the folder may have been removed and made again.
        if not os.path.samestat(os.fstat(fd), os.stat(path)):
            raise FileNotFoundError(2, "the run was removed", str(path))
        os.ftruncate(fd, len(text))
    except BlockingIOError:
        os.close(fd)
        raise Held(_named_owner(folder)) from None
    except BaseException:
        os.close(fd)
        raise
    return OwnerLock(fd, path)


def _named_owner(folder: Path) -> dict[str, Any]:
    """Return what the text of a lock says that another holds, once that one has written it."""
    moment = threading.Event()
    for _ in range(_LOOKS):
        if found := owner(folder):
            return found
        moment.wait(_LOOK_SECONDS)
    return {}


def locked(run: str, holder: Mapping[str, Any], lease_seconds: int | None = None) -> RunLocked:
    """Return the error that names the owner.

    Args:
        lease_seconds: How long after its last word an owner on another host loses the run; None: not by silence.
    """
    who, hint = "another process", "Wait for it to end, or stop it."
    if holder:
        who = f"process {holder.get('pid')} on {holder.get('host')} since {holder.get('since')}"
        if lease_seconds is not None and holder.get("host") != process()["host"]:
            hint += f" If that host is gone, the run is free within {lease_seconds} s: repeat the command then."
    return RunLocked(f"Run {run} is owned by {who}.", hint=hint, run=run, **holder)


def try_lock(disk: Disk, path: Path) -> int:
    """Lock a file, which is made where it is missing; the descriptor that holds it, -1 where another does."""
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return -1
    except BaseException:
        os.close(fd)
        raise
    return fd


@contextlib.contextmanager
def brief_lock(disk: Disk, path: Path) -> Iterator[None]:
    """Hold a store-wide lock for a moment, waiting for it; the kernel frees it if its holder dies."""
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
