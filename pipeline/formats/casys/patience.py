"""Waiting for somebody's code, but not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from pipeline.clock import Clock

T = TypeVar("T")


def within(seconds: float | None, clock: Clock, work: Callable[[], T]) -> T:
    """What the work gives, if it does so in time; what takes longer is left alone and heard no more.

    Args:
        seconds: None: as long as it needs, in the thread of the caller.

    Raises:
        TimeoutError: It took longer. What the work raised passes through.
    """
    if seconds is None:
        return work()
    ended = threading.Event()
    given: list[T] = []
    raised: list[BaseException] = []

    def target() -> None:
        try:
            given.append(work())
        except BaseException as error:
            raised.append(error)
        finally:
            ended.set()

    threading.Thread(target=target, name="patience", daemon=True).start()
    if not clock.wait(ended, seconds):
        raise TimeoutError
    if raised:
        raise raised[0]
    return given[0]
