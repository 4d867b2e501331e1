"""Runs in memory, gone at the end: the public fake of the store and of the account, under the same contract suite."""

from __future__ import annotations

from pipeline.clock import Clock
from pipeline.store.journal import RunJournal as MemoryJournal
from pipeline.store.ledger import BackendAccount
from pipeline.store.memory_backend import MemoryBackend
from pipeline.store.runs import RunStore

__all__ = ["MemoryAccount", "MemoryJournal", "MemoryStore"]


class MemoryStore(RunStore):
    """Runs of this process; see store.base.Store."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(MemoryBackend(), clock)


class MemoryAccount(BackendAccount):
    """An account of this process; see store.base.Account."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(MemoryBackend(), clock)
