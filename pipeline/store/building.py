"""A run's folder made aside, owned and synced, then renamed to its id: it exists whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from pipeline.store.blobs import BLOBS, BlobFolder
from pipeline.store.disk import Disk, write_file
from pipeline.store.lock import OwnerLock, acquire
from pipeline.store.names import BUILDING, JOURNAL


def build(disk: Disk, root: Path, first: bytes, blobs: Iterable[bytes], names: Iterator[str], at: datetime) -> tuple[
    str, OwnerLock
]:  # fmt: skip
    """Make a run under the first name that is free; the caller holds the store's lock.

    Returns its name and the owner's lock.

    Raises:
        OSError: Nothing was made.
    """
    aside = root / f"{BUILDING}{os.getpid()}-{os.urandom(4).hex()}"
    lock: OwnerLock | None = None
    try:
        disk.make_folder(aside)
        lock = acquire(disk, aside, aside.name, at)
        store = BlobFolder(aside / BLOBS, disk)
        for data in blobs:
            store.put(data)
        write_file(disk, aside / JOURNAL, first)
        disk.sync_folder(aside)
        # Renaming replaces an empty folder, so the name is looked up first; the store's lock keeps others of us out.
        run = next(name for name in names if not os.path.lexists(root / name))
        disk.replace(aside, root / run)
        disk.sync_folder(root)
    except BaseException:
        if lock is not None:
            lock.release()
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return run, lock
