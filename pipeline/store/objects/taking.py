"""How a new owner makes a journal its own: nobody before it can append any more, what is damaged is mended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pipeline.errors import StoreError
from pipeline.store.head import scan_int, sealed
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.journal import End
from pipeline.store.objects.lease import Lease
from pipeline.store.objects.lines import FENCE
from pipeline.store.objects.survey import Survey, mend, survey
from pipeline.store.repair import Repair
from pipeline.store.view import first_problem

_TRIES = 100


def take_over(bucket: Bucket, run: str, lease: Lease) -> tuple[End, str, Sequence[Sequence[Any]]]:
    """Fence out whoever wrote before, and mend: where the journal ends, the head's etag, and what was lost.

    Raises:
        CheckpointCorrupt, SchemaTooNew: The run cannot be resumed; nothing was mended.
        WriteFailed: The server does not answer.
    """
    found, said = _fence(bucket, run, lease)
    end = found.end
    if not end.last_append and end.last_seq:
        appends = list(bucket.under(f"{keys.home(run)}/j"))
        end.last_append = max(keys.seq(entry.key) for entry in appends if keys.seq(entry.key) <= end.last_seq)
    etag, loss = _head(bucket, run, end.last_seq)
    return end, etag, [*said, *loss]


def _fence(bucket: Bucket, run: str, lease: Lease) -> tuple[Survey, list[Repair]]:
    """Take the place of the next append, so that only this owner can write it."""
    said: list[Repair] = []
    for _ in range(_TRIES):
        found = survey(bucket, run)
        problem = None if "/" in run else first_problem(found.first)
        if problem is not None:
            problem.args = (f"Run {run} cannot be opened. {problem.message}",)
            raise problem
        if found.middle or found.torn:
            said += mend(bucket, run, found)
            continue
        key = keys.journal(run, found.end.last_seq + 1)
        text = FENCE + f"epoch {lease.epoch} {os.urandom(8).hex()}\n".encode()
        before = found.end.fence
        etag = bucket.put_over(key, text, before) if before else bucket.put_new(key, text)
        if etag is not None:
            found.end.fence = etag
            return found, said
        # Whoever owned it before has just appended: look again.
    raise StoreError(f"Run {run} is written to all the time by another process.", run=run)


def _head(bucket: Bucket, run: str, last_seq: int) -> tuple[str, list[Repair]]:
    """The head's etag; a head is written after its records are durable, so what it knows of was lost later."""
    if "/" in run:
        return "", []
    found = bucket.get(keys.head(run))
    if found is None:
        return bucket.put_new(keys.head(run), b"{}") or "", []
    seen = scan_int(found.data, "seq") if sealed(found.data) else 0
    if seen <= last_seq:
        return found.etag, []
    reason = "the journal is shorter than its head says: records were lost"
    return found.etag, [Repair(last_seq + 1, seen, 0, "", reason)]
