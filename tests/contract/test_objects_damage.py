"""Journals of objects that were damaged or are long: what is mended, what is read, and what is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pipeline.errors import CheckpointCorrupt, StoreError
from pipeline.records.kinds import StepStarted
from pipeline.store.integrity import check
from pipeline.store.objects import keys
from pipeline.store.reader import load
from tests.contract.harm import BucketStore, account_of, bucket_of, open_bucket, segment_appends
from tests.journals import AT, StillClock, line, small_run, started
from tests.stores import ids, seqs, write


@pytest.fixture
def store(objects: str, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock)


def apart(store: BucketStore) -> str:
    """A run of which each record is an append."""
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    for seq, one in enumerate(lines[1:], 2):
        journal.append(seq, [one])
    journal.close()
    return run


def test_damaged_record_among_others_of_its_append_is_kept_aside(store: BucketStore) -> None:
    lines = small_run()
    run = write(store, lines)
    key = keys.journal(run, 2)
    bucket_of(store).put(key, b"".join([lines[1], lines[2].replace(b"seed", b"seet"), *lines[3:]]))
    assert seqs(store, run) == [1, 2, 4, 5, 6, 7]
    journal = store.open(run)
    (row,) = journal.repairs
    assert (row[:2], row[3]) == ((3, 3), "journal.damaged-1")
    kept = bucket_of(store).get(f"runs/{run}/x/journal.damaged-1")
    assert kept
    assert b"seet" in kept.data
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6, 7]


def test_records_that_the_head_knew_and_the_journal_lost_are_said(store: BucketStore) -> None:
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:5])
    journal.append(6, lines[5:])
    journal.write_head({"run_id": run, "seq": 7, "status": "in_progress"}, True)
    journal.close()
    bucket_of(store).delete([keys.journal(run, 6)])
    (head,) = store.heads()
    assert head.document["lost"] == "Records 6 to 7 are missing from the journal."
    assert [row[4] for row in store.open(run).repairs] == [
        "the journal is shorter than its head says: records were lost"
    ]


def test_run_whose_first_record_is_damaged_is_corrupt_and_left_alone(store: BucketStore) -> None:
    run = apart(store)
    bucket_of(store).put(keys.journal(run, 1), started()[:30])
    (head,) = store.heads()
    assert "first record" in head.corrupt
    before = [(entry.key, entry.etag) for entry in bucket_of(store).under(f"runs/{run}/j")]
    with pytest.raises(CheckpointCorrupt, match="first record"):
        store.open(run)
    assert [(entry.key, entry.etag) for entry in bucket_of(store).under(f"runs/{run}/j")] == before
    assert seqs(store, run) == [2, 3, 4, 5, 6, 7]


def test_damaged_blob_is_refused_and_stored_anew(store: BucketStore) -> None:
    run, journal = store.create(started(), [], at=AT)
    name = journal.put_blob(b"lesson")
    bucket_of(store).put(keys.object_key(f"runs/{run}/blobs/{name}"), b"junk")
    again = open_bucket(store.url, StillClock())
    with pytest.raises(CheckpointCorrupt):
        again.get_blob(run, name)
    journal.close()
    assert again.open(run).put_blob(b"lesson") == name
    assert again.get_blob(run, name) == b"lesson"


@pytest.fixture
def long(store: BucketStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of 30 records, with a segment every 8 appends."""
    segment_appends(monkeypatch, 8)
    run, journal = store.create(started(), [], at=AT)
    for seq in range(2, 22):
        journal.append(seq, [line(seq, StepStarted(f"s{seq}#1", version=seq))])
    journal.close()
    # Another owner goes on with the segment that the first one had begun.
    journal = store.open(run)
    for seq in range(22, 31):
        journal.append(seq, [line(seq, StepStarted(f"s{seq}#1", version=seq))])
    journal.close()
    return run


def test_long_run_is_read_by_segments(store: BucketStore, long: str) -> None:
    segments = [entry.key.rpartition("/")[2] for entry in bucket_of(store).under(f"runs/{long}/s")]
    assert segments == [f"{first:012d}-{first + 7:012d}" for first in (1, 9, 17)]
    again = open_bucket(store.url, StillClock())
    for after in (0, 1, 7, 8, 9, 16, 20, 24, 25, 29, 30):
        assert seqs(again, long, after) == list(range(after + 1, 31))
    journal = again.open(long)
    assert (journal.last_seq, journal.size) == (30, sum(len(one) + 1 for one in store.read(long)))


def test_damaged_segment_is_replaced_by_its_appends(store: BucketStore, long: str) -> None:
    bucket_of(store).put(keys.segment(long, 9, 16), b"junk")
    bucket_of(store).delete([keys.journal(long, 18)])
    again = open_bucket(store.url, StillClock())
    assert seqs(again, long) == list(range(1, 31))
    assert list(again.open(long).repairs) == []


def test_segment_that_is_gone_is_not_missed(store: BucketStore, long: str) -> None:
    bucket_of(store).delete([keys.segment(long, 9, 16)])
    again = open_bucket(store.url, StillClock())
    assert seqs(again, long) == list(range(1, 31))
    assert seqs(again, long, after=20) == list(range(21, 31))
    assert load(again, long).seq == 30


def test_long_run_that_is_repaired_again_and_again_is_read_whole(store: BucketStore, long: str) -> None:
    bucket, last = bucket_of(store), 30
    for damaged in (26, 40, 51, 63):
        bucket.put(keys.journal(long, damaged), b"junk\n")
        store = open_bucket(store.url, StillClock())
        journal = store.open(long)
        assert [row[0] for row in journal.repairs] == [damaged]
        # A number is used again where what it was given to was damaged at the end.
        last = journal.last_seq
        for seq in range(last + 1, last + 12):
            journal.append(seq, [line(seq, StepStarted(f"s{seq}#1", version=seq))])
        last += 11
        journal.close()
        for reader in (store, open_bucket(store.url, StillClock())):
            assert seqs(reader, long) == list(range(1, last + 1))
            assert seqs(reader, long, after=last - 5) == list(range(last - 4, last + 1))
        assert not [problem for problem in check(store, account_of(store)) if problem.serious]
    assert len([entry for entry in bucket.under(f"runs/{long}/x")]) == 4


def test_heads_are_in_the_keys_newest_first(store: BucketStore) -> None:
    names = ["20260109_143022", "20260109_143022_02", "20260109_143022_100", "20260109_143022_99", "20270101_000000",
             "a-run", "a-run.2", "Z", "x" * 128]  # fmt: skip
    for name in names:
        store.create_named(name, started(), at=AT + timedelta(days=1)).close()
    wanted = sorted(names, key=lambda name: (name[:15], len(name), name), reverse=True)
    assert ids(store) == wanted


def test_check_finds_what_is_damaged_in_a_bucket(store: BucketStore, long: str) -> None:
    def said() -> str:
        return "\n".join(problem.text for problem in check(store, account_of(store)))

    assert said() == ""
    bucket = bucket_of(store)
    bucket.put(keys.journal(long, 3), b"junk\n")
    assert f"{keys.journal(long, 3)}: 4 bytes are not a record." in said()
    bucket.put(keys.journal(long, 3), b"")
    assert f"{keys.journal(long, 3)} is empty." in said()
    bucket.put(keys.segment(long, 9, 16), b"junk")
    assert f"{keys.segment(long, 9, 16)} is damaged" in said()
    bucket.delete([keys.journal(long, 18)])
    assert f"{keys.segment(long, 17, 24)} differs from its appends" in said()
    bucket.delete([keys.journal(long, 26)])
    assert "Record 26 is missing from the journal" in said()
    bucket.put(keys.head(long), b"{...}")
    assert "Its head is damaged" in said()
    bucket.put(keys.lease(long), b"junk")
    assert "Its lease is damaged" in said()
    bucket.put("runs/20200101_000000/b/x", b"")
    assert "partly created or removed" in said()
    bucket.put("kept/20200101_000000", b"{")
    assert "kept/20200101_000000" in said()
    bucket.delete([keys.journal(long, 1), keys.segment(long, 1, 8)])
    assert "first append is missing" in said()
    # However damaged, it is nothing to be swept away.
    assert long not in store.sweep(AT + timedelta(days=9999))


def test_run_without_a_head_is_found_and_gets_one_again(store: BucketStore) -> None:
    run = apart(store)
    bucket_of(store).delete([keys.head(run)])
    assert ids(store) == []
    (problem,) = check(store, account_of(store))
    assert (problem.run, problem.text.partition(",")[0]) == (run, "Its head is missing")
    store.sweep(AT)
    assert ids(store) == [run]


def test_run_whose_removal_had_only_begun_is_no_fault(store: BucketStore) -> None:
    run = apart(store)
    bucket_of(store).put(keys.deleted(run), b"")
    (problem,) = check(store, account_of(store))
    assert (problem.run, problem.serious, "partly created or removed" in problem.text) == (run, False, True)
    assert store.sweep(AT + timedelta(days=9999)) == [run]
    assert (ids(store), list(check(store, account_of(store)))) == ([], [])


def test_run_that_is_half_removed_is_swept(store: BucketStore) -> None:
    run = apart(store)
    bucket_of(store).put(keys.deleted(run), b"")
    bucket_of(store).delete([keys.head(run), keys.journal(run, 1)])
    assert (ids(store), store.leftovers()) == ([], [run])
    assert store.sweep(AT + timedelta(days=9999)) == [run]
    assert not list(bucket_of(store).under("runs"))


def test_objects_of_others_below_the_prefix_are_no_runs_and_no_records(store: BucketStore) -> None:
    run = apart(store)
    for key in (
        f"runs/{run}/j/readme.txt",
        f"runs/{run}/s/x",
        "heads/zz",
        "heads/00-..",
        "account/notes",
        "runs/x y/z",
    ):
        bucket_of(store).put(key, b"{}", notes={"append": "many"})
    assert ids(store) == [run]
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6, 7]
    store.open(run).close()
    bucket_of(store).put("account/2026-01-09", b'{"a":["me","much"]}')
    with pytest.raises(StoreError, match="damaged"):
        account_of(store).total(AT.date())
    assert [problem.text for problem in check(store, account_of(store)) if not problem.run] == [
        "The account of 2026-01-09 is damaged: 'much' is not an amount of dollars. Bring the object account/2026-01-09 "
        "back from a copy of the store, or an older version of it."
    ]
