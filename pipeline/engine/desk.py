"""Where asks wait for a batch: gathered from all bodies, answered by the record.

No thread waits for a single answer: an ask leaves its request here and suspends its body; a visit whose body is
suspended waits here; once every visit that runs does, what was gathered goes out. After the results are recorded
the bodies run again from the top.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NoReturn

from pipeline.engine.batch_ledger import BatchPolicy
from pipeline.engine.batches import Post, Slot, slot
from pipeline.engine.entries import Ask
from pipeline.errors import Suspended, WaitingForBatch
from pipeline.records.run import CallRun


class Desk:
    """The asks of one run that wait for a batch."""

    def __init__(self, post: Post, policy: BatchPolicy) -> None:
        self._post = post
        self._policy = policy
        self._turn = threading.Condition()
        self._asks: dict[Slot, Ask] = {}
        #: Questions that go out as ordinary calls.
        self._single: set[Slot] = set()
        self._active = 0
        self._idle = 0
        self._round = 0
        self._leading = False
        self._error: BaseException | None = None

    def takes(self, ask: Ask, tries: Sequence[CallRun]) -> bool:
        """Whether this try is for a batch, or waits for one."""
        return _waits(tries) or (self._policy.gather and slot(ask) not in self._single)

    def leave(self, ask: Ask, tries: Sequence[CallRun]) -> NoReturn:
        """Leave a request here, unless a batch already holds it.

        Raises:
            Suspended: Always.
        """
        if not _waits(tries):
            with self._turn:
                self._asks[slot(ask)] = ask
        raise Suspended("waiting_for_batch", WaitingForBatch(hint=self._post.command()))

    def expect(self, active: int) -> None:
        """So many visits run now; once all of them wait here, a batch goes out."""
        with self._turn:
            self._active = active
            self._turn.notify_all()

    def settle(self) -> None:
        """Wait until what was left here has been answered, or may be asked by itself.

        Raises:
            Pause: The run is stopping, the ceiling has no room, or the batch is left to itself.
        """
        with self._turn:
            self._idle += 1
            mine = self._round
            while self._round == mine and self._error is None:
                if self._idle < self._active or self._leading:
                    self._turn.wait()
                else:
                    self._lead()
            if self._error is not None:
                raise self._error

    def _lead(self) -> None:
        """Serve for everyone who waits; called and left with the lock held."""
        self._leading = True
        asks, self._asks = list(self._asks.values()), {}
        self._turn.release()
        error: BaseException | None = None
        try:
            self._serve(asks)
        except BaseException as caught:
            error = caught
        finally:
            self._turn.acquire()
            self._leading, self._error = False, error
            self._round += 1
            self._idle = 0
            self._turn.notify_all()

    def _serve(self, asks: list[Ask]) -> None:
        """One round: hand in what was gathered, then wait for the first batch that ends."""
        if asks and len(asks) < self._policy.least:
            self._single.update(slot(ask) for ask in asks)
            self._post.say(f"{len(asks)} waiting: fewer than --batch-min, so they go by themselves.")
            asks = []
        self._post.go(asks)


def _waits(tries: Sequence[CallRun]) -> bool:
    """Whether the last try is out in a batch."""
    return bool(tries) and bool(tries[-1].batch) and not tries[-1].ended
