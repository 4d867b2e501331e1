"""What every store promises of one run, also a folder that is itself the run; the same tests over each."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import pytest

from pipeline.errors import (
    CheckpointCorrupt,
    RunLocked,
    RunNotFound,
    SchemaTooNew,
    StoreError,
    WriteFailed,
)
from pipeline.records.codec import decode_line
from pipeline.records.kinds import StepStarted
from pipeline.records.lines import line_seq
from pipeline.records.values import digest
from pipeline.store.base import Store
from pipeline.store.reader import load, records
from tests.journals import AT, line, small_run, started
from tests.stores import ids, seqs, write


@pytest.fixture
def store(run_store: Store) -> Store:
    return run_store


def test_created_run_has_its_first_record_and_its_blobs(store: Store) -> None:
    run, journal = store.create(started(), [b"graph", b"prompt"], at=AT)
    assert [decode_line(one) for one in store.read(run)] == [decode_line(started())]
    assert store.get_blob(run, digest(b"prompt")) == journal.get_blob(digest(b"prompt")) == b"prompt"
    assert journal.last_seq == 1


def test_created_run_is_owned_by_its_creator(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    with pytest.raises(RunLocked, match=str(os.getpid())):
        store.open(run)
    journal.close()
    store.open(run).close()


def test_appended_lines_are_read_in_order(store: Store) -> None:
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:3])
    journal.append(4, lines[3:4], sync=False)
    assert seqs(store, run) == [1, 2, 3, 4]
    assert seqs(store, run, after=2) == [3, 4]
    assert list(store.read(run, after=4)) == []
    assert (journal.last_seq, journal.size) == (4, sum(map(len, lines[:4])))


def test_the_same_lines_again_are_nothing_new(store: Store) -> None:
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:4])
    journal.append(3, lines[2:4])
    journal.append(3, lines[2:6])
    assert seqs(store, run) == [1, 2, 3, 4, 5, 6]


def test_another_fact_under_a_used_number_is_refused(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [line(2, StepStarted("seed#1"))])
    with pytest.raises(StoreError, match="another fact"):
        journal.append(2, [line(2, StepStarted("sow#1"))])
    assert len(list(store.read(run))) == 2


def test_a_hole_in_the_numbers_is_refused(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    with pytest.raises(StoreError, match="cannot follow"):
        journal.append(3, [line(3, StepStarted("seed#1"))])
    assert len(list(store.read(run))) == 1


def test_closed_journal_takes_nothing(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    journal.close()
    with pytest.raises(WriteFailed):
        journal.append(2, [line(2, StepStarted("seed#1"))])
    with pytest.raises(WriteFailed):
        journal.put_blob(b"x")
    journal.write_head({"status": "failed"}, True)
    assert len(list(store.read(run))) == 1
    assert next(store.heads()).document["status"] == "in_progress"


def test_a_clock_that_steps_back_does_not_reorder_records(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    for seq in (2, 3, 4):
        journal.append(seq, [line(seq, StepStarted(f"s{seq}#1"), at=AT - timedelta(hours=seq))])
    assert [record.seq for record in records(store, run)] == [1, 2, 3, 4]
    assert list(load(store, run).steps) == ["s2#1", "s3#1", "s4#1"]


def test_one_record_of_many_is_found(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [line(seq, StepStarted(f"s{seq}#1", version=seq)) for seq in range(2, 3002)])
    for seq in (1, 2, 77, 1500, 3000, 3001):
        assert line_seq(next(iter(store.read(run, after=seq - 1)))) == seq


def test_reopened_journal_goes_on_where_it_was(store: Store) -> None:
    lines = small_run()
    run = write(store, lines[:4])
    journal = store.open(run)
    assert (journal.last_seq, list(journal.repairs), journal.strained) == (4, [], False)
    journal.append(5, lines[4:])
    assert load(store, run).seq == 7


def test_blobs_are_named_by_content(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    large = b"\0lesson\xff" * 700_000
    assert journal.put_blob(large) == journal.put_blob(large) == digest(large)
    assert store.get_blob(run, digest(large)) == large
    assert journal.get_blob(journal.put_blob(b"")) == b""


@pytest.mark.parametrize("blob", [digest(b"never stored"), "../../../etc/passwd", "", "ab"])
def test_a_blob_that_is_not_there_is_named(store: Store, blob: str) -> None:
    run, journal = store.create(started(), [], at=AT)
    with pytest.raises(CheckpointCorrupt) as caught:
        journal.get_blob(blob)
    assert caught.value.data["blob"] == blob
    with pytest.raises(CheckpointCorrupt):
        store.get_blob(run, blob)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/etc", ".new-1", "no such", "a/../b", "a//b", "a/", "a/\0", "x" * 200, "20991231"]
)
def test_impossible_and_unknown_names_are_not_found(store: Store, name: str) -> None:
    verbs: list[Callable[[str], object]] = [
        store.open, store.read, store.delete, lambda run: store.get_blob(run, digest(b""))
    ]  # fmt: skip
    for verb in verbs:
        with pytest.raises(RunNotFound):
            verb(name)


def test_head_is_shown_as_written_while_it_is_up_to_date(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    newer = {"a newer key": {"x": [1, {"ü": "\ud800"}]}, "lines": [{"a": '\n  "'}]}
    document = {"run_id": run, "status": "failed", **newer, "seq": 1, "journal_bytes": journal.size}
    journal.write_head(document, False)
    assert dict(next(store.heads()).document) == document


@pytest.mark.parametrize("head", [True, False])
def test_head_follows_a_journal_that_is_longer(store: Store, head: bool) -> None:
    lines = small_run()
    run = write(store, lines[:3], head=head)
    journal = store.open(run)
    journal.append(4, lines[3:])
    document = next(store.heads()).document
    assert (document["seq"], document["last_completed_step"], document["total_cost_usd"]) == (7, "sow", 1.85)
    assert document["nodes"] == (["seed", "sow", "lessons", "publish"] if head else [])
    assert document["journal_bytes"] == journal.size


def test_running_run_without_a_living_owner_shows_as_interrupted(store: Store) -> None:
    run = write(store, small_run())
    (head,) = store.heads(lambda document: document["status_detail"] == "interrupted")
    assert (head.run_id, head.owned, head.document["status"]) == (run, False, "in_progress")
    assert head.document["status_detail"] == "interrupted"
    journal = store.open(run)
    (head,) = store.heads()
    assert (head.owned, head.document["status_detail"]) == (True, "running")
    journal.close()


def test_run_of_a_newer_version_is_listed_as_unreadable_and_refused(store: Store) -> None:
    run, journal = store.create(started(format=2), [], at=AT)
    journal.close()
    (head,) = store.heads()
    assert (head.run_id, head.document) == (run, {})
    assert "newer version" in head.corrupt
    with pytest.raises(SchemaTooNew):
        store.open(run)
    with pytest.raises(SchemaTooNew):
        load(store, run)


def test_owned_run_is_not_deleted(store: Store) -> None:
    run, _journal = store.create(started(), [], at=AT)
    with pytest.raises(RunLocked):
        store.delete(run)
    assert ids(store) == [run]


def test_branch_owns_a_journal_of_its_own(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    part = store.open(f"{run}/fan#1/left#2")
    part.append(1, [line(1, StepStarted("write#1"))])
    blob = part.put_blob(b"shared")
    assert journal.get_blob(blob) == b"shared"
    with pytest.raises(RunLocked):
        store.open(f"{run}/fan#1/left#2")
    part.close()
    again = store.open(f"{run}/fan#1/left#2")
    assert again.last_seq == 1
    journal.close()
    with pytest.raises(RunLocked):
        store.delete(run)
    again.close()
    assert seqs(store, f"{run}/fan#1/left#2") == [1]
    assert len(list(store.read(run))) == 1
    assert ids(store) == [run]
    with pytest.raises(RunNotFound):
        store.read(f"{run}/fan#1/right#1")
    store.delete(run)
    assert ids(store) == []
