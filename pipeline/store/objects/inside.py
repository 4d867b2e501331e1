"""What lies in a bucket of a run, and what of it is damaged. Never writes."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.store.head import sealed
from pipeline.store.names import split
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.lease import parse
from pipeline.store.objects.lines import FENCE, appends, exists, parts_of, sound, whole
from pipeline.store.packed import is_hash


def parts(bucket: Bucket, run: str) -> list[str]:
    """See store.base.Movable.parts."""
    run_id = split(run)[0]
    paths = (keys.part_path(f"/parts/{name}/") for name in bucket.names(f"{keys.RUNS}/{run_id}/parts"))
    return sorted(path for path in paths if path and exists(bucket, f"{run_id}/{path}"))


def blobs(bucket: Bucket, run: str) -> list[str]:
    """See store.base.Movable.blobs."""
    folder = f"{keys.RUNS}/{split(run)[0]}/b"
    names = (entry.key.removeprefix(f"{folder}/") for entry in bucket.under(folder, keys.first(folder)))
    return list(filter(is_hash, names))


def flaws(bucket: Bucket, run: str) -> Iterator[str]:
    """See store.base.Movable.flaws. Every append is read, also those that a segment stands for."""
    found = list(appends(bucket, run))
    if not found or keys.seq(found[0].key) != 1:
        yield "Its first append is missing."
    for entry, data in zip(found, bucket.fetch_all(found), strict=True):
        bad = sum(len(raw) for seq, raw in whole(data) if not seq)
        if not data:
            yield f"{entry.key} is empty."
        elif bad and not data.startswith(FENCE):
            yield f"{entry.key}: {bad} bytes are no record."
    yield from _segments(bucket, run)
    lease = bucket.get(keys.lease(run))
    if lease is not None and not parse(lease.data):
        yield "Its lease is damaged; whoever owns it next writes it anew."
    head = bucket.get(keys.head(run)) if "/" not in run else None
    if "/" not in run and head is None:
        yield "Its head is missing, so it is not listed; the next `cleanup` makes it again."
    elif head is not None and head.data != b"{}" and not sealed(head.data):
        yield "Its head is damaged; it is made afresh from the records."


def _segments(bucket: Bucket, run: str) -> Iterator[str]:
    for entry in bucket.under(f"{keys.home(run)}/s", keys.first(f"{keys.home(run)}/s")):
        if not keys.is_segment(entry.key):
            continue
        data = bucket.fetch(entry)
        if not sound(data, *keys.span(entry.key)):
            yield f"{entry.key} is damaged; the appends that it stands for are read instead."
        elif b"".join(map(bucket.fetch, parts_of(bucket, run, entry))) != data:
            yield f"{entry.key} is not what the appends say that it stands for; it is what is read."
