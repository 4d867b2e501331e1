"""Watches whether a shared prefix is read from the provider's cache, and says so once where it never is."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.engine.events import Emitter
from pipeline.llm.base import Request
from pipeline.records.values import digest

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
        """Take in the usage of an answer."""
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
                "it was written to the cache each time: the calls lie further apart than it lives, or all began at once"
                if seen.written
                else "it is shorter than what this model caches"
            )
            self._emit("note", text=f"The shared prefix of {request.label!r} calls is never read from the cache; "
                                    f"likely {why}.")  # fmt: skip


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else 0
    return value if isinstance(value, int) else 0
