"""Who owns a journal: the holder of a flock that the kernel frees at death; its text names the holder to readers."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import socket
import subprocess
import weakref
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pipeline.clock import iso
from pipeline.errors import RunLocked
from pipeline.store.disk import Disk, read_file

#: The file's name in a run's folder.
LOCK = "lock"
_PROC = Path("/proc/self/stat")


class Droppable(Protocol):
    """What a forked child must let go, because its parent owns it."""

    def drop(self) -> None: ...


_held: weakref.WeakSet[Any] = weakref.WeakSet()


def drop_in_children(thing: Droppable) -> None:
    """Have `thing.drop()` called in every child that is forked from now on."""
    _held.add(thing)


def _drop_all() -> None:
    _owner_text.cache_clear()
    for thing in list(_held):
        thing.drop()


os.register_at_fork(after_in_child=_drop_all)


class OwnerLock:
    """A held lock; `release` gives it up, the file stays."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self.path = path
        drop_in_children(self)

    @property
    def held(self) -> bool:
        return self._fd >= 0

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


def acquire(disk: Disk, folder: Path, run: str, since: datetime) -> OwnerLock:
    """Own the run in `folder`.

    Raises:
        RunLocked: A living process owns it; names host, pid, since when.
        OSError: The folder cannot be written, or is gone.
    """
    path = folder / LOCK
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between open and flock the folder may have been removed and made again.
        if not os.path.samestat(os.fstat(fd), os.stat(path)):
            raise FileNotFoundError(2, "the run was removed", str(path))
        text = json.dumps({**process(), "since": iso(since)}).encode() + b"\n"
        # One write over the old text, then the cut: a reader never finds it empty while it is owned.
        os.pwrite(fd, text, 0)
        os.ftruncate(fd, len(text))
    except BlockingIOError:
        os.close(fd)
        raise locked(run, owner(folder)) from None
    except BaseException:
        os.close(fd)
        raise
    return OwnerLock(fd, path)


def locked(run: str, holder: Mapping[str, Any]) -> RunLocked:
    """The error that names the owner."""
    who = "another process"
    if holder:
        who = f"process {holder.get('pid')} on {holder.get('host')} since {holder.get('since')}"
    return RunLocked(f"Run {run} is owned by {who}.", hint="Wait for it to end, or stop it.", run=run, **holder)


@contextlib.contextmanager
def brief_lock(disk: Disk, path: Path) -> Iterator[None]:
    """Hold a store-wide lock for a moment, waiting for it; the kernel frees it if its holder dies."""
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def owner(folder: str | Path) -> dict[str, Any]:
    """What the lock's text says; {} if nobody, or nothing readable. Never touches the lock itself."""
    try:
        text = read_file(f"{folder}/{LOCK}")
        data = json.loads(text) if text else {}
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def alive(holder: Mapping[str, Any], *, otherwise: bool) -> bool:
    """Whether the process named in a lock's text lives; `otherwise` where that cannot be known from here."""
    pid = holder.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return False
    mine = process()
    if holder.get("host") != mine["host"] or holder.get("space") != mine["space"]:
        return otherwise
    if holder.get("boot") != mine["boot"]:
        return False
    started = process_started(pid)
    return started is not None and started == holder.get("started")


def process() -> dict[str, Any]:
    """How this process names itself in a lock: host, pid, its start, and the boot and pid space that pid is of."""
    return json.loads(_owner_text())  # type: ignore[no-any-return]


@functools.cache
def _owner_text() -> str:
    pid = os.getpid()
    return json.dumps(
        {
            "host": socket.gethostname(),
            "pid": pid,
            "started": process_started(pid),
            "boot": (read_file("/proc/sys/kernel/random/boot_id") or b"").decode().strip(),
            "space": _pid_space(),
        }
    )


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def process_started(pid: int) -> str | None:
    """When a process began, in the system's own words; None if there is no such process.

    A pid alone is reused; a pid with its start is not.
    """
    if _PROC.exists():
        try:
            text = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        fields = text[text.rindex(b")") + 2 :].split()
        # A zombie holds no lock any more.
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    done = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
