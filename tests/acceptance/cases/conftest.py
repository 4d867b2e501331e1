"""What the acceptance cases share: layered runs over each kind of store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from tests.layered import Layered


@pytest.fixture(params=["memory", "files"])
def layered(request: pytest.FixtureRequest, tmp_path: Path) -> Layered:
    stores: dict[str, Callable[[], Store]] = {
        "memory": lambda: MemoryStore(SystemClock()),
        "files": lambda: FileStore(tmp_path / "runs", SystemClock()),
    }
    return Layered(stores[request.param]())
