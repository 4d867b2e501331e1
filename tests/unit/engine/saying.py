"""Short ways to say things in the engine's tests."""

from __future__ import annotations

from typing import Any

from pipeline.llm.base import Message, Request
from pipeline.store.memory import MemoryStore
from pipeline.store.reading import records


def ask(text: str) -> Request:
    return Request("scripted", [Message("user", text)])


def facts(store: MemoryStore, run: str, kind: type) -> list[Any]:
    return [record.fact for record in records(store, run) if isinstance(record.fact, kind)]
