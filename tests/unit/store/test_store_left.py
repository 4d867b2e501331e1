"""Journals that a file store left itself: opened again at once, unless they were changed; and what it holds back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.records.kinds import StepStarted
from pipeline.store.disk import Disk
from pipeline.store.files import FileStore
from pipeline.store.names import JOURNAL
from pipeline.store.survey import Blocks, Survey
from pipeline.store.survey import survey as whole_survey
from tests.journals import AT, StillClock, line, started


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "runs", StillClock())


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
    path = store.root / run / JOURNAL
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
