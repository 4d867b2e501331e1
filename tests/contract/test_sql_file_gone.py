"""A SQLite file that is removed while a journal in it is open: said, never made anew, and what was held is kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.errors import StoreError, WriteFailed
from pipeline.records.kinds import StepStarted
from pipeline.store.reader import load
from pipeline.store.sql.backend import open_sql
from tests.contract import harm
from tests.journals import AT, StillClock, line, small_run, started


def test_file_that_is_gone_is_said_and_not_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "runs.db"
    store = open_sql(f"sqlite:{file}", StillClock())
    run, journal = store.create(started(), [], at=AT)
    for each in tmp_path.glob("runs.db*"):
        each.unlink()
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


def test_file_that_is_brought_back_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "runs.db"
    store = open_sql(f"sqlite:{file}", StillClock())
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    copy = open_sql(f"sqlite:{tmp_path}/copy.db", StillClock())
    copy.create_named(run, lines[0], at=AT).close()
    harm.database(copy).close()
    for each in tmp_path.glob("runs.db*"):
        each.unlink()
    with pytest.raises(WriteFailed, match="is gone"):
        journal.append(2, lines[1:2])
    journal.close()
    for each in tmp_path.glob("copy.db*"):
        each.rename(tmp_path / each.name.replace("copy", "runs"))
    assert len(list(store.read(run))) == 1
    assert store.account().total(AT.date()) == 0


def test_value_refused_by_a_file_that_is_gone_leaves_a_record_that_names_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file, copy = tmp_path / "runs.db", tmp_path / "copy.db"
    store = open_sql(f"sqlite:{file}", StillClock())
    # The last record is the start of a call, which is out at the provider.
    lines = small_run()[:5]
    run, journal = store.create(lines[0], [], at=AT)
    journal.append(2, lines[1:])
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    for each in tmp_path.glob("runs.db*"):
        each.unlink()
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
