"""Shared by the engine's tests: a memory store and short ways to say things."""

from __future__ import annotations

import pytest

from pipeline.clock import SystemClock
from pipeline.store.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())
