"""Says to people that the store of a run does not answer, how long it is asked again, and when it answers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import timedelta

from pipeline.clock import SystemClock, iso
from pipeline.engine.events import Emitter
from pipeline.store import silence

#: After how long without an answer it is said, and how often it is looked, in seconds.
_SAID_AFTER, _LOOK_SECONDS = 10.0, 1.0


@contextlib.contextmanager
def silence_told(emit: Emitter) -> Iterator[None]:
    """Within this, somebody is told where a store is silent; a store on a disk costs nothing."""
    done = threading.Event()
    if emit.heard and silence.is_possible():
        threading.Thread(target=_watch, args=(emit, done), name="silence", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _watch(emit: Emitter, done: threading.Event) -> None:
    # The silence that was told of, by its beginning: the next one may begin and grow as long between two looks.
    clock, told, said = SystemClock(), 0.0, 0.0
    while not clock.wait(done, _LOOK_SECONDS):
        since = silence.since()
        waited = clock.monotonic() - since if since else 0.0
        if told and since != told:
            if not silence.is_given_up():
                emit("note", text=f"The store answers again, after {said:.0f} s.")
            told = 0.0
        if waited > _SAID_AFTER and not told:
            told, left = since, max(silence.PATIENCE_SECONDS - waited, 0)
            until = iso(clock.now() + timedelta(seconds=left))
            emit("waiting", reason="the store does not answer; it is asked again", until=until, seconds=left)
        said = waited
