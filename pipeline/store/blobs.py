"""Large values, once each: zlib-compressed files ab/abcd… named by the sha256 of what they hold."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import threading
import zlib
from pathlib import Path

from pipeline.errors import CheckpointCorrupt, StoreError, WriteFailed
from pipeline.records.values import digest
from pipeline.store.disk import Disk, read_file, write_file

BLOBS = "blobs"
_HASH = re.compile(r"[0-9a-f]{64}")
#: Fast rather than small: values are written while a run waits.
_LEVEL = 1


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
        data = self._read(blob) if _HASH.fullmatch(blob) else None
        if data is None:
            raise CheckpointCorrupt(f"The stored value {blob} is missing or damaged.", blob=blob)
        return data

    def _path(self, blob: str) -> Path:
        return self._folder / blob[:2] / blob

    def _read(self, blob: str) -> bytes | None:
        try:
            packed = read_file(self._path(blob))
            data = None if packed is None else zlib.decompress(packed)
        except (OSError, zlib.error):
            return None
        return data if data is not None and digest(data) == blob else None

    def _write(self, blob: str, data: bytes) -> None:
        path = self._path(blob)
        for folder in (self._folder, path.parent):
            self._need(folder)
        # Parts of a run share its blobs: another of their workers may be writing the same one now.
        aside = path.with_name(f".new-{blob}-{os.getpid()}-{threading.get_ident()}")
        write_file(self._disk, aside, zlib.compress(data, _LEVEL), replace=True)
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
