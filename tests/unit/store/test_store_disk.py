"""Disks that refuse: nothing recorded is lost, nothing half written stays, what was not saved is kept elsewhere."""

from __future__ import annotations

import errno
import shutil
import stat
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import StoreError, WriteFailed
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, Gap, RunResumed, StepStarted
from pipeline.store.files import FileStore
from pipeline.store.journal import RunJournal
from pipeline.store.reader import load, records
from pipeline.store.recovery import recover
from tests.faulty_disk import FaultyDisk
from tests.journals import AT, StillClock, line, started
from tests.stores import seqs

STEP = [line(seq, StepStarted(f"s{seq}#1")) for seq in range(2, 10)]
PAID = CallEnded(2, b'{"text":"x"}', Charge("exact", Decimal(1), Decimal(1)).to_json(), stop_reason="end_turn")


def begin(store: FileStore) -> tuple[str, RunJournal]:
    return store.create(started(), [], at=AT)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_failed_write_is_tried_again_from_a_clean_end(store: FileStore, disk: FaultyDisk, code: int) -> None:
    run, journal = begin(store)
    disk.write_errors = [code, code]
    journal.append(2, STEP[:1])
    assert journal.strained == (code != errno.EIO)
    assert (store.root / run / "journal.jsonl").read_bytes() == started() + STEP[0]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_write_that_fails_for_good_leaves_the_journal_as_it_was(store: FileStore, disk: FaultyDisk, code: int) -> None:
    run, journal = begin(store)
    journal.append(2, STEP[:1], sync=False)
    disk.write_errors = [code] * 4
    with pytest.raises(WriteFailed) as caught:
        journal.append(3, STEP[1:3])
    assert caught.value.data["fatal"] is False
    assert seqs(store, run) == [1, 2]
    assert disk.write_errors == [], "one try and three more"
    journal.append(3, STEP[1:2])
    assert seqs(store, run) == [1, 2, 3]


def test_full_disk_has_room_for_what_is_in_flight(store: FileStore, disk: FaultyDisk) -> None:
    disk.room = 3 << 20
    run, journal = begin(store)
    disk.room = 100
    reply = "y" * 200_000
    for seq in range(2, 4):
        journal.append(seq, [line(seq, StepStarted(reply))])
        assert journal.strained
    assert seqs(store, run) == [1, 2, 3]


def test_full_disk_leaves_its_space_to_records_rather_than_heads(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = begin(store)
    disk.write_errors = [errno.ENOSPC]
    journal.append(2, STEP[:1])
    journal.write_head({"status": "failed"}, False)
    assert not (store.root / run / "checkpoint.json").exists()


def test_run_is_not_made_on_a_disk_without_room_for_its_reserve(store: FileStore, disk: FaultyDisk) -> None:
    disk.room = 100_000
    with pytest.raises(WriteFailed):
        begin(store)
    assert list(store.heads()) == []
    assert [path.name for path in store.root.iterdir()] == [".lock"]


@pytest.mark.parametrize("failing", range(1, 8))
def test_run_that_cannot_be_made_durable_does_not_exist(store: FileStore, disk: FaultyDisk, failing: int) -> None:
    disk.sync_errors = [0] * (failing - 1) + [errno.EIO]
    blobs = [b"a", b"b", b"c"]
    if failing > 4:
        assert store.create(started(), blobs, at=AT)[0]
        return
    with pytest.raises(WriteFailed):
        store.create(started(), blobs, at=AT)
    assert list(store.heads()) == []
    assert [path.name for path in store.root.iterdir()] == [".lock"]


def test_name_of_a_new_run_is_durable_before_its_creation_returns(tmp_path: Path) -> None:
    acts: list[Path] = []

    class Noting(FaultyDisk):
        def replace(self, source: Path, target: Path) -> None:
            acts.append(target)
            super().replace(source, target)

        def sync_folder(self, path: Path) -> None:
            acts.append(path)
            super().sync_folder(path)

    store = FileStore(tmp_path, StillClock(), disk=Noting())
    home = store.root / begin(store)[0]
    assert {home, store.root} <= set(acts[acts.index(home / "journal.jsonl") :])


def test_failed_sync_is_never_tried_again(store: FileStore, disk: FaultyDisk, kept: Path) -> None:
    run, journal = begin(store)
    journal.append(2, STEP[:1])
    journal.append(3, STEP[1:2], sync=False)
    disk.syncs, disk.sync_errors = 0, [errno.EIO]
    with pytest.raises(WriteFailed) as caught:
        journal.append(4, STEP[2:3])
    assert disk.syncs == 1
    assert caught.value.data["fatal"] is True
    file = Path(caught.value.data["emergency"])
    assert file.parent == kept
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert STEP[1] + STEP[2] in file.read_bytes(), "also what was written and not yet synced"
    with pytest.raises(WriteFailed):
        journal.append(5, STEP[3:4])
    assert disk.syncs == 1
    assert STEP[3] in file.read_bytes(), "what ends later is kept there too"
    assert store.get_blob(run, journal.put_blob(b"a reply in flight")) == b"a reply in flight"
    assert journal.last_seq == 2
    disk.syncs = 0
    journal.close()
    assert disk.syncs == 0


def test_emergency_record_whose_number_was_taken_goes_to_the_end(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = begin(store)
    journal.append(2, [line(2, CallStarted("s#1", "k", "m", "r", worst="2"))])
    disk.sync_errors = [errno.EIO]
    with pytest.raises(WriteFailed) as caught:
        journal.append(3, [line(3, PAID), line(4, StepStarted("x#1"))])
    journal.close()
    (store.root / run / "journal.jsonl").write_bytes(started() + line(2, CallStarted("s#1", "k", "m", "r", worst="2")))
    # The file is on another machine.
    file = Path(shutil.move(caught.value.data["emergency"], store.root.parent))
    journal = store.open(run)
    journal.append(3, [line(3, RunResumed({}), owner=3)])
    journal.close()
    assert recover(store, run, file) == 2
    assert recover(store, run, file) == 0
    assert [(one.seq, one.owner) for one in records(store, run)] == [(1, 1), (2, 1), (3, 3), (4, 1), (5, 1)]
    state = load(store, run)
    assert (state.total.usd, state.total.high) == (Decimal(1), Decimal(0))
    assert not state.steps


def test_hole_before_emergency_records_is_said(store: FileStore, tmp_path: Path) -> None:
    run, journal = begin(store)
    journal.close()
    file = tmp_path / "kept.jsonl"
    file.write_bytes(b'{"emergency": "%s"}\n' % run.encode() + STEP[3] + STEP[4][:-9])
    assert recover(store, run, file) == 1
    found = list(records(store, run))
    assert [(one.seq, type(one.fact)) for one in found[1:]] == [(2, Gap), (3, Gap), (4, Gap), (5, StepStarted)]


@pytest.mark.parametrize("text", [b"", b"{}", b"no json", b'{"emergency": "another run"}\n', b'["emergency"]'])
def test_file_of_something_else_is_not_recovered(store: FileStore, tmp_path: Path, text: bytes) -> None:
    run, journal = begin(store)
    journal.close()
    (tmp_path / "file").write_bytes(text)
    for file in (tmp_path / "file", tmp_path / "no such file"):
        with pytest.raises(StoreError):
            recover(store, run, file)
    assert seqs(store, run) == [1]


def test_head_that_cannot_be_written_is_no_error_of_the_run(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = begin(store)
    disk.write_errors = [errno.EIO]
    journal.write_head({"status": "failed"}, True)
    disk.sync_errors = [errno.EIO]
    journal.write_head({"status": "failed"}, True)
    journal.append(2, STEP[:1])
    assert next(store.heads()).document["seq"] == 2
    assert sorted(path.name for path in (store.root / run).iterdir()) == ["journal.jsonl", "lock"]


def test_read_only_folder_can_be_read_and_says_that_it_cannot_be_written(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = begin(store)
    journal.close()
    disk.read_only = True
    assert [head.run_id for head in store.heads()] == [run]
    assert seqs(store, run) == [1]
    for act in (lambda: begin(store), lambda: store.open(run), lambda: store.delete(run)):
        with pytest.raises(WriteFailed, match="Read-only"):
            act()
