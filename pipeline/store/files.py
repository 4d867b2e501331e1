"""Runs as folders of files, each with its journal; the store of `files:DIR`."""

from __future__ import annotations

from pathlib import Path

from pipeline.clock import Clock
from pipeline.store.account import FileAccount
from pipeline.store.disk import Disk
from pipeline.store.folder import FolderBackend
from pipeline.store.runs import RunStore


class FileStore(RunStore):
    """A folder of runs; see store.base.Store."""

    backend: FolderBackend

    def __init__(self, root: Path | str, clock: Clock, *, concurrency: int = 4, disk: Disk | None = None) -> None:
        """Name the folder, which need not be there.

        Args:
            concurrency: Calls that may be in flight: as much disk is held back to record them; 0: none is.
        """
        backend = FolderBackend(root, clock, concurrency=concurrency, disk=disk)
        super().__init__(backend, clock)
        self.root = backend.root

    def account(self) -> FileAccount:
        return FileAccount(self.root, self._clock, disk=self.backend.disk)
