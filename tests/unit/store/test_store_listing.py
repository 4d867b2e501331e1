"""Which runs are listed by their checkpoint.json alone and opened without a survey, and which are read again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.records.documents import head_document
from pipeline.records.kinds import StepStarted
from pipeline.records.lines import encode_line
from pipeline.store.backend import Backend, Tip
from pipeline.store.base import Head
from pipeline.store.disk import Disk
from pipeline.store.files import FileStore
from pipeline.store.folder import FolderBackend
from pipeline.store.heads import Listing
from pipeline.store.reader import load
from pipeline.store.survey import Blocks, Survey
from pipeline.store.survey import survey as whole_survey
from tests.journals import AT, StillClock, line, small_run, started


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "runs", StillClock())


def finished_run(root: Path, params: dict[str, Any] | None = None) -> Path:
    """A run whose head is up to date; its folder."""
    store = FileStore(root, StillClock())
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:])
    journal.write_head(head_document(load(store, run), journal.size, ["seed", "sow"]), durable=True)
    journal.close()
    return root / run


class Asked:
    """Stands for what reads records again; remembers which runs it was asked for."""

    def __init__(self, answer: Head | None) -> None:
        self.runs: list[str] = []
        self._answer = answer

    def __call__(self, backend: Backend, tip: Tip) -> Head | None:
        self.runs.append(tip.run)
        return self._answer


def listing(root: Path, asked: Asked) -> Listing:
    return Listing(FolderBackend(root, StillClock()), asked)


def test_fresh_head_is_listed_without_reading_records(tmp_path: Path) -> None:
    run = finished_run(tmp_path).name
    asked = Asked(None)
    (head,) = listing(tmp_path, asked).heads(lambda document: document["subject"] == "mathematics")
    assert (head.run_id, head.document["last_completed_step"], asked.runs) == (run, "sow", [])


def lengthen(folder: Path) -> None:
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b"{")


def flip_head(folder: Path) -> None:
    path = folder / "checkpoint.json"
    path.write_bytes(path.read_bytes().replace(b"mathematics", b"mathematicz"))


def flip_first_line(folder: Path) -> None:
    path = folder / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b"run_started", b"run_startes", 1))


def other_format(folder: Path) -> None:
    """A whole first line that names a format; as long as before, so that only it can tell."""
    path = folder / "journal.jsonl"
    first, _, rest = path.read_bytes().partition(b"\n")
    for filler in range(len(first)):
        line = encode_line(1, "t", 1, b'{"kind":"run_started","format":2,"x":"%s"}' % (b"x" * filler))
        if len(line) == len(first) + 1:
            path.write_bytes(line + rest)
            return
    raise AssertionError("the first line is too short")


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "checkpoint.json").unlink(),
        lambda folder: (folder / "journal.jsonl").unlink(),
        lengthen,
        flip_head,
        flip_first_line,
        other_format,
    ],
)
def test_run_whose_head_cannot_be_trusted_is_read_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder = finished_run(tmp_path)
    harm(folder)
    asked = Asked(Head(folder.name, {"status": "failed"}))
    runs = listing(tmp_path, asked)
    assert [head.document for head in runs.heads()] == [{"status": "failed"}]
    assert asked.runs == [folder.name]
    assert list(runs.heads(lambda document: document["status"] == "completed")) == []


def test_run_that_is_a_link_now_is_said_and_another_name_for_a_run_is_not(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "runs", StillClock())
    runs, away = tmp_path / "runs", tmp_path / "away"
    kept, moved, gone = (finished_run(runs) for _ in range(3))
    away.mkdir()
    moved.rename(away / moved.name)
    moved.symlink_to(away / moved.name)
    gone.rename(away / "gone")
    gone.touch()
    (runs / "newest").symlink_to(kept.name)
    (runs / "notes").symlink_to(tmp_path)
    (runs / "mine").symlink_to(away / moved.name)
    (runs / "unmounted").symlink_to(tmp_path / "nowhere")
    heads = {head.run_id: bool(head.corrupt) for head in store.heads()}
    assert heads == {kept.name: False, moved.name: True, gone.name: True, "mine": True, "unmounted": True}
    assert {head.run_id for head in store.heads(lambda document: False)} >= {moved.name}


# --- journals that this store left itself ---------------------------------------------------------


def long_run(store: FileStore) -> str:
    """A run whose journal is long enough for a survey to cost something."""
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [line(seq, StepStarted(f"{'long' * 20}{seq}")) for seq in range(2, 600)])
    journal.close()
    return run


def test_journal_that_this_store_left_is_not_surveyed_again(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run = long_run(store)
    other = FileStore(store.root, StillClock())
    surveyed = []

    def survey(read: Callable[[], Blocks], *, ended: bool = True) -> Survey:
        surveyed.append(read)
        return whole_survey(read, ended=ended)

    monkeypatch.setattr("pipeline.store.runs.survey", survey)
    for seq in range(600, 603):
        journal = store.open(run)
        assert journal.last_seq == seq - 1
        journal.append(seq, [line(seq, StepStarted("more"))])
        journal.close()
    assert not surveyed
    journal = other.open(run)
    journal.append(603, [line(603, StepStarted("another's"))])
    journal.close()
    assert len(surveyed) == 1
    # Somebody else has written to it since.
    journal = store.open(run)
    assert journal.last_seq == 603
    journal.close()
    assert len(surveyed) == 2


def test_journal_damaged_since_this_store_left_it_is_mended(store: FileStore) -> None:
    run = long_run(store)
    path = store.root / run / "journal.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:5000] + b"?" + data[5001:])
    os.utime(path, ns=(0, 0))
    journal = store.open(run)
    assert len(journal.repairs) == 1
    journal.close()


def test_store_of_nobody_who_calls_holds_no_disk_back(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "runs", StillClock(), concurrency=0, disk=(disk := Allocated()))
    store.create(started(), [], at=AT)[1].close()
    FileStore(tmp_path / "runs", StillClock(), disk=disk).open("20260109_143022").close()
    assert len(disk.sizes) == 1


class Allocated(Disk):
    """A disk that notes what is held back on it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def allocate(self, fd: int, size: int) -> None:
        self.sizes.append(size)
        super().allocate(fd, size)
