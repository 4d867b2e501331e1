"""What a store of objects does when its server or the network between does not do what it should."""

from __future__ import annotations

import contextlib
import socket
from decimal import Decimal
from itertools import islice
from pathlib import Path

import pytest

from pipeline.errors import ConfigError, StoreError, WriteFailed
from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.kinds import StepStarted
from pipeline.store.head import head_bytes
from pipeline.store.objects import bucket as buckets
from pipeline.store.objects import keys
from pipeline.store.objects.tail import head_notes
from pipeline.store.recovery import recover
from tests.contract.harm import BucketStore, account_of, bucket_of, open_bucket
from tests.journals import AT, StillClock, line, small_run, started
from tests.servers.objects import Mishap, Proxy
from tests.stores import ids, seqs, write


@pytest.fixture
def store(objects: str, proxy: Proxy, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock, retries=2)


def first(count: int, what: str, part: str = "/j/", verb: str = "PUT") -> Mishap:
    """The first `count` such requests go wrong."""
    left = [count]

    def mishap(method: str, path: str) -> str:
        if method == verb and part in path and left[0]:
            left[0] -= 1
            return what
        return ""

    return mishap


def test_server_that_ignores_conditions_is_refused(store: BucketStore, proxy: Proxy) -> None:
    run = write(open_bucket(store.url, StillClock()), small_run())
    proxy.ignores_conditions = True
    for verb in (lambda: store.create(started(), [], at=AT), lambda: store.open(run)):
        with pytest.raises(StoreError, match="ignores conditional puts") as caught:
            verb()
        assert "another --store" in caught.value.hint
    with pytest.raises(StoreError, match="ignores conditional puts"):
        account_of(store).reserve("me", Decimal(1), AT, Decimal(10))
    assert ids(store) == [run]
    assert not list(bucket_of(store).under("proof"))


@pytest.mark.parametrize("what", ["lost", "cut", "503", "500", "409"])
def test_append_goes_through_a_passing_fault_once(store: BucketStore, proxy: Proxy, what: str) -> None:
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    proxy.mishap = first(1, what)
    journal.append(2, lines[1:4])
    journal.append(5, lines[4:])
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6, 7]
    journal.close()
    assert store.open(run).last_seq == 7


def test_append_is_looked_for_where_no_answer_ever_comes(store: BucketStore, proxy: Proxy) -> None:
    run, journal = store.create(started(), [], at=AT)
    proxy.mishap = first(99, "lost")
    journal.append(2, [line(2, StepStarted("seed#1"))])
    assert seqs(store, run) == [1, 2]


def test_records_that_the_server_never_takes_are_kept_here_and_recovered(
    store: BucketStore, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    proxy.mishap = first(99, "503", part="/runs-")
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, lines[1:5])
    with pytest.raises(WriteFailed) as later:
        journal.append(6, lines[5:6])
    assert (caught.value.code, later.value.code) == ("write_unsure", "journal_closed")
    journal.close()
    proxy.mishap = lambda method, path: ""
    error = caught.value
    assert error.data["fatal"] is True
    assert error.data["emergency"] in error.hint
    assert seqs(store, run) == [1]
    assert recover(store, run, Path(error.data["emergency"])) == 5
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6]


def test_blob_goes_through_a_lost_answer(store: BucketStore, proxy: Proxy) -> None:
    run, journal = store.create(started(), [], at=AT)
    proxy.mishap = first(1, "lost", part="/b/")
    assert store.get_blob(run, journal.put_blob(b"lesson")) == b"lesson"


def test_reservation_whose_answer_is_lost_counts_once(store: BucketStore, proxy: Proxy) -> None:
    account = account_of(store)
    proxy.mishap = first(1, "lost", part="/account/")
    assert account.reserve("me", Decimal(3), AT, Decimal(10))
    assert account.total(AT.date()) == 3


def test_server_that_is_not_there_is_said_without_credentials(
    objects: str, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-nobody")
    store = open_bucket(objects, clock, retries=0)
    for verb in (lambda: ids(store), lambda: store.create(started(), [], at=AT), lambda: store.read("20260109_143022")):
        with pytest.raises(StoreError, match="could not be reached") as caught:
            verb()
        assert "a-secret-of-nobody" not in f"{caught.value} {caught.value.hint} {caught.value.data}"
        assert caught.value.__cause__ is None


def test_silent_server_is_asked_twice_and_then_left_alone(
    objects: str, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(buckets, "_AGAIN_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        store = open_bucket(objects, clock)
        make = lambda: store.create(started(), [], at=AT)  # noqa: E731
        for verb, times in ((lambda: ids(store), 1), (make, 2), (make, 0), (lambda: ids(store), 0)):
            with pytest.raises(StoreError, match="did not answer in time"):
                verb()
            asked = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    silent.accept()[0].close()
                    asked += 1
            assert asked == times


def test_bucket_that_is_not_there_is_named(objects: str, clock: StillClock) -> None:
    store = open_bucket("s3://no-such-bucket/runs", clock)
    with pytest.raises(StoreError, match="no bucket no-such-bucket"):
        store.create(started(), [], at=AT)
    with pytest.raises(StoreError, match="no bucket no-such-bucket"):
        ids(store)


def test_refused_credential_is_said(store: BucketStore, proxy: Proxy) -> None:
    proxy.mishap = lambda method, path: "403"
    with pytest.raises(StoreError, match=r"refuses the credential \(SlowDown\)") as caught:
        ids(store)
    assert "AWS_ACCESS_KEY_ID" in caught.value.hint


def test_extra_that_is_not_installed_is_named(objects: str, clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(ConfigError, match="obstore") as caught:
        open_bucket(objects, clock)
    assert "install objects" in caught.value.hint


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
