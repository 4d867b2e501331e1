"""Ends statements that a server which hangs will never answer: a timeout of the server's own does not help then.

A statement that takes long is asked after over another connection, and left alone where the server works on it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.clock import SystemClock
from pipeline.store.silence import Silence

#: After how long a statement is asked after, how long that may take, and how often it is looked, in seconds.
_ASK_SECONDS, _PROBE_SECONDS, _LOOK_SECONDS = 8, 12, 1
#: How long an answer may take of a server that lets one connection in: it cannot be asked over another.
_SINGLE_SECONDS = 30
_CLOCK = SystemClock()
_ACTIVITY = "SELECT pid, state FROM pg_stat_activity WHERE pid = ANY(%s)"


class Guard:
    """Looks after the statements of one database."""

    def __init__(self, connect: Callable[[], Any], silence: Silence, *, single: bool) -> None:
        """Nothing is asked yet.

        Args:
            connect: Makes another connection, as SQLAlchemy's pools lend them.
        """
        self._connect = connect
        self._silence = silence
        self._single = single
        #: Connections that a thread waits at, and since when.
        self._busy: dict[int, tuple[Any, float]] = {}

    @contextlib.contextmanager
    def over(self, driver: Any) -> Iterator[None]:
        """While an answer is awaited on this connection."""
        thread = threading.get_ident()
        self._busy[thread] = (driver, _CLOCK.monotonic())
        _watch(self)
        try:
            yield
            self._silence.answered()
        except Exception as error:
            if getattr(error, "sqlstate", None):
                self._silence.answered()
            raise
        finally:
            del self._busy[thread]

    def look(self) -> None:
        """Cut the connections whose answers will not come."""
        now = _CLOCK.monotonic()
        late = {thread: entry for thread, entry in list(self._busy.items()) if now - entry[1] > _ASK_SECONDS}
        if not late:
            return
        worked_on = self._worked_on([_pid(driver) for driver, _ in late.values()])
        for thread, (driver, since) in late.items():
            waits = now - since < _SINGLE_SECONDS if self._single else _pid(driver) in worked_on
            if not waits and self._busy.get(thread) == (driver, since):
                _cut(driver)

    def _worked_on(self, pids: list[int]) -> set[int]:
        """Those of the server's processes that it works in; none, where it lets nobody in."""
        if self._single:
            return set()
        found: set[int] = set()

        def ask() -> None:
            with contextlib.suppress(Exception):
                link = self._connect()
                try:
                    rows = link.dbapi_connection.execute(_ACTIVITY, (pids,)).fetchall()
                finally:
                    link.close()
                # Idle: its answer was sent, and is lost. Unknown: something stands between, and passes on.
                found.update(set(pids) - {pid for pid, state in rows if str(state).startswith("idle")})

        asking = threading.Thread(target=ask, name="probe", daemon=True)
        asking.start()
        asking.join(_PROBE_SECONDS)
        return set(found)


def _pid(driver: Any) -> int:
    """Which of the server's processes a connection has; 0 where it has just ended."""
    with contextlib.suppress(Exception):
        return int(driver.info.backend_pid)
    return 0


def _cut(driver: Any) -> None:
    """Whoever waits at a connection finds that it has ended."""
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(driver.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


_guards: weakref.WeakSet[Guard] = weakref.WeakSet()
_watching = threading.Event()


def _watch(guard: Guard) -> None:
    """Have it looked at, by one thread of the process."""
    if guard not in _guards:
        _guards.add(guard)
    if not _watching.is_set():
        _watching.set()
        threading.Thread(target=_look, name="guard", daemon=True).start()


def _look() -> None:
    while not _CLOCK.wait(threading.Event(), _LOOK_SECONDS):
        for guard in list(_guards):
            guard.look()


os.register_at_fork(after_in_child=_watching.clear)
