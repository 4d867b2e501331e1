"""Whether the server keeps its word: a put that is to fail must fail. One that ignores conditions loses records."""

from __future__ import annotations

import os

from pipeline.errors import StoreError
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket

_HINT = (
    "Two owners of one run could overwrite each other's records there. Take a server with conditional writes (AWS S3, "
    "SeaweedFS, MinIO, Ceph, R2; not `rclone serve s3`), or another --store."
)


def prove(bucket: Bucket) -> None:
    """Create an object twice, and change it under an etag that it has not.

    Raises:
        StoreError: The server did either; nothing is kept there.
        WriteFailed: It cannot be written to.
    """
    key = f"{keys.PROOF}/{os.urandom(8).hex()}"
    bucket.put_new(key, b"first")
    try:
        if bucket.put_new(key, b"second") is not None:
            raise _refused("writes an object over an existing one though it was told to only create it")
        if bucket.put_over(key, b"third", '"00000000000000000000000000000000"') is not None:
            raise _refused("changes an object though it is not the one that was read")
    finally:
        bucket.delete([key])


def _refused(what: str) -> StoreError:
    return StoreError(f"The object server {what} (it ignores conditional puts).", hint=_HINT)
