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
    clock, said = SystemClock(), 0.0
    while not clock.wait(done, _LOOK_SECONDS):
        waited = silence.longest()
        if waited > _SAID_AFTER and not said:
            left = max(silence.PATIENCE_SECONDS - waited, 0)
            until = iso(clock.now() + timedelta(seconds=left))
            emit("waiting", reason="the store does not answer; it is asked again", until=until, seconds=left)
        elif said and waited < said and not silence.is_given_up():
            emit("note", text=f"The store answers again, after {said:.0f} s.")
        said = waited if waited > _SAID_AFTER else 0.0
