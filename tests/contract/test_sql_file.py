"""The file of a SQLite store: begun by several at once, read where one may not write, removed under its owner."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.records.kinds import StepStarted
from pipeline.store.address import parse_store_url
from pipeline.store.integrity import check
from pipeline.store.reader import load
from pipeline.store.runs import RunStore
from pipeline.store.sql import sqlite as lite
from pipeline.store.sql.backend import SqlBackend, open_sql
from pipeline.store.sql.connections import Link, close_all
from tests import other_user
from tests.contract import harm
from tests.journals import AT, StillClock, line, small_run, started
from tests.stores import ids, write

NOBODY = other_user.NOBODY


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that all may look into."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)
        os.chmod(name, 0o755)


@pytest.fixture
def kept(folder: Path) -> Path:
    """A database with a run, that nobody has open and that all may read."""
    store = open_sql(f"sqlite:{folder}/runs.db", StillClock())
    write(store, small_run())
    # What is imported late is imported now: the child that reads may not be let into the folder of packages.
    assert look(folder / "runs.db") == ["20260109_143022: 7"]
    close_all()
    file = folder / "runs.db"
    file.chmod(0o444)
    assert os.listdir(folder) == ["runs.db"]
    return file


def fresh(file: Path) -> RunStore:
    """A store as another process has it: with connections of its own."""
    return RunStore(SqlBackend(lite.SqliteDatabase(parse_store_url(f"sqlite:{file}"))), StillClock())


def look(file: Path) -> list[str]:
    """All that is read of a store."""
    store = fresh(file)
    try:
        account = store.account()
        assert list(check(store, account)) == []
        assert (account.kept(), account.total(AT.date())) == ({}, Decimal(0))
        return [f"{run}: {len(list(store.read(run)))}" for run in ids(store)]
    finally:
        harm.database(store).close()


def begin(file: Path) -> list[str]:
    fresh(file).create(started(), [], at=AT)
    return []


def as_other(act: Callable[[Path], list[str]], file: Path) -> str:
    """What comes of it where somebody else does it."""

    def said() -> str:
        try:
            return " ".join(act(file))
        except PipelineError as error:
            return f"{error.message} {error.hint}"

    return other_user.as_other(said)


# Whoever may write to the folder must not lock out who may write to the file.
@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_file_that_one_may_only_read_is_read_and_nothing_is_left_beside_it(kept: Path, mode: int) -> None:
    kept.parent.chmod(mode)
    assert as_other(look, kept) == "20260109_143022: 7"
    assert os.listdir(kept.parent) == ["runs.db"]


def test_file_that_one_may_only_read_is_not_written(kept: Path) -> None:
    kept.parent.chmod(0o555)
    said = as_other(begin, kept)
    assert "attempt to write a readonly database" in said
    assert f"Use an account that may write to {kept} and its folder" in said


def test_file_that_is_open_elsewhere_is_read_with_what_was_just_written(kept: Path) -> None:
    kept.chmod(0o644)
    store = fresh(kept)
    run, journal = store.create(started(), [], at=AT)
    kept.chmod(0o444)
    kept.parent.chmod(0o555)
    assert as_other(look, kept) == f"{run}: 1 20260109_143022: 7"
    kept.parent.chmod(0o755)
    kept.chmod(0o644)
    journal.close()
    harm.database(store).close()


def test_file_that_is_open_elsewhere_and_hidden_in_part_is_said_to_be_so(kept: Path) -> None:
    kept.chmod(0o644)
    store = fresh(kept)
    store.create(started(), [], at=AT)[1].close()
    kept.chmod(0o444)
    kept.with_name("runs.db-wal").chmod(0o000)
    said = as_other(look, kept)
    assert "is open elsewhere, and runs.db-wal beside it cannot be read" in said
    kept.with_name("runs.db-wal").chmod(0o644)
    kept.chmod(0o644)
    harm.database(store).close()
    assert as_other(look, kept).count(": ") == 2


def test_file_whose_writer_died_is_not_read_half(kept: Path) -> None:
    kept.parent.joinpath("runs.db-wal").write_bytes(b"what was not yet taken over")
    kept.parent.chmod(0o555)
    said = as_other(look, kept)
    assert "left by a process that died while it wrote" in said
    assert f"list --store sqlite:{kept}" in said


def test_file_that_one_may_not_read_is_said_to_be_so(kept: Path) -> None:
    kept.chmod(0o000)
    assert "cannot be read: Permission denied. Use the owner's account" in as_other(look, kept)
    kept.chmod(0o644)
    kept.parent.chmod(0o000)
    assert "cannot be read: Permission denied. Use the owner's account" in as_other(look, kept)


def test_folder_that_one_may_not_write_to_is_named_when_a_run_begins(folder: Path) -> None:
    folder.chmod(0o555)
    said = as_other(begin, folder / "new" / "runs.db")
    assert "cannot be created: Permission denied" in said
    assert "--store sqlite:FILE" in said
    assert as_other(look, folder / "new" / "runs.db") == ""


def test_file_that_is_damaged_as_a_whole_is_no_surprise(kept: Path) -> None:
    kept.chmod(0o644)
    data = kept.read_bytes()
    kept.write_bytes(data[: len(data) // 2])
    with pytest.raises(StoreError, match="malformed") as caught:
        look(kept)
    assert "from a copy" in caught.value.hint
    kept.write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match="not a database") as caught:
        look(kept)
    assert "name another file" in caught.value.hint


def test_file_that_changes_under_a_reader_without_locks_is_not_believed(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fresh(kept)
    monkeypatch.setattr(lite, "_may", lambda path, how: how == os.R_OK)
    assert ids(store) == ["20260109_143022"]

    def read_while_it_changes(link: Link) -> None:
        link.row("found", "20260109_143022")
        kept.chmod(0o644)
        with sqlite3.connect(kept) as other:
            other.execute("DELETE FROM records")
            other.execute("DELETE FROM journals")
        other.close()

    with pytest.raises(StoreError, match="was changed while it was read"):
        harm.database(store).ask(read_while_it_changes)
    assert ids(store) == []


def remove(folder: Path) -> None:
    for each in folder.glob("runs.db*"):
        each.unlink()


def test_file_that_is_gone_is_said_and_not_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    store = open_sql(f"sqlite:{file}", StillClock())
    run, journal = store.create(started(), [], at=AT)
    remove(tmp_path)
    with pytest.raises(WriteFailed, match=r"runs\.db is gone: it was removed or replaced") as caught:
        journal.append(2, [line(2, StepStarted("seed#1"))])
    assert caught.value.data["gone"]
    assert caught.value.hint == "Restore the file from a copy, then resume the run."
    kept = Path(caught.value.data["emergency"])
    assert b"seed#1" in kept.read_bytes()
    journal.close()
    for look in (lambda: list(store.read(run)), lambda: store.open(run), lambda: store.account().total(AT.date())):
        with pytest.raises(StoreError, match="is gone"):
            look()
    assert list(tmp_path.glob("runs.db*")) == []


def test_file_that_is_brought_back_is_used(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    store = open_sql(f"sqlite:{file}", StillClock())
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    copy = open_sql(f"sqlite:{tmp_path}/copy.db", StillClock())
    copy.create_named(run, lines[0], at=AT).close()
    harm.database(copy).close()
    remove(tmp_path)
    with pytest.raises(WriteFailed, match="is gone"):
        journal.append(2, lines[1:2])
    journal.close()
    for each in tmp_path.glob("copy.db*"):
        each.rename(tmp_path / each.name.replace("copy", "runs"))
    assert len(list(store.read(run))) == 1
    assert store.account().total(AT.date()) == 0


def test_value_refused_by_a_file_that_is_gone_leaves_a_record_that_names_the_run(tmp_path: Path) -> None:
    file, copy = tmp_path / "runs.db", tmp_path / "copy.db"
    store = open_sql(f"sqlite:{file}", StillClock())
    # The last record is the start of a call, which is out at the provider.
    lines = small_run()[:5]
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:])
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    remove(tmp_path)
    with pytest.raises(WriteFailed) as caught:
        journal.put_blob(b"a value")
    assert caught.value.code == "database_gone"
    assert Path(caught.value.data["emergency"]).read_bytes().endswith(lines[-1])
    journal.close()
    copy.rename(file)
    # It was durable, so it may have been sent: it stays open, up to its worst case, and is not settled at nothing.
    store.open(run).close()
    assert list(store.read(run)) == [each.rstrip(b"\n") for each in lines]
    assert list(load(store, run).open_calls) == [5]


AT_ONCE = 4
BEGIN = """
import sys
from pipeline.clock import SystemClock
from pipeline.store.url import open_store
from tests.journals import AT, started
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
store.create(started(), [], at=AT)[1].close()
"""


def at_once(act: Callable[[RunStore], object], file: Path) -> None:
    together = threading.Barrier(AT_ONCE)

    def begin(store: RunStore) -> None:
        together.wait()
        act(store)

    stores = [fresh(file) for _ in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(begin, store) for store in stores]:
            done.result()
    for store in stores:
        harm.database(store).close()


def test_threads_that_begin_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    for number in range(20):
        file = tmp_path / f"{number}.db"
        at_once(lambda store: store.create(started(), [], at=AT)[1].close(), file)
        store = fresh(file)
        assert len(ids(store)) == AT_ONCE
        harm.database(store).close()


def test_threads_that_open_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    at_once(lambda store: store.create(started(), [], at=AT)[1].close(), file)
    for _ in range(20):
        at_once(lambda store: ids(store), file)


def test_processes_that_begin_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    for number in range(2):
        url = f"sqlite:{tmp_path}/{number}.db"
        command = [sys.executable, "-c", BEGIN, url]
        environ = {**os.environ, "PYTHONPATH": "."}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        all_of_them = [subprocess.Popen(command, env=environ, **pipes) for _ in range(AT_ONCE)]  # type: ignore[call-overload]
        for one in all_of_them:
            assert one.stdout.readline() == b"ready\n"
        for one in all_of_them:
            one.stdin.write(b"\n")
            one.stdin.flush()
        for one in all_of_them:
            one.communicate()
            assert one.returncode == 0
        store = fresh(tmp_path / f"{number}.db")
        assert len(ids(store)) == AT_ONCE
        harm.database(store).close()
