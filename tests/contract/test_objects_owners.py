"""Who owns a run in a bucket: leases, takeover, owners that wake up too late, and many who begin at once."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.errors import PipelineError, RunExists, RunLocked, StoreError, WriteFailed
from pipeline.records.fold import spent
from pipeline.records.kinds import StepStarted
from pipeline.records.lines import line_body, line_seq
from pipeline.store.backend import Fenced, Tail
from pipeline.store.base import Journal
from pipeline.store.head import head_bytes, parse_head
from pipeline.store.objects import keys
from pipeline.store.reader import load
from tests.contract.harm import (
    TTL_SECONDS,
    BucketStore,
    beat,
    bucket_of,
    confirm_always,
    epoch,
    from_elsewhere,
    open_bucket,
    prove,
    quick,
)
from tests.journals import AT, CLAIM, StillClock, line, small_run, started
from tests.servers.objects import Moto, Proxy
from tests.stores import ids, seqs, write
from tests.tiers import trials

TRIALS = trials(2, 8, 50)
RUN = "20260109_143022"


@pytest.fixture
def store(objects: str, proxy: Proxy, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock)


@pytest.fixture
def elsewhere(store: BucketStore, monkeypatch: pytest.MonkeyPatch) -> BucketStore:
    """The same store as a process on another host opens it."""
    other = open_bucket(store.url, StillClock())
    from_elsewhere(monkeypatch)
    return other


def apart(work: object) -> object:
    """What a function returns in another thread: there the host is this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()  # type: ignore[arg-type]


def test_owner_elsewhere_keeps_its_run_while_it_renews(elsewhere: BucketStore, store: BucketStore) -> None:
    write(store, small_run())
    journal = elsewhere.open(RUN)
    with pytest.raises(RunLocked, match="elsewhere") as caught:
        apart(lambda: store.open(RUN))
    assert f"free within {TTL_SECONDS} s" in caught.value.hint
    journal.close()
    apart(lambda: store.open(RUN).close())


def test_owner_elsewhere_last_heard_of_in_the_future_is_none(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy
) -> None:
    write(store, small_run())
    zombie = elsewhere.open(RUN)
    # The server's clock was a day ahead, and is right now.
    proxy.skew = timedelta(days=-1)
    assert not next(store.heads()).owned
    apart(lambda: store.open(RUN).close())
    zombie.close()


def test_owner_elsewhere_that_is_silent_for_two_beats_is_replaced(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy, clock: StillClock
) -> None:
    write(store, small_run())
    zombie = elsewhere.open(RUN)
    # What this host thinks of the time is nobody's business.
    clock.at += timedelta(days=300)
    with pytest.raises(RunLocked):
        apart(lambda: store.open(RUN))
    proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
    assert next(store.heads()).owned is False
    journal = store.open(RUN)
    with pytest.raises(WriteFailed, match="taken over") as caught:
        zombie.append(8, [line(8, StepStarted("lessons#1"))])
    assert caught.value.data["fatal"] is True
    journal.append(8, [line(8, StepStarted("publish#1"))])
    assert list(load(store, RUN).steps) == ["seed#1", "sow#1", "publish#1"]


def test_append_that_was_on_its_way_at_takeover_counts_or_is_refused(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy
) -> None:
    write(store, small_run())
    zombie = elsewhere.open(RUN)
    zombie.append(8, [line(8, StepStarted("lessons#1"))])
    proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
    assert store.open(RUN).last_seq == 8


@pytest.mark.parametrize("left", [True, False])
def test_reply_paid_for_by_an_owner_that_was_replaced_is_kept(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy, left: bool
) -> None:
    lines = small_run()
    write(store, lines[:5])
    zombie = elsewhere.open(RUN)
    proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
    journal = store.open(RUN)
    journal.append(6, [line(6, StepStarted("other#1"))])
    if left:
        journal.close()
    with pytest.raises(WriteFailed):
        zombie.append(6, [lines[5], line(7, StepStarted("lessons#1"))])
    zombie.close()
    journal.close()
    stored = list(store.read(RUN))
    assert [line_seq(one) for one in stored] == [1, 2, 3, 4, 5, 6, 7]
    assert line_body(stored[-1]) == line_body(lines[5])
    assert str(spent(load(store, RUN)).usd) == "1.85"
    assert not [entry for entry in bucket_of(store).under(f"runs/{RUN}/parts")]


def test_a_beat_keeps_the_lease_and_a_lost_one_is_noticed(store: BucketStore) -> None:
    run = write(store, small_run())
    journal, key = store.open(run), keys.lease(run)
    before = bucket_of(store).get(key)
    assert beat(journal)
    after = bucket_of(store).get(key)
    assert before
    assert after
    assert before.etag != after.etag
    bucket_of(store).put(key, b"{}")
    assert not beat(journal)
    journal.close()
    found = bucket_of(store).get(key)
    assert found
    assert found.data == b"{}"


def test_each_owner_has_a_higher_epoch(store: BucketStore) -> None:
    run = write(store, small_run())
    epochs = []
    for _ in range(3):
        journal = store.open(run)
        epochs.append(epoch(store, run))
        journal.close()
    assert epochs == [2, 3, 4]
    assert load(store, run).seq == 7
    assert next(store.heads()).document["seq"] == 7


def test_of_two_that_open_a_dead_owners_run_at_once_one_gets_it(store: BucketStore, moto: Moto) -> None:
    run = write(store, small_run())
    stores = [open_bucket(store.url, StillClock()) for _ in range(2)]
    gate = threading.Barrier(2)

    def race(each: BucketStore) -> str:
        gate.wait(60)
        try:
            journal = each.open(run)
        except RunLocked:
            return "locked"
        journal.append(journal.last_seq + 1, [line(journal.last_seq + 1, StepStarted("x#1"))])
        journal.close()
        return "owned"

    with ThreadPoolExecutor(2) as pool:
        for _ in range(TRIALS):
            assert "owned" in list(pool.map(race, stores))
    assert seqs(store, run) == list(range(1, len(list(store.read(run))) + 1))


def test_what_an_owner_was_told_is_durable_stays_so_while_it_is_replaced(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy
) -> None:
    write(store, small_run())
    for _ in range(max(TRIALS // 4, 2)):
        proxy.skew = timedelta()
        zombie = elsewhere.open(RUN)
        proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
        begun = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(keep_appending, zombie, "old", 80, begun)
            begun.wait(60)
            journal = store.open(RUN)
            told = keep_appending(journal, "new", 4, begun)
            told += working.result()
        journal.close()
        stored = list(store.read(RUN))
        assert [line_seq(one) for one in stored] == list(range(1, len(stored) + 1))
        assert [one for one in told if one not in stored] == []
        assert len(set(stored)) == len(stored)


def keep_appending(journal: Journal, who: str, most: int, begun: threading.Event) -> list[bytes]:
    """The lines that an owner was told are durable, until it is stopped."""
    told: list[bytes] = []
    try:
        for _ in range(most):
            seq = journal.last_seq + 1
            one = line(seq, StepStarted(f"{who}.{seq}#1"))
            journal.append(seq, [one])
            told.append(one.rstrip())
            begun.set()
    except WriteFailed:
        pass
    return told


def test_two_writers_of_one_number_never_both_win(store: BucketStore) -> None:
    bucket = bucket_of(store)
    with ThreadPoolExecutor(2) as pool:
        for seq in range(2 * TRIALS):
            puts = [pool.submit(bucket.put, f"runs/x/j/{seq}", data, "") for data in (b"one", b"two")]
            assert sum(put.result() is not None for put in puts) == 1


def test_of_many_that_begin_a_course_at_once_one_does(objects: str) -> None:
    def begin(_: int) -> str:
        try:
            run, journal = open_bucket(objects, StillClock()).create(started(CLAIM), [], at=AT, claim=CLAIM)
        except RunExists as error:
            return f"refused {error.data['run']}"
        journal.close()
        return run

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(begin, range(8)))
    store = open_bucket(objects, StillClock())
    (run,) = ids(store)
    assert sorted(said) == [run, *[f"refused {run}"] * 7]


def test_runs_of_one_second_get_names_of_their_own(objects: str) -> None:
    def begin(_: int) -> str:
        run, journal = open_bucket(objects, StillClock()).create(started(), [b"graph"], at=AT)
        journal.close()
        return run

    with ThreadPoolExecutor(4) as pool:
        names = set(pool.map(begin, range(6)))
    assert len(names) == 6
    assert names == set(ids(open_bucket(objects, StillClock())))


def test_run_whose_creation_was_cut_off_is_not_listed_and_is_swept(store: BucketStore, proxy: Proxy) -> None:
    prove(store)
    proxy.mishap = lambda method, path: "400" if method == "POST" or "/j/" in path else ""
    with pytest.raises(PipelineError):
        store.create(started(), [b"graph"], at=AT)
    proxy.mishap = lambda method, path: ""
    assert ids(store) == []
    later = bucket_of(store).server_now()
    assert later is not None
    assert store.sweep(later - timedelta(days=1)) == []
    whole = write(store, small_run())
    assert store.sweep(later + timedelta(days=1)) == [RUN]
    assert ids(store) == [whole]


def test_owner_that_leaves_while_the_server_is_away_says_so_later(
    store: BucketStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    run, journal = store.create(started(), [], at=AT)
    proxy.mishap = lambda method, path: "403"
    journal.close()
    proxy.mishap = lambda method, path: ""
    never = threading.Event()
    for _ in range(3000):
        found = bucket_of(store).get(keys.lease(run))
        if found is not None and "pid" not in json.loads(found.data):
            return
        never.wait(0.02)
    raise AssertionError("it is still owned")


def head_of(store: BucketStore) -> dict[str, object]:
    """The head as the bucket has it, whatever the records say."""
    found = bucket_of(store).get(keys.head(RUN))
    assert found
    return parse_head(found.data) or {}


@pytest.mark.parametrize("late", [False, True], ids=["sent after the takeover", "arrives after the takeover"])
def test_head_of_an_owner_that_was_replaced_changes_nothing(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy, late: bool
) -> None:
    write(store, small_run())
    zombie = elsewhere.open(RUN)
    zombie.write_head({"status": "in_progress", "seq": 7}, durable=True)
    proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
    journal = store.open(RUN)
    if late:
        bucket_of(store).put(keys.head(RUN), head_bytes({"status": "failed", "seq": 7}))
    else:
        # Its lease is over, and it does not know that yet.
        zombie.write_head({"status": "failed", "seq": 7}, durable=True)
        assert head_of(store)["status"] == "in_progress"
    journal.append(8, [line(8, StepStarted("publish#1"))])
    journal.write_head({"status": "in_progress", "seq": 8}, durable=True)
    zombie.write_head({"status": "failed", "seq": 7}, durable=True)
    assert head_of(store) == {"status": "in_progress", "seq": 8}


def test_head_that_arrives_while_a_run_is_taken_over_changes_nothing(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy
) -> None:
    write(store, small_run())
    zombie = elsewhere.open(RUN)
    zombie.write_head({"status": "in_progress", "seq": 7}, durable=True)
    proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
    written: list[str] = []

    def meanwhile(method: str, path: str) -> str:
        if method == "PUT" and "/j/" in path and not written:
            written.append(path)
            zombie.write_head({"status": "failed", "seq": 7}, durable=True)
        return ""

    proxy.mishap = meanwhile
    journal = store.open(RUN)
    assert written
    assert head_of(store)["status"] == "in_progress"
    journal.close()


def test_run_that_is_removed_under_its_owner_takes_nothing_more(
    store: BucketStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirm_always(monkeypatch)
    run, journal = store.create(started(), [], at=AT)

    def left() -> list[str]:
        return [each.key for under in (keys.RUNS, keys.HEADS) for each in bucket_of(store).under(under)]

    bucket_of(store).delete(left())
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, small_run()[1:2])
    assert caught.value.data["gone"]
    assert run in Path(caught.value.data["emergency"]).read_text()
    journal.write_head({"status": "failed"}, durable=True)
    journal.close()
    assert left() == []


def fenced(verb: Callable[[], object]) -> bool:
    try:
        verb()
    except Fenced:
        return True
    return False


@pytest.mark.parametrize("name", [RUN, f"{RUN}/part", ".claims/0123456789abcdef"])
def test_nothing_that_an_owner_writes_after_a_takeover_counts(
    elsewhere: BucketStore, store: BucketStore, proxy: Proxy, name: str
) -> None:
    write(store, small_run())
    zombie = elsewhere.backend.own(name, AT)
    assert zombie
    proxy.skew = timedelta(seconds=TTL_SECONDS + 2)
    owner = apart(lambda: store.backend.own(name, AT))
    assert isinstance(owner, Tail)
    before = {entry.key: entry.etag for entry in bucket_of(store).under("")}
    lines = small_run()
    assert fenced(lambda: zombie.rewrite(lines[:1]))
    if name == RUN:
        assert fenced(lambda: zombie.append(8, [line(8, StepStarted("x#1"))], True))
        assert fenced(lambda: zombie.head(b"{}", True))
    zombie.release()
    assert {entry.key: entry.etag for entry in bucket_of(store).under("")} == before
    owner.renew()
    owner.release()


def test_owner_whose_beat_was_not_answered_keeps_its_run(store: BucketStore, proxy: Proxy) -> None:
    run = write(store, small_run())
    tail = open_bucket(store.url, StillClock(), retries=0).backend.own(run, AT)
    assert tail
    for what in ("lost", "cut", "503"):
        proxy.mishap = lambda method, path, what=what: what if method == "PUT" and "lease" in path else ""  # type: ignore[misc]
        with contextlib.suppress(StoreError):
            tail.renew()
        proxy.mishap = lambda method, path: ""
        tail.renew()
    tail.append(8, [line(8, StepStarted("x#1"))], True)
    tail.release()
