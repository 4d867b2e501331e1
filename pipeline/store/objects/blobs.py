"""Large values as objects, once each: zlib-compressed, named by the sha256 of what they hold."""

from __future__ import annotations

import re
import zlib

from pipeline.errors import CheckpointCorrupt
from pipeline.records.values import digest
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket

_HASH = re.compile(r"[0-9a-f]{64}")
_LEVEL = 1


class Blobs:
    """The blobs of one run, for its owner and for readers."""

    def __init__(self, bucket: Bucket, run: str) -> None:
        self._bucket = bucket
        self._run = run
        #: Hashes that this process has written or verified.
        self._sound: set[str] = set()

    def put(self, data: bytes) -> str:
        """Store bytes; durable on return. An object that is there is verified, and written anew if damaged.

        Raises:
            WriteFailed: It could not be stored.
        """
        name = digest(data)
        if name not in self._sound:
            packed = zlib.compress(data, _LEVEL)
            key = keys.blob(self._run, name)
            if self._bucket.put_new(key, packed) is None and self._read(name) != data:
                self._bucket.put(key, packed)
            self._sound.add(name)
        return name

    def get(self, name: str) -> bytes:
        """The bytes of a hash, verified.

        Raises:
            CheckpointCorrupt: Missing or damaged.
            StoreError: The server cannot be asked.
        """
        data = self._read(name) if _HASH.fullmatch(name) else None
        if data is None:
            raise CheckpointCorrupt(f"The stored value {name} is missing or damaged.", blob=name)
        return data

    def _read(self, name: str) -> bytes | None:
        found = self._bucket.get(keys.blob(self._run, name))
        if found is None:
            return None
        try:
            data = zlib.decompress(found.data)
        except zlib.error:
            return None
        return data if digest(data) == name else None
