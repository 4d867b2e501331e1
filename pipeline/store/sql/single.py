"""A server that serves one connection at a time (PGlite): whose turn it is to use the one that this process has."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.clock import SystemClock
from pipeline.errors import ConfigError, StoreError
from pipeline.store.lock import drop_in_children

#: How long a thread waits for its turn, in seconds, before that is an error: as long as for a locked SQLite file.
TURN_SECONDS = 30.0
#: How long a server that lets nobody in is asked again, in seconds between tries: it hears of a process that was
#: killed a moment later than the next one begins.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
#: What the driver says where no server listens; nothing to wait for.
_NOBODY = "Connection refused"
#: How PGlite names itself in version().
_NAME = "(PGlite "


class Turns:
    """Whose turn it is. One thread at a time; what it lends itself within its turn is what it has already."""

    def __init__(self, url: str, seconds: float = TURN_SECONDS) -> None:
        self._url = url
        self._seconds = seconds
        self._lock = threading.RLock()
        #: What the thread whose turn it is has in hand.
        self._held: Any = None
        drop_in_children(self)

    @contextlib.contextmanager
    def turn(self, lend: Callable[[], contextlib.AbstractContextManager[Any]]) -> Iterator[Any]:
        """What `lend` lends, for this thread alone.

        Raises:
            StoreError: Another thread did not end its turn.
        """
        lock = self._lock
        if not lock.acquire(timeout=self._seconds):
            raise StoreError(f"The one connection to {self._url} was not free within {self._seconds:.0f} s.")
        try:
            if self._held is not None:
                yield self._held
                return
            with lend() as self._held:
                try:
                    yield self._held
                finally:
                    self._held = None
        finally:
            lock.release()

    def drop(self) -> None:
        """In a forked child: no thread of the parent's ends its turn here."""
        self._lock = threading.RLock()
        self._held = None


def connected(connect: Callable[[], Any], errors: tuple[type[BaseException], ...]) -> Any:
    """A connection to a server that may be about to notice that the one before is gone.

    Raises:
        Whatever `connect` raises of `errors`, once it has been asked for a second and a half.
    """
    clock = SystemClock()
    for pause in _PAUSES:
        try:
            return connect()
        except errors as error:
            if _NOBODY in str(error):
                raise
        clock.wait(threading.Event(), pause)
    return connect()


def way_in(words: str, single: bool) -> str:
    """What to do about a server that refused, by the driver's words for it."""
    if not words.startswith("connection ") or _NOBODY in words:
        return "Check that the server runs and lets you in."
    if single:
        return "Another process may be using it, and it serves one at a time: wait for that one to end."
    return "Check that the server lets you in; if it serves one connection at a time, add ?single=1 to --store."


def refuse_one_by_one(url: str, version: str) -> None:
    """Refuse a server that is known to serve one connection at a time, where the URL does not say so.

    Args:
        version: What the server says it is.

    Raises:
        ConfigError: A second connection would wait for the first for ever.
    """
    if _NAME in version:
        raise ConfigError(
            f"The server of {url} is PGlite: it serves one connection at a time, and syncs nothing to its disk.",
            hint="Add ?single=1&unsafe=1 to --store, and let one process use it at a time.",
        )
