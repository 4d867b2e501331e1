"""Values as every store keeps them: compressed, named by the sha256 of what they hold, verified when they are read."""

from __future__ import annotations

import re
import zlib

from pipeline.errors import CheckpointCorrupt
from pipeline.records.values import digest

_HASH = re.compile(r"[0-9a-f]{64}")
#: Fast rather than small: values are written while a run waits.
_LEVEL = 1


def is_hash(blob: str) -> bool:
    """Whether a value can have this name."""
    return _HASH.fullmatch(blob) is not None


def packed(data: bytes) -> bytes:
    """What is stored of a value."""
    return zlib.compress(data, _LEVEL)


def unpacked(blob: str, stored: bytes | None) -> bytes | None:
    """The value of a name out of what is stored; None if nothing is, or something else."""
    if stored is None:
        return None
    try:
        data = zlib.decompress(stored)
    except zlib.error:
        return None
    return data if digest(data) == blob else None


def whole(blob: str, data: bytes | None) -> bytes:
    """The value, which has to be there.

    Raises:
        CheckpointCorrupt: It is missing or damaged; names the hash.
    """
    if data is None:
        raise CheckpointCorrupt(f"The stored value {blob} is missing or damaged.", blob=blob)
    return data
