"""Disks for tests: one that fails as told, one that does not wait for anything to be durable."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from pipeline.store.disk import Disk


class FaultyDisk(Disk):
    """The real disk until told otherwise."""

    def __init__(self) -> None:
        #: Bytes that still fit; None: no limit. Allocations take from it, truncations give back.
        self.room: int | None = None
        #: errno of the next writes, in order; 0: let it pass.
        self.write_errors: list[int] = []
        #: errno of the next syncs of files, in order; 0: let it pass.
        self.sync_errors: list[int] = []
        #: errno of everything that needs to write into a folder.
        self.read_only = False
        self.syncs = 0

    def open(self, path: Path, flags: int) -> int:
        if self.read_only and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return super().open(path, flags)

    def make_folder(self, path: Path) -> None:
        if self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        super().make_folder(path)

    def write(self, fd: int, data: bytes) -> int:
        if self.write_errors and (code := self.write_errors.pop(0)):
            # What a real disk may leave behind: half of it.
            os.write(fd, data[: len(data) // 2])
            raise OSError(code, os.strerror(code))
        if self.room is not None:
            if self.room <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self.room]
            self.room -= len(data)
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        self.syncs += 1
        if self.sync_errors and (code := self.sync_errors.pop(0)):
            raise OSError(code, os.strerror(code))
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        if self.room is not None:
            self.room += max(0, os.fstat(fd).st_size - size)
        super().truncate(fd, size)

    def allocate(self, fd: int, size: int) -> None:
        if self.room is not None:
            if self.room < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= size
        super().allocate(fd, size)


class LazyDisk(Disk):
    """Syncs nothing: for tests that are about bytes, thousands of times."""

    def sync(self, fd: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass

    def allocate(self, fd: int, size: int) -> None:
        pass
