"""What every store promises of a list of runs and of what each may hold; the same tests over each store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from pipeline.errors import RunNotFound
from pipeline.records.values import canonical, digest
from pipeline.store.base import Store
from tests.journals import AT, ended, small_run, started
from tests.stores import ids, write


def test_run_is_named_by_its_start_and_collisions_are_counted(store: Store) -> None:
    names = [store.create(started(), [], at=AT)[0] for _ in range(3)]
    assert names == ["20260109_143022", "20260109_143022_02", "20260109_143022_03"]


def test_runs_are_listed_newest_first(store: Store) -> None:
    later = AT + timedelta(days=1)
    for at in (AT, later, AT, later):
        store.create(started(), [], at=at)
    assert ids(store) == ["20260110_143022_02", "20260110_143022", "20260109_143022_02", "20260109_143022"]


def test_the_hundredth_run_of_a_second_is_newer_than_the_ninety_ninth(store: Store) -> None:
    for _ in range(101):
        store.create(started(), [], at=AT)[1].close()
    assert ids(store)[:3] == ["20260109_143022_101", "20260109_143022_100", "20260109_143022_99"]


def test_listing_is_lazy(store: Store) -> None:
    for _ in range(3):
        write(store, small_run())
    seen: list[str] = []

    def match(document: Mapping[str, Any]) -> bool:
        seen.append(document["run_id"])
        return True

    next(store.heads(match))
    assert seen == ["20260109_143022_03"]
    seen.clear()
    next(store.heads(match, start="20260109_143022_02"))
    assert seen == ["20260109_143022_02"]
    for name in ("../x", "\0"):
        with pytest.raises(RunNotFound):
            store.heads(start=name)


def test_living_owner_of_a_run_is_named(store: Store) -> None:
    run, journal = store.create(started(), [], at=AT)
    assert store.holder(run)["pid"] == os.getpid()
    journal.close()
    assert store.holder(run) == {}
    with pytest.raises(RunNotFound):
        store.holder("20250109_143022")


def test_head_that_was_never_written_takes_its_nodes_from_the_pinned_graph(store: Store) -> None:
    graph = canonical({"start": "a", "nodes": [{"id": "a"}, {"id": "b"}], "edges": []})
    store.create(started(pins={"graph": digest(graph)}), [graph], at=AT)
    assert next(store.heads()).document["nodes"] == ["a", "b"]


def test_match_drops_runs_by_their_document(store: Store) -> None:
    done = write(store, [*small_run(), ended(8)])
    write(store, small_run())
    assert [head.run_id for head in store.heads(lambda document: document["status"] == "completed")] == [done]
    assert list(store.heads(lambda document: "no such key" in document)) == []
    assert list(store.heads(lambda document: document.get("subject") == "physics")) == []


def test_pause_is_shown_as_recorded(store: Store) -> None:
    write(store, [*small_run(), ended(8, "in_progress", "paused_budget")])
    assert next(store.heads()).document["status_detail"] == "paused_budget"


def test_deleted_run_is_gone(store: Store) -> None:
    run, other = write(store, small_run()), write(store, small_run())
    store.delete(run)
    assert ids(store) == [other]
    with pytest.raises(RunNotFound):
        store.read(run)
