"""Notes on what goes on around a run: a store that does not answer, a cache that is never read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.clock import SystemClock
from pipeline.engine.events import Emitter
from pipeline.llm.base import Request
from pipeline.records.values import digest
from pipeline.store import availability

#: After how many seconds without an answer it is reported, and how often it is looked.
_SAID_AFTER, _LOOK_SECONDS = 10.0, 1.0


@contextlib.contextmanager
def watching_store(emit: Emitter) -> Iterator[None]:
    """Report, within a `with`, that the store does not answer; a store on a disk costs nothing."""
    done = threading.Event()
    if emit.heard and availability.is_possible():
        threading.Thread(target=_watch, args=(emit, done), name="silence", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _watch(emit: Emitter, done: threading.Event) -> None:
    # The silence that was reported, by its beginning: the next one may begin and grow as long between two looks.
    clock, told, said = SystemClock(), 0.0, 0.0
    while not clock.wait(done, _LOOK_SECONDS):
        since = availability.since()
        waited = clock.monotonic() - since if since else 0.0
        if told and since != told:
            if not availability.is_given_up():
                emit.note(f"The store answers again, after {said:.0f} s.")
            told = 0.0
        if waited > _SAID_AFTER and not told:
            told = since
            left = max(availability.PATIENCE_SECONDS - waited, 0)
            emit.waiting(left, "the store does not answer; trying again")
        said = waited


#: So many answers with the same prefix, none of which read it, are no accident.
_ANSWERS = 4


@dataclass(slots=True)
class _Seen:
    """What the answers to requests with one prefix said of the cache."""

    answers: int = 0
    read: int = 0
    written: int = 0
    said: bool = False


class CacheWatch:
    """The cache marks of one run's requests, and what came of them."""

    def __init__(self, emit: Emitter) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._prefixes: dict[str, _Seen] = {}

    def note(self, request: Request, usage: Mapping[str, Any]) -> None:
        marked = [place for place, part in enumerate(request.system) if part.cache]
        if not marked:
            return
        text = "\0".join(part.text for part in request.system[: marked[-1] + 1])
        with self._lock:
            seen = self._prefixes.setdefault(digest(f"{request.model}\0{text}".encode("utf-8", "replace")), _Seen())
            seen.answers += 1
            seen.read += _count(usage, "cache_read_input_tokens")
            seen.written += _count(usage, "cache_creation_input_tokens")
            tell = seen.answers >= _ANSWERS and not seen.read and not seen.said
            seen.said = seen.said or tell
        if tell:
            why = (
                "it was written to the cache each time: calls are further apart than it lives, or all started at once"
                if seen.written
                else "it is shorter than what this model caches"
            )
            self._emit.note(f"The shared prefix of {request.label!r} calls is never read from the cache; likely {why}.")


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else 0
    return value if isinstance(value, int) else 0
