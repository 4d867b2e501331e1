"""The few system calls the store makes that can fail for want of a disk; tests replace them by failing ones."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from pipeline.files import open_regular, read_regular

#: Owner-only, as everything in a store is.
FILE_MODE, FOLDER_MODE = 0o600, 0o700
#: Errors of a write that say that space ran out.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
#: Not on macOS.
_allocate: Callable[[int, int, int], None] | None = getattr(os, "posix_fallocate", None)
_CHUNK = 1 << 20


class Disk:
    """The real disk."""

    def open(self, path: Path, flags: int) -> int:
        """Return a file descriptor that children do not inherit; links are not followed, only regular files opened."""
        return open_regular(path, flags | os.O_NOFOLLOW, FILE_MODE)

    def write(self, fd: int, data: bytes) -> int:
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Make a file's data durable, through the drive's own cache where the system can."""
        if _FULL_SYNC is None:
            os.fdatasync(fd)
            return
        try:
            fcntl.fcntl(fd, _FULL_SYNC)
        except OSError as error:
            # Some file systems have none; that they say so is no failed sync.
            if error.errno not in (errno.ENOTSUP, errno.EINVAL):
                raise
            os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def replace(self, source: Path, target: Path) -> None:
        os.rename(source, target)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def make_folder(self, path: Path) -> None:
        os.mkdir(path, FOLDER_MODE)

    def allocate(self, fd: int, size: int) -> None:
        """Take `size` bytes of the disk for good."""
        if _allocate is not None:
            _allocate(fd, 0, size)
            return
        while size > 0:
            size -= os.write(fd, bytes(min(size, _CHUNK)))


def write_file(disk: Disk, path: Path, data: bytes, *, sync: bool = True, replace: bool = False) -> None:
    """Write a whole file; a name that exists is an error unless `replace`. The folder is not synced.

    Raises:
        OSError: The file was not written; what was begun is removed.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        fd = disk.open(path, flags)
    except FileExistsError:
        if not replace:
            raise
        # Whatever it is, it goes; what a link leads to stays.
        os.unlink(path)
        fd = disk.open(path, flags)
    try:
        write_all(disk, fd, data)
        if sync:
            disk.sync(fd)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Write every byte.

    Raises:
        OSError: The disk took no more.
    """
    view = memoryview(data)
    while view:
        count = disk.write(fd, bytes(view[:_CHUNK]))
        if count <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        view = view[count:]


def read_file(path: str | Path) -> bytes | None:
    """Read a whole file; None where there is none, or where it is a link.

    Raises:
        OSError: It is there but is no regular file, or cannot be read.
    """
    try:
        return read_regular(path, flags=os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return None
        raise


class Reserve:
    """An allocated file without a name: it vanishes with the process, however that ends."""

    def __init__(self, disk: Disk, folder: Path, size: int) -> None:
        #: It was needed: the disk is full.
        self.released = False
        self._disk = disk
        self._fd = -1
        if size <= 0:
            return
        path = folder / f".reserve-{os.getpid()}"
        path.unlink(missing_ok=True)
        fd = disk.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            os.unlink(path)
            disk.allocate(fd, size)
        except OSError:
            os.close(fd)
            raise
        self._fd = fd

    def free(self) -> bool:
        """Give the space back to the disk; False where there was none left to give."""
        self.released = True
        if self._fd < 0:
            return False
        with contextlib.suppress(OSError):
            self._disk.truncate(self._fd, 0)
        self.close()
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
