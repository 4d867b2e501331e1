"""How many calls are in flight, and how fast new ones leave.

With `auto` the number grows while all goes well and is halved by a 429 or 529. Where the provider tells its limits,
calls leave no faster than these let them, also with a fixed number. Where it does not, or is overloaded, all wait for
the same moment: where the provider named it, they go then, but one first if that was of no use twice; where it did not,
one goes first, the same one until it is answered, and then all. After a refusal by a rate only as many go as were
answered before it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.clock import Clock
from pipeline.engine.allowance import Allowance, Need
from pipeline.engine.retry import BUSY
from pipeline.engine.stop import Stop
from pipeline.errors import ModelError
from pipeline.llm.base import Reply, Request

#: `--concurrency auto` begins with so many calls in flight, and never has more than so many.
FIRST, MOST = 8, 64
#: After so many pauses whose length was named calls go at once though none was answered; then one goes first.
_AT_ONCE = 2
#: So many more may be in flight for each answer, until the provider was busy for the first time.
_STRIDE = 3
_TICK_SECONDS = 0.25


class Turn:
    """A place among the calls in flight."""

    def __init__(self, need: Need, begun: float) -> None:
        #: What it takes of the provider's limits.
        self.need = need
        #: Monotonic seconds.
        self.begun = begun
        #: Set by who holds it, where an answer came.
        self.reply: Reply | None = None


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
        #: When the window was last full: one that stands in nobody's way does not grow.
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
        """Calls that may be in flight now."""
        return int(self._window)

    @contextmanager
    def turn(self, request: Request) -> Iterator[Turn]:
        """Hold a place among the calls in flight; what its end says of limits is learnt.

        Raises:
            Pause: The run is stopping.
        """
        if self._first == threading.get_ident():
            # Whoever stands at the door waits for this one.
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
            self._unsent(turn)
            raise
        else:
            self._answered(turn)

    def _enter(self, request: Request) -> Need:
        while True:
            self._stop.check()
            with self._turn:
                now = self._clock.monotonic()
                found = self._allowance.take(now, request) if self._may_go() else None
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

    def _may_go(self) -> bool:
        """Whether this thread's call finds a place."""
        return self._out < self.limit and self._first in (None, threading.get_ident())

    def _answered(self, turn: Turn) -> None:
        with self._turn:
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
                self._grow()
            self._probing = False
            self._count_answer()
            self._leave()

    def _count_answer(self) -> None:
        if self._passed is None:
            return
        self._passed += 1
        if self._passed >= self._opening:
            # As many as were let out came back: nothing holds them to so few.
            self._opening = float(self._most)

    @property
    def _top(self) -> float:
        """The most that may be in flight after a pause."""
        return self._known_good if self._adaptive else float(self._most)

    def _failed(self, turn: Turn, error: ModelError) -> None:
        status = error.data.get("status")
        with self._turn:
            now = self._clock.monotonic()
            self._allowance.failed(now, turn.need, error.data.get("limits"), refused=status == 429)
            if status in BUSY and turn.begun > self._busy_at:
                herd = status != 429 or not self._allowance.known
                self._slow_down(now, herd=herd, told=bool(error.data.get("retry_after")), limited=status == 429)
                if self._probing and error.retryable:
                    self._first = threading.get_ident()
            self._leave()

    def _unsent(self, turn: Turn) -> None:
        with self._turn:
            self._allowance.give_back(self._clock.monotonic(), turn.need)
            self._leave()

    def _leave(self) -> None:
        self._out -= 1
        self._turn.notify()

    def _grow(self) -> None:
        more = self._stride if self._window < self._known_good else 1 / self._window
        top = self._known_good if self._window < self._known_good else float(self._most)
        self._window = min(self._window + more, top)

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
