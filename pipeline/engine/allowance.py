"""What a provider lets pass a minute, as its answers tell it: requests, input tokens and output tokens.

Each is a bucket that fills evenly. A call leaves when all hold what it will need; what it needs of tokens is guessed
from earlier calls of its kind and put right when it is answered. Pure arithmetic on seconds; the caller locks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.llm.base import Reply, Request

#: A limit is not used to its last call: others may use the account, and clocks differ.
_SHARE = 0.98
#: Who is refused all the same has company on the account: a refusal takes this part of the share, an answer gives back
#: so much of it.
_COMPANY, _ALONE = 0.1, 0.002
_LEAST_SHARE = 0.05
#: Less than so much is no news of a level, as counting takes time: calls; tokens, which are told in thousands.
_NEWS_CALLS, _NEWS_TOKENS = 2.0, 1500.0
#: What rounding may eat.
_DUST = 1e-9
#: Bytes of a token, and the part of its limit an answer is taken to fill, before any was seen.
_BYTES, _FILLS = 4, 0.25
#: How much the newest call of a kind counts in what the next is taken to need.
_NEWEST = 0.25
#: Names of the limits, as `Reply.limits` has them.
REQUESTS, INPUT, OUTPUT = "requests", "input_tokens", "output_tokens"


class Bucket:
    """One limit a minute. Unknown at first; then nothing waits for it."""

    def __init__(self, news: float = _NEWS_CALLS) -> None:
        self._news = news
        self._limit = 0.0
        self._share = _SHARE
        self._size = 0.0
        self._level = 0.0
        self._at = 0.0
        #: All that was ever spent.
        self.spent = 0.0

    @property
    def known(self) -> bool:
        return self._limit > 0

    def learn(self, limit: float, left: float, now: float, *, since: float, age: float) -> None:
        """Take in what an answer says: the limit a minute, and what was left when it was counted.

        Args:
            since: What the provider may have counted after that.
            age: Seconds that may have passed since.
        """
        level = self._filled(now) if self.known else left - since
        self._limit = limit
        # Never more is saved up than was seen: a limit may be held over less than a minute.
        self._size = min(max(self._size, left + 1), max(limit, 1.0))
        # Between what must be there and what can be, our own count is the better one; outside, others call too.
        least = left - since - self._news
        most = max(left + age * limit / 60 + self._news, least)
        self._level, self._at = min(max(level, least), most, self._size), now

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Seconds until so much is there, or all the bucket holds; 0: now."""
        if not self.known:
            return 0.0
        lacking = min(amount, self._size) - self._filled(now)
        return lacking / self._per_second if lacking > _DUST else 0.0

    def granted(self) -> None:
        """A call was let in."""
        self._share = min(self._share + _ALONE, _SHARE)

    def spend(self, now: float, amount: float = 1.0) -> None:
        """Take so much, also more than is there; below 0: give it back."""
        self._level, self._at = self._filled(now) - amount, now
        self.spent += amount

    def empty(self, now: float) -> None:
        """The provider refused: there was nothing left."""
        self._level, self._at = min(self._filled(now), 0.0), now
        self._share = max(self._share * (1 - _COMPANY), _LEAST_SHARE)

    @property
    def _per_second(self) -> float:
        return self._limit / 60 * self._share

    def _filled(self, now: float) -> float:
        return min(self._level + (now - self._at) * self._per_second, self._size)


@dataclass(frozen=True, slots=True)
class Need:
    """What a call takes of each limit, as guessed when it left."""

    label: str
    begun: float
    #: Limit → amount.
    amounts: Mapping[str, float]
    #: Limit → what had been spent of it before, as far as the provider had counted it.
    counted: Mapping[str, float]


class Allowance:
    """All limits of one provider."""

    def __init__(self) -> None:
        self._buckets = {REQUESTS: Bucket(), INPUT: Bucket(_NEWS_TOKENS), OUTPUT: Bucket(_NEWS_TOKENS)}
        #: Kind of call → tokens that one takes.
        self._usual: dict[str, dict[str, float]] = {}
        #: What the calls that are out take: the provider may not have counted it yet.
        self._out: dict[str, float] = dict.fromkeys(self._buckets, 0.0)

    @property
    def known(self) -> bool:
        """The provider has told its limit of requests."""
        return self._buckets[REQUESTS].known

    def take(self, now: float, request: Request) -> Need | float:
        """What the call takes, now taken; or the seconds until it may leave, and nothing is taken."""
        guess = {INPUT: request.size() / _BYTES, OUTPUT: request.max_tokens * _FILLS}
        amounts = {REQUESTS: 1.0, **self._usual.get(request.label, guess)}
        wait = max(self._buckets[name].wait(now, amount) for name, amount in amounts.items())
        if wait:
            return wait
        counted = {name: bucket.spent - self._out[name] for name, bucket in self._buckets.items()}
        self._leave(amounts, 1)
        self._spend(now, amounts)
        return Need(request.label, now, amounts, counted)

    def answered(self, now: float, need: Need, reply: Reply) -> None:
        """A call has its answer: what it says of limits, and what it really took."""
        took = {INPUT: _uncached(reply.usage), OUTPUT: _count(reply.usage, "output_tokens")}
        usual = self._usual.setdefault(need.label, dict(took))
        for name, amount in took.items():
            usual[name] += (amount - usual[name]) * _NEWEST
        self._leave(need.amounts, -1)
        self._spend(now, {name: took[name] - need.amounts[name] for name in took})
        self._learn(now, need, reply.limits)
        for bucket in self._buckets.values():
            bucket.granted()

    def failed(self, now: float, need: Need, limits: Any, *, refused: bool) -> None:
        """A call has no answer; `refused`: by a limit, so it took nothing, and what is told to be used up is."""
        told = limits if isinstance(limits, Mapping) else {}
        self._leave(need.amounts, -1)
        self._spend(now, {name: -amount for name, amount in need.amounts.items() if refused or name == OUTPUT})
        self._learn(now, need, told)
        if not refused:
            return
        used_up = [name for name in self._buckets if 0 <= _left(told, name) < 1]
        for name in used_up or [REQUESTS]:
            self._buckets[name].empty(now)

    def give_back(self, now: float, need: Need) -> None:
        """A call did not leave after all."""
        self._leave(need.amounts, -1)
        self._spend(now, {name: -amount for name, amount in need.amounts.items()})

    def _learn(self, now: float, need: Need, limits: Mapping[str, Any]) -> None:
        for name, bucket in self._buckets.items():
            limit, left = limits.get(name), _left(limits, name)
            if isinstance(limit, (int, float)) and limit > 0 and left >= 0:
                since = bucket.spent - need.counted[name]
                # Of requests and input its own part is counted before it is answered.
                own = 0.0 if name == OUTPUT else need.amounts[name]
                bucket.learn(float(limit), left, now, since=since - own, age=now - need.begun)

    def _leave(self, amounts: Mapping[str, float], sign: int) -> None:
        for name, amount in amounts.items():
            self._out[name] += sign * amount

    def _spend(self, now: float, amounts: Mapping[str, float]) -> None:
        for name, amount in amounts.items():
            self._buckets[name].spend(now, amount)


def _left(limits: Mapping[str, Any], name: str) -> float:
    """What is told to be left of a limit; -1: nothing is told."""
    left = limits.get(f"{name}_left")
    return max(float(left), 0.0) if isinstance(left, (int, float)) else -1.0


def _uncached(usage: Any) -> float:
    """Input tokens that count: those read from the cache do not."""
    return _count(usage, "input_tokens") + _count(usage, "cache_creation_input_tokens")


def _count(usage: Any, name: str) -> float:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
