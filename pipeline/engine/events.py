"""What is reported while a run goes: plain events to listeners, always after the record is durable."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pipeline.clock import Clock, iso

_log = logging.getLogger("pipeline")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing to show. The types and their fields: devops/docs/observability.md."""

    type: str
    at: str
    data: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]


class Emitter:
    """Hands events to listeners, one at a time; a broken display never stops a run."""

    def __init__(self, clock: Clock, listeners: Sequence[Listener] = ()) -> None:
        self._clock = clock
        self._listeners = list(listeners)
        self._lock = threading.Lock()

    @property
    def heard(self) -> bool:
        """Return whether there is a listener; hot paths check before they gather what to report."""
        return bool(self._listeners)

    @contextmanager
    def also(self, listener: Listener) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):
                self._listeners.remove(listener)

    def note(self, text: str) -> None:
        """Tell the person something."""
        self("note", text=text)

    def waiting(self, seconds: float, reason: str) -> None:
        """Report that something waits this long, and why."""
        self("waiting", reason=reason, until=iso(self._clock.now() + timedelta(seconds=seconds)), seconds=seconds)

    def __call__(self, kind: str, **data: Any) -> None:
        """Call every listener; one that fails is not called again.

        Nothing it raises reaches the work that is reported: a reply may just have been paid for.
        """
        if not self._listeners:
            return
        event = Event(kind, iso(self._clock.now()), data)
        with self._lock:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except OSError:
                    # EPIPE: the display is gone.
                    self._listeners.remove(listener)
                except Exception:
                    self._listeners.remove(listener)
                    _log.exception("A listener failed at %r; it is not called again.", kind)
