"""What a journal refused and an emergency file keeps: where it lies, who takes it in, and what it may not cost."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import RunLocked, StoreError, WriteFailed
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, Fact, StepStarted
from pipeline.records.lines import encode_line
from pipeline.store.emergency import EmergencyFile
from pipeline.store.files import FileStore
from pipeline.store.journal import RunJournal
from pipeline.store.reader import load
from pipeline.store.recovery import recover
from tests.faulty_disk import FaultyDisk
from tests.journals import AT, StillClock, line, started
from tests.stores import seqs

PAID = Charge("exact", Decimal(1), Decimal(1)).to_json()


def refused(store: FileStore, disk: FaultyDisk, *facts: Fact, run: str = "") -> tuple[str, Path, RunJournal]:
    """A run that could not record these facts."""
    if run:
        journal = store.open(run)
    else:
        run, journal = store.create(started(), [], at=AT)
    disk.write_errors = [errno.ENOSPC] * 4
    seq = journal.last_seq + 1
    with pytest.raises(WriteFailed) as caught:
        journal.append(seq, [line(seq + index, fact) for index, fact in enumerate(facts)])
    return run, Path(caught.value.data["emergency"]), journal


def test_kept_records_lie_where_a_restart_leaves_them_and_only_their_owner_reads_them(
    store: FileStore, disk: FaultyDisk, kept: Path
) -> None:
    run, file, journal = refused(store, disk, StepStarted("a#1"))
    journal.close()
    assert file.parent == kept
    assert file.name.startswith(run)
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)


def test_kept_records_go_to_the_temporary_folder_where_the_home_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: FileStore, disk: FaultyDisk
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    run, file, journal = refused(store, disk, StepStarted("a#1"))
    journal.close()
    assert file.parent.parent == tmp_path
    store.open(run).close()
    assert seqs(store, run) == [1, 2]


def test_opening_a_run_takes_in_what_was_kept_says_so_and_removes_the_file(store: FileStore, disk: FaultyDisk) -> None:
    run, file, journal = refused(store, disk, StepStarted("a#1"), StepStarted("b#1"))
    journal.close()
    opened = store.open(run)
    assert seqs(store, run) == [1, 2, 3]
    assert [str(one) for one in opened.taken] == [
        f"2 records kept in {file} were added to the run; the file was removed."
    ]
    opened.close()
    assert not file.exists()
    opened = store.open(run)
    assert not opened.taken
    opened.close()


def test_what_was_taken_in_before_a_kill_is_not_taken_in_twice(store: FileStore, disk: FaultyDisk) -> None:
    run, file, journal = refused(store, disk, StepStarted("a#1"))
    journal.close()
    copy = shutil.copy(file, store.root.parent / "copy")
    store.open(run).close()
    shutil.copy(copy, file)
    opened = store.open(run)
    opened.close()
    assert [taken.records for taken in opened.taken] == [0]
    assert seqs(store, run) == [1, 2]


def test_files_of_another_run_or_store_are_left_alone(store: FileStore, disk: FaultyDisk, tmp_path: Path) -> None:
    run, file, journal = refused(store, disk, StepStarted("a#1"))
    journal.close()
    other = FileStore(tmp_path / "others", StillClock())
    same, journal = other.create(started(), [], at=AT)
    journal.close()
    assert same == run
    other.open(run).close()
    second, journal = store.create(started(), [], at=AT)
    journal.close()
    store.open(second).close()
    assert seqs(other, run) == seqs(store, second) == [1]
    with pytest.raises(StoreError, match="not of"):
        recover(store, second, file)
    assert file.exists()


def test_a_file_that_others_could_have_put_there_is_not_taken_in(
    store: FileStore, disk: FaultyDisk, kept: Path
) -> None:
    run, file, journal = refused(store, disk, StepStarted("a#1"))
    journal.close()
    kept.chmod(0o777)
    store.open(run).close()
    assert seqs(store, run) == [1]
    assert file.exists()


def test_file_that_a_living_process_still_writes_is_waited_for(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    # The owner has lost its run, and a last reply is on its way.
    writer = EmergencyFile(run, str(store.root / run))
    writer.add(line(2, StepStarted("a#1")))
    with pytest.raises(RunLocked, match="still writing"):
        store.open(run)
    writer.add(line(3, StepStarted("b#1")))
    writer.close()
    store.open(run).close()
    assert seqs(store, run) == [1, 2, 3]


def test_what_a_part_kept_is_taken_in_when_its_run_is_opened(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    part, file, journal = refused(store, disk, StepStarted("a#1"), run=f"{run}/w1")
    journal.close()
    store.open(run).close()
    assert seqs(store, part) == [1]
    assert not file.exists()


def test_call_whose_start_was_refused_costs_nothing(store: FileStore, disk: FaultyDisk) -> None:
    sent = CallStarted("s#1", "k", "m", "r", worst="2")
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [line(2, sent)])
    journal.close()
    ended = CallEnded(2, b'{"text":"x"}', PAID, stop_reason="end_turn")
    _, file, journal = refused(store, disk, CallStarted("s#2", "k", "m", "r", worst="3"), ended, run=run)
    journal.close()
    copy = Path(shutil.copy(file, store.root.parent / "copy"))
    store.open(run).close()
    state = load(store, run)
    assert (state.total.usd, state.total.high) == (Decimal(1), Decimal(0))
    assert not state.open_calls
    assert recover(store, run, copy) == 0
    assert seqs(store, run) == [1, 2, 3, 4, 5]


def test_call_whose_start_was_stored_and_not_told_costs_nothing_either(store: FileStore, disk: FaultyDisk) -> None:
    run, journal = store.create(started(), [], at=AT)
    begun = line(2, CallStarted("s#1", "k", "m", "r", worst="2"))
    disk.sync_errors = [errno.EIO]
    with pytest.raises(WriteFailed):
        journal.append(2, [begun])
    journal.close()
    assert seqs(store, run) == [1, 2]
    store.open(run).close()
    assert load(store, run).total.high == 0
    assert not load(store, run).open_calls


def test_call_whose_start_was_refused_and_whose_number_was_taken_is_left_out(
    store: FileStore, disk: FaultyDisk, kept: Path
) -> None:
    run, file, journal = refused(store, disk, CallStarted("s#1", "k", "m", "r", worst="2"))
    journal.close()
    away = shutil.move(file, store.root.parent)
    journal = store.open(run)
    journal.append(2, [line(2, StepStarted("a#1"))])
    journal.close()
    assert recover(store, run, Path(away)) == 0
    assert seqs(store, run) == [1, 2]


def test_second_place_gets_all_where_the_first_fills_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    file = EmergencyFile("20260109_143022", "here")
    file.add(b"one\n")
    assert Path(file.path).parent == kept
    first, full = file.path, [True]
    write = os.write

    def refuse(fd: int, data: bytes) -> int:
        if full.pop() if full else False:
            raise OSError(errno.ENOSPC, "full")
        return write(fd, data)

    monkeypatch.setattr(os, "write", refuse)
    full.append(True)
    file.add(b"two\n")
    file.close()
    assert Path(file.path).parent.parent == tmp_path
    head, *lines = Path(file.path).read_bytes().splitlines()
    assert json.loads(head)["emergency"] == "20260109_143022"
    assert lines == [b"one", b"two"]
    assert not Path(first).exists()


@pytest.mark.parametrize("how", ["open", "recover"])
def test_kept_lines_that_cannot_be_read_are_put_aside_and_said(store: FileStore, disk: FaultyDisk, how: str) -> None:
    run, file, journal = refused(store, disk, StepStarted("a#1"))
    journal.close()
    deep = b'{"kind":"run_resumed","execution":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    junk = b"torn" + encode_line(9, "2026-01-09T00:00:00Z", 1, deep)
    with file.open("ab") as out:
        out.write(b"torn\n" + junk)
    held = file.read_bytes()
    if how == "open":
        opened = store.open(run)
        (taken,) = opened.taken
        opened.close()
        assert (taken.records, taken.damaged, str(taken.file) in str(taken)) == (1, 2, True)
    else:
        assert recover(store, run, file) == 1
    aside = file.with_name(f"{file.name}.damaged")
    assert (seqs(store, run), file.exists(), aside.read_bytes()) == ([1, 2], False, held)
    for text in (deep, b'{"emergency":' + deep, b'{"emergency":5}', b"\0" * 99, b""):
        file.write_bytes(text)
        with pytest.raises(StoreError):
            recover(store, run, file)
