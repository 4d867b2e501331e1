"""The stores that every test of the store's contract is run over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from tests.faulty_disk import LazyDisk
from tests.journals import StillClock


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Store:
    makers: dict[str, Callable[[], Store]] = {
        "files": lambda: FileStore(tmp_path / "runs", clock, disk=LazyDisk()),
        "memory": lambda: MemoryStore(clock),
    }
    return makers[request.param]()
