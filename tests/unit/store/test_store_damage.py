"""Damaged journals and heads: nothing crashes, no whole line is lost, what is lost is said."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import CheckpointCorrupt
from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.kinds import Gap, RunResumed, StepStarted
from pipeline.records.lines import line_seq
from pipeline.store.files import FileStore
from pipeline.store.reader import load, records
from tests.faulty_disk import LazyDisk
from tests.journals import AT, StillClock, line, small_run
from tests.stores import seqs

LINES = small_run()
WHOLE = b"".join(LINES)


@pytest.fixture
def store() -> Iterator[FileStore]:
    # In memory where there is such a folder: thousands of files are made here.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield FileStore(folder, StillClock(), disk=LazyDisk())


def make(store: FileStore, *, head: bool = True) -> tuple[str, Path]:
    run, journal = store.create(LINES[0], [], at=AT)
    journal.append(2, LINES[1:])
    if head:
        document = head_document(fold(run, map(decode_line, LINES)), journal.size, ["seed", "sow"])
        journal.write_head(document, False)
    journal.close()
    return run, store.root / run


def renew(folder: Path, data: bytes) -> None:
    for old in folder.glob("journal*"):
        old.unlink()
    (folder / "journal.jsonl").write_bytes(data)


def whole_lines(data: bytes) -> set[bytes]:
    """The lines of the small run that stand unharmed in the bytes."""
    return {one.rstrip(b"\n") for one in LINES if one.rstrip(b"\n") in data}


def check(store: FileStore, run: str, folder: Path, data: bytes, *, loss: bool) -> None:
    """A damaged journal: read as it is, then opened, appended to and read again."""
    renew(folder, data)
    expected = whole_lines(data)
    list(store.heads())
    load(store, run)
    assert set(store.read(run)) == expected
    assert (folder / "journal.jsonl").read_bytes() == data, "readers never write"
    if LINES[0].rstrip(b"\n") not in expected:
        (head,) = store.heads()
        assert "first record" in head.corrupt
        with pytest.raises(CheckpointCorrupt):
            store.open(run)
        assert (folder / "journal.jsonl").read_bytes() == data, "a corrupt run is left as it is"
        return
    journal = store.open(run)
    lost = {line_seq(one) for one in LINES if one.rstrip(b"\n") not in expected}
    said = {seq for row in journal.repairs for seq in range(row[0], row[1] + 1)}
    if loss:
        assert lost <= said, (lost, journal.repairs)
    seq = journal.last_seq + 1
    journal.append(seq, [line(seq, RunResumed({}), owner=seq)])
    journal.close()
    after = list(store.read(run))
    assert expected <= set(after)
    assert [line_seq(one) for one in after] == sorted({line_seq(one) for one in after})
    assert all(one.endswith(b"}\n") for one in (folder / "journal.jsonl").read_bytes().splitlines(True))
    again = store.open(run)
    again.close()
    assert list(again.repairs) == [*_loss_by_head(folder, seq)], "a mended journal is whole"


def _loss_by_head(folder: Path, last_seq: int) -> Iterator[tuple[int, int, int, str, str]]:
    if last_seq < 7 and (folder / "checkpoint.json").exists():
        yield (last_seq + 1, 7, 0, "", "the journal is shorter than checkpoint.json says: records were lost")


def test_journal_cut_at_every_byte_keeps_every_whole_line(store: FileStore) -> None:
    run, folder = make(store)
    for length in range(len(WHOLE)):
        check(store, run, folder, WHOLE[:length], loss=True)


def test_journal_cut_at_every_byte_without_a_head_keeps_every_whole_line(store: FileStore) -> None:
    run, folder = make(store, head=False)
    for length in range(0, len(WHOLE), 11):
        check(store, run, folder, WHOLE[:length], loss=False)


def test_journal_flipped_at_every_byte_keeps_every_whole_line(store: FileStore) -> None:
    run, folder = make(store)
    for offset in range(len(WHOLE)):
        data = bytearray(WHOLE)
        data[offset] ^= 0x08
        check(store, run, folder, bytes(data), loss=True)


def test_head_cut_or_flipped_at_every_byte_shows_what_the_journal_says(store: FileStore) -> None:
    run, folder = make(store)
    path = folder / "checkpoint.json"
    head = path.read_bytes()
    (truth,) = store.heads()
    for offset in range(len(head)):
        flipped = bytearray(head)
        flipped[offset] ^= 0x04
        for damaged in (head[:offset], bytes(flipped)):
            path.write_bytes(damaged)
            (shown,) = store.heads()
            assert {**shown.document, "nodes": []} == {
                **truth.document,
                "nodes": [],
                "next_step": shown.document["next_step"],
            }
    journal = store.open(run)
    assert (journal.last_seq, journal.repairs) == (7, [])


def test_torn_end_is_moved_aside_and_said(store: FileStore) -> None:
    run, folder = make(store)
    (folder / "journal.jsonl").write_bytes(WHOLE + b'{"seq":8,"at":"2026')
    journal = store.open(run)
    assert [tuple(row) for row in journal.repairs] == [
        (8, 8, 19, "journal.torn-1", "the last write was not finished, or was damaged")
    ]
    assert (folder / "journal.torn-1").read_bytes() == b'{"seq":8,"at":"2026'
    assert (folder / "journal.jsonl").read_bytes() == WHOLE
    journal.close()
    (folder / "journal.jsonl").write_bytes(WHOLE + b"\0" * 4096)
    store.open(run).close()
    assert (folder / "journal.torn-2").read_bytes() == b"\0" * 4096


def test_reader_is_told_of_a_gap_that_nobody_has_mended(store: FileStore) -> None:
    run, folder = make(store)
    (folder / "journal.jsonl").write_bytes(WHOLE.replace(LINES[3], b"garbage\n"))
    state = load(store, run)
    assert state.gaps[0]["first"] == state.gaps[0]["last"] == 4
    assert str(state.total.usd) == "1.85"


def test_line_that_stands_twice_is_taken_once(store: FileStore) -> None:
    run, folder = make(store)
    (folder / "journal.jsonl").write_bytes(WHOLE.replace(LINES[3], LINES[3] + LINES[2]))
    journal = store.open(run)
    assert journal.last_seq == 7
    assert (folder / "journal.jsonl").read_bytes() == WHOLE
    assert (folder / "journal.damaged-1").exists()


def test_damaged_blob_is_named_and_written_anew_by_the_same_bytes(store: FileStore) -> None:
    run, journal = store.create(LINES[0], [b"graph"], at=AT)
    blob = journal.put_blob(b"a lesson")
    path = store.root / run / "blobs" / blob[:2] / blob
    for damage in (b"", b"x", path.read_bytes()[:-1]):
        path.write_bytes(damage)
        with pytest.raises(CheckpointCorrupt, match=blob):
            store.get_blob(run, blob)
        journal.close()
        journal = store.open(run)
        journal.put_blob(b"a lesson")
        assert store.get_blob(run, blob) == b"a lesson"


def test_blob_is_written_once(store: FileStore) -> None:
    run, journal = store.create(LINES[0], [], at=AT)
    blob = journal.put_blob(b"a lesson" * 5000)
    path = store.root / run / "blobs" / blob[:2] / blob
    before = path.stat()
    journal.put_blob(b"a lesson" * 5000)
    journal.close()
    store.open(run).put_blob(b"a lesson" * 5000)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert path.stat().st_size < 1000


def test_one_record_is_found_in_a_damaged_journal(store: FileStore) -> None:
    run, journal = store.create(LINES[0], [], at=AT)
    journal.append(2, [line(seq, StepStarted(f"s{seq}#1" + "x" * (seq % 7) * 900)) for seq in range(2, 400)])
    path = store.root / run / "journal.jsonl"
    data = bytearray(path.read_bytes())
    for offset in range(50_000, len(data) - 50_000, 9_000):
        data[offset : offset + 40] = b"\n" * 20 + b"\0" * 20
    path.write_bytes(data)
    there = seqs(store, run)
    assert 200 < len(there) < 399
    for seq in range(0, 400, 7):
        assert seqs(store, run, after=seq) == [one for one in there if one > seq]
    assert os.path.getsize(path) == len(data)


def test_branch_journal_with_a_damaged_first_record_keeps_the_others(store: FileStore) -> None:
    run, journal = store.create(LINES[0], [], at=AT)
    part = store.open(f"{run}/left#1")
    part.append(1, [line(seq, StepStarted(f"s{seq}#1")) for seq in (1, 2, 3)])
    part.close()
    (path,) = (store.root / run / "parts").glob("*/journal.jsonl")
    path.write_bytes(b"x" + path.read_bytes()[1:])
    part = store.open(f"{run}/left#1")
    assert [tuple(row)[:2] for row in part.repairs] == [(1, 1)]
    assert [type(one.fact) for one in records(store, f"{run}/left#1")] == [Gap, StepStarted, StepStarted]
    journal.close()
