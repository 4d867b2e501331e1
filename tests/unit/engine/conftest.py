"""Shared by the engine's tests: a memory store, and Claude as the server of this machine plays it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline import AnthropicModel
from pipeline.clock import SystemClock
from pipeline.store.memory import MemoryStore
from tests.servers.billing import BillingServer
from tests.unit.engine.saying import MODEL


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())


@pytest.fixture
def claude(server: BillingServer) -> Iterator[AnthropicModel]:
    made = AnthropicModel(MODEL, api_key="sk-ant-api03-not-a-real-key-0123456789", base_url=server.url)
    yield made
    made.close()
