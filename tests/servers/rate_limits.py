"""The test server's rate limits: buckets that fill evenly, as the provider documents them, and the headers that say so.

Requests are counted as they come, input tokens (but for those read from the cache) as well, output tokens as they are
made. A request that finds less than it needs is refused and takes nothing.
Source: Anthropic's page on rate limits (token bucket; cache reads do not count; max_tokens plays no part).
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from datetime import timedelta

from pipeline.clock import Clock, SystemClock

MINUTE = 60.0
#: Figures of tokens are told to the nearest so many.
_TOLD = 1000


class Bucket:
    """One limit a minute. Not thread-safe."""

    def __init__(self, limit: float, size: float, now: float) -> None:
        self.limit = limit
        self.size = size
        self._level = size
        self._at = now

    def level(self, now: float) -> float:
        self._level = min(self._level + (now - self._at) * self.limit / MINUTE, self.size)
        self._at = now
        return self._level

    def spend(self, amount: float, now: float) -> None:
        """Take it, even below nothing: what was made is counted after it was let in."""
        self._level = self.level(now) - amount

    def seconds_to(self, amount: float, now: float) -> float:
        """Seconds until so much is there."""
        return max(amount - self.level(now), 0.0) / self.limit * MINUTE


@dataclass(frozen=True)
class Told:
    """What one answer says: whether the request was let in, and the headers."""

    let_in: bool
    headers: dict[str, str]


class RateLimits:
    """The limits of one account. Thread-safe."""

    def __init__(
        self,
        *,
        requests: float | None = None,
        input_tokens: float | None = None,
        output_tokens: float | None = None,
        burst: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        """Full buckets.

        Args:
            requests, input_tokens, output_tokens: A minute; None: no such limit.
            burst: Part of a minute's worth that a bucket holds; below 1, the limit is enforced over shorter times.
        """
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        now = self._clock.monotonic()
        given = {"requests": requests, "input-tokens": input_tokens, "output-tokens": output_tokens}
        self._buckets = {
            name: Bucket(limit, max(limit * burst, 1.0), now) for name, limit in given.items() if limit is not None
        }
        #: Seconds since the start of each request, and whether it was let in.
        self.log: list[tuple[float, bool]] = []
        self._begun = now

    def take(self, input_tokens: int) -> Told:
        """Let a request in or refuse it; `input_tokens`: those not read from the cache."""
        needed = {"requests": 1.0, "input-tokens": float(input_tokens), "output-tokens": 1.0}
        with self._lock:
            now = self._clock.monotonic()
            waits = [bucket.seconds_to(needed[name], now) for name, bucket in self._buckets.items()]
            wait = max(waits, default=0.0)
            self.log.append((now - self._begun, wait <= 0))
            if wait <= 0:
                for name, bucket in self._buckets.items():
                    if name != "output-tokens":
                        bucket.spend(needed[name], now)
            headers = self._headers(now)
        # Whole seconds, never too few.
        return Told(wait <= 0, headers if wait <= 0 else {**headers, "retry-after": str(math.ceil(wait))})

    def made(self, output_tokens: int) -> None:
        """Output tokens were made."""
        with self._lock:
            if (bucket := self._buckets.get("output-tokens")) is not None:
                bucket.spend(output_tokens, self._clock.monotonic())

    def _headers(self, now: float) -> dict[str, str]:
        found = {}
        for name, bucket in self._buckets.items():
            left = max(bucket.level(now), 0.0)
            full = self._clock.now() + timedelta(seconds=bucket.seconds_to(bucket.size, now))
            told = math.floor(left) if name == "requests" else round(left / _TOLD) * _TOLD
            found[f"anthropic-ratelimit-{name}-limit"] = f"{bucket.limit:.0f}"
            found[f"anthropic-ratelimit-{name}-remaining"] = str(told)
            found[f"anthropic-ratelimit-{name}-reset"] = full.isoformat(timespec="seconds").replace("+00:00", "Z")
        return found
