"""How many requests a store of objects makes: they follow what is asked for, not how many runs there are."""

from __future__ import annotations

from itertools import islice

import pytest

from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.store.head import head_bytes
from pipeline.store.objects import keys
from pipeline.store.objects.tail import head_notes
from tests.contract.harm import BucketStore, bucket_of, open_bucket
from tests.journals import StillClock, small_run
from tests.servers.objects import Proxy


@pytest.fixture
def store(objects: str, proxy: Proxy, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock)


def lay(store: BucketStore, first: int, count: int) -> None:
    """Runs as they lie there when they are done, without the requests of making them."""
    lines = small_run()
    state, size = fold("r", map(decode_line, lines)), sum(map(len, lines))
    for number in range(first, first + count):
        run = f"20260109_{number:06d}"
        document = {**head_document(state, size, ["seed"]), "run_id": run}
        bucket_of(store).put(keys.head(run), head_bytes(document), notes=head_notes(len(lines), 1))
        bucket_of(store).put(keys.journal(run, 1), b"".join(lines))
        bucket_of(store).put(keys.lease(run), b'{"epoch":1}')


def test_newest_runs_are_listed_with_as_many_requests_however_many_there_are(store: BucketStore, proxy: Proxy) -> None:
    counts = []
    for first, count in ((0, 24), (24, 24)):
        lay(store, first, count)
        proxy.seen.clear()
        newest = [head.run_id for head in islice(store.heads(), 8)]
        assert newest == [f"20260109_{number:06d}" for number in range(first + count - 1, first + count - 9, -1)]
        # A look is a read and a listing; those that are looked at together may be more than are wanted.
        assert sum("/j/" in seen for seen in proxy.seen) == 0
        counts.append(len(proxy.seen))
    assert counts[0] == counts[1] <= 1 + 2 * 21
