"""How a new owner makes a journal its own: nobody before it can append any more, what is damaged is mended."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from typing import Any

from pipeline.errors import StoreError
from pipeline.store.head import head_bytes, parse_head, scan_int, sealed
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.journal import End
from pipeline.store.objects.lease import Lease
from pipeline.store.objects.lines import FENCE, appends, whole
from pipeline.store.objects.survey import Survey, mend, survey
from pipeline.store.repair import Repair, lost_since
from pipeline.store.view import first_problem

_TRIES = 100
#: How many numbers further on an owner that still appends is stopped, at first.
_AHEAD = 8


def take_over(bucket: Bucket, run: str, lease: Lease) -> tuple[End, str, Sequence[Sequence[Any]]]:
    """Fence out whoever wrote before, and mend: where the journal ends, the head's etag, and what was lost.

    Raises:
        CheckpointCorrupt, SchemaTooNew: The run cannot be resumed; nothing was mended.
        WriteFailed: The server does not answer.
    """
    found, said = _fence(bucket, run, lease)
    end = found.end
    if not end.last_append and end.last_seq:
        found_there = [keys.seq(entry.key) for entry in appends(bucket, run)]
        end.last_append = max((seq for seq in found_there if seq <= end.last_seq), default=0)
    etag, loss = _head(bucket, run, lease, end.last_seq)
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
        last = found.end.last_seq
        seq, etag = _place(bucket, run, lease, last + 1, found.end.fence)
        if seq != last + 1:
            # Whoever owned it before was still appending.
            found = survey(bucket, run)
        if found.end.last_seq == seq - 1:
            found.end.fence = etag
            return found, said
    raise _busy(run)


def _place(bucket: Bucket, run: str, lease: Lease, seq: int, before: str) -> tuple[int, str]:
    """Put a fence where the journal ends, at `seq` or behind it; the seq and etag of the fence.

    Who still appends may do so faster than its end can be found, so a fence further on stops it.
    """
    ahead, barriers = _AHEAD, dict[int, str]()
    try:
        for _ in range(_TRIES):
            if seq in barriers:
                return seq, barriers.pop(seq)
            key = keys.journal(run, seq)
            etag = bucket.put_over(key, _text(lease), before) if before else bucket.put_new(key, _text(lease))
            if etag is not None:
                return seq, etag
            if max(barriers, default=0) < seq:
                etag = bucket.put_new(keys.journal(run, seq + ahead), _text(lease))
                if etag is not None:
                    barriers[seq + ahead] = etag
                ahead *= 2
            seq, before = _next(bucket, run, seq, barriers)
    finally:
        bucket.delete([keys.journal(run, each) for each in barriers])
    raise _busy(run)


def _next(bucket: Bucket, run: str, seq: int, barriers: Collection[int]) -> tuple[int, str]:
    """Where the next append belongs, at `seq` or behind it, and the etag of the fence that is there, if any."""
    found = [entry for entry in appends(bucket, run, seq - 1) if keys.seq(entry.key) not in barriers]
    if not found:
        return seq, ""
    data = bucket.fetch(found[-1])
    if data.startswith(FENCE):
        return keys.seq(found[-1].key), found[-1].etag
    return max((number for number, _ in whole(data)), default=seq) + 1, ""


def _text(lease: Lease) -> bytes:
    return FENCE + f"epoch {lease.epoch} {os.urandom(8).hex()}\n".encode()


def _busy(run: str) -> StoreError:
    return StoreError(f"Run {run} is written to all the time by another process.", hint="Try again.", run=run)


def _head(bucket: Bucket, run: str, lease: Lease, last_seq: int) -> tuple[str, list[Repair]]:
    """The head's etag, which no other owner knows, and what it knows of and the journal lacks."""
    if "/" in run:
        return "", []
    for _ in range(_TRIES):
        found = bucket.get(keys.head(run))
        if found is None:
            return bucket.put_new(keys.head(run), b"{}") or "", []
        seen = scan_int(found.data, "seq") if sealed(found.data) else 0
        loss = lost_since(last_seq, seen, "its head")
        if not lease.contested:
            return found.etag, loss
        # The same head in other bytes: who had the run before cannot replace it any more.
        document = {**(parse_head(found.data) or {}), "owner_epoch": lease.epoch}
        data = head_bytes(document) if sealed(found.data) else json.dumps({"owner_epoch": lease.epoch}).encode()
        if (etag := bucket.put_over(keys.head(run), data, found.etag, found.notes)) is not None:
            return etag, loss
    raise _busy(run)
