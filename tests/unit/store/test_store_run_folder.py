"""A run whose folder people chose: the store's contract for one run, whatever the folder is called."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pipeline.errors import RunExists, RunLocked, RunNotFound, StoreError, WriteFailed
from pipeline.records.kinds import StepStarted
from pipeline.records.lines import line_seq
from pipeline.records.values import digest
from pipeline.store.files import FileStore
from pipeline.store.reader import load, resolve
from pipeline.store.run_folder import RunFolder, has_run
from pipeline.store.url import open_store
from tests.faulty_disk import FaultyDisk, LazyDisk
from tests.journals import AT, StillClock, ended, line, small_run, started
from tests.stores import write

ID = "20260109_143022"


@pytest.fixture(params=[".attractor_run", "out", "a b", "20250101_000000", "deep/er"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


@pytest.fixture
def store(folder: Path) -> RunFolder:
    return RunFolder(folder, StillClock(), disk=LazyDisk())


def id_of(folder: Path) -> str:
    return folder.name if folder.name.startswith("2025") else ID


def test_files_lie_in_the_folder_itself(store: RunFolder, folder: Path) -> None:
    run, journal = store.create(started(), [b"graph"], at=AT)
    journal.write_head({"status": "in_progress"}, True)
    assert run == id_of(folder)
    assert {"journal.jsonl", "checkpoint.json", "blobs", "lock"} <= set(os.listdir(folder))
    assert store.get_blob(run, digest(b"graph")) == b"graph"


def test_run_is_read_opened_and_listed_under_its_id(store: RunFolder, folder: Path) -> None:
    lines = small_run()
    run = write(store, lines[:4])
    journal = store.open(run)
    journal.append(5, lines[4:])
    journal.close()
    again = RunFolder(folder, StillClock())
    assert [line_seq(one) for one in again.read(run, after=5)] == [6, 7]
    assert load(again, run).seq == 7
    (head,) = again.heads()
    assert (head.run_id, head.document["run_id"], head.document["total_cost_usd"]) == (run, run, 1.85)
    assert resolve(again, "latest") == resolve(again, run[:6]) == run


def test_first_lines_may_be_several(store: RunFolder) -> None:
    run, journal = store.create(started() + line(2, StepStarted("a#1")), [], at=AT)
    assert journal.last_seq == 2
    journal.append(3, [ended(3)])
    assert [line_seq(one) for one in store.read(run)] == [1, 2, 3]


def test_second_run_is_refused_with_both_ways_out(store: RunFolder, folder: Path) -> None:
    run = write(store, small_run())
    with pytest.raises(RunExists) as caught:
        RunFolder(folder, StillClock()).create(started(), [], at=AT)
    assert caught.value.data["run"] == run
    assert f"--resume {folder}" in caught.value.hint
    assert "another folder" in caught.value.hint
    assert len(list(store.read(run))) == 7


def test_folder_with_a_living_owner_is_locked(store: RunFolder, folder: Path) -> None:
    run, journal = store.create(started(), [], at=AT)
    with pytest.raises(RunLocked, match=str(os.getpid())):
        RunFolder(folder, StillClock()).open(run)
    with pytest.raises(RunLocked):
        RunFolder(folder, StillClock()).create(started(), [], at=AT)
    journal.close()
    store.open(run).close()


def test_other_files_in_the_folder_stay(store: RunFolder, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "graph.dot").write_text("digraph g {}")
    run = write(store, small_run())
    store.delete(run)
    assert os.listdir(folder) == ["graph.dot"]
    assert list(store.heads()) == []
    with pytest.raises(RunNotFound):
        store.read(run)


def test_folder_that_was_made_for_it_goes_with_the_run(store: RunFolder, folder: Path) -> None:
    store.delete(write(store, small_run()))
    assert not folder.exists()


def test_half_made_run_is_none(store: RunFolder, folder: Path) -> None:
    (folder / "blobs").mkdir(parents=True)
    (folder / "lock").touch()
    (folder / ".journal.new").write_bytes(b"half a li")
    assert not has_run(folder)
    assert list(store.heads()) == []
    run, _ = store.create(started(), [], at=AT)
    assert len(list(store.read(run))) == 1


@pytest.mark.parametrize("name", ["20991231", "", "..", "/etc"])
def test_other_names_are_not_found(store: RunFolder, name: str) -> None:
    write(store, small_run())
    for verb in (store.open, store.read, store.delete):
        with pytest.raises(RunNotFound):
            verb(name)


def test_branch_has_its_journal_in_the_same_folder(store: RunFolder, folder: Path) -> None:
    run, _ = store.create(started(), [], at=AT)
    part = store.open(f"{run}/fan#1/left#2")
    part.append(1, [line(1, StepStarted("write#1"))])
    part.close()
    assert [line_seq(one) for one in store.read(f"{run}/fan#1/left#2")] == [1]
    assert (folder / "parts").is_dir()


def test_damaged_first_record_is_listed_as_corrupt(store: RunFolder, folder: Path) -> None:
    write(store, small_run(), head=False)
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"x" + journal.read_bytes())
    (head,) = RunFolder(folder, StillClock()).heads()
    assert head.corrupt


def test_folder_of_runs_is_not_made_a_run(tmp_path: Path) -> None:
    run = write(FileStore(tmp_path, StillClock()), small_run())
    with pytest.raises(StoreError, match="folder of runs"):
        RunFolder(tmp_path, StillClock()).create(started(), [], at=AT)
    (tmp_path / "checkpoint.json").write_text("{}")
    assert [head.run_id for head in open_store(f"files:{tmp_path}").heads()] == [run]


def test_store_of_a_runs_own_folder_holds_that_run(store: RunFolder, folder: Path) -> None:
    run = write(store, small_run())
    assert [head.run_id for head in open_store(f"files:{folder}").heads()] == [run]


def test_link_to_a_folder_means_the_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(RunFolder(tmp_path / "link", StillClock()), small_run())
    assert (tmp_path / "real" / "journal.jsonl").is_file()


def test_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WriteFailed, match="No run could be created"):
        RunFolder(tmp_path / "out", StillClock()).create(started(), [], at=AT)


def test_journal_copied_into_a_store_keeps_its_records(store: RunFolder, folder: Path, tmp_path: Path) -> None:
    write(store, small_run())
    kept = tmp_path / "store"
    kept.mkdir()
    folder.rename(kept / ID)
    assert load(FileStore(kept, StillClock()), ID).seq == 7


def test_imported_document_keeps_its_run_id(store: RunFolder, folder: Path) -> None:
    folder.mkdir(parents=True)
    document = '{"run_id": "mine", "pipeline": "lessons", "status": "failed", "completed_steps": []}'
    (folder / "checkpoint.json").write_text(document)
    (head,) = store.heads()
    journal = store.open(head.run_id)
    assert journal.last_seq == 2
    assert [line_seq(one) for one in store.read(head.run_id)] == [1, 2]


def test_refused_records_are_brought_back_by_the_folders_name(tmp_path: Path) -> None:
    store = RunFolder(tmp_path / "run", StillClock(), disk=(disk := FaultyDisk()))
    _, journal = store.create(started(), [], at=AT)
    disk.sync_errors = [errno.EIO]
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, [line(2, StepStarted("a#1"))])
    assert f"recover {tmp_path / 'run'} " in caught.value.hint
    Path(caught.value.data["emergency"]).unlink()
