"""A store in memory for each test."""

from __future__ import annotations

import pytest

from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(FakeClock())
