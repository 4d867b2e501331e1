"""Runs in memory, gone at the end: the public fake of the store and of the account, under the same contract suite."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pipeline.clock import Clock, SystemClock, iso
from pipeline.store.backend import Backend, Fenced, Gone, Held, Tail, Tip, folder_key
from pipeline.store.journal import RunJournal as MemoryJournal
from pipeline.store.ledger import BackendAccount
from pipeline.store.names import newest_first, older
from pipeline.store.owner import process
from pipeline.store.runs import RunStore

__all__ = ["MemoryAccount", "MemoryBackend", "MemoryJournal", "MemoryStore"]


@dataclass
class _Journal:
    lines: list[bytes] = field(default_factory=list)
    epoch: int = 0
    #: The owner, as a lock would name it; {} while there is none.
    holder: Mapping[str, Any] = field(default_factory=dict)
    touched: float = 0.0


class MemoryTail(Tail):
    """The end of a journal in memory."""

    def __init__(self, backend: MemoryBackend, name: str, journal: _Journal) -> None:
        self.epoch = journal.epoch
        self.found = str(len(journal.lines))
        self._backend = backend
        self._name = name
        self._journal = journal

    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
        with self._backend.lock:
            journal = self._mine()
            new = [line.removesuffix(b"\n") for line in lines]
            if new and new != journal.lines[-len(new) :]:
                journal.lines += new

    def head(self, data: bytes, sync: bool) -> None:
        with self._backend.lock:
            self._mine()
            self._backend.put_if(f"{folder_key(self._name)}/head", data, None)

    def put(self, key: str, data: bytes) -> None:
        self._backend.put_if(key, data, None)

    def rewrite(self, lines: Sequence[bytes]) -> None:
        with self._backend.lock:
            self._mine().lines = [line.removesuffix(b"\n") for line in lines]

    def left(self) -> str:
        return str(len(self._journal.lines))

    def release(self) -> None:
        with self._backend.lock:
            if self._journal.epoch == self.epoch:
                self._journal.holder = {}

    def _mine(self) -> _Journal:
        journal = self._backend.journals.get(self._name)
        if journal is not self._journal:
            raise Gone
        if journal.epoch != self.epoch:
            raise Fenced
        return journal


class MemoryBackend(Backend):
    """Journals and objects as dicts, under one lock."""

    url, place = "memory:", ""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.journals: dict[str, _Journal] = {}
        self.objects: dict[str, tuple[bytes, str]] = {}
        self._puts = 0

    def own(self, name: str, since: datetime, *, new: bool = False) -> Tail | None:
        with self.lock:
            found = self.journals.get(name)
            if found is None:
                run, _, path = name.partition("/")
                if not new and not (name.startswith(".") or (path and run in self.journals)):
                    return None
                found = self.journals[name] = _Journal()
            elif new:
                return None
            if found.holder:
                raise Held(found.holder)
            found.epoch += 1
            found.holder = {**process(), "since": iso(since)}
            found.touched = SystemClock().now().timestamp()
            return MemoryTail(self, name, found)

    def read(self, name: str, after: int = 0) -> Iterator[list[bytes]]:
        with self.lock:
            found = self.journals.get(name)
            if found is None or (not found.lines and "/" not in name):
                raise FileNotFoundError(name)
            lines = found.lines
            # What is damaged has no number, so only a whole journal is begun in its middle.
            sound = after < len(lines) and lines[after].startswith(b'{"seq":%d,' % (after + 1))
            return iter([lines[after:] if sound else list(lines)])

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        with self.lock:
            if etag is not None and self.objects.get(key, (b"", ""))[1] != etag:
                return None
            self._puts += 1
            self.objects[key] = bytes(data), str(self._puts)
            return str(self._puts)

    def get(self, key: str) -> tuple[bytes, str] | None:
        return self.objects.get(key)

    def list(self, prefix: str) -> Iterator[str]:
        with self.lock:
            return iter(sorted(key for key in self.objects if key.startswith(prefix)))

    def delete(self, prefix: str) -> None:
        with self.lock:
            for key in [key for key in self.objects if key == prefix or key.startswith(f"{prefix}/")]:
                del self.objects[key]
            for name in list(self.journals):
                if f"{folder_key(name)}/".startswith(f"{prefix}/"):
                    del self.journals[name]

    def tips(self, claim: str = "", start: str = "") -> Iterator[Tip]:
        names = [name for name in list(self.journals) if "/" not in name]
        for run in [start, *older(names, start)] if start else newest_first(names):
            found = self.journals.get(run)
            if found is None:
                continue
            head = self.objects.get(f"runs/{run}/head")
            yield Tip(
                run,
                head[0] if head else None,
                size=sum(map(len, found.lines)) + len(found.lines),
                leftover=not found.lines,
                touched=found.touched,
                first=lambda found=found: found.lines[0] if found.lines else b"",  # type: ignore[misc]
                owned=lambda found=found: bool(found.holder),  # type: ignore[misc]
                holder=lambda found=found: found.holder,  # type: ignore[misc]
            )

    def parts(self, run: str, beginning: str = "") -> Sequence[str]:
        with self.lock:
            return sorted(name.partition("/")[2] for name in self.journals if name.startswith(f"{run}/"))

    def is_there(self) -> bool:
        return True


class MemoryStore(RunStore):
    """Runs of this process; see store.base.Store."""

    def __init__(self, clock: Clock) -> None:
        self.memory = MemoryBackend()
        super().__init__(self.memory, clock)

    def account(self) -> MemoryAccount:
        return MemoryAccount(self._clock, self.memory)


class MemoryAccount(BackendAccount):
    """An account of this process; see store.base.Account."""

    def __init__(self, clock: Clock, backend: MemoryBackend | None = None) -> None:
        super().__init__(backend or MemoryBackend(), clock)
