"""What stops a run: one switch that all its threads see, and the signals INT, TERM and HUP.

A signal handler runs in the main thread, between any two of its instructions: whatever it waited for might be held by
the very code it interrupts. So handlers only pass on that they were called; threads act.
"""

from __future__ import annotations

import atexit
import itertools
import os
import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from pipeline.clock import Clock
from pipeline.errors import (
    CheckpointCorrupt,
    Pause,
    PipelineError,
    RunExists,
    RunInterrupted,
    RunLocked,
    RunNotFound,
    SchemaTooNew,
    StoreError,
)

#: Errors of one run; any other error of a store is trouble of the store itself.
_OF_ONE_RUN = (CheckpointCorrupt, RunExists, RunLocked, RunNotFound, SchemaTooNew)


class Stop:
    """The switch that stops a run from starting anything new; the first reason wins."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._why: tuple[str, PipelineError] | None = None

    @property
    def asked(self) -> bool:
        return self._event.is_set()

    def request(self, detail: str, cause: PipelineError) -> None:
        """Stop starting new work, for this reason."""
        with self._lock:
            if self._why is None:
                self._why = (detail, cause)
        self._event.set()

    def pause(self, detail: str, cause: PipelineError) -> NoReturn:
        """Stop starting new work, and leave the run resumable.

        Raises:
            Pause: Always.
        """
        self.request(detail, cause)
        raise Pause(detail, cause)

    def as_pause(self) -> Pause | None:
        """Return the first reason to stop; None: there is none."""
        return None if self._why is None else Pause(*self._why)

    def check(self) -> None:
        """Return while work may start.

        Raises:
            Pause: The run is stopping.
        """
        if (pause := self.as_pause()) is not None:
            raise pause

    def rest(self, seconds: float) -> None:
        """Wait, unless the run is stopped first.

        Raises:
            Pause: The run was stopped meanwhile.
        """
        if seconds > 0:
            self._clock.wait(self._event, seconds)
        self.check()


def pause_if_of_the_store(error: BaseException) -> None:
    """Raise a Pause where a store does not answer: the work that asked it is not at fault, and is done again."""
    if isinstance(error, StoreError) and not isinstance(error, _OF_ONE_RUN):
        raise Pause("interrupted", error)


#: How long leaving may take.
_LEAVE_SECONDS = 2.0
#: How late a signal may be heard that did not wake the main thread.
_HEAR_SECONDS = 0.2
#: Statuses of a busy provider: every call waits.
BUSY = frozenset({429, 529})
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


#: Whether the process ends once a run was stopped by a signal: then later signals end it with that exit code too.
_ends_after_stop = threading.Event()


def end_process_after_stop() -> None:
    """Have signals end this process with 130, before, in and after a run; for programs that run and end.

    Outside a run TERM and HUP interrupt the main thread as INT does, with a KeyboardInterrupt.
    """
    if not _ends_after_stop.is_set() and threading.current_thread() is threading.main_thread():
        _ends_after_stop.set()
        for number in _handled():
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        atexit.register(_ignore_where_stopped)


def _handled() -> list[int]:
    """Return the signals that stop a run: not those that this process was started to ignore, as under `nohup`."""
    return [number for number in _SIGNALS if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN]


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Stop what the main thread does."""
    raise KeyboardInterrupt


def end_process_on_signal() -> None:
    """Have any further signal end this process with 130, at once: it was interrupted and is about to leave."""
    handler = _Handler([])
    handler.stopped = handler.over = True
    for number in _SIGNALS:
        signal.signal(number, handler)
    atexit.register(_ignore_where_stopped)


def _ignore_where_stopped() -> None:
    """Ignore signals while the interpreter is taken down, when handlers are gone and a signal would be the end code."""
    for number in _SIGNALS:
        if getattr(signal.getsignal(number), "stopped", False):
            signal.signal(number, signal.SIG_IGN)


class _Handler:
    """Passes the n-th signal to the n-th watch; any more end the process."""

    def __init__(self, watches: list[_Watch]) -> None:
        self._watches = watches
        self._numbers = itertools.count()
        self._before: dict[int, Any] = {}
        #: A signal was seen.
        self.stopped = False
        #: Nothing is left to be stopped.
        self.over = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.stopped = True
        seen = next(self._numbers)
        if self.over or seen >= len(self._watches):
            os._exit(RunInterrupted.exit_code)
        self._watches[seen].hear(signal.Signals(number).name)

    def take(self) -> None:
        """Receive the signals from now on."""
        self._before = {number: signal.signal(number, self) for number in _handled()}
        _receiving.append(self)

    def give_back(self) -> None:
        """Have the signals handled as before."""
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)
        if self in _receiving:
            _receiving.remove(self)


#: Handlers that receive the signals now, the newest last: one at most, except for runs that a signal stopped.
_receiving: list[_Handler] = []


#: What a thread that forks had blocked before.
_forking = threading.local()


def _hold_signals() -> None:
    """Keep signals back while a thread forks: the child would lose one that came before its handlers are its own."""
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS) if _receiving else None


def _let_signals_in() -> None:
    if (mask := getattr(_forking, "mask", None)) is not None:
        _forking.mask = None
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _free_child() -> None:
    """Handle signals in a forked child as before: it has the handlers of its parent, and none of the threads."""
    for handler in _receiving[::-1]:
        handler.give_back()
    for number in _SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)
    _let_signals_in()


os.register_at_fork(before=_hold_signals, after_in_parent=_let_signals_in, after_in_child=_free_child)


class _Watch:
    """A thread that waits for its signal."""

    def __init__(self, act: Callable[[str], None]) -> None:
        self._act = act
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._wait, name="signals", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        if name := self._said.get():
            self._act(name)

    def hear(self, name: str) -> None:
        """Take a signal; safe inside a handler."""
        self._said.put(name)

    def end(self) -> None:
        """Return when nothing is left to be done."""
        self._said.put("")
        _join(self._thread)


def _join(thread: threading.Thread) -> None:
    """Wait for a thread's end in slices.

    A signal that another thread received, or that came between Python's last look and the wait, does not
    end the wait: without slices its handler would be called only when the thread has ended.
    """
    while thread.is_alive():
        thread.join(_HEAR_SECONDS)


def run_with_signals(work: Callable[[], None], first: Callable[[str], None], second: Callable[[], None]) -> None:
    """Run `work` in its own thread; signals reach `first(name)`, then `second()`, each in a thread too.

    After `second` the process ends, with exit code 130. Outside the main thread signals are left alone.
    Raises what `work` raised.
    """
    error: list[BaseException] = []

    def target() -> None:
        try:
            work()
        except BaseException as caught:
            error.append(caught)

    thread = threading.Thread(target=target, name="engine", daemon=True)
    if threading.current_thread() is not threading.main_thread():
        thread.start()
        thread.join()
    else:
        _watched(thread, [_Watch(first), _Watch(lambda _: _leave(second))])
    if error:
        raise error[0]


def _leave(last: Callable[[], None]) -> NoReturn:
    """End the process; a stuck disk or display does not hold it for long."""
    doing = threading.Thread(target=last, name="leaving", daemon=True)
    doing.start()
    doing.join(_LEAVE_SECONDS)
    os._exit(RunInterrupted.exit_code)


def _watched(thread: threading.Thread, watches: list[_Watch]) -> None:
    """Start the thread and wait for it; the n-th signal is told to the n-th watch."""
    handler = _Handler(watches)
    handler.take()
    try:
        thread.start()
        _join(thread)
        for watch in watches:
            watch.end()
    finally:
        handler.over = True
        # After a stop a program that only runs and ends has nothing left that a signal could be for.
        if not (handler.stopped and _ends_after_stop.is_set()):
            handler.give_back()
