"""Values of a run by their hash, in a table."""

from __future__ import annotations

from pipeline.records.values import digest
from pipeline.store.packed import is_hash, packed, unpacked, whole
from pipeline.store.sql.link import Link
from pipeline.store.sql.rows import as_bytes

#: A row that is there and damaged is written anew.
_PUT = (
    "INSERT INTO blobs (run_id, hash, data) VALUES (?, ?, ?)"
    " ON CONFLICT (run_id, hash) DO UPDATE SET data = excluded.data WHERE blobs.data <> excluded.data"
)


def put(link: Link, run_id: str, data: bytes) -> str:
    """Store bytes with a run; its hash."""
    blob = digest(data)
    link.run(_PUT, run_id, blob, packed(data))
    return blob


def get(link: Link, run_id: str, blob: str) -> bytes:
    """The bytes; verified.

    Raises:
        CheckpointCorrupt: Missing or damaged; names the hash.
    """
    if not is_hash(blob):
        return whole(blob, None)
    row = link.row("SELECT data FROM blobs WHERE run_id = ? AND hash = ?", run_id, blob)
    return whole(blob, unpacked(blob, as_bytes(row[0])) if row else None)
