"""Large values as objects, once each: zlib-compressed, named by the sha256 of what they hold."""

from __future__ import annotations

from pipeline.records.values import digest
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.packed import is_hash, packed, unpacked, whole


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
            key, stored = keys.blob(self._run, name), packed(data)
            if self._bucket.put_new(key, stored) is None and self._read(name) != data:
                self._bucket.put(key, stored)
            self._sound.add(name)
        return name

    def get(self, name: str) -> bytes:
        """The bytes of a hash, verified.

        Raises:
            CheckpointCorrupt: Missing or damaged.
            StoreError: The server cannot be asked.
        """
        return whole(name, self._read(name) if is_hash(name) else None)

    def _read(self, name: str) -> bytes | None:
        found = self._bucket.get(keys.blob(self._run, name))
        return unpacked(name, found.data) if found else None
