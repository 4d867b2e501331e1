"""How many calls are in flight, and how fast new ones leave.

With `auto` the number grows while all goes well and is halved by a 429 or 529. Where the provider tells its limits,
calls leave no faster than these let them, also with a fixed number. Where it does not, or is overloaded, all wait for
the same moment: where the provider named it, they go then, but one first if that was of no use twice; where it did not,
one goes first, the same one until it is answered, and then all. After a refusal by a rate only as many go as were
answered before it.

What a provider lets pass a minute, as its answers tell it: requests, input tokens and output tokens.

Each is a bucket that fills evenly. A call leaves when all hold what it will need; what it needs of tokens is guessed
from earlier calls of its kind and put right when it is answered. Pure arithmetic on seconds; the caller locks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.stop import BUSY, Stop
from pipeline.errors import ModelError
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


class RateBucket:
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
        """Return the seconds until so much is there, or all the bucket holds; 0: now."""
        if not self.known:
            return 0.0
        lacking = min(amount, self._size) - self._filled(now)
        return lacking / self._per_second if lacking > _DUST else 0.0

    def granted(self) -> None:
        """Take in that a call was let in."""
        self._share = min(self._share + _ALONE, _SHARE)

    def spend(self, now: float, amount: float = 1.0) -> None:
        """Take so much, also more than is there; below 0: give it back."""
        self._level, self._at = self._filled(now) - amount, now
        self.spent += amount

    def empty(self, now: float) -> None:
        """Take in that the provider refused: there was nothing left."""
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
    #: Limit of tokens → what the call can take at most, whatever its answer says.
    most: Mapping[str, float]


class Allowance:
    """All limits of one provider."""

    def __init__(self) -> None:
        self._buckets = {REQUESTS: RateBucket(), INPUT: RateBucket(_NEWS_TOKENS), OUTPUT: RateBucket(_NEWS_TOKENS)}
        #: Kind of call → tokens that one takes.
        self._usual: dict[str, dict[str, float]] = {}
        #: What the calls that are out take: the provider may not have counted it yet.
        self._out: dict[str, float] = dict.fromkeys(self._buckets, 0.0)

    @property
    def known(self) -> bool:
        """Return the provider has told its limit of requests."""
        return self._buckets[REQUESTS].known

    def take(self, now: float, request: Request) -> Need | float:
        """Take what the call needs and return it; or return the seconds until it may leave."""
        guess = {INPUT: request.size() / _BYTES, OUTPUT: request.max_tokens * _FILLS}
        amounts = {REQUESTS: 1.0, **self._usual.get(request.label, guess)}
        wait = max(self._buckets[name].wait(now, amount) for name, amount in amounts.items())
        if wait:
            return wait
        counted = {name: bucket.spent - self._out[name] for name, bucket in self._buckets.items()}
        self._leave(amounts, 1)
        self._spend(now, amounts)
        most = {INPUT: float(request.size() + request.added()), OUTPUT: float(request.max_tokens)}
        return Need(request.label, now, amounts, counted, most)

    def answered(self, now: float, need: Need, reply: Reply) -> None:
        """Take in what an answer says of limits, and what its call really took."""
        # Of input, what is read from the cache does not count.
        fresh = _count(reply.usage, "input_tokens") + _count(reply.usage, "cache_creation_input_tokens")
        said = {INPUT: fresh, OUTPUT: _count(reply.usage, "output_tokens")}
        took = {name: float(min(amount, need.most[name])) for name, amount in said.items()}
        usual = self._usual.setdefault(need.label, dict(took))
        for name, amount in took.items():
            usual[name] += (amount - usual[name]) * _NEWEST
        self._leave(need.amounts, -1)
        self._spend(now, {name: took[name] - need.amounts[name] for name in took})
        self._learn(now, need, reply.limits)
        for bucket in self._buckets.values():
            bucket.granted()

    def failed(self, now: float, need: Need, limits: Any, *, refused: bool) -> None:
        """Take in that a call has no answer; `refused`: by a limit, so it took nothing, and the limit is used up."""
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
        """Give back what a call took that did not leave after all."""
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
    """Return what is left of a limit, as the provider tells; -1: it does not."""
    left = limits.get(f"{name}_left")
    return max(float(left), 0.0) if isinstance(left, (int, float)) else -1.0


def _count(usage: Any, name: str) -> int:
    """Return a figure of a usage object; 0 where it is none that can be."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return max(value, 0) if isinstance(value, int) else 0


#: `--concurrency auto` begins with so many calls in flight, and never has more than so many.
FIRST, MOST = 8, 64
#: After so many pauses whose length was named calls go at once though none was answered; then one goes first.
_AT_ONCE = 2
#: So many more may be in flight for each answer, until the provider was busy for the first time.
_STRIDE = 3
_TICK_SECONDS = 0.25


@dataclass(slots=True)
class Turn:
    """A place among the calls in flight."""

    #: What it takes of the provider's limits.
    need: Need
    #: Monotonic seconds.
    begun: float
    #: Set by its holder, where an answer came.
    reply: Reply | None = None


class Pace:
    """Lets calls of one run leave; shared by its threads."""

    def __init__(
        self, clock: Clock, stop: Stop, *, most: int, adaptive: bool = False, like: Pace | None = None
    ) -> None:
        """Begin.

        Args:
            most: Calls that may be in flight at once.
            adaptive: Begin with fewer and find out.
            like: The two share what either learns of the provider's limits.
        """
        self._clock = clock
        self._stop = stop
        self._most = most
        self._adaptive = adaptive
        self._window = float(min(FIRST, most) if adaptive else most)
        #: Up to here the window grows by `_stride` an answer, from here on by one for a round of answers.
        self._known_good = float(most)
        self._stride = _STRIDE
        self._out = 0
        #: Calls answered so far.
        self.answers = 0
        self._allowance: Allowance = Allowance() if like is None else like._allowance
        self._lock: threading.Lock = threading.Lock() if like is None else like._lock
        self._turn = threading.Condition(self._lock)
        #: Held by the one call that is next; the others do not look at the clock meanwhile.
        self._door = threading.Lock()
        #: Calls that left before this moment say nothing new of a provider that was busy then.
        self._busy_at = -1.0
        #: When the window was last full: one that holds no call up does not grow.
        self._full_at = -1.0
        #: One call goes first and has no answer yet; and the thread whose call that is, until it goes again.
        self._probing = False
        self._first: int | None = None
        #: Calls answered since the provider was busy last.
        self._passed: int | None = None
        #: To how many the window opens once the first call is answered.
        self._opening = float(most)
        #: Pauses in a row after which no call was answered.
        self._closed = 0

    @property
    def limit(self) -> int:
        """Return calls that may be in flight now."""
        return int(self._window)

    @contextmanager
    def turn(self, request: Request) -> Iterator[Turn]:
        """Hold a place among the calls in flight; what its end says of limits is learnt.

        Raises:
            Pause: The run is stopping.
        """
        if self._first == threading.get_ident():
            # The call at the door waits for this one.
            need = self._enter(request)
        else:
            with self._door:
                need = self._enter(request)
        turn = Turn(need, self._clock.monotonic())
        try:
            yield turn
        except ModelError as error:
            self._failed(turn, error)
            raise
        except BaseException:
            with self._turn:
                self._allowance.give_back(self._clock.monotonic(), turn.need)
                self._leave()
            raise
        else:
            self._answered(turn)

    def _enter(self, request: Request) -> Need:
        while True:
            self._stop.check()
            with self._turn:
                now = self._clock.monotonic()
                may_go = self._out < self.limit and self._first in (None, threading.get_ident())
                found = self._allowance.take(now, request) if may_go else None
                if isinstance(found, Need):
                    self._out += 1
                    self._first = None
                if self._out >= self.limit:
                    self._full_at = now
                if isinstance(found, Need):
                    return found
                if found is None:
                    self._turn.wait(_TICK_SECONDS)
                    continue
            self._stop.rest(found)

    def _answered(self, turn: Turn) -> None:
        with self._turn:
            self._leave()
            self.answers += 1
            knew = self._allowance.known
            if turn.reply is not None:
                self._allowance.answered(self._clock.monotonic(), turn.need, turn.reply)
            if self._allowance.known and not knew:
                # From here on its limits say how fast calls leave.
                self._window = max(self._window, self._known_good)
            elif self._probing:
                self._window = max(self._window, min(self._opening, self._top))
            elif self._full_at >= turn.begun:
                growing = self._window < self._known_good
                top = self._known_good if growing else float(self._most)
                self._window = min(self._window + (self._stride if growing else 1 / self._window), top)
            self._probing = False
            if self._passed is not None:
                self._passed += 1
                if self._passed >= self._opening:
                    # As many as were let out came back: nothing holds them to so few.
                    self._opening = float(self._most)

    @property
    def _top(self) -> float:
        """Return the most that may be in flight after a pause."""
        return self._known_good if self._adaptive else float(self._most)

    def _failed(self, turn: Turn, error: ModelError) -> None:
        status = error.data.get("status")
        with self._turn:
            now = self._clock.monotonic()
            # First, so that nothing that is made of the answer can keep its place.
            self._leave()
            self._allowance.failed(now, turn.need, error.data.get("limits"), refused=status == 429)
            if status in BUSY and turn.begun > self._busy_at:
                herd = status != 429 or not self._allowance.known
                self._slow_down(now, herd=herd, told=bool(error.data.get("retry_after")), limited=status == 429)
                if self._probing and error.retryable:
                    self._first = threading.get_ident()

    def _leave(self) -> None:
        self._out -= 1
        self._turn.notify()

    def _slow_down(self, now: float, *, herd: bool, told: bool, limited: bool) -> None:
        """Let fewer out, but once for all calls that met the same busy provider.

        Args:
            herd: All that wait would leave at once after the pause.
            told: The provider said when that is.
            limited: By a rate, not by an overload.
        """
        self._busy_at = now
        self._stride = 1
        if self._adaptive and self._window > 1:
            self._known_good = max(self._window / 2, 1.0)
            self._window = self._known_good
        if not herd:
            return
        answered, self._passed = self._passed or 0, 0
        self._closed = 0 if answered else self._closed + 1
        if answered and limited:
            # So many it lets pass.
            width, self._opening = min(float(answered), self._top), 2.0 * answered
        elif answered or (told and self._closed <= _AT_ONCE):
            width = min(self._top, FIRST, self._opening)
        else:
            width = 1.0
        self._probing = width == 1.0
        self._window = width
