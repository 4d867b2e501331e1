"""Short ways to say things in the engine's tests."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.llm.base import Message, Request
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import records

PRICES = PriceBook()


def ask(text: str) -> Request:
    return Request("scripted", [Message("user", text)])


def facts(store: MemoryStore, run: str, kind: type) -> list[Any]:
    return [record.fact for record in records(store, run) if isinstance(record.fact, kind)]


def worst_of(request: Request, at: datetime, *, batch: bool = False) -> Decimal:
    """What a call is admitted at."""
    found = PRICES.worst(
        request.size(), request.max_tokens, model=request.model, at=at, batch=batch, added=request.added(),
        marked=request.marked(),
    )  # fmt: skip
    assert found is not None
    return found
