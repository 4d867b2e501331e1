"""A run in a database that another removes while it is being opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.errors import RunNotFound
from pipeline.store.base import Store
from tests.journals import AT, started


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
