"""How many calls are in flight, and how fast new ones leave.

With a fixed number the number is all there is. With `auto` it grows by one for each round of answers and is halved
by a 429 or 529; and where the provider says what its limit is, calls leave no faster than it lets them, so that a
pause ends in a trickle, not in a herd.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.stop import Stop
from pipeline.errors import ModelError

#: `--concurrency auto` begins with so many calls in flight, and never has more than so many.
FIRST, MOST = 4, 64
#: A limit is not used to its last call: others may use the account, and clocks differ.
_SHARE = 0.98
#: So many calls fewer than we counted means that somebody else calls too.
_NEWS = 2
#: One call's worth, less what rounding may eat.
_WHOLE = 1 - 1e-9
_BUSY = frozenset({429, 529})
_TICK_SECONDS = 0.25


class Bucket:
    """A provider's limit of requests a minute, as a bucket that fills evenly; pure arithmetic on seconds."""

    def __init__(self) -> None:
        self._per_second = 0.0
        self._size = 0.0
        self._level = 0.0
        self._at = 0.0
        self._known = False

    def learn(self, limit: float, remaining: float, now: float, out: int) -> None:
        """Take in what an answer says: the limit a minute, and what was left when it was counted.

        Args:
            out: Calls that have left since and that the answer does not know of yet.
        """
        self._per_second = limit / 60 * _SHARE
        self._size = limit
        if not self._known:
            self._known, self._level = True, max(remaining - out, 0.0)
        else:
            # What it says is older than what we count ourselves; only a good deal less is news: others call too.
            level = self._filled(now)
            self._level = remaining if remaining + _NEWS < level else level
        self._at = now

    def take(self, now: float) -> float:
        """Take one; 0 where it was there, else the seconds until it will be, and nothing is taken."""
        if not self._per_second:
            return 0.0
        self._level, self._at = self._filled(now), now
        if self._level >= _WHOLE:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self._per_second

    def empty(self, now: float) -> None:
        """The provider refused: there was nothing left."""
        self._level, self._at = 0.0, now

    def _filled(self, now: float) -> float:
        return min(self._level + (now - self._at) * self._per_second, self._size)


class Pace:
    """Lets calls of one run leave; shared by its threads."""

    def __init__(self, clock: Clock, stop: Stop, *, most: int, adaptive: bool = False) -> None:
        """Begin.

        Args:
            most: Calls that may be in flight at once.
            adaptive: Begin with fewer and find out.
        """
        self._clock = clock
        self._stop = stop
        self._most = most
        self._adaptive = adaptive
        self._limit = float(min(FIRST, most) if adaptive else most)
        self._out = 0
        self._bucket = Bucket()
        self._turn = threading.Condition()
        #: Calls that left before this moment say nothing new of a provider that was busy then.
        self._halved_at = -1.0

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a place among the calls in flight; what the call says of limits is learnt from its end.

        Raises:
            Pause: The run is stopping.
        """
        self._enter()
        begun = self._clock.monotonic()
        try:
            yield
        except ModelError as error:
            self._leave(begun, error.data.get("limits"), busy=error.data.get("status") in _BUSY)
            raise
        except BaseException:
            self._leave(begun, None, busy=False, ok=False)
            raise
        else:
            self._leave(begun, None, busy=False)

    def learn(self, limits: Mapping[str, Any]) -> None:
        """Take in what an answer says of the provider's limits: {"requests": a minute, "remaining": now}."""
        if not self._adaptive:
            return
        requests, remaining = limits.get("requests"), limits.get("remaining")
        if isinstance(requests, (int, float)) and isinstance(remaining, (int, float)) and requests > 0:
            with self._turn:
                self._bucket.learn(float(requests), float(remaining), self._clock.monotonic(), max(self._out - 1, 0))

    def _enter(self) -> None:
        while True:
            self._stop.check()
            with self._turn:
                if self._out >= self.limit:
                    self._turn.wait(_TICK_SECONDS)
                    continue
                wait = self._bucket.take(self._clock.monotonic()) if self._adaptive else 0.0
                if not wait:
                    self._out += 1
                    return
            self._stop.rest(wait)

    def _leave(self, begun: float, limits: Any, *, busy: bool, ok: bool = True) -> None:
        if isinstance(limits, Mapping):
            self.learn(limits)
        with self._turn:
            if self._adaptive and busy:
                self._slow_down(begun)
            elif self._adaptive and ok and self._out >= self.limit:
                self._limit = min(self._limit + 1 / self._limit, float(self._most))
            self._out -= 1
            self._turn.notify()

    def _slow_down(self, begun: float) -> None:
        """Halve, but once for all calls that met the same busy provider."""
        now = self._clock.monotonic()
        self._bucket.empty(now)
        if begun > self._halved_at:
            self._limit = max(self._limit / 2, 1.0)
            self._halved_at = now
