"""What a worker process has learnt of the provider's limits in one task of a run is known to the next."""

from __future__ import annotations

import threading

from pipeline.engine.pace import Pace

#: Runs whose pace a process keeps.
_MOST = 4
_lock = threading.Lock()
#: By the URL of the store and the run: runs of other stores may have the same name.
_kept: dict[tuple[str, str], Pace] = {}


def known(url: str, run: str) -> Pace | None:
    """A pace of a task of this run in this process; None: it is the first."""
    with _lock:
        return _kept.get((url, run))


def keep(url: str, run: str, pace: Pace) -> None:
    """Keep it for the tasks to come, unless one is kept."""
    with _lock:
        _kept.setdefault((url, run), pace)
        while len(_kept) > _MOST:
            del _kept[next(iter(_kept))]
