"""What a process leaves behind in a bucket: a journal that it closed, a run that it had half made or half removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.errors import RunLocked, RunNotFound, StoreError
from pipeline.records.kinds import StepStarted
from pipeline.store.objects import keys
from pipeline.store.owner import process
from tests.contract.harm import BucketStore, bucket_of, open_bucket
from tests.journals import AT, StillClock, line, started
from tests.stores import ids

NAME = "named"


@pytest.fixture
def store(objects: str, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock)


def more(store: BucketStore, run: str) -> int:
    """Own a run for one append; how many repairs its opening needed."""
    journal = store.open(run)
    seq = journal.last_seq + 1
    journal.append(seq, [line(seq, StepStarted(f"step{seq}"))])
    journal.write_head({"run_id": run, "seq": seq}, False)
    journal.close()
    return len(journal.repairs)


def test_journal_that_this_store_left_is_opened_without_a_listing(
    store: BucketStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    more(store, run)

    def under(key: str, after: str = "") -> Iterator[Any]:
        raise AssertionError(f"{key} is listed")

    with monkeypatch.context() as patched:
        patched.setattr(bucket_of(store), "under", under)
        patched.setattr(bucket_of(store), "names", under)
        for _ in range(3):
            more(store, run)
    assert [json.loads(one)["seq"] for one in store.read(run)] == [1, 2, 3, 4, 5]


def test_journal_that_another_owned_since_is_looked_through(store: BucketStore, clock: StillClock) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    for _ in range(3):
        more(store, run)
    assert more(open_bucket(store.url, clock), run) == 0
    bucket_of(store).put(keys.journal(run, 3), b"damaged")
    assert more(store, run) == 1
    assert [json.loads(one)["seq"] for one in store.read(run)] == [1, 2, 3, 4, 5, 6]


def test_journal_of_a_run_that_was_made_anew_is_not_the_one_that_was_left(
    store: BucketStore, clock: StillClock
) -> None:
    other = open_bucket(store.url, clock)
    for maker in (store, other):
        maker.create_named(NAME, started(), at=AT).close()
        more(maker, NAME)
        if maker is store:
            more(maker, NAME)
            other.delete(NAME)
    more(other, NAME)
    more(other, NAME)
    # As often owned as the one that is gone.
    more(store, NAME)
    assert [json.loads(one)["seq"] for one in store.read(NAME)] == [1, 2, 3, 4, 5]


def dead_owner() -> bytes:
    """The lease of a process of this host that is gone."""
    return json.dumps({**process(), "started": "0", "epoch": 1, "beat": 0, "id": "0" * 16}).encode()


def test_name_of_a_run_that_a_dead_process_had_half_made_is_free(store: BucketStore) -> None:
    bucket_of(store).put(keys.lease(NAME), dead_owner())
    bucket_of(store).put(keys.object_key(f"runs/{NAME}/blobs/{'0' * 64}"), b"value")
    bucket_of(store).put(keys.head(NAME), b"{}")
    with pytest.raises(RunNotFound):
        store.read(NAME)
    store.create_named(NAME, started(), at=AT).close()
    assert (ids(store), store.blobs(NAME)) == ([NAME], [])
    more(store, NAME)


def test_run_that_a_dead_process_had_half_removed_is_gone_and_its_name_free(store: BucketStore) -> None:
    store.create_named(NAME, started(), at=AT).close()
    more(store, NAME)
    bucket_of(store).put(keys.lease(NAME), dead_owner())
    bucket_of(store).put(keys.deleted(NAME), b"")
    bucket_of(store).delete([keys.head(NAME)])
    with pytest.raises(RunNotFound):
        store.read(NAME)
    with pytest.raises(RunNotFound):
        open_bucket(store.url, StillClock()).open(NAME)
    store.create_named(NAME, started(), at=AT).close()
    assert [json.loads(one)["seq"] for one in store.read(NAME)] == [1]


def test_name_of_a_run_that_is_just_being_made_is_waited_for(store: BucketStore) -> None:
    bucket_of(store).put(keys.lease(NAME), json.dumps({**process(), "epoch": 1, "beat": 0, "id": "1" * 16}).encode())
    with pytest.raises(RunLocked):
        store.create_named(NAME, started(), at=AT)


def test_name_of_a_run_that_is_there_is_taken(store: BucketStore) -> None:
    store.create_named(NAME, started(), at=AT).close()
    with pytest.raises(StoreError, match="the name is taken"):
        store.create_named(NAME, started(), at=AT)


def test_name_that_another_takes_at_the_same_moment_is_waited_for(
    store: BucketStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = bucket_of(store).put

    def too_late(key: str, data: bytes, *more: Any) -> str | None:
        if key == keys.lease(NAME) and bucket_of(store).get(key) is None:
            put(key, json.dumps({**process(), "epoch": 1, "beat": 0, "id": "1" * 16}).encode())
        return put(key, data, *more)

    monkeypatch.setattr(bucket_of(store), "put", too_late)
    with pytest.raises(RunLocked):
        store.create_named(NAME, started(), at=AT)
