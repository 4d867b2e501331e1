"""A run in a database that another removes while it is being opened, or under its owner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import RunNotFound, WriteFailed
from pipeline.store.base import Store
from pipeline.store.sql.store import SqlStore
from tests.journals import AT, small_run, started


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("after", ["_find", "_known"])
def test_run_removed_while_it_is_opened_is_not_found(
    kind: str, after: str, make_store: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(kind)
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    looked, waiting = getattr(store, after), [run]

    def look(*args: Any) -> Any:
        found = looked(*args)
        while waiting:
            store.delete(waiting.pop())
        return found

    monkeypatch.setattr(store, after, look)
    with pytest.raises(RunNotFound):
        store.open(run)
    assert not waiting


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_run_that_is_removed_under_its_owner_takes_nothing_more(kind: str, make_store: Callable[[str], Store]) -> None:
    store = make_store(kind)
    assert isinstance(store, SqlStore)
    run, journal = store.create(started(), [], at=AT)
    with store.database.write() as link:
        for table in ("records", "leases", "journals"):
            link.run(f"DELETE FROM {table}")
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, small_run()[1:2])
    assert caught.value.data["gone"]
    assert run in Path(caught.value.data["emergency"]).read_text()
    journal.write_head({"status": "failed"}, durable=True)
    journal.close()
    assert not list(store.heads())
    with store.database.read() as link:
        assert not link.rows("SELECT journal FROM records")
