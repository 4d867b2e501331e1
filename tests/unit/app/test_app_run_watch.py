"""Runs that are looked at again and again: always what the records say, and only new records are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.app.run_index import Watches
from pipeline.app.run_list import row_of
from pipeline.app.stores import head_of, open_store, state_of
from pipeline.clock import SystemClock
from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.store.base import Store
from tests.runs import Script
from tests.sample_runs import completed_run, corrupt_run, dead_run, failed_run, original_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def store(root: Path) -> Store:
    return open_store(f"files:{root}", concurrency=0)


@pytest.fixture
def watches(store: Store, monkeypatch: pytest.MonkeyPatch) -> Watches:
    """Looks that are never too young."""
    monkeypatch.setattr("pipeline.app.run_index.FRESH_SECONDS", -1.0)
    monkeypatch.setattr("pipeline.app.run_index._SLOW_SECONDS", -2.0)
    return Watches(store, SystemClock())


@pytest.mark.parametrize("make", [failed_run, completed_run, dead_run, original_run])
def test_run_is_as_a_listing_shows_it(root: Path, store: Store, watches: Watches, make: Callable[[Path], str]) -> None:
    run = make(root)
    head = head_of(store, run)
    for _ in range(2):
        now = watches.now(run)
        assert row_of(now.head) == row_of(head)
        assert now.state.total == state_of(store, head).total
        assert (now.owned, now.head.gone) == (False, head.gone)


def test_run_that_goes_on_is_followed_without_reading_it_again(
    root: Path, store: Store, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(root)
    script.begin("seed")
    first = watches.now(script.id)
    assert (first.owned, first.state.seq, first.ended) == (True, 2, False)
    assert watches.now(script.id) is first

    read: list[int] = []
    whole = store.read

    def counted(run: str, after: int = 0) -> Iterator[bytes]:
        read.append(after)
        return whole(run, after)

    def refused(*arguments: Any, **more: Any) -> Iterator[Any]:
        raise AssertionError("the list of runs was read")

    monkeypatch.setattr(store, "read", counted)
    monkeypatch.setattr(store, "heads", refused)
    script.complete("seed", {})
    second = watches.now(script.id)
    assert (second.state.seq, first.state.seq, read) == (3, 2, [2])
    assert second.head.document["last_completed_step"] == "seed"
    script.leave()
    third = watches.now(script.id)
    assert (third.owned, third.head.gone, third.state) == (False, True, second.state)
    assert third.head.document["status_detail"] == "interrupted"


def test_run_whose_head_knows_of_records_that_are_lost_is_read_as_a_whole(
    root: Path, store: Store, watches: Watches
) -> None:
    run = failed_run(root)
    journal = root / run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-3]))
    now = watches.now(run)
    assert now.state == state_of(store, head_of(store, run))
    assert now.head == head_of(store, run)


def test_run_that_is_not_there_or_cannot_be_read_is_an_error(root: Path, watches: Watches) -> None:
    with pytest.raises(RunNotFound):
        watches.now("20260101_000000")
    with pytest.raises(CheckpointCorrupt):
        watches.now(corrupt_run(root))


def test_run_that_is_made_again_under_a_name_is_another_one(root: Path, store: Store, watches: Watches) -> None:
    run = failed_run(root)
    assert watches.now(run).state.status == "failed"
    store.delete(run)
    with pytest.raises(RunNotFound):
        watches.now(run)
    assert Script(root).leave() == run
    assert (watches.now(run).state.status, watches.now(run).state.seq) == ("in_progress", 1)
