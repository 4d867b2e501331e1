"""Disk space held back while a run is open, so that what is in flight can be recorded when the disk is full."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pipeline.store.disk import Disk

#: Held for the run itself, and for each paid call that may be in flight.
BASE, PER_CALL = 1 << 20, 256 << 10


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
