"""Servers that people have, and what is particular to some: the real rclone is refused, the real SeaweedFS is used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from http.client import HTTPConnection

import pytest

from pipeline.errors import RunLocked, StoreError
from pipeline.store.base import Journal
from pipeline.store.copies import copy
from pipeline.store.integrity import check
from pipeline.store.memory import MemoryStore
from pipeline.store.objects import keys
from tests.contract.harm import BucketStore, account_of, bucket_of, open_bucket
from tests.journals import AT, StillClock, small_run, started
from tests.servers.objects import Moto, environ
from tests.servers.real_objects import Rclone, Weed
from tests.stores import ids, seqs, write


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch, clock: StillClock) -> Callable[[Rclone | Weed], BucketStore]:
    """A store in a new bucket of a server."""

    def made(server: Rclone | Weed) -> BucketStore:
        for name, value in environ(server.endpoint).items():
            monkeypatch.setenv(name, value)
        return open_bucket(f"s3://{server.bucket()}/runs", clock)

    return made


def test_rclone_is_refused_since_it_ignores_conditional_puts(
    at: Callable[[Rclone | Weed], BucketStore], rclone: Rclone
) -> None:
    store = at(rclone)
    for verb in (lambda: store.create(started(), [], at=AT), lambda: store.create_named("a", started(), at=AT)):
        with pytest.raises(StoreError, match="ignores conditional puts") as caught:
            verb()
        assert "rclone" in caught.value.hint
    with pytest.raises(StoreError, match="ignores conditional puts"):
        account_of(store).reserve("me", Decimal(1), AT, Decimal(10))
    assert not list(bucket_of(store).under(""))


def test_seaweedfs_keeps_what_a_store_promises(at: Callable[[Rclone | Weed], BucketStore], weed: Weed) -> None:
    store = at(weed)
    lines = small_run()
    run = write(store, lines[:5])
    with ThreadPoolExecutor(4) as pool:
        journals = [journal for journal in pool.map(lambda _: opened(store, run), range(4)) if journal]
    (journal,) = journals
    journal.append(6, lines[5:])
    journal.close()
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6, 7]
    newer = write(store, small_run(), days=-1)
    assert ids(store) == [newer, run]
    assert list(check(store, account_of(store))) == []
    (row, _) = copy(store, MemoryStore(StillClock()), StillClock())
    assert (row.records, row.problem) == (7, "")
    store.delete(run)
    assert ids(store) == [newer]
    run, journal = store.create(started(), [], at=AT)
    journal.write_head({"run_id": run, "status": "as written", "seq": 1, "journal_bytes": journal.size}, True)
    journal.close()
    # It tells all records there are, so that none of them is read.
    assert [head.document["status"] for head in store.heads()][1] == "as written"


def opened(store: BucketStore, run: str) -> Journal | None:
    """The journal of a run, for one owner of several."""
    try:
        return open_bucket(store.url, StillClock()).open(run)
    except RunLocked:
        return None


@pytest.fixture
def store(objects: str, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock)


def test_frames_of_keys_are_short_enough_for_servers_that_keep_files(store: BucketStore) -> None:
    for length in (76, 80, 81, 83, 84, 128):
        store.create_named("x" * length, started(), at=AT).close()
    entries = list(bucket_of(store).under(""))
    assert max(len(frame) for entry in entries for frame in entry.key.split("/")) <= 255
    assert ids(store) == ["x" * length for length in (128, 84, 83, 81, 80, 76)]
    assert {keys.head_id(entry.key) for entry in bucket_of(store).under("heads")} == set(ids(store))


def test_run_with_folders_that_another_program_made_is_whole(store: BucketStore, moto: Moto) -> None:
    run = write(store, small_run())
    for name in ("", "/b", "/j", "/parts", "/x"):
        folder(store, moto, f"runs/{run}{name}")
    assert store.leftovers() == []
    assert store.sweep(AT + timedelta(days=9999)) == []
    assert ids(store) == [run]
    assert list(check(store, account_of(store))) == []
    store.open(run).close()


def folder(store: BucketStore, moto: Moto, name: str) -> None:
    """A folder as a web console or an s3fs makes it, and as SeaweedFS goes on naming it once its objects are gone."""
    with contextlib.closing(HTTPConnection(moto.endpoint.removeprefix("http://"))) as link:
        link.request("PUT", f"/{bucket_of(store).address.bucket}/runs/{name}/", b"")
        assert link.getresponse().status == 200


def test_folders_without_objects_are_neither_runs_nor_sub_journals(store: BucketStore, moto: Moto) -> None:
    run = write(store, small_run())
    for name in ("runs/20260101_000000", f"runs/{run}/parts/late-1", f"runs/{run}/parts/write"):
        folder(store, moto, name)
    assert {"late-1", "write"} <= set(bucket_of(store).names(f"runs/{run}/parts"))
    assert "20260101_000000" in bucket_of(store).names("runs")
    assert (store.leftovers(), store.parts(run)) == ([], [])
    store.open(run).close()
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6, 7]
    assert list(check(store, account_of(store))) == []
    assert store.sweep(AT + timedelta(days=9999)) == []
