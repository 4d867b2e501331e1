"""How long a database that is away for a moment, as one that is restarted, is asked again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from pipeline.clock import Clock
from pipeline.errors import StoreError
from pipeline.store.sql.database import Database
from pipeline.store.sql.link import Link

T = TypeVar("T")

#: Seconds between tries.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.2)


class Patience:
    """Asks a database until it answers, or has been silent for too long. What is asked for may be done twice."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def read(self, do: Callable[[Link], T]) -> T:
        """What `do` reads."""

        def once() -> T:
            with self._database.read() as link:
                return do(link)

        return self.ask(once)

    def write(self, do: Callable[[Link], T], *, lock: int = 0) -> T:
        """What `do` comes to as a transaction; it finds what it did before where only the answer was lost.

        Args:
            lock: As for Database.write.
        """

        def once() -> T:
            with self._database.write(lock=lock) as link:
                return do(link)

        return self.ask(once)

    def ask(self, once: Callable[[], T]) -> T:
        """What `once` comes to, done again where the database is away.

        Raises:
            StoreError: It refuses, or stays away; else whatever `once` raises.
        """
        silence = self._database.silence
        with silence.asked():
            for pause in _PAUSES:
                try:
                    return once()
                except StoreError as error:
                    # Whatever has a state was said by the server itself.
                    if not error.data.get("again") or (silence.is_over() and error.data.get("state")):
                        raise
                    if silence.is_over():
                        raise self._database.unanswered(type(error)) from error
                self._clock.wait(threading.Event(), pause)
            return once()
