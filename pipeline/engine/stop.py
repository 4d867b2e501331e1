"""The one switch that stops a run from starting anything new; what is in flight ends and is recorded."""

from __future__ import annotations

import threading

from pipeline.clock import Clock
from pipeline.errors import (
    CheckpointCorrupt,
    Pause,
    PipelineError,
    RunExists,
    RunLocked,
    RunNotFound,
    SchemaTooNew,
    StoreError,
)

#: What a store says of one run while it answers; what else goes wrong with it is trouble of the store.
_OF_ONE_RUN = (CheckpointCorrupt, RunExists, RunLocked, RunNotFound, SchemaTooNew)


class Stop:
    """Asked once, seen by all threads of a run; the first reason wins."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._why: tuple[str, PipelineError] | None = None

    @property
    def asked(self) -> bool:
        return self._event.is_set()

    @property
    def why(self) -> tuple[str, PipelineError] | None:
        """(status detail, error) of the first request."""
        return self._why

    def request(self, detail: str, cause: PipelineError) -> None:
        """Stop starting new work, for this reason."""
        with self._lock:
            if self._why is None:
                self._why = (detail, cause)
        self._event.set()

    def check(self) -> None:
        """Return while work may start.

        Raises:
            Pause: The run is stopping.
        """
        if self._event.is_set():
            assert self._why is not None
            raise Pause(*self._why)

    def rest(self, seconds: float) -> None:
        """Wait, unless the run is stopped first.

        Raises:
            Pause: The run was stopped meanwhile.
        """
        if seconds > 0:
            self._clock.wait(self._event, seconds)
        self.check()


def pause_if_of_the_store(error: BaseException) -> None:
    """A store that does not answer is no fault of the work that asked it: that is done again, once it answers.

    Raises:
        Pause: It is that.
    """
    if isinstance(error, StoreError) and not isinstance(error, _OF_ONE_RUN):
        raise Pause("interrupted", error)
