"""INT, TERM and HUP: the first stops starting, the second leaves at once. The main thread does nothing else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def run_with_signals(work: Callable[[], None], first: Callable[[str], None], second: Callable[[], None]) -> None:
    """Run `work` in its own thread; signals reach `first(name)`, then `second()`.

    Outside the main thread signals are left alone. Raises what `work` raised.
    """
    error: list[BaseException] = []

    def target() -> None:
        try:
            work()
        except BaseException as caught:
            error.append(caught)

    seen = 0

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            first(signal.Signals(number).name)
        else:
            second()

    old: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        old = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        thread = threading.Thread(target=target, name="engine", daemon=True)
        thread.start()
        thread.join()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    if error:
        raise error[0]
