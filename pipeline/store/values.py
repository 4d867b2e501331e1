"""Large values of a run, once each: compressed, named by the sha256 of what they hold, verified when they are read."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from itertools import islice

from pipeline.errors import CheckpointCorrupt, WriteFailed
from pipeline.records.values import digest
from pipeline.store.backend import Backend, Tail

_HASH = re.compile(r"[0-9a-f]{64}")
#: Fast rather than small: values are written while a run waits.
_LEVEL = 1


def is_hash(name: str) -> bool:
    """Return whether a value can have this name."""
    return _HASH.fullmatch(name) is not None


def packed(data: bytes) -> bytes:
    """Return what is stored of a value."""
    return zlib.compress(data, _LEVEL)


def unpacked(name: str, stored: bytes | None) -> bytes:
    """Return the value of a name out of what is stored.

    Raises:
        CheckpointCorrupt: Nothing is, or something else; names the hash.
    """
    try:
        data = zlib.decompress(stored or b"")
    except zlib.error:
        data = b""
    if stored is None or digest(data) != name:
        raise CheckpointCorrupt(f"The stored value {name} is missing or damaged.", blob=name, code="value_corrupt")
    return data


class RunValues:
    """The values of one run, which its parts share."""

    def __init__(self, backend: Backend, run_id: str) -> None:
        self._backend = backend
        self._folder = f"runs/{run_id}/blobs/"
        #: Names of what this process has written or found whole.
        self._sound: set[str] = set()

    def put(self, tail: Tail, data: bytes) -> str:
        """Store a value as its owner, and return its name; durable on return. The same bytes cost nothing.

        Raises:
            Gone.
            WriteFailed: It could not be stored.
        """
        name = digest(data)
        if name not in self._sound:
            try:
                tail.put(self._folder + name, packed(data))
            except OSError as error:
                why = error.strerror or error
                text = f"A value could not be stored: {why}."
                raise WriteFailed(text, code="value_refused", fatal=False, blob=name) from error
            self._sound.add(name)
        return name

    def put_all(self, tail: Tail, values: Iterable[bytes]) -> None:
        """Store values, several at a time where the backend answers over a network; few are in memory at once."""
        most = self._backend.at_once
        if most < 2:
            for data in values:
                self.put(tail, data)
            return
        from concurrent.futures import ThreadPoolExecutor

        waiting = iter(values)
        with ThreadPoolExecutor(most) as pool:
            while some := list(islice(waiting, most)):
                list(pool.map(lambda data: self.put(tail, data), some))

    def get(self, name: str) -> bytes:
        """Return a value, verified.

        Raises:
            CheckpointCorrupt: It is missing or damaged; names the hash.
            StoreError: A server cannot be asked.
        """
        try:
            found = self._backend.get(self._folder + name) if is_hash(name) else None
        except OSError:
            found = None
        return unpacked(name, found[0] if found else None)

    def names(self) -> list[str]:
        return sorted(name for key in self._backend.list(self._folder) if is_hash(name := key[len(self._folder) :]))
