"""How long a store that is asked over a network has not answered, and when that has been long enough."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator

from pipeline.clock import SystemClock

#: How long a server that does not answer is asked again, in seconds; the try that is under way then is the last.
PATIENCE_SECONDS = 45
#: How long it is not asked after that: a run that must stop does not wait for each of its last words.
_REST_SECONDS = 20
#: Real seconds, whatever a run's clock says: the server's answers take them too.
_CLOCK = SystemClock()
_all: weakref.WeakSet[Availability] = weakref.WeakSet()


class Availability:
    """What is known of one server's answers; for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking = 0
        self._since = 0.0
        self._rests_until = 0.0
        _all.add(self)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Lend a context in which the server is waited for, also between tries."""
        with self._lock:
            if not self._asking:
                self._since = _CLOCK.monotonic()
            self._asking += 1
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1

    def answered(self) -> None:
        """Note that the server said something."""
        self._since = _CLOCK.monotonic()
        self._rests_until = 0.0

    def seconds(self) -> float:
        """Return for how many seconds it has been waited for without an answer; 0 where it is not waited for."""
        return _CLOCK.monotonic() - self._since if self._asking else 0.0

    def since(self) -> float:
        """Return since when it is waited for without an answer (monotonic seconds); 0 where it is not."""
        return self._since if self._asking else 0.0

    def is_over(self) -> bool:
        """Return whether it has been waited for long enough."""
        return self.seconds() > PATIENCE_SECONDS

    def give_up(self) -> None:
        """Ask nothing for a while; who does all the same does not make it longer."""
        if not self.rests:
            self._rests_until = _CLOCK.monotonic() + _REST_SECONDS

    @property
    def rests(self) -> bool:
        return _CLOCK.monotonic() < self._rests_until


def is_possible() -> bool:
    """Return whether this process has asked for a store that could be silent."""
    return bool(_all)


def is_given_up() -> bool:
    """Return whether one was waited for long enough just now."""
    return any(one.rests for one in list(_all))


def since() -> float:
    """Return since when the server that has been silent for longest is waited for (monotonic seconds); 0: none is."""
    return min((begun for one in list(_all) if (begun := one.since())), default=0.0)
