"""Large values, once each: zlib-compressed files ab/abcd… named by the sha256 of what they hold."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from pathlib import Path

from pipeline.errors import StoreError, WriteFailed
from pipeline.records.values import digest
from pipeline.store.disk import Disk, read_file, write_file
from pipeline.store.packed import is_hash, packed, unpacked, whole

BLOBS = "blobs"


class BlobFolder:
    """The blobs of one run, for its owner and for readers."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        #: Hashes whose file this process has written or verified.
        self._sound: set[str] = set()

    def put(self, data: bytes) -> str:
        """Store bytes; durable on return. A file that is there is verified, and written anew if damaged.

        Raises:
            WriteFailed: It could not be stored.
        """
        blob = digest(data)
        if blob in self._sound:
            return blob
        try:
            if self._read(blob) != data:
                self._write(blob, data)
        except OSError as error:
            why = error.strerror or error
            raise WriteFailed(f"A value could not be stored: {why}.", fatal=False, blob=blob) from error
        self._sound.add(blob)
        return blob

    def get(self, blob: str) -> bytes:
        """The bytes of a hash, verified.

        Raises:
            CheckpointCorrupt: Missing or damaged.
        """
        return whole(blob, self._read(blob) if is_hash(blob) else None)

    def _path(self, blob: str) -> Path:
        return self._folder / blob[:2] / blob

    def _read(self, blob: str) -> bytes | None:
        try:
            return unpacked(blob, read_file(self._path(blob)))
        except OSError:
            return None

    def _write(self, blob: str, data: bytes) -> None:
        path = self._path(blob)
        for folder in (self._folder, path.parent):
            self._need(folder)
        # Parts of a run share its blobs: another of their workers may be writing the same one now.
        aside = path.with_name(f".new-{blob}-{os.getpid()}-{threading.get_ident()}")
        write_file(self._disk, aside, packed(data), replace=True)
        self._disk.replace(aside, path)
        self._disk.sync_folder(path.parent)

    def _need(self, folder: Path) -> None:
        try:
            mode = os.lstat(folder).st_mode
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                self._disk.make_folder(folder)
            self._disk.sync_folder(folder.parent)
        else:
            if not stat.S_ISDIR(mode):
                raise StoreError(f"{folder.name} is not a folder of this run.", path=str(folder))
