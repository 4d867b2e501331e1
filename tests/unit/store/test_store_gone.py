"""A run whose folder, journal or lock is taken away under its owner, who notices, keeps all and stops."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import RunNotFound, WriteFailed
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, StepStarted
from pipeline.store.files import FileStore
from pipeline.store.journal import RunJournal
from pipeline.store.reader import load
from pipeline.store.recovery import recover
from tests.faulty_disk import LazyDisk
from tests.journals import AT, StillClock, line, started

PAID = Charge("exact", Decimal(1), Decimal(1)).to_json()


def _replace_by_copy(home: Path) -> None:
    home.rename(home.with_name("first"))
    shutil.copytree(home.with_name("first"), home)


def _cover(home: Path) -> None:
    home.parent.rename(home.parent.with_name("hidden"))
    home.mkdir(parents=True)


def _replace(home: Path, name: str) -> None:
    shutil.copy(home / name, home / "copy")
    os.replace(home / "copy", home / name)


MISHAPS: dict[str, Callable[[Path], object]] = {
    "run removed": shutil.rmtree,
    "run moved": lambda home: home.rename(home.with_name("elsewhere")),
    "run replaced by a copy": _replace_by_copy,
    "store removed": lambda home: shutil.rmtree(home.parent),
    "store moved": lambda home: home.parent.rename(home.parent.with_name("elsewhere")),
    "something else mounted there": lambda home: _cover(home),
    "journal removed": lambda home: (home / "journal.jsonl").unlink(),
    "journal replaced": lambda home: _replace(home, "journal.jsonl"),
    "lock removed": lambda home: (home / "lock").unlink(),
    "lock replaced": lambda home: _replace(home, "lock"),
}  # fmt: skip


def begun(store: FileStore) -> tuple[str, RunJournal]:
    """A run with a call out."""
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [line(2, StepStarted("a#1")), line(3, CallStarted("a#1", "k", "m", "r", worst="2"))])
    return run, journal


def seen(folder: Path) -> dict[str, bytes]:
    """All that is in a folder but the lock, which its owner empties when it leaves."""
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("mishap", MISHAPS)
def test_owner_of_a_run_that_is_gone_takes_nothing_more_and_keeps_all_of_it(store: FileStore, mishap: str) -> None:
    run, journal = begun(store)
    home = store.root / run
    MISHAPS[mishap](home)
    before = seen(home)
    with pytest.raises(WriteFailed) as caught:
        journal.append(4, [line(4, CallStarted("a#1", "k2", "m", "r", worst="2"))])
    assert caught.value.data["fatal"]
    assert caught.value.data["gone"]
    assert caught.value.data["whole"]
    # The end of the call that was out, with a value of its own that must not go where another run may lie.
    with pytest.raises(WriteFailed):
        journal.put_blob(b"x" * 50_000)
    with pytest.raises(WriteFailed):
        journal.append(4, [line(4, CallEnded(3, b'"x"', PAID, usable=True))])
    journal.write_head({"status": "failed"}, durable=True)
    journal.close()
    file = Path(caught.value.data["emergency"])
    assert seen(home) == before, "nothing is changed in what lies there now"
    shutil.rmtree(store.root, ignore_errors=True)
    assert recover(store, run, file) >= 4
    state = load(store, run)
    assert not state.open_calls, "the call that was out has its end, the one that was never sent costs nothing"
    assert (state.total.usd, state.total.high) == (Decimal(1), Decimal(0))


def test_moved_run_that_is_brought_back_has_nothing_twice(store: FileStore) -> None:
    run, journal = begun(store)
    away = store.root.parent / "elsewhere"
    store.root.rename(away)
    with pytest.raises(WriteFailed):
        journal.append(4, [line(4, CallStarted("a#1", "k2", "m", "r", worst="2"))])
    with pytest.raises(WriteFailed):
        journal.append(4, [line(4, CallEnded(3, b'"x"', PAID, usable=True))])
    journal.close()
    with pytest.raises(RunNotFound):
        store.open(run)
    away.rename(store.root)
    again = store.open(run)
    assert again.taken
    again.close()
    state = load(store, run)
    assert (state.total.usd, state.total.high, state.total.calls) == (Decimal(1), Decimal(0), 2)
    assert not list((store.root.parent / "state").rglob("*.jsonl"))


def test_journal_that_was_removed_comes_back_at_open(store: FileStore) -> None:
    run, journal = begun(store)
    journal.write_head({"run_id": run, "status": "in_progress", "total_cost_usd": 5.0, "seq": 3}, durable=True)
    (store.root / run / "journal.jsonl").unlink()
    with pytest.raises(WriteFailed):
        journal.append(4, [line(4, CallEnded(3, b'"x"', PAID, usable=True))])
    journal.close()
    store.open(run).close()
    state = load(store, run)
    assert (state.total.usd, state.reported) == (Decimal(1), {})


def test_journal_that_is_cut_short_under_its_owner_is_noticed(store: FileStore) -> None:
    run, journal = begun(store)
    (store.root / run / "journal.jsonl").write_bytes(started())
    with pytest.raises(WriteFailed) as caught:
        journal.append(4, [line(4, CallEnded(3, b'"x"', PAID, usable=True))])
    assert caught.value.data["gone"]
    journal.close()
    store.open(run).close()
    assert load(store, run).total.usd == Decimal(1), "what it was about to record is kept"


def test_blob_that_is_stored_while_a_record_is_being_written_finds_the_run_there(tmp_path: Path) -> None:
    class Shared(LazyDisk):
        """Between a write and what its writer does next, another thread stores a blob."""

        journal: RunJournal | None = None

        def write(self, fd: int, data: bytes) -> int:
            written = super().write(fd, data)
            if self.journal is not None and b"step_started" in data:
                self.journal.put_blob(b"a reply")
            return written

    disk = Shared()
    store = FileStore(tmp_path / "runs", StillClock(), disk=disk, concurrency=0)
    run, journal = store.create(started(), [], at=AT)
    disk.journal = journal
    journal.append(2, [line(2, StepStarted("a#1"))])
    journal.close()
    assert load(store, run).open_paths == {"a#1": None}
