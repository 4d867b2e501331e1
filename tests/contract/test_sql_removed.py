"""A run in a database that another removes while it is being opened, or under its owner."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import RunLocked, RunNotFound, WriteFailed
from pipeline.store.base import Store
from tests.contract import harm
from tests.journals import AT, small_run, started


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_run_removed_while_it_is_opened_is_not_found(kind: str, make_store: Callable[[str], Store]) -> None:
    store = make_store(kind)

    def open_it(run: str) -> str:
        try:
            store.open(run).close()
        except RunNotFound:
            return "not found"
        except RunLocked:
            # Whoever removes it owns it for that.
            return "locked"
        return "opened"

    def delete_it(run: str) -> str:
        try:
            store.delete(run)
        except RunLocked:
            return "locked"
        return "deleted"

    seen = set()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(40):
            run, journal = store.create(started(), [], at=AT)
            journal.close()
            opened, deleted = pool.submit(open_it, run), pool.submit(delete_it, run)
            seen.add((opened.result(), deleted.result()))
    assert seen <= {("not found", "deleted"), ("opened", "locked"), ("opened", "deleted"), ("locked", "deleted")}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_run_that_is_removed_under_its_owner_takes_nothing_more(kind: str, make_store: Callable[[str], Store]) -> None:
    store = make_store(kind)
    run, journal = store.create(started(), [], at=AT)
    harm.remove(store, run)
    with pytest.raises(WriteFailed) as caught:
        journal.append(2, small_run()[1:2])
    assert caught.value.data["gone"]
    assert run in Path(caught.value.data["emergency"]).read_text()
    journal.write_head({"status": "failed"}, durable=True)
    journal.close()
    assert not list(store.heads())
    assert not harm.rows(store, "SELECT journal FROM records")
