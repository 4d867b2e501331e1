"""Values of a run by their hash, compressed."""

from __future__ import annotations

import contextlib
import zlib

from pipeline.errors import CheckpointCorrupt
from pipeline.records.values import digest
from pipeline.store.sql.database import Link

_FAST = 1


def put(link: Link, run_id: str, data: bytes) -> str:
    """Store bytes with a run; the same bytes cost nothing."""
    blob = digest(data)
    sql = "INSERT INTO blobs (run_id, hash, data) VALUES (?, ?, ?) ON CONFLICT (run_id, hash) DO NOTHING"
    link.run(sql, run_id, blob, zlib.compress(data, _FAST))
    return blob


def get(link: Link, run_id: str, blob: str) -> bytes:
    """The bytes; verified.

    Raises:
        CheckpointCorrupt: Missing or damaged; names the hash.
    """
    if "\0" not in blob:
        row = link.row("SELECT data FROM blobs WHERE run_id = ? AND hash = ?", run_id, blob)
        with contextlib.suppress(zlib.error):
            data = zlib.decompress(bytes(row[0])) if row else None
            if data is not None and digest(data) == blob:
                return data
    raise CheckpointCorrupt(f"The stored value {blob} is missing or damaged.", blob=blob)
