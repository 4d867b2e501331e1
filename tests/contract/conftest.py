"""The stores that every test of the store's contract is run over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.objects.store import open_objects
from tests.faulty_disk import LazyDisk
from tests.journals import StillClock
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=["files", "memory", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Store:
    makers: dict[str, Callable[[], Store]] = {
        "files": lambda: FileStore(tmp_path / "runs", clock, disk=LazyDisk()),
        "memory": lambda: MemoryStore(clock),
        "objects": lambda: open_objects(request.getfixturevalue("objects"), clock),
    }
    return makers[request.param]()
