"""A run whose folder people chose: the store's contract for one run, whatever the folder is called."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pipeline.errors import RunExists, RunLocked, StoreError, WriteFailed
from pipeline.records.kinds import StepStarted
from pipeline.store.files import FileStore
from pipeline.store.reader import load, resolve
from pipeline.store.run_folder import RunFolder, has_run
from pipeline.store.url import open_store
from tests.faulty_disk import FaultyDisk, LazyDisk
from tests.journals import AT, StillClock, line, small_run, started
from tests.stores import seqs, write

ID = "20260109_143022"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".attractor_run"


@pytest.fixture
def store(folder: Path) -> RunFolder:
    return RunFolder(folder, StillClock(), disk=LazyDisk())


@pytest.mark.parametrize("name", [".attractor_run", "out", "a b", "20250101_000000", "deep/er"])
def test_folder_of_any_name_holds_a_run_under_its_id(tmp_path: Path, name: str) -> None:
    folder, lines = tmp_path / name, small_run()
    store = RunFolder(folder, StillClock(), disk=LazyDisk())
    run, journal = store.create(b"".join(lines[:2]), [b"graph"], at=AT)
    assert run == (name if name.startswith("2025") else ID)
    journal.append(3, lines[2:])
    journal.write_head({"status": "in_progress"}, True)
    assert {"journal.jsonl", "checkpoint.json", "blobs", "lock"} <= set(os.listdir(folder))
    for again in (store.open, lambda _: RunFolder(folder, StillClock()).create(started(), [], at=AT)):
        with pytest.raises(RunLocked, match=str(os.getpid())):
            again(run)
    journal.close()
    for same in (RunFolder(folder, StillClock()), open_store(f"files:{folder}")):
        (head,) = same.heads()
        assert (head.run_id, head.document["run_id"], head.document["total_cost_usd"]) == (run, run, 1.85)
        assert resolve(same, "latest") == resolve(same, run[:6]) == run
        assert seqs(same, run, after=5) == [6, 7]
    with pytest.raises(RunExists) as caught:
        RunFolder(folder, StillClock()).create(started(), [], at=AT)
    assert caught.value.data["run"] == run
    assert f"--resume {folder}" in caught.value.hint
    store.delete(run)
    assert not folder.exists()


def test_other_files_in_the_folder_stay(store: RunFolder, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "graph.dot").write_text("digraph g {}")
    store.delete(write(store, small_run()))
    assert os.listdir(folder) == ["graph.dot"]
    assert list(store.heads()) == []


def test_half_made_run_is_none(store: RunFolder, folder: Path) -> None:
    (folder / "blobs").mkdir(parents=True)
    (folder / "lock").touch()
    (folder / ".journal.new").write_bytes(b"half a li")
    assert not has_run(folder)
    assert list(store.heads()) == []
    assert len(list(store.read(write(store, small_run())))) == 7


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
    assert store.open(head.run_id).last_seq == 2
    assert seqs(store, head.run_id) == [1, 2]


def test_folder_of_runs_is_not_made_a_run(tmp_path: Path) -> None:
    run = write(FileStore(tmp_path, StillClock()), small_run())
    with pytest.raises(StoreError, match="folder of runs"):
        RunFolder(tmp_path, StillClock()).create(started(), [], at=AT)
    (tmp_path / "checkpoint.json").write_text("{}")
    assert [head.run_id for head in open_store(f"files:{tmp_path}").heads()] == [run]


def test_link_to_a_folder_means_the_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(RunFolder(tmp_path / "link", StillClock()), small_run())
    assert (tmp_path / "real" / "journal.jsonl").is_file()


def test_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WriteFailed, match="No run could be created"):
        RunFolder(tmp_path / "out", StillClock()).create(started(), [], at=AT)


def test_refused_records_are_brought_back_by_the_folders_name(tmp_path: Path) -> None:
    store = RunFolder(tmp_path / "run", StillClock(), disk=(disk := FaultyDisk()))
    _, journal = store.create(started(), [], at=AT)
    disk.sync_errors = [errno.EIO]
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, [line(2, StepStarted("a#1"))])
    assert f"recover {tmp_path / 'run'} " in caught.value.hint
    Path(caught.value.data["emergency"]).unlink()
